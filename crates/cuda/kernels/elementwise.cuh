// Sums, products and permutations of residues: any prime below 2^61, two neighbours a thread. These wait for memory, so
// they work in words whichever family transforms the prime.
#pragma once
#include "transform.cuh"

// Polynomial number i of a launch is that of a, b and out; limb y, words from 2 * (thread) on.
struct Elementwise {
  Rows a, b, out;
  const Prime* primes;
  const Factor* factors;   // of each limb, for products with constants
  u64 log_n;
};
// Grid (polynomials * N / 512, limbs), 256 threads.
struct Place { u64 polynomial, word; };
D Place place(u32 log_n) {
  const u32 blocks = log_n - 9;
  return Place{blockIdx.x >> blocks, ((u64)blockIdx.y << log_n) + 2 * ((blockIdx.x & ((1u << blocks) - 1)) * 256 + threadIdx.x)};
}

KERNEL(256, 4, add, Elementwise) {
  const Place at = place(g.log_n);
  const u64 i = at.polynomial, q = g.primes[blockIdx.y].q;
  const Two x = load_two(g.a.at(i) + at.word), y = load_two(g.b.at(i) + at.word);
  store_two(g.out.at(i) + at.word, fold(x.x + y.x, q), fold(x.y + y.y, q));
}
KERNEL(256, 4, sub, Elementwise) {
  const Place at = place(g.log_n);
  const u64 i = at.polynomial, q = g.primes[blockIdx.y].q;
  const Two x = load_two(g.a.at(i) + at.word), y = load_two(g.b.at(i) + at.word);
  store_two(g.out.at(i) + at.word, fold(x.x + q - y.x, q), fold(x.y + q - y.y, q));
}
KERNEL(256, 4, negate, Elementwise) {
  const Place at = place(g.log_n);
  const u64 i = at.polynomial, q = g.primes[blockIdx.y].q;
  const Two x = load_two(g.a.at(i) + at.word);
  store_two(g.out.at(i) + at.word, fold(q - x.x, q), fold(q - x.y, q));
}
KERNEL(256, 4, multiply, Elementwise) {
  const Place at = place(g.log_n);
  const u64 i = at.polynomial;
  const Prime p = g.primes[blockIdx.y];
  const Two x = load_two(g.a.at(i) + at.word), y = load_two(g.b.at(i) + at.word);
  store_two(g.out.at(i) + at.word, mul_mod(x.x, y.x, p), mul_mod(x.y, y.y, p));
}
// out = out + a * b
KERNEL(256, 4, multiply_add, Elementwise) {
  const Place at = place(g.log_n);
  const u64 i = at.polynomial;
  const Prime p = g.primes[blockIdx.y];
  const Two x = load_two(g.a.at(i) + at.word), y = load_two(g.b.at(i) + at.word);
  const Out out = g.out.at(i) + at.word;
  const Two z = load_two(out);
  store_two(out, fold(mul_mod(x.x, y.x, p) + z.x, p.q), fold(mul_mod(x.y, y.y, p) + z.y, p.q));
}
KERNEL(256, 4, scale, Elementwise) {
  const Place at = place(g.log_n);
  const u64 i = at.polynomial, q = g.primes[blockIdx.y].q;
  const Factor w = g.factors[blockIdx.y];
  const Two x = load_two(g.a.at(i) + at.word);
  store_two(g.out.at(i) + at.word, fold(shoup(x.x, w.value, w.quotient, q), q), fold(shoup(x.y, w.value, w.quotient, q), q));
}
// (a0, a1) * (b0, b1) = (a0*b0, a0*b1 + a1*b0, a1*b1): items of two polynomials, results of three.
KERNEL(256, 3, tensor, Elementwise) {
  const Place at = place(g.log_n);
  const u64 i = at.polynomial;
  const Prime p = g.primes[blockIdx.y];
  const Two a0 = load_two(g.a.at(2 * i) + at.word), a1 = load_two(g.a.at(2 * i + 1) + at.word);
  const Two b0 = load_two(g.b.at(2 * i) + at.word), b1 = load_two(g.b.at(2 * i + 1) + at.word);
  store_two(g.out.at(3 * i) + at.word, mul_mod(a0.x, b0.x, p), mul_mod(a0.y, b0.y, p));
  store_two(g.out.at(3 * i + 1) + at.word, mul_two_mod(a0.x, b1.x, a1.x, b0.x, p), mul_two_mod(a0.y, b1.y, a1.y, b0.y, p));
  store_two(g.out.at(3 * i + 2) + at.word, mul_mod(a1.x, b1.x, p), mul_mod(a1.y, b1.y, p));
}

