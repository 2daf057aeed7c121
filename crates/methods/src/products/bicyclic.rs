//! Products by bicyclic diagonals (Chen, Yang, Wu, Liu, Feng, "Homomorphic matrix operations under bicyclic encoding").
//!
//! For coprime sides n and p the diagonal that runs around both holds every element of an n×p matrix once: slot s is the
//! element (s mod n, s mod p). With pairwise coprime n, k, p and operands that are encrypted so, going on from their
//! beginning where they end, slot s of the left one rotated by i·n is A\[s mod n, (s + i·n) mod k\], and slot s of the right
//! one rotated by r_i, a multiple of p with r_i ≡ i·n modulo k, is B\[(s + i·n) mod k, s mod p\]. Their products, summed over
//! the k rotations, are the result in slots 0 to n·p − 1: k − 1 rotations of each operand, no mask and no level.
//!
//! Sides are raised until they are coprime. Slots beyond the result hold sums of products of elements, which whoever
//! decrypts sees as well.

use super::{Method, ProductSpec};
use crate::error::MatrixError;
use crate::portable::{self, Portable, Reading};
use crate::product::{Figures, Product, ProductPlan, Requirements};
use crate::sizing;
use crate::slots::common::{check_count, check_matrices, check_shape, slots_of};
use sudare_expr::{Matrix, Operand, Shape};
use sudare_he::ckks::{
    Batch, Ciphertext, CiphertextOf, Decrypted, Encoder, Evaluator, Order, Params, ParamsLiteral, Plaintext,
};
use sudare_rlwe::Backend;

const NAME: &str = "bicyclic";
/// Most terms of a contraction: each is a rotation of either operand.
const MAX_TERMS: usize = 64;

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The least side from `side` that is coprime to others.
fn coprime(side: usize, others: &[usize]) -> usize {
    let mut side = side;
    while others.iter().any(|other| gcd(side, *other) != 1) {
        side += 1;
    }
    side
}

/// The product's sizes and parameters.
#[derive(Clone, Debug)]
pub struct BicyclicPlan {
    shape: Shape,
    literal: ParamsLiteral,
    /// n, k, p: the sides as they are encrypted.
    sides: [usize; 3],
}

impl BicyclicPlan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for more terms than 64, slots that do not suffice, or parameters without special primes.
    pub fn new(shape: Shape, literal: &ParamsLiteral) -> Result<Self, MatrixError> {
        check_shape(NAME, shape)?;
        let refuse = |reason: String| Err(MatrixError::Method { method: NAME, reason });
        if shape.k > MAX_TERMS {
            return refuse(format!(
                "it takes up to {MAX_TERMS} terms, each of two rotations, and there are {}; take another method",
                shape.k
            ));
        }
        if literal.p_bits.is_empty() {
            return refuse("its rotations need special primes; take parameters with some".into());
        }
        let sides = Self::sides(shape);
        let (need, slots) = (Self::slots(sides), 1usize << literal.log_n.clamp(1, 30).saturating_sub(1));
        if need > slots {
            return refuse(format!("sides {sides:?} take {need} slots, and the ring has {slots}; take a larger ring"));
        }
        Ok(Self { shape, literal: literal.clone(), sides })
    }

    /// The contraction is the dearest side, and raised last.
    fn sides(shape: Shape) -> [usize; 3] {
        let k = shape.k;
        let n = coprime(shape.m, &[k]);
        [n, k, coprime(shape.n, &[k, n])]
    }

    /// Slots of a result and of the furthest rotation.
    fn slots([n, k, p]: [usize; 3]) -> usize {
        n * p + k.saturating_sub(1) * n.max(p)
    }

    /// The rotations of both operands.
    fn steps(&self) -> [Vec<i64>; 2] {
        let [n, k, p] = self.sides;
        // Multiples of p by what they are modulo k.
        let mut multiples = vec![0; k];
        (0..k).for_each(|x| multiples[p * x % k] = (p * x) as i64);
        [(0..k).map(|i| (i * n) as i64).collect(), (0..k).map(|i| multiples[i * n % k]).collect()]
    }
}

impl ProductPlan for BicyclicPlan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.literal
    }

    fn ciphertexts(&self, _: Operand) -> usize {
        self.shape.batch
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        portable::figures(self, max_abs)
    }
}

impl Portable for BicyclicPlan {
    type Tables<B: Backend> = ();

    fn tables<B: Backend>(&self, _: &Evaluator<B>) -> Result<(), MatrixError> {
        Ok(())
    }

