//! `matmul`: products of encrypted matrices, every stage timed and every answer compared with
//! the plain product.

use crate::Outcome;
use crate::machine::{Machine, prices, reset_peak_rss};
use crate::ops::Set;
use crate::record::{Record, Sink, Stages};
use crate::timing::{Budget, Timing, Unit, measure};
use std::time::Instant;
use sudare_expr::Matrix;
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{Ciphertext, Decrypted, Decryptor, Encryptor, Evaluator, ParamsLiteral, Plaintext};
use sudare_methods::products::candidates;
use sudare_methods::{Method, Product, ProductSpec, Requirements};
use sudare_ring::{Threads, threads};
use sudare_rlwe::keys::{KeyGenerator, KeySource, PublicKey, SecretKey};
use sudare_rlwe::security::Security;
use sudare_testkit::Random;

/// What to measure.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Parameters: the paper's, the method's own proposal, or the set of `--n`, `--q-bits` and so on.
    #[arg(long, default_value = "auto", value_parser = ["paper", "auto", "set"])]
    pub params: String,
    /// Algorithms by name; `auto` is the cheapest of all that propose themselves.
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    pub method: Vec<String>,
    /// Options of the algorithm as a JSON object, instead of its own choice.
    #[arg(long)]
    pub options: Option<String>,
    /// Sides of square matrices.
    #[arg(long, value_delimiter = ',', conflicts_with = "shape")]
    pub d: Vec<usize>,
    /// Shapes `MxKxN`: an M×K by a K×N matrix.
    #[arg(long, value_delimiter = ',')]
    pub shape: Vec<String>,
    /// Independent products done together.
    #[arg(long, default_value_t = 1)]
    pub batch: usize,
    /// Operands are encrypted for this product, in the form that the method likes best;
    /// otherwise they stand row by row in slots. `--shape` says so too: no single ciphertext
    /// holds a matrix of any shape row by row.
    #[arg(long)]
    pub fresh: bool,
    /// The result stands row by row in slots again; otherwise it is decrypted next.
    #[arg(long)]
    pub keep: bool,
    /// Encrypt under the secret key instead of the public one.
    #[arg(long)]
    pub secret: bool,
    /// Largest error wanted; a larger one is a wrong answer.
    #[arg(long, default_value_t = 1e-4)]
    pub error: f64,
    /// Random products for statistics of the error, apart from those that are timed.
    #[arg(long, default_value_t = 0)]
    pub products: usize,
    /// The set of `--params set`.
    #[command(flatten)]
    pub set: Set,
}

impl Options {
    /// One square product with both operands encrypted under the public key and the paper's
    /// parameters.
    pub fn paper(d: usize, products: usize, set: &Set) -> Self {
        Self {
            params: "paper".into(),
            method: Vec::new(),
            options: None,
            d: vec![d],
            shape: Vec::new(),
            batch: 1,
            fresh: false,
            keep: false,
            secret: false,
            error: 1e-4,
            products,
            set: set.clone(),
        }
    }
}

/// SEAL 4.4 with HEXL at the paper's parameters, the 3-D method as printed: units by d.
const SEAL_UNITS: [(usize, f64); 3] = [(4, 1460.0), (8, 2230.0), (16, 2870.0)];
const SEAL: &str = "SEAL 4.4 with HEXL, the 3-D method as printed, one Sapphire Rapids core, constant from another run";
/// Units of one of 256 independent 16×16 products of the best closed library.
const BATCHED_UNITS: f64 = 39.0;
const BATCHED: &str = "the best closed library, a product of 256, one Sapphire Rapids core, constant from another run";

impl Options {
    /// The shapes to run.
    fn shapes(&self) -> Outcome<Vec<Shape>> {
        let square = self.d.iter().map(|d| Ok([*d; 3]));
        let given = self.shape.iter().map(|text| parse_shape(text));
        let shapes = square.chain(given).collect::<Outcome<Vec<_>>>()?;
        if shapes.is_empty() {
            return Err("matmul takes --d or --shape".into());
        }
        Ok(shapes.into_iter().map(|[m, k, n]| Shape { m, k, n, batch: self.batch.max(1) }).collect())
    }

    fn requirements(&self, shape: Shape) -> Requirements {
        Requirements {
            shape,
            max_abs: [1.0; 2],
            error: self.error,
            security: Security::Bits128,
            fresh: [self.fresh || !self.shape.is_empty(); 2],
            decrypt_next: !self.keep,
        }
    }

