//! Products that are written once, in the evaluator's operations: the processor and devices multiply by these lines, and a
//! planner learns from them what a product takes and promises.

use crate::error::MatrixError;
use crate::product::{Figures, KeyDemand, ProductPlan};
use crate::{rounding, sizing};
use sudare_expr::Operand;
use sudare_he::ckks::spread::{SIGMAS, SIGMAS_ALONE};
use sudare_he::ckks::{Batch, CiphertextOf, EncodeAt, Evaluator, ParamsLiteral};
use sudare_rlwe::simulated::{Ledger, Simulated};
use sudare_rlwe::{Backend, Shaped};

/// A product that is written in the evaluator's operations alone.
pub trait Portable: ProductPlan {
    /// What multiplication needs besides operands, as a backend keeps it.
    type Tables<B: Backend>: Send + Sync;

    /// Makes what multiplication needs.
    ///
    /// # Errors
    /// [`MatrixError::He`].
    fn tables<B: Backend>(&self, e: &Evaluator<B>) -> Result<Self::Tables<B>, MatrixError>;

    /// Multiplies encrypted operands.
    ///
    /// # Errors
    /// [`MatrixError::Count`], [`MatrixError::He`] (missing keys, foreign ciphertexts, …).
    fn multiply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        tables: &Self::Tables<B>,
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError>;

    /// What an operand of elements up to `max_abs` is encoded as: the bound of its values, and that of the message.
    fn message(&self, _: Operand, max_abs: f64) -> (f64, f64) {
        (max_abs, max_abs)
    }

    /// How elements are read from what is decrypted.
    fn reading(&self) -> Reading {
        Reading::Slots { summed: 1 }
    }
}

/// A product on a backend, with what it needs there: it multiplies left by right operands that are where the evaluator works, and
/// leaves the result there. It fails as [`Portable::multiply`], and as the backend does.
pub type ProductOn<B> = Box<
    dyn Fn(&Evaluator<B>, &[CiphertextOf<B>], &[CiphertextOf<B>]) -> Result<Vec<CiphertextOf<B>>, MatrixError>
        + Send
        + Sync,
>;

/// The steps of a product with the tables of a backend.
pub(crate) fn on<P: Portable + 'static, B: Backend + 'static>(
    product: P,
    e: &Evaluator<B>,
) -> Result<ProductOn<B>, MatrixError> {
    let tables = product.tables(e)?;
    Ok(Box::new(move |e, left, right| product.multiply(e, &tables, left.into(), right.into())))
}

/// How elements of a result are read from what is decrypted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// Each is a sum of so many slots.
    Slots {
        /// How many.
        summed: usize,
    },
    /// Each is a coefficient.
    Coefficients,
    /// Each is in a complex slot of so many, which an embedding of their own reads from coefficients.
    Embedded {
        /// How many.
        slots: usize,
        /// Relative standard deviation of the embedding's error.
        error: f64,
    },
}

impl From<&Ledger> for KeyDemand {
    fn from(ledger: &Ledger) -> Self {
        Self { relin: ledger.relin, galois: ledger.galois.iter().map(|(element, level)| (*element, *level)).collect() }
    }
}

/// A product of fresh encryptions under the public key, on a backend that computes nothing.
fn simulated<P: Portable>(product: &P, max_abs: [f64; 2]) -> Result<(Ledger, CiphertextOf<Simulated>), MatrixError> {
    let params = product.literal().build()?;
    let e = Evaluator::with_backend(&params, Simulated::new(&params))?;
    let tables = product.tables(&e)?;
    let fresh = |operand: Operand, max_abs: f64| -> Result<_, MatrixError> {
        let (values, bound) = product.message(operand, max_abs);
        let at = EncodeAt { level: params.max_level(), scale: params.scale(), max_abs: values };
        Ok([e.encryptions(at, product.ciphertexts(operand))?.with_bound(bound)])
    };
    let (left, right) = (fresh(Operand::Left, max_abs[0])?, fresh(Operand::Right, max_abs[1])?);
    let mut output = product.multiply(&e, &tables, left[..].into(), right[..].into())?;
    let none = MatrixError::Count { what: "batches of a simulated result", found: 0, expected: 1 };
    Ok((e.backend().ledger(), output.pop().ok_or(none)?))
}

