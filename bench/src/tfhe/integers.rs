//! Encrypted integers of two-bit blocks.

use super::{Lab, Line, sides};
use crate::Outcome;
use sudare_ring::Threads;
use sudare_testkit::Random;
use sudare_tfhe::radix::{Comparison, IntegerEvaluator, IntegerType, RadixInt};
use sudare_tfhe::{TfheError, TfheLiteral};

/// A number and its encryption.
type Pair = (u64, RadixInt);

/// Operations on 8 and 64 bits, one thread and all.
pub fn run(lab: &mut Lab<'_>) -> Outcome<()> {
    let params = TfheLiteral::message_2_carry_2().build()?;
    let (client, server) = sides(&params)?;
    for all in [false, true] {
        let threads = if all { std::mem::replace(&mut lab.pool, Threads::new(1)) } else { Threads::new(1) };
        let measured = (|| -> Outcome<()> {
            let mut random = Random(21);
            let mut numbers = |bits: u32| -> Outcome<(IntegerType, Vec<Pair>)> {
                let kind = IntegerType::new(bits, false)?;
                let pair = |x: u64| -> Outcome<Pair> { Ok((x, client.encrypt_integer(kind, x)?)) };
                Ok((kind, (0..16).map(|_| pair(kind.wrap(random.word()))).collect::<Outcome<_>>()?))
            };
            let (byte, bytes) = numbers(8)?;
            let (long, longs) = numbers(64)?;
            let line = |case: &str, lab: &Lab<'_>| {
                let mut line = Line::new(case, lab.machine).with_params(&params);
                line.threads = threads.count();
                line
            };
            let of = |list: &'_ [Pair], i: usize| -> [Pair; 2] { [i, 5 * i + 1].map(|i| list[i % list.len()].clone()) };
            type Work<T> = fn(&IntegerEvaluator<'_>, &RadixInt, &RadixInt) -> Result<T, TfheError>;
            let add: Work<RadixInt> = |e, a, b| e.add(a, b);
            let mul: Work<RadixInt> = |e, a, b| e.mul(a, b);
            let plain_add: fn(u64, u64) -> u64 = u64::wrapping_add;
            let plain_mul: fn(u64, u64) -> u64 = u64::wrapping_mul;
            for (case, kind, list, work, plain) in [
                ("8-bit add", byte, &bytes, add, plain_add),
                ("8-bit multiply", byte, &bytes, mul, plain_mul),
                ("64-bit add", long, &longs, add, plain_add),
            ] {
                let mut line = line(case, lab);
                line.rotations = Some(threads.run(|| -> Outcome<u64> {
                    let e = server.integers()?;
                    work(&e, &list[0].1, &list[1].1)?;
                    Ok(e.rotations())
                })?);
                lab.checked(
                    line,
                    |i| {
                        let [a, b] = of(list, i);
                        Ok(threads.run(|| work(&server.integers()?, &a.1, &b.1))?)
                    },
                    |i, c| {
                        let [a, b] = of(list, i);
                        Ok(client.decrypt_integer(c)? == kind.wrap(plain(a.0, b.0)))
                    },
                )?;
            }
            lab.checked(
                line("8-bit compare", lab),
                |i| {
                    let [a, b] = of(&bytes, i);
                    Ok(threads.run(|| server.integers()?.compare(Comparison::Lt, &a.1, &b.1))?)
                },
                |i, c| {
                    let [a, b] = of(&bytes, i);
                    Ok(client.decrypt_bool(c)? == (a.0 < b.0))
                },
            )
        })();
        if all {
            lab.pool = threads;
        }
        measured?;
    }
    Ok(())
}
