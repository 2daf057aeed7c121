// Negacyclic transforms, cut in two so that one pass over memory does as much as it can: 4 layers on 16 values a
// thread in registers ("columns", N/16 apart), and the rest inside contiguous "parts" of N/16 = 2^L values in shared
// memory. Between the two, values are kept as the family has them. The evaluation order is that of the CPU
// (bit-reversed, each block of 64 values transposed as an 8x8 square), which the last pass stores by pairs.
#pragma once
#include "arith.cuh"

// Layers of each pass of a part. The last has 4 and the one before it stride 16, so that shared memory padded by one
// word in 16 has no bank conflicts.
template <int L> struct Plan;
template <> struct Plan<6> { static constexpr int passes = 2, layers[3] = {2, 4, 0}; };
template <> struct Plan<7> { static constexpr int passes = 2, layers[3] = {3, 4, 0}; };
template <> struct Plan<8> { static constexpr int passes = 2, layers[3] = {4, 4, 0}; };
template <> struct Plan<9> { static constexpr int passes = 3, layers[3] = {2, 3, 4}; };
template <> struct Plan<10> { static constexpr int passes = 3, layers[3] = {3, 3, 4}; };
template <> struct Plan<11> { static constexpr int passes = 3, layers[3] = {4, 3, 4}; };
template <> struct Plan<12> { static constexpr int passes = 3, layers[3] = {4, 4, 4}; };
template <int L, int P> CONSTEXPR int first_layer() {
  int s = 0;
  for (int i = 0; i < P; i++) s += Plan<L>::layers[i];
  return s;
}
D constexpr int padded(int i) { return i + (i >> 4); }
// Words of shared memory of a part; `exchange_words` of src/ops/mod.rs is its twin.
CONSTEXPR int exchange_words(int L) { return (1 << L) + (1 << (L - 4)); }

// Layers S.. of a group of 2^R values in registers. SETTLE is the mask of layers 0.. of the whole transform, FIRST the
// number of layer 0 of the group; the twiddle of block b in the layer with m blocks stands at m + b.
template <class A, int R, int S, int FIRST, unsigned SETTLE, int B = 0> struct Group {
  typedef typename A::T T;
  typedef typename A::W W;
  static D void forward(T* x, const W* twiddles, int m, int g, const Prime& p) {
    constexpr int h = (1 << R) >> (S + 1);
    const W w = read_only(twiddles + (m << S) + (g << S) + B);
    if constexpr (SETTLE >> (FIRST + S) & 1) {
      UNROLL for (int j = 0; j < 2 * h; j++) x[B * 2 * h + j] = A::settle(x[B * 2 * h + j], p);
    }
    UNROLL for (int j = 0; j < h; j++) A::forward(x[B * 2 * h + j], x[B * 2 * h + j + h], w, p);
    if constexpr (B + 1 < (1 << S)) Group<A, R, S, FIRST, SETTLE, B + 1>::forward(x, twiddles, m, g, p);
    else if constexpr (S + 1 < R) Group<A, R, S + 1, FIRST, SETTLE, 0>::forward(x, twiddles, m, g, p);
  }
  static D void inverse(T* x, const W* twiddles, int m, int g, const Prime& p) {
    constexpr int h = (1 << R) >> (S + 1);
    const W w = read_only(twiddles + (m << S) + (g << S) + B);
    UNROLL for (int j = 0; j < h; j++) {
      A::inverse(x[B * 2 * h + j], x[B * 2 * h + j + h], w, p);
      if constexpr (SETTLE >> (FIRST + S) & 1) x[B * 2 * h + j] = A::settle(x[B * 2 * h + j], p);
    }
    if constexpr (B + 1 < (1 << S)) Group<A, R, S, FIRST, SETTLE, B + 1>::inverse(x, twiddles, m, g, p);
    else if constexpr (S > 0) Group<A, R, S - 1, FIRST, SETTLE, 0>::inverse(x, twiddles, m, g, p);
  }
};

