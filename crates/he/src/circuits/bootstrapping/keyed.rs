//! The first stage of CtS where keys hold its diagonals (LCR with AKS keys, ePrint 2025/1403).
//!
//! After the switch to the sparse secret s̃ both parts are integers of at most q_0/2, so that c_1 is one digit. The stage is
//! Σ_i ψ_i(d_i·x) for rotations ψ_i and diagonals d_i of a scale. With m_i = ⌊p·d_i⌉ and keys
//! (−a_i·ψ_i⁻¹(s) + e_i + m_i·s̃, a_i) modulo Q·p, ⌊Σ_i ψ_i(c_1·key_i)/p⌉ is what the stage makes of c_1·s̃, under the dense
//! secret s at once: the keys stand in the place of the one back to it. What the stage makes of c_0, ⌊Σ_i ψ_i(m_i·c_0)/p⌉, is an integer
//! of few primes, and is lifted to all of Q. Nothing is divided by a prime of Q, so the stage takes no level; its
//! diagonals are as exact as p is large, and the keys' errors are what it adds.

use super::layout::Layout;
use super::params::BootstrapParams;
use crate::circuits::dft::Stage;
use crate::circuits::linear_map::MapPlan;
use crate::circuits::periodic::{encode, period};
use crate::ckks::Params;
use crate::error::HeError;
use num_complex::Complex64;
use std::sync::Arc;
use sudare_ring::RnsBasis;
use sudare_ring::automorphism::rotation_element;
use sudare_ring::convert::BasisConverter;
use sudare_ring::ops::PeriodicPoly;
use sudare_rlwe::RaiseMap;
use sudare_rlwe::keys::{GaloisKey, KeyGenerator, SecretKey};
use sudare_rlwe::noise::{ERROR_VARIANCE, ROUNDING_VARIANCE};

/// A stage whose diagonals are in keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed<'a> {
    layout: &'a Layout,
    stage: &'a Stage,
    factor: f64,
    /// The scale of m_i: p times that of the stage.
    scale: f64,
}

impl Layout {
    /// The first stage of CtS, where keys hold its diagonals.
    pub(super) fn keyed(&self) -> Option<Keyed<'_>> {
        let stage = self.cts.stages().first().filter(|_| self.literal.keyed)?;
        let (factor, share) = self.cts_shares();
        Some(Keyed { layout: self, stage, factor, scale: self.gate_prime * share })
    }
}

impl Keyed<'_> {
    /// Galois elements of the ψ_i, in the order of the diagonals.
    pub fn elements(&self) -> Vec<u64> {
        let (n, unit) = (self.layout.degree(), self.stage.unit());
        self.stage.diagonals().keys().map(|t| rotation_element(n, t * unit)).collect()
    }

    /// The least level whose primes hold what the stage makes of c_0; none if all of them are too few.
    pub fn low(&self) -> Option<usize> {
        // Rows of an inverse transform add up to one at most; a polynomial's coefficients are no larger than its slots, and its
        // slots no larger than N coefficients. One bit is for the sign and one for the rounding of m_i.
        let layout = self.layout;
        let slots = layout.degree() as f64 * layout.q0() / 2.0;
        let needed = (self.factor * self.scale / layout.gate_prime * slots).log2() + 2.0;
        let mut bits = 0.0;
        layout.chain.q().iter().position(|q| {
            bits += q.log2();
            bits >= needed
        })
    }

    /// The map without its values.
    pub fn plan(&self) -> MapPlan {
        self.stage.apart(self.layout.degree(), self.factor, self.scale).0
    }

    fn diagonals(&self) -> Vec<Vec<Complex64>> {
        self.stage.apart(self.layout.degree(), self.factor, self.scale).1
    }

    /// m_i over a basis.
    fn row(&self, params: &Params, basis: &RnsBasis, diagonal: &[Complex64]) -> PeriodicPoly {
        encode(params, basis, diagonal, self.scale)
    }

    /// Bytes of the m_i over the few primes that a server has them over.
    pub fn bytes(&self) -> u64 {
        let limbs = self.low().map_or(0, |low| low + 2);
        let words = |diagonal: &Vec<Complex64>| PeriodicPoly::words_of(period(diagonal));
        (limbs * 8 * self.diagonals().iter().map(words).sum::<usize>()) as u64
    }

    /// The stage as raising takes it, with what a server computes with or without it.
    pub fn map(&self, params: &BootstrapParams, prepared: bool) -> Result<RaiseMap, HeError> {
        let low = self.low().ok_or_else(too_few)?;
        let elements = self.elements();
        if !prepared {
            return Ok(RaiseMap { elements, low, rows: Vec::new(), lift: None });
        }
        let (open, top) = (params.open(), self.layout.levels.top);
        let row = |diagonal: &Vec<Complex64>| self.row(params.params(), open.qp_at(low), diagonal);
        let rows = self.diagonals().iter().map(row).collect();
        let lift = Some(Arc::new(BasisConverter::new(open.q_at(low), open.q_at(top))));
        Ok(RaiseMap { elements, low, rows, lift })
    }

    /// Its keys: from the sparse secret to the dense one, which is a secret of the set's open parameters.
    pub fn keys(
        &self,
        params: &BootstrapParams,
        dense: &SecretKey,
        sparse: &SecretKey,
    ) -> Result<Vec<GaloisKey>, HeError> {
        let (top, diagonals) = (self.layout.levels.top, self.diagonals());
        let basis = params.open().qp_at(top);
        KeyGenerator::new(dense)?.map_keys(sparse.coefficients(), top, &self.elements(), |i| {
            Ok::<_, HeError>(self.row(params.params(), basis, &diagonals[i]).to_poly(basis))
        })
    }

    /// Variance of a slot's error after the stage, E|e|² in integer units, for an input without an error at `scale` whose slots have
    /// mean square `message`.
    pub fn variance(&self, plan: &MapPlan, scale: f64, message: f64) -> f64 {
        let (layout, n) = (self.layout, self.layout.chain.degree());
        let keys = plan.diagonals() as f64 * n * ERROR_VARIANCE * ROUNDING_VARIANCE * layout.q0().powi(2);
        let before = plan.own_variance(scale, message, 0.0) + n * keys;
        before / layout.gate_prime.powi(2) + n * (layout.chain.division(2).variance() + ROUNDING_VARIANCE)
    }
}

/// Why a set cannot have its first stage in keys.
pub(super) fn too_few() -> HeError {
    crate::error::parameters(
        "the set's primes are too small for a first stage of CtS in keys; take larger ones, or keyed: false",
    )
}
