//! Each object and operation with messages high above the noise.

use crate::support::{context, key, streams, words};
use sudare_ring::random::{ObjectSeeds, Seed};
use sudare_tfhe::*;

const N: usize = 512;
/// Messages are multiples of q/16.
const SPACE: u64 = 16;

fn encode(context: &GlweContext, m: &[u64]) -> Vec<u64> {
    m.iter().map(|m| (u128::from(m % SPACE) * u128::from(context.q()) / u128::from(SPACE)) as u64).collect()
}

fn decode(q: u64, phase: u64) -> u64 {
    ((u128::from(phase) * u128::from(SPACE) + u128::from(q / 2)) / u128::from(q)) as u64 % SPACE
}

fn decrypt(key: &GlweSecretKey, c: &GlweCiphertext) -> Vec<u64> {
    key.phase(c).unwrap().iter().map(|x| decode(key.context().q(), *x)).collect()
}

fn all() -> Vec<(GlweSecretKey, Seed)> {
    let mut keys = Vec::new();
    for (i, secret) in [SecretKind::Binary, SecretKind::Ternary].into_iter().enumerate() {
        for (rank, bits) in [(1, 47), (2, 48), (3, 40)] {
            keys.push(key(&context(bits, rank, secret), (8 * i + rank) as u64));
        }
    }
    keys
}

const GADGET: Gadget = Gadget { base_log: 7, levels: 4 };

fn fresh(key: &GlweSecretKey, seed: &Seed, index: u64) -> (Vec<u64>, GlweCiphertext) {
    let m = words(seed, index, SPACE, N);
    let (mut masks, mut errors) = streams(seed, index);
    let c = key.encrypt(&encode(key.context(), &m), &mut masks, &mut errors).unwrap();
    (m, c)
}

#[test]
fn encrypt_add_rotate_extract() {
    for (key, seed) in all() {
        let q = key.context().q();
        let ((m0, c0), (m1, c1)) = (fresh(&key, &seed, 0), fresh(&key, &seed, 1));
        assert_eq!(decrypt(&key, &c0), m0);
        let mut sum = c0.clone();
        sum.add_assign(&c1).unwrap();
        let plain: Vec<u64> = m0.iter().zip(&m1).map(|(x, y)| (x + y) % SPACE).collect();
        assert_eq!(decrypt(&key, &sum), plain);
        sum.sub_assign(&c1).unwrap();
        sum.neg_assign();
        assert_eq!(decrypt(&key, &sum), m0.iter().map(|x| (SPACE - x) % SPACE).collect::<Vec<_>>());
        for steps in [0, 1, 511, 512, 1000] {
            let rotated = decrypt(&key, &c0.rotated(steps));
            for (i, m) in m0.iter().enumerate() {
                let to = (i + steps) % (2 * N);
                let expected = if to < N { *m } else { (SPACE - m) % SPACE };
                assert_eq!(rotated[to % N], expected);
            }
        }
        let lwe = key.to_lwe().unwrap();
        for at in [0, 1, 300, 511] {
            let c = c0.extract(at).unwrap();
            assert_eq!(decode(q, lwe.phase(&c).unwrap()), m0[at]);
        }
        assert!(matches!(c0.extract(N), Err(TfheError::Shape { .. })));
        // LWE arithmetic.
        let (mut x, y) = (c0.extract(3).unwrap(), c1.extract(4).unwrap());
        x.mul_assign(-3);
        x.add_assign(&y).unwrap();
        x.add_plain(encode(key.context(), &[5])[0]);
        assert_eq!(decode(q, lwe.phase(&x).unwrap()), (13 * m0[3] + m1[4] + 5) % SPACE);
    }
}

#[test]
fn external_products_and_cmux() {
    for (key, seed) in all() {
        let ((m0, c0), (m1, c1)) = (fresh(&key, &seed, 0), fresh(&key, &seed, 1));
        for bit in [0i64, 1] {
            let ggsw = GgswCiphertext::encrypt(&key, bit, GADGET, &ObjectSeeds::derive(&seed, "ggsw", 5)).unwrap();
            let product = ggsw.external_product(&c0).unwrap();
            assert_eq!(decrypt(&key, &product), if bit == 1 { m0.clone() } else { vec![0; N] });
            assert_eq!(decrypt(&key, &ggsw.cmux(&c1, &c0).unwrap()), if bit == 1 { m1.clone() } else { m0.clone() });
            let mut c = c0.clone();
            ggsw.rotate_if(&mut c, 700).unwrap();
            assert_eq!(decrypt(&key, &c), decrypt(&key, &c0.rotated(700 * bit as usize)));
        }
        // By a polynomial: 1 − X^7.
        let mut polynomial = vec![0i64; N];
        (polynomial[0], polynomial[7]) = (1, -1);
        let seeds = ObjectSeeds::derive(&seed, "polynomial", 0);
        let ggsw = GgswCiphertext::encrypt_polynomial(&key, &polynomial, GADGET, &seeds).unwrap();
        let mut expected = c0.clone();
        expected.sub_assign(&c0.rotated(7)).unwrap();
        let expected = decrypt(&key, &expected);
        assert_eq!(decrypt(&key, &ggsw.external_product(&c0).unwrap()), expected);
        let glev = GlevCiphertext::encrypt(&key, &polynomial, GADGET, &seeds).unwrap();
        assert_eq!(decrypt(&key, &glev.mul_plain(&encode(key.context(), &m0)).unwrap()), expected);
        let top = decrypt(&key, &glev.level(0).unwrap());
        assert!(top.iter().all(|x| *x == 0), "a level of a GLev is far below q/16 here");
        assert!(glev.level(4).is_err());
    }
}

