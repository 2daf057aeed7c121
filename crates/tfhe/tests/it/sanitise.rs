//! Randomised bootstraps: bits survive, and what comes out does not depend on what went in.

use sudare_ring::random::Seed;
use sudare_ring::{Threads, threads};
use sudare_rlwe::RlweError;
use sudare_rlwe::security::Security;
use sudare_tfhe::leveled::*;
use sudare_tfhe::sanitise::sanitised;
use sudare_tfhe::{ClientKey, LweCiphertext, Noise, Plaintext, SecretKind, ServerKey, TfheError, TfheLiteral};

/// Bits for each input whose noise is measured here; unit tests of the steps see 10^5 numbers.
const SAMPLES: usize = 192;

struct World {
    key: ClientKey,
    server: ServerKey,
    client: LeveledClient,
    zeros: Vec<LeveledGlwe>,
}

/// Fewer and shorter steps, for many bits: the formula is the same.
fn small_world() -> World {
    built(TfheLiteral {
        lwe_dimension: 8,
        rank: 1,
        modulus_bits: 24,
        bootstrap_digits: (6, 4),
        module_switch: false,
        ..literal()
    })
}

fn world() -> World {
    built(literal())
}

fn literal() -> TfheLiteral {
    TfheLiteral {
        lwe_dimension: 16,
        lwe_noise: Noise::Uniform { bound: 2000 },
        rank: 2,
        modulus_bits: 39,
        glwe_noise: Noise::Gaussian { sigma: 4.45 },
        bootstrap_digits: (13, 3),
        unroll: 1,
        security: Security::Insecure,
        plaintext: Plaintext::Bit,
        ..TfheLiteral::gates()
    }
}

fn built(literal: TfheLiteral) -> World {
    let (rank, modulus_bits) = (literal.rank, literal.modulus_bits);
    let leveled = LeveledLiteral {
        log_n: 9,
        rank,
        modulus_bits,
        secret: SecretKind::Binary,
        noise: literal.glwe_noise,
        digits: (18, 1),
        message_bits: 1,
        log_failure: -128.0,
        security: Security::Insecure,
    };
    let key = ClientKey::from_seed(&literal.build().unwrap(), &Seed::from_bytes([1; 32])).unwrap();
    let client = LeveledClient::sharing(&leveled.build().unwrap(), &key).unwrap();
    let zeros = (0..rank).map(|_| client.encrypt(&[]).unwrap()).collect();
    World { server: key.server_key().unwrap(), key, client, zeros }
}

/// Ciphertexts of a bit whose noise is exactly `offset` of the modulus.
fn bits(w: &World, bit: u64, offset: f64, count: usize) -> Vec<LeveledLwe> {
    let (context, params) = (w.client.params().context(), w.client.params());
    let q = context.modulus();
    let phase = q.add(params.encode(bit).unwrap(), q.reduce_i64((offset * q.value() as f64) as i64));
    let owner = (params.hash(), Some(w.key.id()));
    (0..count).map(|_| LeveledLwe::from_parts(w.key.encrypt_phase(phase).unwrap(), (0.01f64).powi(2), owner)).collect()
}

/// Mean and mean square of the noise, as fractions of the modulus.
fn noise(w: &World, bit: u64, cs: &[LeveledLwe]) -> (f64, f64) {
    let (q, params) = (w.client.params().context().modulus(), w.client.params());
    let of = |c: &LweCiphertext| {
        let phase = w.key.extracted().phase(c).unwrap();
        q.center(q.sub(phase, params.encode(bit).unwrap())) as f64 / q.value() as f64
    };
    let all: Vec<f64> = cs.iter().map(|c| of(c.ciphertext())).collect();
    let n = all.len() as f64;
    (all.iter().sum::<f64>() / n, all.iter().map(|x| x * x).sum::<f64>() / n)
}

