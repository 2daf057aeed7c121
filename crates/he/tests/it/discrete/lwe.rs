//! Bits of TFHE through tables and back, as bits of TFHE.

use super::World;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, Bootstrapper};
use sudare_he::discrete::{Coefficients, Evaluator, Form, Gate, LweKeys, LweParams, Table, place, turn};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::security::Security;
use sudare_rlwe::wire::{Wire, WireError, reseal_for_tests, secret_key_from_bytes, secret_key_to_bytes};
use sudare_rlwe::{Decryptor, RlweError};
use sudare_testkit::{Random, sized};
use sudare_tfhe::exchange::LweForm;
use sudare_tfhe::wire::{tfhe_client_key_from_bytes, tfhe_client_key_to_bytes};
use sudare_tfhe::{ClientKey, EncryptedBit, Gate as TfheGate, Plaintext, TfheError, TfheLiteral};
use zeroize::Zeroizing;

/// TFHE's gates with a short key, by the name insecure.
fn gates() -> TfheLiteral {
    TfheLiteral { lwe_dimension: 64, security: Security::Insecure, ..TfheLiteral::gates() }
}

/// Both schemes.
struct Both {
    world: World,
    client: ClientKey,
    keys: LweKeys,
}

impl Both {
    fn new(literal: BootstrapLiteral, log_n: u32, form: LweForm) -> Self {
        let world = World::small(literal, log_n);
        let client = ClientKey::generate(&gates().build().unwrap()).unwrap();
        let params = LweParams::new(world.server.params(), client.params(), form).unwrap();
        let keys = LweKeys::generate(&params, &world.secret, &client).unwrap();
        Self { world, client, keys }
    }

    fn encrypt(&self, bits: &[bool]) -> Vec<EncryptedBit> {
        bits.iter().map(|bit| self.client.encrypt_bit(*bit).unwrap()).collect()
    }

    /// The phases of coefficients over q_0, centred.
    fn phases(&self, c: &Coefficients) -> Vec<f64> {
        let copy = Zeroizing::new(self.world.secret.coefficients().to_vec());
        let secret = SecretKey::from_coefficients(c.inner().params(), c.key(), copy).unwrap();
        let q = c.inner().params().prime_at(0) as f64;
        let phase = Decryptor::new(&secret).phase(c.inner(), 0).unwrap().to_coeff();
        // What the transforms read is m(X^g).
        let [_, back] = turn(self.world.server.params());
        let phase = phase.automorphism(back).unwrap().centered();
        phase.into_iter().map(|x| x as f64 / q).collect()
    }
}

/// Encrypted bits and results of gates, packed, read by tables, split, and read by TFHE's gates again.
#[test]
fn bits_go_through_tables_and_come_back() {
    let log_n = sized(10, 13);
    for (literal, modulus) in [(BootstrapLiteral::g15(), 4), (BootstrapLiteral::s15(), 4), (BootstrapLiteral::l15(), 2)]
    {
        let Both { world, client, keys } = &Both::new(literal, log_n, LweForm::AtRest);
        let (n, tfhe) = (world.len(), client.server_key().unwrap());
        let plain = world.random_bits(&mut Random(31));
        let mut bits: Vec<EncryptedBit> = plain.iter().map(|bit| client.encrypt_bit(*bit).unwrap()).collect();
        let mut wanted = plain;
        for i in 0..8 {
            bits[i] = tfhe.gate(TfheGate::Xor, &bits[i], &bits[i + 8]).unwrap();
            wanted[i] ^= wanted[i + 8];
        }
        let packed = world.server.from_bits(keys, &bits).unwrap();
        assert_eq!(packed.modulus(), modulus);
        let [not, identity] = [[1, 0], [0, 1]].map(|f| Table::of_bit(modulus, modulus, f).unwrap());
        let form = if modulus == 2 { Form::Split } else { Form::Packed };
        let results = world.server.tables_of(&[&packed], &[not, identity], form).unwrap().remove(0);
        let expected: Vec<u64> = wanted.iter().map(|bit| u64::from(*bit)).collect();
        assert_eq!(world.decrypt(&results[1]), expected);
        assert_eq!(world.decrypt(&results[0]), expected.iter().map(|x| 1 - x).collect::<Vec<_>>());
        let back = world.server.to_bits(keys, &results[0]).unwrap();
        assert_eq!(back.len(), n);
        let found: Vec<bool> = (0..n).map(|i| client.decrypt_bit(&back.get(i).unwrap()).unwrap()).collect();
        assert!(found.iter().zip(&wanted).all(|(found, bit)| *found != *bit));
        for i in 0..8 {
            let out = tfhe.gate(TfheGate::And, &back.get(i).unwrap(), &back.get(n - 1 - i).unwrap()).unwrap();
            assert_eq!(client.decrypt_bit(&out).unwrap(), !wanted[i] & !wanted[n - 1 - i]);
        }
        assert!(matches!(back.get(n), Err(HeError::Rlwe(RlweError::TooManyValues { .. }))));
    }
}