#[test]
fn key_switches() {
    let gadget = Gadget { base_log: 5, levels: 5 };
    for (key, seed) in all() {
        let context = key.context().clone();
        let q = context.q();
        let (m, c) = fresh(&key, &seed, 0);
        let other = GlweSecretKey::generate(&context, &mut seed.derive("other", 0).stream(0));
        let switch = GlweSwitchKey::generate(&key, &other, gadget, &ObjectSeeds::derive(&seed, "ks", 0)).unwrap();
        assert_eq!(decrypt(&other, &switch.switch(&c).unwrap()), m);

        let long = key.to_lwe().unwrap();
        let inputs: Vec<LweCiphertext> = (0..5).map(|i| c.extract(17 * i).unwrap()).collect();
        let packing = PackingKey::generate(&long, &other, gadget, &ObjectSeeds::derive(&seed, "pack", 0)).unwrap();
        let packed = decrypt(&other, &packing.pack(&inputs.iter().map(Some).collect::<Vec<_>>()).unwrap());
        for (i, x) in packed.iter().enumerate() {
            assert_eq!(*x, if i < 5 { m[17 * i] } else { 0 });
        }

        for kind in [SecretKind::Binary, SecretKind::Ternary] {
            let short = LweSecretKey::generate(301, kind, &mut seed.derive("short", 0).stream(0));
            let noise = NoiseSampler::new(Noise::TUniform { bits: 8 }).unwrap();
            let gadget = Gadget { base_log: 4, levels: 4 };
            let seeds = ObjectSeeds::derive(&seed, "lwe", 0);
            let switch = LweSwitchKey::generate(&long, &short, gadget, &noise, &seeds).unwrap();
            for (i, c) in inputs.iter().enumerate() {
                let small = switch.switch(c).unwrap();
                let phase = u64::from(short.phase_torus(&small).unwrap());
                assert_eq!(decode(1 << 32, phase), m[17 * i], "q = {q}");
                let exponents = small.switch_modulus(2048, kind);
                let inner = exponents.mask.iter().zip(short.coefficients());
                let sum: i64 = inner.map(|(a, s)| i64::from(*a) * s).sum();
                assert_eq!(decode(2048, (i64::from(exponents.body) - sum).rem_euclid(2048) as u64), m[17 * i]);
            }
        }
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let (key, seed) = key(&context(47, 1, SecretKind::Binary), 1);
    let (other, _) = crate::support::key(&context(48, 1, SecretKind::Binary), 2);
    let (wide, _) = crate::support::key(&context(47, 2, SecretKind::Binary), 3);
    let (_, c) = fresh(&key, &seed, 0);
    assert!(matches!(other.phase(&c), Err(TfheError::Modulus { .. })));
    assert!(matches!(wide.phase(&c), Err(TfheError::Shape { .. })));
    let ggsw = GgswCiphertext::encrypt(&key, 1, GADGET, &ObjectSeeds::derive(&seed, "g", 0)).unwrap();
    let foreign = GlweCiphertext::zero(wide.context());
    assert!(ggsw.external_product(&foreign).is_err() && ggsw.cmux(&c, &foreign).is_err());
    let large = Gadget { base_log: 12, levels: 4 };
    assert!(matches!(
        GgswCiphertext::encrypt(&key, 1, large, &ObjectSeeds::derive(&seed, "g", 0)),
        Err(TfheError::Parameters { .. })
    ));
    assert!(GlweCiphertext::trivial(key.context(), &[0; 3]).is_err());
    assert!(GlweCiphertext::trivial(key.context(), &[key.context().q(); N]).is_err());
    assert!(LweCiphertext::from_words(key.context().modulus(), vec![]).is_err());
    assert!(GlweContext::new(512, 12289, 6, SecretKind::Binary, Noise::TUniform { bits: 1 }).is_err());
    assert!(GlweContext::new(500, 12289, 1, SecretKind::Binary, Noise::TUniform { bits: 1 }).is_err());
}
