//! Messages: plaintexts, and what encoders and decoders work with. What the caller passes in or takes out is the
//! caller's to wipe, as the tests do.

use crate::literal;
use num_complex::Complex64;
use sudare_exact as integer;
use sudare_exact::{IntegerParams, Packing, Wrap};
use sudare_he::ckks::{Decryptor, EncodeAt, Encoder, Encryptor, Params};
use sudare_packings::bv;
use sudare_ring::embedding::Embedding;
use sudare_ring::random::Seed;
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::security::Security;
use sudare_testkit::memory::{Needles, WIDE, gone_after_drop};
use zeroize::Zeroize;

/// The set of these tests: two primes and two hold a message of any scale that is tried.
fn params() -> Params {
    literal(10, &[45, 40, 40], &[], 1, 30).build().unwrap()
}

/// Random numbers in [−1, 1).
fn numbers(count: usize) -> Vec<f64> {
    let mut words = vec![0u64; count];
    Seed::from_entropy().unwrap().stream(0).fill_u64(&mut words);
    let out = words.iter().map(|w| (w >> 11) as f64 * (-52f64).exp2() - 1.0).collect();
    words.zeroize();
    out
}

/// Random integers between −bound and bound.
fn integers(count: usize, bound: i64) -> Vec<i64> {
    let mut words = vec![0u64; count];
    Seed::from_entropy().unwrap().stream(0).fill_u64(&mut words);
    let out = words.iter().map(|w| *w as i64 % bound).collect();
    words.zeroize();
    out
}

fn wipe(slots: &mut [Complex64]) {
    slots.iter_mut().flat_map(|z| [&mut z.re, &mut z.im]).for_each(Zeroize::zeroize);
}

fn floats<'a>(needles: &mut Needles, name: &str, values: impl IntoIterator<Item = &'a f64>) {
    needles.add(name, values.into_iter().map(|x| x.to_bits()), WIDE);
}

/// The polynomial of a message, before it is scaled and after.
fn embedded(needles: &mut Needles, params: &Params, values: &[f64], scale: f64) {
    let (mut re, mut im) = (values.to_vec(), vec![0.0; values.len()]);
    params.embedding().embed_inverse_split(&mut re, &mut im);
    for (name, half) in [("passing coefficients, first half", &re), ("passing coefficients, second half", &im)] {
        floats(needles, name, half);
        if scale < 62f64.exp2() {
            needles.add(name, half.iter().map(|x| (x * scale).round() as i64 as u64), WIDE);
        } else {
            // Past a word: mantissas, each with its shift. A cast would saturate, and the largest words are in
            // any memory.
            let mantissa = |x: &f64| {
                let shift = ((x * scale).abs().max(1.0).log2().ceil() as i32 - 61).max(0);
                [((x * scale) * f64::from(-shift).exp2()).round() as i64 as u64, shift as u64]
            };
            needles.add(name, half.iter().flat_map(mantissa), WIDE);
        }
    }
    [&mut re, &mut im].into_iter().for_each(Zeroize::zeroize);
}

#[test]
fn approximate_plaintexts() {
    // Of one prime, of two, and past a word.
    for (level, scale) in [(0, 30f64.exp2()), (1, 60f64.exp2()), (2, 70f64.exp2())] {
        gone_after_drop(|needles| {
            let params = params();
            let key = SecretKey::generate(&params).unwrap();
            let encoder = Encoder::new(&params);
            let mut values = numbers(params.slots());
            floats(needles, "passing values", &values);
            embedded(needles, &params, &values, scale);
            let at = EncodeAt { level, scale, max_abs: 1.0 };
            let plain = encoder.encode_at(&values, at).unwrap();
            needles.add("the plaintext", plain.poly().limb(0).iter().copied(), WIDE);
            let ciphertext = Encryptor::with_secret_key(&key).unwrap().encrypt(&plain).unwrap();
            let opened = Decryptor::new(&key).decrypt(&ciphertext).unwrap();
            needles.add("the decrypted plaintext", opened.poly().limb(0).iter().copied(), WIDE);
            let mut decoded = encoder.decode(&opened).unwrap();
            floats(needles, "passing decoded values", &decoded);
            let mut coefficients = encoder.decode_coefficients(&opened).unwrap();
            floats(needles, "passing decoded coefficients", &coefficients);
            let mut complex = encoder.decode_complex(&opened).unwrap();
            floats(needles, "passing imaginary parts", complex.iter().map(|z| &z.im));
            wipe(&mut complex);
            let again = encoder.encode_coefficients(&coefficients, at).unwrap();
            [&mut values, &mut decoded, &mut coefficients].into_iter().for_each(Zeroize::zeroize);
            (plain, opened, again)
        });
    }
}

