//! Operations on arrays of booleans under a set of gates.

use crate::array::Progress;
use crate::array::evaluator::refuse;
use crate::array::progress::Observer;
use crate::array::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray, Reduction, check_element, elements_of};
use crate::core::context::check_shape;
use crate::radix::{BitOperation, Comparison};
use crate::{EncryptedBit, EncryptedInt, Gate, ServerKey, TfheError};
use sudare_ring::threads;

/// Computes on arrays of booleans with the server key of a set of gates: one bootstrap a gate, two a choice, and
/// none where an operand is public.
pub struct BitEvaluator<'k> {
    key: &'k ServerKey,
    observer: Observer<'k>,
}

/// Gates for each thread after which progress is reported: many batches, so that none of them is cut.
const REPORTED: usize = 64;

/// A result, or the gate that gives it.
enum Step {
    Done(EncryptedBit),
    Gate(Gate, EncryptedBit, EncryptedBit),
    Choice(EncryptedBit, EncryptedBit, EncryptedBit),
}

/// The gate of an operation, and whether its operands change places.
fn gate(operation: Elementwise) -> Result<(Gate, bool), TfheError> {
    use BitOperation::{And, Or, Xor};
    Ok(match operation {
        Elementwise::Add | Elementwise::Max | Elementwise::Bits(Or) => (Gate::Or, false),
        Elementwise::Mul | Elementwise::Min | Elementwise::Bits(And) => (Gate::And, false),
        Elementwise::Bits(Xor) | Elementwise::Compare(Comparison::Ne) => (Gate::Xor, false),
        Elementwise::Compare(Comparison::Eq) => (Gate::Xnor, false),
        Elementwise::Compare(Comparison::Gt) => (Gate::AndNot, false),
        Elementwise::Compare(Comparison::Ge) => (Gate::OrNot, false),
        Elementwise::Compare(Comparison::Lt) => (Gate::AndNot, true),
        Elementwise::Compare(Comparison::Le) => (Gate::OrNot, true),
        Elementwise::Sub => return refuse("booleans are not subtracted; use ^ for their difference".into()),
    })
}

impl ServerKey {
    /// Operations on arrays of booleans under this key.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] unless its parameters are those of gates.
    pub fn bits(&self) -> Result<BitEvaluator<'_>, TfheError> {
        self.check_plaintext(true)?;
        Ok(BitEvaluator { key: self, observer: Observer::default() })
    }
}

impl<'k> BitEvaluator<'k> {
    /// The same, whose operations report their progress.
    pub(crate) fn observed(self, progress: Progress<'k>) -> Self {
        Self { observer: Observer::new(progress), ..self }
    }
}

impl BitEvaluator<'_> {
    /// The value, where everybody can read it.
    fn public(&self, x: &EncryptedBit) -> Option<bool> {
        let c = x.ciphertext();
        c.mask().iter().all(|a| *a == 0).then(|| c.body() <= self.key.params().context().q() / 2)
    }

    /// A gate of which an operand may be public: then what is left of it.
    fn gated(&self, gate: Gate, a: EncryptedBit, b: EncryptedBit) -> Result<Step, TfheError> {
        let (other, outputs) = match (self.public(&a), self.public(&b)) {
            (Some(a), _) => (b, [false, true].map(|b| gate.plain(a, b))),
            (_, Some(b)) => (a, [false, true].map(|a| gate.plain(a, b))),
            _ => return Ok(Step::Gate(gate, a, b)),
        };
        Ok(Step::Done(match outputs {
            [false, true] => other,
            [true, false] => self.key.not(&other)?,
            [constant, _] => self.key.trivial_bit(constant)?,
        }))
    }

    /// A choice of which parts may be public.
    fn chosen(&self, c: EncryptedBit, a: EncryptedBit, b: EncryptedBit) -> Result<Step, TfheError> {
        if let Some(c) = self.public(&c) {
            return Ok(Step::Done(if c { a } else { b }));
        }
        match (self.public(&a), self.public(&b)) {
            (Some(true), _) => self.gated(Gate::Or, c, b),
            (Some(false), _) => self.gated(Gate::AndNot, b, c),
            (_, Some(true)) => self.gated(Gate::OrNot, a, c),
            (_, Some(false)) => self.gated(Gate::And, c, a),
            _ => Ok(Step::Choice(c, a, b)),
        }
    }

    /// All steps, those that bootstrap in batches.
    fn run(&self, steps: Vec<Step>) -> Result<Vec<EncryptedBit>, TfheError> {
        let (mut gates, mut choices) = (Vec::new(), Vec::new());
        for step in &steps {
            match step {
                Step::Done(_) => {}
                Step::Gate(gate, a, b) => gates.push((*gate, a, b)),
                Step::Choice(c, a, b) => choices.push((c, a, b)),
            }
        }
        let done = self.observer.counting(gates.len() + choices.len());
        let most = REPORTED * threads::count();
        let (mut outputs, mut chosen) = (Vec::with_capacity(gates.len()), Vec::with_capacity(choices.len()));
        for some in gates.chunks(most) {
            outputs.extend(self.key.gates(some)?);
            done(some.len());
        }
        for some in choices.chunks(most) {
            chosen.extend(self.key.muxes(some)?);
            done(some.len());
        }
        let (mut gates, mut choices) = (outputs.into_iter(), chosen.into_iter());
        let outputs = steps.into_iter().filter_map(|step| match step {
            Step::Done(bit) => Some(bit),
            Step::Gate(..) => gates.next(),
            Step::Choice(..) => choices.next(),
        });
        Ok(outputs.collect())
    }

    fn array(&self, shape: Vec<usize>, bits: Vec<EncryptedBit>) -> EncryptedArray {
        let owner = (self.key.params().hash(), self.key.id());
        let blocks = bits.into_iter().map(|bit| {
            let public = self.public(&bit);
            // A choice has the noise of two outputs.
            let (largest, noise) = public.map_or((1, 2), |value| (u64::from(value), 0));
            EncryptedInt::from_parts(bit.ciphertext().clone(), owner, largest, noise)
        });
        EncryptedArray::computed(ElementType::Bool, shape, owner, blocks.collect())
    }

    fn check(&self, arrays: &[&EncryptedArray]) -> Result<(), TfheError> {
        self.key.check_arrays(arrays)?;
        arrays.iter().try_for_each(|a| check_element(self.key.params(), a.element()))
    }
}

