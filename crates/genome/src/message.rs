//! The parts that queries, answers and their private halves share.

use crate::bytes::{Put, flag, text};
use crate::error::GenomeError;
use crate::panel::{MAX_STARTS, MAX_WINDOW, PanelHash};
use crate::{Panel, Protocol, Question, Shape};
use std::fmt;
use std::io::Read;
use sudare_rlwe::wire::{Fields, Header, ObjectType, Reader, Source, State, WireError, Writer};
use sudare_rlwe::{KeyId, ParamsHash};
use zeroize::Zeroizing;

/// Most queries of one message.
pub const MAX_BATCH: usize = 1 << 12;

/// The name of a query: a hash of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueryId(pub [u8; 32]);

impl QueryId {
    /// The name of a query's bytes.
    pub fn of(query: &[u8]) -> Self {
        Self(*blake3::Hasher::new_derive_key("sudare genome query v1").update(query).finalize().as_bytes())
    }
}

impl fmt::Debug for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueryId({self})")
    }
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// The open part of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The protocol.
    pub protocol: Protocol,
    /// The panel that it is for.
    pub panel: PanelHash,
    /// Sites of the window.
    pub sites: usize,
    /// Haplotypes that have to share a match.
    pub eps: u32,
    /// Whether the answer is to tell nothing of how it was computed.
    pub private: bool,
    /// Queries in one message.
    pub batch: usize,
    /// Candidate starts, ascending.
    pub starts: Vec<u32>,
}

impl Head {
    /// The open part of these questions, which share shape and starts.
    ///
    /// # Errors
    /// [`GenomeError::Range`] for no or too many questions, or for others than the first's shape and starts.
    pub(crate) fn of(
        protocol: Protocol,
        panel: PanelHash,
        questions: &[Question],
        private: bool,
    ) -> Result<Self, GenomeError> {
        crate::error::in_range("queries of one message", questions.len() as u64, 1, MAX_BATCH as u64)?;
        let first = &questions[0];
        for q in questions {
            if q.shape() != first.shape() || q.starts() != first.starts() {
                return Err(WireError::Corrupt { what: "questions of one message with different windows" }.into());
            }
        }
        let Shape { sites, eps, .. } = first.shape();
        Ok(Self { protocol, panel, sites, eps, private, batch: questions.len(), starts: first.starts().to_vec() })
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        Shape { sites: self.sites, starts: self.starts.len(), eps: self.eps }
    }

    /// A query's bytes: the starts, then the protocol's segments.
    pub(crate) fn write(&self, owner: (ParamsHash, KeyId), segments: &[Vec<u8>]) -> Result<Vec<u8>, GenomeError> {
        let mut meta = Vec::new();
        meta.u32(self.protocol.code());
        meta.u32(self.private.into());
        meta.extend(self.panel.0);
        // All are below 2^32.
        [self.sites as u32, self.eps, self.batch as u32, self.starts.len() as u32]
            .into_iter()
            .for_each(|x| meta.u32(x));
        let starts: Vec<u8> = self.starts.iter().flat_map(|s| s.to_le_bytes()).collect();
        let all: Vec<&[u8]> = std::iter::once(starts.as_slice()).chain(segments.iter().map(Vec::as_slice)).collect();
        write_object(ObjectType::GenomeQuery, owner, meta, &all)
    }

    /// The open part of a query, and what follows its starts.
    ///
    /// # Errors
    /// [`GenomeError::Wire`], [`GenomeError::Range`].
    pub fn read(bytes: &[u8]) -> Result<(Self, Reader<'_>), GenomeError> {
        Self::of_source(Source::Bytes(bytes))
    }

