//! Decryption by several parties, each under noise that hides what it would tell.
//!
//! A share c_1·w_i + f_i (with t < n, where zero-sum masks lie over the shares: the sum of the honest ones) shows c_1·w_i, and so the secret, but for f_i. The parties' sum shows the ciphertext's error, from which
//! the secret follows in every scheme (ePrint 2020/1533 for CKKS; 2024/116 for exact schemes, before rounding). f_i hides both: a
//! discrete Gaussian on each coefficient with σ = √(24·τ)·2^(ν/2)·E, for τ releases at ν bits of statistical security and an
//! error of at most E in the canonical norm. That is σ_ct·√(24·N·τ)·2^(ν/2) (Li–Micciancio–Schultz–Sorrell, ePrint 2022/816) for an
//! error polynomial of Euclidean norm √N·σ_ct ≤ E. Every party adds all of it, so that one party that follows the protocol is
//! enough.

use super::keys::single;
use super::question::Question;
use super::share::{DecryptionStep, smaller_ring};
use super::{Collector, DecryptionShare, Digest, Ledger, Party, PartyError, Record, Session};
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::noise::{ERROR_SIGMA, Tails, canonical_bound};
use crate::release::ReleasePolicy;
use sudare_ring::random::{Seed, WideGaussian};
use sudare_ring::wipe::Wiped;
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use zeroize::Zeroizing;

/// How wide the noise of a party's share is, and for which policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flooding {
    policy: ReleasePolicy,
    deviation: f64,
}

impl Flooding {
    /// For a ciphertext whose error is at most `error` in the canonical norm, in integer units: a bound that whoever decrypts
    /// works out from the computation, and does not read from the ciphertext.
    ///
    /// # Errors
    /// [`PartyError::Rlwe`] for a bound that is no finite number, or noise past 2^100.
    pub fn new(policy: ReleasePolicy, error: f64) -> Result<Self, PartyError> {
        if !(error.is_finite() && error >= 0.0) {
            let reason = "a decryption needs a finite bound on the error of what is decrypted".into();
            return Err(RlweError::Parameters { reason }.into());
        }
        let deviation = WideGaussian::new(policy.deviation(2) * error.max(1.0))?.sigma();
        Ok(Self { policy, deviation })
    }

    /// For a ciphertext that the server flooded already, the rounding of its division included, so that the error which the sum shows tells
    /// nothing: what is left to hide is c_1·w_i, which by itself is a sample of Ring-LWE with this noise and hints on it, the shown sums.
    /// σ = √(24·N·τ) times that of fresh errors (the idea of Passelègue–Stehlé, ePrint 2024/1984, with a server that colludes with no party).
    ///
    /// # Errors
    /// [`PartyError::Rlwe`] for noise past 2^100.
    pub fn aided(policy: ReleasePolicy, degree: usize) -> Result<Self, PartyError> {
        let deviation = ERROR_SIGMA * (24.0 * degree as f64 * policy.releases() as f64).sqrt();
        Ok(Self { policy, deviation: WideGaussian::new(deviation)?.sigma() })
    }

    /// The policy.
    pub fn policy(&self) -> ReleasePolicy {
        self.policy
    }

    /// Standard deviation of each coefficient of a share's noise, in integer units.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Bound on the canonical norm of the noise of `parties` shares of `coefficients` coefficients each.
    pub fn bound(&self, tails: &Tails, coefficients: usize, parties: usize) -> f64 {
        canonical_bound(tails, coefficients as f64, parties as f64 * self.deviation.powi(2), 1)
    }

    /// The noise of one share.
    pub(super) fn sample(&self, basis: &RnsBasis, seed: &Seed) -> Result<Zeroizing<Poly<Coeff>>, PartyError> {
        let mut noise = Wiped::<i128>::zeros(basis.degree());
        WideGaussian::new(self.deviation)?.sample(&mut seed.stream(0), &mut noise);
        Ok(Zeroizing::new(Poly::from_wide(basis, &noise)))
    }

    pub(super) fn numbers(&self) -> [u64; 3] {
        [self.policy.releases(), self.policy.security_bits().into(), self.deviation.to_bits()]
    }
}

/// A ciphertext of two parts of this session, and the parties that take part.
pub(super) fn check(
    session: &Session,
    ciphertext: &Ciphertext,
    parties: &[u32],
    level: usize,
) -> Result<Vec<u32>, PartyError> {
    let operation = "decryption by several parties";
    session.params().require("the ciphertext", ciphertext.params())?;
    session.key().require("the ciphertext", ciphertext.key())?;
    if ciphertext.parts().len() != 2 {
        return Err(RlweError::Degree { operation, expected: 2, found: ciphertext.parts().len() }.into());
    }
    if level > ciphertext.level() {
        return Err(RlweError::NoSuchLevel { operation, wanted: level, highest: ciphertext.level() }.into());
    }
    session.active(parties)
}

