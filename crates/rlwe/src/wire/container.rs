//! Writing and reading whole containers.

use super::bytes::expect_zeros;
use super::error::{Part, WireError};
use super::header::{ALIGNMENT, CHECKSUM_BYTES, FIXED_BYTES, Header, Lead, MAX_HEADER_BYTES};
use super::object::ObjectType;
use super::packing;
use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use sudare_ring::interrupt::check;
use sudare_ring::{Eval, Poly, RnsBasis};
use zeroize::Zeroizing;

/// Bytes that are read from a stream before any arrived.
const FIRST_READ: usize = 1 << 20;

/// Writes a container in one pass: header, then each segment with its checksum.
pub struct Writer<'a, W> {
    out: W,
    header: &'a Header,
    next: usize,
    position: u64,
    scratch: Vec<u8>,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Writes the header.
    ///
    /// # Errors
    /// [`WireError::Io`].
    pub fn new(mut out: W, header: &'a Header) -> Result<Self, WireError> {
        out.write_all(&header.to_bytes())?;
        Ok(Self { out, header, next: 0, position: header.bytes(), scratch: Vec::new() })
    }

    /// Writes the next segment, whose length the header announced.
    ///
    /// # Errors
    /// [`WireError::Io`]; [`WireError::Corrupt`] for another length.
    pub fn segment(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        if self.header.segments().get(self.next) != Some(&(bytes.len() as u64)) {
            return Err(WireError::Corrupt { what: "a segment that its header does not announce" });
        }
        check();
        let gap = self.position.next_multiple_of(ALIGNMENT) - self.position;
        self.out.write_all(&[0; ALIGNMENT as usize][..gap as usize])?;
        self.out.write_all(bytes)?;
        self.out.write_all(&self.header.segment_checksum(self.next, bytes))?;
        self.position += gap + (bytes.len() + CHECKSUM_BYTES) as u64;
        self.next += 1;
        Ok(())
    }

    /// Writes the next segment, from a polynomial.
    ///
    /// # Errors
    /// As [`Writer::segment`].
    pub fn poly(&mut self, poly: &Poly<Eval>) -> Result<(), WireError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        packing::pack(poly, &mut scratch);
        let done = self.segment(&scratch);
        self.scratch = scratch;
        done
    }

    /// The end: all segments are written and handed on.
    ///
    /// # Errors
    /// [`WireError::Io`]; [`WireError::Corrupt`] if one is missing.
    pub fn finish(mut self) -> Result<(), WireError> {
        if self.next != self.header.segments().len() {
            return Err(WireError::Corrupt { what: "fewer segments than the header announces" });
        }
        Ok(self.out.flush()?)
    }
}

