//! Computations under shared keys give what one key gives, in every scheme.

use super::world::{World, shared};
use crate::world::literal;
use sudare_exact::ExactError;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::{self as integer, IntegerParams, Packing, Scheme, Wrap};
use sudare_he::HeError;
use sudare_he::ckks::{self, Encoder, Encryptor, Evaluator, Expected};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::multiparty::PartyError;
use sudare_rlwe::release::ReleasePolicy;
use sudare_testkit::Random;

fn policy() -> ReleasePolicy {
    ReleasePolicy::new(100, 20).unwrap()
}

/// Every set of t of n parties, in the order of their numbers.
pub fn subsets(n: u32, t: usize) -> Vec<Vec<u32>> {
    (0u32..1 << n)
        .filter(|mask| mask.count_ones() as usize == t)
        .map(|mask| (0..n).filter(|i| mask >> i & 1 == 1).collect())
        .collect()
}

#[test]
fn ckks_computes_and_every_threshold_set_decrypts() {
    let params = shared(literal(10, &[60, 60, 40, 40], &[60], 1, 40), 4).build().unwrap();
    let mut world = World::new(&params, 3, 1);
    let (public, keys) = (world.public(), world.keys(&[params.rotation_element(3)]));
    let server = Evaluator::new(&params, keys).unwrap();
    let encoder = Encoder::new(&params);
    let values = Random(1).units(params.slots());
    // Sums of a chain of two products at the lowest levels, where flooding has the room of two large primes.
    let encrypt = |values: &[f64]| {
        Encryptor::with_public_key(&public).unwrap().encrypt(&encoder.encode(values, 1.0).unwrap()).unwrap()
    };
    let x = encrypt(&values);
    let y = server.mul_rescale(&x, &x).unwrap();
    let y = server.rotate(&y, 3).unwrap();
    let n = params.slots();
    let wanted: Vec<f64> = (0..n).map(|i| values[(i + 3) % n].powi(2)).collect();
    // What one key would decrypt, and with the promised error.
    let private = encoder.decode(&ckks::Decryptor::new(&world.secret()).decrypt(&y).unwrap()).unwrap();
    let error = private.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(error < y.error_bound(), "{error:e} {:e}", y.error_bound());
    // Scaled up, so that the noise of a release leaves some bits.
    let z = ckks::Ciphertext::from_parts(y.inner().clone(), y.state()).unwrap();
    for (i, active) in subsets(4, 3).into_iter().enumerate() {
        // A new ciphertext each: one subject has one answer.
        let again = server.add(&z, &encrypt_zero(&params, &public, &z)).unwrap();
        let expected = Expected::of(&again);
        let policy = ReleasePolicy::new(4, 20).unwrap();
        let opened =
            ckks::multiparty::SharedDecryption::new(&world.session, &again, (&expected, 1.0), &active, policy, n);
        let refused = opened.as_ref().err().is_some_and(|e| matches!(e, HeError::NoPrecision { .. }));
        assert!(refused, "2^40 holds no flooding: {opened:?} {i}");
    }
    // A result with a scale of its own: 2^80 over both large primes.
    let wide = encoder.encode_at(&values, ckks::EncodeAt { level: 1, scale: 80f64.exp2(), max_abs: 1.0 }).unwrap();
    for active in subsets(4, 3) {
        let c = Encryptor::with_public_key(&public).unwrap().encrypt(&wide).unwrap();
        let expected = Expected::of(&c);
        let opened =
            ckks::multiparty::SharedDecryption::new(&world.session, &c, (&expected, 1.0), &active, policy(), n)
                .unwrap();
        let shares: Vec<_> = active
            .iter()
            .map(|i| opened.share(&world.parties[*i as usize], &mut world.ledgers[*i as usize]).unwrap())
            .collect();
        let shown = encoder.decode(&opened.combine(&shares).unwrap()).unwrap();
        let error = shown.iter().zip(&values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < opened.error_bound() && opened.error_bound() < 1e-6, "{error:e} {:e}", opened.error_bound());
        assert!(error > opened.error_bound() / 100.0, "noise was added");
        let fewer = opened.combine(&shares[..2]).unwrap_err();
        assert_eq!(fewer, HeError::Party(PartyError::Missing { parties: vec![active[2]] }));
    }
    for active in [vec![0, 1], vec![], vec![0, 0, 1], vec![0, 1, 2, 3]] {
        let c = Encryptor::with_public_key(&public).unwrap().encrypt(&wide).unwrap();
        let opened =
            ckks::multiparty::SharedDecryption::new(&world.session, &c, (&Expected::of(&c), 1.0), &active, policy(), n);
        assert!(matches!(opened, Err(HeError::Party(PartyError::ActiveSet { threshold: 3, .. }))));
    }
}

