//! A party's message: what it answers, and polynomials.

use super::{Digest, PartyError, Session};
use crate::ids::ParamsHash;
use crate::wire::packing::packed_bytes;
use crate::wire::{Fields, Header, ObjectType, Reader, State, Wire, WireError, Writer};
use std::fmt;
use std::io::Write;
use std::marker::PhantomData;
use sudare_ring::kernel::MIN_DEGREE;
use sudare_ring::{Eval, Poly, RingError, RnsBasis};

/// Most records of a message of Galois keys; every other has one.
pub(super) const MAX_RECORDS: usize = 4096;

/// What a message has polynomials of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// A Galois element; of decryption shares every how manieth coefficient there is; otherwise 0.
    pub element: u64,
    /// The level.
    pub level: usize,
}

mod sealed {
    /// Only this module's steps are steps.
    pub trait Sealed {}
}

/// A step that parties send messages in.
pub trait Kind: sealed::Sealed + Clone + Copy + fmt::Debug + Send + Sync + 'static {
    /// What the container of a message says that it holds.
    const TYPE: ObjectType;

    /// Most records of a message.
    #[doc(hidden)]
    const MOST: usize;

    /// The bases of a record's polynomials, of which they have every how manieth coefficient.
    #[doc(hidden)]
    fn bases<'a>(session: &'a Session, record: &Record) -> Result<Vec<(&'a RnsBasis, u64)>, WireError>;
}

/// One party's message of a step: to be added to those of the other parties ([`super::Collector`]).
#[derive(Clone)]
pub struct Share<K> {
    pub(super) session: Session,
    pub(super) party: u32,
    pub(super) answers: Digest,
    pub(super) records: Vec<Record>,
    pub(super) polys: Vec<Poly<Eval>>,
    pub(super) kind: PhantomData<K>,
}

impl<K: Kind> Share<K> {
    /// Who it is from.
    pub fn party(&self) -> u32 {
        self.party
    }

    /// What it answers.
    pub fn answers(&self) -> Digest {
        self.answers
    }

    /// What it has polynomials of.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Reads a message that came from a party.
    ///
    /// # Errors
    /// [`PartyError::Malformed`], [`PartyError::Foreign`], [`PartyError::InAnothersName`], each with the party.
    pub fn receive(session: &Session, party: u32, bytes: &[u8]) -> Result<Self, PartyError> {
        session.expect_party(party)?;
        let share = Self::from_bytes(session, bytes).map_err(|error| match error {
            WireError::WrongParameters { .. } | WireError::WrongKey { .. } => {
                PartyError::Foreign { party, expected: session.id() }
            }
            error => PartyError::Malformed { party, error },
        })?;
        if share.party != party {
            return Err(PartyError::InAnothersName { party, found: share.party });
        }
        Ok(share)
    }
}

impl<K: Kind> fmt::Debug for Share<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({}, party {}, answers {:?}, {:?})", K::TYPE, self.party, self.answers, self.records)
    }
}

fn oversize(what: &'static str, found: u64, limit: u64) -> WireError {
    WireError::Oversize { what, found, limit }
}

impl<K: Kind> Wire for Share<K> {
    type Params = Session;
    const TYPE: ObjectType = K::TYPE;

    fn params_hash(session: &Session) -> ParamsHash {
        session.params().hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let mut meta = [self.session.id().0, self.answers.0].concat();
        meta.extend(self.party.to_le_bytes());
        meta.extend((self.records.len() as u32).to_le_bytes());
        for record in &self.records {
            meta.extend(record.element.to_le_bytes());
            meta.extend((record.level as u32).to_le_bytes());
            meta.extend([0; 4]);
        }
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
        let (answers, party) = (Digest(fields.bytes32()?), fields.u32()?);
        if party >= session.parties() {
            return Err(oversize("a party's number", party.into(), u64::from(session.parties()) - 1));
        }
        let count = fields.u32()? as usize;
        if count == 0 || count > K::MOST {
            return Err(oversize("the number of records", count as u64, K::MOST as u64));
        }
        let highest = session.params().max_level() as u64;
        let mut records = Vec::new();
        for _ in 0..count {
            let (element, level) = (fields.u64()?, fields.u32()?);
            fields.zeros(4)?;
            if u64::from(level) > highest {
                return Err(oversize("a level", level.into(), highest));
            }
            records.push(Record { element, level: level as usize });
        }
        fields.finish()?;
        if !records.is_sorted_by(|a, b| a.element < b.element) {
            return Err(WireError::Corrupt { what: "records out of order or twice" });
        }
        let bases = records.iter().map(|record| K::bases(session, record)).collect::<Result<Vec<_>, _>>()?;
        let bases: Vec<_> = bases.into_iter().flatten().collect();
        // Lengths first: tables of a smaller ring are made for a message that has its polynomial.
        header.expect_segments(bases.iter().map(|(basis, gap)| packed_bytes(basis) / gap))?;
        let polys = bases.into_iter().map(|(basis, gap)| match gap {
            1 => reader.poly(basis),
            gap => reader.poly(&divided(basis, gap).map_err(|_| NO_PART)?),
        });
        let polys = polys.collect::<Result<_, _>>()?;
        Ok(Self { session: session.clone(), party, answers, records, polys, kind: PhantomData })
    }
}

