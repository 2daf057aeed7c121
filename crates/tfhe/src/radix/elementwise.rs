//! Operations on whole arrays, element by element, spread over the threads of a pool.

use crate::core::context::check_shape;
use crate::radix::array::{ElementType, IntegerArray, elements_of};
use crate::radix::{BitOperation, Comparison, EncryptedBool, IntegerEvaluator, IntegerType, RadixInt, Shift};
use crate::{EncryptedInt, TfheError};
use std::ops::Range;

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

fn refuse<T>(reason: String) -> Result<T, TfheError> {
    Err(TfheError::Parameters { reason })
}

impl IntegerEvaluator<'_> {
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Shape`].
    fn check_arrays(&self, arrays: &[&IntegerArray]) -> Result<(), TfheError> {
        for a in arrays {
            let (hash, id) = a.owner();
            self.key.check("the array", hash, id)?;
            check_shape("elements", arrays[0].len(), a.len())?;
        }
        Ok(())
    }

    /// `work` of elements of arrays of one length, which were checked.
    fn side_by_side<T: Send>(
        &self,
        arrays: &[&IntegerArray],
        work: impl Fn(&Self, Range<usize>) -> Result<T, TfheError> + Sync + Send,
    ) -> Result<Vec<T>, TfheError> {
        self.each(arrays[0].len(), |at| arrays.iter().all(|a| a.alike(at)), work)
    }

    /// An operation, element by element; arrays have the same number of elements and type. On
    /// booleans `+` and the larger are *or*, `·` and the smaller *and*, as in NumPy.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Shape`];
    /// [`TfheError::Parameters`] for different types or a difference of booleans.
    pub fn elementwise(
        &self,
        operation: Elementwise,
        a: &IntegerArray,
        b: &IntegerArray,
    ) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[a, b])?;
        let (ElementType::Integer(kind), true) = (a.element(), a.element() == b.element()) else {
            if a.element() == b.element() {
                let all =
                    self.side_by_side(&[a, b], |e, at| e.booleans(operation, &a.booleans(&at), &b.booleans(&at)))?;
                return Ok(a.of_booleans(all));
            }
            return refuse(format!("an operation on {} and {}; cast one of them first", a.element(), b.element()));
        };
        let integers = |work: &(dyn Fn(&Self, &RadixInt, &RadixInt) -> Result<RadixInt, TfheError> + Sync)| {
            let all = self.side_by_side(&[a, b], |e, at| work(e, &a.integers(kind, &at), &b.integers(kind, &at)))?;
            Ok(a.of_integers(kind, all))
        };
        match operation {
            Elementwise::Add => integers(&|e, a, b| e.add(a, b)),
            Elementwise::Sub => integers(&|e, a, b| e.sub(a, b)),
            Elementwise::Mul => integers(&|e, a, b| e.mul(a, b)),
            Elementwise::Min => integers(&|e, a, b| e.min(a, b)),
            Elementwise::Max => integers(&|e, a, b| e.max(a, b)),
            Elementwise::Bits(operation) => integers(&|e, a, b| e.bitwise(operation, a, b)),
            Elementwise::Compare(c) => {
                let all =
                    self.side_by_side(&[a, b], |e, at| e.compare(c, &a.integers(kind, &at), &b.integers(kind, &at)))?;
                Ok(a.of_booleans(all))
            }
        }
    }

    fn booleans(
        &self,
        operation: Elementwise,
        a: &EncryptedBool,
        b: &EncryptedBool,
    ) -> Result<EncryptedBool, TfheError> {
        use BitOperation::{And, Or, Xor};
        match operation {
            Elementwise::Add | Elementwise::Max | Elementwise::Bits(Or) => self.bool_op(Or, a, b),
            Elementwise::Mul | Elementwise::Min | Elementwise::Bits(And) => self.bool_op(And, a, b),
            Elementwise::Bits(Xor) | Elementwise::Compare(Comparison::Ne) => self.bool_op(Xor, a, b),
            Elementwise::Compare(Comparison::Eq) => self.bool_not(&self.bool_op(Xor, a, b)?),
            Elementwise::Compare(Comparison::Lt) => self.bool_op(And, &self.bool_not(a)?, b),
            Elementwise::Compare(Comparison::Le) => self.bool_op(Or, &self.bool_not(a)?, b),
            Elementwise::Compare(Comparison::Gt) => self.bool_op(And, a, &self.bool_not(b)?),
            Elementwise::Compare(Comparison::Ge) => self.bool_op(Or, a, &self.bool_not(b)?),
            Elementwise::Sub => refuse("booleans are not subtracted; use ^".into()),
        }
    }

    /// −a.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`; [`TfheError::Parameters`] for booleans.
    pub fn negative(&self, a: &IntegerArray) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[a])?;
        match a.element() {
            ElementType::Bool => refuse("booleans have no negative; use ~".into()),
            ElementType::Integer(kind) => {
                Ok(a.of_integers(kind, self.side_by_side(&[a], |e, at| e.neg(&a.integers(kind, &at)))?))
            }
        }
    }

    /// Every bit flipped.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn inverted(&self, a: &IntegerArray) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[a])?;
        match a.element() {
            ElementType::Bool => Ok(a.of_booleans(self.side_by_side(&[a], |e, at| e.bool_not(&a.booleans(&at)))?)),
            ElementType::Integer(kind) => {
                Ok(a.of_integers(kind, self.side_by_side(&[a], |e, at| e.not(&a.integers(kind, &at)))?))
            }
        }
    }

    /// Elements of a where the condition holds, of b elsewhere.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::elementwise`].
    pub fn choice(
        &self,
        condition: &IntegerArray,
        a: &IntegerArray,
        b: &IntegerArray,
    ) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[condition, a, b])?;
        if condition.element() != ElementType::Bool || a.element() != b.element() {
            let (c, a, b) = (condition.element(), a.element(), b.element());
            return refuse(format!("a choice by {c} between {a} and {b}; it is by bool between equal types"));
        }
        match a.element() {
            ElementType::Bool => Ok(a.of_booleans(self.side_by_side(&[condition, a, b], |e, at| {
                e.bool_select(&condition.booleans(&at), &a.booleans(&at), &b.booleans(&at))
            })?)),
            ElementType::Integer(kind) => Ok(a.of_integers(
                kind,
                self.side_by_side(&[condition, a, b], |e, at| {
                    e.select(&condition.booleans(&at), &a.integers(kind, &at), &b.integers(kind, &at))
                })?,
            )),
        }
    }

    /// A shift by a public number for each element, or one for all.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Shape`];
    /// [`TfheError::Parameters`] for booleans.
    pub fn shifted(&self, shift: Shift, a: &IntegerArray, by: &[u64]) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[a])?;
        check_shape("shifts", a.len(), by.len())?;
        let ElementType::Integer(kind) = a.element() else {
            return refuse("booleans are not shifted".into());
        };
        let alike = |at: &Range<usize>| a.alike(at) && at.clone().all(|i| by[i] == by[at.start]);
        Ok(a.of_integers(
            kind,
            self.each(a.len(), alike, |e, at| e.shift(shift, &a.integers(kind, &at), by[at.start]))?,
        ))
    }

    /// A shift by an encrypted number for each element.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::shifted`].
    pub fn shifted_by(&self, shift: Shift, a: &IntegerArray, by: &IntegerArray) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[a, by])?;
        let (ElementType::Integer(kind), ElementType::Integer(amount)) = (a.element(), by.element()) else {
            return refuse("booleans are not shifted, nor shifted by".into());
        };
        let all =
            self.side_by_side(&[a, by], |e, at| e.shift_by(shift, &a.integers(kind, &at), &by.integers(amount, &at)))?;
        Ok(a.of_integers(kind, all))
    }

    /// `table[a]`, element by element; the table's entries are two's complement, or 0 and 1.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::lookup`]; a boolean indexes a table of two entries.
    pub fn looked_up(&self, a: &IntegerArray, table: &[u64], to: ElementType) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[a])?;
        let kind = match a.element() {
            ElementType::Integer(kind) => kind,
            ElementType::Bool => {
                check_shape("table entries", 2, table.len())?;
                let nibble = IntegerType::new(4, false)?;
                let padded: Vec<u64> = table.iter().copied().chain(std::iter::repeat(0)).take(16).collect();
                return self.looked_up(&self.converted(a, ElementType::Integer(nibble))?, &padded, to);
            }
        };
        match to {
            ElementType::Bool => {
                let flags: Vec<bool> = table.iter().map(|x| *x != 0).collect();
                Ok(a.of_booleans(self.side_by_side(&[a], |e, at| e.lookup_bool(&a.integers(kind, &at), &flags))?))
            }
            ElementType::Integer(to) => {
                Ok(a.of_integers(to, self.side_by_side(&[a], |e, at| e.lookup(&a.integers(kind, &at), table, to))?))
            }
        }
    }

    /// The same numbers as another type, wrapping; a number is true unless it is zero.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn converted(&self, a: &IntegerArray, to: ElementType) -> Result<IntegerArray, TfheError> {
        self.check_arrays(&[a])?;
        match (a.element(), to) {
            (from, to) if from == to => Ok(a.clone()),
            (ElementType::Integer(from), ElementType::Integer(to)) => {
                Ok(a.of_integers(to, self.side_by_side(&[a], |e, at| e.cast(&a.integers(from, &at), to))?))
            }
            (_, ElementType::Integer(to)) => {
                Ok(a.of_integers(to, self.side_by_side(&[a], |e, at| e.bool_to_int(&a.booleans(&at), to))?))
            }
            (ElementType::Integer(from), ElementType::Bool) => {
                let zero = self.public(from, 0)?;
                let all = self.side_by_side(&[a], |e, at| e.compare(Comparison::Ne, &a.integers(from, &at), &zero))?;
                Ok(a.of_booleans(all))
            }
            (ElementType::Bool, ElementType::Bool) => Ok(a.clone()),
        }
    }

    /// An array that everybody knows.
    ///
    /// # Errors
    /// [`TfheError::Shape`] for the wrong number of values.
    pub fn public_array(
        &self,
        element: ElementType,
        shape: Vec<usize>,
        values: &[u64],
    ) -> Result<IntegerArray, TfheError> {
        check_shape("values", elements_of(&shape)?, values.len())?;
        let mut blocks: Vec<EncryptedInt> = Vec::with_capacity(values.len() * element.blocks());
        for v in values {
            match element {
                ElementType::Bool => blocks.extend(self.public_bool(*v != 0)?.into_blocks()),
                ElementType::Integer(kind) => blocks.extend(self.public(kind, *v)?.into_blocks()),
            }
        }
        IntegerArray::from_blocks(element, shape, (self.key.params().hash(), self.key.id()), blocks)
    }
}
