// The emulator's scheduler, and the kernels compiled for the host: one translation unit.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>
#include "../kernels/kernels.cu"
#include "sanitizer.h"

namespace emulator {
thread_local State* state = nullptr;

static Entry*& entries() { static Entry* first = nullptr; return first; }
Entry::Entry(const char* name, unsigned threads, size_t bytes, void (*run)(const void*))
  : name(name), threads(threads), bytes(bytes), run(run), next(entries()) { entries() = this; }

// What the caller of a launch wants tried; twin of `Try` in src/driver/emulator.rs.
struct Trial { uint64_t seed; int64_t leave_out; };

#if defined(__x86_64__)
// Saves the callee's registers on this stack, its pointer in *save, and goes on with the stack `to`.
extern "C" void sudare_switch_stack(void** save, void* to);
asm(R"(
.text
.globl sudare_switch_stack
.hidden sudare_switch_stack
.type sudare_switch_stack,@function
sudare_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sudare_switch_stack,.-sudare_switch_stack
)");
#else
#error "the emulator switches stacks on x86-64 alone: give this processor its sudare_switch_stack"
#endif

constexpr size_t STACK = sanitizer::STACK;
struct Fiber { void* at = nullptr; char* stack = nullptr; bool done = false; int64_t barriers = 0; sanitizer::Stack own; };
struct Run : State {
  const Entry* entry = nullptr;
  const void* arguments = nullptr;
  Trial trial{};
  std::vector<Fiber> fibers;
  std::vector<Shadow> shadows;
  void* main = nullptr;
  sanitizer::Stack main_stack;
  sigjmp_buf out;
  char message[256];
  uint64_t random = 1;

  uint64_t draw() {                       // splitmix64
    uint64_t z = random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }
  void shuffle(std::vector<unsigned>& order) {
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[draw() % i]);
  }
};
static Run& run() { return *static_cast<Run*>(state); }

[[noreturn]] static void fault(const char* format, ...) {
  Run& r = run();
  int used = std::snprintf(r.message, sizeof r.message, "kernel %s, block (%u, %u, %u), thread %u: ", r.entry->name,
                           r.block.x, r.block.y, r.block.z, r.thread.x);
  va_list more;
  va_start(more, format);
  if (used >= 0 && size_t(used) < sizeof r.message) std::vsnprintf(r.message + used, sizeof r.message - used, format, more);
  va_end(more);
  r.main_stack.enter_for_good();
  siglongjmp(r.out, 1);
}
void race(uint64_t word, const char* what, unsigned other) {
  if (other == MANY) fault("a race: %s several threads, word %llu of shared memory", what, (unsigned long long)word);
  fault("a race: %s thread %u, word %llu of shared memory", what, other, (unsigned long long)word);
}
void beyond_shared(uint64_t word) {
  fault("word %llu is beyond the %llu of shared memory", (unsigned long long)word, (unsigned long long)run().words);
}
void misaligned(const void* at, unsigned bytes) { fault("address %p is no multiple of %u, and %u bytes are there at a time", at, bytes, bytes); }

void device_race(const void* at, const char* what) { fault("a race in device memory: %s, address %p", what, at); }

static void to_main() {
  Run& r = run();
  Fiber& f = r.fibers[r.thread.x];
  if (f.done) r.main_stack.enter_for_good();
  else r.main_stack.enter_from(f.own);
  sudare_switch_stack(&f.at, r.main);
  f.own.entered();
}
void barrier() {
  Run& r = run();
  if (r.fibers[r.thread.x].barriers++ == r.trial.leave_out) return;
  to_main();
}
static void entry() {
  Run& r = run();
  r.main_stack.left();
  r.entry->run(r.arguments);
  r.fibers[r.thread.x].done = true;
  to_main();
  __builtin_trap();
}
static void run_block(Run& r, std::vector<unsigned>& order) {
  for (unsigned t = 0; t < r.threads.x; t++) {
    Fiber& f = r.fibers[t];
    f.done = false;
    f.barriers = 0;
    f.own.make(f.stack);
    void** top = reinterpret_cast<void**>(f.stack + STACK - 64);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&entry);
    for (int saved = 0; saved < 6; saved++) *--top = nullptr;
    f.at = top;
  }
  if (r.words) std::memset(r.shared, 0xAD, r.words * 8);
  r.began = ++r.epoch;
  for (unsigned live = r.threads.x; live;) {
    r.shuffle(order);
    unsigned ended = 0;
    for (unsigned t : order) {
      if (r.fibers[t].done) continue;
      r.thread = Index{t, 0, 0};
      r.fibers[t].own.enter_from(r.main_stack);
      sudare_switch_stack(&r.main, r.fibers[t].at);
      r.main_stack.entered();
      ended += r.fibers[t].done;
    }
    live -= ended;
    if (ended && live) fault("%u of %u threads wait at a barrier that the others never reach", live, r.threads.x);
    r.epoch++;
  }
}

static void on_fault(int signal, siginfo_t* info, void*) {
  if (state) fault("touches address %p, which is in no buffer", info->si_addr);
  std::signal(signal, SIG_DFL);
}
static Run& this_thread() {
  static thread_local Run* mine = nullptr;
  if (!mine) {
    mine = new Run;
    static const bool handling = [] {
      struct sigaction action {};
      action.sa_sigaction = on_fault;
      action.sa_flags = SA_SIGINFO | SA_NODEFER;
      sigaction(SIGSEGV, &action, nullptr);
      return sigaction(SIGBUS, &action, nullptr) == 0;
    }();
    (void)handling;
  }
  return *mine;
}
}  // namespace emulator