    /// What can serve a shape by a method of this name.
    fn specs(&self, method: &str, shape: Shape) -> Outcome<Vec<ProductSpec>> {
        let mut proposed = Vec::new();
        for spec in candidates(&self.requirements(shape)) {
            let value = serde_json::to_value(&spec.method)?;
            if method == "auto" || value["name"] == method {
                proposed.push((value, spec.params));
            }
        }
        if proposed.is_empty() && method != "auto" {
            // Methods that are kept for comparison propose nothing; the paper's set serves them.
            proposed.push((serde_json::json!({ "name": method }), ParamsLiteral::paper_matmul()));
        }
        let mut specs = Vec::new();
        for (mut value, proposal) in proposed {
            if let Some(text) = &self.options {
                merge(&mut value, serde_json::from_str(text)?)?;
            }
            let method: Method = serde_json::from_value(value)?;
            let params = match self.params.as_str() {
                "paper" => ParamsLiteral::paper_matmul(),
                "set" => self.set.build()?.literal().clone(),
                _ => proposal,
            };
            let spec = ProductSpec { shape, method, params };
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
        Ok(specs)
    }

    /// The cheapest that can be built.
    fn product(&self, method: &str, shape: Shape, threads: usize) -> Outcome<Box<dyn Product>> {
        let model = prices()?;
        let mut priced = Vec::new();
        let mut refused = None;
        for spec in self.specs(method, shape)? {
            match spec.plan().and_then(|outline| outline.figures([1.0; 2])) {
                Ok(figures) => priced.push((model.price(&figures.work, spec.params.log_n, threads), spec)),
                Err(error) => refused = Some(error),
            }
        }
        priced.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, spec) in &priced {
            match spec.build() {
                Ok(product) => {
                    // Tables are no part of the first product that is timed.
                    product.prepare()?;
                    return Ok(product);
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(match refused {
            Some(error) => error.into(),
            None => format!("no method proposes itself as {method} for this product").into(),
        })
    }
}

/// Sets fields of a JSON object.
fn merge(into: &mut serde_json::Value, from: serde_json::Value) -> Outcome<()> {
    let (Some(into), serde_json::Value::Object(from)) = (into.as_object_mut(), from) else {
        return Err("--options takes a JSON object".into());
    };
    into.extend(from);
    Ok(())
}

fn parse_shape(text: &str) -> Outcome<[usize; 3]> {
    let sides = text.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    <[usize; 3]>::try_from(sides).map_err(|_| format!("a shape is MxKxN, not {text}").into())
}

/// Keys and scheme of one product.
struct World<'a> {
    product: &'a dyn Product,
    secret: SecretKey,
    public: PublicKey,
    server: Evaluator,
    by_secret: bool,
    threads: &'a Threads,
}

impl World<'_> {
    fn encode(&self, operand: Operand, matrices: &[Matrix]) -> Outcome<Vec<Plaintext>> {
        Ok(self.threads.run(|| self.product.encode(operand, matrices, 1.0))?)
    }

    fn encrypt(&self, plain: &[Plaintext]) -> Outcome<Vec<Ciphertext>> {
        let encryptor = match self.by_secret {
            true => Encryptor::with_secret_key(&self.secret)?,
            false => Encryptor::with_public_key(&self.public)?,
        };
        let all = self.threads.run(|| threads::map(plain.len(), |i| encryptor.encrypt(&plain[i])));
        Ok(all.into_iter().collect::<Result<_, _>>()?)
    }

    fn multiply(&self, left: &[Ciphertext], right: &[Ciphertext]) -> Outcome<Vec<Ciphertext>> {
        Ok(self.threads.run(|| self.product.multiply(&self.server, left, right))?)
    }

    fn decrypt(&self, output: &[Ciphertext]) -> Outcome<Vec<Decrypted>> {
        let decryptor = Decryptor::new(&self.secret);
        let all = self.threads.run(|| threads::map(output.len(), |i| decryptor.decrypt(&output[i])));
        Ok(all.into_iter().collect::<Result<_, _>>()?)
    }

    fn decode(&self, plain: &[Decrypted]) -> Outcome<Vec<Matrix>> {
        Ok(self.threads.run(|| self.product.decode(plain))?)
    }
}

/// Runs work and tells its milliseconds.
fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, Option<f64>)> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, Some(start.elapsed().as_secs_f64() * 1e3)))
}

/// Random matrices with elements in [−1, 1).
fn matrices(random: &mut Random, (rows, cols): (usize, usize), count: usize) -> Outcome<Vec<Matrix>> {
    let mut one = || Ok(Matrix::new(rows, cols, (0..rows * cols).map(|_| random.unit()).collect())?);
    (0..count).map(|_| one()).collect()
}

