//! Products: those of blocks, then column sums.

use crate::TfheError;
use crate::radix::arithmetic::{carry, message};
use crate::radix::combination::Combination;
use crate::radix::lookup::Table;
use crate::radix::value::LARGEST_NOISE;
use crate::radix::{BASE, IntegerEvaluator, RadixInt};

impl IntegerEvaluator<'_> {
    /// a·b, wrapping: the lower and upper halves of the products of blocks, then sums of each column
    /// of up to five terms at a time. A public factor costs one rotation a block for all its products.
    ///
    /// # Errors
    /// As for [`IntegerEvaluator::add`].
    pub fn mul(&self, a: &RadixInt, b: &RadixInt) -> Result<RadixInt, TfheError> {
        self.check_pair(a, b)?;
        let (x, y) = (self.blocks(a), self.blocks(b));
        let public = |x: &[Combination]| x.iter().map(Combination::public).collect::<Option<Vec<_>>>();
        let columns = match (public(&x), public(&y)) {
            (_, Some(factor)) => self.multiples(&x, &factor)?,
            (Some(factor), _) => self.multiples(&y, &factor)?,
            _ => self.products(&x, &y)?,
        };
        let blocks = if self.workers > 1 { self.sum_layers(columns)? } else { self.sum_columns(columns)? };
        Ok(self.wrap(a.kind(), blocks))
    }

    /// The terms of each column of a product.
    fn products(&self, x: &[Combination], y: &[Combination]) -> Result<Vec<Vec<Combination>>, TfheError> {
        let n = x.len();
        let (x, y) = (self.all_refreshed(x)?, self.all_refreshed(y)?);
        let pairs: Vec<_> = (0..n).flat_map(|i| (0..n - i).map(move |j| (i, j))).collect();
        // The upper half of the highest column's products is beyond the result.
        let halves: Vec<_> = pairs
            .into_iter()
            .flat_map(|(i, j)| [(i, j, false), (i, j, true)])
            .filter(|(i, j, upper)| !upper || i + j + 1 < n)
            .collect();
        let terms = self.run(halves.len(), |h| {
            let (i, j, upper) = halves[h];
            let part = move |v: i64| {
                let product = v / BASE * (v % BASE);
                if upper { carry(product) } else { message(product) }
            };
            self.table(&x[i].clone().times(BASE).plus(&y[j])?, &part)
        })?;
        let mut columns = vec![Vec::new(); n];
        for ((i, j, upper), term) in halves.into_iter().zip(terms) {
            columns[i + j + usize::from(upper)].push(term);
        }
        Ok(columns)
    }

    /// The terms of each column of a product with a public factor, given by its blocks.
    fn multiples(&self, x: &[Combination], factor: &[i64]) -> Result<Vec<Vec<Combination>>, TfheError> {
        let n = x.len();
        let parts: [Table<'_>; 4] = [&|v| message(2 * v), &|v| carry(2 * v), &|v| message(3 * v), &|v| carry(3 * v)];
        let doubled = self.run(n, |i| {
            let used = |k| factor[..n - i].contains(&k);
            let tables = match (used(2), used(3)) {
                (false, false) => return Ok(Vec::new()),
                (true, false) => &parts[..2],
                (false, true) => &parts[2..],
                (true, true) => &parts[..],
            };
            self.tables(&x[i], tables)
        })?;
        let mut columns = vec![Vec::new(); n];
        for i in 0..n {
            for (j, k) in factor[..n - i].iter().enumerate() {
                let multiple = match k {
                    0 => continue,
                    1 => std::slice::from_ref(&x[i]),
                    2 => &doubled[i][..2],
                    _ => &doubled[i][doubled[i].len() - 2..],
                };
                for (column, part) in columns[i + j..].iter_mut().zip(multiple) {
                    column.push(part.clone());
                }
            }
        }
        Ok(columns)
    }

    /// Takes as many terms as one table reads, the largest first.
    fn group(&self, terms: &mut Vec<Combination>) -> Result<Combination, TfheError> {
        terms.sort_by_key(|t| (t.high, t.noise));
        let mut sum = Combination::constant(self.key, 0);
        let mut left = Vec::new();
        while let Some(term) = terms.pop() {
            let more = sum.clone().plus(&term)?;
            if sum.public() == Some(0) || self.fits(&more, &[&message]) { sum = more } else { left.push(term) }
        }
        *terms = left;
        Ok(sum)
    }

    /// Column by column, carries and all: fewest bootstraps.
    fn sum_columns(&self, columns: Vec<Vec<Combination>>) -> Result<Vec<Combination>, TfheError> {
        let n = columns.len();
        let mut out = Vec::with_capacity(n);
        let mut incoming: Vec<Combination> = Vec::new();
        for (i, mut terms) in columns.into_iter().enumerate() {
            terms.append(&mut incoming);
            loop {
                let sum = self.group(&mut terms)?;
                let last = i + 1 == n;
                let lower = if sum.high < BASE && sum.noise <= LARGEST_NOISE {
                    sum
                } else if last {
                    self.table(&sum, &message)?
                } else {
                    let mut both = self.tables(&sum, &[&message, &carry])?.into_iter();
                    let lower = both.next();
                    incoming.extend(both);
                    lower.ok_or(TfheError::Shape { what: "tables", expected: 2, found: 0 })?
                };
                if terms.is_empty() {
                    out.push(lower);
                    break;
                }
                terms.push(lower);
            }
        }
        Ok(out)
    }

    /// All columns at once, layer after layer, until two messages a column are left: fewest rounds.
    fn sum_layers(&self, mut columns: Vec<Vec<Combination>>) -> Result<Vec<Combination>, TfheError> {
        let n = columns.len();
        let settled = |terms: &Vec<Combination>| {
            terms.len() < 2 || (terms.len() == 2 && terms.iter().map(|t| t.high).sum::<i64>() <= 2 * (BASE - 1))
        };
        while !columns.iter().all(settled) {
            let mut next: Vec<Vec<Combination>> = vec![Vec::new(); n];
            let mut groups = Vec::new();
            for (i, mut terms) in columns.into_iter().enumerate() {
                if settled(&terms) {
                    next[i].append(&mut terms);
                    continue;
                }
                while !terms.is_empty() {
                    let sum = self.group(&mut terms)?;
                    if sum.high < BASE && sum.noise <= 1 { next[i].push(sum) } else { groups.push((i, sum)) }
                }
            }
            let done = self.run(groups.len(), |g| match &groups[g] {
                (i, sum) if i + 1 == n => Ok(vec![self.table(sum, &message)?]),
                (_, sum) => self.tables(sum, &[&message, &carry]),
            })?;
            for ((i, _), parts) in groups.into_iter().zip(done) {
                for (column, part) in next[i..].iter_mut().zip(parts) {
                    if part.public() != Some(0) && part.high > 0 {
                        column.push(part);
                    }
                }
            }
            columns = next;
        }
        let sums = columns.into_iter().map(|terms| {
            let mut sum = Combination::constant(self.key, 0);
            for t in &terms {
                sum = sum.plus(t)?;
            }
            Ok(sum)
        });
        self.propagate(sums.collect::<Result<_, TfheError>>()?)
    }
}
