//! From modulus q_0 to all primes, by way of a sparse secret.
//!
//! c_0 + c_1·s = m modulo q_0, taken as integers, is m + q_0·I. With a sparse secret of weight h, |I| ≤ h/2:
//! so the ciphertext is switched to it modulo q_0·p, both parts are lifted, and c_1, whose coefficients are
//! at most q_0/2, is switched back as one digit with one special prime.

use super::keys::BootstrapKeys;
use crate::circuits::polynomial::Parts;
use sudare_rlwe::switching::{self, Decomposed};

/// The parts of m modulo q_0 as parts of m + q_0·I modulo all primes.
pub(super) fn raise(keys: &BootstrapKeys, parts: &Parts) -> Parts {
    let (gate, open) = (keys.params.gate(), keys.params.open());
    let top = keys.params.layout().levels.top;
    let switched = switching::switch(gate, 0, &parts[1], &keys.to_sparse);
    let [mut c0, c1] = switched.c.map(|c| switching::mod_down(gate, 0, c));
    c0.add_assign(&parts[0]);
    let digit = c1.lifted(open.qp_at(top));
    let back = switching::inner_product(open, &Decomposed::of(top, vec![digit]), &keys.to_dense);
    let [mut d0, d1] = back.c.map(|c| switching::mod_down(open, top, c));
    d0.add_assign(&c0.lifted(open.q_at(top)));
    [d0, d1]
}
