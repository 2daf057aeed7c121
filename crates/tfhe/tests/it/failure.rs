//! The failure probability of bootstraps against its formula, measured at reduced precision.

use sudare_ring::Threads;
use sudare_ring::random::{Entropy, Seed};
use sudare_rlwe::security::Security;
use sudare_tfhe::*;

const CHAINS: usize = 64;
const KEYS: u64 = 10;

/// Two bits of message and two of carry in N = 512, with noise of the blind rotation and the key switch in about
/// equal parts, that fails once in about 22 times.
fn reduced() -> TfheParams {
    let literal = TfheLiteral {
        lwe_dimension: 32,
        lwe_noise: Noise::TUniform { bits: 19 },
        log_n: 9,
        modulus_bits: 40,
        bootstrap_digits: (12, 1),
        switch_digits: (2, 5),
        noise_factor: 1,
        log_failure: -4.0,
        security: Security::Insecure,
        ..TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 })
    };
    literal.build().unwrap()
}

/// Outputs of bootstraps are inputs of the next, so that the noise that decides is all of it; neighbouring
/// entries of the tables differ by at least three, so that a failure shows.
fn failures(params: &TfheParams, rounds: usize, key: u64) -> usize {
    let seed = Seed::from_bytes([9; 32]).derive("failure", key);
    let client = ClientKey::from_seed(params, &seed).unwrap().with_entropy(Entropy::fixed(seed.derive("fresh", 0)));
    let server = client.server_key().unwrap();
    let (q, boxes) = (params.context().q(), 2 * params.space());
    let entry = |x: u64, shift: u64| (3 * x + shift) % 8;
    let tables: Vec<_> = (0..8).map(|s| LookupTable::new(params, |x| entry(x, s)).unwrap()).collect();
    let phase = |m: u64| (u128::from(m) * u128::from(q) / u128::from(boxes)) as u64;
    let mut values: Vec<u64> = (0..CHAINS as u64).map(|i| i % 8).collect();
    let mut cs: Vec<LweCiphertext> = values.iter().map(|m| client.encrypt_phase(phase(*m)).unwrap()).collect();
    let mut failures = 0;
    // The first round's inputs are fresh and have less noise: it does not count.
    for round in 0..=rounds {
        let shift = (5 * round as u64 + key) % 8;
        let table = &tables[shift as usize];
        cs = server.bootstrap_many(&cs.iter().collect::<Vec<_>>(), &[table; CHAINS]).unwrap();
        for (value, c) in values.iter_mut().zip(cs.iter_mut()) {
            *value = entry(*value, shift);
            let found = client.extracted().phase(c).unwrap();
            let off = (found as f64 - phase(*value) as f64) / q as f64;
            if (off - off.round()).abs() * boxes as f64 > 1.5 {
                failures += usize::from(round > 0);
                // The chain goes on with the entry that it should have, and its noise.
                let read = ((u128::from(found) * u128::from(boxes) + u128::from(q) / 2) / u128::from(q)) as u64;
                c.add_plain((q + phase(*value) - phase(read % boxes)) % q);
            }
        }
    }
    failures
}

/// At least 200 expected failures; the 99.9 % interval of what is measured holds the formula.
#[test]
fn bootstraps_fail_as_often_as_the_formula_says() {
    let params = reduced();
    let predicted = params.log_failure().exp2();
    let rounds = (220.0 / predicted / (KEYS as usize * CHAINS) as f64).ceil() as usize;
    let count: usize = Threads::new(0).run(|| (0..KEYS).map(|key| failures(&params, rounds, key)).sum());
    let bootstraps = (rounds * KEYS as usize * CHAINS) as f64;
    assert!(predicted * bootstraps >= 200.0);
    // Wilson's score interval.
    let (p, z) = (count as f64 / bootstraps, 3.29f64);
    let scale = 1.0 / (1.0 + z * z / bootstraps);
    let centre = scale * (p + z * z / (2.0 * bootstraps));
    let half = scale * z * (p * (1.0 - p) / bootstraps + z * z / (4.0 * bootstraps * bootstraps)).sqrt();
    assert!((predicted - centre).abs() < half, "{count} of {bootstraps} failed, {predicted} predicted");
}