    fn of_source(source: Source<'_>) -> Result<(Self, Reader<'_>), GenomeError> {
        let mut reader = Reader::open(source, ObjectType::GenomeQuery)?;
        reader.header().expect_no_state()?;
        let mut fields = Fields::new(reader.header().meta());
        let protocol = Protocol::from_code(fields.u32()?)?;
        let private = flag(&mut fields)?;
        let panel = PanelHash(fields.bytes32()?);
        let (sites, eps, batch, count) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        fields.finish()?;
        crate::error::in_range("queries of one message", batch.into(), 1, MAX_BATCH as u64)?;
        let shape = Shape { sites: sites as usize, starts: count as usize, eps };
        shape.check()?;
        debug_assert!(count <= MAX_STARTS && sites <= MAX_WINDOW);
        if reader.header().segments().first() != Some(&(4 * u64::from(count))) {
            return Err(WireError::Corrupt { what: "segments of other sizes than the query says" }.into());
        }
        let starts: Vec<u32> = reader.segment()?.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
        if !starts.is_sorted_by(|a, b| a < b) {
            return Err(WireError::Corrupt { what: "starts out of order or twice" }.into());
        }
        Ok((Self { protocol, panel, sites: shape.sites, eps, private, batch: batch as usize, starts }, reader))
    }

    /// Only the open part.
    ///
    /// # Errors
    /// As for [`Head::read`].
    pub fn peek(bytes: &[u8]) -> Result<Self, GenomeError> {
        Ok(Self::read(bytes)?.0)
    }

    /// Only the open part, from the front of a stream.
    ///
    /// # Errors
    /// As for [`Head::read`].
    pub fn read_from(mut input: impl Read) -> Result<Self, GenomeError> {
        Ok(Self::of_source(Source::stream(&mut input))?.0)
    }

    /// Refuses a query for another panel, and one that the panel's policy does not allow.
    ///
    /// # Errors
    /// [`GenomeError::WrongPanel`], [`GenomeError::Policy`].
    pub fn check(&self, panel: &Panel) -> Result<(), GenomeError> {
        let outline = panel.outline();
        if self.panel != outline.hash {
            return Err(GenomeError::WrongPanel { found: self.panel, expected: outline.hash });
        }
        outline.policy.check(self.sites, self.starts.len(), self.eps)
    }
}

/// Refuses segments that are not exactly those expected.
pub(crate) fn expect_segments(
    reader: &Reader<'_>,
    skipped: usize,
    expected: impl IntoIterator<Item = u64>,
) -> Result<(), WireError> {
    let found = reader.header().segments().iter().skip(skipped).copied();
    if found.eq(expected) {
        return Ok(());
    }
    Err(WireError::Corrupt { what: "segments of other sizes than the parameters say" })
}

pub(crate) fn write_object(
    object: ObjectType,
    owner: (ParamsHash, KeyId),
    meta: Vec<u8>,
    segments: &[&[u8]],
) -> Result<Vec<u8>, GenomeError> {
    let lengths = segments.iter().map(|s| s.len() as u64).collect();
    let header = Header::new(object, owner, State::default(), meta, lengths)?;
    let mut out = Vec::with_capacity(header.total_bytes() as usize);
    let mut writer = Writer::new(&mut out, &header)?;
    segments.iter().try_for_each(|s| writer.segment(s))?;
    writer.finish()?;
    Ok(out)
}

/// The open part of an answer.
pub(crate) struct AnswerHead {
    pub protocol: Protocol,
    pub panel: PanelHash,
    pub query: QueryId,
    pub private: bool,
}

impl AnswerHead {
    pub fn write(&self, owner: (ParamsHash, KeyId), segments: &[&[u8]]) -> Result<Vec<u8>, GenomeError> {
        let mut meta = Vec::new();
        meta.u32(self.protocol.code());
        meta.u32(self.private.into());
        meta.extend(self.panel.0);
        meta.extend(self.query.0);
        write_object(ObjectType::GenomeAnswer, owner, meta, segments)
    }