/// A batch that is not full has zeros behind it, and a gate of the slots takes what came from TFHE.
#[test]
fn a_few_bits_and_a_gate() {
    let both = Both::new(BootstrapLiteral::g15(), 10, LweForm::AtRest);
    let server = &both.world.server;
    let plain = [true, false, true, true, false];
    let identity = Table::of_bit(4, 4, [0, 1]).unwrap();
    let packed = server.from_bits(&both.keys, &both.encrypt(&plain)).unwrap();
    let x = server.tables_of(&[&packed], std::slice::from_ref(&identity), Form::Packed).unwrap().remove(0).remove(0);
    let mut wanted = vec![0; both.world.len()];
    wanted.iter_mut().zip(plain).for_each(|(x, bit)| *x = u64::from(bit));
    assert_eq!(both.world.decrypt(&x), wanted);
    let own = both.world.bits(&[true; 3], Form::Packed);
    let sum = both.world.decrypt(&server.gate(Gate::XOR, &x, &own).unwrap());
    assert_eq!(sum[..5], [0, 1, 0, 1, 0]);
    let none = server.from_bits(&both.keys, &[]).unwrap();
    let zeros = server.tables_of(&[&none], &[identity], Form::Packed).unwrap().remove(0).remove(0);
    assert!(both.world.decrypt(&zeros).iter().all(|x| *x == 0));
}

/// Bits that the server's key has switched to dimension n.
#[test]
fn switched_bits() {
    let both = Both::new(BootstrapLiteral::g15(), 10, LweForm::Switched);
    let (server, tfhe) = (&both.world.server, both.client.server_key().unwrap());
    let plain = both.world.random_bits(&mut Random(5));
    let switched: Vec<_> =
        both.encrypt(&plain).iter().map(|bit| tfhe.switch_key().switch(bit.ciphertext()).unwrap()).collect();
    let variance = both.keys.params().exchange().input_variance();
    let packed = server.from_switched_bits(&both.keys, &switched, variance).unwrap();
    let identity = Table::of_bit(4, 4, [0, 1]).unwrap();
    let x = server.tables_of(&[&packed], &[identity], Form::Packed).unwrap().remove(0).remove(0);
    assert_eq!(both.world.decrypt(&x), plain.iter().map(|bit| u64::from(*bit)).collect::<Vec<_>>());
}

/// What packing, rounding to q_0 and the key switch add; fresh bits have next to no noise of their own. The way back is measured
/// in TFHE's own tests.
#[test]
fn packed_phases_have_the_predicted_noise() {
    let (keys, log_n) = (sized(3, 24), 12);
    let (mut measured, mut predicted, mut count) = (0.0, 0.0, 0);
    for seed in 0..keys {
        let both = Both::new(BootstrapLiteral::g15(), log_n, LweForm::AtRest);
        let plain = both.world.random_bits(&mut Random(seed));
        let packed = both.world.server.from_bits(&both.keys, &both.encrypt(&plain)).unwrap();
        let phases = both.phases(&packed);
        let errors = plain.iter().enumerate().map(|(i, bit)| phases[place(plain.len(), i)] - f64::from(*bit) / 4.0);
        let errors: Vec<f64> = errors.collect();
        assert!(errors.iter().all(|e| 4.0 * e.abs() < packed.error()));
        measured += errors.iter().map(|e| e * e).sum::<f64>();
        count += errors.len();
        let params = both.keys.params();
        predicted += plain.len() as f64 * params.entry_variance();
    }
    let ratio = measured / predicted;
    assert!((ratio - 1.0).abs() < 0.03 + 4.0 * (2.0 / count as f64).sqrt(), "{ratio} of {count}");
}

/// Coefficients of slots and slots of coefficients: each integer in its place.
#[test]
fn every_integer_has_its_place() {
    let both = Both::new(BootstrapLiteral::s15(), 10, LweForm::AtRest);
    let n = both.world.len();
    let x = both.world.integers(&mut Random(8), 16);
    let value = both.world.encrypt(&x, 16, Form::Packed);
    let coefficients = both.world.server.to_coefficients(&[&value]).unwrap().remove(0);
    let phases = both.phases(&coefficients);
    for (i, x) in x.iter().enumerate() {
        let off = phases[place(n, i)] * 16.0 - *x as f64;
        assert!((off - 16.0 * (off / 16.0).round()).abs() <= coefficients.error(), "{i}: {off}");
    }
    let table = Table::of(16, 16, |x| 3 * x % 16).unwrap();
    let found = both.world.server.tables_of(&[&coefficients], &[table], Form::Packed).unwrap().remove(0).remove(0);
    assert_eq!(both.world.decrypt(&found), x.iter().map(|x| 3 * x % 16).collect::<Vec<_>>());
}

