//! Fresh randomness for everything that is published, across `fork` too, and keys from seeds.

use crate::literal;
use std::collections::HashSet;
use sudare_exact as integer;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::{IntegerParams, Packing, Scheme, Wrap};
use sudare_he::ckks::{Encoder, Encryptor, ParamsLiteral};
use sudare_packings::bv;
use sudare_ring::random::{Entropy, Purpose, Seed};
use sudare_rlwe::KeyId;
use sudare_rlwe::keys::{KeyGenerator, PublicKey, SecretKey};
use sudare_rlwe::noise::ERROR_SIGMA;
use sudare_rlwe::security::Security;
use sudare_testkit::process::{Masks, alone, in_both, no_mask_repeats_across_fork, unrelated};

/// Two primes and one.
fn ring(log_scale: u32) -> ParamsLiteral {
    literal(9, &[45, 40], &[46], 1, log_scale)
}

fn bv_literal(t: u64) -> bv::ParamsLiteral {
    let (q_bits, sigma) = (vec![50], ERROR_SIGMA);
    bv::ParamsLiteral { log_n: 9, q_bits, t, sigma, max_length: 2, security: Security::Insecure }
}

/// Encryptors and generators of every kind, made before a fork.
struct Makers<'a> {
    plain: sudare_he::ckks::Plaintext,
    by_secret: Encryptor<'a>,
    by_public: Encryptor<'a>,
    generator: KeyGenerator<'a>,
    bfv: [integer::Encryptor<'a, Bfv>; 2],
    bgv: [integer::Encryptor<'a, Bgv>; 2],
    exact: integer::Plaintext,
    bv: bv::Encryptor<'a>,
    bv_plain: bv::Plaintext,
}

impl<'a> Makers<'a> {
    fn new(params: &IntegerParams, secret: &'a SecretKey, public: &'a PublicKey, bv_public: &'a bv::PublicKey) -> Self {
        fn both<'a, S: Scheme>(
            params: &IntegerParams,
            secret: &'a SecretKey,
            public: &'a PublicKey,
        ) -> [integer::Encryptor<'a, S>; 2] {
            let by_secret = integer::Encryptor::with_secret_key(params, secret).unwrap();
            [by_secret, integer::Encryptor::with_public_key(params, public).unwrap()]
        }
        Self {
            plain: Encoder::new(&sudare_he::ckks::Params::of(params.rlwe()).unwrap()).encode(&[0.5], 1.0).unwrap(),
            by_secret: Encryptor::with_secret_key(secret).unwrap(),
            by_public: Encryptor::with_public_key(public).unwrap(),
            generator: KeyGenerator::new(secret).unwrap(),
            bfv: both(params, secret, public),
            bgv: both(params, secret, public),
            exact: integer::Encoder::new(params).encode_signed(&[1], Packing::Slots, Wrap::Refuse).unwrap(),
            bv: bv::Encryptor::new(bv_public).unwrap(),
            bv_plain: bv::Plaintext::new(bv_public.params(), &[1]).unwrap(),
        }
    }

    /// One object of each kind.
    fn publish(&self, out: &mut Masks) {
        out.bytes("CKKS, secret key", self.by_secret.encrypt(&self.plain).unwrap().seed().unwrap().as_bytes());
        out.words("CKKS, public key", self.by_public.encrypt(&self.plain).unwrap().parts()[1].words());
        out.words("BFV, secret key", self.bfv[0].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BFV, public key", self.bfv[1].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BGV, secret key", self.bgv[0].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BGV, public key", self.bgv[1].encrypt(&self.exact).unwrap().parts()[1].words());
        out.words("BV", self.bv.encrypt(&self.bv_plain).unwrap().parts()[1].words());
        self.keys(out);
    }

    fn keys(&self, out: &mut Masks) {
        let element = 5;
        out.bytes("public key", self.generator.public_key().unwrap().seed().unwrap().as_bytes());
        out.bytes("relinearisation key", self.generator.relin_key(1).unwrap().seed().unwrap().as_bytes());
        out.bytes("automorphism key", self.generator.galois_key(element, 1).unwrap().key().seed().unwrap().as_bytes());
        let set = self.generator.eval_keys(Some(1), &[(element, 1), (25, 0)]).unwrap();
        out.bytes("relinearisation key of a set", set.relin_key().unwrap().seed().unwrap().as_bytes());
        set.galois_keys().for_each(|key| out.bytes("automorphism key of a set", key.key().seed().unwrap().as_bytes()));
    }
}

#[test]
fn no_mask_repeats() {
    let _alone = alone();
    let params = IntegerParams::new(&ring(20).build().unwrap(), 12289).unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let public = KeyGenerator::new(&secret).unwrap().public_key().unwrap();
    let bv_secret = bv::SecretKey::generate(&bv_literal(16).build().unwrap()).unwrap();
    let bv_public = bv_secret.public_key().unwrap();
    let makers = Makers::new(&params, &secret, &public, &bv_public);
    no_mask_repeats_across_fork(|out| makers.publish(out));
}

/// Half a million on either side of a fork: one by one, and in batches.
#[test]
fn a_million_mask_seeds_are_distinct() {
    let _alone = alone();
    const EACH: usize = 250_000;
    let (entropy, purpose) = (Entropy::system().unwrap(), Purpose::new("a million"));
    let (ours, theirs) = in_both(|| {
        let single = (0..EACH).map(|_| entropy.object(purpose).unwrap());
        let batches = (0..EACH / 1000).flat_map(|_| {
            let batch = entropy.batch(purpose, 1000).unwrap();
            (0..1000).map(move |i| batch.seeds(i))
        });
        single.chain(batches).flat_map(|seeds| *seeds.masks.as_bytes()).collect()
    });
    let all: HashSet<&[u8]> = [&ours, &theirs].into_iter().flat_map(|seeds| seeds.chunks_exact(32)).collect();
    assert_eq!(all.len(), 1_000_000);
}

/// A seed stands for one key in a parameter set, on every machine and for good, and for keys that
/// have nothing in common in two sets or two schemes.
#[test]
fn a_seed_stands_for_another_key_in_every_set() {
    let seed = Seed::from_bytes([1; 32]);
    let mut ids: Vec<String> = Vec::new();
    let mut note = |id: KeyId, again: KeyId| {
        assert_eq!(id, again);
        ids.push(id.to_string());
    };
    let rings = [20, 21].map(|log_scale| ring(log_scale).build().unwrap());
    let keys = rings.each_ref().map(|p| SecretKey::from_seed(p, &seed).unwrap());
    rings.iter().zip(&keys).for_each(|(p, key)| note(key.id(), SecretKey::from_seed(p, &seed).unwrap().id()));
    unrelated("ring", 3.0, keys[0].coefficients(), keys[1].coefficients());
    let sets = [16, 17].map(|t| bv_literal(t).build().unwrap());
    let keys = sets.each_ref().map(|p| bv::SecretKey::from_seed(p, &seed));
    sets.iter().zip(&keys).for_each(|(p, key)| note(key.id(), bv::SecretKey::from_seed(p, &seed).id()));
    let [one, other] = keys.each_ref().map(|key| *key.public_key().unwrap().parts().1);
    assert_ne!(one, other);
    // All different, and the same on every machine and for good.
    let known = ["076e7642dcfe", "8da25875f24a", "233d20a02f97", "4f8232fadb65"];
    assert_eq!(ids, known);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
}
