//! The header of a container.

use super::bytes::{Fields, expect_zeros};
use super::error::{Part, WireError};
use super::object::ObjectType;
use crate::ids::{KeyId, ParamsHash};
use crate::params::Params;
use std::ops::Range;

/// The first bytes of every container; the control bytes catch text-mode transfers.
pub const MAGIC: [u8; 8] = *b"SUDARE\x1a\n";
/// The format version that this release writes.
pub const VERSION: u16 = 1;
/// Segments start at multiples of this: a page.
pub const ALIGNMENT: u64 = 4096;
/// Most bytes of a header.
pub const MAX_HEADER_BYTES: usize = 16 << 20;
/// Most bytes of a segment: a polynomial of degree 2^17 over 2·128 primes.
pub const MAX_SEGMENT_BYTES: u64 = 256 << 20;
/// Bytes of a header before its metadata.
pub(super) const FIXED_BYTES: usize = 128;
/// Bytes of a checksum.
pub(super) const CHECKSUM_BYTES: usize = 32;

/// Level, scale and bounds of an encoded or encrypted message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Level.
    pub level: u32,
    /// Scale.
    pub scale: f64,
    /// Bound on the message.
    pub bound: f64,
    /// Bound on the noise.
    pub noise: f64,
}

impl State {
    /// Refuses what no message can have.
    ///
    /// # Errors
    /// [`WireError::Oversize`] for a level that there is not, [`WireError::Corrupt`] for figures that are no
    /// finite numbers above zero.
    pub fn check(&self, params: &Params) -> Result<(), WireError> {
        let highest = params.max_level() as u64;
        if u64::from(self.level) > highest {
            return Err(WireError::Oversize { what: "a level", found: self.level.into(), limit: highest });
        }
        let sound = |x: f64| x.is_finite() && x >= 0.0;
        if !(sound(self.scale) && self.scale > 0.0 && sound(self.bound) && sound(self.noise)) {
            return Err(WireError::Corrupt { what: "a scale or bound that is no finite number above zero" });
        }
        Ok(())
    }
}

/// A container's header: all that is known of an object before its segments are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    object: ObjectType,
    params: ParamsHash,
    key: KeyId,
    state: State,
    meta: Vec<u8>,
    segments: Vec<u64>,
    total: u64,
    checksum: [u8; CHECKSUM_BYTES],
}

/// Metadata fills whole words, so that the table after it is aligned.
fn padded(meta: usize) -> usize {
    meta.next_multiple_of(8)
}

/// Header and container lengths for `meta` bytes of metadata and the given segments.
fn lengths(meta: usize, segments: &[u64]) -> Result<(usize, u64), WireError> {
    let header = segments
        .len()
        .checked_mul(8)
        .and_then(|table| table.checked_add(meta)?.checked_add(FIXED_BYTES + 7 + CHECKSUM_BYTES))
        .filter(|bytes| *bytes <= MAX_HEADER_BYTES);
    if header.is_none() {
        let found = (meta as u64).saturating_add(8u64.saturating_mul(segments.len() as u64));
        return Err(WireError::Oversize { what: "a header", found, limit: MAX_HEADER_BYTES as u64 });
    }
    let header = FIXED_BYTES + padded(meta) + 8 * segments.len() + CHECKSUM_BYTES;
    let mut total = header as u64;
    for bytes in segments {
        if *bytes > MAX_SEGMENT_BYTES {
            return Err(WireError::Oversize { what: "a segment", found: *bytes, limit: MAX_SEGMENT_BYTES });
        }
        // At most 2^21 segments of at most 2^28 bytes: this cannot overflow.
        total = total.next_multiple_of(ALIGNMENT) + bytes + CHECKSUM_BYTES as u64;
    }
    Ok((header, total))
}

fn checksum(header: &[u8]) -> [u8; CHECKSUM_BYTES] {
    *blake3::Hasher::new_derive_key("sudare wire header v1").update(header).finalize().as_bytes()
}

/// The fields that lead a header, checked as far as they can be alone.
pub(super) struct Lead {
    pub(super) header_bytes: usize,
}