// The first layers of a transform, and the last of its inverse, on the 16 values of a column.
template <class A> D void column_forward(typename A::T* x, const Prime& p) {
  Group<A, 4, 0, 0, A::columns_forward>::forward(x, static_cast<const typename A::W*>(p.forward), 1, 0, p);
}
template <class A> D void column_inverse(typename A::T* x, const Prime& p) {
  Group<A, 4, 3, 0, A::columns_inverse>::inverse(x, static_cast<const typename A::W*>(p.inverse), 1, 0, p);
}

// Pass P of a part: which group of the part a thread's group i is, and where its value k stands. Places are sums of
// multiples, padded or not, so that an access is one base and a constant.
template <int L, int P> struct Pass {
  static constexpr int R = Plan<L>::layers[P], FIRST = first_layer<L, P>(), STRIDE = (1 << L) >> (FIRST + R);
  static constexpr int GROUPS = 16 >> R, THREADS = 1 << (L - 4);
  static constexpr int STEP = THREADS % STRIDE == 0 ? THREADS << R : THREADS;   // between a thread's groups
  static_assert(GROUPS == 1 || THREADS % STRIDE == 0 || THREADS * GROUPS <= STRIDE, "groups at equal steps");
  static D int group(int t, int i) { return (t + THREADS * i) / STRIDE; }
  static D int first(int t) { return (t / STRIDE) * (STRIDE << R) + t % STRIDE; }
  static D constexpr int after(int i, int k) { return i * STEP + k * STRIDE; }   // from the thread's first value
  static D int padded_at(int t, int i, int k) { return padded(first(t)) + i * padded(STEP) + k * padded(STRIDE); }
};
template <class A, int L, int P, bool STORE> D void exchange(typename A::T* x, Shared s, int t) {
  typedef Pass<L, P> Q;
  UNROLL for (int i = 0; i < Q::GROUPS; i++) {
    UNROLL for (int k = 0; k < (1 << Q::R); k++) {
      typename A::T& value = x[(i << Q::R) + k];
      const int at = Q::padded_at(t, i, k);
      if constexpr (STORE) s[at] = A::bits(value);
      else value = A::raw(s[at]);
    }
  }
}
template <class A, int L, int P> D void pass_forward(typename A::T* x, const Prime& p, int t, int part) {
  typedef Pass<L, P> Q;
  constexpr int first = Q::FIRST + COLUMN_LAYERS;
  const typename A::W* twiddles = static_cast<const typename A::W*>(p.forward);
  UNROLL for (int i = 0; i < Q::GROUPS; i++)
    Group<A, Q::R, 0, first, A::parts_forward(L)>::forward(x + (i << Q::R), twiddles, 1 << first, (part << Q::FIRST) + Q::group(t, i), p);
}
template <class A, int L, int P> D void pass_inverse(typename A::T* x, const Prime& p, int t, int part) {
  typedef Pass<L, P> Q;
  constexpr int first = Q::FIRST + COLUMN_LAYERS;
  const typename A::W* twiddles = static_cast<const typename A::W*>(p.inverse);
  UNROLL for (int i = 0; i < Q::GROUPS; i++)
    Group<A, Q::R, Q::R - 1, first, A::parts_inverse(L)>::inverse(x + (i << Q::R), twiddles, 1 << first, (part << Q::FIRST) + Q::group(t, i), p);
}
// From the places of the first pass to those of the last. One barrier an exchange is enough: in the next one a thread
// writes only where it has read.
template <class A, int L, int P = 0> D void part_forward(typename A::T* x, Shared s, const Prime& p, int t, int part) {
  if constexpr (P < Plan<L>::passes) {
    if constexpr (P > 0) {
      exchange<A, L, P - 1, true>(x, s, t);
      BARRIER();
      exchange<A, L, P, false>(x, s, t);
    }
    pass_forward<A, L, P>(x, p, t, part);
    part_forward<A, L, P + 1>(x, s, p, t, part);
  }
}
// Back: from the places of the last pass to those of the first.
template <class A, int L, int P = Plan<L>::passes - 1> D void part_inverse(typename A::T* x, Shared s, const Prime& p, int t, int part) {
  if constexpr (P >= 0) {
    if constexpr (P + 1 < Plan<L>::passes) {
      exchange<A, L, P + 1, true>(x, s, t);
      BARRIER();
      exchange<A, L, P, false>(x, s, t);
    }
    pass_inverse<A, L, P>(x, p, t, part);
    part_inverse<A, L, P - 1>(x, s, p, t, part);
  }
}
// A thread's values in the places of the first pass, as the family has them.
template <class A, int L> D void load_first(typename A::T* x, In row, int t) {
  typedef Pass<L, 0> Q;
  row += (u32)Q::first(t);
  UNROLL for (int i = 0; i < Q::GROUPS; i++) {
    UNROLL for (int k = 0; k < (1 << Q::R); k++) x[(i << Q::R) + k] = A::raw(row[Q::after(i, k)]);
  }
}
template <class A, int L> D void store_first(Out row, const typename A::T* x, int t) {
  typedef Pass<L, 0> Q;
  row += (u32)Q::first(t);
  UNROLL for (int i = 0; i < Q::GROUPS; i++) {
    UNROLL for (int k = 0; k < (1 << Q::R); k++) row[Q::after(i, k)] = A::bits(x[(i << Q::R) + k]);
  }
}
// The places of the last pass: 16 neighbours in bit-reversed order are eight pairs (c, c + 8), 8 words apart.
D u64 neighbours(int t) { return ((u64)(t >> 2) << 6) + ((t & 3) << 1); }

