// Key switching of a whole batch: a product, relinearised and rescaled, in five launches; a rotation likewise.
//   1 start    parts: the polynomial that is switched (a product, or given), inverse layers  -> half [item][limb]
//   2 lift     columns: last inverse layers, conversion of a digit to every other prime,
//              first forward layers                                                          -> raised [item][digit][prime]
//   3 switch   parts: other forward layers digit by digit, inner product with the key, plus P times what is added;
//              primes that stay are stored                                                   -> sums [item][2][kept]
//              those that go run their inverse layers at once                                -> tail [item][2][gone]
//   4 lift     columns again, from the primes that go to those that stay                     -> lowered [item][2][kept]
//   5 divide   parts: other forward layers, (sums - lowered) / (the primes that go)          -> out
// Launches 1, 4 and 5 alone are a division; 1 and 2 with `parts_forward` a conversion.
#pragma once
#include "elementwise.cuh"

// 1. Polynomial i of a launch is a's, or a's times b's; limbs from `first` on. Grid (polynomials, 16, limbs).
struct Start {
  Rows a, b, out;
  const Prime* primes;   // of limb `first`
  u32 first;
  u32 product;           // whether there is a b
};
template <class A, int L> D void start_values(typename A::T* x, In a, In b, u32 product, const Prime& p) {
  UNROLL for (int c = 0; c < 8; c++) {
    const Two u = load_two(a + 8 * c);
    x[c] = A::load(u.x);
    x[c + 8] = A::load(u.y);
    if (product) {
      const Two v = load_two(b + 8 * c);
      x[c] = A::mul(x[c], A::load(v.x), p);
      x[c + 8] = A::mul(x[c + 8], A::load(v.y), p);
    }
  }
}
template <int L> D void start(const Start& g, Shared s) {
  const Prime p = g.primes[blockIdx.z];
  const int t = threadIdx.x, part = blockIdx.y;
  const u64 in_part = ((u64)part << L) + neighbours(t), row = (u64)(g.first + blockIdx.z) << (L + COLUMN_LAYERS);
  const In a = g.a.at(blockIdx.x) + row + in_part;
  const In b = g.product ? g.b.at(blockIdx.x) + row + in_part : a;
  const Out out = g.out.at(blockIdx.x) + ((u64)blockIdx.z << (L + COLUMN_LAYERS)) + ((u64)part << L);
  BY_FAMILY(p,
    typename A::T x[16];
    start_values<A, L>(x, a, b, g.product, p);
    part_inverse<A, L>(x, s, p, t, part);
    store_first<A, L>(out, x, t));
}

