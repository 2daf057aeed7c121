//! Where elements stand in a polynomial.

use crate::error::MatrixError;
use crate::rounding;
use sudare_he::HeError;
use sudare_ring::embedding::Embedding;
use sudare_ring::kernel::MIN_DEGREE;

/// Element i (of d) of R', power f (of g) of Y: the coefficients at X^(d·(g·l + f) + i),
/// l < 2·slots, are a polynomial in Z = Y^g whose complex slots hold one pair of terms each.
#[derive(Debug)]
pub(super) struct Layout {
    n: usize,
    side: usize,
    slots: usize,
    folds: usize,
    slots_of: Slots,
}

/// Whether the transforms serve a ring with as many slots.
const fn is_fast(slots: usize) -> bool {
    2 * slots >= MIN_DEGREE
}

/// Relative standard deviation of a slot's rounding error, as in [`crate::rounding`].
pub(super) fn embedding_error(slots: usize) -> f64 {
    let points = slots as f64;
    if is_fast(slots) { rounding::embedding(points) } else { rounding::direct_embedding(points) }
}

/// The canonical embedding of Z\[Z\]/(Z^(2·slots) + 1).
#[derive(Debug)]
enum Slots {
    /// By its definition, for rings below what the transforms serve: the powers of
    /// exp(πi/(2·slots)).
    Direct(Vec<(f64, f64)>),
    Fast(Embedding),
}

impl Layout {
    pub(super) fn new(n: usize, side: usize, slots: usize) -> Result<Self, MatrixError> {
        let slots_of = if is_fast(slots) {
            Slots::Fast(Embedding::new(2 * slots).map_err(HeError::from)?)
        } else {
            let angle = |e: usize| std::f64::consts::PI * e as f64 / (2 * slots) as f64;
            Slots::Direct((0..4 * slots).map(|e| (angle(e).cos(), angle(e).sin())).collect())
        };
        Ok(Self { n, side, slots, folds: n / (2 * side * slots), slots_of })
    }

    /// The coefficients of a row of which `element(slot, i, t)` is element i, term t.
    pub(super) fn encode(&self, element: impl Fn(usize, usize, usize) -> f64, right: bool) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        let (mut re, mut im) = (vec![0.0; self.slots], vec![0.0; self.slots]);
        let points = self.n / self.side;
        for i in 0..self.side {
            for f in 0..self.folds {
                for slot in 0..self.slots {
                    re[slot] = element(slot, i, 2 * f);
                    im[slot] = element(slot, i, 2 * f + 1) * if right { -1.0 } else { 1.0 };
                }
                self.slots_to_coefficients(&mut re, &mut im);
                for (l, x) in re.iter().chain(&im).enumerate() {
                    // Y^(N/d) = −1.
                    match (right, (self.folds * l).checked_sub(f)) {
                        (false, _) => out[self.side * (self.folds * l + f) + i] = *x,
                        (true, Some(power)) => out[self.side * power + i] = *x,
                        (true, None) => out[self.side * (points - f) + i] = -x,
                    }
                }
            }
        }
        out
    }

    /// The elements of a row of a result: element i of each slot at i · slots.
    pub(super) fn decode(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.side * self.slots);
        let (mut re, mut im) = (vec![0.0; self.slots], vec![0.0; self.slots]);
        for i in 0..self.side {
            for (l, x) in re.iter_mut().chain(&mut im).enumerate() {
                *x = coefficients[self.side * self.folds * l + i];
            }
            self.coefficients_to_slots(&mut re, &mut im);
            out.extend_from_slice(&re);
        }
        out
    }

    fn slots_to_coefficients(&self, re: &mut [f64], im: &mut [f64]) {
        match &self.slots_of {
            Slots::Fast(embedding) => embedding.embed_inverse_split(re, im),
            Slots::Direct(powers) => {
                let values: Vec<_> = re.iter().copied().zip(im.iter().copied()).collect();
                let scale = 1.0 / self.slots as f64;
                for (l, out) in re.iter_mut().chain(im).enumerate() {
                    let (mut sum, mut e) = (0.0, 1);
                    for (x, y) in &values {
                        let (cos, sin) = powers[e * l % powers.len()];
                        sum += x * cos + y * sin;
                        e = e * 5 % powers.len();
                    }
                    *out = sum * scale;
                }
            }
        }
    }

    fn coefficients_to_slots(&self, re: &mut [f64], im: &mut [f64]) {
        match &self.slots_of {
            Slots::Fast(embedding) => embedding.embed_split(re, im),
            Slots::Direct(powers) => {
                let coefficients: Vec<_> = re.iter().chain(im.iter()).copied().collect();
                let mut e = 1;
                for (x, y) in re.iter_mut().zip(im) {
                    (*x, *y) = coefficients.iter().enumerate().fold((0.0, 0.0), |(x, y), (l, c)| {
                        let (cos, sin) = powers[e * l % powers.len()];
                        (x + c * cos, y + c * sin)
                    });
                    e = e * 5 % powers.len();
                }
            }
        }
    }
}
