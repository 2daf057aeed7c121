//! The product of a block row with a block column.

use super::transpose::{shift, transpose_pair};
use super::{ModuleOptions, State};
use crate::error::MatrixError;
use std::sync::Arc;
use sudare_he::HeError;
use sudare_he::ckks::noise::division_bound;
use sudare_he::ckks::{self, Ciphertext, Evaluator, Params};
use sudare_ring::buffer::Buffer;
use sudare_ring::{Coeff, Eval, Limb, Poly, Shoup, threads};
use sudare_rlwe::switching::coefficients::{add_scaled, mod_down, mod_down_rescale, switch};
use sudare_rlwe::{Counters, KeyId, RlweError, inverse};

/// The ciphertexts of a block, values at the N/d points of R': limb by limb, part by part,
/// ciphertext by ciphertext, N/d times d words.
pub(super) struct Prepared {
    words: Buffer,
    terms: usize,
}

impl Prepared {
    /// The rows of one part modulo one prime: `terms` rows of N words.
    fn part(&self, limb: usize, part: usize, n: usize) -> &[u64] {
        &self.words[(2 * limb + part) * self.terms * n..][..self.terms * n]
    }
}

/// What the products of all blocks share.
pub(super) struct Worker<'a> {
    evaluator: &'a Evaluator,
    state: State,
    key: KeyId,
    side: usize,
    relinearize: bool,
    /// 1/d modulo each prime.
    side_inverse: Vec<Shoup>,
}

/// Where the four d×d products of a point stand.
const B_B: usize = 0;
const B_A: usize = 1;
const B_A_LEFT: usize = 2;
const A_A: usize = 3;

/// The transpose of a `terms`×`side` matrix whose rows are N words apart.
fn transposed(rows: &[u64], n: usize, terms: usize, side: usize) -> Buffer {
    let mut out = Buffer::dirty(side * terms);
    for (u, row) in rows.chunks(n).take(terms).enumerate() {
        for (i, x) in row[..side].iter().enumerate() {
            out[i * terms + u] = *x;
        }
    }
    out
}

impl<'a> Worker<'a> {
    /// # Errors
    /// `RlweError::MissingRelinKey` if that key is needed and not there.
    pub(super) fn new(
        evaluator: &'a Evaluator,
        state: State,
        key: KeyId,
        options: &ModuleOptions,
    ) -> Result<Self, HeError> {
        if options.relinearize {
            evaluator.keys().relin()?;
        }
        let invert = |l: &Arc<Limb>| Ok(l.modulus().shoup(inverse(l.modulus(), options.side as u64)?));
        let limbs = evaluator.params().q_at(state.level).limbs();
        let side_inverse = limbs.iter().map(invert).collect::<Result<_, RlweError>>()?;
        Ok(Self { evaluator, state, key, side: options.side, relinearize: options.relinearize, side_inverse })
    }

    fn params(&self) -> &Params {
        self.evaluator.params()
    }

    /// Layers from coefficients to the points of R'.
    fn layers(&self) -> u32 {
        (self.params().degree() / self.side).trailing_zeros()
    }

    /// Brings a block's ciphertexts to the points of R'.
    pub(super) fn prepare(&self, block: &[Ciphertext]) -> Prepared {
        let (basis, n, terms) = (self.params().q_at(self.state.level), self.params().degree(), block.len());
        let mut words = Buffer::dirty(basis.len() * 2 * terms * n);
        threads::for_each_chunk(&mut words, n, |at, x| {
            let limb = at / (2 * terms);
            x.copy_from_slice(block[at % terms].parts()[at / terms % 2].limb(limb));
            basis.limb(limb).inverse(x);
            basis.limb(limb).forward_partial(x, self.layers());
        });
        Prepared { words, terms }
    }

    /// The four products at every point: limb by limb, point by point, product by product.
    fn plain_products(&self, left: &Prepared, right: &Prepared) -> Buffer {
        let (basis, n, d, terms) =
            (self.params().q_at(self.state.level), self.params().degree(), self.side, left.terms);
        let points = n / d;
        let mut out = Buffer::dirty(4 * basis.len() * n * d);
        threads::for_each_chunk(&mut out, 4 * d * d, |at, out| {
            let (l, from) = (at / points, at % points * d);
            let limb = basis.limb(l);
            let left = |part| &left.part(l, part, n)[from..];
            let right = |part| &right.part(l, part, n)[from..];
            let mut multiply = |which: usize, a: &[u64], b: &[u64]| {
                limb.gemm(&mut out[which * d * d..][..d * d], d, a, terms, b, n, (d, terms, d), false);
            };
            let b1 = transposed(left(0), n, terms, d);
            multiply(B_B, &b1, right(0));
            multiply(B_A, &b1, right(1));
            // Transposed: their rows are what the transposition takes.
            multiply(B_A_LEFT, &transposed(right(0), n, terms, d), left(1));
            multiply(A_A, &transposed(right(1), n, terms, d), left(1));
        });
        out
    }

