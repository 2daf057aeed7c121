//! Randomised bootstraps: a bit leaves them with masks and noise that tell nothing of how it was computed.
//!
//! The blind rotation's decompositions are randomised: digits are those of the number less a Gaussian combination of
//! the gadget's weights, plus that combination. A step adds Σ e·x to the noise, for errors e of the key and digits x of the
//! accumulator. Seen through its Fourier transform this tells of the accumulator at frequencies near the gadget's
//! dual lattice alone, and a Gaussian that is added at the end leaves none of those (Bourse, Del Pino, Minelli and Wee,
//! *FHE circuit privacy almost for free*, 2016/381, for branching programs; Kluczniak, *Circuit privacy for
//! FHEW/TFHE-style fully homomorphic encryption in practice*, 2022/1459, for bootstraps). So the noise of the result depends
//! on the key alone, whatever the input's was. Encryptions of zero give it fresh masks. `docs/security.md` has the argument.

use crate::leveled::{LeveledGlwe, LeveledLwe, LeveledParams, LeveledServer, rerandomised};
use crate::noise::variance;
use crate::{GlweCiphertext, GlweContext, RotationExponents, SecretKind, ServerKey, TfheError};
use sudare_ring::Modulus;
use sudare_ring::buffer::Buffer;
use sudare_ring::interrupt::check;
use sudare_ring::kernel::PackedMatrix;
use sudare_ring::random::{Seed, Stream, WideGaussian};
use sudare_ring::threads;

/// Width of the digits' Gaussians over the gadget's base: e^(−π·5.3²) < 2^−127 is what any frequency but zero keeps.
const DIGITS: f64 = 5.5;
/// The Gaussian at the end keeps less than e^(−π·5.8²) < 2^−152 of frequencies over this part of 1/(B·‖e‖), under which
/// those near the gadget's dual lattice do not come.
const NEAR: f64 = 0.05;
const LAST: f64 = 5.8;
/// Deviations over the mean norm of a coefficient's errors that none is taken to reach.
const TAIL: f64 = 8.0;
/// Deviations of the digits' Gaussians and of the last one: widths over √(2π).
fn deviations(server: &ServerKey) -> [f64; 2] {
    let (context, gadget) = (server.params().context(), server.params().bootstrap_gadget());
    let base = f64::from(gadget.base_log).exp2();
    let norm = context.noise().noise().variance().sqrt() * (f64::from(gadget.levels).sqrt() + TAIL);
    [DIGITS * base, LAST * base * norm / NEAR].map(|width| width / (2.0 * std::f64::consts::PI).sqrt())
}

/// Variance of a bit after [`ServerKey::sanitise`], without that of its new masks.
///
/// # Errors
/// `RlweError::Ring` for digits whose Gaussian no sampler serves.
pub fn sanitised(server: &ServerKey) -> Result<f64, TfheError> {
    let last = WideGaussian::new(deviations(server)[1])?.sigma() / server.params().context().q() as f64;
    Ok(rotated(server)? + last * last)
}

/// Variance of every coefficient after the steps of a randomised rotation.
fn rotated(server: &ServerKey) -> Result<f64, TfheError> {
    let (context, gadget) = (server.params().context(), server.params().bootstrap_gadget());
    let rows = variance::rows(context, gadget, context.rank() + 1);
    let wide = WideGaussian::new(deviations(server)[0])?.sigma();
    let digits = ((context.rank() + 1) * gadget.levels as usize * context.degree()) as f64;
    let steps = server.params().literal().lwe_dimension as f64;
    Ok(steps * (rows + digits * wide * wide * variance::glwe_fresh(context)))
}

/// A quarter of the modulus, rounded.
fn quarter(q: &Modulus) -> u64 {
    (q.value() + 2) / 4
}

