//! Every operation on batches against the processor's evaluator, every word, with real keys.

use sudare_cuda::{Device, Trial};
use sudare_gpu::{Ciphertexts, Evaluator, GpuError};
use sudare_ring::{Coeff, Eval, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
use sudare_rlwe::security::{SecretDistribution, Security};
use sudare_rlwe::{Backend, Ciphertext, Encryptor, Message, Params, RlweError};

const ROOM: usize = 1 << 30;

/// Both families of primes, and digits of two.
fn params(p_bits: &[u32]) -> Params {
    let literal = ParamsLiteral {
        log_n: 10,
        q_bits: vec![60, 40, 48, 50],
        p_bits: p_bits.to_vec(),
        digit_limbs: 2,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    };
    literal.build(SchemeTag(1)).unwrap()
}

struct Bench {
    params: Params,
    secret: SecretKey,
    keys: EvalKeys,
    host: rlwe::Evaluator,
    device: Device,
    here: rlwe::Evaluator<Evaluator>,
}

const STEPS: [i64; 4] = [1, -3, 0, 7];

fn bench(budget: usize) -> Bench {
    let params = params(&[60, 50]);
    let secret = SecretKey::generate(&params).unwrap();
    let top = params.max_level();
    let mut elements: Vec<(u64, usize)> = STEPS.iter().map(|s| (params.rotation_element(*s), top)).collect();
    elements.retain(|(element, _)| *element != 1);
    elements.push((params.conjugation_element(), top - 1));
    let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(top), &elements).unwrap();
    let device = Device::emulator(Trial::default(), ROOM);
    let here = rlwe::Evaluator::with_backend(Evaluator::new(&device, keys.clone(), budget));
    Bench { host: rlwe::Evaluator::new(keys.clone()), params, secret, keys, device, here }
}

impl Bench {
    fn poly(&self, salt: i64) -> Poly<Eval> {
        let coefficients: Vec<i64> = (0..self.params.degree() as i64).map(|i| (i * salt + 3) % 1000 - 500).collect();
        Poly::<Coeff>::from_signed(self.params.q(), &coefficients).into_eval()
    }

    fn encrypted(&self, first: i64) -> Vec<Ciphertext> {
        let encryptor = Encryptor::with_secret_key(&self.secret).unwrap();
        let message = |salt| {
            let coefficients: Vec<i64> = (0..self.params.degree() as i64).map(|i| (i * salt) << 20).collect();
            Message::Coefficients(Poly::<Coeff>::from_signed(self.params.q(), &coefficients))
        };
        (first..first + 3).map(|salt| encryptor.encrypt(message(salt)).unwrap()).collect()
    }

    fn up(&self, list: &[Ciphertext]) -> Ciphertexts {
        self.here.backend().upload(&list.iter().collect::<Vec<_>>()).unwrap()
    }
}

#[track_caller]
fn equal(what: &str, got: &Ciphertexts, want: &[Ciphertext]) {
    let got = got.to_host().unwrap();
    assert_eq!(got.len(), want.len(), "{what}");
    for (x, y) in got.iter().zip(want) {
        assert_eq!((x.level(), x.parts().len(), x.key()), (y.level(), y.parts().len(), y.key()), "{what}");
        assert!(x.parts().iter().zip(y.parts()).all(|(a, b)| a.words() == b.words()), "{what}: another word");
    }
}

