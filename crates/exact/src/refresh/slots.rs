//! Slots modulo m = t or t²: what a vector of them is as a polynomial.
//!
//! X^N + 1 splits modulo t² as it does modulo t: from a root ζ modulo t comes ζ^t modulo t². Slot j of row 0 is the value
//! at ζ^(5^j), that of row 1 the value at its inverse.

use crate::IntegerParams;
use crate::error::ExactError;
use sudare_ring::PlainModulus;

/// The values of both rows in one column.
pub(super) type Column = [u64; 2];

/// The slots of a modulus.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    modulus: PlainModulus,
    /// Columns.
    points: usize,
    /// ζ^0, …, of order four times the columns.
    powers: Vec<u64>,
}

impl Slots {
    /// Those modulo t.
    ///
    /// # Errors
    /// [`ExactError::NoSlots`].
    pub fn modulo_t(params: &IntegerParams) -> Result<Self, ExactError> {
        let limb = params.slot_transform()?;
        Ok(Self::of(*params.modulus(), limb.degree() / 2, limb.root()))
    }

    /// Those modulo t².
    ///
    /// # Errors
    /// [`ExactError::NoSlots`]; `RingError::PlainModulus` unless t² < 2^60.
    pub fn modulo_square(params: &IntegerParams) -> Result<Self, ExactError> {
        let (limb, t) = (params.slot_transform()?, params.t());
        let square = PlainModulus::new(t.saturating_mul(t))?;
        let (mut root, mut base, mut exponent) = (1, limb.root(), t);
        while exponent > 0 {
            if exponent & 1 == 1 {
                root = square.mul(root, base);
            }
            base = square.mul(base, base);
            exponent >>= 1;
        }
        Ok(Self::of(square, limb.degree() / 2, root))
    }

    fn of(modulus: PlainModulus, points: usize, root: u64) -> Self {
        let powers = std::iter::successors(Some(1), |p| Some(modulus.mul(*p, root))).take(4 * points).collect();
        Self { modulus, points, powers }
    }

    pub fn modulus(&self) -> &PlainModulus {
        &self.modulus
    }

    /// Columns.
    pub fn points(&self) -> usize {
        self.points
    }

    /// The root of order `order`, a power of two up to four times the columns, to a power: in row 0, and its inverse in
    /// row 1.
    pub fn root(&self, order: usize, power: usize) -> Column {
        let all = self.powers.len();
        let at = (power % order) * (all / order);
        [self.powers[at], self.powers[(all - at) % all]]
    }

    /// ι = ζ^(order/4) in row 0, −ι in row 1.
    pub fn imaginary_unit(&self) -> Column {
        self.root(4, 1)
    }

    /// 2^−1.
    pub fn half(&self) -> u64 {
        self.modulus.value().div_ceil(2)
    }

    pub fn mul(&self, a: Column, b: Column) -> Column {
        [0, 1].map(|row| self.modulus.mul(a[row], b[row]))
    }

    pub fn add(&self, a: Column, b: Column) -> Column {
        [0, 1].map(|row| self.modulus.add(a[row], b[row]))
    }

    pub fn neg(&self, a: Column) -> Column {
        a.map(|x| self.modulus.neg(x))
    }

    /// w_j of the butterflies that join halves of blocks of 2^k columns: the root of order 4·2^k to the power 5^j.
    pub fn twiddles(&self, k: u32) -> Vec<Column> {
        let order = 4usize << k;
        let powers = std::iter::successors(Some(1usize), |p| Some(p * 5 % order));
        powers.take(1 << (k - 1)).map(|p| self.root(order, p)).collect()
    }

    /// The 2p centred coefficients of the polynomial in X^(N/2p) that a vector of period p is.
    pub fn coefficients(&self, columns: &[Column]) -> Vec<i64> {
        let (m, half) = (&self.modulus, self.half());
        let (mut x, p) = (columns.to_vec(), columns.len());
        let log = p.trailing_zeros();
        // The butterflies backwards, the largest blocks first: halves without their twiddles, which the inverse has.
        for k in (1..=log).rev() {
            let twiddles = self.twiddles(k);
            for block in x.chunks_exact_mut(1 << k) {
                let (low, high) = block.split_at_mut(1 << (k - 1));
                for ((u, v), w) in low.iter_mut().zip(high).zip(&twiddles) {
                    let (sum, difference) = (self.add(*u, *v), self.add(*u, self.neg(*v)));
                    *u = sum.map(|x| m.mul(x, half));
                    // w^−1 is w of the other row.
                    *v = self.mul(difference.map(|x| m.mul(x, half)), [w[1], w[0]]);
                }
            }
        }
        let unit = self.imaginary_unit();
        let mut out = vec![0; 2 * p];
        for (i, [a, b]) in x.iter().enumerate() {
            let at = if log == 0 { 0 } else { i.reverse_bits() >> (usize::BITS - log) };
            // a = c_at + ι·c_(at+p), b = c_at − ι·c_(at+p).
            out[at] = m.center(m.mul(m.add(*a, *b), half));
            out[at + p] = m.center(m.mul(m.mul(m.add(*a, m.neg(*b)), half), unit[1]));
        }
        out
    }
}
