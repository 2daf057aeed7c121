//! Secret keys of every scheme, and what uses them.

use super::needles::polynomial;
use sudare_exact as integer;
use sudare_exact::{IntegerParams, Packing, Wrap};
use sudare_he::ckks;
use sudare_he::ckks::{Params, ParamsLiteral};
use sudare_packings::bv;
use sudare_ring::random::{MaskSeed, Seed};
use sudare_ring::{Poly, Threads};
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::multiparty::{Digest, Entry, Flooding, Ledger, Opening, Party, PartyError, Session, relin_sum};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire;
use sudare_testkit::memory::{NARROW, Needles, WIDE, gone_after_drop};
use zeroize::{Zeroize, Zeroizing};

fn params(log_n: u32, data_primes: usize, secret: SecretDistribution) -> Params {
    let literal = ParamsLiteral {
        rlwe: sudare_rlwe::params::ParamsLiteral {
            log_n,
            q_bits: [vec![49], vec![40; data_primes - 1]].concat(),
            p_bits: vec![49],
            digit_limbs: 1,
            secret,
            security: Security::Insecure,
        },
        log_scale: 40,
    };
    literal.build().unwrap()
}

/// A key whose secret is noted.
fn rlwe(needles: &mut Needles, secret: SecretDistribution) -> SecretKey {
    rlwe_over(needles, params(10, 3, secret))
}

fn rlwe_over(needles: &mut Needles, params: Params) -> SecretKey {
    let key = SecretKey::generate(&params).unwrap();
    let basis = params.q().concat(params.p()).unwrap();
    polynomial(needles, "the RLWE secret", &basis, key.coefficients(), "");
    key
}

#[test]
fn rlwe_keys_and_what_uses_them() {
    for secret in
        [SecretDistribution::Ternary, SecretDistribution::FixedWeight { weight: 300 }, SecretDistribution::Gaussian]
    {
        gone_after_drop(|needles| used(rlwe(needles, secret)));
    }
}

/// Polynomials of nine limbs have the large buffers that all threads share.
#[test]
fn rlwe_keys_of_large_rings() {
    gone_after_drop(|needles| used(rlwe_over(needles, params(15, 9, SecretDistribution::Ternary))));
}

/// A key and all that is made from it.
fn used(key: SecretKey) -> impl Sized {
    let generator = KeyGenerator::new(&key).unwrap();
    let elements = [(key.params().rotation_element(1), 1)];
    let keys = generator.eval_keys(Some(key.params().max_level()), &elements).unwrap();
    let public = generator.public_key().unwrap();
    let encoder = ckks::Encoder::new(&Params::of(key.params()).unwrap());
    let plain = encoder.encode(&[0.5; 512], 1.0).unwrap();
    let encrypted = Threads::new(2).run(|| {
        let by_secret = ckks::Encryptor::with_secret_key(&key).unwrap().encrypt(&plain).unwrap();
        let by_public = ckks::Encryptor::with_public_key(&public).unwrap().encrypt(&plain).unwrap();
        let decryptor = ckks::Decryptor::new(&key);
        (decryptor.decrypt(&by_secret).unwrap(), decryptor.decrypt(&by_public).unwrap(), by_secret, by_public)
    });
    (key, keys, public, encrypted)
}

/// A party's secret, and c_1 times it, are nowhere once its messages are made.
#[test]
fn parties_and_what_they_say() {
    gone_after_drop(|needles| {
        let params = params(10, 3, SecretDistribution::TernarySum { parties: 3 });
        let session = Session::new(&params, 2, MaskSeed::from_bytes([1; 32])).unwrap();
        let seed = |i: u32| Zeroizing::new([i as u8 + 7; 32]);
        let mut parties: Vec<Party> = (0..3).map(|i| Party::from_seed(&session, i, seed(i)).unwrap()).collect();
        let mut shares: Vec<Vec<_>> = parties.iter().map(Party::private_shares).collect();
        for party in &mut parties {
            let own: Vec<_> = shares.iter_mut().map(|shares| shares.remove(0)).collect();
            party.add_private_shares(&own).unwrap();
        }
        // Party 0's secret, as it derives it.
        let root = format!("sudare party of session {}", Digest(session.id().0).hex());
        let mut coefficients = Zeroizing::new(vec![0; params.degree()]);
        let stream = &mut Seed::from_bytes(*seed(0)).derive(&root, 0).derive("secret", 0).stream(0);
        sudare_ring::random::ternary(stream, &mut coefficients);
        let basis = params.q().concat(params.p()).unwrap();
        polynomial(needles, "a party's secret", &basis, &coefficients, "");
        let public = parties[0].public_key_share();
        let first = parties.iter().map(|p| p.relin_first_share(2).unwrap()).collect::<Vec<_>>();
        let sum = relin_sum(&session, 2).unwrap().all(&first).unwrap().relin_sum().unwrap();
        let second = parties[0].relin_second_share(&sum, &mut Once).unwrap();
        let galois = parties[0].galois_share(&[(5, 2)]).unwrap();
        let c1 = sudare_ring::ops::mask(params.q(), &MaskSeed::from_bytes([2; 32]), 0);
        let c = sudare_rlwe::Ciphertext::from_parts(&params, session.key(), vec![c1.clone(), c1], 2).unwrap();
        let flooding = Flooding::new(ReleasePolicy::new(1, 20).unwrap(), 1.0).unwrap();
        let answers = [1, 2].map(|gap| {
            let opening = Opening::new(&session, &c, &[0, 1], flooding, (1, gap)).unwrap();
            parties[0].decryption_share(&opening, &mut Once).unwrap()
        });
        (parties, public, first, second, galois, answers)
    });
}