/// As many polynomials over all primes of a level as a key's digits, times `times`.
fn of_key<'a>(session: &'a Session, record: &Record, times: usize) -> Result<Vec<(&'a RnsBasis, u64)>, WireError> {
    let params = session.params();
    if params.p().is_empty() {
        return Err(WireError::Corrupt { what: "key-switching keys without special primes" });
    }
    Ok(vec![(params.qp_at(record.level), 1); times * params.digits_at(record.level)])
}

fn no_element(record: &Record) -> Result<(), WireError> {
    if record.element == 0 { Ok(()) } else { Err(WireError::Corrupt { what: "an element where none belongs" }) }
}

const NO_PART: WireError = WireError::Corrupt { what: "a part of the coefficients that there is not" };

fn check_gap(session: &Session, gap: u64) -> Result<(), PartyError> {
    let degree = session.params().degree();
    if !gap.is_power_of_two() || gap > (degree / MIN_DEGREE) as u64 {
        return Err(PartyError::Gap { gap: gap as usize, degree, least: MIN_DEGREE });
    }
    Ok(())
}

/// The ring of every `gap`-th coefficient, with tables of its own.
fn divided(basis: &RnsBasis, gap: u64) -> Result<RnsBasis, RingError> {
    RnsBasis::new(basis.degree() / gap as usize, &basis.primes().collect::<Vec<_>>())
}

/// The ring of every `gap`-th coefficient, over the primes of a level.
pub(super) fn smaller_ring(session: &Session, gap: u64, level: usize) -> Result<RnsBasis, PartyError> {
    check_gap(session, gap)?;
    let basis = session.params().q_at(level);
    Ok(if gap == 1 { basis.clone() } else { divided(basis, gap)? })
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident, $share:ident, $most:expr, |$session:ident, $record:ident| $bases:expr;)*) => {
        $(
            $(#[$doc])*
            pub type $share = Share<$kind>;

            #[doc(hidden)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $kind;

            impl sealed::Sealed for $kind {}

            impl Kind for $kind {
                const TYPE: ObjectType = ObjectType::$share;
                const MOST: usize = $most;

                fn bases<'a>($session: &'a Session, $record: &Record) -> Result<Vec<(&'a RnsBasis, u64)>, WireError> {
                    $bases
                }
            }
        )*
    };
}

kinds! {
    /// A share of the public key.
    PublicKeyStep, PublicKeyShare, 1, |session, record| {
        no_element(record)?;
        match record.level == session.params().max_level() {
            true => Ok(vec![(session.params().q(), 1)]),
            false => Err(WireError::Corrupt { what: "a public key below the highest level" }),
        }
    };
    /// A share of round 1 of the relinearisation key: h_0j and h_1j.
    RelinFirstStep, RelinFirstShare, 1, |session, record| no_element(record).and_then(|()| of_key(session, record, 2));
    /// A share of round 2 of the relinearisation key.
    RelinSecondStep, RelinSecondShare, 1, |session, record| no_element(record).and_then(|()| of_key(session, record, 1));
    /// Shares of Galois keys, in rising order of their elements.
    GaloisStep, GaloisShare, MAX_RECORDS, |session, record| {
        match record.element % 2 == 1 && record.element < 2 * session.params().degree() as u64 {
            true => of_key(session, record, 1),
            false => Err(WireError::Corrupt { what: "a key of no Galois element" }),
        }
    };
    /// A share of a decryption: of all coefficients, or of every `element`-th.
    DecryptionStep, DecryptionShare, 1, |session, record| {
        check_gap(session, record.element).map_err(|_| NO_PART)?;
        Ok(vec![(session.params().q_at(record.level), record.element)])
    };
    /// A share of a key switch to a public key.
    HandoverStep, HandoverShare, 1, |session, record| {
        no_element(record)?;
        Ok(vec![(session.params().q_at(record.level), 1); 2])
    };
    /// A share of a refresh: over the ciphertext's primes, and over all.
    RefreshStep, RefreshShare, 1, |session, record| {
        no_element(record)?;
        Ok(vec![(session.params().q_at(record.level), 1), (session.params().q(), 1)])
    };
}
