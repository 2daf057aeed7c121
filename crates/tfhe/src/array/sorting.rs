//! Orders along the first axis: sorting, and the place of the least or largest.

use super::evaluator::refuse;
use super::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray};
use crate::TfheError;
use crate::radix::{Comparison, IntegerType};

/// Batcher's sorting by odd-even merges ("Sorting networks and their applications", 1968): rounds of pairs that do not
/// touch, each of which puts the smaller first.
fn network(n: usize) -> Vec<Vec<(usize, usize)>> {
    let (mut rounds, mut p) = (Vec::new(), 1);
    while p < n {
        let mut k = p;
        while k >= 1 {
            let starts = (k % p..n.saturating_sub(k)).step_by(2 * k);
            let pairs = starts.flat_map(|j| (0..k.min(n - j - k)).map(move |i| (i + j, i + j + k)));
            rounds.push(pairs.filter(|(a, b)| a / (2 * p) == b / (2 * p)).collect());
            k /= 2;
        }
        p *= 2;
    }
    rounds
}

/// Both outcomes of a choice, in one layer of bootstraps: a where the condition holds and b elsewhere, and the other way round.
fn exchanged(
    e: &dyn ArrayEvaluator,
    condition: &EncryptedArray,
    a: &EncryptedArray,
    b: &EncryptedArray,
) -> Result<EncryptedArray, TfheError> {
    e.choice(
        &EncryptedArray::stacked(&[condition, condition])?,
        &EncryptedArray::stacked(&[a, b])?,
        &EncryptedArray::stacked(&[b, a])?,
    )
}

impl dyn ArrayEvaluator + '_ {
    /// Sorted along the first axis, the least first, by a network whose steps are the same whatever the elements are: about
    /// log²(n)/2 rounds of a comparison and a choice of n elements.
    ///
    /// # Errors
    /// Those of [`ArrayEvaluator::elementwise`].
    pub fn sorted(&self, x: &EncryptedArray) -> Result<EncryptedArray, TfheError> {
        let (n, mut lines) = (x.lines(), x.clone());
        if n < 2 {
            return Ok(lines);
        }
        let rounds = network(n);
        for (number, pairs) in rounds.iter().enumerate() {
            self.part(number, rounds.len());
            let a = lines.picked(pairs.iter().map(|p| p.0))?;
            let b = lines.picked(pairs.iter().map(|p| p.1))?;
            let swap = self.elementwise(Elementwise::Compare(Comparison::Gt), &a, &b)?;
            let both = exchanged(self, &swap, &b, &a)?;
            let mut order: Vec<usize> = (0..n).collect();
            for (i, (low, high)) in pairs.iter().enumerate() {
                (order[*low], order[*high]) = (n + i, n + pairs.len() + i);
            }
            lines = EncryptedArray::stacked(&[&lines, &both])?.picked(order)?;
        }
        lines.reshaped(x.shape().to_vec())
    }

    /// The number of the first of the largest (or of the least) along the first axis, as a 64-bit integer: a tournament of
    /// neighbours, in which of equals the first stays.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for no element, and under a set of gates; those of [`ArrayEvaluator::elementwise`].
    pub fn first_best(&self, x: &EncryptedArray, largest: bool) -> Result<EncryptedArray, TfheError> {
        let (n, rest) = (x.lines(), x.line_shape().to_vec());
        if n == 0 {
            return refuse("the first or last of an order needs at least one element".into());
        }
        let bits = [8, 16, 32].into_iter().find(|bits| n <= 1usize << bits).unwrap_or(64);
        let numbers = ElementType::Integer(IntegerType::new(bits, false)?);
        let width = x.len() / n;
        let values: Vec<u64> = (0..x.len()).map(|i| (i / width.max(1)) as u64).collect();
        let mut lines = x.reshaped([&[n], &rest[..]].concat())?;
        let mut places = self.public_array(numbers, lines.shape().to_vec(), &values)?;
        let stays = Elementwise::Compare(if largest { Comparison::Ge } else { Comparison::Le });
        let rounds = n.next_power_of_two().trailing_zeros() as usize;
        for round in 0..rounds {
            self.part(round, rounds);
            let pairs = lines.lines() / 2;
            let sides = |a: &EncryptedArray| {
                Ok::<_, TfheError>((a.picked((0..pairs).map(|i| 2 * i))?, a.picked((0..pairs).map(|i| 2 * i + 1))?))
            };
            let ((a, b), (i, j)) = (sides(&lines)?, sides(&places)?);
            let first = self.elementwise(stays, &a, &b)?;
            let left = 2 * pairs..lines.lines();
            let next =
                |won: EncryptedArray, of: &EncryptedArray| EncryptedArray::stacked(&[&won, &of.picked(left.clone())?]);
            (lines, places) =
                (next(self.choice(&first, &a, &b)?, &lines)?, next(self.choice(&first, &i, &j)?, &places)?);
        }
        self.converted(&places.reshaped(rest)?, ElementType::Integer(IntegerType::new(64, true)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network that sorts all zeros and ones sorts everything (Knuth, The Art of Computer Programming 3, 5.3.4).
    #[test]
    fn the_network_sorts_zeros_and_ones() {
        for n in 0..=12usize {
            for bits in 0..1u32 << n {
                let mut values: Vec<u32> = (0..n).map(|i| bits >> i & 1).collect();
                for (a, b) in network(n).into_iter().flatten() {
                    if values[a] > values[b] {
                        values.swap(a, b);
                    }
                }
                assert!(values.is_sorted(), "{n} {bits:b}");
            }
        }
    }
}