#[test]
fn the_scratch_of_an_embedding() {
    gone_after_drop(|needles| {
        let embedding = Embedding::new(1024).unwrap();
        let mut values = numbers(1024);
        for (name, half) in values.chunks_exact(512).enumerate() {
            floats(needles, &format!("passing part {name}"), half);
        }
        let mut slots: Vec<Complex64> =
            values[..512].iter().zip(&values[512..]).map(|(x, y)| Complex64::new(*x, *y)).collect();
        values.zeroize();
        embedding.embed_inverse(&mut slots);
        for part in [0, 1] {
            let half = slots.iter().map(|z| if part == 0 { &z.re } else { &z.im });
            floats(needles, &format!("passing transformed part {part}"), half);
        }
        embedding.embed(&mut slots);
        wipe(&mut slots);
    });
}

#[test]
fn exact_plaintexts() {
    fn run<S: integer::Scheme>(packing: Packing) {
        gone_after_drop(|needles| {
            let (params, t) = (params(), integer::plan::slot_modulus(34, 10).unwrap());
            let key = SecretKey::generate(&params).unwrap();
            let params = IntegerParams::new(&params, t).unwrap();
            let encoder = integer::Encoder::new(&params);
            let mut values = vec![0u64; 1024];
            Seed::from_entropy().unwrap().stream(0).fill_u64(&mut values);
            values.iter_mut().for_each(|x| *x %= t);
            needles.add("passing values", values.iter().copied(), WIDE);
            let plain = encoder.encode_unsigned(&values, packing, Wrap::Refuse).unwrap();
            needles.add("the plaintext", plain.coefficients().iter().copied(), WIDE);
            let centred = plain.coefficients().iter().map(|x| params.modulus().center(*x) as u64);
            needles.add("passing centred", centred, WIDE);
            let ciphertext = integer::Encryptor::<S>::with_secret_key(&params, &key).unwrap().encrypt(&plain).unwrap();
            let opened = integer::Decryptor::<S>::new(&params, &key).unwrap().decrypt(&ciphertext).unwrap();
            let mut decoded = encoder.decode_unsigned(&opened, packing).unwrap();
            assert_eq!(decoded, values);
            let mut centred = encoder.decode_signed(&opened, packing).unwrap();
            [&mut values, &mut decoded].into_iter().for_each(Zeroize::zeroize);
            centred.zeroize();
            (plain, opened, ciphertext)
        });
    }
    for packing in [Packing::Slots, Packing::Coefficients] {
        run::<sudare_exact::bfv::Bfv>(packing);
        run::<sudare_exact::bgv::Bgv>(packing);
    }
}

#[test]
fn bv_plaintexts() {
    gone_after_drop(|needles| {
        let literal = bv::ParamsLiteral {
            log_n: 10,
            q_bits: vec![49, 49, 49],
            t: (1 << 40) + 15,
            sigma: 3.19,
            max_length: 2,
            security: Security::Insecure,
        };
        let params = literal.build().unwrap();
        let key = bv::SecretKey::generate(&params).unwrap();
        let public = key.public_key().unwrap();
        let mut values: Vec<i64> = integers(1024, 1 << 39);
        needles.add("passing values", values.iter().map(|x| *x as u64), WIDE);
        let plain = bv::Plaintext::new(&params, &values).unwrap();
        needles.add("the plaintext", plain.residues().iter().copied(), WIDE);
        let ciphertext = bv::Encryptor::new(&public).unwrap().encrypt(&plain).unwrap();
        let opened = bv::Decryptor::new(&key).decrypt(&ciphertext).unwrap();
        let mut centred = opened.centered();
        assert_eq!(centred, values);
        [&mut values, &mut centred].into_iter().for_each(Zeroize::zeroize);
        (plain, opened, ciphertext)
    });
}