fn encrypt_zero(
    params: &ckks::Params,
    public: &sudare_rlwe::keys::PublicKey,
    like: &ckks::Ciphertext,
) -> ckks::Ciphertext {
    let at = ckks::EncodeAt { level: like.level(), scale: like.scale(), max_abs: 0.0 };
    let zero = Encoder::new(params).encode_at(&[], at).unwrap();
    Encryptor::with_public_key(public).unwrap().encrypt(&zero).unwrap()
}

fn exact<S: Scheme>(number: u8) {
    let literal = shared(literal(10, &[60, 60, 60], &[60], 1, 1), 3);
    let set = literal.build().unwrap();
    let params = IntegerParams::new(&set, 12289).unwrap();
    let mut world = World::new(&set, 2, number);
    let (public, keys) = (world.public(), world.keys(&[params.rotation_element(1)]));
    let server = integer::Evaluator::<S>::new(&params, keys).unwrap();
    let encoder = integer::Encoder::new(&params);
    let values: Vec<u64> = Random(7).words(12289, params.degree());
    let plain = encoder.encode_unsigned(&values, Packing::Slots, Wrap::Refuse).unwrap();
    let encrypt = || integer::Encryptor::<S>::with_public_key(&params, &public).unwrap().encrypt(&plain).unwrap();
    let row = params.degree() / 2;
    let at = |i: usize| i / row * row + (i + 1) % row;
    let wanted: Vec<u64> = (0..params.degree()).map(|i| values[at(i)] * values[at(i)] % 12289).collect();
    for active in subsets(3, 2) {
        let x = encrypt();
        let y = server.rotate_rows(&server.mul_relin(&x, &x).unwrap(), 1).unwrap();
        let opened =
            integer::multiparty::SharedDecryption::new(&world.session, &y, y.noise(), &active, policy()).unwrap();
        let shares: Vec<_> = active
            .iter()
            .map(|i| opened.share(&world.parties[*i as usize], &mut world.ledgers[*i as usize]).unwrap())
            .collect();
        let shown = encoder.decode_unsigned(&opened.combine(&shares).unwrap(), Packing::Slots).unwrap();
        assert_eq!(shown, wanted, "{}", S::NAME);
        let less = integer::multiparty::SharedDecryption::new(&world.session, &y, 1.01 * y.noise(), &active, policy());
        assert!(matches!(less, Err(ExactError::Rlwe(RlweError::NotAsComputed { what: "noise bound", .. }))));
    }
    // A result for somebody else alone, with a key of the same primes.
    let mut own = literal;
    own.secret = sudare_rlwe::security::SecretDistribution::Ternary;
    let own = own.build().unwrap();
    let receiver = SecretKey::generate(&own).unwrap();
    let theirs = KeyGenerator::new(&receiver).unwrap().public_key().unwrap();
    let own = IntegerParams::new(&own, 12289).unwrap();
    let x = encrypt();
    let handover =
        integer::multiparty::SharedHandover::new(&world.session, &x, x.noise(), &[2, 0], policy(), (&own, &theirs))
            .unwrap();
    let shares = [0, 2].map(|i| handover.share(&world.parties[i], &mut world.ledgers[i]).unwrap());
    let switched = handover.combine(&shares).unwrap();
    let opened = integer::Decryptor::<S>::new(&own, &receiver).unwrap().decrypt(&switched).unwrap();
    assert_eq!(encoder_of(&own).decode_unsigned(&opened, Packing::Slots).unwrap(), values);
    // Refresh: fresh noise, all primes, the same message.
    let x = encrypt();
    let low = server.mul_relin(&x, &x).unwrap();
    let refresh =
        integer::multiparty::SharedRefresh::new(&world.session, &low, low.noise(), &[0, 1], policy()).unwrap();
    let shares = [0, 1].map(|i| refresh.share(&world.parties[i], &mut world.ledgers[i]).unwrap());
    let fresh = refresh.combine(&shares).unwrap();
    assert_eq!((fresh.level(), fresh.noise() < low.noise()), (2, true));
    let secret = world.secret();
    let opened = integer::Decryptor::<S>::new(&params, &secret).unwrap();
    let squares: Vec<u64> = values.iter().map(|x| x * x % 12289).collect();
    let message = opened.decrypt(&fresh).unwrap();
    assert_eq!(encoder.decode_unsigned(&message, Packing::Slots).unwrap(), squares);
    let budget = opened.noise_budget(&fresh).unwrap();
    let least = params.noise().log_limit(2) - fresh.noise().log2();
    assert!(budget > least, "measured {budget:.1} bits left, promised {least:.1}");
}

fn encoder_of(params: &IntegerParams) -> integer::Encoder {
    integer::Encoder::new(params)
}

#[test]
fn bfv_computes_hands_over_and_refreshes() {
    exact::<Bfv>(2);
}

#[test]
fn bgv_computes_hands_over_and_refreshes() {
    exact::<Bgv>(3);
}
