//! Keys from the messages of all parties.

use super::question::Question;
use super::share::{GaloisStep, PublicKeyStep, RelinFirstStep, RelinSecondStep};
use super::{
    Collector, Digest, GaloisShare, Ledger, Party, PartyError, PublicKeyShare, Record, RelinFirstShare,
    RelinSecondShare, Session,
};
use crate::error::RlweError;
use crate::ids::ParamsHash;
use crate::keys::{GaloisKey, KeySwitchKey, PublicKey, inverse_element};
use crate::params::Params;
use crate::sample::{error, zero};
use crate::switching::NO_SPECIAL_PRIMES;
use crate::wire::packing::packed_bytes;
use crate::wire::{Fields, Header, ObjectType, Reader, State, Wire, WireError, Writer};
use std::io::Write;
use sudare_ring::automorphism::EvalPermutation;
use sudare_ring::ops::mask;
use sudare_ring::random::ternary;
use sudare_ring::{Coeff, Eval, Poly, threads};
use zeroize::Zeroizing;

fn public_key_record(session: &Session) -> Record {
    Record { element: 0, level: session.params().max_level() }
}

fn check_level(session: &Session, level: usize) -> Result<Record, PartyError> {
    session.params().expect_level("key generation", level)?;
    if session.params().p().is_empty() {
        return Err(RlweError::Parameters { reason: NO_SPECIAL_PRIMES.into() }.into());
    }
    Ok(Record { element: 0, level })
}

/// The records of Galois keys in the order of their elements; of two for one element the higher level stays.
fn galois_records(session: &Session, elements: &[(u64, usize)]) -> Result<Vec<Record>, PartyError> {
    let mut records = elements
        .iter()
        .map(|(element, level)| {
            EvalPermutation::new(session.params().degree(), *element)?;
            check_level(session, *level).map(|record| Record { element: *element, ..record })
        })
        .collect::<Result<Vec<_>, PartyError>>()?;
    records.sort_by_key(|record| (record.element, std::cmp::Reverse(record.level)));
    records.dedup_by_key(|record| record.element);
    if records.is_empty() || records.len() > super::share::MAX_RECORDS {
        let (found, most) = (records.len(), super::share::MAX_RECORDS);
        let reason = format!("{found} Galois keys are asked for; make 1 to {most} at a time");
        return Err(RlweError::Parameters { reason }.into());
    }
    Ok(records)
}

fn question(session: &Session, step: &str, records: &[Record]) -> Digest {
    let numbers = records.iter().flat_map(|r| [r.element, r.level as u64]);
    Question::of(session, step).numbers(numbers).digest()
}

/// −a·s + e + P·g_j·`from`: digit `j` of a party's part of a key-switching key.
pub(super) fn digit(
    params: &Params,
    (level, j): (usize, usize),
    (a, s, e): (&Poly<Eval>, &Poly<Eval>, &Poly<Eval>),
    from: &Poly<Eval>,
) -> Poly<Eval> {
    let mut b = zero(a, s, e);
    params.tables(level).gadget.add_digit(j, &mut b, from);
    b
}

impl Party {
    /// This party's share of the public key.
    pub fn public_key_share(&self) -> PublicKeyShare {
        let (session, record) = (&self.session, public_key_record(&self.session));
        let question = question(session, "public key", &[record]);
        let basis = session.params().q();
        let errors = self.randomness("errors", &question);
        let a = mask(basis, &session.masks("public key", 0), 0);
        let b = zero(&a, &self.secret.at_level(record.level), &error(&mut errors.stream(0), basis));
        self.says(question, vec![record], vec![b])
    }

    /// This party's shares of Galois keys, each for ciphertexts up to its level; in parallel inside a thread pool.
    ///
    /// # Errors
    /// [`PartyError::Rlwe`] for a level that there is not, an element that names no automorphism, no element or over 4096.
    pub fn galois_share(&self, elements: &[(u64, usize)]) -> Result<GaloisShare, PartyError> {
        let (session, records) = (&self.session, galois_records(&self.session, elements)?);
        let question = question(session, "galois keys", &records);
        let params = session.params();
        let shares = threads::map_alone(records.len(), |i| {
            let Record { element, level } = records[i];
            // A key has the same errors whatever list it is asked for in.
            let errors = self.randomness("errors", &self::question(session, "galois key", &records[i..=i]));
            let masks = session.key_masks("galois", &records[i]);
            let permutation = EvalPermutation::new(params.degree(), inverse_element(element, params.degree()))?;
            let s = self.secret.extended(level);
            let target = Zeroizing::new(s.permuted(&permutation));
            let basis = params.qp_at(level);
            let one = |j: usize| {
                let a = mask(basis, &masks, j as u64);
                digit(params, (level, j), (&a, &target, &error(&mut errors.stream(j as u64), basis)), &s)
            };
            Ok((0..params.digits_at(level)).map(one).collect::<Vec<_>>())
        });
        let polys = shares.into_iter().collect::<Result<Vec<_>, PartyError>>()?;
        Ok(self.says(question, records, polys.into_iter().flatten().collect()))
    }

