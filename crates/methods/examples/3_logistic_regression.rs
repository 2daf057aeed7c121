//! Trains a logistic regression on encrypted data: gradient descent, the weights refreshed in every iteration.
//!
//! `cargo run --release -p sudare-methods --example 3_logistic_regression -- FILE` takes a file of scikit-learn's form, one head
//! line, the label (0 or 1) in the last column, and set A with its security. Without one, numbers made here and a small ring
//! without security, so that it runs in seconds.
//!
//! The rows z_i = ±(x_i, 1) are one table Z, and w ← w + η/n Σ σ(−⟨z_i, w⟩) z_i. A level each go to Z ⊙ w, to the
//! sum of each row and to the product with Z again, and four to σ as a polynomial of degree 15: seven of set A's nine.

use std::error::Error;
use std::time::Instant;
use sudare_expr::Matrix;
use sudare_he::circuits::bootstrapping::{BootstrapKeys, BootstrapLiteral, Bootstrapper};
use sudare_he::circuits::polynomial::{Polynomial, PolynomialCircuit, fit};
use sudare_he::ckks::{Ciphertext, Decryptor, EncodeAt, Encoder, Encryptor, Evaluator, State};
use sudare_methods::slots::grid::{Clean, Grid, GridLayout};
use sudare_methods::slots::tiles::Axis;
use sudare_ring::Threads;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};

/// Any error, from any thread.
type Failure = Box<dyn Error + Send + Sync>;

/// η.
const RATE: f64 = 0.7;
/// ⟨z, w⟩ stays within this: what the data's owner knows of standardised columns and few iterations. Rows are encrypted
/// over it, so that the polynomial's interval is [−1, 1], where it is most precise.
const RANGE: f64 = 32.0;
const DEGREE: usize = 15;
/// What is known of the weights' errors.
const ERROR: f64 = 1.0 / (1 << 16) as f64;

fn sigmoid(t: f64) -> f64 {
    1.0 / (1.0 + (-t).exp())
}

/// Standardised rows with a one behind, times the sign of the label.
fn signed_rows(table: &[Vec<f64>]) -> Result<Matrix, Failure> {
    let (n, columns) = (table.len(), table.first().map_or(1, Vec::len) - 1);
    let mean = |j: usize| table.iter().map(|r| r[j]).sum::<f64>() / n as f64;
    let means: Vec<f64> = (0..columns).map(mean).collect();
    let spread = |j: usize| (table.iter().map(|r| (r[j] - means[j]).powi(2)).sum::<f64>() / n as f64).sqrt();
    let spreads: Vec<f64> = (0..columns).map(spread).collect();
    Ok(Matrix::from_fn(n, columns + 1, |i, j| {
        let sign = 2.0 * table[i][columns] - 1.0;
        if j == columns { sign } else { sign * (table[i][j] - means[j]) / spreads[j] }
    })?)
}

fn read(path: &str) -> Result<Vec<Vec<f64>>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let rows = text.lines().skip(1).map(|l| l.split(',').map(|x| x.trim().parse()).collect::<Result<Vec<f64>, _>>());
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Two clouds that overlap.
fn made() -> Vec<Vec<f64>> {
    let row = |i: usize| {
        let (label, t) = ((i % 2) as f64, i as f64);
        let noise = |k: f64| (t * k).sin() + (t * k * 1.7).cos();
        vec![label + noise(1.3), noise(2.1) - 0.5 * label, noise(0.7), label]
    };
    (0..90).map(row).collect()
}

/// Gradient descent in the clear with any σ(−t).
fn plain(z: &Matrix, iterations: usize, g: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut w = vec![0.0; z.cols()];
    for _ in 0..iterations {
        let push: Vec<f64> = (0..z.rows()).map(|i| g((0..z.cols()).map(|j| z.get(i, j) * w[j]).sum())).collect();
        for (j, w) in w.iter_mut().enumerate() {
            *w += RATE / z.rows() as f64 * (0..z.rows()).map(|i| push[i] * z.get(i, j)).sum::<f64>();
        }
    }
    w
}

/// Share of the rows on the right side.
fn accuracy(z: &Matrix, w: &[f64]) -> f64 {
    let right = |i: usize| (0..z.cols()).map(|j| z.get(i, j) * w[j]).sum::<f64>() > 0.0;
    (0..z.rows()).filter(|i| right(*i)).count() as f64 / z.rows() as f64
}

