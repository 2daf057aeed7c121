//! What was read is written as the same bytes, and what was written is read as the same object.

use crate::answer::THEIRS;
use crate::world::{ckks, data, exact};
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::{Encoder, Packing as Values, Wrap};
use sudare_he::ckks as he;
use sudare_lattigo::{Claim, Exchange, Noise, Packing, params};
use sudare_ring::prime::ntt_primes;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::Wire;
use sudare_rlwe::{KeyId, RlweError};

const CLAIM: Claim = Claim { bound: 1.5, noise: Noise::FreshPublicKey };

#[test]
fn their_bytes_come_back() {
    let (exchange, read) = (ckks(), |name: &str| data(&format!("ckks/{name}")).unwrap());
    let secret = exchange.read_secret_key(THEIRS, &read("secret")).unwrap();
    assert_eq!(*exchange.write_secret_key(&secret).unwrap(), read("secret"));
    let keys = exchange.read_eval_keys(THEIRS, &read("keys")).unwrap();
    assert_eq!(exchange.write_eval_keys(&keys).unwrap(), read("keys"));
    for name in ["x.ct", "y.ct", "few.ct"] {
        let (ciphertext, packing) = exchange.read_ciphertext(THEIRS, &read(name), CLAIM).unwrap();
        assert_eq!(exchange.write_ciphertext(&ciphertext, packing).unwrap(), read(name), "{name}");
    }
    let (plain, packing) = exchange.read_plaintext(&read("x.pt"), 1.5).unwrap();
    assert_eq!(exchange.write_plaintext(&plain, packing).unwrap(), read("x.pt"));

    let (exchange, read) = (exact(), |name: &str| data(&format!("exact/{name}")).unwrap());
    let secret = exchange.read_secret_key(THEIRS, &read("secret")).unwrap();
    assert_eq!(*exchange.write_secret_key(&secret).unwrap(), read("secret"));
    let keys = exchange.read_eval_keys(THEIRS, &read("keys")).unwrap();
    assert_eq!(exchange.write_eval_keys(&keys).unwrap(), read("keys"));
    for name in ["x.ct", "y.ct", "bfv-y.ct"] {
        let (ciphertext, packing) =
            exchange.read_ciphertext::<Bgv>(THEIRS, &read(name), Noise::FreshPublicKey).unwrap();
        assert_eq!(exchange.write_ciphertext(&ciphertext, packing).unwrap(), read(name), "{name}");
    }
    let bfv = exchange.read_ciphertext::<Bfv>(THEIRS, &read("bfv-y.ct"), Noise::FreshSecretKey).unwrap().0;
    assert_eq!(exchange.write_ciphertext(&bfv, exchange.all_slots().unwrap()).unwrap(), read("bfv-y.ct"));
}

/// Single keys, at each level: the same pairs come back, and they travel in our own format too, without a seed.
#[test]
fn keys_of_each_level() {
    let literal = ParamsLiteral {
        log_n: 9,
        q_bits: vec![40; 3],
        p_bits: vec![41; 2],
        digit_limbs: 2,
        secret: SecretDistribution::FixedWeight { weight: 64 },
        security: Security::Insecure,
    };
    let params = he::ParamsLiteral { rlwe: literal, log_scale: 30 }.build().unwrap();
    let exchange = Exchange::new(params.clone()).unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let generator = KeyGenerator::new(&secret).unwrap();
    for level in 0..=2 {
        let key = generator.relin_key(level).unwrap();
        let again = exchange.read_relin_key(&exchange.write_relin_key(&key).unwrap()).unwrap();
        let galois = generator.galois_key(params.rotation_element(3), level).unwrap();
        let turned = exchange.read_galois_key(&exchange.write_galois_key(&galois).unwrap()).unwrap();
        assert_eq!(turned.element(), galois.element());
        for (key, again) in [(&key, &again), (galois.key(), turned.key())] {
            assert_eq!((again.level(), again.digits(), again.seed()), (level, key.digits(), None));
            for j in 0..key.digits() {
                assert_eq!(key.a(j).words(), again.a(j).words());
                assert_eq!(key.b(j).words(), again.b(j).words());
            }
        }
    }
    let keys = generator.eval_keys(Some(1), &[(5, 2), (25, 0)]).unwrap();
    let bytes = exchange.write_eval_keys(&keys).unwrap();
    let theirs = exchange.read_eval_keys(KeyId([3; 16]), &bytes).unwrap();
    let stored = theirs.to_bytes().unwrap();
    let again = sudare_rlwe::keys::EvalKeys::from_bytes(&params, &stored).unwrap();
    assert_eq!((again.id(), again.galois_keys().count()), (KeyId([3; 16]), 2));
    assert_eq!(again.to_bytes().unwrap(), stored);
    assert_eq!(exchange.write_eval_keys(&again).unwrap(), bytes);

    let public = exchange.write_public_key(&secret).unwrap();
    let public = exchange.read_public_key(secret.id(), &public).unwrap();
    let stored = public.to_bytes().unwrap();
    let again = sudare_rlwe::keys::PublicKey::from_bytes(&params, &stored).unwrap();
    assert!(again.polys().iter().zip(public.polys()).all(|(a, b)| a.words() == b.words()));
    let encoder = he::Encoder::new(&params);
    let x = he::Encryptor::with_public_key(&again).unwrap().encrypt(&encoder.encode(&[0.5], 1.0).unwrap()).unwrap();
    let found = encoder.decode(&he::Decryptor::new(&secret).decrypt(&x).unwrap()).unwrap();
    assert!((found[0] - 0.5).abs() < x.error_bound());
}

