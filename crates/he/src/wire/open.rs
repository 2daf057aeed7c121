//! Containers for the objects of other crates: their codes stand in [`ObjectType`], their encodings
//! beside their types.

use super::bytes::expect_zeros;
use super::container::{Reader, Source, Writer};
use super::error::{Part, WireError};
use super::header::{CHECKSUM_BYTES, Header, ObjectType, State};
use super::packing::{append_words, read_words, width};
use crate::keys::KeyId;
use crate::params::ParamsHash;
use std::io::Write;
use std::ops::Range;

/// The key id of what belongs to no key.
pub const NO_KEY: KeyId = KeyId([0; 16]);

/// The header of an object with this metadata and segments of these lengths.
///
/// # Errors
/// [`WireError::Oversize`].
pub fn object_header(
    object: ObjectType,
    owner: (ParamsHash, KeyId),
    meta: Vec<u8>,
    segments: Vec<u64>,
) -> Result<Header, WireError> {
    Header::new(object, owner, State::default(), meta, segments)
}

/// Writes a container in one pass: its header, then each segment.
pub struct ObjectWriter<'a, W>(Writer<'a, W>);

impl<'a, W: Write> ObjectWriter<'a, W> {
    /// Writes the header.
    ///
    /// # Errors
    /// [`WireError::Io`].
    pub fn new(out: W, header: &'a Header) -> Result<Self, WireError> {
        Ok(Self(Writer::new(out, header)?))
    }

    /// Writes the next segment, whose length the header announced.
    ///
    /// # Errors
    /// [`WireError::Io`]; [`WireError::Corrupt`] for another length.
    pub fn segment(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.0.segment(bytes)
    }

    /// The end: all segments are written.
    ///
    /// # Errors
    /// [`WireError::Io`]; [`WireError::Corrupt`] if one is missing.
    pub fn finish(self) -> Result<(), WireError> {
        self.0.finish()
    }
}

/// Reads a container from front to back; every byte of it is checked.
pub struct ObjectReader<'a>(Reader<'a>);

impl<'a> ObjectReader<'a> {
    /// Reads the header and refuses another type of object.
    ///
    /// # Errors
    /// Every [`WireError`] about headers and lengths.
    pub fn new(bytes: &'a [u8], expected: ObjectType) -> Result<Self, WireError> {
        let reader = Reader::open(Source::Bytes(bytes), expected)?;
        reader.header().expect_no_state()?;
        Ok(Self(reader))
    }

    /// The header.
    pub fn header(&self) -> &Header {
        self.0.header()
    }

    /// The next segment; its length is that of the header, which the caller compares with what it expects.
    ///
    /// # Errors
    /// [`WireError::Checksum`], [`WireError::Corrupt`].
    pub fn segment(&mut self) -> Result<&[u8], WireError> {
        self.0.segment()
    }

    /// The end: everything has been read and nothing follows.
    ///
    /// # Errors
    /// [`WireError::Corrupt`], [`WireError::Trailing`].
    pub fn finish(self) -> Result<(), WireError> {
        self.0.finish()
    }
}

/// Bytes of a residue modulo `q`.
pub fn residue_bytes(q: u64) -> usize {
    width(q)
}

/// Appends residues modulo `q`.
pub fn pack_residues(words: &[u64], q: u64, out: &mut Vec<u8>) {
    append_words(words, q, out);
}

/// Residues modulo `q` from bytes of a segment, every one checked.
///
/// # Errors
/// [`WireError::Coefficient`]; [`WireError::Corrupt`] for a part of a residue.
pub fn unpack_residues(bytes: &[u8], q: u64, segment: usize) -> Result<Vec<u64>, WireError> {
    if !bytes.len().is_multiple_of(width(q)) {
        return Err(WireError::Corrupt { what: "a part of a residue" });
    }
    read_words(bytes, q, segment)
}

/// Segment `i` of a container that is mapped, `ranges` being all of [`Header::segment_ranges`]: its checksum is checked,
/// and that only zeros stand between it and what comes before.
///
/// # Errors
/// [`WireError::Checksum`], [`WireError::Truncated`], [`WireError::Corrupt`].
pub fn segment_at<'b>(
    header: &Header,
    bytes: &'b [u8],
    i: usize,
    ranges: &[Range<u64>],
) -> Result<&'b [u8], WireError> {
    let (part, found) = (Part::Segment(i), bytes.len() as u64);
    let truncated = WireError::Truncated { part, needed: header.total_bytes(), found };
    let missing = WireError::Oversize { what: "a segment number", found: i as u64, limit: ranges.len() as u64 };
    let range = ranges.get(i).ok_or(missing)?;
    let before = match i.checked_sub(1) {
        None => header.bytes(),
        Some(i) => ranges[i].end.saturating_add(CHECKSUM_BYTES as u64),
    };
    let end = range.end.saturating_add(CHECKSUM_BYTES as u64);
    if before > range.start || range.start > range.end || end > found {
        return Err(truncated);
    }
    // Within `bytes`, by the line above.
    let [before, start, stop, end] = [before, range.start, range.end, end].map(|x| x as usize);
    expect_zeros(&bytes[before..start])?;
    let (data, sum) = (&bytes[start..stop], &bytes[stop..end]);
    if header.segment_checksum(i, data) != sum {
        return Err(WireError::Checksum { part });
    }
    Ok(data)
}
