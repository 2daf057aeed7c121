//! Answers as bits of leveled TFHE: the masks, and the coefficients of the body that hold a bit.

use crate::GenomeError;
use sudare_he::keys::KeyId;
use sudare_he::tfhe::GlweCiphertext;
use sudare_he::tfhe::leveled::{LeveledClient, LeveledGlwe, LeveledParams, SeededGlwe, SeededSelector};
use sudare_he::wire::{pack_residues, residue_bytes, unpack_residues};
use sudare_ring::random::MaskSeed;
use sudare_ring::threads;

/// Selectors of a segment.
pub const CHUNK: usize = 256;

/// Bytes of a seeded selector.
pub fn selector_bytes(params: &LeveledParams) -> usize {
    32 + SeededSelector::bodies_of(params) * params.context().degree() * residue_bytes(params.context().q())
}

/// Bytes of a seeded encryption of zero.
fn zero_bytes(params: &LeveledParams) -> usize {
    32 + params.context().degree() * residue_bytes(params.context().q())
}

/// The segments of a query: selectors of bits, then an encryption of zero for each mask.
pub fn encrypt(client: &LeveledClient, bits: &[bool]) -> Result<Vec<Vec<u8>>, GenomeError> {
    let context = client.params().context();
    let made = threads::map(bits.len(), |i| client.encrypt_selector_seeded(bits[i]));
    let selectors = made.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut segments: Vec<Vec<u8>> = selectors
        .chunks(CHUNK)
        .map(|chunk| {
            let mut bytes = Vec::with_capacity(chunk.len() * selector_bytes(client.params()));
            for s in chunk {
                bytes.extend(s.mask_seed().as_bytes());
                pack_residues(s.bodies(), context.q(), &mut bytes);
            }
            bytes
        })
        .collect();
    let mut zeros = Vec::new();
    for _ in 0..context.rank() {
        let zero = client.encrypt_seeded(&[])?;
        zeros.extend(zero.mask_seed().as_bytes());
        pack_residues(zero.body(), context.q(), &mut zeros);
    }
    segments.push(zeros);
    Ok(segments)
}

/// Bytes of the segments of [`encrypt`] for so many bits.
pub fn lengths(params: &LeveledParams, count: usize) -> impl Iterator<Item = u64> {
    let (length, zeros) = (selector_bytes(params), params.context().rank() * zero_bytes(params));
    (0..count).step_by(CHUNK).map(move |at| (CHUNK.min(count - at) * length) as u64).chain([zeros as u64])
}

/// A selector from its bytes.
pub fn read_selector(params: &LeveledParams, bytes: &[u8], segment: usize) -> Result<SeededSelector, GenomeError> {
    let (seed, bodies) = seeded(params, bytes, segment)?;
    Ok(SeededSelector::from_bodies(params, seed, bodies)?)
}

/// The encryptions of zero of a segment.
pub fn read_zeros(
    params: &LeveledParams,
    key: KeyId,
    bytes: &[u8],
    segment: usize,
) -> Result<Vec<LeveledGlwe>, GenomeError> {
    let each = bytes.chunks_exact(zero_bytes(params)).map(|z| {
        let (seed, body) = seeded(params, z, segment)?;
        Ok(SeededGlwe::from_body(params, seed, body)?.expand(params, key)?)
    });
    each.collect()
}

fn seeded(params: &LeveledParams, bytes: &[u8], segment: usize) -> Result<(MaskSeed, Vec<u64>), GenomeError> {
    let (seed, bodies) = bytes.split_at(32);
    let mut mask = [0; 32];
    mask.copy_from_slice(seed);
    Ok((MaskSeed::from_bytes(mask), unpack_residues(bodies, params.context().q(), segment)?))
}

/// Bytes of the segment of an answer of so many bits.
pub fn answer_bytes(params: &LeveledParams, bits: usize) -> u64 {
    ((params.context().lwe_dimension() + bits) * residue_bytes(params.context().q())) as u64
}

/// The segment of an answer: the other coefficients hold nothing, and stay.
pub fn write_answer(params: &LeveledParams, c: &LeveledGlwe, bits: usize) -> Vec<u8> {
    let mut segment = Vec::new();
    let (masks, q) = (params.context().lwe_dimension(), params.context().q());
    pack_residues(&c.ciphertext().words()[..masks], q, &mut segment);
    pack_residues(&c.ciphertext().body()[..bits], q, &mut segment);
    segment
}

/// The number in an answer's segment.
pub fn read_answer(client: &LeveledClient, bytes: &[u8], bits: usize, variance: f64) -> Result<usize, GenomeError> {
    let params = client.params();
    let mut words = unpack_residues(bytes, params.context().q(), 0)?;
    words.resize(params.context().words(), 0);
    let c = GlweCiphertext::from_words(params.context(), &words)?;
    let c = LeveledGlwe::from_parts(c, variance, (params.hash(), Some(client.id())));
    Ok(number(&client.decrypt(&c, bits)?))
}

/// The number with these bits, lowest first.
pub fn number(bits: &[u64]) -> usize {
    bits.iter().enumerate().map(|(i, bit)| (*bit as usize) << i).sum()
}

/// The number k as messages, a bit a coefficient, for k up to `most`.
pub fn terminals(most: usize) -> Vec<Vec<u64>> {
    let bits = usize::BITS - most.leading_zeros();
    (0..=most).map(|k| (0..bits).map(|i| (k >> i & 1) as u64).collect()).collect()
}
