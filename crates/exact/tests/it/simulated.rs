//! A simulation is the run: the same lines on a backend that computes nothing and on ciphertexts, with no key but those that the
//! simulation names. Levels, plaintext factors, noise bounds, counters and what operations are made of are equal.

use super::world::literal;
use sudare_exact::bfv::Bfv;
use sudare_exact::bgv::Bgv;
use sudare_exact::plan::EXACT;
use sudare_exact::{
    CiphertextOf, Decryptor, Encoder, Encryptor, Evaluator, ExactError, IntegerParams, Packing, Plaintext, Scheme, Wrap,
};
use sudare_ring::count::{Counts, counted};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::{Backend, Shaped};
use sudare_testkit::Random;

const T: u64 = 12289;

/// A server's part, on any backend.
trait Circuit {
    fn run<S: Scheme, B: Backend>(&self, w: &Work<'_>, e: &Evaluator<S, B>, x: [&CiphertextOf<S, B>; 2]) -> Made<S, B>;

    /// What it makes of slots.
    fn plain(&self, x: u64, y: u64, p: u64) -> u64;
}

type Made<S, B> = Result<CiphertextOf<S, B>, ExactError>;

/// What the server has: a plaintext, which is asked for where there is something to compute.
struct Work<'a> {
    plain: &'a Plaintext,
}

/// x²·y + 3xy, down some levels, and p.
struct Products;

impl Circuit for Products {
    fn run<S: Scheme, B: Backend>(
        &self,
        w: &Work<'_>,
        e: &Evaluator<S, B>,
        [x, y]: [&CiphertextOf<S, B>; 2],
    ) -> Made<S, B> {
        let product = e.mul_relin(x, y)?;
        let cube = e.mul_relin(&product, x)?;
        let sum = e.add(&cube, &e.mul_integer(&product, 3)?)?;
        let low = e.drop_to(&sum, sum.level().saturating_sub(1))?;
        e.add_plain(&low, w.plain)
    }

    fn plain(&self, x: u64, y: u64, p: u64) -> u64 {
        x * y % T * (x + 3) + p
    }
}

/// Sums of products whose operands stand at several levels, relinearised late: 2xy + px.
struct Sums;

impl Circuit for Sums {
    fn run<S: Scheme, B: Backend>(
        &self,
        w: &Work<'_>,
        e: &Evaluator<S, B>,
        [x, y]: [&CiphertextOf<S, B>; 2],
    ) -> Made<S, B> {
        let low = e.drop_to(y, y.level() - 1)?;
        let product = e.dot(&[x, &low], &[y, x])?;
        let factor = e.factor_within(x.level(), T as f64 * 1024.0, || Ok(w.plain.clone()))?;
        let mut sum = e.relinearize(&product)?;
        e.add_assign(&mut sum, &e.mul_factor(x, &factor)?)?;
        Ok(sum)
    }

    fn plain(&self, x: u64, y: u64, p: u64) -> u64 {
        2 * x * y + p * x
    }
}

/// Differences under other plaintext factors, rotations there and back: x − y.
struct Rotations;

impl Circuit for Rotations {
    fn run<S: Scheme, B: Backend>(
        &self,
        w: &Work<'_>,
        e: &Evaluator<S, B>,
        [x, y]: [&CiphertextOf<S, B>; 2],
    ) -> Made<S, B> {
        let there = e.rotate_many(x, &[3, -1])?;
        let back = e.rotate_rows(&there[0], -3)?;
        let twice = e.sum_of_automorphisms(y, &[1, e.params().row_swap_element()])?;
        let swapped = e.rotate_columns(y)?;
        let y = e.sub(&twice, &swapped)?;
        e.sub_plain(&e.add_plain(&e.sub(&back, &y)?, w.plain)?, w.plain)
    }

    fn plain(&self, x: u64, y: u64, _: u64) -> u64 {
        x + T - y
    }
}

fn server<S: Scheme>(params: &IntegerParams, secret: &SecretKey, ledger: &Ledger) -> Evaluator<S> {
    let elements: Vec<_> = ledger.galois.iter().map(|(element, level)| (*element, *level)).collect();
    let keys = match (ledger.relin, elements.is_empty()) {
        (None, true) => EvalKeys::new(params, secret.id()),
        (relin, _) => KeyGenerator::new(secret).unwrap().eval_keys(relin, &elements).unwrap(),
    };
    Evaluator::new(params, keys).unwrap()
}

