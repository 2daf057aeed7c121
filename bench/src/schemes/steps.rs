//! A product taken apart by the library's own steps.

use super::World;
use crate::Outcome;
use crate::timing::{Budget, Unit, measure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use sudare_rlwe::Ciphertext;
use sudare_rlwe::keys::KeySource;

/// Processor time of the parts of a product, in milliseconds, on one thread.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Steps {
    /// `schemes`.
    pub suite: &'static str,
    /// The scheme.
    pub scheme: &'static str,
    /// Ring degree.
    pub n: usize,
    /// Products in a row that the set holds.
    pub depth: usize,
    /// Addition.
    pub add_ms: f64,
    /// Of that the sum itself, in place; the rest makes the result.
    pub add_in_place_ms: f64,
    /// The whole product.
    pub cpu_ms: f64,
    /// Its parts.
    pub parts: BTreeMap<&'static str, f64>,
}

/// Median processor time of `op`.
fn time(unit: &mut Unit, budget: Budget, op: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    Ok(measure(unit, budget, op, None)?.ours.cpu.median().unwrap_or_default())
}

/// The steps of a product: `products` makes the ciphertext of three parts (in BFV scaled by t/Q), which is relinearised
/// with the source's key.
pub(super) fn of<W: World>(
    w: &W,
    unit: &mut Unit,
    budget: Budget,
    products: impl FnMut() -> Outcome<()>,
    (product, keys): (&Ciphertext, &Arc<dyn KeySource>),
) -> Outcome<Steps> {
    let (params, level) = (w.params(), product.level());
    let last = &product.parts()[2];
    let key = keys.relin()?;
    let gadget = &params.tables(level).gadget;
    let digits = gadget.decompose(last);
    let all = time(unit, budget, || w.multiply().map(drop))?;
    let three = time(unit, budget, products)?;
    let decomposition = time(unit, budget, || {
        black_box(gadget.decompose(last));
        Ok(())
    })?;
    let inner = time(unit, budget, || {
        black_box(gadget.product(&digits, key.pairs()));
        Ok(())
    })?;
    let add = time(unit, budget, || w.add().map(drop))?;
    let mut sum = last.clone();
    let in_place = time(unit, budget, || {
        product.parts()[..2].iter().for_each(|part| sum.add_assign(part));
        Ok(())
    })?;
    // What is left are divisions, by P and in BGV and CKKS by primes that go; with the noise of the clock it could come out below zero.
    let known = three + decomposition + inner;
    let all = all.max(known);
    let parts = BTreeMap::from([
        ("1 products of parts", three),
        ("2 decomposition", decomposition),
        ("3 inner products with the key", inner),
        ("4 divisions", all - known),
    ]);
    Ok(Steps {
        suite: "schemes",
        scheme: w.scheme(),
        n: params.degree(),
        depth: 0,
        add_ms: add,
        add_in_place_ms: in_place,
        cpu_ms: all,
        parts,
    })
}