#[test]
fn sums_and_plaintexts() {
    let bench = bench(ROOM);
    let (host, here) = (&bench.host, &bench.here);
    let (a, b) = (bench.encrypted(1), bench.encrypted(9));
    let (x, y) = (bench.up(&a), bench.up(&b));
    let both = |f: &dyn Fn(&Ciphertext, &Ciphertext) -> Ciphertext| -> Vec<Ciphertext> {
        a.iter().zip(&b).map(|(a, b)| f(a, b)).collect()
    };
    equal("add", &here.add(&x, &y).unwrap(), &both(&|a, b| host.add(a, b).unwrap()));
    equal("sub", &here.sub(&x, &y).unwrap(), &both(&|a, b| host.sub(a, b).unwrap()));
    equal("negate", &here.negate(&x).unwrap(), &both(&|a, _| host.negate(a).unwrap()));
    equal("mul_integer", &here.mul_integer(&x, -7).unwrap(), &both(&|a, _| host.mul_integer(a, -7).unwrap()));
    let low = here.drop_to(&y, 1).unwrap();
    equal("drop_to", &low, &both(&|_, b| host.drop_to(b, 1).unwrap()));
    let down = |b: &Ciphertext| host.drop_to(b, 1).unwrap();
    equal("add at the lower level", &here.add(&x, &low).unwrap(), &both(&|a, b| host.add(a, &down(b)).unwrap()));
    equal("rescale", &here.rescale(&x).unwrap(), &both(&|a, _| host.rescale(a).unwrap()));
    equal("rescale, dropped", &here.rescale(&low).unwrap(), &both(&|_, b| host.rescale(&down(b)).unwrap()));

    // Plaintexts of as many primes as the ciphertexts, and of more.
    let p = bench.poly(1);
    for (x, level) in [(&x, 3), (&here.drop_to(&x, 1).unwrap(), 1)] {
        let a: Vec<Ciphertext> = a.iter().map(|a| host.drop_to(a, level).unwrap()).collect();
        let with = |f: &dyn Fn(&Ciphertext) -> Ciphertext| -> Vec<Ciphertext> { a.iter().map(f).collect() };
        equal("add_poly", &here.add_poly(x, &p).unwrap(), &with(&|a| host.add_poly(a, &p).unwrap()));
        equal("sub_poly", &here.sub_poly(x, &p).unwrap(), &with(&|a| host.sub_poly(a, &p).unwrap()));
        equal("mul_poly", &here.mul_poly(x, &p).unwrap(), &with(&|a| host.mul_poly(a, &p).unwrap()));
    }
    // Three parts and two, at one level and at the lower one: what one alone has stays, or is negated.
    let (products, more) = (both(&|a, b| host.dot(&[a], &[b]).unwrap()), here.dot(&[&x], &[&y]).unwrap());
    let with = |f: &dyn Fn(&Ciphertext, &Ciphertext) -> Ciphertext| -> Vec<Ciphertext> {
        products.iter().zip(&b).map(|(p, b)| f(p, b)).collect()
    };
    equal("3 + 2", &here.add(&more, &y).unwrap(), &with(&|p, b| host.add(p, b).unwrap()));
    equal("2 + 3", &here.add(&y, &more).unwrap(), &with(&|p, b| host.add(b, p).unwrap()));
    equal("3 - 2", &here.sub(&more, &low).unwrap(), &with(&|p, b| host.sub(p, &down(b)).unwrap()));
    equal("2 - 3", &here.sub(&low, &more).unwrap(), &with(&|p, b| host.sub(&down(b), p).unwrap()));
    // What lies apart is one batch.
    let chosen = Ciphertexts::gather(&[(&y, 2), (&x, 0)]).unwrap();
    let want = [host.negate(&b[2]).unwrap(), host.negate(&a[0]).unwrap()];
    equal("gather", &here.negate(&chosen).unwrap(), &want);
}

#[test]
fn products_at_every_level() {
    let bench = bench(ROOM);
    let (host, here) = (&bench.host, &bench.here);
    let (a, b) = (bench.encrypted(1), bench.encrypted(9));
    for level in [3, 2, 1] {
        let [a, b] = [&a, &b].map(|list| list.iter().map(|c| host.drop_to(c, level).unwrap()).collect::<Vec<_>>());
        let (x, y) = (bench.up(&a), bench.up(&b));
        let tensor: Vec<_> = a.iter().zip(&b).map(|(a, b)| host.dot(&[a], &[b]).unwrap()).collect();
        let relin: Vec<_> = tensor.iter().map(|d| host.relinearize(d).unwrap()).collect();
        let rescaled: Vec<_> = tensor.iter().map(|d| host.relinearize_rescale(d).unwrap()).collect();
        let product = here.dot(&[&x], &[&y]).unwrap();
        equal("mul", &product, &tensor);
        equal("relinearize", &here.relinearize(&product).unwrap(), &relin);
        equal("mul_relin", &here.mul_relin(&x, &y).unwrap(), &relin);
        equal("mul_rescale", &here.mul_rescale(&x, &y).unwrap(), &rescaled);
    }
    let counted = here.counters();
    assert_eq!((counted.mult, counted.relin, counted.key_switches), (27, 27, 27));
}

