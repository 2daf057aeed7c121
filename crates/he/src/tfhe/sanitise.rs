//! Randomised bootstraps: a bit leaves them with masks and noise that tell nothing of how it was computed.
//!
//! The blind rotation's decompositions are randomised: digits are those of the number less a Gaussian combination of
//! the gadget's weights, plus that combination. A step adds Σ e·x to the noise, for errors e of the key and digits x of the
//! accumulator. Seen through its Fourier transform this tells of the accumulator at frequencies near the gadget's
//! dual lattice alone, and a Gaussian that is added at the end leaves none of those (Bourse, Del Pino, Minelli and Wee,
//! *FHE circuit privacy almost for free*, 2016/381, for branching programs; Kluczniak, *Circuit privacy for
//! FHEW/TFHE-style fully homomorphic encryption in practice*, 2022/1459, for bootstraps). So the noise of the result depends
//! on the key alone, whatever the input's was. Encryptions of zero give it fresh masks. `docs/security.md` has the argument.

use super::leveled::{LeveledGlwe, LeveledLwe, LeveledParams, LeveledServer, rerandomised};
use super::{GlweCiphertext, GlweContext, SecretKind, ServerKey, TfheError, variance};
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
pub fn sanitised(server: &ServerKey) -> Result<f64, TfheError> {
    let (context, gadget) = (server.params().context(), server.params().bootstrap_gadget());
    let rows = variance::rows(context, gadget, context.rank() + 1);
    let [wide, last] = deviations(server).map(|d| WideGaussian::new(d).map(|w| w.sigma()));
    let (wide, last) = (wide?, last? / context.q() as f64);
    let digits = ((context.rank() + 1) * gadget.levels as usize * context.degree()) as f64;
    let steps = server.params().literal().lwe_dimension as f64;
    Ok(steps * (rows + digits * wide * wide * variance::glwe_fresh(context)) + last * last)
}

impl ServerKey {
    /// Bits of leveled mode, one-bit messages, as new ciphertexts whose distribution depends on the bits and the
    /// client's key alone: a randomised bootstrap each, then new masks from the client's encryptions of zero. In
    /// parallel inside a thread pool.
    ///
    /// # Errors
    /// [`TfheError::Parameters`] unless the rotation's digits are exact and one key bit is a step, or for messages of
    /// several bits; [`TfheError::FailureProbability`] before any work if a bit could be read wrongly;
    /// [`TfheError::LeveledNoise`], [`TfheError::WrongParameters`], [`TfheError::WrongKey`], [`TfheError::Modulus`].
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
                reason: "a randomised bootstrap takes one-bit messages, digits of all bits of q and one key bit a step"
                    .into(),
            });
        }
        for bit in bits {
            let (hash, key) = bit.owner();
            let expected = (leveled.hash(), self.id());
            super::keys::check_owner("the bit", expected, (hash, key.unwrap_or(expected.1)))?;
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
        let context = self.params().context();
        let (n, q) = (context.degree(), context.modulus());
        let (two_n, quarter) = (2 * n, (q.value() + 2) / 4);
        // From {0, 1/2} to ∓1/4.
        let mut c = bit.ciphertext().clone();
        c.add_plain(q.value() - quarter);
        let by = self.switch_key().switch(&c)?.switch_modulus(two_n, SecretKind::Binary);
        let mut acc = GlweCiphertext::trivial(context, &vec![quarter; n])?.rotated(two_n - by.body as usize % two_n);
        let mut stream = seed.derive("sudare randomised digits", 0).stream(0);
        let mut scratch = Scratch::new(context, self.params().bootstrap_gadget().levels as usize);
        for (m, a) in self.bootstrap_key().steps().iter().zip(&by.mask) {
            check();
            self.step_randomised(&mut acc, m, *a as usize % two_n, wide, &mut stream, &mut scratch);
        }
        let mut drawn = [0];
        last.sample(&mut stream, &mut drawn);
        let body = acc.body_mut();
        // Below 2^63: the deviation is far below q's.
        body[0] = q.add(body[0], q.add(quarter, q.reduce_i64(drawn[0] as i64)));
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