/// Largest and smallest absolute error of each product.
fn errors(left: &[Matrix], right: &[Matrix], got: &[Matrix]) -> Outcome<Vec<(f64, f64)>> {
    if got.len() != left.len() {
        return Err(format!("{} results for {} products", got.len(), left.len()).into());
    }
    let mut out = Vec::new();
    for ((a, b), c) in left.iter().zip(right).zip(got) {
        let wanted = a.matmul(b)?;
        let smallest = wanted.data().iter().zip(c.data()).map(|(x, y)| (x - y).abs()).fold(f64::INFINITY, f64::min);
        out.push((c.max_difference(&wanted), smallest));
    }
    Ok(out)
}

/// Runs the suite.
pub fn run(options: &Options, budget: Budget, threads: &Threads, machine: &Machine, sink: &mut Sink) -> Outcome<()> {
    for shape in options.shapes()? {
        for method in &options.method {
            sink.put(case(options, method, shape, budget, threads, machine)?)?;
        }
    }
    Ok(())
}

/// One method on one shape.
pub fn case(
    options: &Options,
    method: &str,
    shape: Shape,
    budget: Budget,
    threads: &Threads,
    machine: &Machine,
) -> Outcome<Record> {
    let mut unit = Unit::new()?;
    let product = &*options.product(method, shape, threads.count())?;
    let params = product.params();
    reset_peak_rss();

    let mut stages = Stages::default();
    let figures = product.figures([1.0; 2])?;
    let ((secret, public, keys), keygen_ms) = timed(|| {
        let secret = SecretKey::generate(params)?;
        let (public, keys) = {
            let generator = KeyGenerator::new(&secret)?;
            let keys = threads.run(|| generator.eval_keys(figures.keys.relin, &figures.keys.galois))?;
            (generator.public_key()?, keys)
        };
        Ok((secret, public, keys))
    })?;
    stages.keygen_ms = keygen_ms;
    let key_bytes = keys.bytes();
    let w =
        World { product, secret, public, server: Evaluator::new(params, keys)?, by_secret: options.secret, threads };

    let mut random = Random((shape.m + 31 * shape.k + 1009 * shape.n) as u64);
    let left = matrices(&mut random, shape.of(Operand::Left), shape.batch)?;
    let right = matrices(&mut random, shape.of(Operand::Right), shape.batch)?;
    // Once to warm up, unless it takes long; then for the record.
    if shape.m * shape.k * shape.n * shape.batch <= 1 << 16 {
        w.encrypt(&w.encode(Operand::Left, &left)?)?;
    }
    let ((a, b), encode_ms) = timed(|| Ok((w.encode(Operand::Left, &left)?, w.encode(Operand::Right, &right)?)))?;
    let ((x, y), encrypt_ms) = timed(|| Ok((w.encrypt(&a)?, w.encrypt(&b)?)))?;
    drop((a, b));
    (stages.encode_ms, stages.encrypt_ms) = (encode_ms, encrypt_ms);

    w.server.reset_counters();
    let (timing, evaluations, output) = evaluate(&w, &x, &y, &mut unit, budget)?;
    let counters = w.server.counters();
    let each = |c: u64| c / evaluations;
    stages.evaluate_ms = timing.ours.wall.median();

    if shape.m * shape.k * shape.n * shape.batch <= 1 << 16 {
        w.decode(&w.decrypt(&output)?)?;
    }
    let (plain, decrypt_ms) = timed(|| w.decrypt(&output))?;
    let (got, decode_ms) = timed(|| w.decode(&plain))?;
    (stages.decrypt_ms, stages.decode_ms) = (decrypt_ms, decode_ms);
    let largest = errors(&left, &right, &got)?.iter().fold(0.0, |m, (e, _)| if *e > m || e.is_nan() { *e } else { m });

    let mut record = Record::new("matmul", describe(shape, options), threads.count(), machine)
        .with_params(params)
        .with_timing(timing)
        .with_error(largest, options.error);
    record.method = Some(product.name().into());
    record.d = (shape.m == shape.k && shape.k == shape.n).then_some(shape.m);
    record.shape = Some([shape.m, shape.k, shape.n]);
    record.batch = Some(shape.batch);
    record.per_product_ms = record.median_ms.map(|t| t / shape.batch as f64);
    record.per_product_units = record.units.map(|t| t / shape.batch as f64);
    record.predicted_error = Some(figures.error);
    record.counters = Some(crate::record::Counted {
        add: each(counters.add),
        rot: each(counters.rot),
        cmult: each(counters.cmult),
        mult: each(counters.mult),
        relin: each(counters.relin),
        key_switches: each(counters.key_switches),
    });
    record.key_bytes = Some(key_bytes);
    record.ct_bytes = Some([&x, &y, &output].into_iter().flatten().map(Ciphertext::bytes).sum());
    record.plain_ms = plain_ms(&left, &right)?;
    record.stages = Some(stages);
    match (shape.batch, record.d) {
        (1, Some(d)) => {
            if let Some((_, units)) = SEAL_UNITS.iter().find(|(side, _)| *side == d) {
                (record.reference, record.reference_units) = (Some(SEAL.into()), Some(*units));
            }
        }
        (2.., Some(16)) => {
            let units = BATCHED_UNITS * shape.batch as f64;
            (record.reference, record.reference_units) = (Some(BATCHED.into()), Some(units));
        }
        _ => {}
    }
    if options.products > 0 {
        statistics(&w, options.products, shape, &mut random, &mut record)?;
    }
    Ok(record)
}

