// Runs the kernels' source on a CPU: one fiber a thread, blocks one after the other, both in random order.
//
// What it checks beside the answers:
//  - shared memory is exactly as large as the launch asked for, holds rubbish at the start of a block, and remembers
//    who read and wrote each word since the last barrier: two threads that touch a word without a barrier between
//    them, one of them writing, are a fault, whatever order they ran in;
//  - device memory ends where a buffer ends: what lies beyond is not mapped, and touching it is a fault;
//  - every word of a polynomial in device memory remembers who read and wrote it in this launch: two blocks, or two
//    threads of a block without a barrier between them, that touch a word, one of them writing, are a fault;
//  - an access of 16 bytes at no multiple of 16 is a fault;
//  - a barrier that some threads of a block never reach is a fault;
//  - a kernel started with other threads or arguments than it was written for is a fault.
// A fault ends the launch with a message that names the kernel, the block and the thread.
// It counts what a card's pipes and memories would be busy with.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#define D inline
#define CONSTEXPR constexpr
#define UNROLL
#define ROLLED
#define KERNEL(threads, blocks, name, Arguments) \
  static void name(const Arguments& g); \
  static emulator::Entry entry_##name(#name, threads, sizeof(Arguments), \
    [](const void* a) { name(*static_cast<const Arguments*>(a)); }); \
  static void name(const Arguments& g)
#define SHARED(name) Shared name{0}
#define FRESH(number) ((void)0)
#define BARRIER() emulator::barrier()
#define ALIGNED(p, bytes) do { if (reinterpret_cast<uintptr_t>(p) % (bytes)) emulator::misaligned(p, bytes); } while (0)
#define blockIdx (emulator::state->block)
#define blockDim (emulator::state->threads)
#define threadIdx (emulator::state->thread)

namespace emulator {
struct Index { unsigned x, y, z; };
struct Entry {
  const char* name;
  unsigned threads;
  size_t bytes;
  void (*run)(const void*);
  Entry* next;
  Entry(const char* name, unsigned threads, size_t bytes, void (*run)(const void*));
};
// The accesses to a word of shared memory since the last barrier.
struct Shadow { uint64_t written = 0, read = 0; uint16_t writer = 0, reader = 0; };
// The same of a word of device memory in the last launch that touched it, and who read it first.
struct Touched { uint64_t written, read, read_first; uint16_t writer, reader; };
struct State {
  Index block, threads, thread;
  uint64_t* shared;
  Shadow* shadow;
  uint64_t words;       // of shared memory
  uint64_t epoch;       // rises at each barrier, and from launch to launch
  uint64_t launch, began;   // what it was when the launch and the block began
};
extern thread_local State* state;
// Of a launch: operations on doubles, words of polynomials read and written, those among them for the first time, words of keys.
struct Counts { uint64_t doubles, accessed, touched, keys; };
inline thread_local Counts counts = {};
constexpr uint16_t MANY = 0xFFFF;
void barrier();
[[noreturn]] void race(uint64_t word, const char* what, unsigned other);
[[noreturn]] void beyond_shared(uint64_t word);
[[noreturn]] void misaligned(const void* at, unsigned bytes);
[[noreturn]] void device_race(const void* at, const char* what);
// Device memory is within one range of addresses, and its shadow within another.
constexpr uint64_t RANGE = uint64_t(1) << 40;
struct Range { char* memory; Touched* shadow; };
extern Range range;
inline Touched* touched(const u64* p) {
  const uint64_t at = uint64_t(reinterpret_cast<const char*>(p) - range.memory);
  return range.shadow && at < RANGE ? range.shadow + at / 8 : nullptr;
}
inline u64 read_device(const u64* p) {
  const u64 value = *static_cast<const volatile u64*>(p);   // a fault names this address, not the shadow's
  Touched* w = touched(p);
  if (!w) return value;
  const State& s = *state;
  const uint16_t me = uint16_t(s.thread.x);
  counts.accessed++;
  counts.touched += w->read < s.launch && w->written < s.launch;
  if (w->written >= s.launch) {
    if (w->written < s.began) device_race(p, "reads what another block wrote");
    if (w->written == s.epoch && w->writer != me) device_race(p, "reads what another thread wrote");
  }
  if (w->read < s.launch) w->read_first = s.epoch;
  w->reader = w->read == s.epoch && w->reader != me ? MANY : me;
  w->read = s.epoch;
  return value;
}
inline void write_device(u64* p, u64 value) {
  *static_cast<volatile u64*>(p) = value;
  Touched* w = touched(p);
  if (!w) return;
  const State& s = *state;
  const uint16_t me = uint16_t(s.thread.x);
  counts.accessed++;
  counts.touched += w->written < s.launch;
  if (w->written >= s.launch) {
    if (w->written < s.began) device_race(p, "writes over what another block wrote");
    if (w->written == s.epoch && w->writer != me) device_race(p, "writes over what another thread wrote");
  }
  if (w->read >= s.launch) {
    if (w->read_first < s.began) device_race(p, "writes over what another block reads");
    if (w->read == s.epoch && w->reader != me) device_race(p, "writes over what another thread reads");
  }
  w->written = s.epoch;
  w->writer = me;
}
inline uint64_t read_shared(uint64_t at) {
  State& s = *state;
  if (at >= s.words) beyond_shared(at);
  Shadow& w = s.shadow[at];
  const uint16_t me = uint16_t(s.thread.x);
  if (w.written == s.epoch && w.writer != me) race(at, "reads what was written by", w.writer);
  if (w.read != s.epoch) { w.read = s.epoch; w.reader = me; }
  else if (w.reader != me) w.reader = MANY;
  return s.shared[at];
}
inline void write_shared(uint64_t at, uint64_t value) {
  State& s = *state;
  if (at >= s.words) beyond_shared(at);
  Shadow& w = s.shadow[at];
  const uint16_t me = uint16_t(s.thread.x);
  if (w.written == s.epoch && w.writer != me) race(at, "writes over what was written by", w.writer);
  if (w.read == s.epoch && w.reader != me) race(at, "writes over what is read by", w.reader);
  w.written = s.epoch;
  w.writer = me;
  s.shared[at] = value;
}
}  // namespace emulator

