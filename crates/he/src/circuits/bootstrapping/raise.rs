//! From modulus q_0 to all primes, by way of a sparse secret.
//!
//! c_0 + c_1·s = m modulo q_0, taken as integers, is m + q_0·I. With a sparse secret of weight h, |I| ≤ h/2:
//! so the ciphertext is switched to it modulo q_0·p, both parts are lifted, and c_1, whose coefficients are
//! at most q_0/2, is switched back as one digit with one special prime.

use super::keys::BootstrapKeys;
use crate::circuits::polynomial::Parts;
use sudare_ring::buffer::Buffer;
use sudare_ring::{Eval, Poly, RnsBasis, threads};
use sudare_rlwe::switching::{self, Decomposed};

/// The parts of m modulo q_0 as parts of m + q_0·I modulo all primes.
pub(super) fn raise(keys: &BootstrapKeys, parts: &Parts) -> Parts {
    let (gate, open) = (keys.params.gate(), keys.params.open());
    let top = keys.params.layout().levels.top;
    let switched = switching::switch(gate, 0, &parts[1], &keys.to_sparse);
    let [mut c0, c1] = switched.c.map(|c| switching::mod_down(gate, 0, c));
    c0.add_assign(&parts[0]);
    let digit = lift(&c1, open.qp_at(top));
    let back = switching::inner_product(open, &Decomposed::of(top, vec![digit]), &keys.to_dense);
    let [mut d0, d1] = back.c.map(|c| switching::mod_down(open, top, c));
    d0.add_assign(&lift(&c0, open.q_at(top)));
    [d0, d1]
}

/// Centred residues modulo q_0 modulo other primes; `basis` starts with q_0.
fn lift(c: &Poly<Eval>, basis: &RnsBasis) -> Poly<Eval> {
    let from = c.basis().limb(0);
    let mut coefficients = Buffer::from_slice(c.limb(0));
    from.inverse(&mut coefficients);
    let mut out = Poly::dirty(basis);
    threads::for_each_chunk(out.words_mut(), basis.degree(), |t, x| match t {
        0 => x.copy_from_slice(c.limb(0)),
        _ => {
            basis.limb(t).reduce_centered(x, &coefficients, from.q());
            basis.limb(t).forward(x);
        }
    });
    out
}
