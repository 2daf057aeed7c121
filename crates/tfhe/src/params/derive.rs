//! Parameter sets for a message size, a depth of linear operations and a failure bound: a search over
//! rings, dimensions and digits by the formulas of [`variance`] and the limits of [`security`].

use crate::keyswitch::module::module_degree;
use crate::noise::variance;
use crate::params::security;
use crate::{Gadget, GlweContext, LEAST_MODULE_DEGREE, Noise, Plaintext, SecretKind, TfheError, TfheLiteral};
use sudare_ring::prime::ntt_primes;
use sudare_rlwe::security::Security;

/// What a set has to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// Bits, or messages with carries.
    pub plaintext: Plaintext,
    /// Depth: the largest factor by which linear operations between two bootstraps multiply the noise
    /// variance, 1 to 2^20. A sum of m outputs of bootstraps takes m if they are independent, m² if they
    /// may be the same.
    pub noise_factor: u64,
    /// log2 of the largest failure probability of a bootstrap, −256 to −1.
    pub log_failure: f64,
}

/// A set, and what the search knows of it.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The set, 128 bits.
    pub literal: TfheLiteral,
    /// log2 of its failure probability.
    pub log_failure: f64,
    /// Milliseconds of one bootstrap by the cost model: to compare sets, not to promise times.
    pub model_ms: f64,
    /// Bytes of its keys in memory where products are exact; where they are in floating point, up to 2.2 times as many.
    pub key_bytes: usize,
}

/// Key bits a step of the blind rotation.
const UNROLL: usize = 2;
/// Bits of q that are tried.
const MODULUS_BITS: [u32; 6] = [36, 40, 42, 44, 46, 48];
/// Largest k·N that is tried.
const MOST_DIMENSION: usize = 1 << 14;
/// Most levels of the blind rotation's and the key switch's decompositions.
const MOST_LEVELS: [u32; 2] = [4, 18];
/// Most bits of the key switch's digits together.
const SWITCH_BITS: u32 = 24;

/// Finds the set whose bootstrap the cost model finds quickest.
///
/// # Errors
/// [`TfheError::Parameters`] if no set that is tried holds what is wanted, or it is out of range.
pub fn derive(wanted: &Wanted) -> Result<Derived, TfheError> {
    let refuse = |reason: String| TfheError::Parameters { reason };
    let space_bits = match wanted.plaintext {
        Plaintext::Bit => 0,
        Plaintext::Integer { message_bits, carry_bits } if message_bits > 0 => message_bits.saturating_add(carry_bits),
        Plaintext::Integer { .. } => return Err(refuse("integers need at least one message bit".into())),
    };
    if space_bits > 12 || !(1..=1 << 20).contains(&wanted.noise_factor) {
        let factor = wanted.noise_factor;
        return Err(refuse(format!(
            "messages and carries have up to 12 bits together and the noise factor is 1 to 2^20, not {space_bits} and \
             {factor}"
        )));
    }
    if !(-256.0..=-1.0).contains(&wanted.log_failure) {
        return Err(refuse(format!("log2 of the failure probability is −256 to −1, not {}", wanted.log_failure)));
    }
    let mut best: Option<Candidate> = None;
    for log_n in 9.max(space_bits + 2)..=14 {
        for rank in 1..=5usize {
            if rank << log_n > MOST_DIMENSION {
                break;
            }
            for bits in MODULUS_BITS {
                let Some(ring) = Ring::new(log_n, rank, bits)? else { continue };
                ring.search(wanted, &mut best);
            }
        }
    }
    let found = best.ok_or_else(|| {
        refuse(
            "no set among those tried holds this; ask for less depth, fewer bits or a larger failure probability"
                .into(),
        )
    })?;
    let params = found.literal.clone().build()?;
    Ok(Derived {
        log_failure: params.log_failure(),
        literal: found.literal,
        model_ms: found.nanoseconds / 1e6,
        key_bytes: found.key_bytes,
    })
}

struct Candidate {
    literal: TfheLiteral,
    nanoseconds: f64,
    key_bytes: usize,
}

/// One ring, rank and modulus.
struct Ring {
    context: GlweContext,
    log_n: u32,
    noise: Noise,
}

impl Ring {
    /// None where no noise that is sampled gives 128 bits.
    fn new(log_n: u32, rank: usize, bits: u32) -> Result<Option<Self>, TfheError> {
        let Some(limit) = security::least_log_noise(rank << log_n, SecretKind::Binary) else { return Ok(None) };
        // In hundredths, and no less than the guidelines' smallest.
        let sigma = ((limit + f64::from(bits)).exp2().max(3.19) * 100.0).ceil() / 100.0;
        if sigma > 64.0 {
            return Ok(None);
        }
        let (degree, noise) = (1usize << log_n, Noise::Gaussian { sigma });
        let q = ntt_primes(degree, bits, 1, &[])?[0];
        Ok(Some(Self { context: GlweContext::new(degree, q, rank, SecretKind::Binary, noise)?, log_n, noise }))
    }

