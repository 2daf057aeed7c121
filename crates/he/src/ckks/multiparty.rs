//! CKKS under the key of several parties ([`sudare_rlwe::multiparty`]): decryption, results for one receiver, refresh.
//!
//! What everybody sees of a decryption is the message, its error and the noise of all shares. The noise of one party alone hides the
//! error from the others as far as the policy says, which is what the attack of ePrint 2020/1533 needs; that the sum could be simulated
//! from the message alone is not proven for CKKS when each party adds its own noise (ePrint 2025/395). `docs/security.md`.

use super::ciphertext::{Ciphertext, State};
use super::evaluator::Evaluator;
use super::noise::{TAIL, division_bound};
use super::plaintext::Decrypted;
use super::release::Expected;
use super::spread::PlainSpread;
use crate::error::{HeError, parameters};
use sudare_ring::random::{Seed, WideGaussian};
use sudare_ring::wipe::Wiped;
use sudare_ring::{Coeff, Poly};
use sudare_rlwe as rlwe;
use sudare_rlwe::Message;
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::PublicKey;
use sudare_rlwe::multiparty::{
    DecryptionShare, Digest, Flooding, Handover, HandoverShare, Ledger, Opening, Party, RefreshShare, Refreshing,
    Session,
};
use sudare_rlwe::release::ReleasePolicy;
use zeroize::Zeroizing;

/// Largest statistical security of the masks of a refresh, and least.
const MASK_SECURITY: std::ops::RangeInclusive<u32> = 40..=64;
/// Bits of a mask at most: its sums are integers of a double word.
const MASK_BITS: f64 = 118.0;

/// What whoever decrypts worked out for a ciphertext and its values: nothing of it is read off the ciphertext.
fn planned(ciphertext: &Ciphertext, (expected, max_abs): (&Expected, f64)) -> Result<State, HeError> {
    expected.check(ciphertext)?;
    if max_abs.is_nan() || ciphertext.bound < max_abs {
        return Err(HeError::Rlwe(RlweError::NotAsComputed {
            what: "value bound",
            found: ciphertext.bound,
            expected: max_abs,
        }));
    }
    Ok(State { scale: expected.scale, bound: max_abs, noise: expected.error * expected.scale })
}

/// Bound on the canonical norm of the noise of a ciphertext whose noise `noise` several parties flooded, on `coefficients` coefficients each.
///
/// # Errors
/// As [`Flooding::new`].
pub fn flooded(policy: ReleasePolicy, noise: f64, coefficients: usize, parties: usize) -> Result<f64, HeError> {
    Ok(noise + Flooding::new(policy, noise)?.bound(&TAIL, coefficients, parties))
}

/// The decryption of one ciphertext by several parties: one release of the session. All of them make it from what they expect of
/// the computation, and so put the same question.
#[derive(Clone, Debug)]
pub struct SharedDecryption {
    params: rlwe::Params,
    opening: Opening,
    state: State,
}

impl SharedDecryption {
    /// Of a ciphertext that `expected` is worked out for, with values of at most `max_abs`, by `parties`. Its slots repeat after `period` of them, a power of two and at
    /// most all of them, N/2: shares are so much shorter.
    ///
    /// # Errors
    /// `RlweError::NotAsComputed` for a ciphertext that is not as expected, or says that its values are smaller; [`HeError::NoPrecision`] where the noise leaves nothing
    /// of values of size one, [`HeError::TooLarge`] where the modulus does not hold value and noise; those of
    /// [`Opening::new`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        (expected, max_abs): (&Expected, f64),
        parties: &[u32],
        policy: ReleasePolicy,
        period: usize,
    ) -> Result<Self, HeError> {
        let state = planned(ciphertext, (expected, max_abs))?;
        Self::under(session, (ciphertext, state), parties, Flooding::new(policy, state.noise)?, period)
    }

    /// The same for what [`flood`] made: shares have far less noise, and so need a smaller modulus. The server must not collude with any
    /// party, and `expected` counts its noise.
    ///
    /// # Errors
    /// As [`SharedDecryption::new`].
    pub fn aided(
        session: &Session,
        Flooded(ciphertext): &Flooded,
        (expected, max_abs): (&Expected, f64),
        parties: &[u32],
        policy: ReleasePolicy,
        period: usize,
    ) -> Result<Self, HeError> {
        let flooding = Flooding::aided(policy, session.params().degree())?;
        Self::under(session, (ciphertext, planned(ciphertext, (expected, max_abs))?), parties, flooding, period)
    }

    fn under(
        session: &Session,
        (ciphertext, state): (&Ciphertext, State),
        parties: &[u32],
        flooding: Flooding,
        period: usize,
    ) -> Result<Self, HeError> {
        let (params, operation) = (session.params(), "decryption by several parties");
        let slots = params.degree() / 2;
        if period == 0 || !slots.is_multiple_of(period) {
            return Err(parameters(format!(
                "slots cannot repeat after {period} of {slots}; take a power of two up to that"
            )));
        }
        let noise = state.noise + flooding.bound(&TAIL, 2 * period, parties.len());
        let state = State { noise, ..state };
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
    pub fn combine<'a>(&self, shares: impl IntoIterator<Item = &'a DecryptionShare>) -> Result<Decrypted, HeError> {
        let phase = self.opening.phase(self.opening.collector().all(shares)?)?;
        let level = phase.basis().len() - 1;
        Ok(Decrypted {
            params: self.params.clone(),
            poly: Poly::clone(&phase),
            level,
            scale: self.state.scale,
            bound: self.state.bound,
            noise: self.state.noise,
            spread: PlainSpread::UNKNOWN,
        })
    }
}

