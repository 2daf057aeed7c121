//! LWE ciphertexts into the coefficients of one GLWE ciphertext, column by column.
//!
//! With (a_j, b_j) for j < N, the column A_i(X) = Σ_j a_{j,i}·X^j meets an encryption of s_i: Σ_i A_i·Enc(s_i) is what has
//! to be taken from Σ_j b_j·X^j, so that n products of polynomials serve N ciphertexts (Chillotti, Gama, Georgieva and Izabachène,
//! 2018/421, section 5.1, public functional key switch; Bae, Cheon, Kim, Park and Stehlé, *HERMES*, 2023/1244).

use crate::core::context::check_shape;
use crate::core::ggsw::{check_gadget, write_glev};
use crate::core::seeded::{bodies_of, expanded};
use crate::{GlweCiphertext, GlweContext, GlweSecretKey, LweCiphertext, LweSecretKey, TfheError, TorusLwe};
use sudare_ring::buffer::Buffer;
use sudare_ring::kernel::{Gadget, PackedMatrix, round_to_i64};
use sudare_ring::random::{MaskSeed, ObjectSeeds};
use sudare_ring::threads;
use zeroize::Zeroizing;

/// Input coefficients whose rows are one packed matrix: as many words of a ciphertext as stand beside each other in memory.
const BLOCK: usize = 16;
/// Ciphertexts that are read together: their words of a column fill a cache line.
const LINE: usize = 8;

/// An LWE ciphertext that can be packed.
pub trait Packable: Sync {
    /// Its modulus.
    fn whole(&self) -> u64;
    /// n.
    fn dimension(&self) -> usize;
    /// Word i of the mask, and for i = n the body.
    fn word(&self, i: usize) -> u64;
}

impl Packable for LweCiphertext {
    fn whole(&self) -> u64 {
        self.modulus().value()
    }

    fn dimension(&self) -> usize {
        self.dimension()
    }

    #[inline]
    fn word(&self, i: usize) -> u64 {
        self.words()[i]
    }
}

impl Packable for TorusLwe {
    fn whole(&self) -> u64 {
        1 << 32
    }

    fn dimension(&self) -> usize {
        self.dimension()
    }

    #[inline]
    fn word(&self, i: usize) -> u64 {
        u64::from(self.words()[i])
    }
}

/// A key that packs LWE ciphertexts into the coefficients of one GLWE ciphertext.
pub struct PackingKey {
    context: GlweContext,
    gadget: Gadget,
    from: usize,
    masks: MaskSeed,
    /// Rows of `BLOCK` input coefficients each: encryptions of `−s_i·g_l`.
    blocks: Vec<PackedMatrix>,
}

impl PackingKey {
    /// A key from an LWE key to a GLWE key.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a gadget that does not fit the modulus, or has over 48 bits.
    pub fn generate(
        from: &LweSecretKey,
        to: &GlweSecretKey,
        gadget: Gadget,
        seeds: &ObjectSeeds,
    ) -> Result<Self, TfheError> {
        let context = to.context();
        check_packing(context, gadget)?;
        let (n, q, levels) = (context.degree(), context.modulus(), gadget.levels as usize);
        let blocks = threads::map(from.dimension().div_ceil(BLOCK), |block| {
            let s = &from.coefficients()[block * BLOCK..];
            let s = &s[..s.len().min(BLOCK)];
            let mut m = PackedMatrix::zeroed(context.limb(), 1, s.len() * levels, context.rank() + 1);
            let (mut masks, mut errors) = (seeds.masks.stream(block as u64), seeds.errors.stream(block as u64));
            for (i, s) in s.iter().enumerate() {
                // A constant is its own evaluation.
                let message = Zeroizing::new(vec![q.reduce_i64(-s); n]);
                write_glev(to, &message, gadget, &mut m, (0, i * levels), (&mut masks, &mut errors));
            }
            m
        });
        Ok(Self { context: context.clone(), gadget, from: from.dimension(), masks: seeds.masks, blocks })
    }