#[test]
fn strangers_and_noise_are_refused() {
    let (both, other) = (
        Both::new(BootstrapLiteral::g15(), 10, LweForm::AtRest),
        Both::new(BootstrapLiteral::g15(), 10, LweForm::Switched),
    );
    let (server, bits) = (&both.world.server, both.encrypt(&[true]));
    let wrong_key = |error: HeError| matches!(error, HeError::Rlwe(RlweError::WrongKey { .. }));
    assert!(wrong_key(server.from_bits(&other.keys, &bits).unwrap_err()));
    assert!(wrong_key(server.from_bits(&both.keys, &other.encrypt(&[true])).unwrap_err()));
    let many = vec![bits[0].clone(); both.world.len() + 1];
    assert!(matches!(server.from_bits(&both.keys, &many), Err(HeError::Rlwe(RlweError::TooManyValues { .. }))));
    // Keys of another form, and ciphertexts of another dimension.
    let tfhe = both.client.server_key().unwrap();
    let switched = [tfhe.switch_key().switch(bits[0].ciphertext()).unwrap()];
    assert_eq!(server.from_switched_bits(&both.keys, &switched, 0.0).unwrap_err().kind(), ErrorKind::Parameters);
    let short = TfheLiteral { lwe_dimension: 48, ..gates() }.build().unwrap();
    let server_of_short = ClientKey::generate(&short).unwrap();
    let foreign = server_of_short.server_key().unwrap();
    let shorter = foreign.switch_key().switch(server_of_short.encrypt_bit(true).unwrap().ciphertext()).unwrap();
    let refused = other.world.server.from_switched_bits(&other.keys, &[shorter], 0.0).unwrap_err();
    assert!(matches!(refused, HeError::Tfhe(TfheError::Shape { expected: 64, found: 48, .. })), "{refused}");
    // A client of another set, integers in place of bits, a ring that is too small.
    let params = both.keys.params();
    assert!(LweKeys::generate(params, &both.world.secret, &server_of_short).is_err());
    let integers = both.world.encrypt(&[3], 4, Form::Packed);
    assert_eq!(server.to_bits(&both.keys, &integers).unwrap_err().kind(), ErrorKind::Parameters);
    let small = World::small(BootstrapLiteral::g15(), 9);
    let wide = TfheLiteral { log_n: 10, rank: 1, ..gates() }.build().unwrap();
    assert!(LweParams::new(small.server.params(), &wide, LweForm::AtRest).is_err());
    // TFHE's set claims security, and the ring that would be packed into has none.
    let claims = TfheLiteral::gates().build().unwrap();
    let refused = LweParams::new(small.server.params(), &claims, LweForm::AtRest).map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Insecure);
    // Bits modulo 2 at the level where tables begin have no level for another scale.
    let l15 = Both::new(BootstrapLiteral::l15(), 10, LweForm::AtRest);
    let bits = l15.world.bits(&[true], Form::Packed);
    let refused = l15.world.server.to_bits(&l15.keys, &bits).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::OutOfLevels { .. })));
    // Noise with which a bit could be wrong, or that is none.
    let switched =
        [other.client.server_key().unwrap().switch_key().switch(other.encrypt(&[true])[0].ciphertext()).unwrap()];
    let noisy = |variance| other.world.server.from_switched_bits(&other.keys, &switched, variance).unwrap_err();
    assert!(matches!(noisy(1e-4), HeError::Rlwe(RlweError::NoBudget { .. })));
    assert_eq!([noisy(-1e-9).kind(), noisy(f64::NAN).kind()], [ErrorKind::Parameters; 2]);
    // Noise over what gates take.
    let doubt = Coefficients::from_parts(
        server.params(),
        both.keys.id(),
        [0, 1].map(|_| sudare_ring::Poly::zero(server.params().params().q_at(0))),
        4,
        0.5,
    );
    assert!(matches!(doubt, Err(HeError::Rlwe(RlweError::NoBudget { .. }))));
    let integers = TfheLiteral::insecure_test(Plaintext::Integer { message_bits: 2, carry_bits: 2 }).build().unwrap();
    assert!(LweParams::new(server.params(), &integers, LweForm::AtRest).is_err());
}

