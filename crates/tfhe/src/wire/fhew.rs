//! Parameters and keys of FHEW's gates.

use super::{
    expect_hash, number, params_file, read_literal, read_params_file, read_parts, read_switch, switch_width,
    write_literal, write_switch,
};
use crate::SwitchKey;
use crate::boolean::fhew::{FhewKey, FhewLiteral, FhewMethod, FhewParams};
use std::io::Write;
use sudare_ring::random::MaskSeed;
use sudare_rlwe::ParamsHash;
use sudare_rlwe::wire::packing::{append_words, width};
use sudare_rlwe::wire::{Fields, Header, ObjectType, Reader, Source, State, WireError, Writer};

/// A parameter set as it was stored, with nothing built yet.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredFhewParams {
    /// The hash that the set must have.
    pub hash: ParamsHash,
    /// The literal.
    pub literal: FhewLiteral,
}

impl StoredFhewParams {
    /// Builds the set.
    ///
    /// # Errors
    /// As for [`StoredTfheParams::build`](super::StoredTfheParams::build).
    pub fn build(&self) -> Result<FhewParams, WireError> {
        let params = self.literal.clone().build()?;
        expect_hash(params.hash(), self.hash)?;
        Ok(params)
    }
}

/// A parameter set's bytes.
///
/// # Errors
/// None for a set that was built.
pub fn fhew_params_to_bytes(params: &FhewParams) -> Result<Vec<u8>, WireError> {
    let mut meta = Vec::new();
    write_literal(params.tfhe().literal(), &mut meta);
    let (kind, size) = match params.method() {
        FhewMethod::Digits { base_log } => (0, base_log),
        // At most 64.
        FhewMethod::Automorphisms { window } => (1, window as u32),
    };
    meta.extend(u32::to_le_bytes(kind));
    meta.extend(size.to_le_bytes());
    params_file(ObjectType::FhewParams, params.hash(), meta)
}

/// Reads a parameter set without building it.
///
/// # Errors
/// Every [`WireError`] but those about residues and streams.
pub fn fhew_params_from_bytes(bytes: &[u8]) -> Result<StoredFhewParams, WireError> {
    let (hash, literal) = read_params_file(bytes, ObjectType::FhewParams, |fields| {
        let tfhe = read_literal(fields)?;
        let method = match (number(fields, "a blind rotation", 1)?, number(fields, "a window", 64)?) {
            (0, base_log) => FhewMethod::Digits { base_log },
            (_, window) => FhewMethod::Automorphisms { window: window as usize },
        };
        Ok(FhewLiteral { tfhe, method })
    })?;
    Ok(StoredFhewParams { hash, literal })
}

/// Bytes of the segments: the key switch's, then those of each part of the accumulator's key.
fn segments(params: &FhewParams) -> impl Iterator<Item = u64> + '_ {
    let (tfhe, polynomial) = (params.tfhe(), params.tfhe().context().degree() * width(params.tfhe().context().q()));
    let parts = (0..FhewKey::parts_of(params)).map(move |i| FhewKey::bodies_of(params, i) * polynomial);
    std::iter::once(switch_width(tfhe) * SwitchKey::bodies_of(tfhe)).chain(parts).map(|n| n as u64)
}

/// Writes the keys: seeds and bodies.
///
/// # Errors
/// [`WireError::Io`].
pub fn write_fhew_key(key: &FhewKey, out: impl Write) -> Result<(), WireError> {
    let params = key.params();
    let meta = [key.mask_seed(), key.switch_key().mask_seed()].iter().flat_map(|seed| *seed.as_bytes()).collect();
    let (owner, lengths) = ((params.hash(), key.id()), segments(params).collect());
    let header = Header::new(ObjectType::FhewKey, owner, State::default(), meta, lengths)?;
    let mut writer = Writer::new(out, &header)?;
    write_switch(key.switch_key(), params.tfhe(), &mut writer)?;
    let mut bytes = Vec::new();
    for part in 0..FhewKey::parts_of(params) {
        bytes.clear();
        append_words(&key.bodies(part), params.tfhe().context().q(), &mut bytes);
        writer.segment(&bytes)?;
    }
    writer.finish()
}

/// Reads the keys from memory or a mapped file; masks are expanded in parallel inside a thread pool.
///
/// # Errors
/// Every [`WireError`] but [`WireError::Io`].
pub fn fhew_key_from_bytes(params: &FhewParams, bytes: &[u8]) -> Result<FhewKey, WireError> {
    let mut reader = Reader::open(Source::Bytes(bytes), ObjectType::FhewKey)?;
    let header = reader.header();
    header.expect_params(params.hash())?;
    header.expect_no_state()?;
    header.expect_segments(segments(params))?;
    let (id, mut fields) = (header.key(), Fields::new(header.meta()));
    let (masks, switch) = (MaskSeed::from_bytes(fields.bytes32()?), MaskSeed::from_bytes(fields.bytes32()?));
    fields.finish()?;
    let switch = read_switch(params.tfhe(), switch, &mut reader)?;
    let expand = |i: usize, bodies: &[u64]| FhewKey::part_from_bodies(params, &masks, i, bodies);
    let parts = read_parts(params.tfhe(), (1, FhewKey::parts_of(params)), &mut reader, expand)?;
    reader.finish()?;
    Ok(FhewKey::from_parts(params, id, switch, masks, parts)?)
}