    /// The base with the least noise for a number of levels.
    fn bootstrap_digits(&self, levels: u32) -> Option<Gadget> {
        let noise = |g: &Gadget| variance::blind_rotation(&self.context, *g, 1000, UNROLL);
        (2..=self.context.bits() / levels)
            .map(|base_log| Gadget { base_log, levels })
            .min_by(|a, b| noise(a).total_cmp(&noise(b)))
    }

    /// The same for the key switch with rows of this noise.
    fn switch_digits(&self, levels: u32, n: usize, row_noise: f64) -> Option<Gadget> {
        let noise = |g: &Gadget| variance::module_switch(&self.context, *g, n, row_noise, 0.0);
        (1..=SWITCH_BITS / levels)
            .map(|base_log| Gadget { base_log, levels })
            .min_by(|a, b| noise(a).total_cmp(&noise(b)))
    }

    /// Improves `best` by the sets of this ring.
    fn search(&self, wanted: &Wanted, best: &mut Option<Candidate>) {
        let (context, half_box) = (&self.context, wanted.plaintext.half_box());
        let rotations: Vec<Gadget> = (1..=MOST_LEVELS[0]).filter_map(|l| self.bootstrap_digits(l)).collect();
        for n in (640..=1024).step_by(LEAST_MODULE_DEGREE) {
            let Some(limit) = security::least_log_noise(n, SecretKind::Binary) else { continue };
            let noise = Noise::uniform_of((limit + 32.0).exp2());
            // In units of 1/q.
            let row = noise.variance() * (2.0 * (f64::from(context.bits()) - 32.0)).exp2();
            for switch in (1..=MOST_LEVELS[1]).filter_map(|l| self.switch_digits(l, n, row)) {
                for rotation in &rotations {
                    let (nanoseconds, key_bytes) = cost(context, n, *rotation, switch);
                    if best.as_ref().is_some_and(|b| b.nanoseconds <= nanoseconds) {
                        break;
                    }
                    let output = variance::blind_rotation(context, *rotation, n, UNROLL);
                    let input = wanted.noise_factor as f64 * output;
                    let switched = variance::module_switch(context, switch, n, row, input);
                    let decision = variance::modulus_switch(n, SecretKind::Binary, 2 * context.degree(), switched);
                    if variance::log2_tail(half_box, decision) > wanted.log_failure {
                        continue;
                    }
                    let literal = TfheLiteral {
                        plaintext: wanted.plaintext,
                        lwe_dimension: n,
                        lwe_noise: noise,
                        log_n: self.log_n,
                        rank: context.rank(),
                        modulus_bits: context.bits(),
                        glwe_noise: self.noise,
                        bootstrap_digits: (rotation.base_log, rotation.levels),
                        switch_digits: (switch.base_log, switch.levels),
                        module_switch: true,
                        unroll: UNROLL,
                        noise_factor: wanted.noise_factor,
                        log_failure: wanted.log_failure,
                        security: Security::Bits128,
                    };
                    *best = Some(Candidate { literal, nanoseconds, key_bytes });
                }
            }
        }
    }
}

/// Nanoseconds of a bootstrap, and bytes of its keys. Costs are those of one core with AVX-512 at about
/// 2.9 GHz: transforms a butterfly layer, products and monomials a coefficient, bytes that are streamed.
fn cost(context: &GlweContext, dimension: usize, rotation: Gadget, switch: Gadget) -> (f64, usize) {
    const TRANSFORM: f64 = 0.095;
    const PRODUCT: f64 = 0.077;
    const MONOMIAL: f64 = 0.374;
    const STREAMED: f64 = 0.027;
    let (degree, columns) = (context.degree(), context.rank() + 1);
    let (rows, groups) = (columns * rotation.levels as usize, (1usize << UNROLL) - 1);
    let layers = (degree * degree.trailing_zeros() as usize) as f64;
    let product = |rows: usize, columns: usize, bytes: usize| {
        (rows + columns) as f64 * layers * TRANSFORM
            + (rows * columns * degree) as f64 * PRODUCT
            + bytes as f64 * STREAMED
    };
    let width = context.bits().div_ceil(8) as usize;
    let step_bytes = groups * rows * columns * degree * width;
    let step = product(rows, columns, step_bytes)
        + ((groups - 1) * rows * columns * degree) as f64 * PRODUCT
        + (groups * rows * degree) as f64 * MONOMIAL;
    let steps = dimension.div_ceil(UNROLL);
    let (rows, columns) = (context.rank() * switch.levels as usize, dimension / module_degree(context, dimension) + 1);
    let switch_bytes = rows * columns * degree * width;
    (steps as f64 * step + product(rows, columns, switch_bytes), steps * step_bytes + switch_bytes)
}
