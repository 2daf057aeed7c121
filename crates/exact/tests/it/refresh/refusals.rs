//! What could come out wrong is refused before any work, and says what would do.

use super::World;
use sudare_exact::ExactError;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::refresh::{RefreshKeys, RefreshLiteral, Refresher};
use sudare_exact::{Ciphertext, State};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::keys::SecretKey;
use sudare_rlwe::security::Security;
use sudare_rlwe::{Counters, RlweError};
use sudare_testkit::Random;

#[test]
fn ciphertexts() {
    let w = World::small(RefreshLiteral::x15());
    let values = w.random(&mut Random(1));
    let (lowest, largest) = w.set.input();
    w.server.reset_counters();
    let low = w.encrypt::<Bgv>(&values, lowest - 1);
    let refused = w.server.refresh(&low).unwrap_err();
    assert_eq!(refused, RlweError::OutOfLevels { operation: "a refresh", needed: lowest, level: lowest - 1 }.into());
    // The largest noise is taken, more is not; what a file says of it counts.
    let x = w.encrypt::<Bgv>(&values, lowest);
    let with = |noise: f64| {
        let state = State { factor: x.factor(), noise };
        Ciphertext::<Bgv>::from_parts(w.set.params(), x.inner().clone(), state).unwrap()
    };
    assert!(w.set.takes(&with(largest)) && !w.set.takes(&with(largest * 1.01)) && !w.set.takes(&low));
    let error = w.server.refresh(&with(largest * 1.01)).unwrap_err();
    assert!(matches!(error, ExactError::TooNoisy { level, .. } if level == lowest));
    assert_eq!(error.kind(), ErrorKind::Precision);
    assert!(error.to_string().contains("earlier"), "{error}");
    let three = w.evaluator::<Bgv>().mul(&x, &x);
    assert!(
        three.is_err() || matches!(w.server.refresh(&three.unwrap()), Err(ExactError::Rlwe(RlweError::Degree { .. })))
    );
    assert_eq!(w.server.counters(), Counters::default(), "nothing was done");
    assert_eq!(w.decrypt(&w.server.refresh(&with(largest)).unwrap()), values);

    // Strangers.
    let other = World::small(RefreshLiteral::x15());
    let foreign = other.encrypt::<Bfv>(&values, lowest);
    assert!(matches!(w.server.refresh(&foreign), Err(ExactError::Rlwe(RlweError::WrongKey { .. }))));
    let elsewhere = World::small(RefreshLiteral::x16());
    let foreign = elsewhere.encrypt::<Bfv>(&elsewhere.random(&mut Random(3)), lowest);
    assert!(matches!(w.server.refresh(&foreign), Err(ExactError::Rlwe(RlweError::WrongParameters { .. }))));
}

/// Noise of exactly what a refresh takes at most does no harm: a ciphertext is made as noisy as its bound allows.
#[test]
fn noise_at_the_bound() {
    let w = World::small(RefreshLiteral::x15());
    let values = w.random(&mut Random(4));
    let server = w.evaluator::<Bgv>();
    let (lowest, largest) = w.set.input();
    let t = *w.set.params().modulus();
    // Multiples take the noise up, in steps, as long as the bound allows.
    let (mut x, mut wanted) = (w.encrypt::<Bgv>(&values, lowest), values);
    while x.noise() * 3.0 < largest {
        x = server.mul_integer(&x, 3).unwrap();
        wanted.iter_mut().for_each(|v| *v = t.mul(*v, 3));
    }
    assert!(x.noise() * 3.0 >= largest);
    assert_eq!(w.decrypt(&w.server.refresh(&x).unwrap()), wanted);
    assert!(matches!(w.server.refresh(&server.mul_integer(&x, 3).unwrap()), Err(ExactError::TooNoisy { .. })));
}

/// Sets whose steps have no room, or whose shapes do not fit.
#[test]
fn sets() {
    let parameters = |literal: RefreshLiteral| match literal.build() {
        Err(ExactError::Rlwe(RlweError::Parameters { reason })) => reason,
        other => panic!("{other:?}"),
    };
    let small = RefreshLiteral::x15().insecure(9).unwrap();
    let with = |change: &dyn Fn(&mut RefreshLiteral)| {
        let mut literal = small.clone();
        change(&mut literal);
        literal
    };
    assert!(parameters(with(&|l| l.stc = vec![4, 3])).contains("that add up to 8"));
    assert!(parameters(with(&|l| l.cts = vec![8, 0])).contains("that add up to 8"));
    assert!(parameters(with(&|l| l.weight = 33)).contains("even"));
    assert!(parameters(with(&|l| l.base = 0)).contains("q_0"));
    assert!(parameters(with(&|l| l.hoisted = 0)).contains("baby"));
    assert!(parameters(with(&|l| l.gate_bits = vec![])).contains("special primes"));
    assert!(parameters(with(&|l| l.t = (1 << 30) + 3)).contains("square"));
    assert!(parameters(with(&|l| l.params.q_bits[0] = 32)).contains("slots-to-coefficients"));
    // Without the primes above the user's, and with a chain that ends below the input's level.
    assert!(parameters(with(&|l| l.params.q_bits.truncate(12))).contains("more primes"));
    assert!(matches!(with(&|l| l.t = 65539).build(), Err(ExactError::NoSlots { .. })));
    // What is not estimated is refused: a lighter sparse key, and one under a larger modulus.
    let mut light = RefreshLiteral::x15();
    light.weight -= 2;
    assert!(matches!(light.build(), Err(ExactError::Rlwe(RlweError::Insecure { .. }))));
    let mut wide = RefreshLiteral::x15();
    wide.gate_bits = vec![48];
    assert!(matches!(wide.build(), Err(ExactError::Rlwe(RlweError::Insecure { .. }))));
    assert_eq!(small.params.security, Security::Insecure);
}

#[test]
fn memory_and_other_secrets() {
    let set = RefreshLiteral::x15().insecure(9).unwrap().build().unwrap();
    let secret = SecretKey::generate(set.params()).unwrap();
    let keys = RefreshKeys::generate(&secret, &set).unwrap();
    let needed = set.key_bytes() + set.diagonal_bytes();
    let close = |found: u64, wanted: u64| (found as f64 / wanted as f64 - 1.0).abs() < 0.02;
    assert!(close(keys.bytes() as u64, set.key_bytes()), "{} of {}", keys.bytes(), set.key_bytes());
    let refused = Refresher::new(keys.clone(), Some(needed - 1)).map(|_| ()).unwrap_err();
    assert!(matches!(refused, ExactError::Rlwe(RlweError::Memory { limit, .. }) if limit == needed - 1));
    let server = Refresher::new(keys, Some(needed)).unwrap();
    assert!(close(server.bytes(), needed), "{} of {needed}", server.bytes());
    let elsewhere = RefreshLiteral::x16().insecure(10).unwrap().build().unwrap();
    let refused = RefreshKeys::generate(&secret, &elsewhere).map(|_| ()).unwrap_err();
    assert!(matches!(refused, ExactError::Rlwe(RlweError::WrongParameters { .. })));
}