// 2 and 4. A centred conversion (the CPU's `BasisConverter`) from `count` sources to `targets` primes:
// y_i = x_i * hat_i, v = round(sum y_i / q_i), and modulo target j the sum of y_i * w_ji, plus v * w_j,count.
struct Conversion {
  const u32* source;         // row of each source, from the first row of an item
  const u32* source_prime;
  const u32* target;         // row of each target
  const u32* target_prime;
  const Factor* hat;         // N^-1 * (Q/q_i)^-1
  const u64* weights;        // [target][count + 1]: Q/q_i, then -Q
  u32 count, targets;
  u32 narrow;                // all sources are below 2^50
  u32 pad;
};
struct Lift {
  Rows in, out;
  const Prime* primes;
  const Conversion* conversions;
  u32 log_n;
  u32 words;                 // targets are canonical coefficients, not on their way to values
};
// Sums of products of numbers below 2^50, from halves of 25 bits: three products a term instead of four, and no
// carries (Karatsuba); at most 2^12 terms.
struct Halves {
  u64 high, low, cross;
  D void add(u64 y, u64 w) {
    const u32 y0 = (u32)y & 0x1FFFFFF, y1 = (u32)(y >> 25), w0 = (u32)w & 0x1FFFFFF, w1 = (u32)(w >> 25);
    high += (u64)y1 * w1;
    low += (u64)y0 * w0;
    cross += (u64)(y0 + y1) * (w0 + w1);
  }
  D u64 modulo(const Prime& p) const {
    const u64 middle = cross - high - low, a = high << 50, b = middle << 25;
    u64 words = a + b, upper = (high >> 14) + (middle >> 39) + (words < b);
    words += low;
    return reduce_wide(upper + (words < low), words, p);
  }
};
typedef F64<50> Real;
// What a conversion keeps of each source: y, as a double's bits where all sources are doubles.
D u64 word_of(u64 y, bool real) { return real ? Real::word(as_double(y)) : y; }
// The multiples of Q of sixteen columns, each at most the number of sources: a byte each.
struct Multiples {
  u32 bytes[4];
  D void set(int k, u32 v) { bytes[k >> 2] = (k & 3 ? bytes[k >> 2] : 0) | v << (8 * (k & 3)); }
  D u32 at(int k) const { return (bytes[k >> 2] >> (8 * (k & 3))) & 0xFF; }
};
// Target j of four columns: words k .. k + 3 of this thread.
template <class Sum> D void combine(u64* out, Shared y, bool real, const u64* w, const Multiples& v, int first, u32 count, const Prime& p) {
  Sum sum[4];
  UNROLL for (int k = 0; k < 4; k++) {
    sum[k] = Sum{};
    sum[k].add(v.at(first + k), w[count]);
  }
  ROLLED for (u32 i = 0; i < count; i++) {
    const u64 weight = w[i];
    UNROLL for (int k = 0; k < 4; k++) sum[k].add(word_of(y[(i * 16 + first + k) * blockDim.x], real), weight);
  }
  UNROLL for (int k = 0; k < 4; k++) out[first + k] = sum[k].modulo(p);
}
// All sixteen where sources and target are below 2^50 and doubles: a term is a product modulo the target, at most 3/4 of
// it, since y is below 2^50.
D void combine(double* sum, Shared y, const u64* w, const Multiples& v, u32 count, const Prime& p) {
  const double minus_q = Real::load(w[count]);
  UNROLL for (int k = 0; k < 16; k++) sum[k] = Real::mul(Real::load(v.at(k)), minus_q, p);
  ROLLED for (u32 i = 0; i < count; i++) {
    const double weight = Real::load(w[i]);
    UNROLL for (int k = 0; k < 16; k++) {
      sum[k] = __dadd_rn(sum[k], Real::mul(as_double(y[(i * 16 + k) * blockDim.x]), weight, p));
    }
    if ((i & 3) == 3) {
      UNROLL for (int k = 0; k < 16; k++) sum[k] = Real::settle(sum[k], p);
    }
  }
  UNROLL for (int k = 0; k < 16; k++) sum[k] = Real::settle(sum[k], p);
}
// The same of one source, whose weight is one: y, plus -q where v is one.
D u64 of_one(u64 y, bool minus, u64 minus_q, const Prime& p) {
  const u64 x = fold(y - mul_high(y, p.ratio_high) * p.q, p.q);   // the quotient is short by less than 2
  return fold(x + (minus ? minus_q : 0), p.q);
}
// Grid (items, N/16/threads, conversions); shared: 16 words a source and thread.
KERNEL(128, 3, lift, Lift) {
  SHARED(s);
  const Conversion c = g.conversions[blockIdx.z];
  const u32 t = threadIdx.x, l = g.log_n - COLUMN_LAYERS;
  const u64 column = blockIdx.y * blockDim.x + t;
  const In from = g.in.at(blockIdx.x) + column;
  const Out to = g.out.at(blockIdx.x) + column;
  const bool real = NARROW(c) && BY_DOUBLES(g.primes[c.source_prime[0]]);
  double quotient[16];
  UNROLL for (int k = 0; k < 16; k++) quotient[k] = 0.0;
  ROLLED for (u32 i = 0; i < c.count; i++) {
    const Prime p = g.primes[c.source_prime[i]];
    const In row = from + ((u64)c.source[i] << g.log_n);
    const Factor hat = c.hat[i];
    BY_FAMILY(p,
      typename A::T x[16];
      UNROLL for (int k = 0; k < 16; k++) x[k] = A::raw(row[(u64)k << l]);
      column_inverse<A>(x, p);
      UNROLL for (int k = 0; k < 16; k++) {
        const u64 y = A::store(A::scale(x[k], hat, p), p);
        // Words below 2^52 become doubles by their bits, others by a conversion: the same numbers.
        const double number = A::DOUBLES ? Real::load(y) : to_double(y);
        s[(i * 16 + k) * blockDim.x + t] = real ? as_word(number) : y;
        quotient[k] = __dadd_rn(quotient[k], __dmul_rn(number, p.reciprocal));
      });
  }
  // v as the CPU has it: the sum, in order and unfused, rounded; one source decides by a comparison, exactly.
  Multiples v;
  if (c.count == 1) {
    const u64 q = g.primes[c.source_prime[0]].q;
    UNROLL for (int k = 0; k < 16; k++) v.set(k, 2 * word_of(s[k * blockDim.x + t], real) > q);
  } else {
    UNROLL for (int k = 0; k < 16; k++) v.set(k, (u32)Real::word(quotient[k]));
  }
  ROLLED for (u32 j = 0; j < c.targets; j++) {
    const Prime p = g.primes[c.target_prime[j]];
    const u64* w = c.weights + (u64)j * (c.count + 1);
    const Out row = to + ((u64)c.target[j] << g.log_n);
    u64 x[16];                                         // values of the target's family, by their bits
    UNROLL for (int k = 0; k < 4; k++) FRESH(v.bytes[k]);  // what they are as numbers would spill
    if (real && BY_DOUBLES(p)) {
      double sum[16];
      if (c.count == 1) {
        const double minus_q = -g.primes[c.source_prime[0]].fq;
        UNROLL for (int k = 0; k < 16; k++) {
          sum[k] = Real::settle(__fma_rn(Real::load(v.at(k)), minus_q, as_double(s[k * blockDim.x + t])), p);
        }
      } else {
        combine(sum, s + t, w, v, c.count, p);
      }
      UNROLL for (int k = 0; k < 16; k++) x[k] = g.words ? Real::store(sum[k], p) : as_word(sum[k]);
    } else {
      if (c.count == 1) {
        UNROLL for (int k = 0; k < 16; k++) x[k] = of_one(word_of(s[k * blockDim.x + t], real), v.at(k), w[1], p);
      } else {
        UNROLL for (int k = 0; k < 16; k += 4) {
          if (NARROW(c) && p.bits <= 50) combine<Halves>(x, s + t, real, w, v, k, c.count, p);
          else combine<Wide>(x, s + t, real, w, v, k, c.count, p);
        }
      }
      if (!g.words && BY_DOUBLES(p)) {
        UNROLL for (int k = 0; k < 16; k++) x[k] = as_word(Real::load(x[k]));
      }
    }
    if (g.words) {
      UNROLL for (int k = 0; k < 16; k++) row[(u64)k << l] = x[k];
    } else {
      BY_FAMILY(p,
        typename A::T y[16];
        UNROLL for (int k = 0; k < 16; k++) y[k] = A::raw(x[k]);
        column_forward<A>(y, p);
        UNROLL for (int k = 0; k < 16; k++) row[(u64)k << l] = A::bits(y[k]));
    }
  }
}

