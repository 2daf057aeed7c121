// What differs between a GPU compiler and the host: the kernels themselves are one source for both.
#pragma once
typedef unsigned long long u64;
typedef unsigned u32;
// Two neighbouring words: one access of 16 bytes.
struct alignas(16) Two { u64 x, y; };

#ifdef __CUDACC__
#define D __device__ __forceinline__
#define CONSTEXPR __host__ __device__ constexpr
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
// A kernel takes one plain struct, so that a launch is a name, a shape and its bytes.
#define KERNEL(threads, blocks, name, Arguments) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const Arguments g)
typedef u64* Shared;
#define SHARED(name) extern __shared__ __align__(16) u64 shared_words_[]; Shared name = shared_words_
#define BARRIER() __syncthreads()
// Words of polynomials in device memory; the emulator remembers who touched each.
typedef const u64* In;
typedef u64* Out;
D Two load_two(In p) { return *reinterpret_cast<const Two*>(p); }
D void store_two(Out p, u64 x, u64 y) { *reinterpret_cast<Two*>(p) = Two{x, y}; }
// The same number, of which the compiler does not know that: what follows from it is worked out where it is needed,
// and not kept in registers through a loop.
#define FRESH(number) asm volatile("" : "+r"(number))
D double as_double(u64 x) { return __longlong_as_double((long long)x); }
D u64 as_word(double x) { return (u64)__double_as_longlong(x); }
D double to_double(u64 x) { return __ll2double_rn((long long)x); }
D u64 mul_high(u64 a, u64 b) { return __umul64hi(a, b); }
D u32 reverse_bits(u32 x) { return __brev(x); }
#else
#include "../emulator/emulator.h"
#endif

// Reads what no thread of the launch writes.
#ifdef __CUDACC__
D double read_only(const double* p) { return __ldg(p); }
D Two read_only(const Two* p) {
  const ulonglong2 v = __ldg(reinterpret_cast<const ulonglong2*>(p));
  return Two{v.x, v.y};
}
D Two read_key(const Two* p) { return read_only(p); }
#endif

// Where polynomial number i of a launch stands: number first + i * step of a table of addresses, or of polynomials at
// equal distances.
struct Rows {
  u64* const* table;
  u64* base;
  u64 stride;
  u32 first, step;
  D Out at(u64 i) const {
    i = first + i * step;
    return table ? table[i] : base + i * stride;
  }
};
