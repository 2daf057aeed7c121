//! Single rows out of two sums of cells.
//!
//! A cell that one row is alone in tells the row, which is then taken out of both sums; other cells become single, and so on.
//! Two rows of one half never share a cell, and two of different halves share one in at most one of the sums. So it ends
//! early only where four rows or more form a cycle.
//!
//! A row's columns come times its indicator, which is near one. The column of the one has the indicator itself, by which
//! the others are divided. Where a row is alone in both of its cells, both have to tell the same indicator.

use crate::layout::{Payloads, Shape};

/// How far the indicator of a row is from one, at most.
const NEAR: f64 = 0.1;
/// How far a digit is from an integer, and what is left of a cell from zero, at most.
const CLEAR: f64 = 0.25;

/// A row that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The half that it is in.
    pub half: u64,
    /// Its slot there.
    pub slot: usize,
    /// Its payload.
    pub numbers: Vec<u64>,
}

/// Why not all rows are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// So many cells are sums of several rows that cannot be told apart.
    Together(usize),
    /// Indicators are neither near zero nor near one.
    Blurred,
}

/// All rows of both sums (as they stand, rotated), of halves below `halves`.
pub fn peel(payloads: &Payloads, shape: Shape, halves: u64, sums: &mut [Vec<Vec<f64>>; 2]) -> Result<Vec<Found>, Left> {
    let mut found = Vec::new();
    let single = |columns: &[f64]| (payloads.met(columns) - 1.0).abs() < NEAR;
    let mut waiting: Vec<(usize, usize)> = Vec::new();
    for (s, sum) in sums.iter().enumerate() {
        waiting.extend((0..sum.len()).filter(|c| single(&sum[*c])).map(|c| (s, c)));
    }
    while let Some((s, cell)) = waiting.pop() {
        let columns = &sums[s][cell];
        if !single(columns) {
            continue;
        }
        let indicator = payloads.met(columns);
        let near = |x: &f64| {
            let digit = (x / indicator).round();
            ((x / indicator - digit).abs() < CLEAR).then_some(digit as i64)
        };
        let Some(digits) = columns.iter().map(near).collect::<Option<Vec<i64>>>() else { continue };
        let Some((numbers, half)) = payloads.decode(&digits).filter(|(_, half)| *half < halves) else { continue };
        let slot = if s == 0 { cell } else { shape.rotated(cell, -(half as i64)) };
        let other = &sums[1 - s][if s == 0 { shape.rotated(slot, half as i64) } else { slot }];
        let largest = digits.iter().enumerate().filter(|(i, _)| *i != payloads.one()).map(|(_, x)| *x).max();
        let apart = (payloads.met(other) - indicator).abs() * largest.map_or(1.0, |x| x as f64);
        if single(other) && apart >= CLEAR {
            continue;
        }
        for (other, at) in [(0, slot), (1, shape.rotated(slot, half as i64))] {
            sums[other][at].iter_mut().zip(&digits).for_each(|(sum, x)| *sum -= indicator * *x as f64);
            if single(&sums[other][at]) {
                waiting.push((other, at));
            }
        }
        found.push(Found { half, slot, numbers });
    }
    let is_left =
        |(i, x): (usize, &f64)| if i == payloads.one() { x.abs() >= NEAR * payloads.bound() } else { x.abs() >= CLEAR };
    let left = || sums.iter().flatten().filter(|columns| columns.iter().enumerate().any(is_left));
    match left().count() {
        0 => Ok(found),
        count => {
            let blurred = |columns: &Vec<f64>| {
                let met = payloads.met(columns);
                (met - met.round()).abs() >= NEAR * met.abs().max(1.0)
            };
            Err(if left().any(blurred) { Left::Blurred } else { Left::Together(count) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;
    use std::collections::BTreeSet;
    use sudare_testkit::Random;

    const SHAPE: Shape = Shape { slots: 256, block: None };

    /// Sums of rows whose indicators are `indicator` of their number, with an error in each cell.
    fn sums(payloads: &Payloads, rows: &[Found], indicator: impl Fn(usize) -> f64) -> [Vec<Vec<f64>>; 2] {
        let mut random = Random(9);
        let mut sums = [0, 1].map(|_| vec![vec![0.0; payloads.columns()]; SHAPE.slots]);
        sums.iter_mut().flatten().flatten().for_each(|x| *x += 0.0005 * random.unit());
        for (i, row) in rows.iter().enumerate() {
            let columns = payloads.encode(&row.numbers, row.half);
            for (s, cell) in [(0, row.slot), (1, SHAPE.rotated(row.slot, row.half as i64))] {
                sums[s][cell].iter_mut().zip(&columns).for_each(|(sum, x)| *sum += indicator(i) * x);
            }
        }
        sums
    }

    #[test]
    fn all_rows_come_out() {
        let payloads = Payloads::new(Payload { numbers: 2, bits: 6, dtype: None }, 8, 33);
        let mut random = Random(3);
        for count in [0, 1, 2, 30, 60] {
            let mut places = BTreeSet::new();
            while places.len() < count {
                places.insert((random.below(40), random.index(SHAPE.slots)));
            }
            let mut rows: Vec<Found> = places
                .into_iter()
                .map(|(half, slot)| Found { half, slot, numbers: vec![random.below(64), 0] })
                .collect();
            let mut sums = sums(&payloads, &rows, |i| if i % 2 == 0 { 0.998 } else { 1.002 });
            let mut found = peel(&payloads, SHAPE, 40, &mut sums).unwrap();
            let order = |f: &Found| (f.half, f.slot);
            found.sort_by_key(order);
            rows.sort_by_key(order);
            assert_eq!(found, rows);
        }
    }

    #[test]
    fn what_cannot_be_parted_is_told() {
        let payloads = Payloads::new(Payload { numbers: 1, bits: 9, dtype: None }, 9, 33);
        // (1, 10) and (2, 10) share a cell as they stand, (3, 11) and (2, 11) as well; (1, 10) and (2, 11) share one rotated, and
        // so do (2, 10) and (3, 11).
        let row = |(half, slot)| Found { half, slot, numbers: vec![7] };
        let cycle = [(1, 10), (2, 10), (3, 11), (2, 11)].map(row);
        let peeled =
            |rows: &[Found], indicator: f64| peel(&payloads, SHAPE, 40, &mut sums(&payloads, rows, |_| indicator));
        assert_eq!(peeled(&cycle, 1.0), Err(Left::Together(4)));
        assert_eq!(peeled(&cycle[..3], 1.0).unwrap().len(), 3);
        assert_eq!(peeled(&cycle[..1], 0.4), Err(Left::Blurred));
        // What is no sum of rows is never taken for one.
        let mut noise = sums(&payloads, &cycle[..1], |_| 1.0);
        noise[0][10][0] += f64::from(1 << 20);
        assert!(peel(&payloads, SHAPE, 40, &mut noise).is_err());
    }
}
