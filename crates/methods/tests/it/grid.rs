//! Tables in whole ciphertexts against plain matrices: broadcasting, sums, and what is known of the slots beside them.

use crate::common::random;
use proptest::prelude::*;
use std::sync::LazyLock;
use sudare_expr::{ExprError, Lines, Matrix};
use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Encryptor, Evaluator, Params, ParamsLiteral};
use sudare_methods::MatrixError;
use sudare_methods::slots::grid::{Clean, Grid, GridLayout};
use sudare_methods::slots::tiles::Axis;
use sudare_rlwe::keys::{KeyGenerator, SecretKey};
use sudare_rlwe::security::{SecretDistribution, Security};

/// 512 slots, tiles of 32×16.
const COLUMNS: usize = 16;
const LEVELS: usize = 4;

struct World {
    params: Params,
    secret: SecretKey,
    evaluator: Evaluator,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let rlwe = sudare_rlwe::params::ParamsLiteral {
        log_n: 10,
        q_bits: [49].into_iter().chain([40; LEVELS]).collect(),
        p_bits: vec![49],
        digit_limbs: 1,
        secret: SecretDistribution::Ternary,
        security: Security::Insecure,
    };
    let params = ParamsLiteral { rlwe, log_scale: 40 }.build().unwrap();
    let secret = SecretKey::generate(&params).unwrap();
    let layout = GridLayout::new(1, 1, COLUMNS, params.literal()).unwrap();
    let top = params.max_level();
    let elements: Vec<(u64, usize)> = layout.sum_elements(&params).into_iter().map(|element| (element, top)).collect();
    let keys = KeyGenerator::new(&secret).unwrap().eval_keys(Some(top), &elements).unwrap();
    let evaluator = Evaluator::new(&params, keys).unwrap();
    World { params, secret, evaluator }
});

impl World {
    fn encrypt(&self, m: &Matrix) -> Grid<'static> {
        let layout = GridLayout::new(m.rows(), m.cols(), COLUMNS, self.params.literal()).unwrap();
        let encoder = Encoder::new(&self.params);
        let encryptor = Encryptor::with_secret_key(&self.secret).unwrap();
        let plain = layout.encode(&encoder, m, encoder.at_top(4.0)).unwrap();
        Grid { layout, clean: Clean::ALL, tiles: plain.iter().map(|p| encryptor.encrypt(p).unwrap()).collect() }
    }

    #[track_caller]
    fn expect(&self, found: &Grid<'_>, wanted: impl Fn(usize, usize) -> f64) {
        let plains: Vec<_> =
            found.tiles.iter().map(|c: &Ciphertext| Decryptor::new(&self.secret).decrypt(c).unwrap()).collect();
        let (rows, cols) = found.layout.shape();
        let wanted = Matrix::from_fn(rows, cols, wanted).unwrap();
        let error = found.layout.decode(&self.params, &plains).unwrap().max_difference(&wanted);
        assert!(error < 1e-4, "{rows}×{cols}: {error:e}");
    }
}

/// An element, or the only one of an axis of length one.
fn at(m: &Matrix, i: usize, j: usize) -> f64 {
    m.get(if m.rows() == 1 { 0 } else { i }, if m.cols() == 1 { 0 } else { j })
}