// 3. Grid (items, 16, primes). If `product`, a1*b1 is switched and P*(a0*b0, a0*b1 + a1*b0) added. Otherwise a1 is
// switched and P times the first `plus` (0, 1 or 2) of b0 and b1 added.
struct Switch {
  Rows a0, a1, b0, b1, raised, sums, tail;
  const Prime* primes;       // q_0 .. q_l, p_0 ..
  const Factor* special;     // P modulo each q
  const u64* key;            // [prime][digit][2][N], all primes and digits of the key
  u32 limbs, count;          // data primes, and all
  u32 digit, digits;         // primes a digit, digits
  u32 key_digits, key_skip;  // digits of the key, and its data primes that these have not
  u32 kept;                  // primes whose sums are stored
  u32 product, plus, pad;
};
template <class A, int L> D void switch_part(const Switch& g, const Prime& p, Shared s) {
  typedef typename A::T T;
  constexpr int THREADS = 1 << (L - 4), LOG_N = L + COLUMN_LAYERS;
  const int t = threadIdx.x, part = blockIdx.y;
  const u32 e = blockIdx.z;
  const u64 item = blockIdx.x;
  const u32 near = ((u32)part << L) + (u32)neighbours(t), row = (e << LOG_N) + near;
  const Shared sum0 = s + exchange_words(L), sum1 = sum0 + (1 << L);   // value k at k * THREADS + t
  const bool data = e < g.limbs;
  // Addresses are looked up where they are needed: registers are what this kernel is short of.
  In c0 = nullptr, c1 = nullptr, d0 = nullptr, d1 = nullptr;
  if (data && g.product) {
    c0 = g.a0.at(item) + row;
    c1 = g.a1.at(item) + row;
  }
  if (data && (g.product || g.plus)) d0 = g.b0.at(item) + row;
  if (data && (g.product || g.plus > 1)) d1 = g.b1.at(item) + row;
  ROLLED for (int c = 0; c < 8; c++) {
    T first[2] = {}, second[2] = {};
    if (data && (g.product || g.plus)) {
      const Factor special = g.special[e];
      const Two y0 = load_two(d0 + 8 * c);
      const u64 v0[2] = {y0.x, y0.y};
      if (g.product) {
        const Two x0 = load_two(c0 + 8 * c), x1 = load_two(c1 + 8 * c), y1 = load_two(d1 + 8 * c);
        const u64 u0[2] = {x0.x, x0.y}, u1[2] = {x1.x, x1.y}, v1[2] = {y1.x, y1.y};
        UNROLL for (int h = 0; h < 2; h++) {
          const T a0 = A::load(u0[h]), a1 = A::load(u1[h]), b0 = A::load(v0[h]), b1 = A::load(v1[h]);
          first[h] = A::scale(A::mul(a0, b0, p), special, p);
          second[h] = A::scale(A::add(A::mul(a0, b1, p), A::mul(a1, b0, p), p), special, p);
        }
      } else {
        UNROLL for (int h = 0; h < 2; h++) first[h] = A::scale(A::load(v0[h]), special, p);
        if (g.plus > 1) {
          const Two y1 = load_two(d1 + 8 * c);
          second[0] = A::scale(A::load(y1.x), special, p);
          second[1] = A::scale(A::load(y1.y), special, p);
        }
      }
    }
    UNROLL for (int h = 0; h < 2; h++) {
      sum0[(c + 8 * h) * THREADS + t] = A::bits(first[h]);
      sum1[(c + 8 * h) * THREADS + t] = A::bits(second[h]);
    }
  }
  T x[16];
  const u32 key_row = data ? e : e + g.key_skip;
  bool exchanged = false;
  for (u32 j = 0; j < g.digits; j++) {
    if (data && e / g.digit == j) {                  // the digit's own primes: the values themselves
      const In c = g.a1.at(item) + row;
      start_values<A, L>(x, c, g.product ? g.b1.at(item) + row : c, g.product, p);
    } else {
      load_first<A, L>(x, g.raised.at((item * g.digits + j) * g.count + e) + ((u32)part << L), t);
      if (exchanged) BARRIER();                      // the last digit's exchange is read
      exchanged = true;
      int thread = t;
      FRESH(thread);
      part_forward<A, L>(x, s, p, thread, part);
    }
    UNROLL for (int k = 0; k < 16; k++) x[k] = A::factor(x[k], p);
    // One half of the pair after the other: both at once would take more registers than there are.
    ROLLED for (int h = 0; h < 2; h++) {
      const u64* key = g.key + ((((u64)key_row * g.key_digits + j) * 2 + h) << LOG_N) + near;
      const Shared sum = h ? sum1 : sum0;
      UNROLL for (int c = 0; c < 8; c++) {
        const Two k = read_key(reinterpret_cast<const Two*>(key + 8 * c));
        const int low = c * THREADS + t, high = (c + 8) * THREADS + t;
        sum[low] = A::bits(A::settle_sum(A::add(A::raw(sum[low]), A::mul(x[c], A::load(k.x), p), p), (int)j, p));
        sum[high] = A::bits(A::settle_sum(A::add(A::raw(sum[high]), A::mul(x[c + 8], A::load(k.y), p), p), (int)j, p));
      }
    }
  }
  ROLLED for (int h = 0; h < 2; h++) {
    int thread = t;
    FRESH(thread);                                   // addresses kept for the other half would spill
    const Shared sum = (h ? sum1 : sum0) + thread;
    UNROLL for (int k = 0; k < 16; k++) x[k] = A::settle(A::raw(sum[k * THREADS]), p);
    if (e < g.kept) {
      const Out out = g.sums.at((item * 2 + h) * g.kept + e) + near;
      UNROLL for (int c = 0; c < 8; c++) store_two(out + 8 * c, A::store(x[c], p), A::store(x[c + 8], p));
    } else {
      if (h) BARRIER();                              // the first half's exchange is read; the digits' ended where this starts
      part_inverse<A, L>(x, s, p, thread, part);
      store_first<A, L>(g.tail.at((item * 2 + h) * (g.count - g.kept) + e - g.kept) + ((u32)part << L), x, thread);
    }
  }
}
template <int L> D void switch_parts(const Switch& g, Shared s) {
  const Prime p = g.primes[blockIdx.z];
  BY_FAMILY(p, switch_part<A, L>(g, p, s));
}