struct Shared {
  u64 first;
  struct Word {
    u64 at;
    operator u64() const { return emulator::read_shared(at); }
    void operator=(u64 value) const { emulator::write_shared(at, value); }
  };
  Word operator[](u64 i) const { return Word{first + i}; }
  Shared operator+(u64 i) const { return Shared{first + i}; }
};

struct In {
  const u64* at;
  In(const u64* at) : at(at) {}
  u64 operator[](u64 i) const { return emulator::read_device(at + i); }
  In operator+(u64 i) const { return In(at + i); }
  In& operator+=(u64 i) { at += i; return *this; }
};
struct Out {
  u64* at;
  Out(u64* at) : at(at) {}
  operator In() const { return In(at); }
  struct Word {
    u64* at;
    void operator=(u64 value) const { emulator::write_device(at, value); }
  };
  Word operator[](u64 i) const { return Word{at + i}; }
  Out operator+(u64 i) const { return Out(at + i); }
  Out& operator+=(u64 i) { at += i; return *this; }
};
inline Two load_two(In p) { ALIGNED(p.at, 16); return Two{p[0], p[1]}; }
inline void store_two(Out p, u64 x, u64 y) { ALIGNED(p.at, 16); p[0] = x; p[1] = y; }

// The intrinsics that kernels use. Those of doubles never contract (-ffp-contract=off).
inline double as_double(u64 x) { double d; std::memcpy(&d, &x, 8); return d; }
inline u64 as_word(double x) { u64 w; std::memcpy(&w, &x, 8); return w; }
inline double to_double(u64 x) { return double((long long)x); }
inline u64 mul_high(u64 a, u64 b) { return u64((unsigned __int128)a * b >> 64); }
inline u32 reverse_bits(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0F0F0F0Fu) | (x & 0x0F0F0F0Fu) << 4;
  return __builtin_bswap32(x);
}
template <class T> inline T read_only(const T* p) { ALIGNED(p, sizeof(T)); return *p; }
inline Two read_key(const Two* p) { emulator::counts.keys += 2; return read_only(p); }
inline double counted(double x) { emulator::counts.doubles++; return x; }
inline double __dmul_rn(double a, double b) { return counted(a * b); }
inline double __dadd_rn(double a, double b) { return counted(a + b); }
inline double __dsub_rn(double a, double b) { return counted(a - b); }
inline double __fma_rn(double a, double b, double c) { return counted(__builtin_fma(a, b, c)); }