// Sums of products: item i is the sum of terms i * terms .. (i + 1) * terms - 1 of a and b, read once each; sums stay in registers.
struct Dot {
  Rows a, b, out;
  const Prime* primes;
  u32 log_n, terms;
  u64 parts;   // of an item of a, where b's have one
};
// Sums of at most 2^6 products and a residue are brought below q.
D void settle(Wide* sum, const Prime& p) {
  UNROLL for (int h = 0; h < 2; h++) sum[h] = Wide{0, sum[h].modulo(p)};
}
// Of ciphertexts: two polynomials to an item of a and b, three of out. Grid (items * N / 512, limbs), 256 threads.
KERNEL(256, 3, dot, Dot) {
  const Place at = place(g.log_n);
  const Prime& p = g.primes[blockIdx.y];
  Wide first[2] = {}, middle[2] = {}, last[2] = {};
  ROLLED for (u32 t = 0; t < g.terms; t++) {
    const u64 i = 2 * (at.polynomial * g.terms + t);
    const Two a0 = load_two(g.a.at(i) + at.word), a1 = load_two(g.a.at(i + 1) + at.word);
    const Two b0 = load_two(g.b.at(i) + at.word), b1 = load_two(g.b.at(i + 1) + at.word);
    first[0].add(a0.x, b0.x);
    first[1].add(a0.y, b0.y);
    middle[0].add(a0.x, b1.x);
    middle[1].add(a0.y, b1.y);
    middle[0].add(a1.x, b0.x);
    middle[1].add(a1.y, b0.y);
    last[0].add(a1.x, b1.x);
    last[1].add(a1.y, b1.y);
    if ((t & 31) == 31) {   // two products a term in the middle; one branch for all, which takes fewer registers
      settle(first, p);
      settle(middle, p);
      settle(last, p);
    }
  }
  store_two(g.out.at(3 * at.polynomial) + at.word, first[0].modulo(p), first[1].modulo(p));
  store_two(g.out.at(3 * at.polynomial + 1) + at.word, middle[0].modulo(p), middle[1].modulo(p));
  store_two(g.out.at(3 * at.polynomial + 2) + at.word, last[0].modulo(p), last[1].modulo(p));
}
// Of ciphertexts and polynomials: each part of an item times one polynomial. Grid (polynomials * N / 512, limbs), 256 threads.
KERNEL(256, 4, dot_plain, Dot) {
  const Place at = place(g.log_n);
  const Prime p = g.primes[blockIdx.y];
  const u64 item = at.polynomial / g.parts, part = at.polynomial - item * g.parts;
  Wide sum[2] = {};
  ROLLED for (u32 t = 0; t < g.terms; t++) {
    const u64 i = item * g.terms + t;
    const Two x = load_two(g.a.at(i * g.parts + part) + at.word), y = load_two(g.b.at(i) + at.word);
    sum[0].add(x.x, y.x);
    sum[1].add(x.y, y.y);
    if ((t & 63) == 63) settle(sum, p);
  }
  store_two(g.out.at(at.polynomial) + at.word, sum[0].modulo(p), sum[1].modulo(p));
}

// An automorphism X -> X^element. Value i of the evaluation form is that at psi^e, e = exponent(i).
D u32 transposed(u32 i) { return (i & ~63u) | ((i & 7) << 3) | ((i >> 3) & 7); }
D u32 exponent(u32 i, u32 log_n) { return 2 * (reverse_bits(transposed(i)) >> (32 - log_n)) + 1; }
D u32 index_of(u32 e, u32 log_n) { return transposed(reverse_bits((e >> 1) & ((1u << log_n) - 1)) >> (32 - log_n)); }
struct Permutation {
  Rows in, out;
  const Prime* primes;
  u32 log_n;
  u32 element;
  u64 accumulate;   // out += image, where 1
};
// Values: out[i] = in[index of element * exponent(i)]. Grid (polynomials * N / 512, limbs), 256 threads.
KERNEL(256, 4, permute_values, Permutation) {
  const Place at = place(g.log_n);
  const u64 row = (u64)blockIdx.y << g.log_n, q = g.primes[blockIdx.y].q;
  const In in = g.in.at(at.polynomial) + row;
  const Out out = g.out.at(at.polynomial) + at.word;
  const u32 i = (u32)(at.word - row);
  u64 x = in[index_of(g.element * exponent(i, g.log_n), g.log_n)], y = in[index_of(g.element * exponent(i + 1, g.log_n), g.log_n)];
  if (g.accumulate) {
    const Two sum = load_two(out);
    x = fold(x + sum.x, q);
    y = fold(y + sum.y, q);
  }
  store_two(out, x, y);
}
// Coefficients: out[e*i mod N] = +-in[i]; the inverse element is given, so that a thread reads where it must and
// writes neighbours.
KERNEL(256, 4, permute_coefficients, Permutation) {
  const Place at = place(g.log_n);
  const u64 row = (u64)blockIdx.y << g.log_n, q = g.primes[blockIdx.y].q;
  const In in = g.in.at(at.polynomial) + row;
  const u32 i = (u32)(at.word - row), n = 1u << g.log_n;
  u64 x[2];
  UNROLL for (u32 k = 0; k < 2; k++) {
    const u32 from = g.element * (i + k);
    const u64 value = in[from & (n - 1)];
    x[k] = from & n ? fold(q - value, q) : value;
  }
  store_two(g.out.at(at.polynomial) + at.word, x[0], x[1]);
}