impl Lead {
    /// Looks at the first 128 bytes.
    pub(super) fn parse(bytes: &[u8; FIXED_BYTES]) -> Result<Self, WireError> {
        let mut fields = Fields::new(bytes);
        if fields.take(MAGIC.len())? != MAGIC {
            return Err(WireError::NotSudare);
        }
        let found = fields.u16()?;
        if found != VERSION {
            return Err(WireError::Version { found, supported: VERSION });
        }
        fields.u16()?;
        let header_bytes = fields.u32()? as usize;
        if header_bytes > MAX_HEADER_BYTES {
            let (found, limit) = (header_bytes as u64, MAX_HEADER_BYTES as u64);
            return Err(WireError::Oversize { what: "a header", found, limit });
        }
        if header_bytes < FIXED_BYTES + CHECKSUM_BYTES {
            return Err(WireError::Corrupt { what: "a header that is too short" });
        }
        Ok(Self { header_bytes })
    }
}

impl Header {
    /// The header of an object with this metadata and segments of these lengths.
    ///
    /// # Errors
    /// [`WireError::Oversize`].
    pub fn new(
        object: ObjectType,
        (params, key): (ParamsHash, KeyId),
        state: State,
        meta: Vec<u8>,
        segments: Vec<u64>,
    ) -> Result<Self, WireError> {
        let (_, total) = lengths(meta.len(), &segments)?;
        let mut out = Self { object, params, key, state, meta, segments, total, checksum: [0; CHECKSUM_BYTES] };
        let bytes = out.to_bytes();
        out.checksum.copy_from_slice(&bytes[bytes.len() - CHECKSUM_BYTES..]);
        Ok(out)
    }

