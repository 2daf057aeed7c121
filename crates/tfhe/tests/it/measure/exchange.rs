//! LWE ciphertexts into a large ring and back.

use super::Tally;
use super::support::{mean_square, words};
use sudare_ring::prime::ntt_primes;
use sudare_ring::random::{Seed, ternary};
use sudare_tfhe::exchange::{EntryKey, Exchange, ExitKey, LweForm};
use sudare_tfhe::*;

/// log2 of the large ring's degree: two groups are packed.
const LOG_N: u32 = 12;

/// A key of the large ring modulo `q` with these coefficients.
pub fn large_key(q: u64, coefficients: &[i64]) -> Result<GlweSecretKey, TfheError> {
    let noise = Noise::Gaussian { sigma: 3.19 };
    let context = GlweContext::new(coefficients.len(), q, 1, SecretKind::Ternary, noise)?;
    GlweSecretKey::from_coefficients(&context, coefficients.to_vec().into())
}

/// c_0 + c_1·s by coefficients.
pub fn phase(key: &GlweSecretKey, [c0, c1]: [&[u64]; 2]) -> Result<Vec<u64>, TfheError> {
    let q = key.context().modulus();
    let words: Vec<u64> = c1.iter().map(|a| q.neg(*a)).chain(c0.iter().copied()).collect();
    Ok(key.phase(&GlweCiphertext::from_words(key.context(), &words)?)?.to_vec())
}

/// Packing and splitting, ciphertexts of both forms, one mask and two.
pub fn exchange(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let q = ntt_primes(1 << LOG_N, 26, 1, &[])?[0];
    let seed = Seed::from_bytes([11; 32]).derive("exchange", number);
    for rank in [1, 2] {
        let params = TfheLiteral { rank, ..TfheLiteral::insecure_test(Plaintext::Bit) }.build()?;
        let client = ClientKey::from_seed(&params, &seed)?;
        for form in [LweForm::AtRest, LweForm::Switched] {
            let exchange = Exchange::new(&params, form, LOG_N)?;
            let (key, z) = EntryKey::generate(&exchange, &client)?;
            let (n, count) = (exchange.dimension(), exchange.degree());
            let (packed, expected) = match form {
                LweForm::AtRest => {
                    let modulus = params.context().modulus();
                    let one = |i| LweCiphertext::from_words(modulus, words(&seed, i, modulus.value(), n + 1));
                    let inputs = (0..count as u64).map(one).collect::<Result<Vec<_>, _>>()?;
                    let phases = inputs.iter().map(|c| scaled(client.extracted().phase(c)?, modulus.value(), q));
                    (key.pack(&inputs.iter().map(Some).collect::<Vec<_>>(), q)?, phases.collect::<Result<Vec<_>, _>>()?)
                }
                LweForm::Switched => {
                    let one = |i| {
                        let all = words(&seed, i, 1 << 32, n + 1).into_iter().map(|x| x as u32).collect();
                        TorusLwe::from_words(all)
                    };
                    let inputs = (0..count as u64).map(one).collect::<Result<Vec<_>, _>>()?;
                    let phases = inputs.iter().map(|c| scaled(client.lwe().phase_torus(c)?.into(), 1 << 32, q));
                    (key.pack(&inputs.iter().map(Some).collect::<Vec<_>>(), q)?, phases.collect::<Result<Vec<_>, _>>()?)
                }
            };
            let found = phase(&large_key(q, &z)?, packed.each_ref().map(Vec::as_slice))?;
            let weight = exchange.entry().degree() as f64 * SecretKind::Ternary.mean_square();
            let predicted = exchange.entry_variance() + (1.0 + weight) / 12.0 / (q as f64).powi(2);
            tally.note(format!("packing, {form:?}, k {rank}"), mean_square(q, &found, &expected) / predicted, count);
        }
        let exchange = Exchange::new(&params, LweForm::AtRest, LOG_N)?;
        let mut s = vec![0i64; exchange.degree()];
        ternary(&mut seed.derive("large", 0).stream(0), &mut s);
        let key = ExitKey::generate(&exchange, &client, &s)?;
        let mut ratio = 0.0;
        let rounds = 4;
        for round in 0..rounds {
            let c = [0, 1].map(|i| words(&seed, 1 << 20 | round << 1 | i, q, exchange.degree()));
            let c = c.each_ref().map(Vec::as_slice);
            let small = params.context().q();
            let expected = phase(&large_key(q, &s)?, c)?.into_iter().map(|x| scaled(x, q, small));
            let expected = expected.collect::<Result<Vec<_>, _>>()?;
            let parts = key.split(c, q)?;
            let one = |at| client.extracted().phase(&parts.extract(at)?);
            let found = (0..parts.coefficients()).map(one).collect::<Result<Vec<_>, _>>()?;
            ratio += mean_square(small, &found, &expected) / exchange.exit_variance() / rounds as f64;
        }
        tally.note(format!("splitting, k {rank}"), ratio, rounds as usize * exchange.degree());
    }
    Ok(())
}

/// ⌊x·q/p⌉.
fn scaled(x: u64, p: u64, q: u64) -> Result<u64, TfheError> {
    Ok(((u128::from(x) * u128::from(q) + u128::from(p) / 2) / u128::from(p) % u128::from(q)) as u64)
}
