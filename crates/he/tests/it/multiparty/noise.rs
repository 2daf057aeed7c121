//! Noise under shared keys against its formulas, which count the parties: variances within 3 %.

use super::world::{Forgetful, World, shared};
use crate::world::literal;
use sudare_he::ckks::{EncodeAt, Encoder, Encryptor, Evaluator, Params};
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::{Eval, Poly};
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::multiparty::{Flooding, Opening};
use sudare_rlwe::release::ReleasePolicy;

const SESSIONS: u8 = 8;
const TRIALS: usize = 4;

fn coefficients(poly: &Poly<Eval>) -> Vec<f64> {
    poly.truncated(1).into_coeff().centered().into_iter().map(|x| x as f64).collect()
}

fn phase(secret: &SecretKey, c: &sudare_he::ckks::Ciphertext) -> Poly<Eval> {
    sudare_rlwe::Decryptor::new(secret).phase(c.inner(), 0).unwrap()
}

#[derive(Default)]
struct Samples(f64, usize);

impl Samples {
    fn add(&mut self, errors: &[f64]) {
        self.0 += errors.iter().map(|e| e * e).sum::<f64>();
        self.1 += errors.len();
    }

    #[track_caller]
    fn require(&self, what: &str, variance: f64) {
        assert!(self.1 >= 100_000, "{what}: {} samples", self.1);
        let ratio = self.0 / self.1 as f64 / variance;
        assert!((ratio - 1.0).abs() < 0.03, "{what}: measured variance is {ratio:.4} of the formula's {variance:.3e}");
    }
}

fn params(parties: u32) -> Params {
    shared(literal(12, &[60, 40], &[60], 1, 40), parties).build().unwrap()
}

#[test]
fn variances_count_the_parties() {
    for parties in [2, 5] {
        let p = params(parties);
        let (mut fresh, mut turned, mut relinearised) = (Samples::default(), Samples::default(), Samples::default());
        for number in 0..SESSIONS {
            let mut world = World::new(&p, parties, 0x40 + 8 * number);
            let (secret, public) = (world.secret(), world.public());
            let element = p.rotation_element(1);
            let server = Evaluator::new(&p, world.keys(&[element])).unwrap();
            let permutation = EvalPermutation::new(p.degree(), element).unwrap();
            let zero = Encoder::new(&p).encode_at(&[], EncodeAt { level: 1, scale: p.scale(), max_abs: 0.0 }).unwrap();
            let encryptor = Encryptor::with_public_key(&public).unwrap();
            for trial in 0..TRIALS {
                let c = encryptor.encrypt(&zero).unwrap();
                if trial == 0 {
                    // The public key's own error is a factor of all that it encrypts.
                    fresh.add(&coefficients(&phase(&secret, &c)));
                }
                let mut error = phase(&secret, &server.rotate(&c, 1).unwrap());
                error.sub_assign(&phase(&secret, &c).permuted(&permutation));
                turned.add(&coefficients(&error));
                let product = server.mul(&c, &encryptor.encrypt(&zero).unwrap()).unwrap();
                let mut error = phase(&secret, &server.relinearize(&product).unwrap());
                error.sub_assign(&phase(&secret, &product));
                relinearised.add(&coefficients(&error));
            }
        }
        // A key for each sample of it: sessions of their own.
        for number in 0..(32 - u32::from(SESSIONS)) {
            let world = World::new(&p, parties, 0x81 + number as u8);
            let zero = Encoder::new(&p).encode_at(&[], EncodeAt { level: 1, scale: p.scale(), max_abs: 0.0 }).unwrap();
            let c = Encryptor::with_public_key(&world.public()).unwrap().encrypt(&zero).unwrap();
            fresh.add(&coefficients(&phase(&world.secret(), &c)));
        }
        let (sketch, rounding) = (p.sketch(), p.sketch().division(2).variance());
        fresh.require("public-key encryption", sketch.public_encryption().variance());
        turned.require("rotation", sketch.switching(1).variance() + rounding);
        relinearised.require("relinearisation", sketch.relinearisation(1).variance() + rounding);
    }
}

#[test]
fn one_party_has_the_formulas_of_one_key() {
    let p = literal(12, &[60, 40], &[60], 1, 40).build().unwrap();
    assert_eq!(p.sketch().relinearisation(1), p.sketch().switching(1));
}

/// The noise of a share is as wide as the policy asks for, and a Gaussian of that width: variance and fourth moment.
#[test]
fn flooding_is_as_wide_as_it_says() {
    let p = params(2);
    let world = World::new(&p, 2, 0x21);
    let (secret, public) = (world.secret(), world.public());
    for (releases, bits, bound) in [(1, 20, 1.0), (100, 20, 40.0)] {
        let policy = ReleasePolicy::new(releases, bits).unwrap();
        let flooding = Flooding::new(policy, bound).unwrap();
        let asked = (24.0 * releases as f64).sqrt() * 2f64.powf(f64::from(bits) / 2.0) * bound;
        assert!((flooding.deviation() / asked - 1.0).abs() < 0.005, "{} of {asked}", flooding.deviation());
        let (mut samples, mut fourth) = (Samples::default(), 0.0);
        for _ in 0..32 {
            let zero = Encoder::new(&p).encode_at(&[], EncodeAt { level: 0, scale: p.scale(), max_abs: 0.0 }).unwrap();
            let c = Encryptor::with_public_key(&public).unwrap().encrypt(&zero).unwrap();
            let opening = Opening::new(&world.session, c.inner(), &[0, 1], flooding, (0, 1)).unwrap();
            let shares: Vec<_> =
                world.parties.iter().map(|party| party.decryption_share(&opening, &mut Forgetful).unwrap()).collect();
            let mut shown = opening.phase(opening.collector().all(&shares).unwrap()).unwrap();
            shown.sub_assign(&phase(&secret, &c).into_coeff());
            let errors: Vec<f64> = shown.centered().into_iter().map(|x| x as f64).collect();
            fourth += errors.iter().map(|e| e.powi(4)).sum::<f64>();
            samples.add(&errors);
        }
        let variance = 2.0 * flooding.deviation().powi(2);
        samples.require("flooding", variance);
        let kurtosis = fourth / samples.1 as f64 / variance.powi(2);
        assert!((kurtosis - 3.0).abs() < 0.15, "{kurtosis}");
    }
}
