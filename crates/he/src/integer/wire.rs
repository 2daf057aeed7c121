//! Objects of exact schemes on the wire: parameters with a plaintext modulus, plaintexts,
//! ciphertexts. Keys are those of the parameter set alone.

use super::bytes::Fields;
use super::container::{Reader, Source, Writer};
use super::error::WireError;
use super::header::{Header, ObjectType, State};
use super::packing::{pack_words, packed_bytes, unpack_words, width};
use super::params::{StoredParams, literal_meta, read_literal};
use crate::integer::modulus::MAX_PLAIN_BITS;
use crate::integer::{Ciphertext, IntegerParams, Plaintext, Scheme};
use crate::keys::KeyId;
use std::io::{Read, Write};
use sudare_ring::random::MaskSeed;

/// The key id of what belongs to no key.
const NO_KEY: KeyId = KeyId([0; 16]);

/// Public objects of exact schemes that travel: plaintexts and ciphertexts.
///
/// Like [`super::Wire`], for parameters that have a plaintext modulus.
#[expect(private_bounds, reason = "what travels is settled here")]
pub trait IntegerWire: Object {
    /// Writes the object.
    ///
    /// # Errors
    /// [`WireError::Io`].
    fn write_to(&self, out: impl Write) -> Result<(), WireError> {
        let header = self.header()?;
        let mut writer = Writer::new(out, &header)?;
        self.segments(&mut writer)?;
        writer.finish()
    }

    /// The object's bytes.
    ///
    /// # Errors
    /// None for an object that exists.
    fn to_bytes(&self) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::new();
        self.write_to(&mut out)?;
        Ok(out)
    }

    /// How many bytes [`IntegerWire::write_to`] writes.
    ///
    /// # Errors
    /// None for an object that exists.
    fn wire_bytes(&self) -> Result<u64, WireError> {
        Ok(self.header()?.total_bytes())
    }

    /// Reads an object that the stream ends with.
    ///
    /// # Errors
    /// Every [`WireError`].
    fn read_from(params: &IntegerParams, mut input: impl Read) -> Result<Self, WireError> {
        load(params, Source::stream(&mut input))
    }

    /// Reads an object from memory or a mapped file.
    ///
    /// # Errors
    /// Every [`WireError`] but [`WireError::Io`].
    fn from_bytes(params: &IntegerParams, bytes: &[u8]) -> Result<Self, WireError> {
        load(params, Source::Bytes(bytes))
    }
}

impl IntegerWire for Plaintext {}
impl<S: Scheme> IntegerWire for Ciphertext<S> {}

fn load<T: Object>(params: &IntegerParams, source: Source<'_>) -> Result<T, WireError> {
    let mut reader = Reader::open(source, T::TYPE)?;
    reader.header().expect_params(params.params().hash())?;
    let object = T::load(params, &mut reader)?;
    reader.finish()?;
    Ok(object)
}

/// The halves that differ between objects.
trait Object: Sized {
    const TYPE: ObjectType;

    fn header(&self) -> Result<Header, WireError>;

    fn segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError>;

    fn load(params: &IntegerParams, reader: &mut Reader<'_>) -> Result<Self, WireError>;
}

/// Reads the plaintext modulus and refuses another one.
fn expect_modulus(params: &IntegerParams, fields: &mut Fields<'_>) -> Result<(), WireError> {
    let (found, expected) = (fields.u64()?, params.t());
    if found == expected {
        return Ok(());
    }
    Err(crate::HeError::WrongPlainModulus { what: "the file", found, expected }.into())
}

impl Object for Plaintext {
    const TYPE: ObjectType = ObjectType::IntegerPlaintext;

    fn header(&self) -> Result<Header, WireError> {
        let (params, t) = (self.params().params(), self.params().t());
        let owner = (params.hash(), NO_KEY);
        let bytes = (params.degree() * width(t)) as u64;
        Header::new(Self::TYPE, owner, State::default(), t.to_le_bytes().to_vec(), vec![bytes])
    }

    fn segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        let mut bytes = Vec::new();
        pack_words(self.coefficients(), self.params().t(), &mut bytes);
        writer.segment(&bytes)
    }

    fn load(params: &IntegerParams, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_key(NO_KEY)?;
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        expect_modulus(params, &mut fields)?;
        fields.finish()?;
        let (t, n) = (params.t(), params.degree());
        header.expect_segments([(n * width(t)) as u64])?;
        let mut words = vec![0; n];
        if !unpack_words(reader.segment()?, t, &mut words) {
            let index = words.iter().position(|x| *x >= t).unwrap_or(0);
            return Err(WireError::Coefficient { segment: 0, limb: 0, index });
        }
        Ok(Self::from_coefficients(params, words)?)
    }
}

impl<S: Scheme> Object for Ciphertext<S> {
    const TYPE: ObjectType = ObjectType::IntegerCiphertext;

