//! Parameters of the protocol "lookup".

use super::compare::at_least;
use crate::{GenomeError, Shape};
use sudare_rlwe::wire::peek;
use sudare_tfhe::circuit_bootstrap::{CircuitKey, CircuitLiteral, CircuitParams};
use sudare_tfhe::leveled::{SelectorNoise, rerandomised};
use sudare_tfhe::noise::variance;
use sudare_tfhe::wire::circuit_key_from_bytes;

/// The circuit bootstrapping set in plain numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Set(pub CircuitLiteral);

impl Set {
    /// Selectors of two levels: windows of over a hundred sites.
    pub fn standard() -> Self {
        Self(CircuitLiteral::two_levels())
    }

    /// Selectors of three levels: slower, for windows of several hundred sites.
    pub fn deep() -> Self {
        Self(CircuitLiteral::three_levels())
    }

    /// A small set without any security, for tests of breadth.
    pub fn insecure_test() -> Self {
        Self(CircuitLiteral::insecure_test())
    }

    /// Checks the set and builds its tables.
    ///
    /// # Errors
    /// [`GenomeError::Tfhe`].
    pub fn build(&self) -> Result<CircuitParams, GenomeError> {
        Ok(self.0.clone().build()?)
    }
}

/// A server's keys from their bytes, under the set that they name; masks are expanded in parallel inside a thread pool.
///
/// # Errors
/// [`GenomeError::Wire`], for keys of another set among others.
pub fn read_keys(bytes: &[u8]) -> Result<CircuitKey, GenomeError> {
    let named = peek(bytes)?.params();
    let deep = Set::deep().build()?;
    let params = if named == deep.hash() { deep } else { Set::standard().build()? };
    Ok(circuit_key_from_bytes(&params, bytes)?)
}

/// Bits of a place among D concatenated tables of n + 1 entries.
pub fn index_bits(shape: Shape, haplotypes: usize) -> u32 {
    (shape.starts * (haplotypes + 1)).next_power_of_two().trailing_zeros()
}

/// Refuses a shape whose answers could decrypt wrongly: noise of lookups, of comparisons and of the last chain, all by
/// bootstrapped selectors.
///
/// # Errors
/// [`GenomeError::Failure`] with the figure.
pub fn check(params: &CircuitParams, shape: Shape, haplotypes: usize) -> Result<(), GenomeError> {
    let (leveled, bits) = (params.leveled(), index_bits(shape, haplotypes));
    let compare = at_least(bits, shape.eps)?.depth();
    let deepest = shape.sites.max(compare).max(bits as usize + 1);
    let add = params.selector_noise().bound().max(SelectorNoise::fresh(leveled).bound());
    let masks = rerandomised(leveled, leveled.context().rank(), variance::glwe_fresh(leveled.context()));
    let found = leveled.log_failure_at(deepest as f64 * add + masks) + f64::from(shape.answer_bits()).log2();
    // What is bootstrapped has to be read rightly, too.
    let decision = params.decision_variance(compare.max(bits as usize + 1) as f64 * add);
    let found = found.max(variance::log2_tail(0.25, decision));
    let declared = leveled.log_failure();
    if found <= declared + 3.0 {
        return Ok(());
    }
    Err(GenomeError::Failure {
        sites: shape.sites as u64,
        starts: shape.starts as u64,
        products: deepest as u64,
        found,
        declared,
    })
}