/// What a product takes and promises: learned by running it.
///
/// # Errors
/// [`MatrixError::He`] for parameters that cannot be, and where the modulus does not hold what is computed.
pub fn figures<P: Portable>(product: &P, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
    let (ledger, output) = simulated(product, max_abs)?;
    Ok(Figures {
        keys: KeyDemand::from(&ledger),
        work: ledger.work,
        counters: Some(ledger.counters),
        table_bytes: ledger.prepared,
        peak_bytes: ledger.peak,
        ciphertexts: output.inner().count(),
        parts: output.inner().polynomials(),
        level: output.level(),
        scale: output.scale(),
        error: read(product, &output, max_abs),
    })
}

/// Largest error of an element of a fresh encryption, or of a sum of `terms` that are encrypted alike.
///
/// # Errors
/// [`MatrixError::He`] for parameters that cannot be, and where the modulus does not hold it.
pub fn encryption_error(literal: &ParamsLiteral, at: EncodeAt, terms: usize) -> Result<f64, MatrixError> {
    let params = literal.build()?;
    let spread = Evaluator::with_backend(&params, Simulated::new(&params))?.encryptions(at, 1)?.spread();
    Ok(spread.scaled((terms as f64).sqrt()).largest() / at.scale)
}

/// Bits of the modulus that a result takes whose method never rescales, sign included: `product` has more than enough.
///
/// # Errors
/// As [`figures`].
pub fn modulus_bits<P: Portable>(product: &P, max_abs: [f64; 2]) -> Result<f64, MatrixError> {
    let (_, output) = simulated(product, max_abs)?;
    Ok((output.bound() * output.scale() + output.noise()).log2() + 1.0)
}

/// The largest error to expect of an element that is decrypted and read as a sum of slots.
pub(crate) fn read_slots(output: &CiphertextOf<Simulated>, summed: usize) -> f64 {
    let (params, spread, scale) = (output.params(), output.spread(), output.scale());
    let (terms, rescales) = (summed as f64, params.max_level() - output.level());
    let rounded = rounding::reading_slots(params.degree(), output.bound());
    let variance = (spread.real.held / scale.powi(2) + rounded.powi(2)) * terms;
    let sigmas = if spread.alone && summed == 1 { SIGMAS_ALONE } else { SIGMAS };
    // A sum of doubles loses another ulp.
    let lost = rounding::drift(rescales) + if summed > 1 { f64::EPSILON } else { 0.0 };
    sigmas * (variance / 2.0).sqrt() + (spread.real.common / scale + lost * output.bound()) * terms
}