// Standalone transforms: two launches each way. Between them `mid` holds [item][limb][N] as the families have it.
struct Transform {
  Rows in, out;
  const Prime* primes;   // of limb 0
  u64 log_n;
};
// Coefficients -> mid. Grid (items, N/16/threads, limbs).
KERNEL(128, 2, columns_forward, Transform) {
  const Prime p = g.primes[blockIdx.z];
  const int l = g.log_n - COLUMN_LAYERS;
  const u64 at = ((u64)blockIdx.z << g.log_n) + blockIdx.y * blockDim.x + threadIdx.x;
  const In in = g.in.at(blockIdx.x) + at;
  const Out out = g.out.at(blockIdx.x) + at;
  BY_FAMILY(p,
    typename A::T x[16];
    UNROLL for (int k = 0; k < 16; k++) x[k] = A::load(in[(u64)k << l]);
    column_forward<A>(x, p);
    UNROLL for (int k = 0; k < 16; k++) out[(u64)k << l] = A::bits(x[k]));
}
// mid -> coefficients. Grid (items, N/16/threads, limbs).
KERNEL(128, 2, columns_inverse, Transform) {
  const Prime p = g.primes[blockIdx.z];
  const int l = g.log_n - COLUMN_LAYERS;
  const u64 at = ((u64)blockIdx.z << g.log_n) + blockIdx.y * blockDim.x + threadIdx.x;
  const In in = g.in.at(blockIdx.x) + at;
  const Out out = g.out.at(blockIdx.x) + at;
  const Factor n_inverse = {p.n_inverse, p.n_inverse_quotient, p.fn_inverse};
  BY_FAMILY(p,
    typename A::T x[16];
    UNROLL for (int k = 0; k < 16; k++) x[k] = A::raw(in[(u64)k << l]);
    column_inverse<A>(x, p);
    UNROLL for (int k = 0; k < 16; k++) out[(u64)k << l] = A::store(A::scale(x[k], n_inverse, p), p));
}
// mid -> values. Grid (items, 16, limbs).
template <int L> D void parts_forward(const Transform& g, Shared s) {
  const Prime p = g.primes[blockIdx.z];
  const int t = threadIdx.x, part = blockIdx.y;
  const u64 at = ((u64)blockIdx.z << (L + COLUMN_LAYERS)) + ((u64)part << L);
  const In in = g.in.at(blockIdx.x) + at;
  const Out out = g.out.at(blockIdx.x) + at + neighbours(t);
  BY_FAMILY(p,
    typename A::T x[16];
    load_first<A, L>(x, in, t);
    part_forward<A, L>(x, s, p, t, part);
    UNROLL for (int c = 0; c < 8; c++) store_two(out + 8 * c, A::store(x[c], p), A::store(x[c + 8], p)));
}
