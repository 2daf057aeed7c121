//! Encryption, external products, CMUX, key switches and packing of GLWE ciphertexts.

use super::Tally;
use super::support::{context, key, mean_square, streams, words};
use sudare_ring::random::ObjectSeeds;
use sudare_tfhe::leveled::{LeveledClient, LeveledLiteral, LeveledServer, SelectorNoise};
use sudare_tfhe::noise::variance;
use sudare_tfhe::*;

const N: usize = 512;

/// Rounding in charge with one digit, the rows' errors with three; one and three masks.
pub fn products(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let cases = [
        ((15, 1), 40, 1, SecretKind::Binary),
        ((20, 1), 47, 1, SecretKind::Binary),
        ((6, 3), 44, 1, SecretKind::Binary),
        ((15, 1), 40, 1, SecretKind::Ternary),
        ((17, 1), 40, 3, SecretKind::Binary),
    ];
    for ((base_log, levels), bits, rank, secret) in cases {
        let gadget = Gadget { base_log, levels };
        let context = context(bits, rank, secret);
        let (q, masks_and_body) = (context.q(), context.words());
        let (key, seed) = key(&context, number);
        let (mut masks, mut errors) = streams(&seed, 0);
        let other = GlweSecretKey::generate(&context, &mut seed.derive("other", 0).stream(0));
        let one = GgswCiphertext::encrypt(&key, 1, gadget, &ObjectSeeds::derive(&seed, "g", 1))?;
        let zero = GgswCiphertext::encrypt(&key, 0, gadget, &ObjectSeeds::derive(&seed, "g", 0))?;
        let ks = GlweSwitchKey::generate(&key, &other, gadget, &ObjectSeeds::derive(&seed, "ks", 0))?;
        let (mut fresh, mut product, mut mux, mut switched) = (0.0, 0.0, 0.0, 0.0);
        // Rounding times a binary secret, whose mean is not zero, is nearly one sample a product.
        let rounds = 50;
        for i in 0..rounds {
            let m = words(&seed, i, q, N);
            let c = key.encrypt(&m, &mut masks, &mut errors)?;
            fresh += mean_square(q, &key.phase(&c)?, &m);
            let c = GlweCiphertext::from_words(&context, &words(&seed, 1000 + i, q, masks_and_body))?;
            let d1 = c.rotated(77);
            let phase = key.phase(&c)?;
            product += mean_square(q, &key.phase(&one.external_product(&c)?)?, &phase);
            // A CMUX that takes d0 adds the rows' noise alone, one that takes d1 the rounding as well.
            mux += mean_square(q, &key.phase(&zero.cmux(&d1, &c)?)?, &phase);
            switched += mean_square(q, &other.phase(&ks.switch(&c)?)?, &phase);
        }
        let case = format!("{base_log}x{levels} of {bits} bits, k {rank}, {secret:?}");
        let mut note = |what: &str, measured: f64, predicted: f64| {
            tally.note(format!("{what}, {case}"), measured / rounds as f64 / predicted, rounds as usize * N);
        };
        note("encryption", fresh, variance::glwe_fresh(&context));
        note("external product", product, variance::external_product(&context, gadget, 0.0));
        note("CMUX that takes d0", mux, variance::rows(&context, gadget, rank + 1));
        note("GLWE key switch", switched, variance::glwe_switch(&context, gadget, 0.0));
    }
    Ok(())
}

/// LWE to GLWE, all coefficients full.
pub fn packing(number: u64, tally: &mut Tally) -> Result<(), TfheError> {
    let cases = [((18, 2), SecretKind::Binary), ((17, 1), SecretKind::Binary), ((17, 1), SecretKind::Ternary)];
    for ((base_log, levels), secret) in cases {
        let (context, gadget, dimension) = (context(40, 1, SecretKind::Binary), Gadget { base_log, levels }, 200);
        let (key, seed) = key(&context, number);
        let q = context.q();
        let lwe = LweSecretKey::generate(dimension, secret, &mut seed.derive("lwe", 0).stream(0));
        let packing = PackingKey::generate(&lwe, &key, gadget, &ObjectSeeds::derive(&seed, "pack", 0))?;
        let uniform = |i| LweCiphertext::from_words(context.modulus(), words(&seed, i, q, dimension + 1));
        let inputs = (0..N as u64).map(uniform).collect::<Result<Vec<_>, _>>()?;
        let phases = inputs.iter().map(|c| lwe.phase(c)).collect::<Result<Vec<_>, _>>()?;
        let measured =
            mean_square(q, &key.phase(&packing.pack(&inputs.iter().map(Some).collect::<Vec<_>>())?)?, &phases);
        let predicted = variance::packing(&context, gadget, dimension, secret, 0.0);
        tally.note(format!("packing, {base_log}x{levels}, {secret:?}"), measured / predicted, N);
    }
    Ok(())
}

/// Trees of CMUX over an encrypted table; every bit of the index is one, so that all rounding counts.
pub fn leveled_lookups(_: u64, tally: &mut Tally) -> Result<(), TfheError> {
    for digits in [(12, 3), (16, 1)] {
        let literal = LeveledLiteral { digits, message_bits: 1, log_failure: -40.0, ..LeveledLiteral::insecure_test() };
        let params = literal.build()?;
        let client = LeveledClient::generate(&params)?;
        let server = LeveledServer::new(&params);
        let (depth, rounds) = (3u32, 12);
        let mut sum = 0.0;
        for _ in 0..rounds {
            let table: Vec<Vec<u64>> =
                (0..1u64 << depth).map(|i| (0..N as u64).map(|j| (i ^ j) & 1).collect()).collect();
            let packed = client.encrypt_table(&table)?;
            let index = client.encrypt_index((1 << depth) - 1, depth)?;
            let found = server.lookup(&packed, &index)?;
            sum += client.noise_for_tests(&found, &table[(1 << depth) - 1])?;
        }
        let predicted =
            variance::glwe_fresh(params.context()) + f64::from(depth) * SelectorNoise::fresh(&params).expected();
        let what = format!("lookup in an encrypted table, {}x{}", digits.0, digits.1);
        tally.note(what, sum / f64::from(rounds) / predicted, rounds as usize * N);
    }
    Ok(())
}