// 0: done; 1: no such kernel; 2: other arguments or threads than it has; 3: a fault. `message` gets what it was.
extern "C" int sudare_emulator_launch(const char* name, const unsigned grid[3], unsigned threads, uint64_t shared_bytes,
                                      const void* arguments, uint64_t bytes, const emulator::Trial* trial,
                                      emulator::Counts* counted, char* message, uint64_t length) {
  using namespace emulator;
  const Entry* entry = entries();
  while (entry && std::strcmp(entry->name, name)) entry = entry->next;
  if (!entry) return 1;
  if (entry->bytes != bytes || threads == 0 || threads > entry->threads) {
    std::snprintf(message, length, "%s takes up to %u threads and %zu bytes of arguments", name, entry->threads, entry->bytes);
    return 2;
  }
  Run& r = this_thread();
  r.entry = entry;
  r.arguments = arguments;
  r.trial = *trial;
  r.random = trial->seed;
  r.threads = Index{threads, 1, 1};
  r.words = shared_bytes / 8;
  r.shadows.resize(r.shadows.size() < r.words ? r.words : r.shadows.size());
  r.shadow = r.shadows.data();
  while (r.fibers.size() < threads) {
    r.fibers.emplace_back();
    r.fibers.back().stack = new char[STACK];
  }
  std::vector<uint64_t> shared(r.words + 2);
  r.shared = shared.data() + (reinterpret_cast<uintptr_t>(shared.data()) % 16 ? 1 : 0);
  const uint64_t count = uint64_t(grid[0]) * grid[1] * grid[2];
  std::vector<unsigned> order(threads), blocks(count);
  for (unsigned i = 0; i < threads; i++) order[i] = i;
  for (uint64_t i = 0; i < count; i++) blocks[i] = unsigned(i);
  r.shuffle(blocks);
  // A launch has fewer than 2^28 barriers, those of all its blocks together.
  static std::atomic<uint64_t> launches{0};
  r.launch = r.epoch = ++launches << 28;
  state = &r;
  counts = {};
  if (sigsetjmp(r.out, 1)) {
    r.main_stack.entered();
    state = nullptr;
    std::snprintf(message, length, "%s", r.message);
    return 3;
  }
  for (unsigned b : blocks) {
    r.block = Index{b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
    run_block(r, order);
  }
  state = nullptr;
  *counted = counts;
  return 0;
}

// Device memory: `bytes` that end where mapped memory ends, filled with rubbish; null if there is no memory. What is freed is
// mapped no more until as much is asked for again.
namespace emulator {
static char* reserve(uint64_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}
Range range = {};
static std::mutex spans;
static std::map<uint64_t, std::vector<char*>> unused;
static uint64_t given = 0;

// The ranges, when the first buffer is wanted: who loads the library for other work has its addresses to itself.
static bool reserved() {
  if (range.shadow) return true;
  if (!range.memory) range.memory = reserve(RANGE);
  if (range.memory) range.shadow = reinterpret_cast<Touched*>(reserve(RANGE / 8 * sizeof(Touched)));
  return range.shadow;
}

static uint64_t span(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096 + 2 * 4096; }
// Memory and its shadow, from the first page to that before the last.
static bool allow(char* first, uint64_t inside) {
  return !mprotect(first, inside, PROT_READ | PROT_WRITE) &&
         !mprotect(touched(reinterpret_cast<u64*>(first)), inside / 8 * sizeof(Touched), PROT_READ | PROT_WRITE);
}
static void forbid(void* first, uint64_t bytes) {
  if (mmap(first, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) std::abort();
}
}  // namespace emulator
extern "C" void* sudare_emulator_allocate(uint64_t bytes) {
  using namespace emulator;
  const uint64_t all = span(bytes), inside = all - 2 * 4096;
  char* p;
  {
    std::lock_guard<std::mutex> held(spans);
    if (!reserved()) return nullptr;
    std::vector<char*>& same = unused[all];
    if (same.empty()) {
      if (RANGE - given < all) return nullptr;
      p = range.memory + given;
      given += all;
    } else {
      p = same.back();
      same.pop_back();
    }
  }
  if (!allow(p + 4096, inside)) {
    std::lock_guard<std::mutex> held(spans);
    unused[all].push_back(p);
    return nullptr;
  }
  std::memset(p + 4096, 0xAD, inside);
  return p + 4096 + inside - (bytes + 15) / 16 * 16;
}
extern "C" void sudare_emulator_free(void* at, uint64_t bytes) {
  using namespace emulator;
  const uint64_t all = span(bytes), inside = all - 2 * 4096;
  char* first = static_cast<char*>(at) + (bytes + 15) / 16 * 16 - inside;
  forbid(first, inside);
  forbid(touched(reinterpret_cast<u64*>(first)), inside / 8 * sizeof(Touched));
  std::lock_guard<std::mutex> held(spans);
  unused[all].push_back(first - 4096);
}
// The kernels' names, one after the other: the number of them, or the name of one.
extern "C" uint64_t sudare_emulator_kernels(uint64_t at, const char** name) {
  uint64_t count = 0;
  for (const emulator::Entry* e = emulator::entries(); e; e = e->next, count++)
    if (count == at) *name = e->name;
  return count;
}