    /// u_i, ternary and of one relinearisation key.
    fn ephemeral(&self, first: &Digest, level: usize) -> Zeroizing<Poly<Eval>> {
        let params = self.session.params();
        let mut u = Zeroizing::new(vec![0i64; params.degree()]);
        ternary(&mut self.randomness("ephemeral secret", first).stream(0), &mut u);
        Zeroizing::new(Poly::<Coeff>::from_signed(params.qp_at(level), &u).into_eval())
    }

    /// This party's share of round 1 of the relinearisation key, for ciphertexts up to `level`: for each digit
    /// h_0j = −a_j·u_i + P·g_j·s_i + e and h_1j = a_j·s_i + e.
    ///
    /// # Errors
    /// [`PartyError::Rlwe`] for a level that there is not, or without special primes.
    pub fn relin_first_share(&self, level: usize) -> Result<RelinFirstShare, PartyError> {
        let (session, record) = (&self.session, check_level(&self.session, level)?);
        let question = question(session, FIRST, &[record]);
        let (params, basis) = (session.params(), session.params().qp_at(level));
        let (s, u) = (self.secret.extended(level), self.ephemeral(&question, level));
        let (masks, errors) = (session.key_masks(FIRST, &record), self.randomness("errors", &question));
        let pairs = threads::map_alone(params.digits_at(level), |j| {
            let a = mask(basis, &masks, j as u64);
            let [e0, e1] = [0, 1].map(|half| error(&mut errors.stream(2 * j as u64 + half), basis));
            let mut h1 = Poly::clone(&e1);
            h1.mul_add(&a, &s);
            [digit(params, (level, j), (&a, &u, &e0), &s), h1]
        });
        Ok(self.says(question, vec![record], pairs.into_iter().flatten().collect()))
    }

    /// This party's share of round 2: for each digit s_i·h_0j + u_i·h_1j − a'_j·s_i + e. The mask a' of the key is the session's,
    /// so that the key travels as any other.
    ///
    /// # Errors
    /// [`PartyError::WrongSession`] for a sum of another session; as [`Ledger::admit`].
    pub fn relin_second_share(&self, sum: &RelinSum, ledger: &mut dyn Ledger) -> Result<RelinSecondShare, PartyError> {
        let (session, record) = (&self.session, sum.record);
        if sum.session != *session {
            return Err(PartyError::WrongSession { what: "the sum of round 1" });
        }
        let first = question(session, FIRST, &[record]);
        let question = sum.question();
        self.admit(ledger, first, question, None)?;
        let level = record.level;
        let (params, basis) = (session.params(), session.params().qp_at(level));
        let (s, u) = (self.secret.extended(level), self.ephemeral(&first, level));
        let (masks, errors) = (session.key_masks(SECOND, &record), self.randomness("errors", &question));
        let polys = threads::map_alone(params.digits_at(level), |j| {
            let a = mask(basis, &masks, j as u64);
            let mut b = zero(&a, &s, &error(&mut errors.stream(j as u64), basis));
            b.mul_add(&s, &sum.polys[2 * j]);
            b.mul_add(&u, &sum.polys[2 * j + 1]);
            b
        });
        Ok(self.says(question, vec![record], polys))
    }
}

const FIRST: &str = "relinearisation 1";
const SECOND: &str = "relinearisation 2";

/// Begins the sum of all parties' shares of the public key.
pub fn public_key(session: &Session) -> Collector<PublicKeyStep> {
    let record = public_key_record(session);
    let question = question(session, "public key", &[record]);
    Collector::new(session, question, vec![record], 0..session.parties())
}

impl Collector<PublicKeyStep> {
    /// The public key.
    ///
    /// # Errors
    /// [`PartyError::Missing`].
    pub fn public_key(self) -> Result<PublicKey, PartyError> {
        let session = self.session().clone();
        let b = single(self.finish()?)?;
        Ok(PublicKey::from_parts(session.params(), session.key(), session.masks("public key", 0), b)?)
    }
}

/// The only polynomial of a sum.
pub(super) fn single(polys: Vec<Poly<Eval>>) -> Result<Poly<Eval>, PartyError> {
    let missing = RlweError::Internal { what: "a sum has no polynomial" };
    Ok(polys.into_iter().next().ok_or(missing)?)
}

/// Begins the sum of all parties' shares of Galois keys: element and level of each.
///
/// # Errors
/// As [`Party::galois_share`].
pub fn galois_keys(session: &Session, elements: &[(u64, usize)]) -> Result<Collector<GaloisStep>, PartyError> {
    let records = galois_records(session, elements)?;
    Ok(Collector::new(session, question(session, "galois keys", &records), records, 0..session.parties()))
}

