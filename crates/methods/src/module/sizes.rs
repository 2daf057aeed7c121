//! Errors, costs and parameters of the module method, from literals alone.

use super::ModuleOptions;
use crate::error::MatrixError;
use crate::product::{Figures, KeyDemand, Method, Outline, Peak, ProductSpec, Requirements};
use crate::slots::common::check_shape;
use crate::{rounding, sizing};
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::ParamsLiteral;
use sudare_he::ckks::noise::TAIL;
use sudare_rlwe::keys::KeySwitchKey;
use sudare_rlwe::work::Work;

/// Groups of products, block rows, block columns, ciphertexts of a block of an operand.
pub(super) fn counts(shape: Shape, options: &ModuleOptions, n: usize) -> (usize, usize, usize, usize) {
    let terms = n / (options.side * options.slots);
    let blocks = |x: usize| x.div_ceil(options.side);
    (shape.batch.div_ceil(options.slots), blocks(shape.m), blocks(shape.n), shape.k.div_ceil(terms))
}

/// The product's sizes and parameters; no tables.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) shape: Shape,
    pub(super) literal: ParamsLiteral,
    pub(super) options: ModuleOptions,
}

impl Plan {
    /// Plans the product.
    ///
    /// # Errors
    /// [`MatrixError::Method`] for an empty shape, a side or a number of slots that the ring
    /// cannot have, or parameters without special primes.
    pub fn new(shape: Shape, literal: &ParamsLiteral, options: ModuleOptions) -> Result<Self, MatrixError> {
        super::check(shape, literal, &options)?;
        Ok(Self { shape, literal: literal.clone(), options })
    }

    fn degree(&self) -> usize {
        1 << self.literal.log_n
    }

    pub(super) fn counts(&self) -> (usize, usize, usize, usize) {
        counts(self.shape, &self.options, self.degree())
    }

    fn top(&self) -> usize {
        self.literal.q_bits.len() - 1
    }

    /// Whether a result is rescaled.
    fn rescales(&self) -> bool {
        self.options.relinearize && self.top() > 0
    }

    /// Variance of a coefficient of a result from the errors of its operands: elements bounded
    /// by `max_abs`, error coefficients of `variance`, at `scale`.
    pub(super) fn product_variance(&self, max_abs: [f64; 2], variance: [f64; 2], scale: [f64; 2]) -> f64 {
        let terms = self.counts().3;
        let k = self.shape.k as f64;
        let energy = |i: usize| k * (max_abs[i] * scale[i]).powi(2);
        let both = (terms * self.degree() / self.options.side) as f64 * variance[0] * variance[1];
        energy(0) * variance[1] + energy(1) * variance[0] + both
    }

    /// Variance of a coefficient of a result from key switching, before any rescale.
    pub(super) fn switching_variance(&self) -> f64 {
        let one = sizing::switching_variance(&self.literal);
        let transposed = self.options.side as f64 * one + sizing::division_variance(&self.literal, 2);
        let square = sizing::division_variance(&self.literal, 3);
        transposed * (1.0 + sizing::secret_energy(&self.literal)) + square + one
    }

    /// Rounding to doubles on the way in, and of reading a result: variances of an element.
    fn rounding_variances(&self, max_abs: [f64; 2]) -> (f64, f64) {
        let embedding = super::layout::embedding_error(self.options.slots);
        let k = self.shape.k as f64;
        // A slot is a complex pair of elements, and of a result and a cross sum.
        let element = |i: usize| 2.0 * (embedding * max_abs[i]).powi(2);
        let encoding = k * (max_abs[0].powi(2) * element(1) + max_abs[1].powi(2) * element(0));
        let result = k * max_abs[0] * max_abs[1];
        (encoding, 2.0 * (rounding::reading(embedding) * result).powi(2))
    }

    /// Bits of the modulus that the static bounds of a product ask for, but for key switching.
    pub(super) fn modulus_bits(&self, max_abs: [f64; 2]) -> f64 {
        let scale = f64::from(self.literal.log_scale).exp2();
        let n = sizing::degree(&self.literal);
        let fresh = (sizing::fresh_bound(&self.literal) / TAIL[0]).powi(2) / n;
        let noise = TAIL[2] * (n * self.product_variance(max_abs, [fresh; 2], [scale; 2])).sqrt();
        // Key switching is charged at most as much again.
        (self.shape.k as f64 * max_abs[0] * max_abs[1] * scale * scale + 2.0 * noise).log2() + 1.0
    }

    fn everywhere(&self, transforms: f64, passes: f64) -> Work {
        let primes = self.literal.q_bits.iter().chain(&self.literal.p_bits);
        primes.fold(Work::default(), |w, b| w + Work::transforms(*b, transforms) + Work::passes(*b, passes))
    }

