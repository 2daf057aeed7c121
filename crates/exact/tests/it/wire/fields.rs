//! Every field of the headers of exact objects (BFV, BGV) at its extremes: refused, or harmless.
//!
//! Harmless is an edit after which the object still means one thing to everybody: it is under a key
//! that nobody has, or it decrypts to some message, and its sums and products decrypt to that
//! message's.

use super::edits::edits;
use super::{Objects, T, refusal, reread};
use sudare_exact::ExactError;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::{Ciphertext, Decryptor, Evaluator, Scheme};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::KeyGenerator;
use sudare_rlwe::wire::{Wire, reseal_for_tests};
use sudare_testkit::plain::negacyclic;

/// Whether the ciphertext is one of somebody else's, or arithmetic on it is that of what it decrypts to.
fn is_harmless<S: Scheme>(o: &Objects, server: &Evaluator<S>, bytes: &[u8]) -> bool {
    let Ok(c) = Ciphertext::<S>::from_bytes(&o.params, bytes) else { return false };
    let decryptor = Decryptor::<S>::new(&o.params, &o.secret).unwrap();
    let open = |c: &Ciphertext<S>| decryptor.decrypt(c).map(|p| p.coefficients().to_vec());
    let message = match open(&c) {
        Err(ExactError::Rlwe(RlweError::WrongKey { .. })) => {
            return matches!(server.add(&c, &c), Err(ExactError::Rlwe(RlweError::WrongKey { .. })));
        }
        other => other.unwrap(),
    };
    let double: Vec<u64> = message.iter().map(|x| 2 * x % T).collect();
    if open(&server.add(&c, &c).unwrap()).unwrap() != double {
        return false;
    }
    match server.mul(&c, &c) {
        Ok(product) => open(&product).unwrap() == negacyclic(&message, &message, T),
        Err(ExactError::Rlwe(RlweError::Degree { .. }) | ExactError::Rlwe(RlweError::NoBudget { .. })) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_header_field_at_its_extremes_is_refused_or_harmless() {
    let o = Objects::new();
    let keys = KeyGenerator::new(&o.secret).unwrap().eval_keys(None, &[]).unwrap();
    let bfv = Evaluator::<Bfv>::new(&o.params, keys.clone()).unwrap();
    let bgv = Evaluator::<Bgv>::new(&o.params, keys).unwrap();
    for (name, bytes) in &o.files {
        let (mut tried, mut taken) = (0, Vec::new());
        for (at, edited) in edits(bytes, 160..192, &[T - 1, T, T + 1]) {
            tried += 1;
            let Ok(again) = reread(&o.params, name, &edited) else { continue };
            assert!(again == edited, "{name}, byte {at}: two files of one object");
            taken.push(at);
            let harmless = match name.split_once('_') {
                Some(("bfv", _)) => is_harmless(&o, &bfv, &edited),
                Some(("bgv", _)) => is_harmless(&o, &bgv, &edited),
                _ => true,
            };
            assert!(harmless, "{name}, byte {at} is taken and computes wrongly");
        }
        assert!(tried > 500, "{name}: {tried}");
        taken.dedup();
        // What is taken at all: another key's name, the low bits of the noise bound, another unit as
        // the factor of a BGV ciphertext that is not fresh (it has another message then), another t
        // of parameters.
        let free: &[usize] = match *name {
            "integer_params" => &[128, 132],
            "integer_plaintext" => &[],
            "integer_secret_key" => &[64, 68, 72, 76],
            "bgv_product" | "bgv_low" => &[64, 68, 72, 76, 104, 136],
            _ => &[64, 68, 72, 76, 104],
        };
        assert!(taken.iter().all(|at| free.contains(at)), "{name}: {taken:?}");
    }
}

/// The factors and the noise bound, which products go by.
#[test]
fn what_both_sides_can_compute_is_compared() {
    let o = Objects::new();
    let error = |name: &str, at: usize, with: [u8; 8]| {
        let mut bytes = o.files.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        bytes[at..at + 8].copy_from_slice(&with);
        reseal_for_tests(&mut bytes);
        reread(&o.params, name, &bytes).unwrap_err()
    };
    for name in ["bfv_seeded", "bfv_product", "bfv_low", "bgv_seeded"] {
        // 1 is what a fresh BGV ciphertext has.
        for factor in [2u64, 3, T - 1] {
            let error = error(name, 136, factor.to_le_bytes());
            let refused = matches!(refusal(&error), Some(ExactError::WrongFactor { found, .. }) if *found == factor);
            assert!(refused, "{name}, {factor}: {error}");
        }
    }
    for name in ["bfv_seeded", "bfv_product", "bfv_low", "bgv_seeded", "bgv_product", "bgv_low"] {
        for noise in [0.0f64, 1.0, 500.0] {
            let error = error(name, 104, noise.to_le_bytes());
            assert!(
                matches!(refusal(&error), Some(ExactError::NoiseTooSmall { found, .. }) if *found == noise),
                "{error}"
            );
        }
    }
}
