//! What could come out wrong is refused before any work, and says what would do.

use super::World;
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, Bootstrapper, Kind};
use sudare_he::ckks::{EncodeAt, Encoder};
use sudare_he::discrete::{Decryptor, Discrete, DiscreteSet, Encryptor, Evaluator, Form, Gate, Table};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::{Counters, RlweError};

#[test]
fn values_tables_and_operands() {
    let w = World::small(BootstrapLiteral::l15(), 9);
    let (e, client) = (&w.server, w.client());
    assert_eq!(
        client.encrypt(&[0, 2], 2, Form::Packed).unwrap_err(),
        HeError::NotBelow { what: "value", index: 1, modulus: 2 }
    );
    assert!(matches!(client.encrypt(&[0], 3, Form::Packed), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    assert!(matches!(client.encrypt(&[0], 1, Form::Packed), Err(HeError::Rlwe(RlweError::Parameters { .. }))));
    let many = vec![0; w.len() + 1];
    assert_eq!(
        client.encrypt(&many, 2, Form::Packed).unwrap_err(),
        HeError::Rlwe(RlweError::TooManyValues { found: w.len() + 1, capacity: w.len() })
    );
    assert!(matches!(Table::new(&[0, 3], 3), Err(HeError::NotBelow { index: 1, modulus: 3, .. })));
    assert!(Table::new(&[0], 3).is_err());
    assert!(Table::of_bit(8, 8, [0, 1]).is_err() && Table::of_bit(4, 2, [0, 2]).is_err());

    let x = w.encrypt(&[1], 2, Form::Packed);
    let split = w.encrypt(&[1], 2, Form::Split);
    e.bootstrapper().reset_counters();
    let refused = [
        e.table(&x, &Table::new(&[0, 1, 0], 2).unwrap()).unwrap_err(),
        e.table(&x, &Table::new(&[0, 2], 3).unwrap()).unwrap_err(),
        e.add(&x, &split).unwrap_err(),
        e.mul(&x, &x).unwrap_err(),
        e.modulo(&x, 3).unwrap_err(),
        e.add_integer(&x, 3).unwrap_err(),
        e.gate(Gate::AND, &x, &x).unwrap_err(),
        e.gate(Gate::AND, &e.add(&split, &split).unwrap(), &split).unwrap_err(),
    ];
    assert_eq!(refused[0], HeError::TableLength { found: 3, modulus: 2 });
    for error in &refused {
        assert!(matches!(error.kind(), ErrorKind::Shape | ErrorKind::Parameters | ErrorKind::Input), "{error}");
    }
    let text = refused[6].to_string();
    assert!(text.contains("modulo 4"), "{text}");
    // Levels.
    let mut low = split;
    for _ in 0..e.params().usable_levels() {
        low = e.mul(&low, &low).unwrap();
    }
    assert!(matches!(e.mul(&low, &low), Err(HeError::Rlwe(RlweError::OutOfLevels { .. }))));
    assert_eq!(w.decrypt(&e.refresh(&low).unwrap())[0], 1);
}

#[test]
fn strangers() {
    let w = World::small(BootstrapLiteral::g15(), 9);
    let other = SecretKey::generate(w.server.params().params()).unwrap();
    let foreign =
        Encryptor::with_secret_key(w.server.params(), &other).unwrap().encrypt(&[1], 4, Form::Packed).unwrap();
    let own = w.encrypt(&[1], 4, Form::Packed);
    let identity = Table::of(4, 4, |x| x).unwrap();
    let wrong = |error: HeError| matches!(error, HeError::Rlwe(RlweError::WrongKey { .. }));
    assert!(wrong(w.server.table(&foreign, &identity).unwrap_err()));
    assert!(wrong(w.server.add(&own, &foreign).unwrap_err()));
    assert!(wrong(Decryptor::new(w.server.params(), &other).unwrap().decrypt(&own).unwrap_err()));
    let (two, three) = (w.encrypt(&[1], 2, Form::Packed), w.encrypt(&[1], 3, Form::Packed));
    assert!(matches!(w.server.add(&two, &three), Err(HeError::Rlwe(RlweError::WrongPlainModulus { .. }))));
    let elsewhere = World::small(BootstrapLiteral::s15(), 9).encrypt(&[1], 4, Form::Packed);
    assert!(matches!(w.server.table(&elsewhere, &identity), Err(HeError::Rlwe(RlweError::WrongParameters { .. }))));
}

/// Sets for numbers have no tables, and sets for tables refresh no numbers.
#[test]
fn sets_for_something_else() {
    let params = BootstrapLiteral::c().insecure(9).unwrap().build().unwrap();
    let secret = SecretKey::generate(params.params()).unwrap();
    let parameters = |error: HeError| matches!(error, HeError::Rlwe(RlweError::Parameters { .. }));
    assert!(parameters(Encryptor::with_secret_key(&params, &secret).map(|_| ()).unwrap_err()));
    let bootstrapper = Bootstrapper::new(BootstrapKeys::generate(&secret, &params).unwrap(), None).unwrap();
    assert!(parameters(Evaluator::new(bootstrapper).map(|_| ()).unwrap_err()));
    let w = World::small(BootstrapLiteral::g15(), 9);
    let number = &w.encrypt(&[1], 4, Form::Packed).parts()[0].clone();
    assert!(parameters(w.server.bootstrapper().refresh(number).unwrap_err()));
    assert!(parameters(w.server.params().predicted_noise(0.5).unwrap_err()));
    assert!("X15".parse::<DiscreteSet>().is_err());
    for set in DiscreteSet::ALL {
        assert_eq!(set.to_string().to_lowercase().parse(), Ok(set));
    }
}

/// An error of which a result could be wrong is refused one step earlier, with nothing done, and up to there nothing is wrong.
#[test]
fn errors_that_could_change_a_value() {
    let w = World::small(BootstrapLiteral::s15(), 9);
    let x = w.encrypt(&[7], 16, Form::Packed);
    let identity = Table::of(16, 16, |x| x).unwrap();
    // The same value with larger and larger errors, as far as its slots do not know of.
    let with = |error: f64| Discrete::from_parts(w.server.params(), x.parts().to_vec(), 16, x.range(), error);
    w.server.bootstrapper().reset_counters();
    let mut allowed = 0;
    for step in 1..=50 {
        let error = 0.01 * f64::from(step);
        let Ok(value) = with(error) else {
            assert!(step == 50, "an error of {error} is below one half");
            continue;
        };
        w.server.bootstrapper().reset_counters();
        match w.server.table(&value, &identity) {
            Ok(result) => {
                allowed = step;
                assert!(result.error() < 0.5 && w.decrypt(&result)[0] == 7);
            }
            Err(HeError::Rlwe(RlweError::NoBudget { .. })) => {
                assert_eq!(w.server.bootstrapper().counters(), Counters::default(), "nothing is done");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((5..30).contains(&allowed), "{allowed}");
    assert!(
        matches!(with(0.5), Err(HeError::Rlwe(RlweError::NoBudget { .. })))
            && with(0.4999).is_ok()
            && with(f64::NAN).is_err()
    );
    // Sums reach the limit, too.
    let half = with(0.26).unwrap();
    assert!(matches!(w.server.add(&half, &half), Err(HeError::Rlwe(RlweError::NoBudget { .. }))));
    assert!(matches!(w.server.mul_integer(&half, 2), Err(HeError::Rlwe(RlweError::NoBudget { .. }))));
    assert!(w.server.mul_integer(&half, 17).is_ok(), "17 is 1 modulo 16");
}

/// What a value states about itself is not believed where its slots say otherwise.
#[test]
fn values_that_were_changed() {
    let w = World::small(BootstrapLiteral::g15(), 9);
    let params = w.server.params();
    let (level, scale) = (params.input_level(), w.encrypt(&[1], 4, Form::Packed).parts()[0].scale());
    let number = |x: f64| {
        let at = EncodeAt { level, scale, max_abs: 4.0 };
        let plain = Encoder::new(params.params()).encode_at(&[x], at).unwrap();
        sudare_he::ckks::Encryptor::with_secret_key(&w.secret).unwrap().encrypt(&plain).unwrap()
    };
    let owner = Decryptor::new(params, &w.secret).unwrap();
    let stated = |x: f64, error: f64| Discrete::from_parts(params, vec![number(x)], 4, (0, 3), error).unwrap();
    assert_eq!(owner.decrypt(&stated(2.1, 0.2)).unwrap()[0], 2);
    for wrong in [stated(2.1, 0.05), stated(3.9, 0.2), stated(-1.0, 0.2)] {
        assert!(matches!(owner.decrypt(&wrong), Err(HeError::Rlwe(RlweError::NotAsComputed { .. }))));
    }
    // Other levels, scales, ranges.
    let refused =
        |parts, modulus, range, error| Discrete::from_parts(params, parts, modulus, range, error).unwrap_err();
    for error in [
        refused(vec![], 4, (0, 3), 0.1),
        refused(vec![number(1.0)], 2, (0, 1), 0.1),
        refused(vec![number(1.0)], 5, (0, 4), 0.1),
        refused(vec![number(1.0)], 4, (3, 0), 0.1),
        refused(vec![number(1.0)], 4, (0, 3), -0.1),
        refused(vec![number(1.0); 3], 4, (0, 3), 0.1),
    ] {
        assert!(matches!(error, HeError::Rlwe(RlweError::Parameters { .. })), "{error}");
    }
    assert!(matches!(refused(vec![number(1.0)], 4, (0, 1 << 40), 0.1), HeError::TooLarge { .. }));
    // Counts of a set are those of tables.
    assert!(params.operations(Kind::Complex).is_ok());
}
