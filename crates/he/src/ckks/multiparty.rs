//! CKKS under the key of several parties ([`sudare_rlwe::multiparty`]): decryption, results for one receiver, refresh.
//!
//! What everybody sees of a decryption is the message, its error and the noise of all shares. The noise of one party alone hides the
//! error from the others as far as the policy says, which is what the attack of ePrint 2020/1533 needs; that the sum could be simulated
//! from the message alone is not proven for CKKS when each party adds its own noise (ePrint 2025/395). `docs/security.md`.

use super::ciphertext::{Ciphertext, State};
use super::noise::TAIL;
use super::plaintext::Plaintext;
use super::release::Expected;
use super::spread::PlainSpread;
use crate::error::{HeError, parameters};
use sudare_ring::random::{Seed, WideGaussian};
use sudare_ring::wipe::Wiped;
use sudare_ring::{Coeff, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::keys::PublicKey;
use sudare_rlwe::multiparty::{
    DecryptionShare, Digest, Flooding, Handover, HandoverShare, Ledger, Opening, Party, RefreshShare, Refreshing,
    Session,
};
use sudare_rlwe::release::ReleasePolicy;
use zeroize::Zeroizing;

/// Largest statistical security of the masks of a refresh, and least.
const MASK_SECURITY: std::ops::RangeInclusive<u32> = 20..=64;
/// Bits of a mask at most: its sums are integers of a double word.
const MASK_BITS: f64 = 118.0;

/// The decryption of one ciphertext by several parties: one release of the session. All of them make it from what they expect of
/// the computation, and so put the same question.
#[derive(Clone, Debug)]
pub struct SharedDecryption {
    params: rlwe::Params,
    opening: Opening,
    state: State,
}

impl SharedDecryption {
    /// Of a ciphertext that `expected` is worked out for, by `parties`. Its slots repeat after `period` of them, a power of two and at
    /// most all of them, N/2: shares are so much shorter.
    ///
    /// # Errors
    /// [`HeError::NotAsComputed`] for a ciphertext that is not as expected; [`HeError::NoPrecision`] where the noise leaves nothing
    /// of values of size one, [`HeError::TooLarge`] where the modulus does not hold value and noise; those of
    /// [`Opening::new`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        expected: &Expected,
        parties: &[u32],
        policy: ReleasePolicy,
        period: usize,
    ) -> Result<Self, HeError> {
        let error = expected.error * expected.scale;
        Self::flooded(session, (ciphertext, expected), parties, Flooding::new(policy, error)?, period)
    }

    /// The same for a ciphertext that [`flood`] hid the error of before it was divided: shares have far less noise, and so need a
    /// smaller modulus. The server must not collude with any party, and `expected` counts its noise.
    ///
    /// # Errors
    /// As [`SharedDecryption::new`].
    pub fn aided(
        session: &Session,
        ciphertext: &Ciphertext,
        expected: &Expected,
        parties: &[u32],
        policy: ReleasePolicy,
        period: usize,
    ) -> Result<Self, HeError> {
        let flooding = Flooding::aided(policy, session.params().degree())?;
        Self::flooded(session, (ciphertext, expected), parties, flooding, period)
    }

    fn flooded(
        session: &Session,
        (ciphertext, expected): (&Ciphertext, &Expected),
        parties: &[u32],
        flooding: Flooding,
        period: usize,
    ) -> Result<Self, HeError> {
        expected.check(ciphertext)?;
        let (params, operation) = (session.params(), "decryption by several parties");
        let slots = params.degree() / 2;
        if period == 0 || !slots.is_multiple_of(period) {
            return Err(parameters(format!("slots that repeat after {period} of {slots}: a power of two is possible")));
        }
        let noise = expected.error * expected.scale + flooding.bound(&TAIL, 2 * period, parties.len());
        let state = State { scale: expected.scale, bound: ciphertext.bound, noise };
        if noise > 0.5 * state.scale {
            return Err(HeError::NoPrecision { operation, noise: noise.log2(), scale: state.scale.log2() });
        }
        let holds = |level: &usize| state.check_fits(operation, params, *level).is_ok();
        let level = (0..=ciphertext.level()).find(holds).unwrap_or_else(|| ciphertext.level());
        state.check_fits(operation, params, level)?;
        let opening = Opening::new(session, ciphertext.inner(), parties, flooding, (level, slots / period))?;
        Ok(Self { params: params.clone(), opening, state })
    }

    /// What shares answer.
    pub fn question(&self) -> Digest {
        self.opening.question()
    }

    /// The noise of a share.
    pub fn flooding(&self) -> Flooding {
        self.opening.flooding()
    }

    /// Bound on the error of a value, noise included.
    pub fn error_bound(&self) -> f64 {
        self.state.noise / self.state.scale
    }

    /// A party's share. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// As [`Party::decryption_share`].
    pub fn share(&self, party: &Party, ledger: &mut dyn Ledger) -> Result<DecryptionShare, HeError> {
        Ok(party.decryption_share(&self.opening, ledger)?)
    }

    /// The message, from the shares of all that take part.
    ///
    /// # Errors
    /// `PartyError`, which names the party.
    pub fn combine<'a>(&self, shares: impl IntoIterator<Item = &'a DecryptionShare>) -> Result<Plaintext, HeError> {
        let phase = self.opening.phase(self.opening.collector().all(shares)?)?;
        let level = phase.basis().len() - 1;
        Ok(Plaintext {
            params: self.params.clone(),
            poly: Poly::clone(&phase).into_eval(),
            level,
            scale: self.state.scale,
            bound: self.state.bound,
            noise: self.state.noise,
            spread: PlainSpread::UNKNOWN,
        })
    }
}