fn summed(m: &Matrix, axis: Axis) -> Matrix {
    match axis {
        Axis::Rows => Matrix::from_fn(1, m.cols(), |_, j| (0..m.rows()).map(|i| m.get(i, j)).sum()).unwrap(),
        Axis::Columns => Matrix::from_fn(m.rows(), 1, |i, _| (0..m.cols()).map(|j| m.get(i, j)).sum()).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn broadcasting_is_numpys(rows in 1usize..70, cols in 1usize..36, which in 0usize..16, seed: u32) {
        let w = &*WORLD;
        let pick = |bit: usize, length: usize| if which >> bit & 1 == 1 { 1 } else { length };
        let x = random(u64::from(seed), pick(0, rows), pick(1, cols));
        let y = random(u64::from(seed) + 1, pick(2, rows), pick(3, cols));
        let (a, b) = (w.encrypt(&x), w.encrypt(&y));
        let e = &w.evaluator;
        w.expect(&a.add(e, &b).unwrap(), |i, j| at(&x, i, j) + at(&y, i, j));
        w.expect(&a.sub(e, &b).unwrap(), |i, j| at(&x, i, j) - at(&y, i, j));
        w.expect(&a.mul(e, &b).unwrap(), |i, j| at(&x, i, j) * at(&y, i, j));
    }

    /// Vectors of any length, over several tiles, turned there and back.
    #[test]
    fn vectors_turn(length in 1usize..90, down: bool, seed: u32) {
        let w = &*WORLD;
        let (rows, cols) = if down { (length, 1) } else { (1, length) };
        let x = random(u64::from(seed), rows, cols);
        let a = w.encrypt(&x);
        let turned = a.transpose(&w.evaluator).unwrap();
        prop_assert_eq!(turned.layout.shape(), (cols, rows));
        prop_assert!(turned.is_clean());
        prop_assert_eq!(turned.tiles[0].level() + a.transpose_levels(), a.tiles[0].level());
        w.expect(&turned, |i, j| x.get(j, i));
        // It is replicated as a fresh one is.
        let other = random(u64::from(seed) + 1, cols, rows);
        let product = turned.mul(&w.evaluator, &w.encrypt(&other)).unwrap();
        w.expect(&product, |i, j| x.get(j, i) * other.get(i, j));
    }

    /// Sums of sums and products: whatever stands beside a table does not get into one.
    #[test]
    fn sums_count_the_table_alone(rows in 1usize..70, cols in 1usize..36, which in 0usize..16, seed: u32, product: bool,
                                  across: bool) {
        let w = &*WORLD;
        let pick = |bit: usize, length: usize| if which >> bit & 1 == 1 { 1 } else { length };
        let x = random(u64::from(seed), pick(0, rows), pick(1, cols));
        let y = random(u64::from(seed) + 1, pick(2, rows), pick(3, cols));
        let e = &w.evaluator;
        let (a, b) = (w.encrypt(&x), w.encrypt(&y));
        let both = if product { a.mul(e, &b) } else { a.add(e, &b) }.unwrap();
        let (rows, cols) = both.layout.shape();
        let op = |p: f64, q: f64| if product { p * q } else { p + q };
        let plain = Matrix::from_fn(rows, cols, |i, j| op(at(&x, i, j), at(&y, i, j))).unwrap();
        let axis = if across { Axis::Columns } else { Axis::Rows };
        let (levels, before) = (both.sum_levels(axis), both.tiles[0].level());
        let sum = both.sum(e, axis).unwrap();
        let wanted = summed(&plain, axis);
        w.expect(&sum, |i, j| wanted.get(i, j));
        prop_assert!(sum.tiles[0].level() + levels >= before && levels <= 2);
        // A sum is replicated: it meets the table again without a rotation.
        let product = sum.mul(e, &a);
        if let Ok(product) = product {
            w.expect(&product, |i, j| at(&wanted, i, j) * at(&x, i, j));
        }
    }
}

/// The rows from `start` on.
fn run(start: usize, count: usize) -> Lines {
    Lines { start, step: 1, count, at: 0, stride: 1, size: count }
}

/// Runs of whole tiles, with what stands beside them.
#[test]
fn rows_are_taken_by_whole_tiles() {
    let (w, level) = (&*WORLD, |grid: &Grid<'_>| grid.tiles[0].level());
    for cols in [1, 20] {
        let x = random(3, 75, cols);
        let table = w.encrypt(&x);
        for (start, count) in [(0, 32), (0, 64), (32, 32), (32, 43), (64, 11), (0, 75)] {
            let rows = table.rows(Axis::Rows, &run(start, count)).unwrap();
            assert_eq!((rows.layout.shape(), level(&rows)), ((count, cols), level(&table)));
            w.expect(&rows, |i, j| x.get(start + i, j));
            // Sums over rows count what was taken alone.
            let sum = rows.sum(&w.evaluator, Axis::Rows).unwrap();
            w.expect(&sum, |_, j| (start..start + count).map(|i| x.get(i, j)).sum());
        }
        let other = [run(1, 31), run(0, 31), run(32, 1), run(74, 1), run(64, 12), run(96, 32)];
        let steps = [Lines { step: 2, ..run(0, 32) }, Lines { at: 1, size: 33, ..run(0, 32) }];
        for lines in other.iter().chain(&steps) {
            let refused = table.rows(Axis::Rows, lines);
            assert!(matches!(refused, Err(MatrixError::NotPlanned { .. })), "{lines:?}");
        }
        assert!(table.rows(Axis::Columns, &run(0, cols)).is_err());
    }
    let row = w.encrypt(&random(4, 1, 20));
    w.expect(&row.rows(Axis::Rows, &run(0, 1)).unwrap(), |_, j| random(4, 1, 20).get(0, j));
}

#[test]
fn shapes_that_do_not_meet_are_refused() {
    let w = &*WORLD;
    let (a, b) = (w.encrypt(&random(1, 3, 2)), w.encrypt(&random(2, 3, 4)));
    assert!(matches!(
        a.add(&w.evaluator, &b),
        Err(MatrixError::Expr(ExprError::Shapes { left: (3, 2), right: (3, 4), .. }))
    ));
    let literal = w.params.literal();
    for (rows, cols, columns) in [(0, 3, 4), (3, 3, 3), (3, 3, 512), (1 << 20, 1 << 12, 4)] {
        assert!(GridLayout::new(rows, cols, columns, literal).is_err(), "{rows}×{cols} in {columns}");
    }
    let short = Grid { tiles: Vec::new().into(), ..a.clone() };
    assert!(short.add(&w.evaluator, &a).is_err() && short.sum(&w.evaluator, Axis::Rows).is_err());
}
