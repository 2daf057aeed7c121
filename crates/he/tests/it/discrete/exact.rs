//! Coefficients of BFV and BGV ciphertexts, whatever their plaintext factors, read by tables.

use super::World;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::{Decryptor, Encoder, Encryptor, Evaluator, IntegerParams, Packing, Scheme, Wrap};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::BootstrapLiteral;
use sudare_he::discrete::{Discrete, Form, Table, entry_element, exit_element, place};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator};
use sudare_testkit::Random;

/// Fresh ciphertexts, sums and multiples, at the top level and below, every factor that BGV may have.
fn coefficients<S: Scheme>(w: &World, t: u64, factors: &[u64]) {
    let set = w.server.params();
    let params = IntegerParams::new(set.params().rlwe(), t).unwrap();
    let keys = KeyGenerator::new(&w.secret).unwrap().eval_keys(None, &[(entry_element(set), 0)]).unwrap();
    let scheme = Evaluator::<S>::new(&params, keys).unwrap();
    let mut random = Random(t);
    let m = w.integers(&mut random, t);
    let plain = Encoder::new(&params).encode_unsigned(&m, Packing::Coefficients, Wrap::Refuse).unwrap();
    let fresh = Encryptor::<S>::with_secret_key(&params, &w.secret).unwrap().encrypt(&plain).unwrap();
    let sum = scheme.add(&fresh, &scheme.mul_integer(&fresh, 2).unwrap()).unwrap();
    let table = Table::of(t, 16, |x| (x * x + 3) % 16).unwrap();
    let check = |c: &sudare_exact::Ciphertext<S>, k: u64| {
        let coefficients = w.server.from_exact(&scheme, c).unwrap();
        assert_eq!((coefficients.modulus(), coefficients.key()), (t, w.secret.id()));
        assert!(coefficients.error() < 0.5);
        let found = w.server.tables_of(&[&coefficients], std::slice::from_ref(&table), Form::Packed).unwrap();
        let wanted: Vec<u64> = (0..m.len()).map(|i| table.values()[(k * m[place(m.len(), i)] % t) as usize]).collect();
        assert_eq!(w.decrypt(&found[0][0]), wanted, "t = {t}, factor {}", c.factor());
    };
    check(&fresh, 1);
    check(&sum, 3);
    check(&scheme.drop_to(&fresh, 1).unwrap(), 1);
    for factor in factors {
        check(&scheme.with_factor(&fresh, *factor).unwrap(), 1);
    }
    // A server without the key.
    let bare = Evaluator::<S>::new(&params, EvalKeys::new(&params, w.secret.id())).unwrap();
    let refused = w.server.from_exact(&bare, &fresh).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::MissingRotationKey { .. })), "{refused}");
}

#[test]
fn coefficients_of_bfv_and_bgv_are_read_by_tables() {
    let w = World::small(BootstrapLiteral::s15(), 9);
    for t in [2, 3, 16] {
        coefficients::<Bfv>(&w, t, &[]);
    }
    coefficients::<Bgv>(&w, 5, &[1, 2, 3, 4]);
    coefficients::<Bgv>(&w, 16, &[1, 5, 15]);
}

#[test]
fn what_tables_have_no_room_for_is_refused() {
    let (w, other) = (World::small(BootstrapLiteral::s15(), 9), World::small(BootstrapLiteral::g15(), 9));
    let params = IntegerParams::new(w.server.params().params().rlwe(), 17).unwrap();
    let keys = |w: &World| {
        let element = [(entry_element(w.server.params()), 0)];
        KeyGenerator::new(&w.secret).unwrap().eval_keys(None, &element).unwrap()
    };
    let scheme = Evaluator::<Bfv>::new(&params, keys(&w)).unwrap();
    let plain = Encoder::new(&params).encode_unsigned(&[16], Packing::Coefficients, Wrap::Refuse).unwrap();
    let c = Encryptor::<Bfv>::with_secret_key(&params, &w.secret).unwrap().encrypt(&plain).unwrap();
    assert_eq!(w.server.from_exact(&scheme, &c).unwrap_err().kind(), ErrorKind::Parameters);
    assert!(matches!(other.server.from_exact(&scheme, &c), Err(HeError::Rlwe(RlweError::WrongParameters { .. }))));
}

/// The evaluator of a scheme with the keys in and out.
fn both_ways<S: Scheme>(w: &World, t: u64) -> Evaluator<S> {
    let set = w.server.params();
    let params = IntegerParams::new(set.params().rlwe(), t).unwrap();
    let elements = [(entry_element(set), 0), (exit_element(set), 0)];
    Evaluator::new(&params, KeyGenerator::new(&w.secret).unwrap().eval_keys(None, &elements).unwrap()).unwrap()
}