impl Collector<GaloisStep> {
    /// The keys, in the order of their elements.
    ///
    /// # Errors
    /// [`PartyError::Missing`].
    pub fn galois_keys(self) -> Result<Vec<GaloisKey>, PartyError> {
        let (session, records) = (self.session().clone(), self.records().to_vec());
        let mut polys = self.finish()?.into_iter();
        let params = session.params();
        let one = |record: &Record| {
            let b = polys.by_ref().take(params.digits_at(record.level)).collect();
            let key = KeySwitchKey::from_parts(params, record.level, session.key_masks("galois", record), b)?;
            Ok(GaloisKey::from_parts(record.element, key)?)
        };
        records.iter().map(one).collect()
    }
}

/// Begins the sum of all parties' shares of round 1 of the relinearisation key.
///
/// # Errors
/// As [`Party::relin_first_share`].
pub fn relin_sum(session: &Session, level: usize) -> Result<Collector<RelinFirstStep>, PartyError> {
    let record = check_level(session, level)?;
    Ok(Collector::new(session, question(session, FIRST, &[record]), vec![record], 0..session.parties()))
}

impl Collector<RelinFirstStep> {
    /// What round 2 answers.
    ///
    /// # Errors
    /// [`PartyError::Missing`].
    pub fn relin_sum(self) -> Result<RelinSum, PartyError> {
        let (session, records) = (self.session().clone(), self.records().to_vec());
        let missing = RlweError::Internal { what: "a sum has no record" };
        let record = *records.first().ok_or(missing)?;
        Ok(RelinSum { session, record, polys: self.finish()? })
    }
}

/// The sum of round 1 of the relinearisation key: for each digit h_0j = −u·a_j + P·g_j·s + e_0 and h_1j = s·a_j + e_1.
///
/// The key that round 2 ends with has b_j + a'_j·s = P·g_j·s² + s·e_0 + u·e_1 + e_2: round 2 of ePrint 2020/304 (section 4.3) with
/// −a'·s_i in place of −s_i·h_1, so that the key's mask is the public a' and not h_1. A party then sends one polynomial a digit, not two.
#[derive(Clone)]
pub struct RelinSum {
    session: Session,
    record: Record,
    polys: Vec<Poly<Eval>>,
}

impl RelinSum {
    /// The highest level of the ciphertexts that the key will serve.
    pub fn level(&self) -> usize {
        self.record.level
    }

    fn question(&self) -> Digest {
        Question::of(&self.session, SECOND).numbers([self.record.level as u64]).polys(&self.polys).digest()
    }
}

impl std::fmt::Debug for RelinSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RelinSum(level {}, session {})", self.record.level, self.session.id())
    }
}

impl Wire for RelinSum {
    type Params = Session;
    const TYPE: ObjectType = ObjectType::RelinSum;

    fn params_hash(session: &Session) -> ParamsHash {
        session.params().hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let mut meta = self.session.id().0.to_vec();
        meta.extend((self.record.level as u32).to_le_bytes());
        meta.extend([0; 4]);
        let owner = (self.session.params().hash(), self.session.key());
        let lengths = self.polys.iter().map(|poly| packed_bytes(poly.basis())).collect();
        Header::new(Self::TYPE, owner, State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        self.polys.iter().try_for_each(|poly| writer.poly(poly))
    }

    fn read_segments(session: &Session, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        header.expect_key(session.key())?;
        let mut fields = Fields::new(header.meta());
        if fields.bytes32()? != session.id().0 {
            return Err(WireError::WrongKey { found: header.key(), expected: session.key() });
        }
        let level = fields.u32()? as usize;
        fields.zeros(4)?;
        fields.finish()?;
        let impossible = |_| WireError::Corrupt { what: "a relinearisation key that there is not" };
        let record = check_level(session, level).map_err(impossible)?;
        let (basis, count) = (session.params().qp_at(level), 2 * session.params().digits_at(level));
        header.expect_segments(std::iter::repeat_n(packed_bytes(basis), count))?;
        let polys = (0..count).map(|_| reader.poly(basis)).collect::<Result<_, _>>()?;
        Ok(Self { session: session.clone(), record, polys })
    }
}

/// Begins the sum of all parties' shares of round 2, which answer `sum`.
pub fn relin_key(sum: &RelinSum) -> Collector<RelinSecondStep> {
    let session = &sum.session;
    Collector::new(session, sum.question(), vec![sum.record], 0..session.parties())
}

impl Collector<RelinSecondStep> {
    /// The relinearisation key.
    ///
    /// # Errors
    /// [`PartyError::Missing`].
    pub fn relin_key(self) -> Result<KeySwitchKey, PartyError> {
        let (session, records) = (self.session().clone(), self.records().to_vec());
        let missing = RlweError::Internal { what: "a sum has no record" };
        let record = *records.first().ok_or(missing)?;
        let b = self.finish()?;
        let masks = session.key_masks(SECOND, &record);
        Ok(KeySwitchKey::from_parts(session.params(), record.level, masks, b)?)
    }
}
