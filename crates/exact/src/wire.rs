//! Objects of exact schemes on the wire: parameters with a plaintext modulus, plaintexts,
//! ciphertexts. Keys are those of the parameter set alone.

use super::{Ciphertext, IntegerParams, Plaintext, Scheme, State};
use crate::error::ExactError;
use std::io::{Read, Write};
use sudare_ring::plain::MAX_PLAIN_BITS;
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::packing::{pack_words, unpack_words, width};
use sudare_rlwe::wire::{
    self, Bundled, Fields, Form, Header, ObjectType, Reader, Source, StoredParams, Wire, WireError, Writer,
    literal_meta, read_literal,
};
use sudare_rlwe::{KeyId, ParamsHash};

/// Reads the plaintext modulus and refuses another one.
fn expect_modulus(params: &IntegerParams, fields: &mut Fields<'_>) -> Result<(), WireError> {
    let (found, expected) = (fields.u64()?, params.t());
    if found == expected {
        return Ok(());
    }
    Err(ExactError::Rlwe(RlweError::WrongPlainModulus { what: "the file", found, expected }).into())
}

impl Wire for Plaintext {
    type Params = IntegerParams;
    const TYPE: ObjectType = ObjectType::IntegerPlaintext;

    fn params_hash(params: &IntegerParams) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let (params, t) = (self.params(), self.params().t());
        let bytes = (params.degree() * width(t)) as u64;
        let meta = t.to_le_bytes().to_vec();
        Header::new(Self::TYPE, (params.hash(), KeyId::NONE), wire::State::default(), meta, vec![bytes])
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        let mut bytes = Vec::new();
        pack_words(self.coefficients(), self.params().t(), &mut bytes);
        writer.segment(&bytes)
    }

    fn read_segments(params: &IntegerParams, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_key(KeyId::NONE)?;
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        expect_modulus(params, &mut fields)?;
        fields.finish()?;
        let (t, n) = (params.t(), params.degree());
        header.expect_segments([(n * width(t)) as u64])?;
        let mut words = vec![0; n];
        if !unpack_words(reader.segment()?, t, &mut words)
            && let Some(index) = words.iter().position(|x| *x >= t)
        {
            return Err(WireError::Coefficient { segment: 0, limb: 0, index });
        }
        Ok(Self::from_coefficients(params, words)?)
    }
}

/// What a header says of one ciphertext, but for its level and noise.
pub struct Record {
    factor: u64,
    level: u32,
    noise: f64,
    form: Form,
}

/// Plaintext modulus, factor and scheme; the form.
fn write_form<S: Scheme>(params: &IntegerParams, record: &Record, meta: &mut Vec<u8>) {
    meta.extend(params.t().to_le_bytes());
    meta.extend(record.factor.to_le_bytes());
    meta.extend(S::CODE.to_le_bytes());
    record.form.counts().iter().for_each(|x| meta.extend(x.to_le_bytes()));
    meta.extend([0; 4]);
    meta.extend(record.form.seed_bytes());
}

fn read_form<S: Scheme>(
    params: &IntegerParams,
    (level, noise): (u32, f64),
    fields: &mut Fields<'_>,
) -> Result<Record, WireError> {
    // Negative zero would be a second encoding of the same bound.
    if noise.is_sign_negative() {
        return Err(WireError::Corrupt { what: "a scale or bound that no exact ciphertext has" });
    }
    expect_modulus(params, fields)?;
    let factor = fields.u64()?;
    if fields.u32()? != S::CODE {
        return Err(WireError::Corrupt { what: "a ciphertext of another exact scheme" });
    }
    let counts = (fields.u32()?, fields.u32()?);
    fields.zeros(4)?;
    let form = Form::read(params, level, counts, fields.bytes32()?)?;
    Ok(Record { factor, level, noise, form })
}

impl<S: Scheme> Wire for Ciphertext<S> {
    type Params = IntegerParams;
    const TYPE: ObjectType = ObjectType::IntegerCiphertext;

    fn params_hash(params: &IntegerParams) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let record = self.record()?;
        let state = wire::State { level: record.level, scale: 0.0, bound: 0.0, noise: record.noise };
        let mut meta = Vec::with_capacity(64);
        write_form::<S>(self.params(), &record, &mut meta);
        Header::new(Self::TYPE, self.owner(), state, meta, record.form.lengths(self.params()).collect())
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        Form::of(self.inner()).write(self.inner(), writer)
    }

    fn read_segments(params: &IntegerParams, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        let wire::State { level, scale, bound, noise } = header.state();
        if scale.to_bits() != 0 || bound.to_bits() != 0 {
            return Err(WireError::Corrupt { what: "a scale or bound that no exact ciphertext has" });
        }
        let mut fields = Fields::new(header.meta());
        let record = read_form::<S>(params, (level, noise), &mut fields)?;
        fields.finish()?;
        header.expect_segments(record.form.lengths(params))?;
        let key = header.key();
        Self::load(params, key, record, reader)
    }
}

impl<S: Scheme> Bundled for Ciphertext<S> {
    const BUNDLE: ObjectType = ObjectType::IntegerBundle;
    type Record = Record;

    fn owner(&self) -> (ParamsHash, KeyId) {
        (self.params().hash(), self.key())
    }

    fn record(&self) -> Result<Record, WireError> {
        let (factor, level, noise) = (self.factor(), self.level() as u32, self.noise());
        Ok(Record { factor, level, noise, form: Form::of(self.inner()) })
    }

    fn write_record(params: &IntegerParams, record: &Record, meta: &mut Vec<u8>) {
        write_form::<S>(params, record, meta);
        meta.extend(record.level.to_le_bytes());
        meta.extend([0; 4]);
        meta.extend(record.noise.to_le_bytes());
    }

    fn read_record(params: &IntegerParams, fields: &mut Fields<'_>) -> Result<Record, WireError> {
        /// Bytes of what [`write_form`] writes.
        const FORM_BYTES: usize = 64;
        let form = fields.take(FORM_BYTES)?;
        let level = fields.u32()?;
        fields.zeros(4)?;
        read_form::<S>(params, (level, fields.f64()?), &mut Fields::new(form))
    }

    fn lengths(params: &IntegerParams, record: &Record) -> impl Iterator<Item = u64> {
        record.form.lengths(params)
    }

    fn load(params: &IntegerParams, key: KeyId, record: Record, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let Record { factor, noise, form, .. } = record;
        Ok(Self::from_parts(params, form.load(params, key, reader)?, State { factor, noise })?)
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
    meta.extend(literal_meta(params));
    Header::new(ObjectType::IntegerParams, (params.hash(), KeyId::NONE), wire::State::default(), meta, Vec::new())
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
    header.expect_key(KeyId::NONE)?;
    header.expect_segments([])?;
    let mut fields = Fields::new(header.meta());
    let t = fields.u64()?;
    if t < 2 || t >> MAX_PLAIN_BITS != 0 {
        return Err(WireError::Oversize { what: "a plaintext modulus", found: t, limit: (1 << MAX_PLAIN_BITS) - 1 });
    }
    let (literal, tag) = read_literal(fields)?;
    let params = StoredParams { hash: header.params(), literal, tag };
    reader.finish()?;
    Ok(StoredIntegerParams { params, t })
}
