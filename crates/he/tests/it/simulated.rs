//! A simulation is the run: the same lines on a backend that computes nothing and on ciphertexts, with no key but those that the
//! simulation names. Levels, scales, bounds, counters and what operations are made of are equal.

use crate::world::{Owner, literal, reals};
use sudare_he::HeError;
use sudare_he::circuits::block_product::BlockProduct;
use sudare_he::circuits::expansion::Expansion;
use sudare_he::circuits::polynomial::{Polynomial, PolynomialCircuit};
use sudare_he::circuits::trace::TraceFunction;
use sudare_he::ckks::{Ciphertext, CiphertextOf, EncodeAt, Encryptor, Evaluator, Params};
use sudare_ring::count::{Counts, counted};
use sudare_rlwe::keys::{EvalKeys, KeyGenerator};
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::{Backend, Blocks, Shaped};
use sudare_testkit::Random;

fn params() -> Params {
    literal(10, &[50, 40, 40, 40, 40], &[45, 45], 2, 38).build().unwrap()
}

/// A server with the keys that a ledger names, at the levels that it names.
fn server(owner: &Owner, ledger: &Ledger) -> Evaluator {
    let elements: Vec<_> = ledger.galois.iter().map(|(element, level)| (*element, *level)).collect();
    let keys = match (ledger.relin, elements.is_empty()) {
        (None, true) => EvalKeys::new(&owner.params, owner.secret.id()),
        (relin, _) => KeyGenerator::new(&owner.secret).unwrap().eval_keys(relin, &elements).unwrap(),
    };
    Evaluator::new(&owner.params, keys).unwrap()
}

/// A circuit of some fresh encryptions, on any backend.
trait Circuit {
    const INPUTS: usize;

    fn run<B: Backend>(&self, e: &Evaluator<B>, x: &[CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError>;

    /// What is encrypted, with a bound.
    fn encrypted(&self, owner: &Owner, place: usize) -> Ciphertext {
        let x: Vec<f64> = reals(&mut Random(place as u64), owner.params.slots()).iter().map(|z| z.re).collect();
        let plain = owner.encoder.encode(&x, 1.0).unwrap();
        let public = KeyGenerator::new(&owner.secret).unwrap().public_key().unwrap();
        Encryptor::with_public_key(&public).unwrap().encrypt(&plain).unwrap()
    }

    /// Whether operations are counted by what they are made of.
    fn is_counted(&self) -> bool {
        true
    }
}

/// Counters and what they are made of, of an operation with everything that it prepares left out.
fn runs_as_simulated<C: Circuit>(what: &str, circuit: &C) {
    let params = params();
    let dry = Evaluator::with_backend(&params, Simulated::new(&params)).unwrap();
    let at = EncodeAt { level: params.max_level(), scale: params.scale(), max_abs: 1.0 };
    let fresh: Vec<_> = (0..C::INPUTS).map(|_| dry.encryptions(at, 1).unwrap()).collect();
    let simulated = circuit.run(&dry, &fresh).unwrap();
    let ledger = dry.backend().ledger();
    let owner = Owner::new(&params);
    let e = server(&owner, &ledger);
    let inputs: Vec<Ciphertext> = (0..C::INPUTS).map(|place| circuit.encrypted(&owner, place)).collect();
    let (found, counts): (Vec<_>, Counts) = counted(|| circuit.run(&e, &inputs).unwrap());
    assert_eq!(found.len(), simulated.iter().map(|c| c.inner().count()).sum::<usize>(), "{what}");
    // What stands for several says the same of all of them.
    let of = |place: usize| simulated.get(place).unwrap_or(&simulated[0]);
    for (place, c) in found.iter().enumerate() {
        let dry = of(place);
        assert_eq!((c.level(), c.parts().len()), (dry.level(), dry.inner().polynomials()), "{what}");
        assert_eq!(c.state().scale, dry.state().scale, "{what}");
        assert!((c.state().bound / dry.state().bound - 1.0).abs() < 1e-9, "{what}");
        assert!((c.state().noise / dry.state().noise - 1.0).abs() < 1e-2, "{what}");
    }
    assert_eq!(e.counters(), ledger.counters, "{what}");
    if circuit.is_counted() {
        // Encoding is not an operation on ciphertexts.
        let made_of = |c: Counts| (c.decompositions, c.inner_products, c.key_bytes);
        assert_eq!(made_of(counts), made_of(ledger.counts), "{what}");
        assert!(counts.transforms >= ledger.counts.transforms, "{what}");
    }
}

struct Traced(usize);

impl Circuit for Traced {
    const INPUTS: usize = 2;

    fn run<B: Backend>(&self, e: &Evaluator<B>, x: &[CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let plan = TraceFunction::total_sum(e.params())?.unrolled(self.0)?;
        Ok(vec![e.inner_product(&x[0], &x[1], &plan)?])
    }
}

struct Evaluated(Vec<f64>);

impl Circuit for Evaluated {
    const INPUTS: usize = 1;

    fn run<B: Backend>(&self, e: &Evaluator<B>, x: &[CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        let polynomial = Polynomial::chebyshev(&self.0, -1.0, 1.0)?;
        let circuit = PolynomialCircuit::on(e, &polynomial, x[0].level(), x[0].scale(), e.params().scale())?;
        Ok(vec![e.polynomial(&x[0], &circuit)?])
    }
}

struct Multiplied(bool);

impl Multiplied {
    fn product(&self) -> BlockProduct {
        let blocks =
            Blocks { side: 8, groups: 1, block_rows: 1, block_columns: 1, terms: 2, rows: 5, relinearize: self.0 };
        BlockProduct { blocks, occupied: 0.75 }
    }
}

impl Circuit for Multiplied {
    const INPUTS: usize = 2;

    fn run<B: Backend>(&self, e: &Evaluator<B>, x: &[CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        e.block_products(x.into(), x.into(), &self.product())
    }

    fn is_counted(&self) -> bool {
        false
    }
}

struct Expanded(usize);

impl Circuit for Expanded {
    const INPUTS: usize = 1;

    fn run<B: Backend>(&self, e: &Evaluator<B>, x: &[CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, HeError> {
        e.expand(&x[0], &Expansion::new(e.params(), self.0)?)
    }
}

#[test]
fn a_simulation_is_the_run() {
    for iterations in [1, 3, 9] {
        runs_as_simulated("an inner product", &Traced(iterations));
    }
    for degree in [1, 3, 7, 12] {
        let coefficients: Vec<f64> = (0..=degree).map(|k| 0.3 / f64::from(k + 1)).collect();
        runs_as_simulated("a polynomial", &Evaluated(coefficients));
    }
    for count in [1, 5, 8] {
        runs_as_simulated("an expansion", &Expanded(count));
    }
    for relinearize in [false, true] {
        runs_as_simulated("products of blocks", &Multiplied(relinearize));
    }
}
