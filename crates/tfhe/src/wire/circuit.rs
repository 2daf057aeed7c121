//! Parameters and keys of circuit bootstrapping.

use super::{
    expect_hash, params_file, read_digits, read_literal, read_params_file, read_parts, read_server_segments,
    server_key_segments, write_literal, write_server_segments,
};
use crate::circuit_bootstrap::{CircuitKey, CircuitLiteral, CircuitParams, SchemeSwitchKey, TraceKey};
use std::io::Write;
use sudare_ring::random::MaskSeed;
use sudare_rlwe::ParamsHash;
use sudare_rlwe::wire::packing::{append_words, width};
use sudare_rlwe::wire::{Fields, Header, ObjectType, Reader, Source, State, WireError, Writer};

/// A parameter set as it was stored, with nothing built yet.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCircuitParams {
    /// The hash that the set must have.
    pub hash: ParamsHash,
    /// The literal.
    pub literal: CircuitLiteral,
}

impl StoredCircuitParams {
    /// Builds the set.
    ///
    /// # Errors
    /// As for [`StoredTfheParams::build`](super::StoredTfheParams::build).
    pub fn build(&self) -> Result<CircuitParams, WireError> {
        let params = self.literal.clone().build()?;
        expect_hash(params.hash(), self.hash)?;
        Ok(params)
    }
}

/// A parameter set's bytes.
///
/// # Errors
/// None for a set that was built.
pub fn circuit_params_to_bytes(params: &CircuitParams) -> Result<Vec<u8>, WireError> {
    let (l, mut meta) = (params.literal(), Vec::new());
    write_literal(&l.tfhe, &mut meta);
    for (base_log, levels) in [l.output_digits, l.trace_digits, l.scheme_digits] {
        meta.extend(base_log.to_le_bytes());
        meta.extend(levels.to_le_bytes());
    }
    params_file(ObjectType::CircuitParams, params.hash(), meta)
}

/// Reads a parameter set without building it.
///
/// # Errors
/// Every [`WireError`] but those about residues and streams.
pub fn circuit_params_from_bytes(bytes: &[u8]) -> Result<StoredCircuitParams, WireError> {
    let (hash, literal) = read_params_file(bytes, ObjectType::CircuitParams, |fields| {
        Ok(CircuitLiteral {
            tfhe: read_literal(fields)?,
            output_digits: read_digits(fields)?,
            trace_digits: read_digits(fields)?,
            scheme_digits: read_digits(fields)?,
        })
    })?;
    Ok(StoredCircuitParams { hash, literal })
}

/// Steps of the trace, and matrices of the scheme switch.
fn parts(params: &CircuitParams) -> (usize, usize) {
    (params.context().degree().trailing_zeros() as usize, params.context().rank())
}

/// Bytes of the segments: those of the server key, of each step of the trace, of each matrix of the scheme switch.
fn segments(params: &CircuitParams) -> impl Iterator<Item = u64> + '_ {
    let ((steps, matrices), width) = (parts(params), width(params.context().q()));
    let trace = std::iter::repeat_n(TraceKey::step_bodies_of(params), steps);
    let scheme = std::iter::repeat_n(SchemeSwitchKey::matrix_bodies_of(params), matrices);
    server_key_segments(params.tfhe()).chain(trace.chain(scheme).map(move |words| (words * width) as u64))
}

/// Writes the keys, seeds and bodies, those of the gates among them.
///
/// # Errors
/// [`WireError::Io`].
pub fn write_circuit_key(key: &CircuitKey, out: impl Write) -> Result<(), WireError> {
    let (params, server) = (key.params(), key.server());
    let (bootstrap, switch) = (server.bootstrap_key().steps().mask_seed(), server.switch_key().mask_seed());
    let seeds = [bootstrap, switch, key.trace().mask_seed(), key.scheme().mask_seed()];
    let meta = seeds.iter().flat_map(|seed| *seed.as_bytes()).collect();
    let (owner, lengths) = ((params.hash(), server.id()), segments(params).collect());
    let header = Header::new(ObjectType::CircuitKey, owner, State::default(), meta, lengths)?;
    let mut writer = Writer::new(out, &header)?;
    write_server_segments(server, &mut writer)?;
    let mut bytes = Vec::new();
    for bodies in key.trace().bodies().iter().chain(&key.scheme().bodies()) {
        bytes.clear();
        append_words(bodies, params.context().q(), &mut bytes);
        writer.segment(&bytes)?;
    }
    writer.finish()
}

/// Reads the keys from memory or a mapped file; masks are expanded in parallel inside a thread pool.
///
/// # Errors
/// Every [`WireError`] but [`WireError::Io`].
pub fn circuit_key_from_bytes(params: &CircuitParams, bytes: &[u8]) -> Result<CircuitKey, WireError> {
    let mut reader = Reader::open(Source::Bytes(bytes), ObjectType::CircuitKey)?;
    let header = reader.header();
    header.expect_params(params.hash())?;
    header.expect_no_state()?;
    header.expect_segments(segments(params))?;
    let (id, mut fields) = (header.key(), Fields::new(header.meta()));
    let mut seed = || fields.bytes32().map(MaskSeed::from_bytes);
    let (of_server, trace, scheme) = ((seed()?, seed()?), seed()?, seed()?);
    fields.finish()?;
    let server = read_server_segments(params.tfhe(), id, of_server, &mut reader)?;
    let (first, (steps, matrices)) = (server_key_segments(params.tfhe()).count(), parts(params));
    let bodies = read_parts(params.tfhe(), (first, steps + matrices), &mut reader, |_, bodies| Ok(bodies.to_vec()))?;
    reader.finish()?;
    let (of_trace, of_scheme) = bodies.split_at(steps);
    let trace = TraceKey::from_bodies(params, trace, of_trace)?;
    let scheme = SchemeSwitchKey::from_bodies(params, scheme, of_scheme)?;
    Ok(CircuitKey::from_parts(params, server, trace, scheme)?)
}
