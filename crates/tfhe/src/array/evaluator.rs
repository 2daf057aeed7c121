//! What computes on arrays.

use crate::array::{ElementType, EncryptedArray, Progress};
use crate::core::context::check_shape;
use crate::radix::{BitOperation, Comparison, Shift};
use crate::{Plaintext, ServerKey, TfheError};

/// An operation of two arrays of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Elementwise {
    Add,
    Sub,
    Mul,
    Min,
    Max,
    Bits(BitOperation),
    Compare(Comparison),
}

/// What becomes of the booleans along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Whether one of them is true.
    Any,
    /// Whether all of them are true.
    All,
}

/// # Errors
/// [`TfheError::Parameters`], always.
pub(crate) fn refuse<T>(reason: String) -> Result<T, TfheError> {
    Err(TfheError::Parameters { reason })
}

/// As many elements as `like` has, each the same public number.
///
/// # Errors
/// Those of [`ArrayEvaluator::public_array`].
pub(crate) fn constant(
    e: &(impl ArrayEvaluator + ?Sized),
    like: &EncryptedArray,
    element: ElementType,
    value: u64,
) -> Result<EncryptedArray, TfheError> {
    e.public_array(element, like.shape().to_vec(), &vec![value; like.len()])
}

fn only_booleans<T>() -> Result<T, TfheError> {
    refuse("a set of gates holds booleans alone; take a set of integers (message_2_carry_2)".into())
}

/// Operations on arrays, element by element, spread over the threads of a pool. What a set of gates cannot do,
/// it refuses with [`TfheError::Parameters`].
pub trait ArrayEvaluator {
    /// An operation, element by element; arrays have the same number of elements and type. On booleans `+` and
    /// the larger are *or*, `·` and the smaller *and*, as in NumPy. Sums and differences of integers may leave
    /// their carries to whoever needs them propagated ([`ArrayEvaluator::settled`]).
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Shape`]; [`TfheError::Parameters`] for
    /// different types or a difference of booleans.
    fn elementwise(
        &self,
        operation: Elementwise,
        a: &EncryptedArray,
        b: &EncryptedArray,
    ) -> Result<EncryptedArray, TfheError>;

    /// Every bit flipped.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    fn inverted(&self, a: &EncryptedArray) -> Result<EncryptedArray, TfheError>;

    /// Elements of a where the condition holds, of b elsewhere.
    ///
    /// # Errors
    /// As for [`ArrayEvaluator::elementwise`].
    fn choice(
        &self,
        condition: &EncryptedArray,
        a: &EncryptedArray,
        b: &EncryptedArray,
    ) -> Result<EncryptedArray, TfheError>;

    /// Booleans along the first axis of an array of `shape` behind it, reduced to that shape: element i of
    /// the result takes elements i, i + m, i + 2m, … of `a`, m being the elements of `shape`.
    ///
    /// # Errors
    /// As for [`ArrayEvaluator::elementwise`]; [`TfheError::Shape`] for an array that is no such one, or empty.
    fn reduced(&self, how: Reduction, a: &EncryptedArray, shape: Vec<usize>) -> Result<EncryptedArray, TfheError>;

    /// `table[a]`, element by element; the table's entries are two's complement, or 0 and 1. Of an index of 16 bits the
    /// upper byte chooses a row of 256 entries, and each different row is looked up once.
    ///
    /// # Errors
    /// As for [`crate::radix::IntegerEvaluator::lookup`]; a boolean indexes a table of two entries.
    fn looked_up(&self, a: &EncryptedArray, table: &[u64], to: ElementType) -> Result<EncryptedArray, TfheError>;

    /// An array that everybody knows.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of values.
    fn public_array(
        &self,
        element: ElementType,
        shape: Vec<usize>,
        values: &[u64],
    ) -> Result<EncryptedArray, TfheError>;

    /// Says that operations from here on are part number `part` of `parts` of a longer one, whose progress is reported.
    fn part(&self, part: usize, parts: usize);

    /// The same numbers as another type, wrapping; a number is true unless it is zero.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    fn converted(&self, a: &EncryptedArray, to: ElementType) -> Result<EncryptedArray, TfheError> {
        if a.element() == to { Ok(a.clone()) } else { only_booleans() }
    }

    /// The same array with no carry waiting.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    fn settled(&self, a: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        Ok(a.clone())
    }

    /// −a.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; [`TfheError::Parameters`] for booleans.
    fn negative(&self, _a: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        refuse("booleans have no negative; use ~ for their complement".into())
    }

    /// A shift by a public number for each element.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Shape`]; [`TfheError::Parameters`] for
    /// booleans.
    fn shifted(&self, _shift: Shift, _a: &EncryptedArray, _by: &[u64]) -> Result<EncryptedArray, TfheError> {
        only_booleans()
    }

    /// A shift by an encrypted number for each element.
    ///
    /// # Errors
    /// As for [`ArrayEvaluator::shifted`].
    fn shifted_by(
        &self,
        _shift: Shift,
        _a: &EncryptedArray,
        _by: &EncryptedArray,
    ) -> Result<EncryptedArray, TfheError> {
        only_booleans()
    }
}

impl ServerKey {
    /// Operations on arrays under this key, of what its parameters hold; inside a thread pool each uses its
    /// threads.
    ///
    /// # Errors
    /// As for [`ServerKey::integers`].
    pub fn arrays(&self) -> Result<Box<dyn ArrayEvaluator + '_>, TfheError> {
        self.arrays_with(&|_, _| {})
    }

    /// The same, whose operations report their progress.
    ///
    /// # Errors
    /// As for [`ServerKey::integers`].
    pub fn arrays_with<'k>(&'k self, progress: Progress<'k>) -> Result<Box<dyn ArrayEvaluator + 'k>, TfheError> {
        match self.params().literal().plaintext {
            Plaintext::Bit => Ok(Box::new(self.bits()?.observed(progress))),
            Plaintext::Integer { .. } => Ok(Box::new(self.integers()?.observed(progress))),
        }
    }

    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Shape`].
    pub(crate) fn check_arrays(&self, arrays: &[&EncryptedArray]) -> Result<(), TfheError> {
        for a in arrays {
            let (hash, id) = a.owner();
            self.check("the array", hash, id)?;
            check_shape("elements", arrays[0].len(), a.len())?;
        }
        Ok(())
    }
}

impl EncryptedArray {
    /// How many booleans each element of a reduction to `shape` takes.
    ///
    /// # Errors
    /// [`TfheError::Shape`], [`TfheError::Parameters`].
    pub(crate) fn reduces_to(&self, shape: &[usize]) -> Result<usize, TfheError> {
        if self.element() != ElementType::Bool {
            return refuse(format!("any and all take booleans, not {}; cast or compare first", self.element()));
        }
        let m = super::elements_of(shape)?;
        if self.is_empty() || m == 0 || !self.len().is_multiple_of(m) {
            return Err(TfheError::Shape {
                what: "a multiple of the elements of a reduction",
                expected: m.max(1),
                found: self.len(),
            });
        }
        Ok(self.len() / m)
    }
}
