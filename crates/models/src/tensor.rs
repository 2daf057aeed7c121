//! Plain tensors, and where elements go when a tensor is looked at another way.

use crate::error::{ModelError, format};

/// Numbers of a tensor at most.
pub(crate) const MAX_ELEMENTS: usize = 1 << 26;

/// The number of elements of a shape, within the limit.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    let count = shape.iter().try_fold(1usize, |count, d| count.checked_mul(*d));
    count.filter(|count| *count <= MAX_ELEMENTS)
}

/// A dense tensor, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

impl Tensor {
    pub fn scalar(value: f64) -> Self {
        Self { shape: Vec::new(), data: vec![value] }
    }

    pub fn vector(data: Vec<f64>) -> Self {
        Self { shape: vec![data.len()], data }
    }

    /// Its numbers as integers.
    pub fn integers(&self) -> Result<Vec<i64>, ModelError> {
        match self.data.iter().find(|x| x.fract() != 0.0 || !x.is_finite()) {
            Some(_) => format("a shape or axis is not an integer"),
            None => Ok(self.data.iter().map(|x| *x as i64).collect()),
        }
    }
}

/// Where the elements of a result come from: the flat place of each in an operand, or none for padding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Indices {
    pub shape: Vec<usize>,
    pub from: Vec<Option<usize>>,
}

/// Flat steps of each axis.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut steps: Vec<usize> = shape
        .iter()
        .rev()
        .scan(1, |step, d| {
            let own = *step;
            *step *= d;
            Some(own)
        })
        .collect();
    steps.reverse();
    steps
}

impl Indices {
    /// By a function of each place of the result to that in an operand's shape.
    pub fn new(
        shape: Vec<usize>,
        source: &[usize],
        mut place: impl FnMut(&[usize], &mut [usize]) -> bool,
    ) -> Result<Self, ModelError> {
        let Some(count) = elements(&shape) else {
            return format(format!("a tensor of the shape {shape:?} has more than {MAX_ELEMENTS} numbers"));
        };
        let steps = strides(source);
        let (mut at, mut to, mut from) = (vec![0; shape.len()], vec![0; source.len()], Vec::with_capacity(count));
        for _ in 0..count {
            from.push(place(&at, &mut to).then(|| to.iter().zip(&steps).map(|(i, s)| i * s).sum()));
            for axis in (0..shape.len()).rev() {
                at[axis] += 1;
                if at[axis] < shape[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        Ok(Self { shape, from })
    }

    /// The same elements in another shape.
    pub fn reshaped(shape: Vec<usize>, count: usize) -> Result<Self, ModelError> {
        match elements(&shape) {
            Some(found) if found == count => Ok(Self { shape, from: (0..count).map(Some).collect() }),
            _ => format(format!("{count} numbers do not fit the shape {shape:?}")),
        }
    }

    /// A tensor repeated along axes of length one, and along new ones in front.
    pub fn broadcast(source: &[usize], shape: Vec<usize>) -> Result<Self, ModelError> {
        let ahead = shape.len().checked_sub(source.len());
        let fits = |ahead: usize| source.iter().zip(&shape[ahead..]).all(|(s, d)| s == d || *s == 1);
        let Some(ahead) = ahead.filter(|ahead| fits(*ahead)) else {
            return format(format!("the shape {source:?} is not broadcast to {shape:?}"));
        };
        let own = source.to_vec();
        Self::new(shape, source, |at, to| {
            to.iter_mut().enumerate().for_each(|(i, t)| *t = if own[i] == 1 { 0 } else { at[ahead + i] });
            true
        })
    }

    /// The elements of a constant.
    pub fn take(&self, data: &[f64], padding: f64) -> Tensor {
        let data = self.from.iter().map(|from| from.map_or(padding, |i| data[i])).collect();
        Tensor { shape: self.shape.clone(), data }
    }
}

/// The shape that two operands are extended to.
pub(crate) fn common_shape(a: &[usize], b: &[usize]) -> Result<Vec<usize>, ModelError> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    let one = |axis| match (dim(a, axis), dim(b, axis)) {
        (x, y) if x == y => Ok(x),
        (1, y) => Ok(y),
        (x, 1) => Ok(x),
        _ => format(format!("the shapes {a:?} and {b:?} do not go together")),
    };
    (0..rank).map(one).collect()
}

/// An axis, counted from the end if it is negative.
pub(crate) fn axis_of(axis: i64, rank: usize) -> Result<usize, ModelError> {
    let counted = if axis < 0 { axis + rank as i64 } else { axis };
    match usize::try_from(counted) {
        Ok(counted) if counted < rank => Ok(counted),
        _ => format(format!("there is no axis {axis} among {rank}")),
    }
}