// 5. Polynomial i: (sums - lowered) * factor, limb by limb, and stored where X -> X^element takes it; element 1 leaves
// it where it is. Grid (polynomials, 16, limbs that stay).
struct Divide {
  Rows sums, lowered, out;
  const Prime* primes;
  const Factor* factors;
  u32 inverse_element;       // element^-1 modulo 2N
  u32 pad;
};
template <int L> D void divide(const Divide& g, Shared s) {
  constexpr int LOG_N = L + COLUMN_LAYERS;
  const Prime p = g.primes[blockIdx.z];
  const Factor w = g.factors[blockIdx.z];
  const int t = threadIdx.x, part = blockIdx.y;
  const u64 row = (u64)blockIdx.z << LOG_N, in_row = ((u64)part << L) + neighbours(t);
  const In lowered = g.lowered.at(blockIdx.x) + row + ((u64)part << L);
  const In sums = g.sums.at(blockIdx.x) + row + in_row;
  const Out out = g.out.at(blockIdx.x) + row;
  BY_FAMILY(p,
    typename A::T x[16];
    load_first<A, L>(x, lowered, t);
    part_forward<A, L>(x, s, p, t, part);
    UNROLL for (int c = 0; c < 8; c++) {
      const Two v = load_two(sums + 8 * c);
      const u64 first = A::store(A::scale(A::sub(A::load(v.x), A::factor(x[c], p), p), w, p), p);
      const u64 second = A::store(A::scale(A::sub(A::load(v.y), A::factor(x[c + 8], p), p), w, p), p);
      const u32 i = (u32)in_row + 8 * c;
      if (g.inverse_element == 1) {
        store_two(out + i, first, second);
      } else {
        out[index_of(g.inverse_element * exponent(i, LOG_N), LOG_N)] = first;
        out[index_of(g.inverse_element * exponent(i + 1, LOG_N), LOG_N)] = second;
      }
    });
}

// The kernels on parts, for each length of a part: 512 threads on a multiprocessor have 128 registers each.
CONSTEXPR int resident(int L) { return L < 9 ? 16 : 512 >> (L - 4); }
#define PARTS(L) \
  KERNEL(1 << (L - 4), resident(L), parts_forward_##L, Transform) { SHARED(s); parts_forward<L>(g, s); } \
  KERNEL(1 << (L - 4), resident(L), start_##L, Start) { SHARED(s); start<L>(g, s); } \
  KERNEL(1 << (L - 4), resident(L), switch_##L, Switch) { SHARED(s); switch_parts<L>(g, s); } \
  KERNEL(1 << (L - 4), resident(L), divide_##L, Divide) { SHARED(s); divide<L>(g, s); }
