//! A ciphertext with all primes again, by the parties in place of bootstrapping.
//!
//! Each party masks its share of the decryption by M_i and encrypts M_i anew: what everybody sees is the message less Σ M_i, and the sum
//! of both is the message (ePrint 2020/304, section 5). What M_i is, the scheme says: integers far larger than the message in
//! CKKS, uniform modulo t in the exact schemes.

use super::decryption::{check, subject};
use super::question::Question;
use super::share::RefreshStep;
use super::{Collector, Digest, Flooding, Ledger, Party, PartyError, Record, RefreshShare, Session};
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::sample::{error, zero};
use sudare_ring::ops::mask;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Coeff, Eval, Poly};
use zeroize::Zeroizing;

/// Who refreshes what: the question that shares of a refresh answer.
#[derive(Clone, Debug)]
pub struct Refreshing {
    session: Session,
    ciphertext: Ciphertext,
    active: Vec<u32>,
    flooding: Option<Flooding>,
    record: Record,
    subject: Digest,
    question: Digest,
}

impl Refreshing {
    /// The refresh of `ciphertext` by `parties`, under masks that `masks` names. `flooding` hides the error where the scheme's masks do
    /// not.
    ///
    /// # Errors
    /// As [`super::Opening::new`].
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        parties: &[u32],
        masks: &str,
        flooding: Option<Flooding>,
    ) -> Result<Self, PartyError> {
        let level = ciphertext.level();
        let active = check(session, ciphertext, parties, level)?;
        let record = Record { element: 0, level };
        let question = Question::of(session, "refresh")
            .bytes(masks.as_bytes())
            .numbers([level as u64])
            .numbers(active.iter().map(|party| u64::from(*party)))
            .numbers(flooding.iter().flat_map(Flooding::numbers))
            .polys([&ciphertext.parts()[1]]);
        let (subject, question) = (subject(session, ciphertext), question.digest());
        Ok(Self {
            session: session.clone(),
            ciphertext: ciphertext.clone(),
            active,
            flooding,
            record,
            subject,
            question,
        })
    }

    /// What shares answer.
    pub fn question(&self) -> Digest {
        self.question
    }

    /// The parties that take part.
    pub fn active(&self) -> &[u32] {
        &self.active
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The level of the ciphertext.
    pub fn level(&self) -> usize {
        self.record.level
    }

    /// Begins the sum of the parties' shares.
    pub fn collector(&self) -> Collector<RefreshStep> {
        Collector::new(&self.session, self.question, vec![self.record], self.active.iter().copied())
    }

    /// The mask of the refreshed ciphertext.
    fn mask(&self) -> MaskSeed {
        self.session.masks(&format!("refresh {}", self.question.hex()), 0)
    }

    /// The masked message modulo the ciphertext's primes, and the refreshed ciphertext of the masks alone: the scheme lifts the first and
    /// adds it to the second.
    ///
    /// # Errors
    /// [`PartyError::Missing`]; [`PartyError::WrongSession`] if the shares were collected for another refresh.
    pub fn parts(&self, shares: Collector<RefreshStep>) -> Result<(Poly<Coeff>, Poly<Eval>), PartyError> {
        if !shares.is_for(&self.question) {
            return Err(PartyError::WrongSession { what: "what was collected" });
        }
        let missing = || RlweError::Internal { what: "a sum has no polynomial" };
        let mut sums = shares.finish()?.into_iter();
        let mut masked = sums.next().ok_or_else(missing)?;
        masked.add_assign(&self.ciphertext.parts()[0]);
        Ok((masked.into_coeff(), sums.next().ok_or_else(missing)?))
    }

    /// The refreshed ciphertext, from the sum of both of [`Refreshing::parts`] over all primes.
    ///
    /// # Errors
    /// [`PartyError::Rlwe`] for a sum over other primes.
    pub fn ciphertext(&self, sum: Poly<Eval>) -> Result<Ciphertext, PartyError> {
        let params = self.session.params();
        Ok(Ciphertext::from_seeded(params, self.session.key(), sum, &self.mask(), params.max_level())?)
    }
}

impl Party {
    /// This party's share of a refresh, (c_1·w_i − M_i + e_i, −a·w_i + M_i + e'_i), with M_i over the ciphertext's primes and over all. Asked
    /// again, it is the same bytes if the masks are; they are drawn from [`Party::randomness_for`] of the question.
    ///
    /// # Errors
    /// As [`Party::decryption_share`]; [`PartyError::Rlwe`] for masks over other primes.
    pub fn refresh_share(
        &self,
        refreshing: &Refreshing,
        masks: impl FnOnce() -> [Zeroizing<Poly<Eval>>; 2],
        ledger: &mut dyn Ledger,
    ) -> Result<RefreshShare, PartyError> {
        if refreshing.session != self.session {
            return Err(PartyError::WrongSession { what: "the question" });
        }
        let (params, level, question) = (self.session.params(), refreshing.record.level, refreshing.question);
        let [low, all] = [level, params.max_level()].map(|level| self.weighted(&refreshing.active, level));
        let (low, all) = (low?, all?);
        let [below, above] = masks();
        if below.basis() != params.q_at(level) || above.basis() != params.q() {
            return Err(RlweError::Parameters {
                reason: "the masks of a refresh have to be over the primes of its level and over all primes".into(),
            }
            .into());
        }
        let policy = refreshing.flooding.map(|flooding| flooding.policy());
        self.admit(ledger, refreshing.subject, question, policy)?;
        let errors = self.randomness("errors", &question);
        let mut masked = match refreshing.flooding {
            Some(flooding) => {
                let flood = flooding.sample(params.q_at(level), &self.randomness("flood", &question))?;
                Poly::clone(&flood).into_eval()
            }
            None => Poly::clone(&*error(&mut errors.stream(0), params.q_at(level))),
        };
        masked.mul_add(&refreshing.ciphertext.parts()[1], &low);
        masked.sub_assign(&below);
        let a = mask(params.q(), &refreshing.mask(), 0);
        let mut fresh = zero(&a, &all, &error(&mut errors.stream(1), params.q()));
        fresh.add_assign(&above);
        self.hide(&mut masked, &refreshing.active, &question, 0);
        self.hide(&mut fresh, &refreshing.active, &question, 1);
        Ok(self.says(question, vec![refreshing.record], vec![masked, fresh]))
    }
}