impl ArrayEvaluator for BitEvaluator<'_> {
    fn elementwise(
        &self,
        operation: Elementwise,
        a: &EncryptedArray,
        b: &EncryptedArray,
    ) -> Result<EncryptedArray, TfheError> {
        self.check(&[a, b])?;
        let (gate, exchanged) = gate(operation)?;
        let steps = (0..a.len()).map(|i| match exchanged {
            false => self.gated(gate, a.bit(i), b.bit(i)),
            true => self.gated(gate, b.bit(i), a.bit(i)),
        });
        Ok(self.array(a.shape().to_vec(), self.run(steps.collect::<Result<_, _>>()?)?))
    }

    fn part(&self, part: usize, parts: usize) {
        self.observer.at(part, parts);
    }

    fn inverted(&self, a: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        self.check(&[a])?;
        let bits = (0..a.len()).map(|i| self.key.not(&a.bit(i)));
        Ok(self.array(a.shape().to_vec(), bits.collect::<Result<_, _>>()?))
    }

    fn choice(
        &self,
        condition: &EncryptedArray,
        a: &EncryptedArray,
        b: &EncryptedArray,
    ) -> Result<EncryptedArray, TfheError> {
        self.check(&[condition, a, b])?;
        let steps = (0..a.len()).map(|i| self.chosen(condition.bit(i), a.bit(i), b.bit(i)));
        Ok(self.array(a.shape().to_vec(), self.run(steps.collect::<Result<_, _>>()?)?))
    }

    fn reduced(&self, how: Reduction, a: &EncryptedArray, shape: Vec<usize>) -> Result<EncryptedArray, TfheError> {
        self.check(&[a])?;
        let (mut count, m) = (a.reduces_to(&shape)?, elements_of(&shape)?);
        let gate = if how == Reduction::Any { Gate::Or } else { Gate::And };
        let mut bits: Vec<EncryptedBit> = (0..a.len()).map(|i| a.bit(i)).collect();
        // Halves the axis until one row is left.
        while count > 1 {
            let half = count / 2;
            let rest = bits.split_off(2 * half * m);
            let steps = (0..half * m).map(|i| self.gated(gate, bits[i].clone(), bits[half * m + i].clone()));
            bits = self.run(steps.collect::<Result<_, _>>()?)?;
            bits.extend(rest);
            count -= half;
        }
        Ok(self.array(shape, bits))
    }

    fn looked_up(&self, a: &EncryptedArray, table: &[u64], to: ElementType) -> Result<EncryptedArray, TfheError> {
        self.check(&[a])?;
        check_element(self.key.params(), to)?;
        check_shape("table entries", 2, table.len())?;
        let bits = (0..a.len()).map(|i| match [table[0] != 0, table[1] != 0] {
            [false, true] => Ok(a.bit(i)),
            [true, false] => self.key.not(&a.bit(i)),
            [constant, _] => self.key.trivial_bit(constant),
        });
        Ok(self.array(a.shape().to_vec(), bits.collect::<Result<_, _>>()?))
    }

    fn public_array(
        &self,
        element: ElementType,
        shape: Vec<usize>,
        values: &[u64],
    ) -> Result<EncryptedArray, TfheError> {
        check_element(self.key.params(), element)?;
        check_shape("values", elements_of(&shape)?, values.len())?;
        let bits = values.iter().map(|v| self.key.trivial_bit(*v != 0)).collect::<Result<_, _>>()?;
        Ok(self.array(shape, bits))
    }
}
