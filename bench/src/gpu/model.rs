//! What an H100 should take, by the compiled code: a model, wherever no card was measured.
//!
//! Inputs. nvcc 13.0.88 for sm_90: a thread's 16 values of a forward transform of N = 2^14 by the family of doubles take 470
//! instructions in `columns_forward` and 1023 in `parts_forward_10`, loads and stores included, of which 272 and 736 are
//! FP64: 9 FP64 of 13.3 instructions a butterfly. The family of words takes 1045 and 2628: 32.8 instructions a
//! butterfly. Counted in the source, a product by doubles and its sum take 8 FP64 (six, the sum, its part of a reduction); compiled, a product of words and its sum, 90
//! instructions in `multiply_add`. The card: 132 multiprocessors at 1.7 GHz, 64 FP64 and 128 instructions a clock each (CUDA's
//! guide), 3.0 TB/s copied. Keys and operands are resident; launches, which a large batch hides, cost nothing.

use super::ASSUMED_COPY;
use crate::Outcome;
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

/// Microseconds of a product, relinearised and rescaled, at the highest level.
pub fn mul_rescale(literal: &ParamsLiteral) -> f64 {
    let level = literal.q_bits.len() - 1;
    arithmetic(&(Work::tensor(literal, level) + Work::relinearize_rescale(literal, level)), literal.log_n)
}

/// Microseconds of `count` rotations with one decomposition.
pub fn rotations(literal: &ParamsLiteral, count: usize) -> f64 {
    let level = literal.q_bits.len() - 1;
    let each = Work::inner_product(literal, level) + Work::mod_down(literal, level) * 2.0;
    arithmetic(&(Work::decompose(literal, level) + each * count as f64), literal.log_n)
}

/// The same, of which the sum alone is divided by P.
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
    use super::super::operations::literal;
    use super::*;

    #[test]
    fn the_model_is_near_the_prototype_s_instructions() {
        for (log_n, limbs, special, prototype) in [(14, 8, 2, 6.3), (15, 16, 4, 26.0)] {
            let ratio = mul_rescale(&literal(log_n, limbs, special)) / prototype;
            assert!((0.8..1.3).contains(&ratio), "2^{log_n}: {ratio}");
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
