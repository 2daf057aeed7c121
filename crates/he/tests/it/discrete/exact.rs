//! Coefficients of BFV and BGV ciphertexts, whatever their plaintext factors, read by tables.

use super::World;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::{Encoder, Encryptor, Evaluator, IntegerParams, Packing, Scheme, Wrap};
use sudare_he::HeError;
use sudare_he::circuits::bootstrapping::BootstrapLiteral;
use sudare_he::discrete::{Form, Table, entry_element, place};
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
