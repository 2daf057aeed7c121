//! What an H100 should take, by counts: a model, wherever no card was measured.
//!
//! A launch takes what the busiest of four takes: instructions, of which those on doubles have half of the pipes; the second-level
//! cache; memory. The emulator counts operations on doubles and words (`bench/gpu/launches.json`, by `sudare-bench gpu --emulate --count`);
//! the compiled kernels say how many instructions come with each operation on doubles (`bench/gpu/counts.json`, by
//! `scripts/cuda-kernels --count`). Every ceiling is taken to be reached, so that a card can only be slower.
//!
//! Bootstraps and products of matrices have arithmetic from the planner's counts of transforms and passes (`Work`) instead, by
//! instructions of a butterfly. Counted in the source, a product by doubles and its sum take 8 FP64 (six, the sum, its part
//! of a reduction). The card: 132 multiprocessors at 1.7 GHz, 64 FP64 and 128 instructions a clock each (CUDA's guide),
//! 3.0 TB/s copied, 5.5 TB/s from the second-level cache. Keys and operands are resident; the gaps between launches, which
//! a large batch hides, cost nothing.

use super::ASSUMED_COPY;
use super::operations::Set;
use crate::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use sudare_cuda::{Counted, Launched};
use sudare_expr::{Operand, Shape};
use sudare_he::circuits::bootstrapping::{BootstrapLiteral, Kind};
use sudare_he::ckks::ParamsLiteral;
use sudare_methods::products::candidates;
use sudare_methods::{Method, ProductSpec, Requirements};
use sudare_rlwe::security::Security;
use sudare_rlwe::work::Work;

/// Clocks of one multiprocessor for a butterfly and for a product that is added: of doubles by FP64, of words by
/// instructions.
const BUTTERFLY: [f64; 2] = [9.0 / 64.0, 32.8 / 128.0];
const PASS: [f64; 2] = [8.0 / 64.0, 90.0 / 128.0];
/// Clocks of all multiprocessors in a microsecond.
const CLOCKS: f64 = 132.0 * 1.7e3;

/// Microseconds of arithmetic.
pub fn arithmetic(work: &Work, log_n: u32) -> f64 {
    let n = (1u64 << log_n) as f64;
    let butterflies = n / 2.0 * f64::from(log_n);
    let transforms = work.ntt * BUTTERFLY[0] + work.ntt_wide * BUTTERFLY[1];
    let passes = work.pass * PASS[0] + work.pass_wide * PASS[1];
    (transforms * butterflies + passes * n) / CLOCKS
}

/// Bytes a microsecond that the second-level cache gives.
const L2: f64 = 5.5e6;

/// One launch of an operation on one ciphertext, or one pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The kernel.
    pub kernel: String,
    /// Operations on doubles.
    pub doubles: u64,
    /// Words of polynomials that were read and written.
    pub accessed: u64,
    /// Of these, those that were not yet in the launch.
    pub touched: u64,
    /// Words of keys.
    pub keys: u64,
}

impl Counts {
    /// What the emulator says of a launch.
    pub fn of(launched: &Launched) -> Option<Self> {
        let Counted { doubles, accessed, touched, keys } = launched.counted?;
        Some(Self { kernel: launched.kernel.clone(), doubles, accessed, touched, keys })
    }

    /// Microseconds by instructions, by those on doubles, by the second-level cache and by memory.
    pub fn bounds(&self) -> [f64; 4] {
        let doubles = self.doubles as f64 / (64.0 * CLOCKS);
        let bytes = |words: u64| 8.0 * words as f64;
        let issue = doubles / 2.0 * instructions(&self.kernel);
        [issue, doubles, bytes(self.accessed + self.keys) / L2, bytes(self.touched) / ASSUMED_COPY]
    }

    /// The largest of them.
    pub fn us(&self) -> f64 {
        self.bounds().into_iter().fold(0.0, f64::max)
    }
}

/// Instructions for each one on doubles in a compiled kernel, those of N = 2^14 for parts of any length.
fn instructions(kernel: &str) -> f64 {
    /// Instructions of each kernel, by what they are.
    type Kernels = BTreeMap<String, BTreeMap<String, f64>>;
    static COUNTS: LazyLock<BTreeMap<String, Kernels>> =
        LazyLock::new(|| serde_json::from_str(include_str!("../../gpu/counts.json")).unwrap_or_default());
    let name = kernel.split('_').next().unwrap_or_default();
    let found = COUNTS["doubles"].iter().find(|(known, _)| known.split('_').next() == Some(name));
    found.map_or(f64::NAN, |(_, count)| count["all"] / count["fp64"])
}

/// Launches by set (`14 8 2`) and operation (`product`, `rotation`).
pub type Launches = BTreeMap<String, BTreeMap<String, Vec<Counts>>>;

/// How a set is named there.
pub fn set_name((log_n, limbs, special): Set) -> String {
    format!("{log_n} {limbs} {special}")
}

/// Those of the sets of the figures to reach.
pub static LAUNCHES: LazyLock<Launches> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../gpu/launches.json")).unwrap_or_default());

/// The launches of an operation on a ciphertext of a set; none of a set that was not counted.
pub fn launches(set: Set, operation: &str) -> &'static [Counts] {
    LAUNCHES.get(&set_name(set)).and_then(|of| of.get(operation)).map_or(&[], Vec::as_slice)
}

/// Microseconds of a product, relinearised and rescaled, at the highest level.
pub fn mul_rescale(set: Set) -> f64 {
    launches(set, "product").iter().map(Counts::us).sum()
}