    fn header(&self) -> Result<Header, WireError> {
        let (params, seed) = (self.params(), self.seed());
        let state = State { level: self.level() as u32, scale: 0.0, bound: 0.0, noise: self.noise() };
        let mut meta = Vec::with_capacity(64);
        meta.extend(params.t().to_le_bytes());
        meta.extend(self.factor().to_le_bytes());
        meta.extend(S::CODE.to_le_bytes());
        meta.extend((self.parts().len() as u32).to_le_bytes());
        meta.extend(u32::from(seed.is_some()).to_le_bytes());
        meta.extend([0; 4]);
        meta.extend(seed.as_ref().map_or(&[0; 32], MaskSeed::as_bytes));
        let count = if seed.is_some() { 1 } else { self.parts().len() };
        let lengths = vec![packed_bytes(params.params().q_at(self.level())); count];
        Header::new(Self::TYPE, (params.params().hash(), self.key()), state, meta, lengths)
    }

    fn segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        let count = if self.seed().is_some() { 1 } else { self.parts().len() };
        self.parts()[..count].iter().try_for_each(|p| writer.poly(p))
    }

    fn load(params: &IntegerParams, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        let State { level, scale, bound, noise } = header.state();
        let highest = params.params().max_level() as u64;
        if u64::from(level) > highest {
            return Err(WireError::Oversize { what: "a level", found: level.into(), limit: highest });
        }
        // Negative zero would be a second encoding of the same bound.
        if scale.to_bits() != 0 || bound.to_bits() != 0 || noise.is_sign_negative() {
            return Err(WireError::Corrupt { what: "a scale or bound that no exact ciphertext has" });
        }
        let mut fields = Fields::new(header.meta());
        expect_modulus(params, &mut fields)?;
        let factor = fields.u64()?;
        if fields.u32()? != S::CODE {
            return Err(WireError::Corrupt { what: "a ciphertext of another exact scheme" });
        }
        let (parts, seeded) = (fields.u32()? as usize, fields.u32()?);
        fields.zeros(4)?;
        let seed = fields.bytes32()?;
        fields.finish()?;
        let seed = match (parts, seeded) {
            (2, 1) => Some(MaskSeed::from_bytes(seed)),
            (2 | 3, 0) if seed == [0; 32] => None,
            _ => return Err(WireError::Corrupt { what: "a ciphertext of impossible parts" }),
        };
        let basis = params.params().q_at(level as usize);
        let count = if seed.is_some() { 1 } else { parts };
        header.expect_segments(std::iter::repeat_n(packed_bytes(basis), count))?;
        let (key, level, state) = (header.key(), level as usize, (factor, noise));
        match seed {
            Some(seed) => Ok(Self::from_seeded(params, key, reader.poly(basis)?, &seed, level, state)?),
            None => {
                let parts = (0..parts).map(|_| reader.poly(basis)).collect::<Result<_, _>>()?;
                Ok(Self::from_parts(params, key, parts, level, state)?)
            }
        }
    }
}

/// Parameters of exact arithmetic as they were stored, with nothing built yet.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredIntegerParams {
    /// The parameter set.
    pub params: StoredParams,
    /// The plaintext modulus.
    pub t: u64,
}

impl StoredIntegerParams {
    /// Builds the set; see [`StoredParams::build`] for what that may cost.
    ///
    /// # Errors
    /// As [`StoredParams::build`] and [`IntegerParams::new`].
    pub fn build(&self) -> Result<IntegerParams, WireError> {
        Ok(IntegerParams::new(&self.params.build()?, self.t)?)
    }
}

fn params_header(params: &IntegerParams) -> Result<Header, WireError> {
    let mut meta = params.t().to_le_bytes().to_vec();
    meta.extend(literal_meta(params.params().literal()));
    let owner = (params.params().hash(), NO_KEY);
    Header::new(ObjectType::IntegerParams, owner, State::default(), meta, Vec::new())
}

/// Writes parameters of exact arithmetic.
///
/// # Errors
/// [`WireError::Io`].
pub fn write_integer_params(params: &IntegerParams, out: impl Write) -> Result<(), WireError> {
    Writer::new(out, &params_header(params)?)?.finish()
}

/// The bytes of parameters of exact arithmetic.
///
/// # Errors
/// None for a set that was built.
pub fn integer_params_to_bytes(params: &IntegerParams) -> Result<Vec<u8>, WireError> {
    Ok(params_header(params)?.to_bytes())
}

/// Reads parameters of exact arithmetic that the stream ends with, without building them.
///
/// # Errors
/// Every [`WireError`] but those about residues.
pub fn read_integer_params(mut input: impl Read) -> Result<StoredIntegerParams, WireError> {
    load_params(Source::stream(&mut input))
}

/// Reads parameters of exact arithmetic from memory, without building them.
///
/// # Errors
/// As [`read_integer_params`], less [`WireError::Io`].
pub fn integer_params_from_bytes(bytes: &[u8]) -> Result<StoredIntegerParams, WireError> {
    load_params(Source::Bytes(bytes))
}

fn load_params(source: Source<'_>) -> Result<StoredIntegerParams, WireError> {
    let reader = Reader::open(source, ObjectType::IntegerParams)?;
    let header = reader.header();
    header.expect_no_state()?;
    header.expect_key(NO_KEY)?;
    header.expect_segments([])?;
    let mut fields = Fields::new(header.meta());
    let t = fields.u64()?;
    if t < 2 || t >> MAX_PLAIN_BITS != 0 {
        return Err(WireError::Oversize { what: "a plaintext modulus", found: t, limit: (1 << MAX_PLAIN_BITS) - 1 });
    }
    let params = StoredParams { hash: header.params(), literal: read_literal(fields)? };
    reader.finish()?;
    Ok(StoredIntegerParams { params, t })
}