    /// Row `i` of a product, in coefficient form.
    fn row(&self, products: &[u64], which: usize, i: usize) -> Poly<Coeff> {
        let (basis, n, d) = (self.params().q_at(self.state.level), self.params().degree(), self.side);
        let mut row = Poly::dirty(basis);
        for l in 0..basis.len() {
            let words = row.limb_mut(l);
            for (p, to) in words.chunks_exact_mut(d).enumerate() {
                let point = &products[(l * (n / d) + p) * 4 * d * d..][..4 * d * d];
                to.copy_from_slice(&point[(which * d + i) * d..][..d]);
            }
            basis.limb(l).inverse_partial(words, self.layers());
        }
        row
    }

    /// Row `i` of a transposed product as the transposition takes it: times X^i / d.
    fn twisted(&self, products: &[u64], which: usize, i: usize) -> Poly<Coeff> {
        let mut row = self.row(products, which, i);
        row.mul_scalars(&self.side_inverse);
        let basis = row.basis().clone();
        for l in 0..basis.len() {
            shift(basis.limb(l), row.limb_mut(l), i as isize);
        }
        row
    }

    /// The first `rows` rows of the product of a block row with a block column.
    pub(super) fn product(
        &self,
        left: &Prepared,
        right: &Prepared,
        rows: usize,
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        let products = self.plain_products(left, right);
        let known = |which| threads::map(self.side, |i| self.twisted(&products, which, i));
        let plain = |which| threads::map(rows, |i| self.row(&products, which, i));
        let (x, z) = (known(B_A_LEFT), known(A_A));
        let (b, a) = (plain(B_B), plain(B_A));
        drop(products);
        let [c0, c1, c2] = transpose_pair(self.evaluator, x, z)?;
        let parts = c0.into_iter().zip(c1).zip(c2).zip(b.into_iter().zip(a));
        let mut rows: Vec<_> = parts.map(|(((c0, c1), c2), plain)| (Some(([c0, c1, c2], plain)), None)).collect();
        threads::for_each_mut(&mut rows, |_, (parts, done)| {
            *done = parts.take().map(|(c, plain)| self.finish(c, plain))
        });
        let switches = 2 * (self.side - 1) as u64;
        self.evaluator.record(Counters {
            rot: switches,
            key_switches: switches + if self.relinearize { rows.len() as u64 } else { 0 },
            ..Counters::default()
        });
        rows.into_iter().filter_map(|(_, done)| done).collect()
    }

    /// One row of the result from (c_0, c_1, c_2) over Q·P, P times too large, and the parts
    /// that no key switching was needed for.
    fn finish(
        &self,
        [c0, c1, c2]: [Poly<Coeff>; 3],
        (b, a): (Poly<Coeff>, Poly<Coeff>),
    ) -> Result<Ciphertext, MatrixError> {
        let (params, State { level, scale, bound, noise }) = (self.params(), self.state);
        let square = mod_down(params, level, c2);
        if !self.relinearize {
            let down = |c: Poly<Coeff>, plain: &Poly<Coeff>| {
                let mut c = mod_down(params, level, c);
                c.add_assign(plain);
                c.into_eval()
            };
            let parts = vec![down(c0, &b), down(c1, &a), square.into_eval()];
            return self.assembled(parts, level, ckks::State { scale, bound, noise });
        }
        let [k0, k1] = switch(params, &square, &*self.evaluator.keys().relin()?)?.c.map(|k| k.into_coeff());
        let down = |mut c: Poly<Coeff>, k: &Poly<Coeff>, plain: &Poly<Coeff>| -> Result<_, HeError> {
            c.add_assign(k);
            add_scaled(params, &mut c, plain);
            let divided = if level > 0 { mod_down_rescale(params, level, c)? } else { mod_down(params, level, c) };
            Ok(divided.into_eval())
        };
        let parts = vec![down(c0, &k0, &b)?, down(c1, &k1, &a)?];
        if level == 0 {
            return self.assembled(parts, 0, ckks::State { scale, bound, noise });
        }
        let prime = params.prime_at(level) as f64;
        let noise = noise / prime + division_bound(params, 2);
        self.assembled(parts, level - 1, ckks::State { scale: scale / prime, bound, noise })
    }

    fn assembled(&self, parts: Vec<Poly<Eval>>, level: usize, state: ckks::State) -> Result<Ciphertext, MatrixError> {
        let inner = sudare_rlwe::Ciphertext::from_parts(self.params(), self.key, parts, level)?;
        Ok(Ciphertext::from_parts(inner, state)?)
    }
}