    /// How many parts a key from dimension `from` travels in.
    pub fn parts_of(from: usize) -> usize {
        from.div_ceil(BLOCK)
    }

    /// Body polynomials of a part.
    pub fn bodies_of(from: usize, gadget: Gadget, part: usize) -> usize {
        (from - part * BLOCK).min(BLOCK) * gadget.levels as usize
    }

    /// The bodies of a part, polynomial after polynomial in evaluation form.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn bodies(&self, part: usize) -> Vec<u64> {
        bodies_of(&self.blocks[part], self.context.degree())
    }

    /// A key from dimension `from` of the seed of its masks and the bodies of its parts.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] as [`PackingKey::generate`], [`TfheError::Shape`] for the wrong number of bodies, `RlweError::Ring`
    /// for one that is too large.
    pub fn from_bodies(
        context: &GlweContext,
        from: usize,
        gadget: Gadget,
        masks: MaskSeed,
        bodies: &[Vec<u64>],
    ) -> Result<Self, TfheError> {
        check_packing(context, gadget)?;
        check_shape("parts of a packing key", Self::parts_of(from), bodies.len())?;
        let expand = |part: usize| {
            let rows = Self::bodies_of(from, gadget, part);
            expanded(context, &mut masks.stream(part as u64), (1, rows), &bodies[part])
        };
        let blocks = threads::map(bodies.len(), expand).into_iter().collect::<Result<_, _>>()?;
        Ok(Self { context: context.clone(), gadget, from, masks, blocks })
    }

    /// Ring and rank of what it packs into.
    pub fn context(&self) -> &GlweContext {
        &self.context
    }

    /// Dimension that it takes.
    pub fn from_dimension(&self) -> usize {
        self.from
    }

    /// The seed of its masks.
    pub fn mask_seed(&self) -> &MaskSeed {
        &self.masks
    }

    /// Bytes that it holds in memory.
    pub fn byte_len(&self) -> usize {
        self.blocks.iter().map(PackedMatrix::byte_len).sum()
    }

    /// Packs ciphertext j into coefficient j, scaled from its modulus to q; at most N of them, and zero where there is none.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Modulus`] for ciphertexts of another dimension or of several moduli.
    pub fn pack<C: Packable>(&self, inputs: &[Option<&C>]) -> Result<GlweCiphertext, TfheError> {
        let (n, limb, levels) = (self.context.degree(), self.context.limb(), self.gadget.levels as usize);
        if inputs.len() > n {
            return Err(TfheError::Shape { what: "ciphertexts to pack", expected: n, found: inputs.len() });
        }
        let mut out = GlweCiphertext::zero(&self.context);
        let Some(whole) = inputs.iter().flatten().map(|c| c.whole()).next() else { return Ok(out) };
        for c in inputs.iter().flatten() {
            check_shape("LWE dimension", self.from, c.dimension())?;
            if c.whole() != whole {
                return Err(TfheError::Modulus { expected: whole, found: c.whole() });
            }
        }
        let cut = Cut::new(whole, limb.q(), self.gadget);
        let mut sum = Buffer::dirty(self.context.words());
        let (mut columns, mut cuts) = (vec![0.0; BLOCK * n], vec![0i64; levels * n]);
        let mut digits = Buffer::dirty(BLOCK * levels * n);
        for (b, m) in self.blocks.iter().enumerate() {
            let rows = m.rows() * n;
            read_columns(&mut columns[..rows / levels], inputs, (b * BLOCK, n), whole);
            for (rows, column) in digits[..rows].chunks_exact_mut(levels * n).zip(columns.chunks_exact(n)) {
                cut.digits(&mut cuts, column);
                for (row, digit) in rows.chunks_exact_mut(n).zip(cuts.chunks_exact(n)) {
                    limb.from_i64(row, digit);
                    limb.forward(row);
                }
            }
            limb.external_product(&mut sum, &digits[..rows], m);
            limb.add_assign(out.words_mut(), &sum);
        }
        out.words_mut().chunks_exact_mut(n).for_each(|p| limb.inverse(p));
        let scale = Rescale::new(whole, limb.q());
        for (x, c) in out.body_mut().iter_mut().zip(inputs) {
            *x = limb.modulus().add(*x, c.map_or(0, |c| scale.apply(c.word(self.from))));
        }
        Ok(out)
    }
}

