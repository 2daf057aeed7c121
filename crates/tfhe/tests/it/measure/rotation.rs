//! Blind rotations with unrolled keys, and several tables from one.

use super::Tally;
use super::support::{context, key, mean_square, words};
use sudare_ring::random::{Entropy, ObjectSeeds, Seed};
use sudare_tfhe::noise::variance;
use sudare_tfhe::*;

const N: usize = 512;

/// Every coefficient after a rotation against the table's.
pub fn blind_rotations(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    // Rounding in charge, and the rows' errors.
    for (unroll, base_log, levels) in [(1, 17, 1), (2, 17, 1), (3, 17, 1), (2, 13, 3)] {
        let (context, dimension) = (context(40, 1, SecretKind::Binary), 48);
        let (q, gadget) = (context.q(), Gadget { base_log, levels });
        let (key, seed) = key(&context, number);
        // Every combination of a step's bits equally often.
        let bits: Vec<i64> = (0..dimension).map(|i| ((i / unroll) >> (i % unroll) & 1) as i64).collect();
        let lwe = LweSecretKey::from_coefficients(SecretKind::Binary, bits.into())?;
        let seeds = ObjectSeeds::derive(&seed, "bsk", 0);
        let bootstrap = BootstrapKey::generate(&lwe, &key, gadget, unroll, &seeds)?;
        let (rounds, mut sum) = (16, 0.0);
        for i in 0..rounds {
            let mut mask: Vec<u32> = words(&seed, i, 2 * N as u64, dimension + 1).iter().map(|x| *x as u32).collect();
            let by = RotationExponents { body: mask.remove(0), mask };
            let inner: i64 = by.mask.iter().zip(lwe.coefficients()).map(|(a, s)| i64::from(*a) * s).sum();
            let steps = (inner - i64::from(by.body)).rem_euclid(2 * N as i64) as usize;
            // Masks that are uniform from the first step on, as they are after it.
            let mut acc = GlweCiphertext::from_words(&context, &words(&seed, 1000 + i, q, context.words()))?;
            let expected = GlweCiphertext::trivial(&context, &key.phase(&acc)?)?.rotated(steps);
            bootstrap.blind_rotate(&mut acc, &by)?;
            sum += mean_square(q, &key.phase(&acc)?, expected.body());
        }
        let predicted = variance::blind_rotation(&context, gadget, dimension, unroll);
        let what = format!("blind rotation, {unroll} bits a step, {base_log}x{levels}");
        tally.note(what, sum / rounds as f64 / predicted, rounds as usize * N);
    }
    Ok(())
}

/// Sums of a rotation's coefficients, as several tables from one rotation take them: noise of distant
/// coefficients has the rounding that meets the secret's mean in common.
pub fn several_tables(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let tables: [(&str, Vec<u64>); 3] = [
        ("identity", (0..16).collect()),
        ("threshold", (0..16).map(|x| 5 * u64::from(x > 6)).collect()),
        ("permutation", (0..16).map(|x| (7 * x + 3) % 16).collect()),
    ];
    for (base_log, levels) in [(17, 1), (13, 3)] {
        let literal = TfheLiteral {
            log_n: 9,
            modulus_bits: 40,
            bootstrap_digits: (base_log, levels),
            noise_factor: 1,
            log_failure: -3.0,
            ..TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 })
        };
        let params = literal.build()?;
        let (context, q) = (params.context(), params.context().q());
        let seed = Seed::from_bytes([11; 32]).derive("several tables", number);
        let client = ClientKey::from_seed(&params, &seed)?.with_entropy(Entropy::fixed(seed.derive("fresh", 0)));
        let server = client.server_key()?;
        let (rounds, mut sums) = (12, [0.0; 3]);
        for i in 0..rounds {
            let mut acc = GlweCiphertext::from_words(context, &words(&seed, i, q, context.words()))?;
            let start = client.glwe().phase(&acc)?;
            server.rotate_by_phase(&mut acc, &client.encrypt_phase(i * (q / 32))?, 0)?;
            let noise = rotation_noise(context, &start, &client.glwe().phase(&acc)?)?;
            for (sum, (_, table)) in sums.iter_mut().zip(&tables) {
                let steps = table_steps(N, table);
                *sum += (0..N).map(|at| combined(&noise, &steps, at).powi(2)).sum::<f64>() / N as f64;
            }
        }
        for (sum, (name, table)) in sums.iter().zip(&tables) {
            let predicted = params.rotation_sum_variance(&table_steps(N, table));
            let what = format!("table by its differences, {name}, {base_log}x{levels}");
            tally.note(what, sum / rounds as f64 / predicted, rounds as usize * N);
        }
    }
    Ok(())
}

/// What a rotation of `start` by any number of positions adds to it, as fractions of q.
fn rotation_noise(context: &GlweContext, start: &[u64], found: &[u64]) -> Result<Vec<f64>, TfheError> {
    let q = context.modulus();
    let turned = |turn: usize, i: usize| match (i + 2 * N - turn) % (2 * N) {
        place if place < N => start[place],
        place => q.neg(start[place - N]),
    };
    let off = |turn: usize, i: usize| q.center(q.sub(found[i], turned(turn, i))).unsigned_abs();
    // Uniform phases: the turn is the one that a few coefficients agree with.
    let turn = (0..2 * N).min_by_key(|turn| (0..4).map(|i| off(*turn, i)).max());
    let turned = GlweCiphertext::trivial(context, start)?.rotated(turn.unwrap_or(0));
    let fraction = |(x, y): (&u64, &u64)| q.center(q.sub(*x, *y)) as f64 / q.value() as f64;
    Ok(found.iter().zip(turned.body()).map(fraction).collect())
}

/// Coefficient `at` of the product of a polynomial and a sum of monomials.
fn combined(polynomial: &[f64], terms: &[(usize, i64)], at: usize) -> f64 {
    let terms = terms.iter().map(|(position, factor)| {
        let place = (at + 2 * N - position) % (2 * N);
        *factor as f64 * if place < N { polynomial[place] } else { -polynomial[place - N] }
    });
    terms.sum()
}