/// A ciphertext that a server flooded and then divided by its last prime: what [`SharedDecryption::aided`] decrypts.
#[derive(Clone, Debug)]
pub struct Flooded(Ciphertext);

impl Flooded {
    /// What came from a server that is trusted to have made it by [`flood`], and no second one for the same result: a ciphertext
    /// does not show it.
    pub fn from_server(ciphertext: Ciphertext) -> Self {
        Self(ciphertext)
    }

    /// The ciphertext.
    pub fn ciphertext(&self) -> &Ciphertext {
        &self.0
    }
}

/// The server's own noise over a result with errors of at most `error`, once for all parties: a fresh encryption of zero under the parties' public
/// key and a discrete Gaussian, and then a division by the last prime q_l. σ is as [`Flooding::new`] has it for the error, that of the fresh encryption
/// and q_l times that of the division (r_0 + r_1·s, whose r_1 everybody sees): noise that covers the first two alone would vanish by the division.
/// So the scale afterwards has to be √(24·τ)·2^(ν/2) times that rounding, and the bits that the result wants. Publish one such ciphertext for a result.
///
/// # Errors
/// `RlweError::WrongKey` for a public key that is not the ciphertext's; `RlweError::Parameters` for an error that is no finite number,
/// `RlweError::OutOfLevels` at level 0; [`HeError::TooLarge`] where the modulus does not hold the noise; [`HeError::NoPrecision`] where it leaves nothing of
/// values of size one.
pub fn flood(
    server: &Evaluator,
    public: &PublicKey,
    ciphertext: &Ciphertext,
    policy: ReleasePolicy,
    error: f64,
) -> Result<Flooded, HeError> {
    let (params, level, operation) = (ciphertext.params(), ciphertext.level(), "flooding");
    ciphertext.key().require("the public key", public.id())?;
    if level == 0 {
        return Err(RlweError::OutOfLevels { operation, level, needed: 1 }.into());
    }
    let fresh = params.sketch().public_encryption().bound(&TAIL);
    let rounding = params.prime_at(level) as f64 * division_bound(params, ciphertext.parts().len());
    let flooding = Flooding::new(policy, error * ciphertext.scale + fresh + rounding)?;
    let noise = fresh + flooding.bound(&TAIL, params.degree(), 1);
    if noise > 0.5 * ciphertext.scale {
        return Err(HeError::NoPrecision { operation, noise: noise.log2(), scale: ciphertext.scale.log2() });
    }
    let basis = params.q_at(level);
    let zero = Message::Coefficients(Poly::<Coeff>::zero(basis));
    let mut parts = rlwe::Encryptor::with_public_key(public)?.encrypt(zero)?.parts().to_vec();
    let mut values = Wiped::<i128>::zeros(params.degree());
    WideGaussian::new(flooding.deviation())?.sample(&mut Seed::from_entropy()?.stream(0), &mut values);
    if let Some(first) = parts.first_mut() {
        first.add_assign(&*Zeroizing::new(Poly::<Coeff>::from_wide(basis, &values).into_eval()));
    }
    let zero = rlwe::Ciphertext::from_parts(params, ciphertext.key(), parts, level)?;
    let state = State { scale: ciphertext.scale, bound: 0.0, noise };
    Ok(Flooded(server.rescale(&server.add(ciphertext, &Ciphertext::new(zero, state))?)?))
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
        (expected, max_abs): (&Expected, f64),
        parties: &[u32],
        policy: ReleasePolicy,
        receiver: &PublicKey,
    ) -> Result<Self, HeError> {
        let state = planned(ciphertext, (expected, max_abs))?;
        let (count, params) = (parties.len() as f64, session.params());
        let flooding = Flooding::new(policy, state.noise)?;
        let switched = count * receiver.params().sketch().public_encryption().bound(&TAIL);
        let flood = flooding.bound(&TAIL, params.degree(), parties.len());
        let state = State { noise: state.noise + switched + flood, ..state };
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
    /// statistical security, 40 to 64: what everybody sees of N coefficients is within 2^−`security` of what no message would show, so k refreshes
    /// of a session within k·2^−`security`: they are no releases and not counted. The
    /// masks follow from what is expected, and not from what the ciphertext says of itself. The ciphertext keeps the primes that
    /// this takes: about `security`, log2 N and the parties' number in bits above the message.
    ///
    /// # Errors
    /// `RlweError::NotAsComputed` for a ciphertext that is not as expected, or says that its values are smaller;
    /// [`HeError::TooLarge`] where its level holds no such masks: refresh earlier; those of [`Refreshing::new`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        (expected, max_abs): (&Expected, f64),
        parties: &[u32],
        security: u32,
    ) -> Result<Self, HeError> {
        let (operation, params, level) = ("a refresh by several parties", session.params(), ciphertext.level());
        let state = planned(ciphertext, (expected, max_abs))?;
        if !MASK_SECURITY.contains(&security) {
            return Err(parameters(format!("masks have 40 to 64 bits of statistical security, not {security}")));
        }
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