/// # Errors
/// [`TfheError::Parameters`].
fn check_packing(context: &GlweContext, gadget: Gadget) -> Result<(), TfheError> {
    check_gadget(context, gadget)?;
    let bits = gadget.base_log * gadget.levels;
    // What is cut stays exact in double precision.
    if bits > 48 {
        return Err(TfheError::Parameters {
            reason: format!("packing takes digits of at most 48 bits together, not {bits}"),
        });
    }
    Ok(())
}

/// Column i of n numbers gets word `first` + i of each ciphertext, centred modulo `whole`; zero where there is none. Columns
/// are a power of two apart and fall on one set of the first cache: lines of [`LINE`] ciphertexts are written whole.
fn read_columns<C: Packable>(columns: &mut [f64], inputs: &[Option<&C>], (first, n): (usize, usize), whole: u64) {
    let half = whole / 2;
    let centred = |word: u64| (word as i64 - if word > half { whole as i64 } else { 0 }) as f64;
    let count = columns.len() / n;
    for (at, here) in inputs.chunks(LINE).enumerate() {
        let mut tile = [[0.0; LINE]; BLOCK];
        for (j, c) in here.iter().enumerate() {
            let Some(c) = c else { continue };
            tile[..count].iter_mut().enumerate().for_each(|(i, line)| line[j] = centred(c.word(first + i)));
        }
        for (column, line) in columns.chunks_exact_mut(n).zip(&tile) {
            column[at * LINE..].iter_mut().zip(line).for_each(|(to, x)| *to = *x);
        }
    }
}

/// Cuts centred numbers modulo p, scaled to q, into digits: balanced ones, and what is left in the highest.
struct Cut {
    /// q/p in units of the last digit.
    ratio: f64,
    base_log: u32,
}

impl Cut {
    fn new(whole: u64, q: u64, gadget: Gadget) -> Self {
        let Gadget { base_log, levels } = gadget;
        let last = gadget.log_weight(64 - q.leading_zeros(), levels - 1);
        Self { ratio: q as f64 / whole as f64 / f64::from(last).exp2(), base_log }
    }

    /// Digits of all numbers level by level, the highest first.
    fn digits(&self, out: &mut [i64], numbers: &[f64]) {
        let (half, mask) = (1i64 << (self.base_log - 1), (1i64 << self.base_log) - 1);
        let (rest, lower) = out.split_at_mut(numbers.len());
        // At most 2^47 in size: an integer after this.
        round_to_i64(rest, numbers, self.ratio);
        for digits in lower.chunks_exact_mut(numbers.len()).rev() {
            for (t, digit) in rest.iter_mut().zip(digits) {
                *digit = ((*t + half) & mask) - half;
                *t = (*t - *digit) >> self.base_log;
            }
        }
    }
}

/// ⌊x·q/p⌉ modulo q of numbers below p.
pub(crate) struct Rescale {
    /// q·2^64 over p.
    ratio: u128,
    q: u64,
}

impl Rescale {
    pub fn new(p: u64, q: u64) -> Self {
        Self { ratio: (u128::from(q) << 64) / u128::from(p), q }
    }

