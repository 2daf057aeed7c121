//! Public tables with an entry for each value of an encrypted integer.

use crate::TfheError;
use crate::radix::combination::Combination;
use crate::radix::lookup::Table;
use crate::radix::value::LARGEST_NOISE;
use crate::radix::{BASE, EncryptedBool, IntegerEvaluator, IntegerType, RadixInt};
use std::collections::BTreeMap;

/// Most bits of an integer that indexes a table.
pub const MAX_INDEX_BITS: u32 = 8;
/// Values of two blocks.
const PAIR: usize = (BASE * BASE) as usize;

impl IntegerEvaluator<'_> {
    /// `table[a]` for a table of 2^bits entries of type `kind`; a negative index counts from the end,
    /// as its two's complement says. One bootstrap for each block of the result when `a` has 4 bits;
    /// with up to 8 bits, for each distinct row of 16 entries, two for each block of the result.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] for an index of over [`MAX_INDEX_BITS`] bits, [`TfheError::Shape`] for
    /// another number of entries, `RlweError::WrongParameters`, `RlweError::WrongKey`.
    pub fn lookup(&self, a: &RadixInt, table: &[u64], kind: IntegerType) -> Result<RadixInt, TfheError> {
        let parts = kind.blocks();
        let part = |entry: u64, b: usize| (entry >> (2 * b)) as i64 & (BASE - 1);
        Ok(self.wrap(kind, self.lookup_parts(a, table, parts, &part)?))
    }

    /// `table[a]` for a table of booleans.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::lookup`].
    pub fn lookup_bool(&self, a: &RadixInt, table: &[bool]) -> Result<EncryptedBool, TfheError> {
        let table: Vec<u64> = table.iter().map(|x| u64::from(*x)).collect();
        let mut found = self.lookup_parts(a, &table, 1, &|entry, _| entry as i64)?;
        found.pop().map(|x| self.wrap_bool(x)).ok_or(TfheError::Shape { what: "blocks", expected: 1, found: 0 })
    }

    fn lookup_parts(
        &self,
        a: &RadixInt,
        table: &[u64],
        parts: usize,
        part: &(dyn Fn(u64, usize) -> i64 + Sync),
    ) -> Result<Vec<Combination>, TfheError> {
        self.check(a)?;
        let bits = a.kind().bits();
        if bits > MAX_INDEX_BITS {
            let reason = format!("an index of a table has at most {MAX_INDEX_BITS} bits, not {bits}; cast it first");
            return Err(TfheError::Parameters { reason });
        }
        crate::core::context::check_shape("table entries", 1 << bits, table.len())?;
        let blocks = self.all_refreshed(&self.blocks(a))?;
        let pairs = blocks.chunks(2).map(|pair| match pair {
            [low, high] => high.clone().times(BASE).plus(low),
            _ => Ok(pair[0].clone()),
        });
        let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        let Some(high) = pairs.get(1) else {
            return self.run(parts, |b| self.table(&pairs[0], &|v| part(table[v as usize], b)));
        };
        // Rows with the same entries are one.
        let mut rows: BTreeMap<&[u64], Vec<i64>> = BTreeMap::new();
        for (h, row) in table.chunks(PAIR).enumerate() {
            rows.entry(row).or_default().push(h as i64);
        }
        let rows: Vec<_> = rows.into_iter().collect();
        // A flag of 4 where the upper half chooses a row.
        let flags = self.run(rows.len(), |r| {
            let is_row = |v: i64| if rows[r].1.contains(&v) { BASE } else { 0 };
            self.table(high, &is_row)
        })?;
        self.run(parts, |b| {
            let mut sum: Option<Combination> = None;
            for ((row, _), flag) in rows.iter().zip(&flags) {
                let entry: Table<'_> = &|v| part(row[v as usize], b);
                if row.iter().all(|e| part(*e, b) == 0) {
                    continue;
                }
                let found = self.table(&pairs[0], entry)?.plus(flag)?;
                let term = self.table(&found, &|v| if v >= BASE { v - BASE } else { 0 })?;
                // All terms but one are zero.
                sum = Some(match sum {
                    None => term,
                    Some(s) => {
                        let more = s.clone().plus(&term)?.within(0, BASE - 1);
                        if self.fits(&more, &[&|v| v]) { more } else { self.refreshed(&s)?.plus(&term)? }
                    }
                });
                sum = sum.map(|s| s.within(0, BASE - 1));
            }
            if let Some(s) = sum.as_ref().filter(|s| s.noise > LARGEST_NOISE) {
                return self.refreshed(s);
            }
            Ok(sum.unwrap_or_else(|| Combination::constant(self.key, 0)))
        })
    }
}
