//! `parts`: the operations of key switching as wholes, with the bytes that each has to read and write: every operand
//! and result once. The rate says how far a step is from what memory gives.

use crate::Outcome;
use crate::parts::Bench;
use std::hint::black_box;
use sudare_he::ckks::Params;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::ops::{Digits, Ending, PolyPairs, mask, tensor};
use sudare_ring::random::{MaskSeed, Seed};
use sudare_ring::{Eval, Poly, RnsBasis};

/// Keys of so many bytes together are in no cache when their turn comes.
const FAR_BYTES: usize = 128 << 20;

/// Runs the operations at the set's highest level.
pub fn run(bench: &mut Bench<'_>, params: &Params, seed: &Seed) -> Outcome<()> {
    let seed = seed.derive_mask("sudare bench traffic", 0);
    let level = params.max_level();
    let tables = params.tables(level);
    let (gadget, rows) = (&tables.gadget, |basis: &RnsBasis| 8 * basis.degree() * basis.len());
    let (q, qp) = (rows(gadget.q()), rows(gadget.qp()));
    let (Some(by_p), Some(rescale)) = (&tables.mod_down, &tables.rescale) else { return Ok(()) };
    let random = |basis: &RnsBasis, index: u64| mask(basis, &seed, index);
    let [c0, c1, b0, b1] = [1, 2, 3, 4].map(|i| random(gadget.q(), i));
    let key = key(gadget.qp(), gadget.digits() as u64, &seed);
    let key_bytes = key.bytes();
    let keys = vec![key; FAR_BYTES.div_ceil(key_bytes)];
    let mut next = (0..keys.len()).cycle();
    let mut far = || &keys[next.next().unwrap_or(0)];
    let permutation = EvalPermutation::new(params.degree(), params.rotation_element(1))?;
    let end = Ending { division: by_p, plus: None, image: Some((&c0, &permutation)) };

    let digits: Digits = gadget.decompose(&c1);
    bench.moved("decompose", q + digits.bytes(), || drop(black_box(gadget.decompose(&c1))))?;
    bench.moved("digits times a far key", digits.bytes() + key_bytes + 2 * qp, || {
        drop(black_box(gadget.product(&digits, far())));
    })?;
    bench.moved("switch, far key", q + key_bytes + 2 * qp, || drop(black_box(gadget.switch(&c1, None, far()))))?;
    bench.moved("rotation, far key", 4 * q + key_bytes, || {
        drop(black_box(gadget.switch_divided(&c1, far(), &end)));
    })?;
    let pair = gadget.product(&digits, &keys[0]);
    bench.moved("copy and divide a pair by P", 4 * qp + 2 * q, || drop(black_box(by_p.apply(pair.clone()))))?;
    bench.moved("tensor", 7 * q, || drop(black_box(tensor(gadget.q(), &[[&c0, &c1]], &[[&b0, &b1]]))))?;
    let less = rows(rescale.kept());
    let batch: [Poly<Eval>; 2] = [c0.clone(), c1.clone()];
    bench.moved("times a plaintext, rescaled", 3 * q + 2 * less, || drop(black_box(rescale.of_products(&batch, &b0))))
}

fn key(basis: &RnsBasis, digits: u64, seed: &MaskSeed) -> PolyPairs {
    let half = |part: u64| -> Vec<_> { (0..digits).map(|j| mask(basis, seed, 100 + 2 * j + part)).collect() };
    PolyPairs::new(&half(0), &half(1))
}
