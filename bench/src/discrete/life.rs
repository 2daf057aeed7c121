//! The game of life on an encrypted board: the server sees neither cells nor their number.
//!
//! Cell k of a board whose rows join (cell k's right neighbour is k + 1, the one below k + width) is in slot k/2 of the first of two
//! real ciphertexts where k is even, and of the second where it is odd, so that neighbours are the other ciphertext or rotations,
//! without masks. With n neighbours a cell x is next alive if 2n + x is 5, 6 or 7: one table of 16 values, since 16 and 17 are
//! dead as 0 and 1 are. Errors of nine cells add up, which is what W16 has room for.

use super::World;
use super::work::{Found, Server};
use crate::Outcome;
use sudare_he::discrete::{Decryptor, Discrete, Encryptor, Form, Table};
use sudare_testkit::Random;

/// Values that cells and sums have room for.
const MODULUS: u64 = 16;

/// The width of the board in a ring: 256 of 2^16 cells.
fn width(degree: usize) -> usize {
    1 << degree.ilog2().div_ceil(2)
}

/// Rotations that a round takes.
pub fn steps(degree: usize) -> Vec<i64> {
    let row = width(degree) as i64 / 2;
    vec![1, -1, row, -row]
}

/// A value of two parts of others.
fn pick(w: &World, parts: [(&Discrete, usize); 2]) -> Outcome<Discrete> {
    let error = parts[0].0.error().max(parts[1].0.error());
    let chosen = parts.map(|(value, part)| value.parts()[part].clone());
    Ok(Discrete::from_parts(w.server.params(), chosen.into(), MODULUS, (0, 1), error)?)
}

/// One round.
fn round(w: &World, x: &Discrete, rule: &Table) -> Outcome<Discrete> {
    let e = &w.server;
    let row = width(e.params().params().degree()) as i64 / 2;
    let right = pick(w, [(x, 1), (&e.rotate(x, 1)?, 0)])?;
    let left = pick(w, [(&e.rotate(x, -1)?, 1), (x, 0)])?;
    let three = e.add(&e.add(&left, x)?, &right)?;
    let nine = e.add(&e.add(&e.rotate(&three, row)?, &three)?, &e.rotate(&three, -row)?)?;
    // 2·(9 cells) − x is 2n + x.
    Ok(e.table(&e.sub(&e.mul_integer(&nine, 2)?, x)?, rule)?)
}

/// One round of plain cells.
fn plain_round(cells: &[bool], width: usize) -> Vec<bool> {
    let count = cells.len() as i64;
    let alive = |k: i64| usize::from(cells[k.rem_euclid(count) as usize]);
    let next = |k: i64| {
        let around = [-1, 0, 1].iter().flat_map(|row| [-1, 0, 1].map(|column| k + row * width as i64 + column));
        let nine: usize = around.map(alive).sum();
        nine == 3 || (nine == 4 && alive(k) == 1)
    };
    (0..count).map(next).collect()
}

/// Live cells as squares, runs of them as one.
fn svg(cells: &[bool], width: usize) -> String {
    let mut path = String::new();
    for (y, row) in cells.chunks(width).enumerate() {
        let mut x = 0;
        while x < width {
            let run = row[x..].iter().take_while(|cell| **cell).count();
            if run > 0 {
                path += &format!("M{x} {y}h{run}v1h-{run}z");
            }
            x += run + 1;
        }
    }
    let height = cells.len() / width;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"512\" shape-rendering=\"crispEdges\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n<path fill=\"#1f6fb2\" d=\"{path}\"/>\n</svg>\n"
    )
}

/// A board at random, with a glider in a corner that is empty.
fn start(width: usize, count: usize) -> Vec<bool> {
    let mut random = Random(43);
    let mut cells: Vec<bool> = (0..count).map(|_| random.chance(30)).collect();
    let corner = width / 4;
    for y in 0..corner {
        cells[y * width..y * width + corner].fill(false);
    }
    for (y, x) in [(1, 2), (2, 3), (3, 1), (3, 2), (3, 3)] {
        cells[y * width + x] = true;
    }
    cells
}

/// Plays some rounds.
pub fn run(w: &World, rounds: usize, picture: Option<&std::path::Path>, server: &mut Server) -> Outcome<Found> {
    let params = w.server.params();
    let count = params.params().degree();
    let width = width(count);
    let client = Encryptor::with_secret_key(params, &w.secret)?;
    let owner = Decryptor::new(params, &w.secret)?;
    let mut plain = start(width, count);
    let cells = |part: usize| plain.iter().skip(part).step_by(2).map(|cell| u64::from(*cell));
    let fresh = client.encrypt(&cells(0).chain(cells(1)).collect::<Vec<_>>(), MODULUS, Form::Split)?;
    let mut board = Discrete::from_parts(params, fresh.parts().to_vec(), MODULUS, (0, 1), fresh.error())?;
    let rule = Table::of(MODULUS, MODULUS, |x| u64::from((5..=7).contains(&x)))?;
    for _ in 0..rounds {
        board = server.run(1, || round(w, &board, &rule))?;
        plain = plain_round(&plain, width);
    }
    let mut cells = vec![false; count];
    for (part, half) in owner.decrypt(&board)?.chunks(count / 2).enumerate() {
        cells.iter_mut().skip(part).step_by(2).zip(half).for_each(|(cell, x)| *cell = *x == 1);
    }
    if let Some(path) = picture {
        crate::record::replace(path, &svg(&cells, width))?;
    }
    let wrong = cells.iter().zip(&plain).filter(|(x, y)| x != y).count();
    let case = format!("life, {width} by {}, {rounds} rounds", count / width);
    Ok(Found { case, results: count, wrong })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A glider is itself one cell further after four rounds.
    #[test]
    fn a_glider_glides() {
        let width = 16;
        let glider = |at: usize| {
            let mut cells = vec![false; width * width];
            [1, width + 2, 2 * width, 2 * width + 1, 2 * width + 2].iter().for_each(|k| cells[at + k] = true);
            cells
        };
        let moved = (0..4).fold(glider(3 * width + 3), |cells, _| plain_round(&cells, width));
        assert_eq!(moved, glider(4 * width + 4));
    }
}
