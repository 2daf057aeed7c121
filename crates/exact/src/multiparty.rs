//! BFV and BGV under the key of several parties ([`sudare_rlwe::multiparty`]): decryption, results for one receiver, refresh.
//!
//! Whoever adds the shares sees the noise before it is rounded away, and from it the secret would follow (ePrint 2024/116). So a
//! share of a decryption is flooded here as in CKKS; the message is exact all the same.

use super::ciphertext::{Ciphertext, State, check_fits};
use super::params::IntegerParams;
use super::plaintext::Plaintext;
use super::scheme::Scheme;
use crate::error::ExactError;
use std::marker::PhantomData;
use sudare_ring::random::Seed;
use sudare_ring::{Coeff, Poly};
use sudare_rlwe::RlweError;
use sudare_rlwe::keys::PublicKey;
use sudare_rlwe::multiparty::{
    DecryptionShare, Digest, Flooding, Handover, HandoverShare, Ledger, Opening, Party, RefreshShare, Refreshing,
    Session,
};
use sudare_rlwe::noise::NEGLIGIBLE;
use sudare_rlwe::release::ReleasePolicy;
use zeroize::Zeroizing;

/// Refuses a ciphertext of other parameters than the session's, or one that states less noise than whoever decrypts worked out.
fn check<S: Scheme>(session: &Session, ciphertext: &Ciphertext<S>, noise: f64) -> Result<(), ExactError> {
    session.params().require("the ciphertext", ciphertext.params.rlwe())?;
    if ciphertext.noise < noise * (1.0 - (-40f64).exp2()) {
        return Err(ExactError::Rlwe(RlweError::NotAsComputed {
            what: "noise bound",
            found: ciphertext.noise,
            expected: noise,
        }));
    }
    Ok(())
}

/// m from t·Σ c_i·s^i modulo the first primes, of a ciphertext with the plaintext factor `factor`.
fn message(params: &IntegerParams, mut phase: Zeroizing<Poly<Coeff>>, factor: u64) -> Result<Plaintext, ExactError> {
    let t = params.modulus();
    let level = phase.basis().len() - 1;
    phase.mul_scalars(params.t_mod_q(level));
    let coefficients = phase.modulo(t, t.inverse(factor)?)?;
    Ok(Plaintext { params: params.clone(), coefficients })
}

/// The decryption of one ciphertext by several parties: one release of the session. All of them make it from the noise that they
/// worked out for the computation, and so put the same question.
#[derive(Clone, Debug)]
pub struct SharedDecryption<S: Scheme> {
    params: IntegerParams,
    opening: Opening,
    factor: u64,
    scheme: PhantomData<S>,
}

impl<S: Scheme> SharedDecryption<S> {
    /// Of a ciphertext with noise of at most `noise`, by `parties`.
    ///
    /// # Errors
    /// `RlweError::NotAsComputed` for a ciphertext that states less noise; `RlweError::NoBudget` where the modulus does not hold the
    /// noise of the shares: take larger parameters, or decrypt at a higher level; those of [`Opening::new`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext<S>,
        noise: f64,
        parties: &[u32],
        policy: ReleasePolicy,
    ) -> Result<Self, ExactError> {
        check(session, ciphertext, noise)?;
        let params = &ciphertext.params;
        let flooding = Flooding::new(policy, noise)?;
        let total = noise + flooding.bound(&NEGLIGIBLE, params.degree(), parties.len());
        let level = (0..=ciphertext.level()).find(|level| params.noise().fits(*level, total));
        let level = level.unwrap_or_else(|| ciphertext.level());
        check_fits(params, "decryption by several parties", level, total)?;
        let opening = Opening::new(session, ciphertext.inner(), parties, flooding, (level, 1))?;
        Ok(Self { params: params.clone(), opening, factor: ciphertext.factor, scheme: PhantomData })
    }

    /// What shares answer.
    pub fn question(&self) -> Digest {
        self.opening.question()
    }

    /// The noise of a share.
    pub fn flooding(&self) -> Flooding {
        self.opening.flooding()
    }

    /// A party's share. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// As [`Party::decryption_share`].
    pub fn share(&self, party: &Party, ledger: &mut dyn Ledger) -> Result<DecryptionShare, ExactError> {
        Ok(party.decryption_share(&self.opening, ledger)?)
    }

    /// The message, from the shares of all that take part.
    ///
    /// # Errors
    /// `PartyError`, which names the party.
    pub fn combine<'a>(&self, shares: impl IntoIterator<Item = &'a DecryptionShare>) -> Result<Plaintext, ExactError> {
        let phase = self.opening.phase(self.opening.collector().all(shares)?)?;
        message(&self.params, phase, self.factor)
    }
}

/// A result for one receiver: the ciphertext under its key, and nothing for the parties.
#[derive(Clone, Debug)]
pub struct SharedHandover<S: Scheme> {
    params: IntegerParams,
    handover: Handover,
    state: State,
    scheme: PhantomData<S>,
}

