//! Encrypted identifiers of 32 bits, compared with an encrypted one: which are the same?
//!
//! An identifier is eight digits of four bits. Differences of digits modulo 16 are free; a table says which are not zero, the sum of
//! eight such bits is read by another, and the result is one encrypted bit for each identifier.

use super::World;
use super::work::{Found, Server};
use crate::Outcome;
use sudare_he::discrete::{Decryptor, Discrete, Encryptor, Form, Table};
use sudare_testkit::Random;

/// Digits of an identifier.
const DIGITS: usize = 8;
/// Values of a digit.
const BASE: u64 = 16;

/// Digit i of identifiers.
fn digits(ids: &[u32], i: usize) -> Vec<u64> {
    ids.iter().map(|id| u64::from(*id) >> (4 * i) & (BASE - 1)).collect()
}

/// Compares `count` identifiers with one that occurs among them.
pub fn run(w: &World, count: usize, server: &mut Server) -> Outcome<Found> {
    let (e, params) = (&w.server, w.server.params());
    let degree = params.params().degree();
    let client = Encryptor::with_secret_key(params, &w.secret)?;
    let owner = Decryptor::new(params, &w.secret)?;
    let mut random = Random(41);
    let wanted = random.below(1 << 32) as u32;
    // Some are the wanted one, some differ in one bit.
    let mut one = || match random.below(100) {
        0 => wanted,
        1 => wanted ^ 1 << random.below(32),
        _ => random.below(1 << 32) as u32,
    };
    let ids: Vec<u32> = (0..count).map(|_| one()).collect();
    let differs = Table::of(BASE, BASE, |x| u64::from(x != 0))?;
    let none = Table::of(BASE, BASE, |x| u64::from(x == 0))?;
    let encrypt = |values: &[u64]| client.encrypt(values, BASE, Form::Packed);
    let all = vec![wanted; degree];
    let query = (0..DIGITS).map(|i| encrypt(&digits(&all, i))).collect::<Result<Vec<_>, _>>()?;
    let mut wrong = 0;
    for batch in ids.chunks(degree) {
        let table = (0..DIGITS).map(|i| encrypt(&digits(batch, i))).collect::<Result<Vec<_>, _>>()?;
        let found = server.run(DIGITS + 1, || {
            let differences = table.iter().zip(&query).map(|(x, y)| e.sub(x, y)).collect::<Result<Vec<_>, _>>()?;
            let differences: Vec<&Discrete> = differences.iter().collect();
            let bits = e.tables_many(&differences, std::slice::from_ref(&differs), Form::Packed)?;
            let mut sum = bits[0][0].clone();
            for bit in &bits[1..] {
                sum = e.add(&sum, &bit[0])?;
            }
            Ok(e.table(&sum, &none)?)
        })?;
        let found = owner.decrypt(&found)?;
        wrong += batch.iter().zip(&found).filter(|(id, x)| **x != u64::from(**id == wanted)).count();
    }
    Ok(Found { case: "equality of identifiers of 32 bits".into(), results: count, wrong })
}