    #[inline]
    pub fn apply(&self, x: u64) -> u64 {
        // Below 2^114, since both moduli are below 2^50.
        let y = ((u128::from(x) * self.ratio + (1 << 63)) >> 64) as u64;
        if y == self.q { 0 } else { y }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digits are of their size and add up to the scaled word, to half a unit of the last.
    #[test]
    fn digits_are_balanced_and_add_up() {
        let q = (1u64 << 48) - 59;
        for whole in [1u64 << 32, (1 << 40) - 87, 65537] {
            for (base_log, levels) in [(20, 1), (7, 3), (16, 3)] {
                let gadget = Gadget { base_log, levels };
                let cut = Cut::new(whole, q, gadget);
                let words: Vec<u64> =
                    (0..2000).map(|i| whole / 2000 * i).chain([1, whole / 2, whole / 2 + 1, whole - 1]).collect();
                let levels = levels as usize;
                let mut numbers = vec![f64::NAN; words.len()];
                let inputs: Vec<Word> = words.iter().map(|word| Word(*word, whole)).collect();
                read_columns(&mut numbers, &inputs.iter().map(Some).collect::<Vec<_>>(), (0, words.len()), whole);
                let mut digits = vec![0; levels * words.len()];
                cut.digits(&mut digits, &numbers);
                for (i, word) in words.iter().enumerate() {
                    let mut sum = 0.0;
                    for l in 0..levels {
                        let digit = digits[l * words.len() + i] as f64;
                        assert!(digit.abs() <= f64::from(base_log - 1).exp2() + 1.0);
                        sum += digit * f64::from(gadget.log_weight(48, l as u32)).exp2();
                    }
                    let off = (sum - *word as f64 / whole as f64 * q as f64) / q as f64;
                    let last = f64::from(gadget.log_weight(48, levels as u32 - 1)).exp2();
                    assert!((off - off.round()).abs() * q as f64 <= 0.5 * last + 1.0, "{word} of {whole}: {off}");
                }
            }
        }
    }

    /// Ciphertexts of one word, the body.
    struct Word(u64, u64);

    impl Packable for Word {
        fn whole(&self) -> u64 {
            self.1
        }

        fn dimension(&self) -> usize {
            0
        }

        fn word(&self, _: usize) -> u64 {
            self.0
        }
    }

    /// Each word in its column, zeros where a ciphertext is missing, whatever stood there before.
    #[test]
    fn columns_have_a_word_of_each_ciphertext() {
        let (n, whole, from) = (32, 1u64 << 32, 21);
        let of = |j: usize| TorusLwe::from_words((0..=from).map(|i| (j * 100 + i) as u32).collect()).unwrap();
        let all: Vec<TorusLwe> = (0..27).map(of).collect();
        let inputs: Vec<Option<&TorusLwe>> = all.iter().enumerate().map(|(j, c)| (j % 5 != 3).then_some(c)).collect();
        for first in [0, BLOCK] {
            let count = BLOCK.min(from - first);
            let mut columns = vec![0.0; count * n];
            columns[..n].fill(7.0);
            columns[inputs.len()..n].fill(0.0);
            read_columns(&mut columns, &inputs, (first, n), whole);
            for (i, column) in columns.chunks(n).enumerate() {
                for (j, x) in column.iter().enumerate() {
                    let there = j < inputs.len() && j % 5 != 3;
                    assert_eq!(*x, if there { (j * 100 + first + i) as f64 } else { 0.0 }, "{j}, {i}");
                }
            }
        }
    }

    #[test]
    fn words_are_rescaled_to_the_nearest() {
        for (p, q) in [(1u64 << 32, (1u64 << 47) - 115), ((1 << 47) - 115, 65537), (7, 7)] {
            let scale = Rescale::new(p, q);
            for x in [0, 1, 2, p / 3, p / 2, p - 2, p - 1].into_iter().filter(|x| *x < p) {
                let exact = (u128::from(x) * u128::from(q) + u128::from(p) / 2) / u128::from(p);
                assert_eq!(u128::from(scale.apply(x)), exact % u128::from(q), "{x} of {p} to {q}");
            }
        }
    }
}
