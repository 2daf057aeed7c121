//! Rows or columns of a matrix that go to other places.

use serde::{Deserialize, Serialize};

/// Lines of a matrix (its rows or its columns) that go to other places in a new one: line `start + step·i` becomes line
/// `at + stride·i`, for i below `count`. The new matrix has `size` lines, zeros where none goes.
///
/// ```
/// use sudare_expr::{Lines, Matrix};
///
/// // NumPy's column[::-2]: every second line, from the last.
/// let lines = Lines { start: 4, step: -2, count: 3, at: 0, stride: 1, size: 3 };
/// assert!(lines.fit(5) && !lines.fit(4));
/// let column = Matrix::new(5, 1, vec![0.0, 1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(column.take(0, &lines)?.data(), [4.0, 2.0, 0.0]);
/// # Ok::<(), sudare_expr::ExprError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The first line taken.
    pub start: usize,
    /// From one line taken to the next; backwards if it is negative.
    pub step: i64,
    /// How many are taken.
    pub count: usize,
    /// Where the first goes.
    pub at: usize,
    /// From one place to the next.
    pub stride: usize,
    /// Lines of the result.
    pub size: usize,
}

/// Most lines that are taken at once: a plan is worked out line by line.
const MAX_LINES: usize = 1 << 20;

impl Lines {
    /// Why they cannot be taken of a matrix along an axis.
    pub(crate) fn misfit(&self, (rows, cols): (usize, usize), axis: u8) -> String {
        let Self { start, step, count, at, stride, size } = self;
        format!(
            "{count} lines from {start} in steps of {step}, put at {at} in steps of {stride} among {size}, do not fit \
             a {rows}×{cols} matrix along axis {axis}, or are over {MAX_LINES}; take fewer, and only such as it has"
        )
    }

    /// Whether they can be taken of a matrix of `lines` lines.
    pub fn fit(&self, lines: usize) -> bool {
        let Self { start, step, count, at, stride, size } = *self;
        let most = lines.max(size) as i64;
        let last = step.checked_mul(count as i64 - 1).and_then(|far| far.checked_add(start as i64));
        let end = (count.max(1) - 1).checked_mul(stride).and_then(|far| far.checked_add(at));
        count >= 1
            && count <= lines.max(size).min(MAX_LINES)
            && step.abs() <= most
            && (step != 0 || count == 1)
            && stride >= 1
            && start < lines
            && last.is_some_and(|last| (0..lines as i64).contains(&last))
            && end.is_some_and(|end| end < size)
    }

    /// For each line of the result the one that it is, if it is any.
    pub fn sources(&self) -> Vec<Option<usize>> {
        let mut out = vec![None; self.size];
        for i in 0..self.count {
            out[self.at + self.stride * i] = usize::try_from(self.start as i64 + self.step * i as i64).ok();
        }
        out
    }
}
