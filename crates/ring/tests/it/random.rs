//! Streams and samplers: known answers, distributions, consumption.

use std::collections::{HashMap, HashSet};

use sudare_ring::random::{
    GaussianSampler, MaskSeed, SIGMA, Seed, Stream, WideGaussian, fixed_weight_ternary, ternary, uniform,
};
use sudare_ring::{Modulus, RingError};

fn stream(nonce: u64) -> Stream {
    Seed::from_bytes(core::array::from_fn(|i| i as u8)).stream(nonce)
}

/// First 16 hexadecimal digits of the BLAKE3 hash of little-endian words.
fn digest(words: impl IntoIterator<Item = u64>) -> String {
    let mut hasher = blake3::Hasher::new();
    words.into_iter().for_each(|w| {
        hasher.update(&w.to_le_bytes());
    });
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Σ (observed − expected)² / expected.
fn chi_square(observed: &[u64], expected: &[f64]) -> f64 {
    observed.iter().zip(expected).map(|(o, e)| (*o as f64 - e).powi(2) / e).sum()
}

/// A bound on a χ² variable of `freedom` degrees that chance exceeds less than once in 10^6.
fn chi_square_bound(freedom: usize) -> f64 {
    // Wilson and Hilferty's approximation.
    let (k, z) = (freedom as f64, 4.9);
    k * (1.0 - 2.0 / (9.0 * k) + z * (2.0 / (9.0 * k)).sqrt()).powi(3) + 1.0
}

/// P(|x| = k) of the discrete Gaussian, for k up to 16σ.
fn gaussian_weights(sigma: f64) -> Vec<f64> {
    let weight = |k: u32| (-f64::from(k * k) / (2.0 * sigma * sigma)).exp();
    let last = (16.0 * sigma) as u32;
    let total = 1.0 + 2.0 * (1..=last).map(weight).sum::<f64>();
    (0..=last).map(|k| weight(k) * if k == 0 { 1.0 } else { 2.0 } / total).collect()
}

#[test]
fn stream_is_chacha20() {
    // RFC 8439, appendix A.1, vectors 1 and 5; its 96-bit nonce is ours behind a counter below 2^32.
    let expected = [
        (0, "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"),
        (
            u64::from_le_bytes([0, 0, 0, 0, 0, 0, 0, 2]),
            "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7",
        ),
    ];
    for (nonce, bytes) in expected {
        let mut found = [0; 32];
        MaskSeed::from_bytes([0; 32]).stream(nonce).fill_bytes(&mut found);
        assert_eq!(found.map(|b| format!("{b:02x}")).concat(), bytes);
    }
}

#[test]
fn stream_does_not_depend_on_how_it_is_read() {
    let mut whole = vec![0; 10_000];
    stream(3).fill_bytes(&mut whole);
    for step in [1, 7, 8, 1000, 1023, 1024, 1025, 2048, 3000] {
        let mut parts = vec![0; whole.len()];
        let mut s = stream(3);
        parts.chunks_mut(step).for_each(|part| s.fill_bytes(part));
        assert_eq!(parts, whole, "step {step}");
        assert_eq!(s.position(), whole.len() as u64);
    }
    let mut s = stream(3);
    s.fill_bytes(&mut [0; 3]);
    assert_eq!(s.next_u64(), u64::from_le_bytes(whole[3..11].try_into().unwrap()));
}

#[test]
fn seeds_are_separate_and_secret() {
    let seed = Seed::from_bytes([9; 32]);
    assert_eq!(format!("{seed:?} {:?}", seed.stream(0)), "Seed(..) Stream { position: 0, .. }");
    let mask = MaskSeed::from_bytes([9; 32]);
    assert_eq!(seed.derive_mask("x", 1), mask.derive("x", 1));
    let first = |mut s: Stream| s.next_u64();
    let mut seen = HashSet::new();
    for nonce in [0, 1] {
        assert!(seen.insert(first(seed.stream(nonce))));
        // Same parent, domain and index: the role alone keeps the secret from the mask.
        for (domain, index) in [("x", 1), ("x", 2), ("xx", 1), ("", 1)] {
            assert!(seen.insert(first(seed.derive(domain, index).stream(nonce))));
            assert!(seen.insert(first(seed.derive_mask(domain, index).stream(nonce))));
        }
    }
    assert_ne!(MaskSeed::from_entropy().unwrap(), MaskSeed::from_entropy().unwrap());
    assert_ne!(first(Seed::from_entropy().unwrap().stream(0)), first(Seed::from_entropy().unwrap().stream(0)));
}

#[test]
fn a_million_derived_seeds_differ() {
    let parent = MaskSeed::from_bytes([1; 32]);
    let mut prefixes: Vec<u128> = (0..1_000_000u64)
        .map(|i| u128::from_le_bytes(parent.derive("object", i).as_bytes()[..16].try_into().unwrap()))
        .collect();
    prefixes.sort_unstable();
    assert!(prefixes.windows(2).all(|p| p[0] != p[1]));
}

/// What must never change, for masks on the wire; the same with every kernel.
#[test]
fn known_answers() {
    let mask = MaskSeed::from_bytes([1; 32]).derive("mask", 5);
    let mut found = vec![digest(mask.as_bytes().iter().map(|b| u64::from(*b)))];
    let mut words = vec![0; 5000];
    stream(0).fill_u64(&mut words);
    found.push(digest(words.iter().copied()));
    for q in [(1 << 40) - 87, 1_152_921_504_606_830_593, 257] {
        uniform(&mut stream(1), &Modulus::new(q).unwrap(), &mut words);
        found.push(digest(words.iter().copied()));
    }
    let mut values = vec![0; 5000];
    ternary(&mut stream(2), &mut values);
    found.push(digest(values.iter().map(|v| *v as u64)));
    fixed_weight_ternary(&mut stream(3), 192, &mut values).unwrap();
    found.push(digest(values.iter().map(|v| *v as u64)));
    for sigma in [SIGMA, 0.5, 64.0] {
        GaussianSampler::new(sigma).unwrap().sample(&mut stream(4), &mut values);
        found.push(digest(values.iter().map(|v| *v as u64)));
    }
    let expected = [
        "4b593857af672fbd", // derived seed
        "deff937d314428b1", // stream
        "415c76c107aac177", // uniform, 40 bits
        "ace83723f36a3184", // uniform, 60 bits
        "6f2d7a62e7ea2a25", // uniform, 9 bits
        "fe36c5b90f6dd92a", // ternary
        "e30c3ffefccd20e1", // fixed weight
        "0b649a96f2c7a73b", // gaussian
        "9f9b0ffea4406556", // gaussian, σ = 0.5
        "c5fdbe66e8dec2d3", // gaussian, σ = 64
    ];
    assert_eq!(found, expected);
}

/// The definition of a mask, one try at a time.
#[test]
fn uniform_follows_its_definition() {
    for q in [3, 255, 257, 65537, (1 << 23) + 1, (1 << 39) + 1, (1 << 40) - 87, (1 << 56) + 1, (1 << 61) - 1] {
        let modulus = Modulus::new(q).unwrap();
        let mut found = vec![0; 3001];
        let mut ours = stream(q);
        uniform(&mut ours, &modulus, &mut found);
        let mut raw = stream(q);
        for value in &found {
            let expected = loop {
                let mut bytes = [0; 8];
                raw.fill_bytes(&mut bytes[..modulus.bits().div_ceil(8) as usize]);
                let attempt = u64::from_le_bytes(bytes) & ((1 << modulus.bits()) - 1);
                if attempt < q {
                    break attempt;
                }
            };
            assert_eq!(*value, expected, "{q}");
        }
        assert_eq!(ours.position(), raw.position());
        uniform(&mut ours, &modulus, &mut []);
        assert_eq!(ours.position(), raw.position());
    }
}

#[test]
fn uniform_is_uniform() {
    const BINS: usize = 97;
    let mut values = vec![0; 1_000_000];
    for q in [(1u64 << 40) - 87, (1 << 39) + 1, 1_152_921_504_606_830_593, 97] {
        uniform(&mut stream(q), &Modulus::new(q).unwrap(), &mut values);
        let mut count = [0; BINS];
        values.iter().for_each(|v| count[(u128::from(*v) * BINS as u128 / u128::from(q)) as usize] += 1);
        let chi = chi_square(&count, &[values.len() as f64 / BINS as f64; BINS]);
        assert!(chi < chi_square_bound(BINS - 1), "{q}: {chi}");
    }
}

#[test]
fn ternary_is_uniform() {
    let mut values = vec![0; 1_000_000];
    ternary(&mut stream(0), &mut values);
    // With the neighbouring lane, and with two later digits of the same lane.
    for distance in [1, 8, 120] {
        let mut count = [0; 9];
        for (a, b) in values.iter().zip(&values[distance..]) {
            assert!((-1..=1).contains(a));
            count[(3 * a + b + 4) as usize] += 1;
        }
        let chi = chi_square(&count, &[(values.len() - distance) as f64 / 9.0; 9]);
        assert!(chi < chi_square_bound(8), "{distance}: {chi}");
    }
}

/// Every value is the documented digit of its lane's fraction.
#[test]
fn ternary_follows_its_definition() {
    let mut values = vec![0; 1000];
    ternary(&mut stream(6), &mut values);
    let mut words = vec![0; 8 * 16];
    stream(6).fill_u64(&mut words);
    for (i, value) in values.iter().enumerate() {
        let (block, digit, lane) = (i / 128, i % 128 / 8, i % 8);
        let part = |k: usize| u128::from(words[16 * block + k] & ((1 << 62) - 1));
        let mut fraction = part(lane) << 62 | part(lane + 8);
        let mut found = 0;
        for _ in 0..=digit {
            found = (fraction * 3) >> 124;
            fraction = (fraction * 3) & ((1 << 124) - 1);
        }
        assert_eq!(*value, found as i64 - 1, "value {i}");
    }
}

#[test]
fn fixed_weight_is_exact_and_uniform() {
    let mut s = stream(0);
    for length in [1, 2, 3, 64, 1000, 1024] {
        let mut values = vec![7; length];
        for weight in [0, 1, length / 2, length] {
            fixed_weight_ternary(&mut s, weight, &mut values).unwrap();
            assert!(values.iter().all(|v| (-1..=1).contains(v)));
            assert_eq!(values.iter().filter(|v| **v != 0).count(), weight);
        }
        let before = values.clone();
        let refused = fixed_weight_ternary(&mut s, length + 1, &mut values);
        assert_eq!(refused, Err(RingError::HammingWeight { weight: length + 1, length }));
        assert_eq!(values, before);
    }
    fixed_weight_ternary(&mut s, 0, &mut []).unwrap();
    // Each of the C(6,2)·4 = 60 outcomes alike; six values are padded to eight.
    const DRAWS: u32 = 120_000;
    let mut count = HashMap::new();
    for _ in 0..DRAWS {
        let mut values = [0; 6];
        fixed_weight_ternary(&mut s, 2, &mut values).unwrap();
        *count.entry(values).or_insert(0) += 1;
    }
    assert_eq!(count.len(), 60);
    let observed: Vec<u64> = count.into_values().collect();
    let chi = chi_square(&observed, &[f64::from(DRAWS) / 60.0; 60]);
    assert!(chi < chi_square_bound(59), "{chi}");
}

#[test]
fn gaussian_has_its_distribution() {
    const SAMPLES: usize = 10_000_000;
    let weights = gaussian_weights(SIGMA);
    let sampler = GaussianSampler::standard();
    let mut s = stream(1);
    let mut values = vec![0; 10_000];
    // Bins −16..=16, and one for all beyond.
    let mut count = [0; 34];
    let (mut sum, mut squares) = (0i64, 0i64);
    for _ in 0..SAMPLES / values.len() {
        sampler.sample(&mut s, &mut values);
        for v in &values {
            count[if v.abs() > 16 { 33 } else { (v + 16) as usize }] += 1;
            sum += v;
            squares += v * v;
        }
    }
    let n = SAMPLES as f64;
    let probability = |x: i32| weights[x.unsigned_abs() as usize] / if x == 0 { 1.0 } else { 2.0 };
    let mut expected: Vec<f64> = (-16..=16).map(|x| n * probability(x)).collect();
    expected.push(n - expected.iter().sum::<f64>());
    let chi = chi_square(&count, &expected);
    assert!(chi < chi_square_bound(33), "{chi}");
    // Mean and variance, each within five of its own standard deviations.
    let variance: f64 = weights.iter().enumerate().map(|(k, p)| (k * k) as f64 * p).sum();
    assert!((sum as f64 / n).abs() < 5.0 * (variance / n).sqrt());
    assert!((squares as f64 / n / variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
}

/// Every sample is the documented function of its own 16 bytes.
#[test]
fn gaussian_follows_its_definition() {
    for sigma in [0.5, 1.0, SIGMA, 8.0, 64.0] {
        let sampler = GaussianSampler::new(sigma).unwrap();
        assert_eq!(sampler.sigma(), sigma);
        // above[k] = P(|x| > k).
        let mut above = vec![];
        let mut tail = 0.0;
        for p in gaussian_weights(sigma).into_iter().rev() {
            above.push(tail);
            tail += p;
        }
        above.reverse();
        let mut values = vec![0; 20_001];
        sampler.sample(&mut stream(5), &mut values);
        let mut words = vec![0; 2 * values.len()];
        stream(5).fill_u64(&mut words);
        for (value, pair) in values.iter().zip(words.chunks_exact(2)) {
            let draw = (pair[1] & (u64::MAX >> 1)) as f64 / 2f64.powi(63);
            let found = value.unsigned_abs() as usize;
            let expected = above.iter().take_while(|p| draw < **p).count();
            let near = (above[found.min(expected)] - draw).abs() < 1e-13;
            assert!(found == expected || near, "σ {sigma}: {found} is not {expected}");
            assert!(*value == 0 || (*value < 0) == (pair[1] >> 63 == 1));
            assert!(value.unsigned_abs() <= sampler.bound());
        }
    }
}

/// How much is read depends on the length alone: the part of constant time that shows outside.
#[test]
fn consumption_does_not_depend_on_the_values() {
    let mut values = vec![0; 1000];
    for nonce in 0..200 {
        let mut s = stream(nonce);
        ternary(&mut s, &mut values);
        assert_eq!(s.position(), 8 * 128);
        fixed_weight_ternary(&mut s, nonce as usize, &mut values).unwrap();
        assert_eq!(s.position(), 8 * 128 + 8 * 1000);
        GaussianSampler::standard().sample(&mut s, &mut values);
        assert_eq!(s.position(), 8 * 128 + 8 * 1000 + 16 * 1000);
    }
}

#[test]
fn gaussian_refuses_other_deviations() {
    for sigma in [0.0, 0.499, 64.1, -3.19, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE] {
        let refused = GaussianSampler::new(sigma).map(|s| s.bound());
        assert_eq!(refused, Err(RingError::Sigma { bits: sigma.to_bits() }));
    }
}

#[test]
fn wide_gaussians_have_the_deviation_that_they_state() {
    const SAMPLES: usize = 1 << 16;
    let mut values = vec![0i128; SAMPLES];
    for (nonce, wanted) in
        [20.0, 25.0, 161.0, 163.0, 1e4, 2f64.powi(23) * 1.37, 2f64.powi(69), 2f64.powi(100)].into_iter().enumerate()
    {
        let sampler = WideGaussian::new(wanted).unwrap();
        let sigma = sampler.sigma();
        assert!(sigma >= wanted * (1.0 - 1e-12) && sigma < wanted * 1.3, "{wanted:e} {sigma:e}");
        assert!(wanted < 2f64.powi(20) || sigma < wanted * 1.001, "{wanted:e} {sigma:e}");
        sampler.sample(&mut stream(nonce as u64), &mut values);
        let moment = |k: i32| values.iter().map(|x| (*x as f64 / sigma).powi(k)).sum::<f64>() / SAMPLES as f64;
        // Five standard deviations of each estimate.
        let (n, close) = (SAMPLES as f64, |found: f64, moment: f64, variance: f64| {
            (found - moment).abs() < 5.0 * (variance / SAMPLES as f64).sqrt()
        });
        assert!(close(moment(1), 0.0, 1.0), "{wanted:e}: mean {}", moment(1));
        assert!(close(moment(2), 1.0, 2.0), "{wanted:e}: variance {}", moment(2));
        assert!(close(moment(4), 3.0, 96.0), "{wanted:e}: fourth moment {}", moment(4));
        // The tail that two uniform doubles would cut or thin out is there: P(|x| > 3σ) = 0.0027.
        let beyond = values.iter().filter(|x| (**x as f64).abs() > 3.0 * sigma).count() as f64;
        assert!((beyond - 0.0027 * n).abs() < 5.0 * (0.0027 * n).sqrt() + 0.0004 * n, "{wanted:e}: {beyond}");
    }
}

#[test]
fn wide_gaussians_reach_every_integer_alike() {
    // What is divisible by a power of the base, or odd, is as likely as it should be: digits leave
    // no trace of themselves.
    const SAMPLES: usize = 1 << 17;
    let mut values = vec![0i128; SAMPLES];
    WideGaussian::new(3e5).unwrap().sample(&mut stream(77), &mut values);
    for modulus in [2usize, 8, 24, 64, 97] {
        let mut counts = vec![0u64; modulus];
        values.iter().for_each(|x| counts[x.rem_euclid(modulus as i128) as usize] += 1);
        let expected = vec![SAMPLES as f64 / modulus as f64; modulus];
        let found = chi_square(&counts, &expected);
        assert!(found < chi_square_bound(modulus - 1), "modulo {modulus}: {found}");
    }
    for sigma in [0.0, 19.9, 1e31, f64::NAN, f64::INFINITY, -30.0] {
        let refused = WideGaussian::new(sigma).map(|s| s.sigma());
        assert_eq!(refused, Err(RingError::Sigma { bits: sigma.to_bits() }));
    }
}
