//! The wire format: how parameters, keys, plaintexts and ciphertexts travel and are stored.
//!
//! Every object is one container: a header of little-endian fields with a checksum, then
//! segments at multiples of 4 KiB, each with a checksum. `docs/wire-format.md` gives it byte by
//! byte. What can be expanded from a public seed travels as its seed. This module has the container and
//! the objects that schemes share; every other object has its encoding beside its type, by [`Wire`].
//!
//! Bytes from outside are believed in this order: type and version, the header's checksum, the
//! parameter hash, sizes against the parameters (before anything is allocated for them), each
//! segment's checksum, each residue against its modulus. Padding is zero and nothing follows the
//! end, so there is one encoding of an object and no byte that is not checked. Checksums find
//! damage; they do not say who wrote a file.

mod bundle;
mod bytes;
mod ciphertext;
mod container;
mod error;
mod eval_keys;
mod header;
mod object;
pub mod packing;
mod params;
mod public_key;
mod secret_key;

pub use bundle::{Bundle, Bundled, MAX_APPLICATION_BYTES, MAX_BUNDLE};
pub use bytes::Fields;
pub use ciphertext::Form;
#[doc(hidden)]
pub use container::reseal_for_tests;
pub use container::{Container, Reader, Source, Writer, check_length, peek, segment_at, segment_in, segment_place};
pub use error::{Part, Refused, WireError};
pub use eval_keys::KeyRecord;
pub use header::{ALIGNMENT, Header, MAGIC, MAX_HEADER_BYTES, MAX_SEGMENT_BYTES, State, VERSION};
pub use object::ObjectType;
pub use params::{
    StoredParams, literal_meta, params_from_bytes, params_to_bytes, read_literal, read_params, write_params,
};
pub use secret_key::{read_secret_key, secret_key_from_bytes, secret_key_to_bytes, write_secret_key};

use crate::ids::ParamsHash;
use std::io::{Read, Write};

/// Public objects that travel: keys for others, plaintexts, ciphertexts, bundles.
///
/// A crate that has such an object gives it an [`ObjectType`] and says how its header and segments
/// are made and read; the rest is here. A secret key is none of them; see [`write_secret_key`].
///
/// ```
/// use sudare_rlwe::keys::{KeyGenerator, PublicKey, SecretKey};
/// use sudare_rlwe::params::{ParamsLiteral, SchemeTag};
/// use sudare_rlwe::security::{SecretDistribution, Security};
/// use sudare_rlwe::wire::{Wire, WireError};
///
/// # fn main() -> Result<(), WireError> {
/// # let secret = SecretDistribution::Ternary;
/// # let (q_bits, p_bits, security) = (vec![35, 35], vec![35], Security::Bits128);
/// # let literal = ParamsLiteral { log_n: 12, q_bits, p_bits, digit_limbs: 1, secret, security };
/// let params = literal.build(SchemeTag(1))?;
/// let key = KeyGenerator::new(&SecretKey::generate(&params)?)?.public_key()?;
/// let bytes = key.to_bytes()?;
/// assert_eq!(bytes.len() as u64, key.wire_bytes()?);
/// assert_eq!(PublicKey::from_bytes(&params, &bytes)?.id(), key.id());
/// // A flipped bit is found before anything is made of the bytes.
/// let mut damaged = bytes;
/// damaged[5000] ^= 1;
/// assert!(PublicKey::from_bytes(&params, &damaged).is_err());
/// # Ok(())
/// # }
/// ```
///
/// A secret key does not travel by this trait:
///
/// ```compile_fail,E0277
/// # use sudare_rlwe::{keys::SecretKey, wire::{Wire, WireError}};
/// fn send(key: &SecretKey) -> Result<Vec<u8>, WireError> {
///     Wire::to_bytes(key)
/// }
/// ```
pub trait Wire: Sized {
    /// The parameters that it belongs to.
    type Params;

    /// What its container says that it holds.
    const TYPE: ObjectType;

    /// The name of the parameters, which the header has to bear.
    fn params_hash(params: &Self::Params) -> ParamsHash;

    /// The header, which announces the segments.
    ///
    /// # Errors
    /// [`WireError::Oversize`], and what the object cannot be written for.
    fn header(&self) -> Result<Header, WireError>;

    /// Writes the segments.
    ///
    /// # Errors
    /// [`WireError::Io`].
    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError>;

    /// Reads what follows a header whose type and parameters are right.
    ///
    /// # Errors
    /// Every [`WireError`].
    fn read_segments(params: &Self::Params, reader: &mut Reader<'_>) -> Result<Self, WireError>;

    /// Writes the object.
    ///
    /// # Errors
    /// [`WireError::Io`], [`WireError::Oversize`].
    fn write_to(&self, out: impl Write) -> Result<(), WireError> {
        let header = self.header()?;
        let mut writer = Writer::new(out, &header)?;
        self.write_segments(&mut writer)?;
        writer.finish()
    }

    /// The object's bytes.
    ///
    /// # Errors
    /// [`WireError::Oversize`].
    fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        self.write_to(&mut out)?;
        Ok(out)
    }

    /// How many bytes [`Wire::write_to`] writes.
    ///
    /// # Errors
    /// [`WireError::Oversize`].
    fn wire_bytes(&self) -> Result<u64, WireError> {
        Ok(self.header()?.total_bytes())
    }

    /// Reads an object that the stream ends with; limit the stream where more follows
    /// ([`peek`] tells the length).
    ///
    /// # Errors
    /// Every [`WireError`].
    fn read_from(params: &Self::Params, mut input: impl Read) -> Result<Self, WireError> {
        load(params, Source::stream(&mut input))
    }

    /// Reads an object from memory or a mapped file.
    ///
    /// # Errors
    /// Every [`WireError`] but [`WireError::Io`].
    fn from_bytes(params: &Self::Params, bytes: &[u8]) -> Result<Self, WireError> {
        load(params, Source::Bytes(bytes))
    }
}

fn load<T: Wire>(params: &T::Params, source: Source<'_>) -> Result<T, WireError> {
    let mut reader = Reader::open(source, T::TYPE)?;
    reader.header().expect_params(T::params_hash(params))?;
    let object = T::read_segments(params, &mut reader)?;
    reader.finish()?;
    Ok(object)
}
