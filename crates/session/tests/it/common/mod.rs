//! Matrices for tests.

use sudare_expr::Matrix;
use sudare_testkit::random::unit_at;

/// Elements in [−1, 1) that follow no line.
pub fn random(seed: u64, rows: usize, cols: usize) -> Matrix {
    Matrix::from_fn(rows, cols, |i, j| unit_at(seed, i, j)).unwrap()
}