#[test]
fn keys_that_travelled_and_keys_that_were_changed() {
    for form in [LweForm::AtRest, LweForm::Switched] {
        let both = Both::new(BootstrapLiteral::g15(), 10, form);
        let (server, params) = (&both.world.server, both.keys.params());
        let bytes = both.keys.to_bytes().unwrap();
        assert_eq!(bytes.len() as u64, both.keys.wire_bytes().unwrap());
        let again = LweKeys::read_from(params, &bytes[..]).unwrap();
        assert!(again.to_bytes().unwrap() == bytes);
        assert!((again.id(), again.tfhe_id()) == (both.keys.id(), both.client.id()));
        let value = both.world.bits(&[true, false, true], Form::Packed);
        let back = server.to_bits(&again, &value).unwrap();
        let found = [0, 1, 2].map(|i| both.client.decrypt_bit(&back.get(i).unwrap()).unwrap());
        assert_eq!(found, [true, false, true]);
        let other = match form {
            LweForm::AtRest => LweForm::Switched,
            LweForm::Switched => LweForm::AtRest,
        };
        let other = LweParams::new(server.params(), both.client.params(), other).unwrap();
        assert!(matches!(LweKeys::from_bytes(&other, &bytes), Err(WireError::WrongParameters { .. })));
        assert!(LweKeys::from_bytes(params, &bytes[..bytes.len() - 1]).is_err());
        for at in (0..400).step_by(23).chain([5000, bytes.len() - 5]) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(LweKeys::from_bytes(params, &changed).is_err(), "byte {at}");
            reseal_for_tests(&mut changed);
            if let Ok(read) = LweKeys::from_bytes(params, &changed) {
                assert!(read.to_bytes().unwrap() == changed, "byte {at}");
            }
        }
    }
}

/// Both schemes' sets of the golden files.
fn golden() -> LweParams {
    let set = BootstrapLiteral::g15().insecure(9).unwrap().build().unwrap();
    let tfhe = TfheLiteral { lwe_dimension: 16, ..gates() }.build().unwrap();
    LweParams::new(&set, &tfhe, LweForm::Switched).unwrap()
}

fn path(name: &str) -> std::path::PathBuf {
    std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v1/lwe_{name}.bin"))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

/// Makes the files, once for a format version: `cargo test -p sudare-he --test it -- --ignored discrete::lwe`.
#[test]
#[ignore = "writes the golden files of this format version"]
fn write_golden_files() {
    let params = golden();
    let secret = SecretKey::generate(params.set().params()).unwrap();
    let client = ClientKey::generate(params.exchange().params()).unwrap();
    std::fs::write(path("secret_key"), secret_key_to_bytes(&secret).unwrap()).unwrap();
    std::fs::write(path("client_key"), tfhe_client_key_to_bytes(&client).unwrap()).unwrap();
    std::fs::write(path("keys"), LweKeys::generate(&params, &secret, &client).unwrap().to_bytes().unwrap()).unwrap();
}

/// The stored keys load, are written again byte by byte, and still take bits in and out.
#[test]
fn golden_files_load_and_mean_what_they_meant() {
    let params = golden();
    let keys = LweKeys::from_bytes(&params, &file("keys")).unwrap();
    assert!(keys.to_bytes().unwrap() == file("keys"));
    let secret = secret_key_from_bytes(params.set().params(), &file("secret_key")).unwrap();
    let client = tfhe_client_key_from_bytes(params.exchange().params(), &file("client_key")).unwrap();
    let keys_of_slots = BootstrapKeys::generate(&secret, params.set()).unwrap();
    let world = World { server: Evaluator::new(Bootstrapper::new(keys_of_slots, None).unwrap()).unwrap(), secret };
    let tfhe = client.switch_key().unwrap();
    let plain = world.random_bits(&mut Random(3));
    let switched: Vec<_> =
        plain.iter().map(|bit| tfhe.switch(client.encrypt_bit(*bit).unwrap().ciphertext()).unwrap()).collect();
    let packed = world.server.from_switched_bits(&keys, &switched, params.exchange().input_variance()).unwrap();
    let not = Table::of_bit(4, 4, [1, 0]).unwrap();
    let out = world.server.tables_of(&[&packed], &[not], Form::Packed).unwrap().remove(0).remove(0);
    assert!(world.decrypt(&out).iter().zip(&plain).all(|(found, bit)| *found == u64::from(!bit)));
    let back = world.server.to_bits(&keys, &world.bits(&plain, Form::Packed)).unwrap();
    let found: Vec<bool> = (0..plain.len()).map(|i| client.decrypt_bit(&back.get(i).unwrap()).unwrap()).collect();
    assert_eq!(found, plain);
}