impl ServerKey {
    /// Bits of leveled mode, one-bit messages, as new ciphertexts whose distribution depends on the bits and the
    /// client's key alone: a randomised bootstrap each, then new masks from the client's encryptions of zero. In
    /// parallel inside a thread pool.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] unless the rotation's digits are exact and one key bit is a step, or for messages of
    /// several bits; [`TfheError::FailureProbability`] before any work if a bit could be read wrongly;
    /// [`TfheError::LeveledNoise`], `RlweError::WrongParameters`, `RlweError::WrongKey`, [`TfheError::Modulus`].
    pub fn sanitise(
        &self,
        leveled: &LeveledParams,
        bits: &[LeveledLwe],
        zeros: &[LeveledGlwe],
        seed: &Seed,
    ) -> Result<Vec<LeveledLwe>, TfheError> {
        let (params, gadget) = (self.params(), self.params().bootstrap_gadget());
        params.context().check(leveled.context())?;
        if gadget.dropped(params.context().bits()) != 0 || params.literal().unroll != 1 || leveled.space() != 2 {
            return Err(TfheError::Parameters {
                reason: "a randomised bootstrap needs one-bit messages, digits of all bits of q and one key bit a \
                         step; take such parameters"
                    .into(),
            });
        }
        for bit in bits {
            let (hash, key) = bit.owner();
            let expected = (leveled.hash(), self.id());
            crate::keys::check_owner("the bit", expected, (hash, key.unwrap_or(expected.1)))?;
            let switched = params.switched_variance(bit.variance());
            let (n, two_n) = (params.literal().lwe_dimension, 2 * params.context().degree());
            let decision = variance::modulus_switch(n, SecretKind::Binary, two_n, switched);
            let (found, declared) = (variance::log2_tail(0.25, decision), params.literal().log_failure);
            if found > declared {
                return Err(TfheError::FailureProbability { found, declared });
            }
        }
        let (after, server) = (sanitised(self)?, LeveledServer::new(leveled));
        let zero = zeros.iter().fold(0f64, |most, z| most.max(z.variance()));
        leveled.check_variance("randomised bootstrap", after + rerandomised(leveled, zeros.len(), zero))?;
        let [wide, last] = deviations(self).map(WideGaussian::new);
        let (wide, last) = (wide?, last?);
        let made = threads::map_jobs(bits.len(), |i| {
            let seed = seed.derive("sudare randomised bootstrap", i as u64);
            let c = self.rotate_randomised(&bits[i], [&wide, &last], &seed)?;
            let c = LeveledGlwe::from_parts(c, after, (leveled.hash(), Some(self.id())));
            server.rerandomise(&c, zeros, &seed)?.extract(0)
        });
        made.into_iter().collect()
    }

    /// An encryption of the bit in coefficient 0.
    fn rotate_randomised(
        &self,
        bit: &LeveledLwe,
        [wide, last]: [&WideGaussian; 2],
        seed: &Seed,
    ) -> Result<GlweCiphertext, TfheError> {
        let q = self.params().context().modulus();
        let mut stream = seed.derive("sudare randomised digits", 0).stream(0);
        let mut acc = self.steps_randomised(&self.exponents(bit)?, wide, &mut stream)?;
        let mut drawn = [0];
        last.sample(&mut stream, &mut drawn);
        let body = acc.body_mut();
        // Below 2^63: the deviation is far below q's.
        body[0] = q.add(body[0], q.add(quarter(q), q.reduce_i64(drawn[0] as i64)));
        Ok(acc)
    }

    /// A bit's steps of rotation, its messages 0 and 1/2 moved to ∓1/4.
    fn exponents(&self, bit: &LeveledLwe) -> Result<RotationExponents, TfheError> {
        let context = self.params().context();
        let q = context.modulus();
        let mut c = bit.ciphertext().clone();
        c.add_plain(q.value() - quarter(q));
        Ok(self.switch_key().switch(&c)?.switch_modulus(2 * context.degree(), SecretKind::Binary))
    }

    /// `X^−phase · Σ q/4·X^i`: q/4 with the sign of the phase in coefficient 0.
    fn steps_randomised(
        &self,
        by: &RotationExponents,
        wide: &WideGaussian,
        stream: &mut Stream,
    ) -> Result<GlweCiphertext, TfheError> {
        let context = self.params().context();
        let (n, two_n) = (context.degree(), 2 * context.degree());
        let test = vec![quarter(context.modulus()); n];
        let mut acc = GlweCiphertext::trivial(context, &test)?.rotated(two_n - by.body as usize % two_n);
        let mut scratch = Scratch::new(context, self.params().bootstrap_gadget().levels as usize);
        // Exact products, of which the randomised digits' distribution is a statement.
        for (i, a) in by.mask.iter().enumerate() {
            check();
            self.step_randomised(
                &mut acc,
                &*self.bootstrap_key().steps().matrix(i)?,
                *a as usize % two_n,
                wide,
                stream,
                &mut scratch,
            );
        }
        Ok(acc)
    }

    /// `acc += GGSW(s)·(X^a − 1)·acc` with randomised digits.
    fn step_randomised(
        &self,
        acc: &mut GlweCiphertext,
        m: &PackedMatrix,
        a: usize,
        wide: &WideGaussian,
        stream: &mut Stream,
        s: &mut Scratch,
    ) {
        let (context, gadget) = (self.params().context(), self.params().bootstrap_gadget());
        let (n, limb, bits) = (context.degree(), context.limb(), context.bits());
        let levels = gadget.levels as usize;
        let polynomials = acc.words().chunks_exact(n).zip(s.digits.chunks_exact_mut(levels * n));
        for (p, digits) in polynomials {
            let (first, _) = digits.split_at_mut(n);
            limb.rotate_minus(first, p, a);
            for (l, drawn) in s.drawn.chunks_exact_mut(n).enumerate() {
                wide.sample(stream, &mut s.wide);
                drawn.iter_mut().zip(&s.wide).for_each(|(d, x)| *d = *x as i64);
                limb.from_i64(&mut s.residues, drawn);
                let weight = limb.modulus().shoup(1 << gadget.log_weight(bits, l as u32));
                limb.mul_scalar(&mut s.residues, &weight);
                limb.sub_assign(first, &s.residues);
            }
            limb.decompose(digits, gadget);
            for (digit, drawn) in digits.chunks_exact_mut(n).zip(s.drawn.chunks_exact(n)) {
                limb.from_i64(&mut s.residues, drawn);
                limb.add_assign(digit, &s.residues);
                limb.forward(digit);
            }
        }
        limb.external_product(&mut s.product, &s.digits, m);
        s.product.chunks_exact_mut(n).for_each(|p| limb.inverse(p));
        limb.add_assign(acc.words_mut(), &s.product);
    }
}

