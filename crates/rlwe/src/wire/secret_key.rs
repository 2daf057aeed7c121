//! Secret keys in their owner's file. Nothing generic writes them: only these functions do.

use super::bytes::Fields;
use super::container::{Reader, Source, Writer};
use super::error::WireError;
use super::header::{Header, State};
use super::object::ObjectType;
use crate::keys::SecretKey;
use crate::params::Params;
use crate::release::{ReleasePolicy, Releases};
use crate::security::SecretDistribution;
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Bits of a coefficient: two for {−1, 0, 1}, a byte for a Gaussian secret (|s_i| ≤ 127 by far) and a sum of at most 100
/// ternary ones.
fn coefficient_bits(params: &Params) -> usize {
    match params.literal().secret {
        SecretDistribution::Ternary | SecretDistribution::FixedWeight { .. } => 2,
        SecretDistribution::Gaussian | SecretDistribution::TernarySum { .. } => 8,
    }
}

fn segment_bytes(params: &Params) -> usize {
    params.degree() * coefficient_bits(params) / 8
}

/// Coefficients in two's complement, the first in the lowest bits.
fn pack(key: &SecretKey) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(vec![0u8; segment_bytes(key.params())]);
    let bits = coefficient_bits(key.params());
    let mask = (1u16 << bits) - 1;
    // The same work for every key.
    for (i, c) in key.coefficients().iter().enumerate() {
        out[i * bits / 8] |= ((*c as u16 & mask) << (i * bits % 8)) as u8;
    }
    out
}

fn unpack(params: &Params, bytes: &[u8]) -> Zeroizing<Vec<i64>> {
    let bits = coefficient_bits(params);
    let mut out = Zeroizing::new(vec![0i64; params.degree()]);
    for (i, c) in out.iter_mut().enumerate() {
        let raw = bytes[i * bits / 8] >> (i * bits % 8);
        // Sign extension from `bits` bits; 0b10 becomes −2, which no ternary key has.
        *c = i64::from(((raw << (8 - bits)) as i8) >> (8 - bits));
    }
    out
}

/// What was released: policy and count; nothing for a key without releases.
fn pack_releases(releases: Option<Releases>) -> Vec<u8> {
    let Some(releases) = releases else { return Vec::new() };
    let policy = releases.policy();
    let words = [policy.releases(), u64::from(policy.security_bits()), releases.used()];
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn unpack_releases(meta: &[u8]) -> Result<Option<Releases>, WireError> {
    if meta.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::new(meta);
    let (declared, security, used) = (fields.u64()?, fields.u64()?, fields.u64()?);
    fields.finish()?;
    let policy = ReleasePolicy::new(declared, u32::try_from(security).unwrap_or(u32::MAX))?;
    Ok(Some(Releases::new(policy, used)?))
}

/// Writes a secret key and the count of its releases. Whoever reads it can decrypt everything: keep the file to its owner
/// (mode 0600), and mind that a buffering writer keeps a copy.
///
/// # Errors
/// [`WireError::Io`].
pub fn write_secret_key(key: &SecretKey, out: impl Write) -> Result<(), WireError> {
    let params = key.params();
    let lengths = vec![segment_bytes(params) as u64];
    let (owner, meta) = ((params.hash(), key.id()), pack_releases(key.releases()));
    let header = Header::new(ObjectType::SecretKey, owner, State::default(), meta, lengths)?;
    let mut writer = Writer::new(out, &header)?;
    writer.segment(&pack(key))?;
    writer.finish()
}

/// A secret key's bytes, in memory that is wiped when dropped. See [`write_secret_key`].
///
/// # Errors
/// None for a key that exists.
pub fn secret_key_to_bytes(key: &SecretKey) -> Result<Zeroizing<Vec<u8>>, WireError> {
    // Never grown, since growing would leave copies behind.
    let room = 2 * super::ALIGNMENT as usize + segment_bytes(key.params());
    let mut out = Zeroizing::new(Vec::with_capacity(room));
    write_secret_key(key, &mut *out)?;
    Ok(out)
}

/// Reads a secret key that the stream ends with.
///
/// # Errors
/// Every [`WireError`]; [`WireError::Rlwe`] for coefficients that no such key has.
pub fn read_secret_key(params: &Params, mut input: impl Read) -> Result<SecretKey, WireError> {
    load(params, Source::stream(&mut input))
}

/// Reads a secret key from memory.
///
/// # Errors
/// As [`read_secret_key`], less [`WireError::Io`].
pub fn secret_key_from_bytes(params: &Params, bytes: &[u8]) -> Result<SecretKey, WireError> {
    load(params, Source::Bytes(bytes))
}

fn load(params: &Params, source: Source<'_>) -> Result<SecretKey, WireError> {
    let mut reader = Reader::open(source, ObjectType::SecretKey)?;
    let header = reader.header();
    header.expect_params(params.hash())?;
    header.expect_no_state()?;
    header.expect_segments([segment_bytes(params) as u64])?;
    let releases = unpack_releases(header.meta())?;
    let id = header.key();
    let coefficients = unpack(params, reader.segment()?);
    reader.finish()?;
    Ok(SecretKey::from_coefficients(params, id, coefficients)?.with_releases(releases))
}