#[test]
fn parameters() {
    // Wide, narrow and few primes; none special.
    for (q, p, secret) in [
        (vec![60, 30, 61], vec![61], SecretDistribution::Ternary),
        (vec![45; 4], vec![46, 46], SecretDistribution::FixedWeight { weight: 100 }),
        (vec![50], vec![], SecretDistribution::Ternary),
    ] {
        let digit_limbs = p.len().max(1);
        let rlwe = ParamsLiteral { log_n: 10, q_bits: q, p_bits: p, digit_limbs, secret, security: Security::Insecure };
        let params = he::ParamsLiteral { rlwe, log_scale: 25 }.build().unwrap();
        let json = params::ckks_to_json(&params).unwrap();
        let again = params::ckks_from_json(json.as_bytes(), Security::Insecure).unwrap();
        // The very set, by its hash.
        assert_eq!(again, params);
        let integers = sudare_exact::IntegerParams::new(&params.literal().rlwe.build(SchemeTag(1)).unwrap(), 65537);
        let json = params::integer_to_json(integers.as_ref().unwrap()).unwrap();
        assert_eq!(params::integer_from_json(json.as_bytes(), Security::Insecure).unwrap(), integers.unwrap());
    }
}

/// t with slots for all coefficients, for half of them, and with none here: values come back in their order.
#[test]
fn plaintext_moduli() {
    for (log_n, t, slots) in [(9, 12289, Some(512)), (11, 12289, Some(2048)), (12, 12289, Some(2048)), (11, 257, None)]
    {
        let rlwe = ParamsLiteral {
            log_n,
            q_bits: vec![50, 45],
            p_bits: Vec::new(),
            digit_limbs: 1,
            secret: SecretDistribution::Ternary,
            security: Security::Insecure,
        };
        let params = sudare_exact::IntegerParams::new(&rlwe.build(SchemeTag(1)).unwrap(), t).unwrap();
        let exchange = Exchange::new(params.clone()).unwrap();
        assert_eq!(slots, params.has_slots().then(|| params.slots()));
        let encoder = Encoder::new(&params);
        let packing = if slots.is_some() { Values::Slots } else { Values::Coefficients };
        let theirs = exchange.all_slots().unwrap_or(Packing::Coefficients);
        let values: Vec<u64> = (0..slots.unwrap_or(100) as u64).map(|i| (i * i + 1) % t).collect();
        let plain = encoder.encode_unsigned(&values, packing, Wrap::Refuse).unwrap();
        for level in 0..=1 {
            let bytes = exchange.write_plaintext(&plain, level, theirs).unwrap();
            assert_eq!(exchange.read_plaintext(&bytes).unwrap(), (plain.clone(), theirs));
        }
    }
}

/// Primes that our own search would not pick, in an order of their own.
#[test]
fn primes_chosen_elsewhere() {
    let mut primes = ntt_primes(512, 45, 6, &[]).unwrap();
    primes.reverse();
    let literal = ParamsLiteral {
        log_n: 9,
        q_bits: Vec::new(),
        p_bits: Vec::new(),
        digit_limbs: 2,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    };
    let params = literal.build_over(SchemeTag(30), &primes[..4], &primes[4..]).unwrap();
    assert!(params.q().primes().eq(primes[..4].iter().copied()) && params.p().primes().eq(primes[4..].iter().copied()));
    assert_eq!(params.literal().q_bits, [45; 4]);
    let refused = |q: &[u64], p: &[u64]| literal.build_over(SchemeTag(30), q, p).unwrap_err();
    assert!(matches!(refused(&primes[..4], &primes[4..5]), RlweError::Parameters { .. }));
    assert!(matches!(refused(&[], &[]), RlweError::Parameters { .. }));
    assert!(matches!(refused(&primes[..4], &primes[3..5]), RlweError::Ring(_)));
    assert!(matches!(refused(&[(1 << 61) + 1], &[]), RlweError::Ring(_)));
    assert!(matches!(refused(&[primes[0] + 2], &[]), RlweError::Ring(_)));
}
