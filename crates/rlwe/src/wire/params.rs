//! Parameter sets on the wire.

use super::bytes::Fields;
use super::container::{Reader, Source, Writer};
use super::error::WireError;
use super::header::{Header, State};
use super::object::ObjectType;
use crate::ids::{KeyId, ParamsHash};
use crate::multiparty::MAX_PARTIES;
use crate::params::{MAX_PRIMES, Params, ParamsLiteral, SchemeTag};
use crate::security::{SecretDistribution, Security};
use std::io::{Read, Write};

/// A parameter set as it was stored: its literal and its hash, with nothing built yet.
///
/// Building a set costs time and memory in proportion to N·primes (a gigabyte and seconds at
/// N = 2^17 with 128 primes) and is therefore a call of its own: compare the hash or look at the
/// literal first where the bytes come from a stranger.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredParams {
    /// The hash that the set must have.
    pub hash: ParamsHash,
    /// The literal.
    pub literal: ParamsLiteral,
    /// The scheme's word in its hash.
    pub tag: SchemeTag,
}

impl StoredParams {
    /// Builds the set.
    ///
    /// # Errors
    /// [`WireError::Rlwe`] if the literal makes no sense or is not as secure as it claims,
    /// [`WireError::WrongParameters`] if another set comes out than was stored.
    pub fn build(&self) -> Result<Params, WireError> {
        let params = self.literal.build(self.tag)?;
        if params.hash() == self.hash {
            return Ok(params);
        }
        Err(WireError::WrongParameters { found: params.hash(), expected: self.hash })
    }
}

fn outline(params: &Params) -> Result<Header, WireError> {
    let meta = literal_meta(params);
    Header::new(ObjectType::Params, (params.hash(), KeyId::NONE), State::default(), meta, Vec::new())
}

/// The metadata of a set: its literal and its scheme's word.
pub fn literal_meta(params: &Params) -> Vec<u8> {
    let literal = params.literal();
    let (kind, weight) = match literal.secret {
        SecretDistribution::Ternary => (0u32, 0),
        SecretDistribution::Gaussian => (1, 0),
        SecretDistribution::FixedWeight { weight } => (2, weight),
        SecretDistribution::TernarySum { parties } => (3, parties),
    };
    let mut meta = Vec::new();
    let counts = [literal.digit_limbs, literal.q_bits.len(), literal.p_bits.len()].map(|x| x as u32);
    for x in [literal.log_n, params.tag().0, kind, weight, literal.security.bits()].into_iter().chain(counts) {
        meta.extend(x.to_le_bytes());
    }
    // A set that was built has primes of at most 61 bits.
    meta.extend(literal.q_bits.iter().chain(&literal.p_bits).map(|bits| *bits as u8));
    meta
}

/// Writes a parameter set.
///
/// # Errors
/// [`WireError::Io`].
pub fn write_params(params: &Params, out: impl Write) -> Result<(), WireError> {
    Writer::new(out, &outline(params)?)?.finish()
}

/// A parameter set's bytes.
///
/// # Errors
/// None for a set that was built.
pub fn params_to_bytes(params: &Params) -> Result<Vec<u8>, WireError> {
    Ok(outline(params)?.to_bytes())
}

/// Reads a parameter set that the stream ends with, without building it.
///
/// # Errors
/// Every [`WireError`] but those about residues.
pub fn read_params(mut input: impl Read) -> Result<StoredParams, WireError> {
    load(Source::stream(&mut input))
}

/// Reads a parameter set without building it.
///
/// # Errors
/// As [`read_params`], less [`WireError::Io`].
pub fn params_from_bytes(bytes: &[u8]) -> Result<StoredParams, WireError> {
    load(Source::Bytes(bytes))
}

fn load(source: Source<'_>) -> Result<StoredParams, WireError> {
    let reader = Reader::open(source, ObjectType::Params)?;
    let header = reader.header();
    header.expect_no_state()?;
    header.expect_key(KeyId::NONE)?;
    header.expect_segments([])?;
    let (literal, tag) = read_literal(Fields::new(header.meta()))?;
    let stored = StoredParams { hash: header.params(), literal, tag };
    reader.finish()?;
    Ok(stored)
}

/// A literal and its scheme's word from the rest of the metadata.
///
/// # Errors
/// [`WireError::Oversize`], [`WireError::Corrupt`].
pub fn read_literal(mut fields: Fields<'_>) -> Result<(ParamsLiteral, SchemeTag), WireError> {
    let log_n = fields.u32()?;
    if !(9..=17).contains(&log_n) {
        return Err(WireError::Oversize { what: "log2 N", found: log_n.into(), limit: 17 });
    }
    let tag = SchemeTag(fields.u32()?);
    let secret = match (fields.u32()?, fields.u32()?) {
        (0, 0) => SecretDistribution::Ternary,
        (1, 0) => SecretDistribution::Gaussian,
        (2, weight) => SecretDistribution::FixedWeight { weight },
        (3, parties @ 2..=MAX_PARTIES) => SecretDistribution::TernarySum { parties },
        _ => return Err(WireError::Corrupt { what: "an unknown distribution of the secret" }),
    };
    let security = match fields.u32()? {
        0 => Security::Insecure,
        bits => Security::from_bits(bits).ok_or(WireError::Corrupt { what: "an unknown security level" })?,
    };
    let mut count = |what| {
        let found = fields.u32()? as usize;
        if found <= MAX_PRIMES {
            return Ok(found);
        }
        Err(WireError::Oversize { what, found: found as u64, limit: MAX_PRIMES as u64 })
    };
    let digit_limbs = count("the number of primes in a digit")?;
    let (q, p) = (count("the number of data primes")?, count("the number of special primes")?);
    let mut bits =
        |count| -> Result<Vec<u32>, WireError> { Ok(fields.take(count)?.iter().map(|b| (*b).into()).collect()) };
    let (q_bits, p_bits) = (bits(q)?, bits(p)?);
    fields.finish()?;
    Ok((ParamsLiteral { log_n, q_bits, p_bits, digit_limbs, secret, security }, tag))
}
