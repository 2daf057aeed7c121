//! What the slot-packed products share: checks, rotation schedules, parameter search.

use crate::error::MatrixError;
use crate::product::MAX_BATCH;
use crate::product::Requirements;
use sudare_expr::Matrix;
use sudare_expr::expr::{MAX_ELEMENTS, MAX_SIDE};
use sudare_expr::{Operand, Shape};
use sudare_he::ckks::{
    CiphertextOf, Decrypted, EncodeAt, Encoder, Evaluator, Images, Params, ParamsLiteral, Plaintext,
};
use sudare_rlwe::Backend;
use sudare_rlwe::security::{SecretDistribution, max_log_qp};
use zeroize::Zeroizing;

/// Refuses matrices of another number, shape or size than planned.
///
/// # Errors
/// [`MatrixError::Count`], [`MatrixError::PlannedShape`]; [`MatrixError::Expr`] for an element over `max_abs`.
pub fn check_matrices(shape: Shape, operand: Operand, matrices: &[Matrix], max_abs: f64) -> Result<(), MatrixError> {
    let what = name_of(operand);
    if operand == Operand::Output {
        return Err(MatrixError::Method { method: "encode", reason: "results are decrypted and not encoded".into() });
    }
    check_count(what, matrices.len(), shape.batch)?;
    for matrix in matrices {
        let (found, expected) = (matrix.shape(), shape.of(operand));
        if found != expected {
            return Err(MatrixError::PlannedShape { what, found, expected });
        }
        matrix.check_bound(max_abs)?;
    }
    Ok(())
}

/// Refuses another number of things than planned.
///
/// # Errors
/// [`MatrixError::Count`].
pub fn check_count(what: &'static str, found: usize, expected: usize) -> Result<(), MatrixError> {
    if found == expected { Ok(()) } else { Err(MatrixError::Count { what, found, expected }) }
}

/// How errors call an operand.
pub const fn name_of(operand: Operand) -> &'static str {
    match operand {
        Operand::Left => "the left operand",
        Operand::Right => "the right operand",
        Operand::Output => "the result",
    }
}

/// Refuses a shape without elements, or one larger than an expression's.
///
/// # Errors
/// [`MatrixError::Method`].
pub fn check_shape(method: &'static str, shape: Shape) -> Result<(), MatrixError> {
    let Shape { m, k, n, batch } = shape;
    let sides = [m, k, n].iter().all(|side| (1..=MAX_SIDE).contains(side));
    // Sides are small enough for their products.
    if !sides || [m * k, k * n, m * n].iter().any(|x| *x > MAX_ELEMENTS) || !(1..=MAX_BATCH).contains(&batch) {
        let reason = format!(
            "{batch} products of {m}×{k} and {k}×{n}: sides are 1 to {MAX_SIDE}, matrices have up to {MAX_ELEMENTS} \
             elements, and a batch has 1 to {MAX_BATCH} products"
        );
        return Err(MatrixError::Method { method, reason });
    }
    Ok(())
}

/// A method's refusal of parameters without enough levels.
///
/// # Errors
/// [`MatrixError::Method`] with the levels that are needed and those there are.
pub fn check_depth(method: &'static str, params: &ParamsLiteral, depth: usize) -> Result<(), MatrixError> {
    if params.q_bits.len() > depth {
        return Ok(());
    }
    let found = params.q_bits.len().saturating_sub(1);
    let reason = format!("it needs {depth} levels, and the parameters have {found}; take more data primes");
    Err(MatrixError::Method { method, reason })
}

/// A mask of ones where `keep(slot)` holds, at `level`, with the scale of the prime that its
/// rescale drops, so that scales stay exact.
pub fn mask_values(slots: usize, value: f64, keep: impl Fn(usize) -> bool) -> Vec<f64> {
    (0..slots).map(|i| if keep(i) { value } else { 0.0 }).collect()
}

/// Where a mask at `level` is encoded.
pub fn mask_at(params: &Params, level: usize) -> EncodeAt {
    EncodeAt { level, scale: params.prime_at(level) as f64, max_abs: 1.0 }
}

/// An encoded mask for [`Evaluator::mul_plain`].
///
/// # Errors
/// As [`Encoder::encode_at`].
pub fn plain_mask(params: &Params, level: usize, values: &[f64]) -> Result<Plaintext, MatrixError> {
    Ok(Encoder::new(params).encode_at(values, mask_at(params, level))?)
}

/// Real slots of plaintexts, wiped when dropped.
///
/// # Errors
/// As [`Encoder::decode`].
pub fn slots_of(params: &Params, plaintexts: &[Decrypted]) -> Result<Zeroizing<Vec<Vec<f64>>>, MatrixError> {
    let encoder = Encoder::new(params);
    Ok(Zeroizing::new(plaintexts.iter().map(|p| encoder.decode(p)).collect::<Result<_, _>>()?))
}

/// Stages that sum the rotations by 0, unit, 2·unit, …, (count − 1)·unit, `count` a power of two:
/// each stage is the list of its steps, 2^unroll of them where there are as many left.
pub fn stages(count: usize, unit: i64, unroll: u32) -> Vec<Vec<i64>> {
    let mut out = Vec::new();
    let mut done = 1;
    while done < count {
        let radix = (1usize << unroll.clamp(1, 10)).min(count / done);
        out.push((0..radix).map(|x| (x * done) as i64 * unit).collect());
        done *= radix;
    }
    out
}