/// What schemes ask of whoever computes, by the trait that both implement.
#[test]
fn sums_of_products_and_what_is_rescaled_at_once() {
    let bench = bench(ROOM);
    let (host, here, params) = (&bench.host, &bench.here, &bench.params);
    let (a, b) = (bench.encrypted(1), bench.encrypted(9));
    let (x, y) = (bench.up(&a), bench.up(&b));
    let each = |f: &dyn Fn(&Ciphertext, &Ciphertext) -> Ciphertext| -> Vec<Ciphertext> {
        a.iter().zip(&b).map(|(a, b)| f(a, b)).collect()
    };
    let dot = here.dot(&[&x, &y, &x], &[&y, &y, &x]).unwrap();
    let sums = each(&|a, b| host.dot(&[a, b, a], &[b, b, a]).unwrap());
    equal("dot", &dot, &sums);
    assert_eq!(here.counters(), host.counters());
    let rescaled: Vec<_> = sums.iter().map(|d| host.relinearize_rescale(d).unwrap()).collect();
    equal("relinearize_rescale", &here.relinearize_rescale(&dot).unwrap(), &rescaled);
    let unit = each(&|a, _| host.mul_imaginary_unit(a, false).unwrap());
    equal("mul_imaginary_unit", &here.mul_imaginary_unit(&x, false).unwrap(), &unit);
    let p = bench.poly(3);
    let divided = each(&|a, _| host.mul_poly_rescale(a, &p).unwrap());
    equal("mul_poly_rescale", &here.mul_poly_rescale(&x, &p).unwrap(), &divided);
    let elements = [params.rotation_element(1), 1, params.rotation_element(7)];
    let mask: Vec<i64> = (0..params.degree() as i64).map(|i| i % 90 - 40).collect();
    let mask = Poly::<Coeff>::from_signed(params.qp_at(3), &mask).into_eval();
    let masked = each(&|a, _| host.sum_of_automorphisms_mul_rescale(a, &elements, &mask).unwrap());
    equal("masked sum", &here.sum_of_automorphisms_mul_rescale(&x, &elements, &mask).unwrap(), &masked);
    assert_eq!(here.counters(), host.counters());

    // What was gathered comes apart again, and what does not go together is refused in the device's words.
    let both = here.backend().join(&[&x, &y]).unwrap();
    let parts = here.backend().split(&both, 2).unwrap();
    equal("gather and split", &parts[1], &b);
    assert!(matches!(here.backend().join(&[&x, &dot]), Err(RlweError::Device { .. })));
    assert!(matches!(here.dot(&[&x], &[]), Err(RlweError::Operands { left: 1, right: 0, .. })));
    assert!(matches!(here.dot(&[&dot], &[&x]), Err(RlweError::Degree { found: 3, .. })));
    let other = host.sum_of_automorphisms_mul_rescale(&a[0], &elements, &p).unwrap_err();
    assert!(matches!(other, RlweError::Parameters { .. }));
    assert_eq!(here.sum_of_automorphisms_mul_rescale(&x, &elements, &p).unwrap_err(), other);
    // Batches of other lengths would not come apart again.
    let one = Ciphertexts::gather(&[(&x, 0)]).unwrap();
    assert!(matches!(here.backend().join(&[&one, &x]), Err(RlweError::Operands { left: 1, right: 3, .. })));
    assert!(matches!(here.backend().split(&x, 2), Err(RlweError::Operands { left: 3, right: 2, .. })));
    assert!(matches!(here.backend().split(&x, 0), Err(RlweError::Operands { .. })));
}

#[test]
fn rotations_alone_hoisted_and_summed() {
    let bench = bench(ROOM);
    let (host, here, params) = (&bench.host, &bench.here, &bench.params);
    let elements = [params.rotation_element(1), 1, params.conjugation_element(), params.rotation_element(7)];
    for level in [2, 0] {
        let a: Vec<_> = bench.encrypted(1).iter().map(|c| host.drop_to(c, level).unwrap()).collect();
        let x = bench.up(&a);
        let rotate = |step| -> Vec<Ciphertext> {
            a.iter().map(|a| host.automorphism(a, params.rotation_element(step), step).unwrap()).collect()
        };
        for (step, hoisted) in STEPS.iter().zip(here.rotate_many(&x, &STEPS).unwrap()) {
            equal("rotate", &here.automorphism(&x, params.rotation_element(*step), *step).unwrap(), &rotate(*step));
            equal("rotate_many", &hoisted, &rotate(*step));
        }
        let sum: Vec<_> = a.iter().map(|a| host.sum_of_automorphisms(a, &elements).unwrap()).collect();
        equal("sum_of_automorphisms", &here.sum_of_automorphisms(&x, &elements).unwrap(), &sum);
    }
}

