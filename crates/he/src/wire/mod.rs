//! The wire format: how parameters, keys, plaintexts and ciphertexts travel and are stored.
//!
//! Every object is one container: a header of little-endian fields with a checksum, then
//! segments at multiples of 4 KiB, each with a checksum. `docs/wire-format.md` gives it byte by
//! byte. What can be expanded from a public seed travels as its seed.
//!
//! Bytes from outside are believed in this order: type and version, the header's checksum, the
//! parameter hash, sizes against the parameters (before anything is allocated for them), each
//! segment's checksum, each residue against its modulus. Padding is zero and nothing follows the
//! end, so there is one encoding of an object and no byte that is not checked. Checksums find
//! damage; they do not say who wrote a file.
//!
//! ```
//! use sudare_he::ckks::{Ciphertext, Decryptor, Encoder, Encryptor};
//! use sudare_he::keys::SecretKey;
//! use sudare_he::params::ParamsLiteral;
//! use sudare_he::wire::{Wire, WireError};
//!
//! # fn main() -> Result<(), WireError> {
//! let params = ParamsLiteral::paper_matmul().build()?;
//! let secret = SecretKey::generate(&params)?;
//! let encoder = Encoder::new(&params);
//! let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&[0.5, -0.25], 1.0)?)?;
//!
//! let bytes = x.to_bytes()?; // half of it: the other half is a seed
//! assert!(bytes.len() < x.bytes() / 2);
//! let back = Ciphertext::from_bytes(&params, &bytes)?;
//! assert_eq!(back.parts()[1].words(), x.parts()[1].words());
//! # Ok(())
//! # }
//! ```

mod bundle;
mod bytes;
mod ciphertext;
mod container;
mod error;
mod eval_keys;
mod header;
mod integer;
mod open;
mod packing;
mod params;
mod plaintext;
mod public_key;
mod secret_key;
mod tfhe;

pub use bundle::{Bundle, MAX_APPLICATION_BYTES, MAX_BUNDLE};
pub use bytes::Fields;
#[doc(hidden)]
pub use container::reseal_for_tests;
pub use container::{Container, peek};
pub use error::{Part, WireError};
pub use header::{ALIGNMENT, Header, MAGIC, MAX_HEADER_BYTES, MAX_SEGMENT_BYTES, ObjectType, State, VERSION};
pub use integer::{
    IntegerWire, StoredIntegerParams, integer_params_from_bytes, integer_params_to_bytes, read_integer_params,
    write_integer_params,
};
pub use open::{
    NO_KEY, ObjectReader, ObjectWriter, object_header, pack_residues, residue_bytes, segment_at, unpack_residues,
};
pub use params::{StoredParams, params_from_bytes, params_to_bytes, read_params, write_params};
pub use secret_key::{read_secret_key, secret_key_from_bytes, secret_key_to_bytes, write_secret_key};
pub use tfhe::{
    StoredTfheParams, read_tfhe_server_key, tfhe_array_from_bytes, tfhe_array_to_bytes, tfhe_client_key_from_bytes,
    tfhe_client_key_to_bytes, tfhe_params_from_bytes, tfhe_params_to_bytes, tfhe_server_key_bytes,
    tfhe_server_key_from_bytes, write_tfhe_server_key,
};

use crate::params::Params;
use container::{Reader, Source, Writer};
use std::io::{Read, Write};
use sudare_ring::{Eval, Poly};

/// The halves that differ between objects.
trait Object: Sized {
    const TYPE: ObjectType;

    /// The header and the polynomials that are the segments.
    fn outline(&self) -> Result<(Header, Vec<&Poly<Eval>>), WireError>;

    /// Writes the segments; for objects that hold their polynomials in another form than the
    /// one that travels.
    fn write_segments<W: Write>(&self, polys: Vec<&Poly<Eval>>, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        polys.into_iter().try_for_each(|p| writer.poly(p))
    }

    /// Reads what follows a header whose type and parameters are right.
    fn load(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError>;
}

fn load<T: Object>(params: &Params, source: Source<'_>) -> Result<T, WireError> {
    let mut reader = Reader::open(source, T::TYPE)?;
    reader.header().expect_params(params.hash())?;
    let object = T::load(params, &mut reader)?;
    reader.finish()?;
    Ok(object)
}

/// Public objects that travel: public and evaluation keys, plaintexts, ciphertexts, bundles.
///
/// A secret key is none of them; see [`write_secret_key`].
///
/// ```compile_fail,E0277
/// # use sudare_he::{keys::SecretKey, wire::{Wire, WireError}};
/// fn send(key: &SecretKey) -> Result<Vec<u8>, WireError> {
///     Wire::to_bytes(key)
/// }
/// ```
#[expect(private_bounds, reason = "what travels is settled here")]
pub trait Wire: Object {
    /// Writes the object.
    ///
    /// # Errors
    /// [`WireError::Io`], [`WireError::Oversize`].
    fn write_to(&self, out: impl Write) -> Result<(), WireError> {
        let (header, polys) = self.outline()?;
        let mut writer = Writer::new(out, &header)?;
        self.write_segments(polys, &mut writer)?;
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
        Ok(self.outline()?.0.total_bytes())
    }

    /// Reads an object that the stream ends with; limit the stream where more follows
    /// ([`peek`] tells the length).
    ///
    /// # Errors
    /// Every [`WireError`].
    fn read_from(params: &Params, mut input: impl Read) -> Result<Self, WireError> {
        load(params, Source::stream(&mut input))
    }

    /// Reads an object from memory or a mapped file.
    ///
    /// # Errors
    /// Every [`WireError`] but [`WireError::Io`].
    fn from_bytes(params: &Params, bytes: &[u8]) -> Result<Self, WireError> {
        load(params, Source::Bytes(bytes))
    }
}

impl<T: Object> Wire for T {}
