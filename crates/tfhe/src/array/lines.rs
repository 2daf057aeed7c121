//! Lines of arrays: what has one number along the first axis.

use super::{EncryptedArray, elements_of};
use crate::TfheError;

impl EncryptedArray {
    /// Lines along the first axis; a number has one.
    pub fn lines(&self) -> usize {
        self.shape().split_first().map_or(1, |(lines, _)| *lines)
    }

    /// The shape of a line.
    pub fn line_shape(&self) -> &[usize] {
        self.shape().split_first().map_or(&[], |(_, rest)| rest)
    }

    /// Elements of a line.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for a shape that is none.
    fn line(&self) -> Result<usize, TfheError> {
        elements_of(self.line_shape())
    }

    /// Lines by their numbers.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for a line that is not there.
    pub(super) fn picked(&self, lines: impl IntoIterator<Item = usize>) -> Result<Self, TfheError> {
        let width = self.line()?;
        let lines: Vec<usize> = lines.into_iter().collect();
        let shape = [&[lines.len()], self.line_shape()].concat();
        let indices: Vec<usize> = lines.into_iter().flat_map(|line| line * width..(line + 1) * width).collect();
        self.take(shape, &indices)
    }

    /// The lines of several arrays, one after the other.
    ///
    /// # Errors
    /// Those of [`EncryptedArray::concatenated`].
    pub(super) fn stacked(all: &[&Self]) -> Result<Self, TfheError> {
        let flat = Self::concatenated(all)?;
        let rest = all.first().map_or(&[][..], |first| first.line_shape());
        let shape = [&[all.iter().map(|a| a.lines()).sum()], rest].concat();
        flat.reshaped(shape)
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for a shape of another number of elements.
    pub(super) fn reshaped(&self, shape: Vec<usize>) -> Result<Self, TfheError> {
        self.take(shape, &(0..self.len()).collect::<Vec<_>>())
    }
}