#[test]
fn noise_does_not_depend_on_the_input() {
    let w = small_world();
    let pool = Threads::new(0);
    let predicted =
        sanitised(&w.server).unwrap() + rerandomised(w.client.params(), w.zeros.len(), w.zeros[0].variance());
    let count = SAMPLES as f64;
    let found = [(1, 0.04), (0, -0.04), (1, 0.0), (0, 0.0)].map(|(bit, offset)| {
        let inputs = bits(&w, bit, offset, SAMPLES);
        let seed = Seed::from_entropy().unwrap();
        let outputs = pool.run(|| w.server.sanitise(w.client.params(), &inputs, &w.zeros, &seed)).unwrap();
        assert!(outputs.iter().all(|c| w.client.decrypt_lwe(c).unwrap() == bit));
        noise(&w, bit, &outputs)
    });
    // Five deviations of the mean and of the mean square of so many, and of their differences.
    let [of_mean, of_square] = [5.0 * (predicted / count).sqrt(), 5.0 * predicted * (2.0 / count).sqrt()];
    for (i, (mean, square)) in found.into_iter().enumerate() {
        assert!(mean.abs() < of_mean, "input {i}: mean {mean:e}");
        assert!((square - predicted).abs() < of_square, "input {i}: {} of the variance", square / predicted);
        for (j, (m, s)) in found.into_iter().enumerate().skip(i + 1) {
            assert!((mean - m).abs() < 2f64.sqrt() * of_mean, "inputs {i} and {j}: {mean:e}, {m:e}");
            assert!((square - s).abs() < 2f64.sqrt() * of_square, "inputs {i} and {j}: {}", square / s);
        }
    }
    // Other randomness, another ciphertext; the same, the same, on any number of threads.
    let input = bits(&w, 1, 0.0, 1);
    let run = |seed: u8| w.server.sanitise(w.client.params(), &input, &w.zeros, &Seed::from_bytes([seed; 32])).unwrap();
    let (a, b, c) = (run(1), run(2), pool.run(|| run(1)));
    assert_ne!(a[0].ciphertext(), b[0].ciphertext());
    assert_eq!(a[0].ciphertext(), c[0].ciphertext());
    let _ = threads::count();
}

#[test]
fn new_masks_keep_the_message_and_their_noise_bound() {
    let w = world();
    let server = LeveledServer::new(w.client.params());
    let messages: Vec<u64> = (0..512).map(|i| (i / 3) & 1).collect();
    let c = w.client.encrypt(&messages).unwrap();
    let mut sum = 0.0;
    let mut bound = 0.0;
    for i in 0..40 {
        let fresh = server.rerandomise(&c, &w.zeros, &Seed::from_bytes([i; 32])).unwrap();
        assert_eq!(w.client.decrypt(&fresh, 512).unwrap(), messages);
        assert_ne!(fresh.ciphertext().mask(0), c.ciphertext().mask(0));
        sum += w.client.noise_for_tests(&fresh, &messages).unwrap() / 40.0;
        bound = fresh.variance();
    }
    let ratio = sum / bound;
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
    assert!(matches!(server.rerandomise(&c, &w.zeros[1..], &Seed::from_bytes([0; 32])), Err(TfheError::Shape { .. })));
}

#[test]
fn refusals() {
    let w = world();
    let seed = Seed::from_bytes([9; 32]);
    let good = bits(&w, 1, 0.0, 1);
    let noisy = LeveledLwe::from_parts(good[0].ciphertext().clone(), 0.01, good[0].owner());
    let refused = w.server.sanitise(w.client.params(), &[noisy], &w.zeros, &seed);
    assert!(matches!(refused, Err(TfheError::FailureProbability { .. })));
    let foreign = LeveledLwe::from_parts(
        good[0].ciphertext().clone(),
        0.0,
        (good[0].owner().0, Some(sudare_rlwe::KeyId([7; 16]))),
    );
    let refused = w.server.sanitise(w.client.params(), &[foreign], &w.zeros, &seed);
    assert!(matches!(refused, Err(TfheError::Rlwe(RlweError::WrongKey { .. }))));
    // Digits that drop bits of the modulus tell of the input.
    let set = TfheLiteral { bootstrap_digits: (12, 3), ..w.key.params().literal().clone() };
    let key = ClientKey::generate(&set.build().unwrap()).unwrap();
    let refused = key.server_key().unwrap().sanitise(w.client.params(), &good, &w.zeros, &seed);
    assert!(matches!(refused, Err(TfheError::Parameters { .. })));
}