    /// A key switch of coefficients to values over Q·P.
    fn switch(&self) -> Work {
        let level = self.literal.q_bits.len() - 1;
        let digits = self.literal.q_bits.len().div_ceil(self.literal.digit_limbs) as f64;
        Work::inner_product(&self.literal, level)
            + self.everywhere(digits, digits * self.literal.digit_limbs as f64 + 2.0)
    }

    /// Seconds on an ordinary core, near enough to order proposals.
    fn rough_seconds(&self) -> f64 {
        let work = self.work();
        let n = sizing::degree(&self.literal);
        let ntt = n * f64::from(self.literal.log_n) * 1.2e-10;
        (work.ntt + 2.0 * work.ntt_wide) * ntt + (work.pass + 2.0 * work.pass_wide) * n * 3e-10 + work.mac * 2e-10
    }

    fn key_bytes(&self) -> f64 {
        (self.options.side * KeySwitchKey::bytes_at(&self.literal, self.literal.q_bits.len() - 1)) as f64
    }
}

impl Outline for Plan {
    fn name(&self) -> &'static str {
        super::NAME
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn literal(&self) -> &ParamsLiteral {
        &self.literal
    }

    fn ciphertexts(&self, operand: Operand) -> usize {
        let (groups, i, j, terms) = self.counts();
        match operand {
            Operand::Left => groups * i * terms,
            Operand::Right => groups * j * terms,
            Operand::Output => groups * self.shape.m * j,
        }
    }

    fn figures(&self, max_abs: [f64; 2]) -> Result<Figures, MatrixError> {
        sizing::check_holds(&self.literal, &self.peaks(max_abs))?;
        let all = [Operand::Left, Operand::Right, Operand::Output];
        let parts = |operand: Operand| self.parts(operand) * self.ciphertexts(operand);
        let bytes = |operand: Operand| ((parts(operand) * (self.level(operand) + 1)) as u64 * 8) << self.literal.log_n;
        let (params, top) = (self.literal.build()?, self.top());
        let scale = params.scale();
        let prime = if self.rescales() { params.prime_at(top) as f64 } else { 1.0 };
        Ok(Figures {
            keys: self.keys(),
            work: self.work(),
            counters: None,
            table_bytes: 0,
            // A product has as many parts and half again before it is relinearised.
            peak_bytes: all.map(bytes).iter().sum::<u64>() * 3 / 2,
            ciphertexts: self.ciphertexts(Operand::Output),
            parts: self.parts(Operand::Output),
            level: self.level(Operand::Output),
            scale: scale * scale / prime,
            error: self.error(max_abs),
        })
    }

    fn serves(&self, max_abs: [f64; 2], error: f64) -> bool {
        self.error(max_abs) <= error && sizing::check_holds(&self.literal, &self.peaks(max_abs)).is_ok()
    }
}

impl Plan {
    fn parts(&self, operand: Operand) -> usize {
        if operand == Operand::Output && !self.options.relinearize { 3 } else { 2 }
    }

    fn level(&self, operand: Operand) -> usize {
        self.top() - usize::from(operand == Operand::Output && self.rescales())
    }

    fn keys(&self) -> KeyDemand {
        let elements = sudare_rlwe::Blocks::elements(self.degree(), self.options.side);
        KeyDemand {
            relin: self.options.relinearize.then(|| self.top()),
            galois: elements.map(|e| (e, self.top())).collect(),
        }
    }

    fn work(&self) -> Work {
        let (groups, rows, cols, terms) = self.counts();
        let level = self.literal.q_bits.len() - 1;
        let (d, limbs) = (self.options.side as f64, (level + 1) as f64);
        let (blocks, loads) = ((groups * rows * cols) as f64, (groups * (rows + cols) * terms) as f64);
        let partial = (f64::from(self.literal.log_n) - d.log2()) / f64::from(self.literal.log_n);
        let out_rows = self.shape.m as f64 / rows as f64;
        let load = Work::transforms_at(&self.literal, level, 2.0 * (1.0 + partial));
        let macs = Work { mac: 4.0 * d * sizing::degree(&self.literal) * terms as f64 * limbs, ..Work::default() };
        let spread = Work::transforms_at(&self.literal, level, partial) + Work::passes_at(&self.literal, level, 2.0);
        // A layer copies, adds and subtracts once for each pair of rows.
        let layers = 1.5 * d.log2() * d;
        let fourier = Work::passes_at(&self.literal, level, 2.0 * layers) + self.everywhere(0.0, 3.0 * layers);
        let switches = (self.switch() * 2.0 + self.everywhere(3.0, 4.0)) * (d - 1.0);
        let down = Work::passes_at(&self.literal, level, 2.0 * limbs + 2.0);
        let finish = match self.options.relinearize {
            false => down * 3.0 + Work::transforms_at(&self.literal, level, 3.0),
            true => {
                down * 3.0 + Work::transforms_at(&self.literal, level, 2.0) + self.switch() + self.everywhere(2.0, 4.0)
            }
        };
        load * loads + (macs + spread * (2.0 * d + 2.0 * out_rows) + fourier + switches + finish * out_rows) * blocks
    }

