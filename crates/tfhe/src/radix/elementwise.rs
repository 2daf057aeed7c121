//! Operations on whole arrays of integers and booleans, element by element, spread over the threads of a pool.

use crate::array::{
    ArrayEvaluator, ElementType, Elementwise, EncryptedArray, Reduction, elements_of, evaluator::refuse,
    table::looked_up_wide,
};
use crate::core::context::check_shape;
use crate::radix::combination::Combination;
use crate::radix::value::{MOST_WAITING, WAITING_NOISE};
use crate::radix::{BASE, BitOperation, Comparison, EncryptedBool, IntegerEvaluator, IntegerType, RadixInt, Shift};
use crate::{EncryptedInt, TfheError};
use std::ops::Range;

impl IntegerEvaluator<'_> {
    /// `work` of elements of arrays of one length, which were checked.
    fn side_by_side<T: Send>(
        &self,
        arrays: &[&EncryptedArray],
        work: impl Fn(&Self, Range<usize>) -> Result<T, TfheError> + Sync + Send,
    ) -> Result<Vec<T>, TfheError> {
        self.each(arrays[0].len(), |at| arrays.iter().all(|a| a.alike(at)), work)
    }

    /// The same array with no carry waiting, which it keeps for the next operation.
    fn ready<'a>(&self, a: &'a EncryptedArray) -> Result<&'a EncryptedArray, TfheError> {
        let ElementType::Integer(kind) = a.element() else { return Ok(a) };
        a.settled(|| {
            let elements = self.side_by_side(&[a], |e, at| {
                let x = a.integers(kind, &at);
                if a.carries(&at) { Ok(e.wrap(kind, e.propagate(e.blocks(&x))?)) } else { Ok(x) }
            })?;
            Ok(a.of_integers(kind, elements))
        })
    }

    /// a + b or a − b without a bootstrap, its carries waiting, if blocks have room for them.
    fn waiting(
        &self,
        kind: IntegerType,
        (a, b): (&EncryptedArray, &EncryptedArray),
        subtract: bool,
    ) -> Result<Option<EncryptedArray>, TfheError> {
        let ((x, noise), (y, more)) = (a.extent(), b.extent());
        // A difference adds the complement of b, and one.
        let largest = x + if subtract { BASE as u64 } else { y };
        if largest > MOST_WAITING || noise + more > WAITING_NOISE.min(self.key.largest_noise().saturating_sub(1)) {
            return Ok(None);
        }
        let sums = self.side_by_side(&[a, b], |e, at| {
            let (x, y) = (a.integers(kind, &at), b.integers(kind, &at));
            Ok(e.wrap(kind, if subtract { e.differences(&x, &y)? } else { e.sums(&x, &y)? }))
        })?;
        Ok(Some(a.of_integers(kind, sums)))
    }

    /// a + b or a − b, whose carries wait where that is possible, at least once carries that wait already
    /// have been propagated.
    fn sum(
        &self,
        kind: IntegerType,
        (a, b): (&EncryptedArray, &EncryptedArray),
        subtract: bool,
    ) -> Result<EncryptedArray, TfheError> {
        // The complement is that of a message.
        let b = if subtract { self.ready(b)? } else { b };
        if let Some(sum) = self.waiting(kind, (a, b), subtract)? {
            return Ok(sum);
        }
        let (a, b) = (self.ready(a)?, self.ready(b)?);
        if let Some(sum) = self.waiting(kind, (a, b), subtract)? {
            return Ok(sum);
        }
        let all = self.side_by_side(&[a, b], |e, at| {
            let (x, y) = (a.integers(kind, &at), b.integers(kind, &at));
            if subtract { e.sub(&x, &y) } else { e.add(&x, &y) }
        })?;
        Ok(a.of_integers(kind, all))
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
            Elementwise::Sub => refuse("booleans are not subtracted; use ^ for their difference".into()),
        }
    }
}

