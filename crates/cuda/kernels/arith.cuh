// Arithmetic modulo one prime, by families. All take and give canonical residues in [0, q) at the borders
// of kernels, so what leaves a launch is the same bits, whichever family worked.
#pragma once
#include "dialect.cuh"

// Constants of one prime, read-only on the device. `Prime` of src/tables.rs is its twin.
struct Prime {
  u64 q;
  u64 ratio_high, ratio_low;   // floor(2^128 / q)
  u64 mu;                      // floor(2^(62 + bits) / q), for products of residues
  u64 n_inverse, n_inverse_quotient;
  double fq, reciprocal, fn_inverse;  // q, 1/q, N^-1 centred
  const void* forward;         // twiddles: centred doubles, or words with quotients
  const void* inverse;
  u32 bits, family;            // length of q; 0: F64<48>, 1: F64<50>, 2: U64
};

// A constant factor: the residue, floor(w * 2^64 / q), and the centred residue where q < 2^50.
struct Factor { u64 value, quotient; double centred; };

D u64 fold(u64 x, u64 m) { return x >= m ? x - m : x; }

// (high, low) mod q for any two words: Barrett's reduction with two words of 2^128 / q.
D u64 reduce_wide(u64 high, u64 low, const Prime& p) {
  u64 carry = mul_high(low, p.ratio_low), mid = low * p.ratio_high, s = mid + carry;
  u64 estimate = mul_high(low, p.ratio_high) + (s < carry);
  u64 other = high * p.ratio_low, t = s + other;
  estimate += high * p.ratio_high + mul_high(high, p.ratio_low) + (t < other);
  return fold(low - estimate * p.q, p.q);
}

// A sum of products of residues of up to 61 bits, reduced at the end; at most 2^6 products and a residue.
struct Wide {
  u64 high, low;
  D void add(u64 y, u64 w) {
    const u64 x = y * w;
    low += x;
    high += mul_high(y, w) + (low < x);
  }
  D u64 modulo(const Prime& p) const { return reduce_wide(high, low, p); }
};

// x * w mod q in [0, 2q) for any word x, with the quotient of w (Shoup).
D u64 shoup(u64 x, u64 w, u64 quotient, u64 q) { return x * w - mul_high(x, quotient) * q; }

// (high, low) mod q in [0, 3q) for a value below 2^(2 bits + 1). The quotient is estimated from the upper bits;
// it is short by less than 5/2.
D u64 reduce_product(u64 high, u64 low, const Prime& p) {
  const u32 down = p.bits - 2;
  const u64 top = (low >> down) | (high << (64 - down));
  return low - mul_high(top, p.mu) * p.q;
}
D u64 mul_mod(u64 a, u64 b, const Prime& p) { return fold(reduce_product(mul_high(a, b), a * b, p), p.q); }
// a*b + c*d
D u64 mul_two_mod(u64 a, u64 b, u64 c, u64 d, const Prime& p) {
  u64 low = a * b, more = c * d, sum = low + more;
  u64 high = mul_high(a, b) + mul_high(c, d) + (sum < more);
  return fold(fold(reduce_product(high, sum, p), 2 * p.q), p.q);
}

// Where values have to be reduced in a transform of doubles, from the width of the primes; bounds in units of q.
// A product is off by 1/2 and by |x*w/q| * 2^-52, and factors stay below 2^52. Columns (the first 4 layers) and
// parts (the rest) are separate passes over memory, so each starts from the largest bound that the other leaves.
struct Settling { unsigned mask; double bound; };
CONSTEXPR Settling settle_forward(int first, int layers, int bits, double bound) {
  double limit = double(1ull << (52 - bits)), unit = 1.01 / double(1ull << (53 - bits)), b = bound;
  unsigned mask = 0;
  for (int s = first; s < first + layers; s++) {
    if (b + 0.5 + b * unit >= limit) { mask |= 1u << s; b = 0.51; }   // all values before layer s
    b += 0.5 + b * unit;
  }
  return Settling{mask, b};
}
CONSTEXPR Settling settle_inverse(int first, int layers, int bits, double bound) {
  double limit = double(1ull << (52 - bits)), b = bound;
  unsigned mask = 0;
  for (int s = first + layers - 1; s >= first; s--) {
    b *= 2;
    if (2 * b >= limit) { mask |= 1u << s; b = 1; }                   // the sums of layer s
  }
  return Settling{mask, b};
}
constexpr int COLUMN_LAYERS = 4, LEAST_PART = 6, MOST_PART = 12;
CONSTEXPR double largest_part_bound(int bits) {
  double most = 1;
  for (int l = LEAST_PART; l <= MOST_PART; l++) {
    double b = settle_inverse(COLUMN_LAYERS, l, bits, 1).bound;
    most = b > most ? b : most;
  }
  return most;
}

