//! Interactive refresh of CKKS.

use super::world::{World, shared};
use crate::world::literal;
use sudare_he::HeError;
use sudare_he::ckks::multiparty::SharedRefresh;
use sudare_he::ckks::{Decryptor, Encoder, Encryptor, Evaluator, Expected};
use sudare_rlwe::RlweError;
use sudare_rlwe::multiparty::PartyError;
use sudare_testkit::Random;

#[test]
fn a_refreshed_ciphertext_has_all_primes_and_its_message() {
    let params = shared(literal(10, &[60, 60, 40, 40], &[60], 1, 40), 4).build().unwrap();
    let mut world = World::new(&params, 3, 15);
    let (public, keys) = (world.public(), world.keys(&[]));
    let server = Evaluator::new(&params, keys).unwrap();
    let encoder = Encoder::new(&params);
    let values = Random(8).units(params.slots());
    let mut x = Encryptor::with_public_key(&public).unwrap().encrypt(&encoder.encode(&values, 1.0).unwrap()).unwrap();
    let mut wanted = values;
    // Six products in a row, with two levels: refreshed twice on the way.
    for round in 0..3u32 {
        for _ in 0..2 {
            x = server.mul_rescale(&x, &x).unwrap();
            wanted.iter_mut().for_each(|v| *v *= *v);
        }
        assert_eq!(x.level(), 1);
        let active = [[0, 1, 2], [0, 2, 3], [1, 2, 3]][round as usize];
        let refresh = SharedRefresh::new(&world.session, &x, (&Expected::of(&x), 1.0), &active, 50).unwrap();
        let shares = active.map(|i| refresh.share(&world.parties[i as usize], &mut world.ledgers[i as usize]).unwrap());
        let fresh = refresh.combine(&shares).unwrap();
        assert_eq!((fresh.level(), fresh.scale(), fresh.seed().is_some()), (3, x.scale(), true));
        // Exact: the error is that of before and fresh errors.
        let [before, after] =
            [&x, &fresh].map(|c| encoder.decode(&Decryptor::new(&world.secret()).decrypt(c).unwrap()).unwrap());
        let moved = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(moved < (fresh.noise() - x.noise()) / x.scale() && moved > 0.0, "{moved:e}");
        x = fresh;
    }
    let got = encoder.decode(&Decryptor::new(&world.secret()).decrypt(&x).unwrap()).unwrap();
    let error = got.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(error < x.error_bound() && error < 1e-4, "{error:e} {:e}", x.error_bound());
}

#[test]
fn a_refresh_is_answered_once_and_needs_room() {
    let params = shared(literal(9, &[60, 60, 40], &[60], 1, 40), 3).build().unwrap();
    let mut world = World::new(&params, 2, 16);
    let public = world.public();
    let plain = Encoder::new(&params).encode(&[0.5], 1.0).unwrap();
    let c = Encryptor::with_public_key(&public).unwrap().encrypt(&plain).unwrap();
    let expected = Expected::of(&c);
    let refresh =
        |parties: &[u32], security| SharedRefresh::new(&world.session, &c, (&expected, 1.0), parties, security);
    let first = refresh(&[0, 1], 40).unwrap();
    use sudare_rlwe::wire::Wire;
    let bytes = first.share(&world.parties[0], &mut world.ledgers[0]).unwrap().to_bytes().unwrap();
    assert_eq!(first.share(&world.parties[0], &mut world.ledgers[0]).unwrap().to_bytes().unwrap(), bytes);
    for other in [refresh(&[0, 2], 40), refresh(&[0, 1], 41)] {
        let refused = other.unwrap().share(&world.parties[0], &mut world.ledgers[0]).unwrap_err();
        assert_eq!(refused, HeError::Party(PartyError::Answered { party: 0 }));
    }
    let keys = sudare_rlwe::keys::EvalKeys::new(&params, world.session.key());
    let low = Evaluator::new(&params, keys).unwrap().drop_to(&c, 0).unwrap();
    let refused = SharedRefresh::new(&world.session, &low, (&Expected::of(&low), 1.0), &[0, 1], 40);
    assert!(matches!(refused, Err(HeError::TooLarge { level: 0, .. })), "{refused:?}");
    assert!(refresh(&[0, 1], 39).is_err() && refresh(&[0, 1], 65).is_err());
    // Masks follow from what is expected: a file that says less of its message is refused.
    let more = Expected { error: 1.01 * expected.error, ..expected };
    for (expected, max_abs, what) in [(more, 1.0, "error bound"), (expected, 1.5, "value bound")] {
        let refused = SharedRefresh::new(&world.session, &c, (&expected, max_abs), &[0, 1], 40);
        assert!(
            matches!(&refused, Err(HeError::Rlwe(RlweError::NotAsComputed { what: found, .. })) if *found == what),
            "{refused:?}"
        );
    }
}