impl ArrayEvaluator for IntegerEvaluator<'_> {
    fn elementwise(
        &self,
        operation: Elementwise,
        a: &EncryptedArray,
        b: &EncryptedArray,
    ) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a, b])?;
        let kind = match (a.element(), b.element()) {
            (ElementType::Integer(kind), other) if a.element() == other => kind,
            (ElementType::Bool, ElementType::Bool) => {
                let all =
                    self.side_by_side(&[a, b], |e, at| e.booleans(operation, &a.booleans(&at), &b.booleans(&at)))?;
                return Ok(a.of_booleans(all));
            }
            (a, b) => return refuse(format!("{a} and {b} are not computed with each other; cast one of them first")),
        };
        type Work<'w> = &'w (dyn Fn(&IntegerEvaluator<'_>, &RadixInt, &RadixInt) -> Result<RadixInt, TfheError> + Sync);
        let integers = |work: Work<'_>| {
            let (a, b) = (self.ready(a)?, self.ready(b)?);
            let all = self.side_by_side(&[a, b], |e, at| work(e, &a.integers(kind, &at), &b.integers(kind, &at)))?;
            Ok(a.of_integers(kind, all))
        };
        match operation {
            Elementwise::Add => self.sum(kind, (a, b), false),
            Elementwise::Sub => self.sum(kind, (a, b), true),
            Elementwise::Mul => integers(&|e, a, b| e.mul(a, b)),
            Elementwise::Min => integers(&|e, a, b| e.min(a, b)),
            Elementwise::Max => integers(&|e, a, b| e.max(a, b)),
            Elementwise::Bits(operation) => integers(&|e, a, b| e.bitwise(operation, a, b)),
            Elementwise::Compare(c) => {
                let (a, b) = (self.ready(a)?, self.ready(b)?);
                let all =
                    self.side_by_side(&[a, b], |e, at| e.compare(c, &a.integers(kind, &at), &b.integers(kind, &at)))?;
                Ok(a.of_booleans(all))
            }
        }
    }

    fn settled(&self, a: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a])?;
        Ok(self.ready(a)?.clone())
    }

    fn reduced(&self, how: Reduction, a: &EncryptedArray, shape: Vec<usize>) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a])?;
        let (count, m) = (a.reduces_to(&shape)?, elements_of(&shape)?);
        let all = self.each(
            m,
            |_| false,
            |e, at| {
                let flags = (0..count).map(|i| {
                    let index = i * m + at.start;
                    let flag = Combination::of(e.key, a.booleans(&(index..index + 1)).blocks().iter());
                    // All are true where none is false.
                    if how == Reduction::All { flag.times(-1).plus_constant(e.key, 1) } else { flag }
                });
                let relation = |v: i64| i64::from((v != 0) == (how == Reduction::Any));
                Ok(e.wrap_bool(e.any(flags.collect(), &relation)?))
            },
        )?;
        let blocks = all.into_iter().flat_map(EncryptedBool::into_blocks).collect();
        Ok(EncryptedArray::computed(ElementType::Bool, shape, a.owner(), blocks))
    }

    fn negative(&self, a: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a])?;
        match a.element() {
            ElementType::Bool => refuse("booleans have no negative; use ~ for their complement".into()),
            ElementType::Integer(kind) => {
                let zeros = self.public_array(a.element(), a.shape().to_vec(), &vec![0; a.len()])?;
                self.sum(kind, (&zeros, a), true)
            }
        }
    }

    fn inverted(&self, a: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a])?;
        let a = self.ready(a)?;
        match a.element() {
            ElementType::Bool => Ok(a.of_booleans(self.side_by_side(&[a], |e, at| e.bool_not(&a.booleans(&at)))?)),
            ElementType::Integer(kind) => {
                Ok(a.of_integers(kind, self.side_by_side(&[a], |e, at| e.not(&a.integers(kind, &at)))?))
            }
        }
    }

    fn choice(
        &self,
        condition: &EncryptedArray,
        a: &EncryptedArray,
        b: &EncryptedArray,
    ) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[condition, a, b])?;
        if condition.element() != ElementType::Bool || a.element() != b.element() {
            let (c, a, b) = (condition.element(), a.element(), b.element());
            return refuse(format!(
                "a choice takes a condition of bool and two equal types, not {c}, {a} and {b}; cast first"
            ));
        }
        let (a, b) = (self.ready(a)?, self.ready(b)?);
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

    fn shifted(&self, shift: Shift, a: &EncryptedArray, by: &[u64]) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a])?;
        check_shape("shifts", a.len(), by.len())?;
        let ElementType::Integer(kind) = a.element() else {
            return refuse("booleans are not shifted; cast them to an integer type first".into());
        };
        let a = self.ready(a)?;
        let alike = |at: &Range<usize>| a.alike(at) && at.clone().all(|i| by[i] == by[at.start]);
        Ok(a.of_integers(
            kind,
            self.each(a.len(), alike, |e, at| e.shift(shift, &a.integers(kind, &at), by[at.start]))?,
        ))
    }

    fn shifted_by(&self, shift: Shift, a: &EncryptedArray, by: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a, by])?;
        let (ElementType::Integer(kind), ElementType::Integer(amount)) = (a.element(), by.element()) else {
            return refuse(
                "booleans are not shifted, and nothing is shifted by them; cast them to an integer type first".into(),
            );
        };
        let (a, by) = (self.ready(a)?, self.ready(by)?);
        let all =
            self.side_by_side(&[a, by], |e, at| e.shift_by(shift, &a.integers(kind, &at), &by.integers(amount, &at)))?;
        Ok(a.of_integers(kind, all))
    }

    fn looked_up(&self, a: &EncryptedArray, table: &[u64], to: ElementType) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a])?;
        let a = self.ready(a)?;
        let kind = match a.element() {
            ElementType::Integer(kind) if kind.bits() == 16 => return looked_up_wide(self, a, table, to),
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

    fn part(&self, part: usize, parts: usize) {
        self.observer.at(part, parts);
    }

    fn converted(&self, a: &EncryptedArray, to: ElementType) -> Result<EncryptedArray, TfheError> {
        self.key.check_arrays(&[a])?;
        if a.element() == to {
            return Ok(a.clone());
        }
        let a = self.ready(a)?;
        match (a.element(), to) {
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

    fn public_array(
        &self,
        element: ElementType,
        shape: Vec<usize>,
        values: &[u64],
    ) -> Result<EncryptedArray, TfheError> {
        check_shape("values", elements_of(&shape)?, values.len())?;
        let mut blocks: Vec<EncryptedInt> = Vec::with_capacity(values.len() * element.blocks());
        for v in values {
            match element {
                ElementType::Bool => blocks.extend(self.public_bool(*v != 0)?.into_blocks()),
                ElementType::Integer(kind) => blocks.extend(self.public(kind, *v)?.into_blocks()),
            }
        }
        EncryptedArray::from_blocks(element, shape, (self.key.params().hash(), self.key.id()), blocks)
    }
}
