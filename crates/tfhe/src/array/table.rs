//! Tables for indices of 16 bits.

use super::evaluator::constant;
use super::{ArrayEvaluator, ElementType, Elementwise, EncryptedArray};
use crate::TfheError;
use crate::core::context::check_shape;
use crate::radix::{BitOperation, IntegerType, Shift};
use std::collections::BTreeMap;

/// Entries for one value of the upper byte.
const ROW: usize = 1 << 8;

/// `table[x]` for an index of 16 bits, whose upper byte chooses a row of 256 entries. Rows that are alike are looked up once,
/// rows of one entry not at all.
pub(crate) fn looked_up_wide(
    e: &dyn ArrayEvaluator,
    x: &EncryptedArray,
    table: &[u64],
    to: ElementType,
) -> Result<EncryptedArray, TfheError> {
    check_shape("table entries", ROW * ROW, table.len())?;
    let mut rows: BTreeMap<&[u64], Vec<usize>> = BTreeMap::new();
    for (number, row) in table.chunks(ROW).enumerate() {
        rows.entry(row).or_default().push(number);
    }
    let count = rows.len();
    e.part(0, count);
    let (byte, word) = (IntegerType::new(8, false)?, IntegerType::new(16, false)?);
    let index = e.converted(x, ElementType::Integer(word))?;
    let low = e.converted(&index, ElementType::Integer(byte))?;
    if count == 1 {
        return e.looked_up(&low, &table[..ROW], to);
    }
    let high = e.shifted(Shift::Right, &index, &vec![8; x.len()])?;
    let high = e.converted(&high, ElementType::Integer(byte))?;
    let zero = constant(e, x, to, 0)?;
    let mut sum: Option<EncryptedArray> = None;
    for (part, (row, numbers)) in rows.into_iter().enumerate() {
        e.part(part, count);
        if row.iter().all(|entry| *entry == 0) {
            continue;
        }
        let here: Vec<u64> = (0..ROW).map(|number| u64::from(numbers.contains(&number))).collect();
        let here = e.looked_up(&high, &here, ElementType::Bool)?;
        let alike = row.iter().all(|entry| *entry == row[0]);
        let found = if alike { constant(e, x, to, row[0])? } else { e.looked_up(&low, row, to)? };
        let (term, join) = match to {
            ElementType::Bool => (
                e.elementwise(Elementwise::Bits(BitOperation::And), &here, &found)?,
                Elementwise::Bits(BitOperation::Or),
            ),
            ElementType::Integer(_) => (e.choice(&here, &found, &zero)?, Elementwise::Add),
        };
        sum = Some(match &sum {
            None => term,
            Some(so_far) => e.elementwise(join, so_far, &term)?,
        });
    }
    // Not all rows are zero: there are two that differ.
    Ok(sum.unwrap_or(zero))
}