/// The server's own noise over a result, once for all parties: σ as [`Flooding::new`] has it, from fresh entropy. Divide the ciphertext by
/// its last primes afterwards, down to the scale that the result needs. Publish one such ciphertext for a result.
///
/// # Errors
/// `RlweError::Parameters` for an error that is no finite number, [`HeError::TooLarge`] where the modulus does not hold the noise.
pub fn flood(ciphertext: &Ciphertext, policy: ReleasePolicy, error: f64) -> Result<Ciphertext, HeError> {
    let (params, level) = (ciphertext.params(), ciphertext.level());
    let flooding = Flooding::new(policy, error * ciphertext.scale)?;
    let noise = ciphertext.noise + flooding.bound(&TAIL, params.degree(), 1);
    let state = State { noise, ..ciphertext.state() };
    state.check_fits("flooding", params, level)?;
    let mut values = Wiped::<i128>::zeros(params.degree());
    WideGaussian::new(flooding.deviation())?.sample(&mut Seed::from_entropy()?.stream(0), &mut values);
    let mut parts = ciphertext.parts().to_vec();
    if let Some(first) = parts.first_mut() {
        first.add_assign(&*Zeroizing::new(Poly::<Coeff>::from_wide(params.q_at(level), &values).into_eval()));
    }
    let inner = rlwe::Ciphertext::from_parts(params, ciphertext.key(), parts, level)?;
    Ok(Ciphertext::new(inner, state))
}

/// A result for one receiver: the ciphertext under its key, and nothing for the parties.
#[derive(Clone, Debug)]
pub struct SharedHandover {
    handover: Handover,
    state: State,
}

impl SharedHandover {
    /// The switch of a ciphertext to the key of `receiver`, one of the parties or anybody else.
    ///
    /// # Errors
    /// As [`SharedDecryption::new`]; `PartyError::Receiver` for a key over other primes.
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        expected: &Expected,
        parties: &[u32],
        policy: ReleasePolicy,
        receiver: &PublicKey,
    ) -> Result<Self, HeError> {
        expected.check(ciphertext)?;
        let (count, params) = (parties.len() as f64, session.params());
        let flooding = Flooding::new(policy, expected.error * expected.scale)?;
        let switched = count * receiver.params().sketch().public_encryption().bound(&TAIL);
        let flood = flooding.bound(&TAIL, params.degree(), parties.len());
        let noise = expected.error * expected.scale + switched + flood;
        let state = State { scale: expected.scale, bound: ciphertext.bound, noise };
        state.check_fits("a result for one receiver", params, ciphertext.level())?;
        Ok(Self { handover: Handover::new(session, ciphertext.inner(), parties, flooding, receiver)?, state })
    }

    /// A party's share. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// As [`Party::handover_share`].
    pub fn share(&self, party: &Party, ledger: &mut dyn Ledger) -> Result<HandoverShare, HeError> {
        Ok(party.handover_share(&self.handover, ledger)?)
    }

    /// The ciphertext under the receiver's key.
    ///
    /// # Errors
    /// `PartyError`, which names the party.
    pub fn combine<'a>(&self, shares: impl IntoIterator<Item = &'a HandoverShare>) -> Result<Ciphertext, HeError> {
        let inner = self.handover.ciphertext(self.handover.collector().all(shares)?)?;
        Ok(Ciphertext::new(inner, self.state))
    }
}