/// Integers of tables decrypt as coefficients of a scheme, and its sums and multiples are read by tables again. No stated room is more than
/// there is.
fn there_and_back<S: Scheme>(w: &World, scheme: &Evaluator<S>, form: Form) {
    let (n, t) = (w.len(), scheme.params().t());
    let x = w.integers(&mut Random(t), t);
    let table = Table::of(t, t, |x| (x * x + 1) % t).unwrap();
    let mut value = w.server.table(&w.encrypt(&x, t, form), &table).unwrap();
    let mut wanted: Vec<u64> = x.iter().map(|x| table.values()[*x as usize]).collect();
    let encoder = Encoder::new(scheme.params());
    let owner = Decryptor::<S>::new(scheme.params(), &w.secret).unwrap();
    let check = |c: &sudare_exact::Ciphertext<S>, wanted: &[u64]| {
        let found = encoder.decode_unsigned(&owner.decrypt(c).unwrap(), Packing::Coefficients).unwrap();
        assert!((0..n).all(|i| found[place(n, i)] == wanted[i]), "{} modulo {t}", S::NAME);
        let budget = owner.noise_budget(c).unwrap();
        assert!(c.headroom() > 0.0 && c.headroom() <= budget, "{:.1} bits of {budget:.1}", c.headroom());
    };
    for round in 0..2 {
        let c = w.server.to_exact(scheme, &value).unwrap();
        assert_eq!((c.level(), c.key()), (0, w.secret.id()));
        check(&c, &wanted);
        let twice = scheme.add(&c, &c).unwrap();
        wanted.iter_mut().for_each(|x| *x = 2 * *x % t);
        check(&twice, &wanted);
        let coefficients = w.server.from_exact(scheme, &twice).unwrap();
        let made = w.server.tables_of(&[&coefficients], std::slice::from_ref(&table), form).unwrap();
        value = made.into_iter().next().unwrap().remove(0);
        wanted.iter_mut().for_each(|x| *x = table.values()[*x as usize]);
        assert_eq!(w.decrypt(&value), wanted, "round {round}");
        // A bound on all coefficients together is a large one on each, and a table makes it small again.
        value = w.server.refresh(&value).unwrap();
    }
}

#[test]
fn integers_are_coefficients_of_bfv_and_bgv() {
    let w = World::small(BootstrapLiteral::s15(), 10);
    for t in [3, 8] {
        there_and_back(&w, &both_ways::<Bfv>(&w, t), Form::Packed);
    }
    there_and_back(&w, &both_ways::<Bgv>(&w, 7), Form::Packed);
    let bits = World::small(BootstrapLiteral::l15(), 10);
    there_and_back(&bits, &both_ways::<Bgv>(&bits, 2), Form::Split);
}

/// Encrypted, added, multiplied, rotated and lowered values come out rightly as well: their errors are followed.
#[test]
fn errors_of_operations_are_followed() {
    let w = World::small(BootstrapLiteral::l15(), 10);
    let scheme = both_ways::<Bfv>(&w, 2);
    let (owner, encoder) = (Decryptor::new(scheme.params(), &w.secret).unwrap(), Encoder::new(scheme.params()));
    let (a, b) = (w.random_bits(&mut Random(1)), w.random_bits(&mut Random(2)));
    let [x, y] = [&a, &b].map(|bits| w.bits(bits, Form::Split));
    let server = &w.server;
    let check = |value: &Discrete, f: &dyn Fn(u64, u64) -> u64| {
        let c = server.to_exact(&scheme, value).unwrap();
        let found = encoder.decode_unsigned(&owner.decrypt(&c).unwrap(), Packing::Coefficients).unwrap();
        for (i, (a, b)) in a.iter().zip(&b).enumerate() {
            assert_eq!(found[place(w.len(), i)], f(u64::from(*a), u64::from(*b)) % 2, "{i}");
        }
        assert!(c.headroom() <= owner.noise_budget(&c).unwrap());
        c.headroom()
    };
    let fresh = check(&x, &|a, _| a);
    assert!(check(&server.add(&x, &y).unwrap(), &|a, b| a + b) < fresh);
    check(&server.sub(&x, &server.mul_integer(&y, 3).unwrap()).unwrap(), &|a, b| a + b);
    check(&server.mul(&x, &y).unwrap(), &|a, b| a * b);
    check(&server.add_integer(&server.mul(&x, &y).unwrap(), 1).unwrap(), &|a, b| a * b + 1);
}

/// Of a value that was put together nothing but a bound is known, and N of them are too much; a table makes it known.
#[test]
fn what_could_come_out_wrong_has_no_coefficients() {
    let w = World::small(BootstrapLiteral::s15(), 10);
    let (server, scheme) = (&w.server, both_ways::<Bfv>(&w, 16));
    let x = w.encrypt(&w.integers(&mut Random(3), 16), 16, Form::Packed);
    let doubtful = Discrete::from_parts(server.params(), x.parts().to_vec(), 16, x.range(), 1e-3).unwrap();
    let refused = server.to_exact(&scheme, &doubtful).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::NoBudget { .. })), "{refused}");
    server.to_exact(&scheme, &server.refresh(&doubtful).unwrap()).unwrap();
    // Another modulus, no key, another set.
    let refused = server.to_exact(&both_ways::<Bfv>(&w, 8), &x).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::WrongPlainModulus { found: 16, expected: 8, .. })), "{refused}");
    let bare = Evaluator::<Bgv>::new(scheme.params(), EvalKeys::new(scheme.params(), w.secret.id())).unwrap();
    let refused = server.to_exact(&bare, &x).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::MissingRotationKey { .. })), "{refused}");
    let other = World::small(BootstrapLiteral::s15(), 10);
    let refused = server.to_exact(&both_ways::<Bfv>(&other, 16), &x).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::WrongKey { .. })), "{refused}");
    let bits = World::small(BootstrapLiteral::g15(), 10);
    let refused = server.to_exact(&both_ways::<Bfv>(&bits, 4), &x).unwrap_err();
    assert!(matches!(refused, HeError::Rlwe(RlweError::WrongParameters { .. })), "{refused}");
}
