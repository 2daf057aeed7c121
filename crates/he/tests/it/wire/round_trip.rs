//! Every object comes back as it was, over many parameter sets.

use super::objects::{Objects, literal, reread};
use proptest::prelude::*;
use sudare_he::ckks::{Ciphertext, Encoder, Encryptor, Evaluator, ParamsLiteral};
use sudare_rlwe::keys::{EvalKeys, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::wire::{
    Bundle, Container, ObjectType, Wire, peek, read_params, read_secret_key, secret_key_to_bytes, write_secret_key,
};

fn literals() -> impl Strategy<Value = ParamsLiteral> {
    let secret = prop_oneof![
        Just(SecretDistribution::Ternary),
        Just(SecretDistribution::Gaussian),
        (1u32..100).prop_map(|weight| SecretDistribution::FixedWeight { weight }),
    ];
    (prop::collection::vec(24u32..=61, 0..3), 1usize..=2, secret).prop_map(|(more, digit_limbs, secret)| {
        ParamsLiteral {
            rlwe: sudare_rlwe::params::ParamsLiteral {
                log_n: 9,
                q_bits: std::iter::once(55).chain(more).collect(),
                p_bits: vec![61; 2],
                digit_limbs,
                secret,
                security: Security::Insecure,
            },
            log_scale: 20,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_object_of_random_parameters(literal in literals(), seed in 0u8..250) {
        let objects = Objects::new(&literal, seed);
        for (name, bytes) in objects.files() {
            prop_assert!(reread(&objects.params, name, &bytes).unwrap() == bytes, "{}", name);
            let header = peek(bytes.as_slice()).unwrap();
            prop_assert_eq!(header.total_bytes(), bytes.len() as u64);
            prop_assert_eq!(header.params(), objects.params.hash());
            let container = Container::from_bytes(&bytes).unwrap();
            for (i, range) in header.segment_ranges().enumerate() {
                prop_assert_eq!(range.start % 4096, 0);
                prop_assert_eq!(container.segment(i).unwrap().len() as u64, header.segments()[i]);
            }
        }
        let secret = secret_key_to_bytes(&objects.secret).unwrap();
        let back = read_secret_key(&objects.params, secret.as_slice()).unwrap();
        prop_assert_eq!(back.coefficients(), objects.secret.coefficients());
        prop_assert_eq!(back.id(), objects.secret.id());
    }
}

/// A reader that gives a few bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = out.len().min(777).min(self.0.len());
        let (head, rest) = self.0.split_at(count);
        out[..count].copy_from_slice(head);
        self.0 = rest;
        Ok(count)
    }
}

#[test]
fn streams_and_memory_agree() {
    let o = Objects::new(&literal(), 1);
    let bytes = o.bundle.to_bytes().unwrap();
    assert_eq!(o.bundle.wire_bytes().unwrap(), bytes.len() as u64);
    assert!(Bundle::<Ciphertext>::read_from(&o.params, Trickle(&bytes)).unwrap().to_bytes().unwrap() == bytes);
    let bytes = o.keys.to_bytes().unwrap();
    assert!(EvalKeys::read_from(&o.params, Trickle(&bytes)).unwrap().to_bytes().unwrap() == bytes);
    let bytes = o.files().remove(0).1;
    assert_eq!(read_params(Trickle(&bytes)).unwrap().build().unwrap().hash(), o.params.hash());
    let mut file = Vec::new();
    write_secret_key(&o.secret, &mut file).unwrap();
    assert_eq!(file, *secret_key_to_bytes(&o.secret).unwrap());
    assert_eq!(peek(Trickle(&file)).unwrap().object(), ObjectType::SecretKey);
}

/// A seed replaces c_1 only while it stands for it, whatever was done to the ciphertext.
#[test]
fn a_stale_seed_never_travels() {
    let o = Objects::new(&literal(), 1);
    let server = Evaluator::new(&o.params, o.keys.clone()).unwrap();
    let a = o.seeded.clone();
    assert!(a.seed().is_some() && o.plain_parts.seed().is_none());
    let same_mask = [server.add_plain(&a, &o.plaintext).unwrap(), server.drop_to(&a, 0).unwrap()];
    assert!(same_mask.iter().all(|c| c.seed().is_some()));
    let mut sum = a.clone();
    server.add_assign(&mut sum, &o.plain_parts).unwrap();
    let changed = [
        server.negate(&a).unwrap(),
        server.add(&a, &a).unwrap(),
        server.mul_integer(&a, 3).unwrap(),
        server.conjugate(&a).unwrap(),
        server.mul_plain(&a.clone().with_bound(1.0), &o.plaintext).unwrap(),
        server.rescale(&a).unwrap(),
        sum,
        o.product.clone(),
    ];
    assert!(changed.iter().all(|c| c.seed().is_none()));
    for c in same_mask.iter().chain(&changed) {
        let back = Ciphertext::from_bytes(&o.params, &c.to_bytes().unwrap()).unwrap();
        assert!(back.parts().iter().zip(c.parts()).all(|(x, y)| x.words() == y.words()));
        let state = |c: &Ciphertext| (c.level(), c.scale(), c.bound(), c.noise(), c.key(), c.parts().len());
        assert_eq!(state(&back), state(c));
    }
}

/// Sizes at the parameters of the 3-D product paper.
#[test]
fn sizes_of_the_paper_set() {
    let params = ParamsLiteral::paper_matmul().build().unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let plaintext = Encoder::new(&params).encode(&[0.5], 1.0).unwrap();
    let seeded = Encryptor::with_secret_key(&secret).unwrap().encrypt(&plaintext).unwrap();
    let generator = sudare_rlwe::keys::KeyGenerator::new(&secret).unwrap();
    let public = generator.public_key().unwrap();
    let full = Encryptor::with_public_key(&public).unwrap().encrypt(&plaintext).unwrap();
    let relin = generator.eval_keys(Some(3), &[]).unwrap();
    let galois = generator.eval_keys(None, &[(5, 3)]).unwrap();
    // N·(8 + 3·5) bytes a polynomial over Q, N·8 more over Q·P, and 4 KiB for the header.
    let (poly, extended) = (16384 * 23, 16384 * 31);
    let close = |bytes: u64, wanted: u64| assert!(bytes >= wanted && bytes < wanted + 5 * 4096, "{bytes} {wanted}");
    close(seeded.wire_bytes().unwrap(), 4096 + poly);
    close(full.wire_bytes().unwrap(), 4096 + 2 * poly);
    close(public.wire_bytes().unwrap(), 4096 + poly);
    close(relin.wire_bytes().unwrap(), 4096 + 4 * extended);
    close(galois.wire_bytes().unwrap(), 4096 + 4 * extended);
    println!(
        "seeded {} full {} public {} relin {} galois {} secret {}",
        seeded.wire_bytes().unwrap(),
        full.wire_bytes().unwrap(),
        public.wire_bytes().unwrap(),
        relin.wire_bytes().unwrap(),
        galois.wire_bytes().unwrap(),
        secret_key_to_bytes(&secret).unwrap().len()
    );
}