/// Runs stages one after another, each adding up what overlaps; hoisted, or a rotation and an addition each.
///
/// # Errors
/// As [`Evaluator::sum_of_images`].
pub fn fold<B: Backend>(
    evaluator: &Evaluator<B>,
    c: CiphertextOf<B>,
    stages: &[Vec<i64>],
    hoisted: bool,
) -> Result<CiphertextOf<B>, MatrixError> {
    fold_images(evaluator, c, stages, hoisted, Images::Overlapping)
}

/// The same, of images that hold messages in the same or in different slots.
///
/// # Errors
/// As [`Evaluator::sum_of_images`].
pub fn fold_images<B: Backend>(
    evaluator: &Evaluator<B>,
    mut c: CiphertextOf<B>,
    stages: &[Vec<i64>],
    hoisted: bool,
    images: Images,
) -> Result<CiphertextOf<B>, MatrixError> {
    for steps in stages {
        c = if hoisted {
            let elements: Vec<u64> = steps.iter().map(|s| evaluator.params().rotation_element(*s)).collect();
            evaluator.sum_of_images(&c, &elements, images)?
        } else {
            let (mut sum, before, mut switched) = (c.clone(), c.spread(), 0.0);
            for step in steps.iter().filter(|s| **s != 0) {
                let image = evaluator.rotate(&c, *step)?;
                switched += image.spread().real.held - before.real.held;
                evaluator.add_assign(&mut sum, &image)?;
            }
            sum.with_spread(before.images(steps.len() as f64, images).plus(switched))
        };
    }
    Ok(c)
}

/// What [`search_literals`] tries to satisfy.
pub struct Search<'a> {
    /// The requirements.
    pub req: &'a Requirements,
    /// The least log2 N that has enough slots.
    pub least_log_n: u32,
    /// Bound on the result's absolute values (and on what leads to it at the last level).
    pub result: f64,
    /// Rescales after masks, by position from the top: `true` for a mask's prime, which need not
    /// be as large as the scale.
    pub chain: &'a [bool],
    /// Whether keys are switched at all.
    pub switching: bool,
}

/// Parameter literals that serve the requirements: for each useful number of special primes the
/// least ring degree, with as much precision as its modulus has room for (limbs cost the same at
/// any size below 2^50). `promised` is the error of a literal, if its modulus holds what is computed.
pub fn search_literals(search: &Search<'_>, promised: impl Fn(&ParamsLiteral) -> Option<f64>) -> Vec<ParamsLiteral> {
    let specials: &[usize] = if search.switching { &[1, 2, 3] } else { &[0] };
    let mut out: Vec<ParamsLiteral> = Vec::new();
    for k in specials.iter().filter(|k| **k <= search.chain.len() + 1) {
        let mut too_inexact = 0;
        let mut rings = search.least_log_n.max(11)..=17;
        out.extend(rings.find_map(|log_n| in_ring(search, (log_n, *k), &mut too_inexact, &promised)));
    }
    out
}

/// The literal of a ring degree and a number of special primes, if one serves. Scales that were `too_inexact` in smaller
/// rings are so in this one.
fn in_ring(
    search: &Search<'_>,
    (log_n, k): (u32, usize),
    too_inexact: &mut u32,
    promised: &impl Fn(&ParamsLiteral) -> Option<f64>,
) -> Option<ParamsLiteral> {
    let headroom = search.result.max(1.0).log2().ceil() as u32 + 3;
    let limit = max_log_qp(log_n, SecretDistribution::Ternary, search.req.security)?;
    for scale in (20..=45u32).rev().chain(46..=48) {
        let first = scale + headroom;
        if scale <= *too_inexact || first > 61 || (first > 49 && scale > 30) {
            continue;
        }
        let largest = scale.min(34);
        for mask in [largest, 26, 22] {
            // The chain is written from the top; the primes from the bottom.
            let above = search.chain.iter().rev().map(|m| if *m { mask } else { scale });
            let q_bits: Vec<u32> = std::iter::once(first).chain(above).collect();
            let digit = q_bits.chunks(k.max(1)).map(|d| d.iter().sum::<u32>()).max().unwrap_or(0);
            let special = if k == 0 { 0 } else { digit.div_ceil(k as u32).max(24) };
            let total = q_bits.iter().sum::<u32>() + special * k as u32;
            if special > 61 || total > limit {
                continue;
            }
            let literal = ParamsLiteral {
                rlwe: sudare_rlwe::params::ParamsLiteral {
                    log_n,
                    q_bits,
                    p_bits: vec![special; k],
                    digit_limbs: k.max(1),
                    secret: SecretDistribution::Ternary,
                    security: search.req.security,
                },
                log_scale: scale,
            };
            match promised(&literal) {
                Some(error) if error <= search.req.error => return Some(literal),
                // Smaller scales and smaller masks are less exact still.
                Some(_) if mask == largest => {
                    *too_inexact = scale;
                    break;
                }
                _ => {}
            }
        }
    }
    None
}