struct Scratch {
    digits: Buffer,
    product: Buffer,
    residues: Buffer,
    drawn: Vec<i64>,
    wide: Vec<i128>,
}

impl Scratch {
    fn new(context: &GlweContext, levels: usize) -> Self {
        let n = context.degree();
        Self {
            digits: Buffer::dirty(context.words() * levels),
            product: Buffer::dirty(context.words()),
            residues: Buffer::dirty(n),
            drawn: vec![0; levels * n],
            wide: vec![0; n],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientKey, Noise, Plaintext, TfheLiteral};
    use sudare_ring::Threads;
    use sudare_rlwe::security::Security;

    /// Coefficients for each input whose noise is measured: 10^5 by `make soak`.
    fn samples() -> usize {
        std::env::var("SUDARE_SAMPLES").map_or(2000, |count| count.parse().unwrap())
    }

    /// Every coefficient after the steps has a noise of the same distribution; the first one alone leaves, with the last
    /// Gaussian and new masks, in `tests/it/sanitise.rs`.
    #[test]
    fn noise_of_the_steps_does_not_depend_on_the_input() {
        let literal = TfheLiteral {
            lwe_dimension: 16,
            lwe_noise: Noise::Uniform { bound: 2000 },
            rank: 2,
            modulus_bits: 39,
            glwe_noise: Noise::Gaussian { sigma: 4.45 },
            bootstrap_digits: (13, 3),
            unroll: 1,
            security: Security::Insecure,
            plaintext: Plaintext::Bit,
            ..TfheLiteral::gates()
        };
        let key = ClientKey::from_seed(&literal.build().unwrap(), &Seed::from_bytes([1; 32])).unwrap();
        let server = key.server_key().unwrap();
        let (n, q) = (server.params().context().degree(), server.params().context().modulus());
        let wide = WideGaussian::new(deviations(&server)[0]).unwrap();
        let predicted = rotated(&server).unwrap();
        let bits = samples().div_ceil(n);
        let count = (bits * n) as f64;
        let pool = Threads::new(0);
        // Phases at both ends and in the middle of what is accepted, as parts of the modulus: ones, then zeros.
        let found = [0.54, 0.46, 0.5, -0.04, 0.04, 0.0].map(|part: f64| {
            let phase = q.reduce_i64((part * q.value() as f64) as i64);
            let owner = (server.params().hash(), Some(server.id()));
            let seed = Seed::from_entropy().unwrap();
            let moments = |i: usize| {
                let bit = LeveledLwe::from_parts(key.encrypt_phase(phase).unwrap(), 0.0, owner);
                let by = server.exponents(&bit).unwrap();
                let acc = server.steps_randomised(&by, &wide, &mut seed.derive("bit", i as u64).stream(0)).unwrap();
                let steps = by.body.wrapping_sub(key.lwe().inner_torus(&by.mask)) as usize % (2 * n);
                let plain = GlweCiphertext::trivial(server.params().context(), &vec![quarter(q); n]).unwrap();
                let plain = plain.rotated(2 * n - steps);
                let phases = key.glwe().phase(&acc).unwrap();
                phases.iter().zip(plain.body()).fold((0.0, 0.0), |(mean, square), (phase, message)| {
                    let noise = q.center(q.sub(*phase, *message)) as f64 / q.value() as f64;
                    (mean + noise / count, square + noise * noise / count)
                })
            };
            let all = pool.run(|| threads::map_jobs(bits, moments));
            all.iter().fold((0.0, 0.0), |(mean, square), (m, s)| (mean + m, square + s))
        });
        // Five deviations of the mean and of the mean square of so many, and of their differences.
        let [of_mean, of_square] = [5.0 * (predicted / count).sqrt(), 5.0 * predicted * (2.0 / count).sqrt()];
        for (i, (mean, square)) in found.into_iter().enumerate() {
            println!("input {i}, {count} coefficients: mean {mean:e}, {} of the variance", square / predicted);
            assert!(mean.abs() < of_mean, "input {i}: mean {mean:e}");
            assert!((square - predicted).abs() < of_square, "input {i}: {} of the variance", square / predicted);
            for (j, (m, s)) in found.into_iter().enumerate().skip(i + 1) {
                assert!((mean - m).abs() < 2f64.sqrt() * of_mean, "inputs {i} and {j}: {mean:e}, {m:e}");
                assert!((square - s).abs() < 2f64.sqrt() * of_square, "inputs {i} and {j}: {}", square / s);
            }
        }
    }
}
