// A processor that says that it has no AVX-512, for programs that ask it: Linux on x86 with CPUID faulting (`cpuid_fault` in /proc/cpuinfo).
//
//	cc -O2 -shared -fPIC -o target/without_avx512.so bench/without_avx512.c
//	LD_PRELOAD=target/without_avx512.so PROGRAM
//
// The kernel raises a fault at each CPUID; the handler executes it and takes the AVX-512 features of leaf 7 from the answer.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static void may_ask(int yes) {
	if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, yes)) {
		perror("CPUID faulting");
		_exit(1);
	}
}

static void answer(int signal_, siginfo_t *info, void *context) {
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	const unsigned char *at = (const unsigned char *)r[REG_RIP];
	if (info->si_code != SI_KERNEL || at[0] != 0x0f || at[1] != 0xa2) {
		signal(signal_, SIG_DFL);
		return;
	}
	unsigned leaf = r[REG_RAX], sub = r[REG_RCX], a, b, c, d;
	may_ask(1);
	__cpuid_count(leaf, sub, a, b, c, d);
	may_ask(0);
	if (leaf == 7 && sub == 0) {
		// F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT, FP16.
		b &= ~(1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31);
		c &= ~(1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14);
		d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 23);
	}
	r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
	r[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
	struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigaction(SIGSEGV, &action, NULL);
	may_ask(0);
}
