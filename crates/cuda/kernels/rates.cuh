// What a card does at best: its arithmetic and its second-level cache, for the lab.
#pragma once
#include "dialect.cuh"

// Each thread leaves one word, so that nothing is left out; eight chains, so that a pipe never waits for a result.
struct Rate {
  u64* out;
  const u64* in;
  u64 factor;    // an odd word of 32 bits, or the bits of a double
  u64 rounds;    // of 64 operations a thread
};
constexpr int CHAINS = 8;
D u64 thread_number() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

KERNEL(256, 4, rate_fp64, Rate) {
  double x[CHAINS];
  const double w = as_double(g.factor);
  UNROLL for (int k = 0; k < CHAINS; k++) x[k] = to_double(thread_number() + k);
  ROLLED for (u64 round = 0; round < g.rounds; round++) {
    UNROLL for (int j = 0; j < 8; j++) { UNROLL for (int k = 0; k < CHAINS; k++) x[k] = __fma_rn(x[k], w, w); }
  }
  u64 all = 0;
  UNROLL for (int k = 0; k < CHAINS; k++) all ^= as_word(x[k]) + k;
  g.out[thread_number()] = all;
}
// Products of 32 bits.
KERNEL(256, 4, rate_imad, Rate) {
  u32 x[CHAINS];
  const u32 w = (u32)g.factor;
  UNROLL for (int k = 0; k < CHAINS; k++) x[k] = (u32)thread_number() + k;
  ROLLED for (u64 round = 0; round < g.rounds; round++) {
    UNROLL for (int j = 0; j < 8; j++) { UNROLL for (int k = 0; k < CHAINS; k++) x[k] = x[k] * w + w; }
  }
  u64 all = 0;
  UNROLL for (int k = 0; k < CHAINS; k++) all = 3 * all + x[k];
  g.out[thread_number()] = all;
}
// Products of 32 by 32 bits that are added to 64.
KERNEL(256, 4, rate_imad_wide, Rate) {
  u64 x[CHAINS];
  const u32 w = (u32)g.factor;
  UNROLL for (int k = 0; k < CHAINS; k++) x[k] = thread_number() + k;
  ROLLED for (u64 round = 0; round < g.rounds; round++) {
    UNROLL for (int j = 0; j < 8; j++) { UNROLL for (int k = 0; k < CHAINS; k++) x[k] = (u64)(u32)x[k] * w + x[k]; }
  }
  u64 all = 0;
  UNROLL for (int k = 0; k < CHAINS; k++) all = 3 * all + x[k];
  g.out[thread_number()] = all;
}
// Reads: a power of two of blocks, 32 KB each; every round those of another block, so that no first-level cache has them.
KERNEL(256, 4, rate_read, Rate) {
  u64 all = 0;
  const u64 last = g.factor - 1;   // blocks in the memory, less one
  ROLLED for (u64 round = 0; round < g.rounds; round++) {
    const u64* from = g.in + (((blockIdx.x + 13 * round) & last) << 12) + 2 * threadIdx.x;
    UNROLL for (int k = 0; k < CHAINS; k++) {
      const Two v = load_two(from + 512 * k);
      all += v.x ^ v.y;
    }
  }
  g.out[thread_number()] = all;
}