fn describe(shape: Shape, options: &Options) -> String {
    let kind = if options.requirements(shape).fresh[0] { "fresh" } else { "general" };
    let batch = if shape.batch > 1 { format!(" x{}", shape.batch) } else { String::new() };
    format!("{}x{}x{}{batch}, {kind}", shape.m, shape.k, shape.n)
}

/// Times of evaluations, how many there were with those that warmed up, and the last result.
fn evaluate(
    w: &World<'_>,
    x: &[Ciphertext],
    y: &[Ciphertext],
    unit: &mut Unit,
    budget: Budget,
) -> Outcome<(Timing, u64, Vec<Ciphertext>)> {
    let mut output = Vec::new();
    let mut evaluations = 0;
    let mut multiply = || {
        // The last result goes before the next one comes, so that memory holds one.
        output.clear();
        output = w.multiply(x, y)?;
        evaluations += 1;
        Ok(())
    };
    let timing = measure(unit, budget, &mut multiply, None)?;
    Ok((timing, evaluations, output))
}

/// The plain product of all matrices, one thread, double precision.
fn plain_ms(left: &[Matrix], right: &[Matrix]) -> Outcome<Option<f64>> {
    let mut best: Option<f64> = None;
    let begin = Instant::now();
    while best.is_none() || begin.elapsed().as_secs_f64() < 0.1 {
        let (_, ms) = timed(|| {
            for (a, b) in left.iter().zip(right) {
                std::hint::black_box(a.matmul(b)?);
            }
            Ok(())
        })?;
        best = best.into_iter().chain(ms).reduce(f64::min);
    }
    Ok(best)
}

/// Means of the largest and smallest errors over many random products.
fn statistics(w: &World<'_>, products: usize, shape: Shape, random: &mut Random, record: &mut Record) -> Outcome<()> {
    let mut all = Vec::with_capacity(products);
    while all.len() < products {
        let left = matrices(random, shape.of(Operand::Left), shape.batch)?;
        let right = matrices(random, shape.of(Operand::Right), shape.batch)?;
        let x = w.encrypt(&w.encode(Operand::Left, &left)?)?;
        let y = w.encrypt(&w.encode(Operand::Right, &right)?)?;
        let got = w.decode(&w.decrypt(&w.multiply(&x, &y)?)?)?;
        all.extend(errors(&left, &right, &got)?);
    }
    let count = all.len() as f64;
    record.mean_max_error = Some(all.iter().map(|e| e.0).sum::<f64>() / count);
    record.mean_min_error = Some(all.iter().map(|e| e.1).sum::<f64>() / count);
    record.products = Some(all.len());
    let worst = all.iter().map(|e| e.0).fold(record.max_error.unwrap_or(0.0), f64::max);
    record.max_error = Some(worst);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    #[test]
    fn shapes_on_the_command_line() {
        assert_eq!(parse_shape("569x30x4").unwrap(), [569, 30, 4]);
        assert!(parse_shape("4x4").is_err() && parse_shape("4x4x4x4").is_err() && parse_shape("axbxc").is_err());
    }

    #[test]
    fn options_replace_fields() {
        let mut value = serde_json::json!({"name": "improved3d", "unroll": 1});
        merge(&mut value, serde_json::json!({"unroll": 0})).unwrap();
        assert_eq!(value, serde_json::json!({"name": "improved3d", "unroll": 0}));
        assert!(merge(&mut value, serde_json::json!([])).is_err());
    }

    #[test]
    fn errors_of_results() {
        let a = Matrix::new(1, 2, vec![1.0, 2.0]).unwrap();
        let b = Matrix::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap();
        let c = Matrix::new(1, 2, vec![1.5, 2.25]).unwrap();
        assert_eq!(errors(from_ref(&a), from_ref(&b), from_ref(&c)).unwrap(), [(0.5, 0.25)]);
        assert!(errors(from_ref(&a), from_ref(&b), &[]).is_err());
    }
}
