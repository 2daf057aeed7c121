//! A bootstrap taken apart: the same steps as the library's, through the same kernels, with a clock between.

use super::line::Share;
use crate::Outcome;
use crate::timing::{Samples, milliseconds};
use std::time::Instant;
use sudare_ring::buffer::Buffer;
use sudare_tfhe::{GlweCiphertext, LookupTable, LweCiphertext, RotationExponents, SecretKind, ServerKey};

/// The parts, in the order of their samples.
pub const PARTS: [&str; 6] =
    ["key switch", "decomposition", "forward transforms", "multiply-accumulate", "inverse transforms", "rest"];

/// Medians of the parts of `repeat` bootstraps of `c`; an error unless the accumulator comes out as
/// the library's, bit for bit.
pub fn measure(server: &ServerKey, c: &LweCiphertext, table: &LookupTable, repeat: usize) -> Outcome<Vec<Share>> {
    let mut samples: [Samples; 6] = Default::default();
    let two_n = 2 * server.params().context().degree();
    for _ in 0..repeat.max(1) {
        let begin = Instant::now();
        let exponents = server.switch_key().switch(c)?.switch_modulus(two_n, SecretKind::Binary);
        let switch = milliseconds(begin.elapsed());
        let mut parts = [0.0; 4];
        let acc = rotate(server, &exponents, table, &mut parts)?;
        let _ = std::hint::black_box(acc.extract(0)?);
        let whole = milliseconds(begin.elapsed());
        samples[0].0.push(switch);
        (1..5).for_each(|i| samples[i].0.push(parts[i - 1]));
        samples[5].0.push((whole - switch - parts.iter().sum::<f64>()).max(0.0));
        let mut expected = GlweCiphertext::trivial(server.params().context(), table.coefficients())?;
        server.bootstrap_key().blind_rotate(&mut expected, &exponents)?;
        if acc.words() != expected.words() {
            return Err("the bootstrap taken apart differs from the library's".into());
        }
    }
    let medians: Vec<f64> = samples.iter().map(|s| s.median().unwrap_or(0.0)).collect();
    let all: f64 = medians.iter().sum();
    let share = |(part, ms): (&&'static str, &f64)| Share { part, ms: *ms, percent: 100.0 * ms / all };
    Ok(PARTS.iter().zip(&medians).map(share).collect())
}

/// A blind rotation by an unrolled key; adds the milliseconds of decomposition, forward transforms,
/// products and inverse transforms to `parts`.
fn rotate(
    server: &ServerKey,
    by: &RotationExponents,
    table: &LookupTable,
    parts: &mut [f64; 4],
) -> Outcome<GlweCiphertext> {
    let (key, context) = (server.bootstrap_key(), server.params().context());
    let (n, steps, unroll) = (context.degree(), key.steps(), key.unroll());
    if unroll < 2 {
        return Err("only bootstraps with unrolled keys are taken apart".into());
    }
    let (two_n, rows) = (2 * n, steps.gadget().levels as usize * n);
    let start = GlweCiphertext::trivial(context, table.coefficients())?;
    let mut acc = Buffer::zeroed(context.words());
    acc.copy_from_slice(start.rotated(two_n - by.body as usize % two_n).words());
    steps.begin(&mut acc);
    // No product yet: zero, as a residue and as a number.
    let mut product = Buffer::zeroed(context.words());
    let mut digits = Buffer::zeroed(steps.gadget().levels as usize * context.words());
    let mut exponents = Vec::new();
    let mut next = steps.ahead(0);
    for step in 0..steps.len() {
        let a = &by.mask[step * unroll..key.dimension().min((step + 1) * unroll)];
        if a.iter().all(|a| (*a as usize).is_multiple_of(two_n)) {
            continue;
        }
        exponents.clear();
        exponents.extend((1..1 << a.len()).map(|set| {
            let bits = a.iter().enumerate().filter(|(j, _)| set >> j & 1 == 1);
            bits.map(|(_, a)| *a as usize).sum::<usize>() % two_n
        }));
        let mut clock = Instant::now();
        let mut lap = |part: usize| {
            let now = Instant::now();
            parts[part] += milliseconds(now - clock);
            clock = now;
        };
        let polynomials = acc.chunks_exact_mut(n).zip(product.chunks_exact(n)).zip(digits.chunks_exact_mut(rows));
        polynomials.for_each(|((a, p), d)| steps.decompose(a, Some(p), None, d));
        lap(0);
        digits.chunks_exact_mut(n).for_each(|d| steps.forward(d, &mut next));
        lap(1);
        steps.multiply(step, &mut product, &digits, Some(&exponents));
        lap(2);
        next = steps.ahead(step + 1);
        product.chunks_exact_mut(n).for_each(|p| steps.inverse(p, &mut next));
        lap(3);
    }
    steps.end(&mut acc, Some(&product));
    Ok(GlweCiphertext::from_words(context, &acc)?)
}