// F64: integers of up to 53 bits in doubles, q < 2^BITS, BITS <= 50. A product takes six operations and no stored
// quotient: h + l = x*w exactly, b = round(h/q), and h - b*q is exact, being an integer below 2^53.
template <int BITS> struct F64 {
  typedef double T;
  typedef double W;                       // a twiddle is its centred value
  static constexpr bool DOUBLES = true;
  static constexpr double MAGIC = 6755399441055744.0;   // 1.5 * 2^52
  static constexpr double ONE = 4503599627370496.0;     // 2^52
  static constexpr unsigned columns_forward = settle_forward(0, COLUMN_LAYERS, BITS, 1).mask;
  static constexpr unsigned columns_inverse = settle_inverse(0, COLUMN_LAYERS, BITS, largest_part_bound(BITS)).mask;
  static CONSTEXPR unsigned parts_forward(int layers) {
    return settle_forward(COLUMN_LAYERS, layers, BITS, settle_forward(0, COLUMN_LAYERS, BITS, 1).bound).mask;
  }
  static CONSTEXPR unsigned parts_inverse(int layers) { return settle_inverse(COLUMN_LAYERS, layers, BITS, 1).mask; }

  static D T raw(u64 bits) { return as_double(bits); }
  static D u64 bits(T x) { return as_word(x); }
  static D T load(u64 x) { return __dsub_rn(as_double(x | 0x4330000000000000ull), ONE); }
  static D T quotient(T h, const Prime& p) { return __dsub_rn(__fma_rn(h, p.reciprocal, MAGIC), MAGIC); }
  static D T settle(T x, const Prime& p) { return __fma_rn(quotient(x, p), -p.fq, x); }   // |result| <= q/2
  static D T mul(T x, T w, const Prime& p) {
    T h = __dmul_rn(x, w), l = __fma_rn(x, w, -h), b = quotient(h, p);
    return __dadd_rn(__fma_rn(b, -p.fq, h), l);
  }
  static D u64 word(T x) { return as_word(__dadd_rn(x, ONE)) & 0xFFFFFFFFFFFFFull; }   // of 0 <= x < 2^52
  static D u64 store(T x, const Prime& p) {
    T r = settle(x, p);
    return word(r < 0.0 ? __dadd_rn(r, p.fq) : r);
  }
  static D T factor(T x, const Prime& p) { return settle(x, p); }     // ready to be a factor
  static D T add(T x, T y, const Prime&) { return __dadd_rn(x, y); }
  static D T sub(T x, T y, const Prime&) { return __dsub_rn(x, y); }  // y a factor
  static D T scale(T x, const Factor& w, const Prime& p) { return mul(x, w.centred, p); }
  static D void forward(T& x, T& y, W w, const Prime& p) { T v = mul(y, w, p), u = x; x = __dadd_rn(u, v); y = __dsub_rn(u, v); }
  static D void inverse(T& x, T& y, W w, const Prime& p) { T u = x, v = y; x = __dadd_rn(u, v); y = mul(__dsub_rn(u, v), w, p); }
  // What a sum of products may take before it is settled: 4 * 0.8q + q/2 < 2^52.
  static D T settle_sum(T x, int term, const Prime& p) { return (term & 3) == 3 ? settle(x, p) : x; }
};

// U64: Harvey's lazy butterflies, twiddles with Shoup's quotients, q < 2^61. Values in [0, 4q).
struct U64 {
  typedef u64 T;
  typedef Two W;
  static constexpr bool DOUBLES = false;
  static constexpr unsigned columns_forward = 0, columns_inverse = 0;
  static CONSTEXPR unsigned parts_forward(int) { return 0; }
  static CONSTEXPR unsigned parts_inverse(int) { return 0; }

  static D T raw(u64 bits) { return bits; }
  static D u64 bits(T x) { return x; }
  static D T load(u64 x) { return x; }
  static D T settle(T x, const Prime& p) { return fold(x, 2 * p.q); }
  static D T mul(T x, T w, const Prime& p) { return reduce_product(mul_high(x, w), x * w, p); }   // of residues, [0, 2q)
  static D u64 store(T x, const Prime& p) { return fold(fold(x, 2 * p.q), p.q); }
  static D T factor(T x, const Prime& p) { return store(x, p); }
  static D T add(T x, T y, const Prime& p) { return fold(x + y, 2 * p.q); }
  static D T sub(T x, T y, const Prime& p) { return x + p.q - y; }
  static D T scale(T x, const Factor& w, const Prime& p) { return shoup(x, w.value, w.quotient, p.q); }
  static D void forward(T& x, T& y, W w, const Prime& p) { T u = fold(x, 2 * p.q), v = shoup(y, w.x, w.y, p.q); x = u + v; y = u + 2 * p.q - v; }
  static D void inverse(T& x, T& y, W w, const Prime& p) { T u = x, v = y; x = fold(u + v, 2 * p.q); y = shoup(u + 2 * p.q - v, w.x, w.y, p.q); }
  static D T settle_sum(T x, int, const Prime&) { return x; }
};

// Runs a statement with A the family of prime p: all threads of a block work modulo one prime.
#ifdef ONLY_FAMILY   // to count the instructions of one
#define BY_FAMILY(p, ...) do { typedef ONLY_FAMILY A; __VA_ARGS__; } while (0)
#define BY_DOUBLES(p) ONLY_FAMILY::DOUBLES
#define NARROW(conversion) ONLY_FAMILY::DOUBLES
#else
#define BY_DOUBLES(p) ((p).family < 2)
#define NARROW(conversion) ((conversion).narrow != 0)
#define BY_FAMILY(p, ...) \
  do { \
    if ((p).family == 0) { typedef F64<48> A; __VA_ARGS__; } \
    else if ((p).family == 1) { typedef F64<50> A; __VA_ARGS__; } \
    else { typedef U64 A; __VA_ARGS__; } \
  } while (0)
#endif