/// Admits everything: a test asks once.
struct Once;

impl Ledger for Once {
    fn admit(&mut self, _: &Entry) -> Result<(), PartyError> {
        Ok(())
    }
}

#[test]
fn rlwe_keys_on_their_way_to_a_file_and_back() {
    gone_after_drop(|needles| {
        let key = rlwe(needles, SecretDistribution::Ternary);
        let bytes = wire::secret_key_to_bytes(&key).unwrap();
        // Bytes of the packed file, as words where they stand.
        needles.add("the secret's file", bytes[bytes.len() - 64..].chunks_exact(8).map(word), WIDE);
        let again = wire::secret_key_from_bytes(key.params(), &bytes).unwrap();
        (key, bytes, again)
    });
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap())
}

#[test]
fn exact_encryption_and_decryption() {
    fn run<S: integer::Scheme>() {
        gone_after_drop(|needles| {
            let key = rlwe(needles, SecretDistribution::Ternary);
            let params = IntegerParams::new(key.params(), 65537).unwrap();
            let public = KeyGenerator::new(&key).unwrap().public_key().unwrap();
            let encoder = integer::Encoder::new(&params);
            let plain = encoder.encode_unsigned(&[7; 1024], Packing::Slots, Wrap::Refuse).unwrap();
            let by_secret = integer::Encryptor::<S>::with_secret_key(&params, &key).unwrap().encrypt(&plain).unwrap();
            let by_public =
                integer::Encryptor::<S>::with_public_key(&params, &public).unwrap().encrypt(&plain).unwrap();
            let decryptor = integer::Decryptor::<S>::new(&params, &key).unwrap();
            let opened = [decryptor.decrypt(&by_secret).unwrap(), decryptor.decrypt(&by_public).unwrap()];
            let budget = decryptor.noise_budget(&by_secret).unwrap();
            (key, public, opened, budget)
        });
    }
    run::<sudare_exact::bfv::Bfv>();
    run::<sudare_exact::bgv::Bgv>();
}

/// The error of a fresh ciphertext is as secret as the key: with it the mask gives s.
#[test]
fn errors_of_fresh_ciphertexts() {
    gone_after_drop(|needles| {
        let key = rlwe(needles, SecretDistribution::Ternary);
        let zero = ckks::Encoder::new(&Params::of(key.params()).unwrap()).encode(&[], 0.0).unwrap();
        let ciphertext = ckks::Encryptor::with_secret_key(&key).unwrap().encrypt(&zero).unwrap();
        // c_0 + c_1·s is the error, since the message is zero.
        let mut opened = ckks::Decryptor::new(&key).decrypt(&ciphertext).unwrap().poly().clone();
        let q = opened.basis().limb(0).modulus();
        needles.add("passing error, residues", opened.limb(0).iter().copied(), NARROW);
        needles.add("passing error, signed", opened.limb(0).iter().map(|x| q.center(*x) as u64), NARROW);
        opened.zeroize();
        (key, ciphertext)
    });
}

#[test]
fn bv_keys_and_what_uses_them() {
    gone_after_drop(|needles| {
        let literal = bv::ParamsLiteral {
            log_n: 10,
            q_bits: vec![45, 45],
            t: 257,
            sigma: 3.19,
            max_length: 3,
            security: Security::Insecure,
        };
        let params = literal.build().unwrap();
        let key = bv::SecretKey::generate(&params).unwrap();
        secret_of_bv(needles, &params, &key);
        let public = key.public_key().unwrap();
        let plain = bv::Plaintext::new(&params, &[3; 1024]).unwrap();
        let ciphertext = bv::Encryptor::new(&public).unwrap().encrypt(&plain).unwrap();
        let decryptor = bv::Decryptor::new(&key);
        let opened = decryptor.decrypt(&ciphertext).unwrap();
        let budget = decryptor.budget_bits(&ciphertext).unwrap();
        (key, public, opened, budget)
    });
}

/// s itself: what (0, 1) decrypts to, since its coefficients are below t/2.
fn secret_of_bv(needles: &mut Needles, params: &bv::Params, key: &bv::SecretKey) {
    let one = vec![1u64; params.degree() * params.q().len()];
    let parts = vec![Poly::zero(params.q()), Poly::from_words(params.q(), &one).unwrap()];
    let norms = bv::noise::Norms::of((0..params.degree()).map(|_| 128));
    let ciphertext = bv::Ciphertext::from_parts(params, key.id(), parts, norms).unwrap();
    let mut coefficients = bv::Decryptor::new(key).decrypt(&ciphertext).unwrap().centered();
    polynomial(needles, "the BV secret", params.q(), &coefficients, "passing ");
    coefficients.zeroize();
}

/// The key of a seed is wiped, and so is the seed.
#[test]
fn seeds() {
    gone_after_drop(|needles| {
        // From the stream of another seed, so that the test knows the bytes and holds no copy of them.
        let mut bytes = Box::new([0u8; 32]);
        Seed::from_entropy().unwrap().stream(0).fill_bytes(&mut *bytes);
        needles.add("the seed", bytes.chunks_exact(8).map(word), WIDE);
        let seed = Box::new(Seed::from_bytes(*bytes));
        bytes.zeroize();
        let params = params(10, 3, SecretDistribution::Ternary);
        (SecretKey::from_seed(&params, &seed).unwrap(), seed)
    });
}