fn main() -> Result<(), Failure> {
    let file = std::env::args().nth(1);
    let (table, literal, iterations) = match &file {
        Some(path) => (read(path)?, BootstrapLiteral::a(), 30),
        None => (made(), BootstrapLiteral::a().insecure(10)?, 3),
    };
    let z = signed_rows(&table)?;
    let minimax = fit::minimax(|u| RANGE * RATE / z.rows() as f64 * sigmoid(-RANGE * u), &[(-1.0, 1.0)], DEGREE)?;

    // The owner: keys, the encrypted rows, and weights of zero.
    let start = Instant::now();
    let threads = Threads::new(0);
    let set = literal.build()?;
    let params = set.params();
    let secret = SecretKey::generate(params)?;
    let columns = z.cols().next_power_of_two();
    let layout = GridLayout::new(z.rows(), z.cols(), columns, params.literal())?;
    let top = set.output_level();
    let elements: Vec<(u64, usize)> = layout.sum_elements(params).into_iter().map(|element| (element, top)).collect();
    let (keys, bootstrapper) = threads.run(|| -> Result<_, Failure> {
        let keys = KeyGenerator::new(&secret)?.eval_keys(Some(top), &elements)?;
        Ok((keys, Bootstrapper::new(BootstrapKeys::generate(&secret, &set)?, None)?))
    })?;
    let server = Evaluator::new(params, keys)?;
    let (encoder, encryptor) = (Encoder::new(params), Encryptor::with_secret_key(&secret)?);
    let encrypt = |m: &Matrix, max_abs: f64| -> Result<Grid<'static>, Failure> {
        let layout = GridLayout::new(m.rows(), m.cols(), columns, params.literal())?;
        let at = EncodeAt { level: set.output_level(), scale: params.scale(), max_abs };
        let tiles = layout.encode(&encoder, m, at)?.iter().map(|p| encryptor.encrypt(p)).collect::<Result<_, _>>()?;
        Ok(Grid { layout, clean: Clean::ALL, tiles })
    };
    let rows = Matrix::from_fn(z.rows(), z.cols(), |i, j| z.get(i, j) / RANGE)?;
    let rows = encrypt(&rows, rows.max_abs())?;
    let mut weights = encrypt(&Matrix::from_fn(1, z.cols(), |_, _| 0.0)?, 1.0)?;
    println!(
        "{} ciphertexts, keys and diagonals {} MB, {:.1} s",
        rows.tiles.len(),
        bootstrapper.bytes() >> 20,
        start.elapsed().as_secs_f64()
    );

    // The server: it sees neither the rows nor the weights.
    let start = Instant::now();
    for _ in 0..iterations {
        weights = threads.run(|| step(&server, &bootstrapper, &minimax.polynomial, &rows, &weights))?;
    }
    println!("{iterations} iterations, {} threads: {:.1} s", threads.count(), start.elapsed().as_secs_f64());

    let tiles = weights.tiles.iter().map(|c| Decryptor::new(&secret).decrypt(c)).collect::<Result<Vec<_>, _>>()?;
    let found = weights.layout.decode(params, &tiles)?;
    let found: Vec<f64> = (0..z.cols()).map(|j| found.get(0, j)).collect();
    let scale = z.rows() as f64 / RATE / RANGE;
    let same = plain(&z, iterations, |t| scale * minimax.polynomial.evaluate(t / RANGE).re);
    let exact = plain(&z, iterations, |t| sigmoid(-t));
    let error = found.iter().zip(&same).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    let (ours, theirs) = (accuracy(&z, &found), accuracy(&z, &exact));
    println!(
        "largest error of a weight {error:.1e}; accuracy {ours:.4}, in the clear with the exact sigmoid {theirs:.4}"
    );
    // Not a largest one, which passes over what is no number.
    assert!(found.iter().zip(&same).all(|(x, y)| (x - y).abs() < 1e-3) && (ours - theirs).abs() <= 0.01);
    Ok(())
}

/// w + η/n Σ σ(−⟨z_i, w⟩) z_i, with fresh levels.
fn step(
    e: &Evaluator,
    bootstrapper: &Bootstrapper,
    sigmoid: &Polynomial,
    rows: &Grid<'_>,
    weights: &Grid<'_>,
) -> Result<Grid<'static>, Failure> {
    let margins = rows.mul(e, weights)?.sum(e, Axis::Columns)?;
    let first = &margins.tiles[0];
    let circuit = PolynomialCircuit::new(e.params(), sigmoid, first.level(), first.scale(), e.params().scale())?;
    let push = margins.map(|c| Ok(e.polynomial(&c.clone().with_bound(1.0), &circuit)?), false)?;
    let gradient = rows.mul(e, &push)?.sum(e, Axis::Rows)?;
    let scale = gradient.tiles[0].scale();
    let weights = weights.map(|c| Ok(e.set_scale(c, scale)?), true)?.add(e, &gradient)?;
    // Weights of standardised columns stay below one; and descent on a convex function does not amplify errors, which the
    // bound that travels, made for the worst case of every operation, cannot know.
    let known = |c: &Ciphertext| {
        Ciphertext::from_parts(c.inner().clone(), State { bound: 1.0, noise: ERROR * c.scale(), ..c.state() })
    };
    let bounded = weights.tiles.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    let tiles = bootstrapper.refresh_many_real(&bounded.iter().collect::<Vec<_>>())?;
    Ok(Grid { layout: weights.layout, clean: weights.clean, tiles: tiles.into() })
}
