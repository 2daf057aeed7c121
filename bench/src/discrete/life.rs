//! The game of life on an encrypted board: the server sees neither cells nor their number.
//!
//! Cell k of a board whose rows join (cell k's right neighbour is k + 1, the one below k + width) is in slot k/4 of the
//! (k mod 4)-th of four real ciphertexts, so that neighbours are other ciphertexts or rotations, without masks. With n neighbours a
//! cell x is next alive if 2n + x is 5, 6 or 7: one table of 16 values, since 16 and 17 are dead as 0 and 1 are.

use super::World;
use super::work::{Found, Server};
use crate::Outcome;
use sudare_he::discrete::{Decryptor, Discrete, Encryptor, Form, Table};
use sudare_testkit::Random;

/// Values that cells and sums have room for.
const MODULUS: u64 = 16;

/// The side of the board in a ring.
fn side(degree: usize) -> usize {
    (2 * degree).isqrt()
}

/// Rotations that a round takes.
pub fn steps(degree: usize) -> Vec<i64> {
    let row = side(degree) as i64 / 4;
    vec![1, -1, row, -row]
}

/// Quarters 0 and 1, and 2 and 3.
type Board = [Discrete; 2];

/// A value of parts of others.
fn pick(w: &World, parts: [(&Discrete, usize); 2]) -> Outcome<Discrete> {
    let (a, b) = (parts[0].0, parts[1].0);
    let range = (a.range().0.min(b.range().0), a.range().1.max(b.range().1));
    let chosen = parts.map(|(value, part)| value.parts()[part].clone());
    Ok(Discrete::from_parts(w.server.params(), chosen.into(), MODULUS, range, a.error().max(b.error()))?)
}

/// One round.
fn round(w: &World, board: &Board, rule: &Table) -> Outcome<Board> {
    let e = &w.server;
    let [a, b] = board;
    let row = side(e.params().params().degree()) as i64 / 4;
    let (after, before) = (e.rotate(a, 1)?, e.rotate(b, -1)?);
    let right = [pick(w, [(a, 1), (b, 0)])?, pick(w, [(b, 1), (&after, 0)])?];
    let left = [pick(w, [(&before, 1), (a, 0)])?, pick(w, [(a, 1), (b, 0)])?];
    let mut sums = Vec::new();
    for ((x, left), right) in board.iter().zip(&left).zip(&right) {
        let three = e.add(&e.add(left, x)?, right)?;
        let nine = e.add(&e.add(&e.rotate(&three, row)?, &three)?, &e.rotate(&three, -row)?)?;
        // 2·(9 cells) − x is 2n + x.
        sums.push(e.sub(&e.mul_integer(&nine, 2)?, x)?);
    }
    let found = e.tables_many(&sums.iter().collect::<Vec<_>>(), std::slice::from_ref(rule), Form::Split)?;
    let [first, second] = <[Vec<Discrete>; 2]>::try_from(found).map_err(|_| "a round gives two values")?;
    Ok([first[0].clone(), second[0].clone()])
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
    let degree = params.params().degree();
    let (width, count) = (side(degree), 2 * degree);
    let client = Encryptor::with_secret_key(params, &w.secret)?;
    let owner = Decryptor::new(params, &w.secret)?;
    let mut plain = start(width, count);
    let half = |cells: &[bool], which: usize| -> Vec<u64> {
        let quarter = |q: usize| cells.iter().skip(q).step_by(4).map(|cell| u64::from(*cell));
        quarter(2 * which).chain(quarter(2 * which + 1)).collect()
    };
    let encrypt = |which: usize| -> Outcome<Discrete> {
        let all = client.encrypt(&half(&plain, which), MODULUS, Form::Split)?;
        // Rotations work at the level where tables begin, to which a table brings values.
        Ok(Discrete::from_parts(params, all.parts().to_vec(), MODULUS, (0, 1), all.error())?)
    };
    let mut board = [encrypt(0)?, encrypt(1)?];
    let rule = Table::of(MODULUS, MODULUS, |x| u64::from((5..=7).contains(&x)))?;
    for _ in 0..rounds {
        board = server.run(2, || round(w, &board, &rule))?;
        plain = plain_round(&plain, width);
    }
    let mut cells = vec![false; count];
    for (which, value) in board.iter().enumerate() {
        let found = owner.decrypt(value)?;
        for (q, quarter) in found.chunks(degree / 2).enumerate() {
            cells.iter_mut().skip(2 * which + q).step_by(4).zip(quarter).for_each(|(cell, x)| *cell = *x == 1);
        }
    }
    if let Some(path) = picture {
        crate::record::replace(path, &svg(&cells, width))?;
    }
    let wrong = cells.iter().zip(&plain).filter(|(x, y)| x != y).count();
    Ok(Found { case: format!("life, {width} by {width}, {rounds} rounds"), results: count, wrong })
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