    /// The header's bytes, its checksum last: the whole container of an object without segments.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header_bytes = FIXED_BYTES + padded(self.meta.len()) + 8 * self.segments.len() + CHECKSUM_BYTES;
        let mut out = Vec::with_capacity(header_bytes);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.object.code().to_le_bytes());
        // All three are under MAX_HEADER_BYTES.
        out.extend((header_bytes as u32).to_le_bytes());
        out.extend((self.segments.len() as u32).to_le_bytes());
        out.extend((self.meta.len() as u32).to_le_bytes());
        out.extend(self.total.to_le_bytes());
        out.extend(self.params.0);
        out.extend(self.key.0);
        out.extend(self.state.level.to_le_bytes());
        out.extend([0; 4]);
        for x in [self.state.scale, self.state.bound, self.state.noise] {
            out.extend(x.to_le_bytes());
        }
        out.resize(FIXED_BYTES, 0);
        out.extend(&self.meta);
        out.resize(FIXED_BYTES + padded(self.meta.len()), 0);
        self.segments.iter().for_each(|bytes| out.extend(bytes.to_le_bytes()));
        out.extend(checksum(&out));
        out
    }

    /// Reads a whole header; the checksum comes before anything is believed.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let short = WireError::Corrupt { what: "a header that is too short" };
        let (Some(fixed), Some(sum)) = (bytes.first_chunk(), bytes.last_chunk::<CHECKSUM_BYTES>()) else {
            return Err(short);
        };
        if Lead::parse(fixed)?.header_bytes != bytes.len() {
            return Err(short);
        }
        let body = &bytes[..bytes.len() - CHECKSUM_BYTES];
        if checksum(body) != *sum {
            return Err(WireError::Checksum { part: Part::Header });
        }
        let mut fields = Fields::new(body);
        fields.take(MAGIC.len() + 2)?;
        let object =
            ObjectType::from_code(fields.u16()?).ok_or(WireError::Corrupt { what: "an unknown object type" })?;
        fields.take(4)?;
        let (count, meta_bytes) = (fields.u32()? as usize, fields.u32()? as usize);
        let total = fields.u64()?;
        let (params, key) = (ParamsHash(fields.bytes32()?), KeyId(fields.bytes16()?));
        let level = fields.u32()?;
        fields.zeros(4)?;
        let state = State { level, scale: fields.f64()?, bound: fields.f64()?, noise: fields.f64()? };
        fields.zeros(16)?;
        // The metadata and the table must fill the header, which is here: nothing is allocated
        // beyond what arrived.
        let meta = fields.take(meta_bytes)?.to_vec();
        expect_zeros(fields.take(padded(meta_bytes) - meta_bytes)?)?;
        if (body.len() - FIXED_BYTES - padded(meta_bytes)) as u64 != 8 * count as u64 {
            return Err(WireError::Corrupt { what: "a segment table of the wrong length" });
        }
        let segments = (0..count).map(|_| fields.u64()).collect::<Result<Vec<_>, _>>()?;
        fields.finish()?;
        if lengths(meta_bytes, &segments)? != (bytes.len(), total) {
            return Err(WireError::Corrupt { what: "lengths that do not add up" });
        }
        Ok(Self { object, params, key, state, meta, segments, total, checksum: *sum })
    }

    /// Writes the right checksum into a header's last bytes.
    pub(super) fn reseal(bytes: &mut [u8]) {
        if let Some(at) = bytes.len().checked_sub(CHECKSUM_BYTES) {
            let sum = checksum(&bytes[..at]);
            bytes[at..].copy_from_slice(&sum);
        }
    }

    /// What the container holds.
    pub fn object(&self) -> ObjectType {
        self.object
    }

    /// The parameter set that the object belongs to.
    pub fn params(&self) -> ParamsHash {
        self.params
    }

    /// The secret key that the object belongs to; zeros for parameters and plaintexts.
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// Level, scale and bounds of a plaintext or a ciphertext; zeros for other objects.
    pub fn state(&self) -> State {
        self.state
    }

    /// Bytes of the whole container.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes of each segment.
    pub fn segments(&self) -> &[u64] {
        &self.segments
    }

    /// Where each segment lies in the container; its checksum follows it.
    pub fn segment_ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.segments.iter().scan(self.bytes(), |position, bytes| {
            let start = position.next_multiple_of(ALIGNMENT);
            *position = start + bytes + CHECKSUM_BYTES as u64;
            Some(start..start + bytes)
        })
    }

    /// Bytes up to the end of the first `count` segments and their checksums.
    pub fn end_of(&self, count: usize) -> u64 {
        self.segment_ranges().take(count).last().map_or(self.bytes(), |range| range.end + CHECKSUM_BYTES as u64)
    }

    /// Bytes of the header itself.
    pub fn bytes(&self) -> u64 {
        (FIXED_BYTES + padded(self.meta.len()) + 8 * self.segments.len() + CHECKSUM_BYTES) as u64
    }

    /// The object's own fields.
    pub fn meta(&self) -> &[u8] {
        &self.meta
    }

    /// The checksum of a segment: keyed with the header's, so that a segment of another file or
    /// another place is damage too.
    pub(super) fn segment_checksum(&self, i: usize, bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
        use zeroize::Zeroize;
        let mut hasher = blake3::Hasher::new_keyed(&self.checksum);
        hasher.update(&(i as u64).to_le_bytes()).update(bytes);
        let sum = *hasher.finalize().as_bytes();
        // The segment may be a secret key.
        hasher.zeroize();
        sum
    }

    /// Refuses another type of object.
    ///
    /// # Errors
    /// [`WireError::WrongType`].
    pub fn expect_object(&self, expected: ObjectType) -> Result<(), WireError> {
        if self.object == expected { Ok(()) } else { Err(WireError::WrongType { found: self.object, expected }) }
    }

    /// Refuses an object of other parameters.
    ///
    /// # Errors
    /// [`WireError::WrongParameters`], [`WireError::WrongBootstrapSet`].
    pub fn expect_params(&self, expected: ParamsHash) -> Result<(), WireError> {
        let found = self.params;
        match self.object {
            _ if found == expected => Ok(()),
            ObjectType::BootstrapKeys => Err(WireError::WrongBootstrapSet { found, expected }),
            _ => Err(WireError::WrongParameters { found, expected }),
        }
    }

    /// Refuses an object of another secret key.
    ///
    /// # Errors
    /// [`WireError::WrongKey`].
    pub fn expect_key(&self, expected: KeyId) -> Result<(), WireError> {
        if self.key == expected { Ok(()) } else { Err(WireError::WrongKey { found: self.key, expected }) }
    }

    /// Refuses segments that are not exactly those expected; comes before anything is allocated
    /// for them.
    ///
    /// # Errors
    /// [`WireError::Corrupt`].
    pub fn expect_segments(&self, expected: impl IntoIterator<Item = u64>) -> Result<(), WireError> {
        if self.segments.iter().copied().eq(expected) {
            return Ok(());
        }
        Err(WireError::Corrupt { what: "segments of other sizes than the parameters say" })
    }

    /// Refuses metadata of an object that has none.
    ///
    /// # Errors
    /// [`WireError::Corrupt`].
    pub fn expect_no_meta(&self) -> Result<(), WireError> {
        if self.meta.is_empty() { Ok(()) } else { Err(WireError::Corrupt { what: "metadata where none belongs" }) }
    }

    /// Refuses fields that the object does not use.
    ///
    /// # Errors
    /// [`WireError::Corrupt`].
    pub fn expect_no_state(&self) -> Result<(), WireError> {
        let State { level, scale, bound, noise } = self.state;
        if level == 0 && [scale, bound, noise].iter().all(|x| x.to_bits() == 0) {
            return Ok(());
        }
        Err(WireError::Corrupt { what: "a level or scale where none belongs" })
    }
}
