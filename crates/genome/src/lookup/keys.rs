//! Keys of circuit bootstraps as they travel.

use crate::GenomeError;
use crate::message::write_object;
use sudare_he::tfhe::circuit_bootstrap::{CircuitKey, CircuitParams, SchemeSwitchKey, TraceKey};
use sudare_he::wire::{
    Fields, ObjectReader, ObjectType, WireError, pack_residues, residue_bytes, tfhe_server_key_from_bytes,
    unpack_residues, write_tfhe_server_key,
};
use sudare_ring::random::MaskSeed;

/// The bytes of a server's keys: those of the blind rotation as a container of their own, then the bodies of the trace
/// and of the scheme switch.
pub fn to_bytes(key: &CircuitKey) -> Result<Vec<u8>, GenomeError> {
    let (leveled, q) = (key.params().leveled().hash(), key.params().context().q());
    let mut server = Vec::new();
    write_tfhe_server_key(key.server(), &mut server)?;
    let mut meta = key.trace().mask_seed().as_bytes().to_vec();
    meta.extend(key.scheme().mask_seed().as_bytes());
    let pack = |bodies: &[u64]| {
        let mut bytes = Vec::new();
        pack_residues(bodies, q, &mut bytes);
        bytes
    };
    let rest: Vec<Vec<u8>> = key.trace().bodies().iter().chain(&key.scheme().bodies()).map(|b| pack(b)).collect();
    let segments: Vec<&[u8]> = std::iter::once(server.as_slice()).chain(rest.iter().map(Vec::as_slice)).collect();
    write_object(ObjectType::GenomeKeys, (leveled, key.server().id()), meta, &segments)
}

/// A server's keys from their bytes; masks are expanded in parallel inside a thread pool.
///
/// # Errors
/// [`GenomeError::Wire`], [`GenomeError::Tfhe`].
pub fn from_bytes(params: &CircuitParams, bytes: &[u8]) -> Result<CircuitKey, GenomeError> {
    let mut reader = ObjectReader::new(bytes, ObjectType::GenomeKeys)?;
    reader.header().expect_params(params.leveled().hash())?;
    let id = reader.header().key();
    let mut fields = Fields::new(reader.header().meta());
    let (trace, scheme) = (MaskSeed::from_bytes(fields.bytes32()?), MaskSeed::from_bytes(fields.bytes32()?));
    fields.finish()?;
    let (context, width) = (params.context(), residue_bytes(params.context().q()));
    let (steps, rank) = (context.degree().trailing_zeros() as usize, context.rank());
    let lengths = std::iter::repeat_n(TraceKey::step_bodies_of(params), steps)
        .chain(std::iter::repeat_n(SchemeSwitchKey::matrix_bodies_of(params), rank))
        .map(|words| (words * width) as u64);
    crate::message::expect_segments(&reader, 1, lengths)?;
    let server = tfhe_server_key_from_bytes(params.tfhe(), reader.segment()?)?;
    if server.id() != id {
        return Err(WireError::WrongKey { found: server.id(), expected: id }.into());
    }
    let mut bodies = Vec::with_capacity(steps + rank);
    for i in 0..steps + rank {
        bodies.push(unpack_residues(reader.segment()?, context.q(), i + 1)?);
    }
    reader.finish()?;
    let (of_trace, of_scheme) = bodies.split_at(steps);
    let trace = TraceKey::from_bodies(params, trace, of_trace)?;
    let scheme = SchemeSwitchKey::from_bodies(params, scheme, of_scheme)?;
    Ok(CircuitKey::from_parts(params, server, trace, scheme)?)
}