/// The same of a product's element, by the method's way to read it.
fn read<P: Portable>(product: &P, output: &CiphertextOf<Simulated>, max_abs: [f64; 2]) -> f64 {
    let (params, shape, spread, scale) = (output.params(), product.shape(), output.spread(), output.scale());
    let degree = params.degree();
    match product.reading() {
        Reading::Slots { summed } => read_slots(output, summed),
        Reading::Coefficients => {
            let (k, elements) = (shape.k as f64, (shape.m * shape.n * shape.batch) as f64);
            // Elements alike are rounded alike to coefficients: half a unit each, whatever they are.
            let rounded = k * 0.5 * (max_abs[0] + max_abs[1]) / f64::from(product.literal().log_scale).exp2();
            // A coefficient's variance is a slot's by N.
            let noise = sizing::largest(elements, spread.real.held / degree as f64) / scale;
            noise + rounded + rounding::drift(0) * k * max_abs[0] * max_abs[1]
        }
        Reading::Embedded { slots, error } => {
            let (k, elements) = (shape.k as f64, (shape.m * shape.n * shape.batch) as f64);
            let rescales = product.literal().q_bits.len() - 1 - output.level();
            let [a, b] = max_abs;
            // A slot is a complex pair of elements, and of a result and a cross sum.
            let encoded = 4.0 * k * (error * a * b).powi(2);
            let decoded = 2.0 * (rounding::reading(error) * k * a * b).powi(2);
            // A coefficient's variance is a slot's by N.
            let noise = slots as f64 * spread.real.held / degree as f64 / scale.powi(2);
            sizing::largest(elements, noise + encoded + decoded) + rounding::drift(rescales) * k * a * b
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::coefficient::{self, CoefficientOptions};
    use crate::products::module::{self, ModuleOptions};
    use crate::products::spread3d::SpreadOptions;
    use crate::products::{Method, ProductSpec};
    use crate::products::{bicyclic, improved3d, jiang, paper3d, spread3d, tiled};
    use crate::slots::cube::Improvements;
    use sudare_expr::Matrix;
    use sudare_expr::Shape;
    use sudare_he::ckks::Encryptor;
    use sudare_he::ckks::spread::Part;
    use sudare_rlwe::keys::{EvalKeys, KeyGenerator, SecretKey};
    use sudare_rlwe::security::{SecretDistribution, Security};

    pub fn literal(levels: usize) -> ParamsLiteral {
        ParamsLiteral {
            rlwe: sudare_rlwe::params::ParamsLiteral {
                log_n: 11,
                q_bits: std::iter::once(55).chain(std::iter::repeat_n(40, levels)).collect(),
                p_bits: vec![50, 50],
                digit_limbs: 2,
                secret: SecretDistribution::Ternary,
                security: Security::Insecure,
            },
            log_scale: 38,
        }
    }

    /// Encoded masks of linear maps are rounded as it happens; a simulation expects what is usual.
    fn close(method: &Method, x: f64, y: f64) -> bool {
        let digits = if matches!(method, Method::JiangBsgs) { 1e-3 } else { 1e-9 };
        x == y || (x / y - 1.0).abs() < digits
    }

    /// The same lines on ciphertexts, with no key but those that the simulation names: levels, scales, bounds, noise and
    /// counters are equal to the last bit.
    fn runs_as_simulated<P: Portable>(plan: &P, method: Method) {
        let (shape, max_abs, literal) = (plan.shape(), [2.0, 0.5], plan.literal());
        let (ledger, simulated) = simulated(plan, max_abs).unwrap();
        let product = ProductSpec { shape, method: method.clone(), params: literal.clone() }.build().unwrap();
        let secret = SecretKey::generate(product.params()).unwrap();
        let generator = KeyGenerator::new(&secret).unwrap();
        let named = KeyDemand::from(&ledger);
        let keys = match (named.relin, named.galois.is_empty()) {
            (None, true) => EvalKeys::new(product.params(), secret.id()),
            _ => generator.eval_keys(named.relin, &named.galois).unwrap(),
        };
        let e = Evaluator::new(product.params(), keys).unwrap();
        let public = generator.public_key().unwrap();
        let encryptor = Encryptor::with_public_key(&public).unwrap();
        let given = |operand: Operand, max: f64| -> Vec<_> {
            let (rows, cols) = shape.of(operand);
            let value = |t: usize| move |i: usize, j: usize| max * (((i * 7 + j * 3 + t) % 11) as f64 / 11.0 - 0.5);
            let all: Vec<_> = (0..shape.batch).map(|t| Matrix::from_fn(rows, cols, value(t)).unwrap()).collect();
            product.encode(operand, &all, max).unwrap().iter().map(|p| encryptor.encrypt(p).unwrap()).collect()
        };
        let (left, right) = (given(Operand::Left, max_abs[0]), given(Operand::Right, max_abs[1]));
        product.prepare().unwrap();
        e.reset_counters();
        let out = product.multiply(&e, &left, &right).unwrap();
        assert_eq!(out.len(), simulated.inner().count(), "{method:?}");
        for c in &out {
            assert_eq!(
                (c.level(), c.parts().len()),
                (simulated.level(), simulated.inner().polynomials()),
                "{method:?}"
            );
            assert_eq!(c.state(), simulated.state(), "{method:?}");
            let (x, y) = (c.spread(), simulated.spread());
            let near = |x: f64, y: f64| close(&method, x, y);
            let parts = [(x.real, y.real), (x.imaginary, y.imaginary)];
            let alike =
                |(x, y): (Part, Part)| near(x.held, y.held) && near(x.empty, y.empty) && near(x.common, y.common);
            assert!(parts.into_iter().all(alike) && x.alone == y.alone, "{method:?}: {x:?} {y:?}");
        }
        assert_eq!(e.counters(), ledger.counters, "{method:?}");
    }

    #[test]
    fn simulation_is_the_run_of_cubes() {
        for bits in 0..64u32 {
            let on = |i: u32| bits >> i & 1 == 1;
            let options = Improvements {
                merged_rotations: on(0),
                exact_ring: on(1),
                spare_slots: on(2),
                real_pairing: on(3),
                unroll: if on(4) { 2 } else { 0 },
                rescale_first: on(5),
                fused_masks: on(4),
                clean_output: bits % 3 == 0,
            };
            let shape = Shape { m: 4, k: 8, n: 3, batch: 2 };
            let plan = improved3d::Improved3dPlan::new(shape, &literal(4), options).unwrap();
            runs_as_simulated(&plan, Method::Improved3d(options));
            if bits % 8 == 0 {
                let (shape, tile) = (Shape { m: 9, k: 6, n: 5, batch: 2 }, 4);
                let plan = tiled::TiledPlan::new(shape, &literal(4), tile, options).unwrap();
                runs_as_simulated(&plan, Method::Tiled { tile, options });
            }
        }
        let shape = Shape { m: 4, k: 3, n: 2, batch: 2 };
        runs_as_simulated(&paper3d::Paper3dPlan::new(shape, &literal(3)).unwrap(), Method::Paper3d);
    }

    #[test]
    fn simulation_is_the_run_of_other_methods() {
        for bits in 0..8u32 {
            let options = SpreadOptions { real_pairing: bits & 1 == 1, fold: bits & 2 == 2, unroll: bits >> 2 };
            for shape in [Shape { m: 5, k: 9, n: 4, batch: 3 }, Shape { m: 30, k: 40, n: 20, batch: 2 }] {
                let plan = spread3d::Spread3dPlan::new(shape, &literal(1), options).unwrap();
                runs_as_simulated(&plan, Method::Spread3d(options));
            }
        }
        for relinearize in [false, true] {
            let (shape, options) =
                (Shape { m: 10, k: 9, n: 8, batch: 2 }, CoefficientOptions { block: (5, 3, 8), relinearize });
            let plan = coefficient::CoefficientPlan::new(shape, &literal(1), options).unwrap();
            runs_as_simulated(&plan, Method::Coefficient(options));
        }
        for (m, k, n, batch) in [(4, 4, 4, 1), (3, 5, 2, 3), (1, 1, 1, 1)] {
            let shape = Shape { m, k, n, batch };
            runs_as_simulated(&jiang::JiangPlan::new(shape, &literal(3), false).unwrap(), Method::Jiang);
            runs_as_simulated(&jiang::JiangPlan::new(shape, &literal(3), true).unwrap(), Method::JiangBsgs);
            runs_as_simulated(&bicyclic::BicyclicPlan::new(shape, &literal(1)).unwrap(), Method::Bicyclic);
        }
        for (relinearize, levels) in [(false, 1), (true, 1)] {
            let (shape, options) =
                (Shape { m: 10, k: 70, n: 18, batch: 3 }, ModuleOptions { side: 8, slots: 4, relinearize });
            let plan = module::ModulePlan::new(shape, &literal(levels), options).unwrap();
            runs_as_simulated(&plan, Method::Module(options));
        }
    }

    /// Blocks that the caches do not hold are read again for each product; those that they hold, or that are read once, are
    /// not.
    #[test]
    fn operands_are_read_again_past_the_caches() {
        let bytes = |shape: Shape, block: (usize, usize, usize)| {
            let mut literal = literal(2);
            literal.log_n = 12;
            let plan =
                coefficient::CoefficientPlan::new(shape, &literal, CoefficientOptions { block, relinearize: false });
            (figures(&plan.unwrap(), [1.0; 2]).unwrap().work.operand_bytes, ((2 * 3 * 8) << literal.log_n) as f64)
        };
        // Sixteen blocks of 192 KiB a side, each of them in four products.
        let (read, block) = bytes(Shape::new(64, 64, 64), (16, 16, 16));
        assert_eq!(read, 2.0 * 64.0 * block);
        assert_eq!(bytes(Shape { batch: 3, ..Shape::new(64, 64, 64) }, (16, 16, 16)).0, 3.0 * read);
        assert_eq!(bytes(Shape::new(32, 32, 32), (16, 16, 16)).0, 0.0);
        assert_eq!(bytes(Shape { batch: 64, ..Shape::new(32, 16, 16) }, (16, 16, 16)).0, 0.0);
        // A row times a column.
        assert_eq!(bytes(Shape::new(16, 4096, 16), (16, 16, 16)).0, 0.0);
    }

    /// However many ciphertexts a value has, it is one batch, whose figures are those of its members.
    #[test]
    fn a_batch_takes_what_its_members_do() {
        let of = |batch: usize| {
            let shape = Shape { batch, ..Shape::new(8, 8, 8) };
            let plan = tiled::TiledPlan::new(shape, &literal(2), 4, Improvements::ALL).unwrap();
            figures(&plan, [1.0; 2]).unwrap()
        };
        let (one, many) = (of(1), of(1000));
        assert_eq!((one.work * 1000.0, 1000 * one.ciphertexts), (many.work, many.ciphertexts));
        let same = |f: &Figures| (f.keys.clone(), f.table_bytes, f.parts, f.level, f.scale, f.error);
        assert_eq!(same(&one), same(&many));
        // Operands, what they are spread to, and results; a circuit's own values are there once.
        let (count, top, below) = (4.0, 2.0 * 3.0, 2.0 * 2.0);
        let all = 8.0 * 2048.0 * count * (2.0 * top + 2.0 * below + 2.0);
        let share = many.peak_bytes as f64 / 1000.0 / all;
        assert!((0.9..1.1).contains(&share), "{share}");
    }
}
