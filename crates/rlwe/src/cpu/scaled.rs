//! Scale-invariant products over Q and an auxiliary modulus R.
//!
//! With a(s) = Q·K + v and the right operand scaled to R, b'(s) = R·K' + v', the product
//! t·a·b'/R = t·Q·K·K' + t·K'·v + t·Q/R·K·v' + … needs a·b' modulo Q·R only, and the division by
//! R ends over Q: no conversion back (Kim–Polyakov–Zucca, ePrint 2021/204, "HPS over Q"). Primes
//! that the noise has outgrown are dropped on the way in ("leveled"), and stay dropped.

use super::Cpu;
use crate::backend::ScaledProduct;
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::scaling::{Extended, ScalingTables};
use std::borrow::{Borrow, Cow};
use sudare_ring::ops::tensor;
use sudare_ring::{Eval, Poly};

/// Both parts of an operand over Q·R.
type Operand<'a> = [Extended<'a>; 2];

fn extend<'a>(
    tables: &ScalingTables,
    c: &'a Ciphertext,
    side: impl Fn(&ScalingTables, &'a Poly<Eval>) -> Result<Extended<'a>, RlweError>,
) -> Result<Operand<'a>, RlweError> {
    let [first, second] = c.both();
    Ok([side(tables, first)?, side(tables, second)?])
}

/// One modulus's share of operands.
type Side<T> = Vec<[T; 2]>;

/// Operands over Q, and over R.
fn split(side: Vec<Operand<'_>>) -> (Side<Cow<'_, Poly<Eval>>>, Side<Poly<Eval>>) {
    side.into_iter().map(|[a, b]| ([a.q, b.q], [a.r, b.r])).unzip()
}

fn by_reference<T: Borrow<Poly<Eval>>>(side: &[[T; 2]]) -> Vec<[&Poly<Eval>; 2]> {
    side.iter().map(|c| c.each_ref().map(Borrow::borrow)).collect()
}

impl Cpu {
    /// ⌊t/R·Σ a_i·b_i⌉ with three parts.
    pub(super) fn scaled_products(
        a: &[&Ciphertext],
        b: &[&Ciphertext],
        by: &ScaledProduct<'_>,
    ) -> Result<Ciphertext, RlweError> {
        let left = a.iter().map(|c| extend(&*(by.tables)(c.level())?, c, ScalingTables::left));
        let left = left.collect::<Result<Vec<_>, RlweError>>()?;
        let right = b.iter().map(|c| extend(&*(by.tables)(c.level())?, c, ScalingTables::right));
        let right = right.collect::<Result<Vec<_>, RlweError>>()?;
        let tables = (by.tables)(by.level)?;
        let ((left, left_r), (right, right_r)) = (split(left), split(right));
        let tail = tensor(&tables.aux, &by_reference(&left_r), &by_reference(&right_r));
        // What the first tensor product has read makes room for the second.
        drop((left_r, right_r));
        let kept = tensor(&tables.low, &by_reference(&left), &by_reference(&right));
        drop((left, right));
        Ok(a[0].with_parts(tables.divide.apply_to_parts(kept, tail).into(), by.level))
    }
}
