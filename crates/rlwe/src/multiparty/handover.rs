//! A result for one receiver alone: a key switch from the parties' key to a public key.

use super::decryption::{check, subject};
use super::question::Question;
use super::share::HandoverStep;
use super::{Collector, Digest, Flooding, HandoverShare, Ledger, Party, PartyError, Record, Session};
use crate::ciphertext::Ciphertext;
use crate::error::RlweError;
use crate::keys::PublicKey;
use crate::sample::error;
use sudare_ring::random::ternary;
use sudare_ring::{Coeff, Poly};
use zeroize::Zeroizing;

/// Who hands what over to whom: the question that shares of a key switch answer. The receiver is one of the parties, with a key of
/// its own, or anybody else.
#[derive(Clone, Debug)]
pub struct Handover {
    session: Session,
    ciphertext: Ciphertext,
    receiver: PublicKey,
    active: Vec<u32>,
    flooding: Flooding,
    record: Record,
    subject: Digest,
    question: Digest,
}

impl Handover {
    /// The switch of `ciphertext` by `parties` to the key of `receiver`, over the same ring and primes.
    ///
    /// # Errors
    /// As [`super::Opening::new`]; [`PartyError::Receiver`] for a key over other primes.
    pub fn new(
        session: &Session,
        ciphertext: &Ciphertext,
        parties: &[u32],
        flooding: Flooding,
        receiver: &PublicKey,
    ) -> Result<Self, PartyError> {
        let level = ciphertext.level();
        let active = check(session, ciphertext, parties, level)?;
        if receiver.params().q() != session.params().q() {
            return Err(PartyError::Receiver);
        }
        let record = Record { element: 0, level };
        let question = Question::of(session, "handover")
            .numbers([level as u64])
            .numbers(active.iter().map(|party| u64::from(*party)))
            .numbers(flooding.numbers())
            .bytes(&receiver.id().0)
            .polys(receiver.polys())
            .polys([&ciphertext.parts()[1]]);
        let (subject, question) = (subject(session, ciphertext), question.digest());
        let (session, ciphertext, receiver) = (session.clone(), ciphertext.clone(), receiver.clone());
        Ok(Self { session, ciphertext, receiver, active, flooding, record, subject, question })
    }

    /// Begins the sum of the parties' shares.
    pub fn collector(&self) -> Collector<HandoverStep> {
        Collector::new(&self.session, self.question, vec![self.record], self.active.iter().copied())
    }

    /// The ciphertext under the receiver's key.
    ///
    /// # Errors
    /// [`PartyError::Missing`]; [`PartyError::WrongSession`] if the shares were collected for another switch.
    pub fn ciphertext(&self, shares: Collector<HandoverStep>) -> Result<Ciphertext, PartyError> {
        if !shares.is_for(&self.question) {
            return Err(PartyError::WrongSession { what: "what was collected" });
        }
        let mut parts = shares.finish()?;
        let missing = RlweError::Internal { what: "a sum has no polynomial" };
        parts.first_mut().ok_or(missing)?.add_assign(&self.ciphertext.parts()[0]);
        Ok(Ciphertext::from_parts(self.receiver.params(), self.receiver.id(), parts, self.record.level)?)
    }
}

impl Party {
    /// This party's share of a key switch, (c_1·w_i + v_i·b + f_i, v_i·a + e_i) for the receiver's key (b, a) and a ternary v_i: one
    /// of the session's releases, since the receiver sees the error. Asked again, it is the same bytes.
    ///
    /// # Errors
    /// As [`Party::decryption_share`].
    pub fn handover_share(&self, handover: &Handover, ledger: &mut dyn Ledger) -> Result<HandoverShare, PartyError> {
        if handover.session != self.session {
            return Err(PartyError::WrongSession { what: "the question" });
        }
        let (level, question) = (handover.record.level, handover.question);
        let weighted = self.weighted(&handover.active, level)?;
        self.admit(ledger, handover.subject, question, Some(handover.flooding.policy()))?;
        let basis = self.session.params().q_at(level);
        let mut v = Zeroizing::new(vec![0i64; basis.degree()]);
        ternary(&mut self.randomness("ephemeral secret", &question).stream(0), &mut v);
        let v = Zeroizing::new(Poly::<Coeff>::from_signed(basis, &v).into_eval());
        let flood = handover.flooding.sample(basis, &self.randomness("flood", &question))?;
        let mut first = Poly::clone(&flood).into_eval();
        let errors = self.randomness("errors", &question);
        let mut second = Poly::clone(&*error(&mut errors.stream(0), basis));
        let [b, a] = handover.receiver.polys();
        first.mul_add(&handover.ciphertext.parts()[1], &weighted);
        first.mul_add(&v, b);
        second.mul_add(&v, a);
        self.hide(&mut first, &handover.active, &question, 0);
        Ok(self.says(question, vec![handover.record], vec![first, second]))
    }
}
