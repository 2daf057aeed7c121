//! The samplers of secrets and noise execute the same instructions whatever they draw.
//!
//! A child process runs a sampler; the parent steps it from branch to branch and compares the whole sequence of
//! addresses that it stops at under different seeds. Equal sequences mean that no branch, no early exit and no loop
//! count depended on the values, in the machine code that was built and for the kernels that this processor runs, the
//! portable ones too. It does not see which data addresses are read: that no table is indexed by a secret is by
//! construction. Linux on x86-64 alone.
//!
//! Where a sandbox forbids tracing, `SUDARE_NO_PTRACE=1` skips the test, and says so.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    trace::main();
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    println!("constant_time: needs Linux on x86-64; nothing was tested");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace {
    use libc::{SIGSTOP, c_void};
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};
    use std::sync::OnceLock;
    use sudare_ring::random::{GaussianSampler, Seed, Stream, fixed_weight_ternary, ternary};
    use sudare_tfhe::{Noise, NoiseSampler, SecretKind};

    /// Values of a call: a block of the widest kernel, and a rest.
    const COUNT: usize = 66;
    /// Seeds that are compared.
    const SEEDS: u8 = 3;
    /// Most steps of a call.
    const MOST: usize = 4_000_000;

    /// Steps to the next taken branch, or by one instruction where the processor cannot (`PTRACE_SINGLEBLOCK`): either
    /// way the addresses tell the whole path.
    const SINGLE_BLOCK: libc::c_uint = 33;

    type Sampler = fn(&mut Stream, &mut [i64]);

    fn noise(noise: Noise, stream: &mut Stream, out: &mut [i64]) {
        NoiseSampler::new(noise).unwrap().sample(stream, out);
    }

    /// A sampler with a table, which is made once and not traced.
    fn narrow() -> &'static NoiseSampler {
        static NARROW: OnceLock<NoiseSampler> = OnceLock::new();
        NARROW.get_or_init(|| NoiseSampler::new(Noise::Gaussian { sigma: 1.0 }).unwrap())
    }

    const SAMPLERS: [(&str, Sampler); 8] = [
        ("uniform ternary", |s, x| ternary(s, x)),
        ("ternary of fixed weight", |s, x| fixed_weight_ternary(s, 11, &mut x[..32]).unwrap()),
        ("Gaussian, σ = 3.19", |s, x| GaussianSampler::standard().sample(s, x)),
        ("Gaussian, σ = 1", |s, x| narrow().sample(s, x)),
        ("TUniform", |s, x| noise(Noise::TUniform { bits: 13 }, s, x)),
        ("uniform noise", |s, x| noise(Noise::Uniform { bound: 595_700 }, s, x)),
        ("binary", |s, x| SecretKind::Binary.sample(s, x)),
        ("ternary of TFHE", |s, x| SecretKind::Ternary.sample(s, x)),
    ];

    /// What the test has to notice: a branch, and an early exit.
    const CONTROLS: [(&str, Sampler); 2] = [
        ("control: a branch", |s, x| {
            for x in x {
                let word = s.next_u64();
                *x = if word & 1 == 1 { std::hint::black_box(word as i64).count_ones().into() } else { 0 };
            }
        }),
        ("control: rejection", |s, x| {
            for x in x {
                while std::hint::black_box(s.next_u64() >> 56) > 200 {}
                *x = 1;
            }
        }),
    ];

    pub fn main() {
        if std::env::var_os("SUDARE_NO_PTRACE").is_some_and(|v| v == "1") {
            println!("constant_time: SUDARE_NO_PTRACE is set; nothing was tested");
            return;
        }
        one_processor();
        let mut failed = 0;
        for kernel in [None, Some("portable")] {
            if let Some(kernel) = kernel {
                // SAFETY: this process has one thread.
                unsafe { std::env::set_var("SUDARE_KERNEL", kernel) };
            }
            let kernel = kernel.unwrap_or("the best kernels here");
            for (cases, same) in [(&SAMPLERS[..], true), (&CONTROLS[..], false)] {
                for (name, sampler) in cases {
                    let traces: Vec<_> = (0..SEEDS).map(|seed| path(*sampler, seed)).collect();
                    let equal = traces.iter().all(|t| *t == traces[0]);
                    let verdict = if equal == same { "ok" } else { "FAILED" };
                    failed += u32::from(equal != same);
                    let lengths: Vec<usize> = traces.iter().map(|t| t.0).collect();
                    println!("constant_time: {name}, {kernel}: {verdict}, steps {lengths:?}");
                }
            }
        }
        let all = 2 * (SAMPLERS.len() + CONTROLS.len()) as u32;
        println!("{} passed, {failed} failed", all - failed);
        assert_eq!(failed, 0, "a sampler's instructions depend on its seed, or a control's do not");
    }

    /// Keeps parent and child on one processor: they take turns, and hand over faster there.
    fn one_processor() {
        // SAFETY: the set is made here, and of the size that is told. A refusal only costs time.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set);
        }
    }

    /// How many steps a call takes, and a hash of the addresses where they begin.
    fn path(sampler: Sampler, seed: u8) -> (usize, u64) {
        // SAFETY: this process has one thread, so the child's copy of it is whole.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "no child process: {}", std::io::Error::last_os_error());
        if child == 0 {
            traced(sampler, seed);
        }
        wait(child);
        let mut hasher = BuildHasherDefault::<DefaultHasher>::new().build_hasher();
        let (mut count, rip) =
            (0, std::mem::offset_of!(libc::user, regs) + std::mem::offset_of!(libc::user_regs_struct, rip));
        loop {
            // SAFETY: the child is stopped and traced by this process; the offset is that of its instruction pointer.
            let at = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, child, rip as *mut c_void, 0) };
            hasher.write_u64(at as u64);
            count += 1;
            assert!(count < MOST, "the child does not stop");
            // SAFETY: as above.
            let stepped = unsafe { libc::ptrace(SINGLE_BLOCK, child, 0, 0) };
            assert_eq!(stepped, 0, "no tracing here: {}; SUDARE_NO_PTRACE=1 skips", std::io::Error::last_os_error());
            if wait(child) == SIGSTOP {
                break;
            }
        }
        // SAFETY: the child is ours and nothing else waits for it.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        (count, hasher.finish())
    }

    /// The child: warms up, stops to be traced, samples, stops.
    fn traced(sampler: Sampler, seed: u8) -> ! {
        let mut values = [0i64; COUNT];
        // Tables are made and memory is taken before the trace starts.
        sampler(&mut Seed::from_bytes([255; 32]).stream(0), &mut values);
        let mut stream = Seed::from_bytes([seed; 32]).stream(0);
        // SAFETY: asks to be traced by the parent, and stops.
        unsafe {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                libc::_exit(1);
            }
            libc::raise(SIGSTOP);
        }
        sampler(&mut stream, &mut values);
        std::hint::black_box(&values);
        // SAFETY: ends the trace and this process, without destructors.
        unsafe {
            libc::raise(SIGSTOP);
            libc::_exit(0)
        }
    }

    /// Waits for the child to stop; by which signal.
    fn wait(child: libc::pid_t) -> i32 {
        let mut status = 0;
        // SAFETY: the child is ours.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        assert!(
            waited == child && libc::WIFSTOPPED(status),
            "the child ended: tracing may be forbidden here; SUDARE_NO_PTRACE=1 skips"
        );
        libc::WSTOPSIG(status)
    }
}