fn runs_as_simulated<S: Scheme>(what: &str, circuit: &impl Circuit) {
    let rlwe = literal(11, &[47, 42, 42, 42, 42, 42, 42], &[45, 45], 2).build(EXACT).unwrap();
    let params = IntegerParams::new(&rlwe, T).unwrap();
    let (encoder, mut random) = (Encoder::new(&params), Random(7));
    let mut values = || -> Vec<u64> { (0..params.slots()).map(|_| random.below(T)).collect() };
    let [x, y, p] = [values(), values(), values()];
    let encoded = |values: &[u64]| encoder.encode_unsigned(values, Packing::Slots, Wrap::Refuse).unwrap();
    let plain = encoded(&p);
    let work = Work { plain: &plain };

    let dry = Evaluator::<S, _>::with_backend(&params, Simulated::new(&rlwe)).unwrap();
    let fresh = dry.encryptions(params.max_level(), 1).unwrap();
    let simulated = circuit.run(&work, &dry, [&fresh, &fresh]).unwrap();
    let ledger = dry.backend().ledger();

    let secret = SecretKey::generate(&params).unwrap();
    let public = KeyGenerator::new(&secret).unwrap().public_key().unwrap();
    let encryptor = Encryptor::<S>::with_public_key(&params, &public).unwrap();
    let [cx, cy] = [&x, &y].map(|values| encryptor.encrypt(&encoded(values)).unwrap());
    let e = server::<S>(&params, &secret, &ledger);
    let (made, counts) = counted(|| circuit.run(&work, &e, [&cx, &cy]).unwrap());

    let what = format!("{what} of {}", S::NAME);
    assert_eq!((made.level(), made.state()), (simulated.level(), simulated.state()), "{what}");
    assert_eq!(made.inner().polynomials(), simulated.inner().polynomials(), "{what}");
    assert_eq!(e.counters(), ledger.counters, "{what}");
    // A plaintext is transformed where it is prepared.
    let prepared = Counts { transforms: ledger.prepared / (8 << params.log_n()), ..Counts::default() };
    assert_eq!(counts, ledger.counts + prepared, "{what}");
    let opened = Decryptor::<S>::new(&params, &secret).unwrap().decrypt(&made).unwrap();
    let found = encoder.decode_unsigned(&opened, Packing::Slots).unwrap();
    let wanted: Vec<u64> = x.iter().zip(&y).zip(&p).map(|((x, y), p)| circuit.plain(*x, *y, *p) % T).collect();
    assert_eq!(found, wanted, "{what}");
}

#[test]
fn a_simulation_is_the_run() {
    runs_as_simulated::<Bfv>("products", &Products);
    runs_as_simulated::<Bgv>("products", &Products);
    runs_as_simulated::<Bfv>("sums", &Sums);
    runs_as_simulated::<Bgv>("sums", &Sums);
    runs_as_simulated::<Bfv>("rotations", &Rotations);
    runs_as_simulated::<Bgv>("rotations", &Rotations);
}

/// A batch of a simulation is counted as its ciphertexts, and its state is that of each.
#[test]
fn a_batch_is_its_ciphertexts() {
    let rlwe = literal(11, &[47, 42, 42, 42], &[45, 45], 2).build(EXACT).unwrap();
    let params = IntegerParams::new(&rlwe, T).unwrap();
    let of = |count: usize| {
        let e = Evaluator::<Bfv, _>::with_backend(&params, Simulated::new(&rlwe)).unwrap();
        let x = e.encryptions(params.max_level(), count).unwrap();
        let made = e.mul_relin(&x, &x).unwrap();
        (made.state(), made.level(), e.backend().ledger())
    };
    let (one, many) = (of(1), of(1000));
    assert_eq!((one.0, one.1), (many.0, many.1));
    assert_eq!(many.2.counters, one.2.counters * 1000);
    assert_eq!(many.2.counts, one.2.counts * 1000);
    assert_eq!(many.2.relin, one.2.relin);
}

/// A plaintext over the norm that was stated for it is refused, and so is work without keys or room.
#[test]
fn what_a_run_refuses() {
    let rlwe = literal(11, &[47, 42, 42], &[45, 45], 2).build(EXACT).unwrap();
    let params = IntegerParams::new(&rlwe, T).unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let e = Evaluator::<Bgv>::new(&params, EvalKeys::new(&params, secret.id())).unwrap();
    let encoded = || Encoder::new(&params).encode_unsigned(&[6000; 4], Packing::Coefficients, Wrap::Refuse);
    let refused = e.factor_within(1, 100.0, encoded).unwrap_err();
    assert!(refused.to_string().contains("over the declared 100.0"), "{refused}");
    assert!(e.factor_within(1, 24_001.0, encoded).is_ok());
    // A simulation has every key, and no more room than a run.
    let dry = Evaluator::<Bgv, _>::with_backend(&params, Simulated::new(&rlwe)).unwrap();
    let mut power = dry.encryptions(params.max_level(), 1).unwrap();
    let refused = loop {
        match dry.square(&power) {
            Ok(next) => power = next,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, ExactError::Rlwe(RlweError::NoBudget { .. })), "{refused}");
}