/// A refresh by several parties: all primes again, and the error that the ciphertext had.
#[derive(Clone, Debug)]
pub struct SharedRefresh {
    refreshing: Refreshing,
    bits: u32,
    state: State,
}

impl SharedRefresh {
    /// Of a ciphertext that `expected` is worked out for, with values of at most `max_abs`, that `parties` mask with `security` bits of
    /// statistical security, 20 to 64: what everybody sees of N coefficients is within 2^−`security` of what no message would show. The
    /// masks follow from what is expected, and not from what the ciphertext says of itself. The ciphertext keeps the primes that
    /// this takes: about `security`, log2 N and the parties' number in bits above the message.
    ///
    /// # Errors
    /// [`HeError::NotAsComputed`] for a ciphertext that is not as expected, or says that its values are smaller;
    /// [`HeError::TooLarge`] where its level holds no such masks: refresh earlier; those of [`Refreshing::new`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        (expected, max_abs): (&Expected, f64),
        parties: &[u32],
        security: u32,
    ) -> Result<Self, HeError> {
        let (operation, params, level) = ("a refresh by several parties", session.params(), ciphertext.level());
        expected.check(ciphertext)?;
        if max_abs.is_nan() || ciphertext.bound < max_abs {
            return Err(HeError::NotAsComputed { what: "value bound", found: ciphertext.bound, expected: max_abs });
        }
        if !MASK_SECURITY.contains(&security) {
            return Err(parameters(format!("masks of {security} bits of statistical security; 20 to 64 are possible")));
        }
        let state = State { scale: expected.scale, bound: max_abs, noise: expected.error * expected.scale };
        let message = (state.bound * state.scale + state.noise).max(1.0).log2();
        let bits = (message + f64::from(params.log_n()) + f64::from(security)).ceil();
        let sum = bits + (parties.len() as f64).log2() + 2.0;
        let (modulus, scale) = (params.log_q(level), state.scale.log2());
        if bits.is_nan() || bits > MASK_BITS || sum + 1.0 > modulus {
            return Err(HeError::TooLarge { operation, value: sum - scale, scale, modulus, level });
        }
        let bits = bits as u32;
        let masks = format!("ckks, {bits} bits");
        let refreshing = Refreshing::new(session, ciphertext.inner(), parties, &masks, None)?;
        let added = 2.0 * parties.len() as f64 * params.sketch().secret_encryption().bound(&TAIL);
        Ok(Self { refreshing, bits, state: State { noise: state.noise + added, ..state } })
    }

    /// A party's share. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// As [`Party::refresh_share`].
    pub fn share(&self, party: &Party, ledger: &mut dyn Ledger) -> Result<RefreshShare, HeError> {
        let params = self.refreshing.session().params();
        let masks = || {
            let seed = party.randomness_for("ckks", &self.refreshing.question());
            let values = uniform(&seed, self.bits, params.degree());
            [params.q_at(self.refreshing.level()), params.q()]
                .map(|basis| Zeroizing::new(Poly::<Coeff>::from_wide(basis, &values).into_eval()))
        };
        Ok(party.refresh_share(&self.refreshing, masks, ledger)?)
    }

    /// The ciphertext with all primes.
    ///
    /// # Errors
    /// `PartyError`, which names the party.
    pub fn combine<'a>(&self, shares: impl IntoIterator<Item = &'a RefreshShare>) -> Result<Ciphertext, HeError> {
        let (masked, mut sum) = self.refreshing.parts(self.refreshing.collector().all(shares)?)?;
        sum.add_assign(&masked.over(self.refreshing.session().params().q())?.into_eval());
        Ok(Ciphertext::new(self.refreshing.ciphertext(sum)?, self.state))
    }
}

/// Integers uniform in [−2^bits, 2^bits).
fn uniform(seed: &Seed, bits: u32, count: usize) -> Wiped<i128> {
    let mut words = Wiped::<u64>::zeros(2 * count);
    seed.stream(0).fill_u64(&mut words);
    let mut out = Wiped::<i128>::zeros(count);
    for (x, pair) in out.iter_mut().zip(words.chunks_exact(2)) {
        let whole = u128::from(pair[0]) | u128::from(pair[1]) << 64;
        *x = (whole >> (127 - bits)) as i128 - (1 << bits);
    }
    out
}