/// Microseconds of `count` rotations with one decomposition: its two launches, and the other three for each.
pub fn rotations(set: Set, count: usize) -> f64 {
    let us: Vec<f64> = launches(set, "rotation").iter().map(Counts::us).collect();
    us.iter().take(2).sum::<f64>() + us.iter().skip(2).sum::<f64>() * count as f64
}

/// Microseconds of the arithmetic of a sum of `count` rotations, of which the sum alone is divided by P.
pub fn sum_of_rotations(literal: &ParamsLiteral, count: usize) -> f64 {
    let level = literal.q_bits.len() - 1;
    let sum = Work::inner_product(literal, level) * count as f64 + Work::mod_down(literal, level) * 2.0;
    arithmetic(&(Work::decompose(literal, level) + sum), literal.log_n)
}

/// Microseconds of a matrix product: its arithmetic; or its operands and result once through memory, and what the caches do not hold of
/// operands once more for each time that it is read again.
pub fn product(spec: &ProductSpec) -> Outcome<f64> {
    let outline = spec.plan()?;
    let figures = outline.figures([1.0; 2])?;
    let literal = &spec.params;
    let bytes =
        |operand, parts: usize, limbs: usize| (outline.ciphertexts(operand) * parts * limbs * 8) << literal.log_n;
    let (parts, limbs) = (figures.parts, figures.level + 1);
    let all = bytes(Operand::Left, 2, literal.q_bits.len())
        + bytes(Operand::Right, 2, literal.q_bits.len())
        + bytes(Operand::Output, parts, limbs);
    let all = all as f64 + figures.work.operand_bytes;
    Ok(arithmetic(&figures.work, literal.log_n).max(all / ASSUMED_COPY))
}

/// What the methods that devices run by themselves propose for a product, the cheapest by the model first. The products of blocks of the
/// module method are the processor's, wherever its operands are.
pub fn proposals(shape: Shape, method: Option<&str>, security: Security) -> Outcome<Vec<(f64, ProductSpec)>> {
    let req = Requirements { shape, max_abs: [1.0; 2], error: 1e-4, security, fresh: [true; 2], decrypt_next: true };
    let mut found = Vec::new();
    for spec in candidates(&req) {
        let name = spec.plan()?.name();
        if !matches!(spec.method, Method::Module(_)) && method.is_none_or(|wanted| wanted == name) {
            found.push((product(&spec)?, spec));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(found)
}

/// Microseconds of each of `batch` bootstraps of 2^15 complex slots by set A: arithmetic of its transforms; and its keys once
/// for all, and every transform's values twice each way, through memory.
pub fn bootstrap(batch: usize) -> Outcome<[f64; 2]> {
    let literal = BootstrapLiteral::a();
    let log_n = literal.params.log_n;
    let counts = literal.work(Kind::Complex)?;
    let transforms: u64 = counts.iter().map(|c| c.transforms).sum();
    let keys: u64 = counts.iter().map(|c| c.key_bytes).sum();
    let bytes = keys as f64 / batch as f64 + transforms as f64 * 32.0 * (1u64 << log_n) as f64;
    Ok([arithmetic(&Work::transforms(40, transforms as f64), log_n), bytes / ASSUMED_COPY])
}

#[cfg(test)]
mod tests {
    use super::super::operations::{SETS, literal};
    use super::*;

    #[test]
    fn every_set_was_counted() {
        for set in SETS {
            assert_eq!((launches(set, "product").len(), launches(set, "rotation").len()), (5, 5), "{set:?}");
            // More than its operands and its result once through memory, less than five times the arithmetic of its transforms.
            let (log_n, limbs, special) = set;
            let literal = literal(log_n, limbs, special);
            let level = limbs - 1;
            let work = Work::tensor(&literal, level) + Work::relinearize_rescale(&literal, level);
            let least = ((8 * (6 * limbs - 2)) << log_n) as f64 / ASSUMED_COPY;
            let us = mul_rescale(set);
            assert!(us > least && us < 5.0 * arithmetic(&work, log_n), "{set:?}: {us}, {least}");
        }
    }

    /// What `scripts/cuda-kernels` counts, and holds the compiled kernels to.
    #[test]
    fn the_counts_are_those_of_the_compiled_kernels() {
        let counts: serde_json::Value = serde_json::from_str(include_str!("../../gpu/counts.json")).unwrap();
        let count = |family: &str, kernel: &str, what: &str| counts[family][kernel][what].as_f64().unwrap();
        // A thread has 16 values of a transform of N = 2^14, and two of a product.
        let butterfly = |family: &str, what: &str| {
            let both = ["columns_forward", "parts_forward_10"].map(|kernel| count(family, kernel, what));
            (both[0] + both[1]) / f64::from(8 * 14)
        };
        let near = |model: f64, counted: f64| assert!((model / counted - 1.0).abs() < 0.03, "{model}, {counted}");
        near(BUTTERFLY[0] * 64.0, butterfly("doubles", "fp64"));
        near(BUTTERFLY[1] * 128.0, butterfly("words", "all"));
        near(PASS[1] * 128.0, count("words", "multiply_add", "all") / 2.0);
    }

    #[test]
    fn every_figure_has_a_model() {
        let best = proposals(Shape::new(1024, 1024, 1024), None, Security::Bits128).unwrap();
        assert!(best[0].0 > 0.0);
        assert!(bootstrap(8).unwrap().iter().all(|us| *us > 0.0));
    }
}