/// What the secret is multiplied with, by its residues modulo the first prime: a ciphertext that lost primes, or got a plaintext
/// added, is the same subject.
pub(super) fn subject(session: &Session, ciphertext: &Ciphertext) -> Digest {
    let first = ciphertext.parts()[1].truncated(1);
    Question::of(session, "subject").polys([&first]).digest()
}

/// Who decrypts what, and how: the question that decryption shares answer.
#[derive(Clone, Debug)]
pub struct Opening {
    session: Session,
    /// Both parts, over the primes of `level`.
    parts: [Poly<Eval>; 2],
    active: Vec<u32>,
    flooding: Flooding,
    record: Record,
    ring: RnsBasis,
    subject: Digest,
    question: Digest,
}

impl Opening {
    /// The decryption of `ciphertext` by `parties`, modulo the primes of `level`: as few as hold the message and all noise, since
    /// shares are that much shorter. With `gap` above 1 shares have every `gap`-th coefficient alone, which is all of a message that
    /// is a polynomial in X^gap.
    ///
    /// # Errors
    /// [`PartyError::Rlwe`] for a ciphertext of other parameters, of another key, of three parts or below the level;
    /// [`PartyError::ActiveSet`], [`PartyError::NoSuchParty`], [`PartyError::Gap`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        parties: &[u32],
        flooding: Flooding,
        (level, gap): (usize, usize),
    ) -> Result<Self, PartyError> {
        let active = check(session, ciphertext, parties, level)?;
        let ring = smaller_ring(session, gap as u64, level)?;
        let [c0, c1] = ciphertext.both().map(|part| part.truncated(level + 1));
        let record = Record { element: gap as u64, level };
        let question = Question::of(session, "decryption")
            .numbers([level as u64, gap as u64])
            .numbers(active.iter().map(|party| u64::from(*party)))
            .numbers(flooding.numbers())
            .polys([&c1]);
        let (subject, question) = (subject(session, ciphertext), question.digest());
        Ok(Self { session: session.clone(), parts: [c0, c1], active, flooding, record, ring, subject, question })
    }

    /// What shares answer.
    pub fn question(&self) -> Digest {
        self.question
    }

    /// The noise of a share.
    pub fn flooding(&self) -> Flooding {
        self.flooding
    }

    /// The parties that take part.
    pub fn active(&self) -> &[u32] {
        &self.active
    }

    /// Begins the sum of their shares.
    pub fn collector(&self) -> Collector<DecryptionStep> {
        Collector::new(&self.session, self.question, vec![self.record], self.active.iter().copied())
    }

    fn every(&self, poly: &Poly<Coeff>) -> Poly<Coeff> {
        match self.record.element {
            1 => poly.clone(),
            gap => poly.every(gap as usize, &self.ring),
        }
    }

    /// c_0 + Σ shares, modulo the primes of the level: what the scheme reads its message from. Coefficients that no share had are
    /// zero.
    ///
    /// # Errors
    /// [`PartyError::Missing`]; [`PartyError::WrongSession`] if the shares were collected for another decryption.
    pub fn phase(&self, shares: Collector<DecryptionStep>) -> Result<Zeroizing<Poly<Coeff>>, PartyError> {
        if !shares.is_for(&self.question) {
            return Err(PartyError::WrongSession { what: "what was collected" });
        }
        let mut sum = Zeroizing::new(single(shares.finish()?)?.into_coeff());
        sum.add_assign(&self.every(&self.parts[0].to_coeff()));
        Ok(match self.record.element {
            1 => sum,
            gap => Zeroizing::new(sum.spread(gap as usize, self.parts[0].basis())),
        })
    }
}

impl Party {
    /// This party's share of a decryption, c_1·w_i + f_i and, with t < n, a zero-sum mask: one of the session's releases. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// [`PartyError::NotActive`], [`PartyError::NoSecretShare`], [`PartyError::WrongSession`]; as [`Ledger::admit`], and nothing is given
    /// out then.
    pub fn decryption_share(&self, opening: &Opening, ledger: &mut dyn Ledger) -> Result<DecryptionShare, PartyError> {
        if opening.session != self.session {
            return Err(PartyError::WrongSession { what: "the question" });
        }
        let weighted = self.weighted(&opening.active, opening.record.level)?;
        self.admit(ledger, opening.subject, opening.question, Some(opening.flooding.policy))?;
        let flood = opening.flooding.sample(&opening.ring, &self.randomness("flood", &opening.question))?;
        let product = Zeroizing::new(opening.parts[1].mul(&weighted).into_coeff());
        let mut share = opening.every(&product);
        share.add_assign(&flood);
        let mut share = share.into_eval();
        self.hide(&mut share, &opening.active, &opening.question, 0);
        Ok(self.says(opening.question, vec![opening.record], vec![share]))
    }
}