    fn peaks(&self, max_abs: [f64; 2]) -> Vec<Peak> {
        vec![Peak { level: self.top(), bits: self.modulus_bits(max_abs) }]
    }

    fn error(&self, max_abs: [f64; 2]) -> f64 {
        let scale = f64::from(self.literal.log_scale).exp2();
        let fresh = sizing::fresh_variance(&self.literal);
        let mut variance = self.product_variance(max_abs, [fresh; 2], [scale; 2]) + self.switching_variance();
        let mut product_scale = scale * scale;
        if self.rescales() {
            let prime = self.literal.q_bits.last().map_or(1.0, |bits| f64::from(*bits).exp2());
            variance = variance / prime.powi(2) + sizing::division_variance(&self.literal, 2);
            product_scale /= prime;
        }
        let (encoding, reading) = self.rounding_variances(max_abs);
        let variance = self.options.slots as f64 * variance / product_scale.powi(2) + encoding + reading;
        let elements = (self.shape.m * self.shape.n * self.shape.batch) as f64;
        let result = self.shape.k as f64 * max_abs[0] * max_abs[1];
        sizing::largest(elements, variance) + rounding::drift(usize::from(self.rescales())) * result
    }
}

/// What the method proposes: the fastest few by its own count, and the one with the least keys.
pub fn candidates(req: &Requirements) -> Vec<ProductSpec> {
    if req.fresh != [true, true] || !req.decrypt_next || check_shape(super::NAME, req.shape).is_err() {
        return Vec::new();
    }
    let mut found: Vec<(f64, f64, ProductSpec)> = Vec::new();
    for log_n in 12..=15u32 {
        let n = 1usize << log_n;
        let largest = req.shape.m.max(req.shape.n).next_power_of_two().clamp(8, n / 4);
        for log_side in 3..=largest.trailing_zeros() {
            let side = 1 << log_side;
            let slots = req.shape.batch.next_power_of_two().min(n / (2 * side));
            for relinearize in [false, true] {
                let options = ModuleOptions { side, slots, relinearize };
                if let Some(params) = propose(req, log_n, options) {
                    let plan = Plan { shape: req.shape, literal: params, options };
                    let (seconds, bytes) = (plan.rough_seconds(), plan.key_bytes());
                    let spec = ProductSpec { shape: req.shape, method: Method::Module(options), params: plan.literal };
                    found.push((seconds, bytes, spec));
                }
            }
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let least = found.iter().enumerate().min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1)).map(|(i, _)| i);
    let chosen = found.into_iter().enumerate().filter(|(i, _)| *i < 5 || Some(*i) == least);
    chosen.map(|(_, (_, _, spec))| spec).collect()
}

/// The smallest scale that reaches the wanted error, and primes for it.
fn propose(req: &Requirements, log_n: u32, options: ModuleOptions) -> Option<ParamsLiteral> {
    (16..=sizing::MAX_LOG_SCALE).find_map(|log_scale| {
        let mut literal = sizing::bare(log_n, log_scale, req.security);
        let bits = Plan { shape: req.shape, literal: literal.clone(), options }.modulus_bits(req.max_abs);
        literal.q_bits = sizing::chain(bits);
        if options.relinearize && literal.q_bits.len() > 1 {
            // Rescale by as little as possible: a high scale keeps the rounding out of sight.
            let total: u32 = literal.q_bits.iter().sum();
            let others = literal.q_bits.len() as u32 - 1;
            let last = total.saturating_sub(others * sizing::PRIME_BITS).max(sizing::LEAST_PRIME_BITS);
            literal.q_bits = vec![(total - last).div_ceil(others); others as usize];
            literal.q_bits.push(last);
        }
        // One digit if the degree has room for as many special primes, one prime a digit if not.
        literal.p_bits = literal.q_bits.clone();
        literal.digit_limbs = literal.q_bits.len();
        if !sizing::secure(&literal) {
            literal.p_bits = literal.q_bits.iter().copied().max().into_iter().collect();
            literal.digit_limbs = 1;
        }
        let plan = Plan { shape: req.shape, literal, options };
        (plan.serves(req.max_abs, req.error) && sizing::secure(&plan.literal)).then_some(plan.literal)
    })
}