/// Where a container's bytes come from.
pub enum Source<'a> {
    /// Memory, perhaps a mapped file; nothing is copied.
    Bytes(&'a [u8]),
    /// A stream and what was read of it last.
    Stream(&'a mut dyn Read, Zeroizing<Vec<u8>>),
}

impl<'a> Source<'a> {
    /// A stream of bytes.
    pub fn stream(input: &'a mut dyn Read) -> Self {
        Self::Stream(input, Zeroizing::default())
    }

    /// The next `len` bytes. Memory is taken as bytes arrive, not as a length claims.
    fn take(&mut self, len: usize, part: Part) -> Result<&[u8], WireError> {
        let truncated = |found: usize| WireError::Truncated { part, needed: len as u64, found: found as u64 };
        match self {
            Self::Bytes(rest) => {
                let (head, tail) = rest.split_at_checked(len).ok_or(truncated(rest.len()))?;
                *rest = tail;
                Ok(head)
            }
            Self::Stream(input, buffer) => {
                buffer.clear();
                while buffer.len() < len {
                    let start = buffer.len();
                    let step = (len - start).min(start.max(FIRST_READ));
                    buffer.resize(start + step, 0);
                    let mut filled = start;
                    while filled < start + step {
                        match input.read(&mut buffer[filled..]) {
                            Ok(0) => return Err(truncated(filled)),
                            Ok(count) => filled += count,
                            Err(error) if error.kind() == ErrorKind::Interrupted => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                }
                Ok(buffer)
            }
        }
    }

    fn at_end(&mut self) -> Result<bool, WireError> {
        match self {
            Self::Bytes(rest) => Ok(rest.is_empty()),
            Self::Stream(input, _) => loop {
                match input.read(&mut [0]) {
                    Ok(count) => return Ok(count == 0),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            },
        }
    }

    fn header(&mut self) -> Result<Header, WireError> {
        let mut fixed = [0; FIXED_BYTES];
        fixed.copy_from_slice(self.take(FIXED_BYTES, Part::Header)?);
        let lead = Lead::parse(&fixed)?;
        let rest = self.take(lead.header_bytes - FIXED_BYTES, Part::Header)?;
        Header::parse(&[&fixed, rest].concat())
    }
}

/// Reads a container from front to back.
pub struct Reader<'a> {
    source: Source<'a>,
    header: Header,
    next: usize,
    position: u64,
}

impl<'a> Reader<'a> {
    /// Reads the header and refuses another type of object.
    ///
    /// # Errors
    /// Every [`WireError`] about headers and lengths.
    pub fn open(mut source: Source<'a>, expected: ObjectType) -> Result<Self, WireError> {
        let given = match &source {
            Source::Bytes(bytes) => Some(bytes.len() as u64),
            Source::Stream(..) => None,
        };
        let header = source.header()?;
        header.expect_object(expected)?;
        if let Some(given) = given {
            check_length(&header, given)?;
        }
        Ok(Self { position: header.bytes(), source, header, next: 0 })
    }

    /// A reader of the segments from `next` on, of a container whose header is known. The source stands where segment
    /// `next − 1` ends with its checksum ([`Header::end_of`]). It is not [`finish`](Self::finish)ed before the last one.
    pub fn from_segment(source: Source<'a>, header: Header, next: usize) -> Self {
        Self { source, position: header.end_of(next), header, next }
    }

    /// An object in memory that has neither level nor scale.
    ///
    /// # Errors
    /// As [`Reader::open`]; [`WireError::Corrupt`] for one that has.
    pub fn plain(bytes: &'a [u8], expected: ObjectType) -> Result<Self, WireError> {
        let reader = Self::open(Source::Bytes(bytes), expected)?;
        reader.header.expect_no_state()?;
        Ok(reader)
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next segment, its checksum checked; its length is the header's, which the caller compares with
    /// what it expects.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Checksum`], [`WireError::Corrupt`], [`WireError::Io`].
    pub fn segment(&mut self) -> Result<&[u8], WireError> {
        let i = self.next;
        let part = Part::Segment(i);
        let Some(bytes) = self.header.segments().get(i).copied() else {
            return Err(WireError::Corrupt { what: "fewer segments than the object needs" });
        };
        check();
        let gap = self.position.next_multiple_of(ALIGNMENT) - self.position;
        expect_zeros(self.source.take(gap as usize, part)?)?;
        self.position += gap + bytes + CHECKSUM_BYTES as u64;
        self.next += 1;
        let (data, sum) = self.source.take(bytes as usize + CHECKSUM_BYTES, part)?.split_at(bytes as usize);
        if self.header.segment_checksum(i, data) != sum {
            return Err(WireError::Checksum { part });
        }
        Ok(data)
    }

    /// The next segment as a polynomial, every residue checked.
    ///
    /// # Errors
    /// As [`Reader::segment`], and [`WireError::Coefficient`].
    pub fn poly(&mut self, basis: &RnsBasis) -> Result<Poly<Eval>, WireError> {
        let i = self.next;
        packing::unpack(basis, self.segment()?, i)
    }

    /// The end: everything has been read and nothing follows.
    ///
    /// # Errors
    /// [`WireError::Corrupt`], [`WireError::Trailing`].
    pub fn finish(mut self) -> Result<(), WireError> {
        if self.next != self.header.segments().len() {
            return Err(WireError::Corrupt { what: "more segments than the object has" });
        }
        if self.source.at_end()? { Ok(()) } else { Err(WireError::Trailing { expected: self.header.total_bytes() }) }
    }
}

/// Refuses an object of another length than its header says.
///
/// # Errors
/// [`WireError::Truncated`], [`WireError::Trailing`].
pub fn check_length(header: &Header, given: u64) -> Result<(), WireError> {
    let total = header.total_bytes();
    if given < total {
        // The first part that is not whole.
        let whole = header.segment_ranges().take_while(|r| r.end + CHECKSUM_BYTES as u64 <= given).count();
        return Err(WireError::Truncated { part: Part::Segment(whole), needed: total, found: given });
    }
    if given > total { Err(WireError::Trailing { expected: total }) } else { Ok(()) }
}

/// A whole container in memory or in a mapped file: its header, and any segment without a copy.
///
/// Sudare maps no files itself, since a mapped file that somebody else shortens or writes is
/// unsafe to read; a caller who owns the file maps it and hands the bytes here or to
/// [`Wire::from_bytes`](super::Wire::from_bytes).
#[derive(Clone, Debug)]
pub struct Container<'a> {
    bytes: &'a [u8],
    header: Header,
}

impl<'a> Container<'a> {
    /// Reads the header; segments are checked when they are asked for.
    ///
    /// # Errors
    /// [`WireError::NotSudare`], [`WireError::Version`], [`WireError::Checksum`],
    /// [`WireError::Truncated`], [`WireError::Trailing`], [`WireError::Corrupt`],
    /// [`WireError::Oversize`].
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, WireError> {
        let header = Source::Bytes(bytes).header()?;
        check_length(&header, bytes.len() as u64)?;
        Ok(Self { bytes, header })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes of segment `i`, their checksum checked.
    ///
    /// # Errors
    /// [`WireError::Checksum`]; [`WireError::Oversize`] if there is no such segment.
    pub fn segment(&self, i: usize) -> Result<&'a [u8], WireError> {
        let missing = || WireError::Oversize {
            what: "a segment number",
            found: i as u64,
            limit: self.header.segments().len() as u64,
        };
        let range = self.header.segment_ranges().nth(i).ok_or_else(missing)?;
        // Within the container, whose length was checked against these bytes.
        let (start, end) = (range.start as usize, range.end as usize);
        let data = &self.bytes[start..end];
        if self.header.segment_checksum(i, data) != self.bytes[end..end + CHECKSUM_BYTES] {
            return Err(WireError::Checksum { part: Part::Segment(i) });
        }
        Ok(data)
    }
}

/// The header at the front of a stream, which is left right after it: what is it, of which
/// parameters and key, and how long?
///
/// # Errors
/// As [`Container::from_bytes`], less the lengths.
pub fn peek(mut input: impl Read) -> Result<Header, WireError> {
    Source::stream(&mut input).header()
}

/// Makes all checksums of a container match again after its bytes were changed, as far as its
/// lengths allow, so that tests reach the checks behind them. No secret is involved: anybody can
/// compute a checksum.
#[doc(hidden)]
pub fn reseal_for_tests(bytes: &mut [u8]) {
    let Some(Ok(lead)) = bytes.first_chunk().map(Lead::parse) else { return };
    let end = lead.header_bytes.min(MAX_HEADER_BYTES);
    if end > bytes.len() {
        return;
    }
    Header::reseal(&mut bytes[..end]);
    let Ok(header) = Header::parse(&bytes[..end]) else { return };
    for (i, range) in header.segment_ranges().enumerate() {
        let (start, end) = (range.start as usize, range.end as usize);
        if end + CHECKSUM_BYTES > bytes.len() {
            return;
        }
        let sum = header.segment_checksum(i, &bytes[start..end]);
        bytes[end..end + CHECKSUM_BYTES].copy_from_slice(&sum);
    }
}

/// Where segment `i` stands, from the zeros before it to the end of its checksum; `ranges` are all of
/// [`Header::segment_ranges`].
///
/// # Errors
/// [`WireError::Oversize`] for a number that no segment has.
pub fn segment_place(header: &Header, i: usize, ranges: &[Range<u64>]) -> Result<Range<u64>, WireError> {
    let missing = WireError::Oversize { what: "a segment number", found: i as u64, limit: ranges.len() as u64 };
    let range = ranges.get(i).ok_or(missing)?;
    let start = match i.checked_sub(1) {
        None => header.bytes(),
        Some(i) => ranges[i].end.saturating_add(CHECKSUM_BYTES as u64),
    };
    Ok(start..range.end.saturating_add(CHECKSUM_BYTES as u64))
}

/// Segment `i` of a container that is in memory: its checksum is checked, and that only zeros stand between it and what
/// comes before.
///
/// # Errors
/// As [`segment_in`] and [`segment_place`].
pub fn segment_at<'b>(
    header: &Header,
    bytes: &'b [u8],
    i: usize,
    ranges: &[Range<u64>],
) -> Result<&'b [u8], WireError> {
    let place = segment_place(header, i, ranges)?;
    let [start, end] = [place.start, place.end].map(|x| usize::try_from(x).unwrap_or(usize::MAX));
    let (part, found) = (Part::Segment(i), bytes.len() as u64);
    let truncated = WireError::Truncated { part, needed: header.total_bytes(), found };
    segment_in(header, bytes.get(start..end).ok_or(truncated)?, i, ranges)
}

/// Segment `i` within the bytes of its [`segment_place`].
///
/// # Errors
/// [`WireError::Checksum`], [`WireError::Truncated`], [`WireError::Corrupt`].
pub fn segment_in<'b>(
    header: &Header,
    bytes: &'b [u8],
    i: usize,
    ranges: &[Range<u64>],
) -> Result<&'b [u8], WireError> {
    let (place, part) = (segment_place(header, i, ranges)?, Part::Segment(i));
    let range = &ranges[i];
    if place.start > range.start || range.start > range.end || bytes.len() as u64 != place.end - place.start {
        return Err(WireError::Truncated { part, needed: header.total_bytes(), found: bytes.len() as u64 });
    }
    // Within `bytes`, by the line above.
    let [start, stop] = [range.start, range.end].map(|x| (x - place.start) as usize);
    expect_zeros(&bytes[..start])?;
    let end = bytes.len();
    let (data, sum) = (&bytes[start..stop], &bytes[stop..end]);
    if header.segment_checksum(i, data) != sum {
        return Err(WireError::Checksum { part });
    }
    Ok(data)
}