    fn multiply<B: Backend>(
        &self,
        e: &Evaluator<B>,
        (): &(),
        left: Batch<'_, B::Ciphertext>,
        right: Batch<'_, B::Ciphertext>,
    ) -> Result<Vec<CiphertextOf<B>>, MatrixError> {
        check_count("left ciphertexts", left.len(), self.shape.batch)?;
        check_count("right ciphertexts", right.len(), self.shape.batch)?;
        let [steps, others] = self.steps();
        let one = |pair: &[&CiphertextOf<B>]| {
            let (a, b) = (e.rotate_many(pair[0], &steps)?, e.rotate_many(pair[1], &others)?);
            Ok(e.dot(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>())?)
        };
        e.each(Order::InTurn, self.shape.batch, |t| vec![left.at(t), right.at(t)], one)
    }

    fn reading(&self) -> Reading {
        Reading::Slots { summed: 1 }
    }
}

/// The least ring that holds a product, at the smallest scale that reaches the wanted error.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    let shape = req.shape;
    if req.fresh != [true; 2] || !req.decrypt_next || check_shape(NAME, shape).is_err() || shape.k > MAX_TERMS {
        return Vec::new();
    }
    let least = (1 + BicyclicPlan::slots(BicyclicPlan::sides(shape)).next_power_of_two().trailing_zeros()).max(11);
    let literal = |log_n: u32, log_scale: u32| {
        let mut ample = sizing::ample(log_n, log_scale);
        (ample.p_bits, ample.digit_limbs) = (ample.q_bits.clone(), ample.q_bits.len());
        let bits = portable::modulus_bits(&BicyclicPlan::new(shape, &ample).ok()?, req.max_abs).ok()?;
        let mut literal = sizing::bare(log_n, log_scale, req.security);
        literal.q_bits = sizing::chain(bits);
        (literal.p_bits, literal.digit_limbs) = (literal.q_bits.clone(), literal.q_bits.len());
        sizing::secure(&literal).then_some(literal)
    };
    let serves = |literal: &ParamsLiteral| {
        BicyclicPlan::new(shape, literal).is_ok_and(|plan| plan.serves(req.max_abs, req.error))
    };
    // A larger scale is more exact, and takes a larger modulus.
    let scales: Vec<u32> = (16..=sizing::MAX_LOG_SCALE).collect();
    let found = (least..=15).find_map(|log_n| {
        let at = scales.partition_point(|scale| literal(log_n, *scale).is_some_and(|literal| !serves(&literal)));
        literal(log_n, *scales.get(at)?).filter(serves)
    });
    found.map(|params| ProductSpec { shape, method: Method::Bicyclic, params }).into_iter().collect()
}

/// The product under built parameters; see the [module](self).
#[derive(Debug)]
pub struct Bicyclic {
    params: Params,
    plan: BicyclicPlan,
}

impl Bicyclic {
    /// The product under given parameters.
    ///
    /// # Errors
    /// As [`BicyclicPlan::new`].
    pub fn new(params: &Params, shape: Shape) -> Result<Self, MatrixError> {
        Ok(Self { params: params.clone(), plan: BicyclicPlan::new(shape, params.literal())? })
    }
}

impl Product for Bicyclic {
    fn plan(&self) -> &dyn ProductPlan {
        &self.plan
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn encode(&self, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<Vec<Plaintext>, MatrixError> {
        check_matrices(self.plan.shape, operand, matrices, max_abs)?;
        let (encoder, [n, k, p]) = (Encoder::new(&self.params), self.plan.sides);
        let (rows, cols) = if operand == Operand::Left { (n, k) } else { (k, p) };
        let encode = |matrix: &Matrix| {
            // Rows and columns that fill a side up are zeros.
            let (held_rows, held_cols) = matrix.shape();
            let element = |s: usize| match (s % rows, s % cols) {
                (row, col) if row < held_rows && col < held_cols => matrix.get(row, col),
                _ => 0.0,
            };
            let values: Vec<f64> = (0..BicyclicPlan::slots(self.plan.sides)).map(element).collect();
            Ok(encoder.encode(&values, max_abs)?)
        };
        matrices.iter().map(encode).collect()
    }

    fn multiply(
        &self,
        evaluator: &Evaluator,
        left: &[Ciphertext],
        right: &[Ciphertext],
    ) -> Result<Vec<Ciphertext>, MatrixError> {
        self.plan.multiply(evaluator, &(), left.into(), right.into())
    }

    fn decode(&self, output: &[Decrypted]) -> Result<Vec<Matrix>, MatrixError> {
        check_count("result plaintexts", output.len(), self.plan.shape.batch)?;
        let (slots, [n, _, p]) = (slots_of(&self.params, output)?, self.plan.sides);
        let mut place = vec![0; n * p];
        (0..n * p).for_each(|s| place[s % n * p + s % p] = s);
        let Shape { m, n: cols, .. } = self.plan.shape;
        slots.iter().map(|values| Ok(Matrix::from_fn(m, cols, |i, j| values[place[i * p + j]])?)).collect()
    }
}