#[test]
fn keys_past_the_budget_are_copied_again() {
    let each = {
        let all = bench(ROOM);
        let x = all.up(&all.encrypted(1));
        for _ in 0..2 {
            all.here.rotate_many(&x, &STEPS).unwrap();
        }
        let (bytes, copied) = all.here.backend().keys_held();
        assert_eq!(copied, 3, "a resident key is copied once");
        bytes / 3
    };
    for (room, copied) in [(2 * each, 6), (each - 1, 6)] {
        let few = bench(room);
        let a = few.encrypted(1);
        let x = few.up(&a);
        for _ in 0..2 {
            for (step, got) in STEPS.iter().zip(few.here.rotate_many(&x, &STEPS).unwrap()) {
                let element = few.params.rotation_element(*step);
                let want: Vec<_> = a.iter().map(|a| few.host.automorphism(a, element, *step).unwrap()).collect();
                equal("streamed", &got, &want);
            }
        }
        let held = few.here.backend().keys_held();
        assert!(held.0 <= room && held.1 == copied, "{held:?} of {room}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let bench = bench(ROOM);
    let here = &bench.here;
    let x = bench.up(&bench.encrypted(1));
    let rlwe = |result: Result<Ciphertexts, RlweError>| result.unwrap_err();
    assert!(matches!(here.backend().upload(&[]), Err(GpuError::Rlwe(RlweError::Operands { .. }))));
    assert!(matches!(
        rlwe(here.automorphism(&x, bench.params.rotation_element(5), 5)),
        RlweError::MissingRotationKey { step: 5, .. }
    ));
    let conjugation = bench.params.conjugation_element();
    assert!(matches!(rlwe(here.sum_of_automorphisms(&x, &[conjugation])), RlweError::NoSuchLevel { wanted: 3, .. }));
    assert!(matches!(rlwe(here.sum_of_automorphisms(&x, &[])), RlweError::Operands { .. }));
    let product = here.dot(&[&x], &[&x]).unwrap();
    assert!(matches!(rlwe(here.dot(&[&product], &[&x])), RlweError::Degree { found: 3, .. }));
    assert!(matches!(
        rlwe(here.automorphism(&product, bench.params.rotation_element(1), 1)),
        RlweError::Degree { found: 3, .. }
    ));
    let bottom = here.drop_to(&x, 0).unwrap();
    assert!(matches!(rlwe(here.rescale(&bottom)), RlweError::OutOfLevels { .. }));
    assert!(matches!(rlwe(here.mul_rescale(&bottom, &bottom)), RlweError::OutOfLevels { .. }));
    assert!(matches!(rlwe(here.drop_to(&bottom, 1)), RlweError::NoSuchLevel { .. }));
    let short = bench.poly(1).truncated(2);
    assert!(matches!(rlwe(here.add_poly(&x, &short)), RlweError::NoSuchLevel { wanted: 3, highest: 1, .. }));
    let two = Ciphertexts::gather(&[(&x, 0), (&x, 1)]).unwrap();
    assert!(matches!(here.add(&x, &two), Err(RlweError::Device { .. })));

    // More levels than these parameters have.
    let mut more = params(&[60, 50]).literal().clone();
    more.q_bits.push(50);
    let more = more.build(SchemeTag(1)).unwrap();
    let theirs = SecretKey::generate(&more).unwrap();
    let message = Message::Coefficients(Poly::<Coeff>::from_signed(more.q(), &vec![1 << 20; more.degree()]));
    let strange = Encryptor::with_secret_key(&theirs).unwrap().encrypt(message).unwrap();
    let foreign = Ciphertexts::from_host(&bench.device, &[&strange]).unwrap();
    let mask = bench.poly(1);
    let wrong = bench.host.sum_of_automorphisms_mul_rescale(&strange, &[1], &mask).unwrap_err();
    assert!(matches!(wrong, RlweError::WrongParameters { .. }));
    assert_eq!(here.sum_of_automorphisms_mul_rescale(&foreign, &[1], &mask).unwrap_err(), wrong);

    // Another key, another device.
    let other = self::bench(ROOM);
    let strange = other.up(&other.encrypted(1));
    assert!(matches!(rlwe(here.add(&x, &strange)), RlweError::WrongKey { .. }));
    let apart = Evaluator::new(&Device::emulator(Trial::default(), ROOM), bench.keys.clone(), ROOM);
    let apart = rlwe::Evaluator::with_backend(apart);
    assert!(matches!(apart.negate(&x), Err(RlweError::Device { .. })));
    assert!(bench.device.is(here.backend().device()));

    // Sums and divisions need no special primes, key switches do.
    let plain = params(&[]);
    let secret = SecretKey::generate(&plain).unwrap();
    let message = Message::Coefficients(Poly::<Coeff>::from_signed(plain.q(), &vec![1 << 20; plain.degree()]));
    let c = Encryptor::with_secret_key(&secret).unwrap().encrypt(message).unwrap();
    let none = Evaluator::new(&bench.device, EvalKeys::new(&plain, secret.id()), ROOM);
    let x = none.upload(&[&c]).unwrap();
    let none = rlwe::Evaluator::with_backend(none);
    assert!(none.add(&x, &x).is_ok() && none.rescale(&x).is_ok());
    assert!(matches!(rlwe(none.sum_of_automorphisms(&x, &[1])), RlweError::Parameters { .. }));
}