impl<S: Scheme> SharedHandover<S> {
    /// The switch of a ciphertext to the key of `receiver`, whose parameters with the same t are `params`.
    ///
    /// # Errors
    /// As [`SharedDecryption::new`]; `PartyError::Receiver` for a key over other primes; `RlweError::WrongParameters`,
    /// `RlweError::WrongPlainModulus`.
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext<S>,
        noise: f64,
        parties: &[u32],
        policy: ReleasePolicy,
        (params, receiver): (&IntegerParams, &PublicKey),
    ) -> Result<Self, ExactError> {
        check(session, ciphertext, noise)?;
        params.rlwe().require("the receiver's public key", receiver.params())?;
        if params.t() != ciphertext.params.t() {
            let (found, expected) = (params.t(), ciphertext.params.t());
            return Err(ExactError::Rlwe(RlweError::WrongPlainModulus {
                what: "the receiver's parameters",
                found,
                expected,
            }));
        }
        let flooding = Flooding::new(policy, noise)?;
        let switched = parties.len() as f64 * params.noise().public_encryption();
        let noise = noise + switched + flooding.bound(&NEGLIGIBLE, params.degree(), parties.len());
        check_fits(params, "a result for one receiver", ciphertext.level(), noise)?;
        let handover = Handover::new(session, ciphertext.inner(), parties, flooding, receiver)?;
        let state = State { factor: ciphertext.factor, noise };
        Ok(Self { params: params.clone(), handover, state, scheme: PhantomData })
    }

    /// A party's share. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// As [`Party::handover_share`].
    pub fn share(&self, party: &Party, ledger: &mut dyn Ledger) -> Result<HandoverShare, ExactError> {
        Ok(party.handover_share(&self.handover, ledger)?)
    }

    /// The ciphertext under the receiver's key.
    ///
    /// # Errors
    /// `PartyError`, which names the party.
    pub fn combine<'a>(
        &self,
        shares: impl IntoIterator<Item = &'a HandoverShare>,
    ) -> Result<Ciphertext<S>, ExactError> {
        let inner = self.handover.ciphertext(self.handover.collector().all(shares)?)?;
        Ok(Ciphertext::new(&self.params, inner, self.state))
    }
}

/// A refresh by several parties: all primes again, and the noise of a fresh ciphertext. The message is masked modulo t and so hidden
/// entirely; the noise, which everybody sees, is flooded.
#[derive(Clone, Debug)]
pub struct SharedRefresh<S: Scheme> {
    params: IntegerParams,
    refreshing: Refreshing,
    factor: u64,
    scheme: PhantomData<S>,
}

impl<S: Scheme> SharedRefresh<S> {
    /// Of a ciphertext with noise of at most `noise`, by `parties`: one of the session's releases.
    ///
    /// # Errors
    /// As [`SharedDecryption::new`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext<S>,
        noise: f64,
        parties: &[u32],
        policy: ReleasePolicy,
    ) -> Result<Self, ExactError> {
        check(session, ciphertext, noise)?;
        let (params, count) = (&ciphertext.params, parties.len());
        // What everybody sees has the carry of the masks' sum modulo t beside the noise.
        let masks = count as f64 * params.noise().message();
        let flooding = Flooding::new(policy, noise + masks)?;
        let total = noise + masks + flooding.bound(&NEGLIGIBLE, params.degree(), count);
        check_fits(params, "a refresh by several parties", ciphertext.level(), total)?;
        // All that a mask depends on, so that one question has one answer.
        let name = format!("{}, modulo {}, factor {}", S::NAME, params.t(), ciphertext.factor);
        let refreshing = Refreshing::new(session, ciphertext.inner(), parties, &name, Some(flooding))?;
        Ok(Self { params: params.clone(), refreshing, factor: ciphertext.factor, scheme: PhantomData })
    }

    fn fresh_factor(&self) -> u64 {
        S::fresh_factor(&self.params, self.params.max_level())
    }

    /// A party's share. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// As [`Party::refresh_share`].
    pub fn share(&self, party: &Party, ledger: &mut dyn Ledger) -> Result<RefreshShare, ExactError> {
        let level = self.refreshing.level();
        let masks = || {
            let seed = party.randomness_for(S::NAME, &self.refreshing.question());
            let mask = Plaintext { params: self.params.clone(), coefficients: uniform(&self.params, &seed) };
            [(level, self.factor), (self.params.max_level(), self.fresh_factor())]
                .map(|(level, factor)| Zeroizing::new(mask.addend(level, factor).into_eval()))
        };
        Ok(party.refresh_share(&self.refreshing, masks, ledger)?)
    }

    /// The ciphertext with all primes.
    ///
    /// # Errors
    /// `PartyError`, which names the party.
    pub fn combine<'a>(&self, shares: impl IntoIterator<Item = &'a RefreshShare>) -> Result<Ciphertext<S>, ExactError> {
        let (masked, mut sum) = self.refreshing.parts(self.refreshing.collector().all(shares)?)?;
        let masked = message(&self.params, Zeroizing::new(masked), self.factor)?;
        let (top, factor) = (self.params.max_level(), self.fresh_factor());
        sum.add_assign(&masked.addend(top, factor).into_eval());
        let (count, model) = (self.refreshing.active().len() as f64, self.params.noise());
        let noise = (count + 1.0) * model.message() + count * model.secret_encryption();
        Ok(Ciphertext::new(&self.params, self.refreshing.ciphertext(sum)?, State { factor, noise }))
    }
}

/// N integers uniform modulo t, to within 2^−68 each.
fn uniform(params: &IntegerParams, seed: &Seed) -> Vec<u64> {
    let mut words = Zeroizing::new(vec![0u64; 2 * params.degree()]);
    seed.stream(0).fill_u64(&mut words);
    let double = |pair: &[u64]| u128::from(pair[0]) | u128::from(pair[1]) << 64;
    words.chunks_exact(2).map(|pair| params.modulus().reduce_u128(double(pair))).collect()
}