    /// Reads the answer to a pending query.
    pub fn read<'a>(bytes: &'a [u8], pending: &Pending) -> Result<Reader<'a>, GenomeError> {
        let reader = Reader::plain(bytes, ObjectType::GenomeAnswer)?;
        let mut fields = Fields::new(reader.header().meta());
        let (protocol, private) = (Protocol::from_code(fields.u32()?)?, flag(&mut fields)?);
        let (panel, query) = (PanelHash(fields.bytes32()?), QueryId(fields.bytes32()?));
        fields.finish()?;
        protocol.require(pending.head.protocol)?;
        if panel != pending.head.panel {
            return Err(GenomeError::WrongPanel { found: panel, expected: pending.head.panel });
        }
        if query != pending.query || private != pending.head.private {
            return Err(GenomeError::WrongQuery);
        }
        Ok(reader)
    }
}

/// One question of a pending query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The site where it starts.
    pub start: usize,
    /// Sample.
    pub label: String,
    /// Its haplotype.
    pub haplotype: u32,
}

/// The private half of a query: the client keeps it to read the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The query's open part.
    pub head: Head,
    /// The query's name.
    pub query: QueryId,
    /// Its questions.
    pub asked: Vec<Asked>,
}

impl Pending {
    pub(crate) fn new(head: Head, query: &[u8], questions: &[Question]) -> Self {
        let asked = |q: &Question| {
            let (label, haplotype) = q.name();
            Asked { start: q.start(), label: label.to_owned(), haplotype }
        };
        Self { head, query: QueryId::of(query), asked: questions.iter().map(asked).collect() }
    }

    /// Its bytes, for the client's own disk.
    ///
    /// # Errors
    /// [`GenomeError::Wire`].
    pub fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, GenomeError> {
        let mut list = Zeroizing::new(Vec::new());
        for asked in &self.asked {
            list.u32(asked.start as u32);
            list.u32(asked.haplotype);
            list.text(&asked.label);
        }
        let owner = (ParamsHash(self.query.0), KeyId([0; 16]));
        let head = self.head.write(owner, &[])?;
        let bytes = write_object(ObjectType::GenomePending, owner, Vec::new(), &[&head, &list])?;
        Ok(Zeroizing::new(bytes))
    }

    /// From its bytes.
    ///
    /// # Errors
    /// [`GenomeError::Wire`], [`GenomeError::Range`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, GenomeError> {
        let mut reader = Reader::plain(bytes, ObjectType::GenomePending)?;
        let query = QueryId(reader.header().params().0);
        reader.header().expect_key(KeyId([0; 16]))?;
        if !reader.header().meta().is_empty() {
            return Err(WireError::Corrupt { what: "metadata where none belongs" }.into());
        }
        let head = {
            let (head, inner) = Head::read(reader.segment()?)?;
            inner.header().expect_params(ParamsHash(query.0))?;
            inner.header().expect_key(KeyId([0; 16]))?;
            inner.finish()?;
            head
        };
        let list = Zeroizing::new(reader.segment()?.to_vec());
        let mut fields = Fields::new(&list);
        let mut asked = Vec::new();
        for _ in 0..head.batch {
            let (start, haplotype) = (fields.u32()?, fields.u32()?);
            if !head.starts.contains(&start) {
                return Err(WireError::Corrupt { what: "a start that is none of the candidates" }.into());
            }
            asked.push(Asked { start: start as usize, label: text(&mut fields)?, haplotype });
        }
        fields.finish()?;
        reader.finish()?;
        Ok(Self { head, query, asked })
    }
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The question.
    pub asked: Asked,
    /// Sites asked for.
    pub sites: usize,
    /// Sites that match.
    pub matched: usize,
}

impl Pending {
    /// Answers with these lengths.
    pub(crate) fn answers(&self, lengths: Vec<usize>) -> Result<Vec<Answer>, GenomeError> {
        let sites = self.head.sites;
        if lengths.len() != self.asked.len() || lengths.iter().any(|l| *l > sites) {
            return Err(GenomeError::Nonsense);
        }
        let answer = |(asked, matched): (&Asked, usize)| Answer { asked: asked.clone(), sites, matched };
        Ok(self.asked.iter().zip(lengths).map(answer).collect())
    }
}
