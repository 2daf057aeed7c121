//! From modulus q_0 to all primes, by way of a sparse secret.
//!
//! c_0 + c_1·s = m modulo q_0, taken as integers, is m + q_0·I. With a sparse secret of weight h, |I| ≤ h/2:
//! so the ciphertext is switched to it modulo q_0·p, both parts are lifted, and c_1, whose coefficients are
//! at most q_0/2, is switched back as one digit with one special prime.

use super::keys::BootstrapKeys;
use crate::circuits::polynomial::Parts;
use sudare_ring::ops::Digits;
use sudare_rlwe::switching::mod_down;

/// The parts of m modulo q_0 as parts of m + q_0·I modulo all primes.
pub(super) fn raise(keys: &BootstrapKeys, parts: &Parts) -> Parts {
    let (gate, open) = (keys.params.gate(), keys.params.open());
    let top = keys.params.layout().levels.top;
    let switched = gate.tables(0).gadget.switch(&parts[1], None, keys.to_sparse.pairs());
    let [mut c0, c1] = mod_down(gate, 0, switched);
    c0.add_assign(&parts[0]);
    let digit = Digits::of(vec![c1.lifted(open.qp_at(top))]);
    let [mut d0, d1] = mod_down(open, top, open.tables(top).gadget.product(&digit, keys.to_dense.pairs()));
    d0.add_assign(&c0.lifted(open.q_at(top)));
    [d0, d1]
}
