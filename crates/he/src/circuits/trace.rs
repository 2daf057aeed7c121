//! Trace-type functions: automorphisms and additions by turns (`004`, section 2.4).

use super::unrolled::TracePlan;
use crate::ckks::Params;
use crate::error::{HeError, parameters};
use sudare_ring::automorphism::rotation_element;
use sudare_rlwe::RlweError;

/// Most automorphisms of one function: log2 N of the largest ring.
pub const MAX_STEPS: usize = 17;

/// The function c ↦ (1 + ψ_{k_{M−1}}) … (1 + ψ_{k_0}) c for automorphisms ψ_k : X ↦ X^k
/// (`004`, Algorithm 2.4.5): M steps of "add what the automorphism makes of the sum so far".
///
/// Unrolled, it takes fewer iterations and more keys; [`circuits`](crate::circuits) has an encrypted run.
///
/// ```
/// use sudare_he::circuits::trace::TraceFunction;
/// use sudare_he::ckks::ParamsLiteral;
/// use sudare_rlwe::security::Security;
///
/// # fn main() -> Result<(), sudare_he::HeError> {
/// let params = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
/// let sums = TraceFunction::partial_sums(&params, 16)?;
/// let (doubling, unrolled) = (sums.doubling(), sums.unrolled(2)?);
/// assert_eq!((doubling.iterations(), doubling.automorphisms()), (4, 4));
/// assert_eq!((unrolled.iterations(), unrolled.automorphisms()), (2, 6));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFunction {
    degree: usize,
    elements: Vec<u64>,
}

impl TraceFunction {
    /// From the Galois elements k_0, …, k_{M−1}: odd and below 2N.
    ///
    /// # Errors
    /// `RlweError::Parameters` for more than [`MAX_STEPS`] of them, `RlweError::Ring` for one
    /// that names no automorphism.
    pub fn new(params: &Params, elements: Vec<u64>) -> Result<Self, HeError> {
        let degree = params.degree();
        let order = 2 * degree as u64;
        if elements.len() > MAX_STEPS {
            return Err(parameters(format!(
                "a trace has at most {MAX_STEPS} steps, log2 of the largest N, not {}",
                elements.len()
            )));
        }
        if let Some(element) = elements.iter().copied().find(|e| e % 2 == 0 || *e >= order) {
            return Err(RlweError::Ring(sudare_ring::RingError::GaloisElement { element, order }).into());
        }
        Ok(Self { degree, elements })
    }

    /// Slot i becomes Σ_j x[i + j·stride] over 0 ≤ j < `count` (indices modulo N/2): `count` is a
    /// power of two. A negative stride sums what came before.
    ///
    /// # Errors
    /// `RlweError::Parameters` unless `count` is a power of two of at most N/2.
    pub fn strided_sums(params: &Params, count: usize, stride: i64) -> Result<Self, HeError> {
        if !count.is_power_of_two() || count > params.slots() {
            return Err(parameters(format!(
                "a sum over {count} slots is not possible; take a power of two of at most {}",
                params.slots()
            )));
        }
        let slots = params.slots() as i64;
        let steps = (0..count.trailing_zeros()).map(|i| (stride.rem_euclid(slots) << i) % slots);
        Self::new(params, steps.map(|step| rotation_element(params.degree(), step)).collect())
    }

    /// Every slot becomes the sum of all N/2: M = log2(N/2).
    ///
    /// # Errors
    /// None for checked parameters.
    pub fn total_sum(params: &Params) -> Result<Self, HeError> {
        Self::strided_sums(params, params.slots(), 1)
    }

    /// Slot i becomes the sum of slots i, …, i + `width` − 1; at multiples of `width` stand the
    /// sums of the blocks.
    ///
    /// # Errors
    /// As [`TraceFunction::strided_sums`].
    pub fn partial_sums(params: &Params, width: usize) -> Result<Self, HeError> {
        Self::strided_sums(params, width, 1)
    }

    /// Copies the first slot of each block of `width` to the whole block, where all others of the
    /// block are zero.
    ///
    /// # Errors
    /// As [`TraceFunction::strided_sums`].
    pub fn replication(params: &Params, width: usize) -> Result<Self, HeError> {
        Self::strided_sums(params, width, -1)
    }

    /// The trace to the rationals: the sum over all slots and their conjugates, M = log2 N. Every
    /// slot becomes twice the real part of the total.
    ///
    /// # Errors
    /// None for checked parameters.
    pub fn field_trace(params: &Params) -> Result<Self, HeError> {
        let mut elements = Self::total_sum(params)?.elements;
        elements.push(params.conjugation_element());
        Self::new(params, elements)
    }

    /// The first `steps` steps alone.
    #[must_use]
    pub fn truncated(mut self, steps: usize) -> Self {
        self.elements.truncate(steps);
        self
    }

    /// M: the number of automorphisms of repeated doubling.
    pub fn steps(&self) -> usize {
        self.elements.len()
    }

    /// The Galois elements k_0, …, k_{M−1}.
    pub fn elements(&self) -> &[u64] {
        &self.elements
    }

    /// Repeated doubling, the baseline: h = M.
    pub fn doubling(&self) -> TracePlan {
        TracePlan::new(self.degree, self.elements.iter().map(std::slice::from_ref))
    }

    /// Unrolled to `iterations` (h) of about M/h steps each; the longer ones come first.
    ///
    /// # Errors
    /// `RlweError::Parameters` unless 1 ≤ h ≤ M (an empty function takes h = 0 only).
    pub fn unrolled(&self, iterations: usize) -> Result<TracePlan, HeError> {
        let steps = self.steps();
        if iterations > steps || (iterations == 0 && steps > 0) {
            return Err(parameters(format!(
                "{steps} steps of a trace cannot be done in {iterations} iterations; take 1 to {steps}"
            )));
        }
        let mut rest = self.elements.as_slice();
        let groups = (0..iterations).map(|i| {
            let (group, more) = rest.split_at(rest.len().div_ceil(iterations - i));
            rest = more;
            group
        });
        Ok(TracePlan::new(self.degree, groups))
    }
}
