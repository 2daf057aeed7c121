//! TFHE's objects on the wire: parameters, keys, arrays of encrypted integers; FHEW and circuit bootstrapping.
//!
//! Keys and fresh arrays travel as seeds and bodies.

mod circuit;
mod fhew;

pub use circuit::{
    StoredCircuitParams, circuit_key_from_bytes, circuit_params_from_bytes, circuit_params_to_bytes, write_circuit_key,
};
pub use fhew::{StoredFhewParams, fhew_key_from_bytes, fhew_params_from_bytes, fhew_params_to_bytes, write_fhew_key};

use crate::array::{ElementType, EncryptedArray, MAX_AXES, check_element, elements_of};
use crate::radix::IntegerType;
use crate::{
    BootstrapKey, ClientKey, EncryptedInt, LweCiphertext, Noise, Plaintext, PublicKey, ServerKey, SwitchKey, TfheError,
    TfheLiteral, TfheParams,
};
use std::io::{Read, Write};
use sudare_ring::random::MaskSeed;
use sudare_ring::threads;
use sudare_rlwe::security::Security;
use sudare_rlwe::wire::packing::{append_words, read_words, width};
use sudare_rlwe::wire::{Fields, Header, ObjectType, Reader, Source, State, WireError, Writer};
use sudare_rlwe::{KeyId, ParamsHash};
use zeroize::Zeroizing;

/// Largest LWE dimension that is read.
const MAX_DIMENSION: u32 = 1 << 13;
/// Steps of a bootstrapping key that are expanded at a time.
const STEPS_AT_ONCE: usize = 64;
/// Blocks of an array in a segment.
const SEGMENT_BLOCKS: usize = 1 << 12;

/// A parameter set as it was stored, with nothing built yet.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTfheParams {
    /// The hash that the set must have.
    pub hash: ParamsHash,
    /// The literal.
    pub literal: TfheLiteral,
}

impl StoredTfheParams {
    /// Builds the set.
    ///
    /// # Errors
    /// [`WireError::Object`] if the literal makes no sense or does not keep what it claims,
    /// [`WireError::WrongParameters`] if another set comes out than was stored.
    pub fn build(&self) -> Result<TfheParams, WireError> {
        let params = self.literal.clone().build()?;
        expect_hash(params.hash(), self.hash)?;
        Ok(params)
    }
}

/// Refuses a set that is another than was stored.
fn expect_hash(found: ParamsHash, expected: ParamsHash) -> Result<(), WireError> {
    if found == expected { Ok(()) } else { Err(WireError::WrongParameters { found, expected }) }
}

fn write_noise(noise: Noise, meta: &mut Vec<u8>) {
    let (kind, value) = match noise {
        Noise::Gaussian { sigma } => (0u32, sigma),
        Noise::TUniform { bits } => (1, f64::from(bits)),
        // Below 2^53.
        Noise::Uniform { bound } => (2, bound as f64),
    };
    meta.extend(kind.to_le_bytes());
    meta.extend(value.to_le_bytes());
}

fn read_noise(fields: &mut Fields<'_>) -> Result<Noise, WireError> {
    match (fields.u32()?, fields.f64()?) {
        (0, sigma) if sigma.is_finite() => Ok(Noise::Gaussian { sigma }),
        // One encoding for each: no fractions, and no negative zero.
        (1, bits) if bits <= 40.0 && f64::from(bits as u32).to_bits() == bits.to_bits() => {
            Ok(Noise::TUniform { bits: bits as u32 })
        }
        (2, bound) if bound <= 46f64.exp2() && (bound as u64 as f64).to_bits() == bound.to_bits() => {
            Ok(Noise::Uniform { bound: bound as u64 })
        }
        _ => Err(WireError::Corrupt { what: "an unknown distribution of noise" }),
    }
}

/// What a literal says, behind what `meta` holds.
fn write_literal(l: &TfheLiteral, meta: &mut Vec<u8>) {
    let (message, carry) = match l.plaintext {
        Plaintext::Bit => (0, 0),
        Plaintext::Integer { message_bits, carry_bits } => (message_bits, carry_bits),
    };
    let (bootstrap, switch) = (l.bootstrap_digits, l.switch_digits);
    // A set that was built has small dimensions.
    let numbers = [
        l.lwe_dimension as u32,
        l.log_n,
        l.rank as u32,
        l.modulus_bits,
        l.unroll as u32,
        u32::from(l.module_switch),
        l.security.bits(),
    ];
    for x in [message, carry, bootstrap.0, bootstrap.1, switch.0, switch.1].into_iter().chain(numbers) {
        meta.extend(x.to_le_bytes());
    }
    write_noise(l.lwe_noise, meta);
    write_noise(l.glwe_noise, meta);
    meta.extend(l.noise_factor.to_le_bytes());
    meta.extend(l.log_failure.to_le_bytes());
}

/// A number of at most `limit`.
fn number(fields: &mut Fields<'_>, what: &'static str, limit: u32) -> Result<u32, WireError> {
    let found = fields.u32()?;
    if found <= limit {
        return Ok(found);
    }
    Err(WireError::Oversize { what, found: found.into(), limit: limit.into() })
}

/// Digits and how many.
fn read_digits(fields: &mut Fields<'_>) -> Result<(u32, u32), WireError> {
    Ok((number(fields, "a digit", 64)?, number(fields, "digits", 64)?))
}

fn read_literal(fields: &mut Fields<'_>) -> Result<TfheLiteral, WireError> {
    let plaintext = match (number(fields, "message bits", 16)?, number(fields, "carry bits", 16)?) {
        (0, 0) => Plaintext::Bit,
        (message_bits, carry_bits) => Plaintext::Integer { message_bits, carry_bits },
    };
    let (bootstrap_digits, switch_digits) = (read_digits(fields)?, read_digits(fields)?);
    let lwe_dimension = number(fields, "an LWE dimension", MAX_DIMENSION)? as usize;
    let log_n = number(fields, "log2 N", 14)?;
    let rank = number(fields, "a rank", 16)? as usize;
    let modulus_bits = number(fields, "modulus bits", 64)?;
    let unroll = number(fields, "key bits a step", 16)? as usize;
    let module_switch = number(fields, "a flag", 1)? == 1;
    let security = match number(fields, "security", 256)? {
        0 => Security::Insecure,
        bits => Security::from_bits(bits).ok_or(WireError::Corrupt { what: "an unknown security level" })?,
    };
    let (lwe_noise, glwe_noise) = (read_noise(fields)?, read_noise(fields)?);
    let (noise_factor, log_failure) = (fields.u64()?, fields.f64()?);
    if !log_failure.is_finite() {
        return Err(WireError::Corrupt { what: "a failure bound that is no number" });
    }
    Ok(TfheLiteral {
        plaintext,
        lwe_dimension,
        lwe_noise,
        log_n,
        rank,
        modulus_bits,
        glwe_noise,
        bootstrap_digits,
        switch_digits,
        module_switch,
        unroll,
        noise_factor,
        log_failure,
        security,
    })
}

/// The file of a parameter set, which is metadata alone.
fn params_file(kind: ObjectType, hash: ParamsHash, meta: Vec<u8>) -> Result<Vec<u8>, WireError> {
    Ok(Header::new(kind, (hash, KeyId([0; 16])), State::default(), meta, Vec::new())?.to_bytes())
}

/// What `read` finds in such a file, and the hash that the set must have.
fn read_params_file<T>(
    bytes: &[u8],
    kind: ObjectType,
    read: impl FnOnce(&mut Fields<'_>) -> Result<T, WireError>,
) -> Result<(ParamsHash, T), WireError> {
    let reader = Reader::open(Source::Bytes(bytes), kind)?;
    let header = reader.header();
    header.expect_no_state()?;
    header.expect_key(KeyId([0; 16]))?;
    header.expect_segments([])?;
    let mut fields = Fields::new(header.meta());
    let found = read(&mut fields)?;
    fields.finish()?;
    let hash = header.params();
    reader.finish()?;
    Ok((hash, found))
}

/// A parameter set's bytes.
///
/// # Errors
/// None for a set that was built.
pub fn tfhe_params_to_bytes(params: &TfheParams) -> Result<Vec<u8>, WireError> {
    let mut meta = Vec::new();
    write_literal(params.literal(), &mut meta);
    params_file(ObjectType::TfheParams, params.hash(), meta)
}

/// Reads a parameter set without building it.
///
/// # Errors
/// Every [`WireError`] but those about residues and streams.
pub fn tfhe_params_from_bytes(bytes: &[u8]) -> Result<StoredTfheParams, WireError> {
    let (hash, literal) = read_params_file(bytes, ObjectType::TfheParams, read_literal)?;
    Ok(StoredTfheParams { hash, literal })
}

/// Bits of a binary key, the first lowest.
fn pack_bits(bits: &[i64], out: &mut [u8]) {
    // The same work for every key.
    for (i, s) in bits.iter().enumerate() {
        out[i / 8] |= (*s as u8 & 1) << (i % 8);
    }
}

fn unpack_bits(bytes: &[u8], count: usize) -> Result<Zeroizing<Vec<i64>>, WireError> {
    if bytes.last().is_some_and(|b| !count.is_multiple_of(8) && b >> (count % 8) != 0) {
        return Err(WireError::Corrupt { what: "padding that is not zero" });
    }
    let mut out = Zeroizing::new(vec![0i64; count]);
    for (i, s) in out.iter_mut().enumerate() {
        *s = i64::from(bytes[i / 8] >> (i % 8) & 1);
    }
    Ok(out)
}

fn client_key_segments(params: &TfheParams) -> [u64; 2] {
    [params.context().lwe_dimension(), params.literal().lwe_dimension].map(|n| n.div_ceil(8) as u64)
}

/// A client key's bytes, in memory that is wiped when dropped. Whoever reads them can decrypt
/// everything: keep the file to its owner (mode 0600).
///
/// # Errors
/// None for a key that exists.
pub fn tfhe_client_key_to_bytes(key: &ClientKey) -> Result<Zeroizing<Vec<u8>>, WireError> {
    let params = key.params();
    let lengths = client_key_segments(params);
    let owner = (params.hash(), key.id());
    let header = Header::new(ObjectType::TfheClientKey, owner, State::default(), Vec::new(), lengths.to_vec())?;
    // Never grown, since growing would leave copies behind.
    let mut out = Zeroizing::new(Vec::with_capacity(header.total_bytes() as usize));
    let mut writer = Writer::new(&mut *out, &header)?;
    for (s, bytes) in [key.glwe().coefficients(), key.lwe().coefficients()].into_iter().zip(lengths) {
        let mut packed = Zeroizing::new(vec![0u8; bytes as usize]);
        pack_bits(s, &mut packed);
        writer.segment(&packed)?;
    }
    writer.finish()?;
    Ok(out)
}

/// Reads a client key.
///
/// # Errors
/// Every [`WireError`] but [`WireError::Io`].
pub fn tfhe_client_key_from_bytes(params: &TfheParams, bytes: &[u8]) -> Result<ClientKey, WireError> {
    let mut reader = Reader::open(Source::Bytes(bytes), ObjectType::TfheClientKey)?;
    let header = reader.header();
    header.expect_params(params.hash())?;
    header.expect_no_state()?;
    header.expect_segments(client_key_segments(params))?;
    no_meta(header)?;
    let id = header.key();
    let glwe = unpack_bits(reader.segment()?, params.context().lwe_dimension())?;
    let lwe = unpack_bits(reader.segment()?, params.literal().lwe_dimension)?;
    reader.finish()?;
    Ok(ClientKey::from_coefficients(params, id, glwe, lwe)?)
}

/// A public key's bytes: the seed of its masks, and its bodies.
///
/// # Errors
/// None for a key that exists.
pub fn tfhe_public_key_to_bytes(key: &PublicKey) -> Result<Vec<u8>, WireError> {
    let (masks, bodies) = key.parts();
    let (params, mut bytes) = (key.params(), Vec::new());
    append_words(&bodies, params.context().q(), &mut bytes);
    let (owner, meta) = ((params.hash(), key.id()), masks.as_bytes().to_vec());
    let header = Header::new(ObjectType::TfhePublicKey, owner, State::default(), meta, public_segments(params).into())?;
    let mut out = Vec::with_capacity(header.total_bytes() as usize);
    let mut writer = Writer::new(&mut out, &header)?;
    writer.segment(&bytes)?;
    writer.finish()?;
    Ok(out)
}

/// Reads a public key.
///
/// # Errors
/// Every [`WireError`] but [`WireError::Io`].
pub fn tfhe_public_key_from_bytes(params: &TfheParams, bytes: &[u8]) -> Result<PublicKey, WireError> {
    let mut reader = Reader::open(Source::Bytes(bytes), ObjectType::TfhePublicKey)?;
    let header = reader.header();
    header.expect_params(params.hash())?;
    header.expect_no_state()?;
    header.expect_segments(public_segments(params))?;
    let mut fields = Fields::new(header.meta());
    let masks = MaskSeed::from_bytes(fields.bytes32()?);
    fields.finish()?;
    let id = header.key();
    let bodies = read_words(reader.segment()?, params.context().q(), 0)?;
    reader.finish()?;
    Ok(PublicKey::from_parts(params, id, masks, &bodies)?)
}

fn public_segments(params: &TfheParams) -> [u64; 1] {
    [(params.context().lwe_dimension() * width(params.context().q())) as u64]
}

fn no_meta(header: &Header) -> Result<(), WireError> {
    if header.meta().is_empty() { Ok(()) } else { Err(WireError::Corrupt { what: "metadata where none belongs" }) }
}

/// Bytes of a body of a switching key.
fn switch_width(params: &TfheParams) -> usize {
    if params.literal().module_switch { width(params.context().q()) } else { 4 }
}

/// Bytes of the segments of a server key: the switching key's bodies, then those of each step.
fn server_key_segments(params: &TfheParams) -> impl Iterator<Item = u64> + '_ {
    let polynomial = params.context().degree() * width(params.context().q());
    let steps = (0..BootstrapKey::steps_of(params)).map(move |i| BootstrapKey::bodies_of(params, i) * polynomial);
    std::iter::once(switch_width(params) * SwitchKey::bodies_of(params)).chain(steps).map(|n| n as u64)
}

fn server_key_header(key: &ServerKey) -> Result<Header, WireError> {
    let params = key.params();
    let mut meta = key.bootstrap_key().steps().mask_seed().as_bytes().to_vec();
    meta.extend(key.switch_key().mask_seed().as_bytes());
    let lengths = server_key_segments(params).collect();
    Header::new(ObjectType::TfheServerKey, (params.hash(), key.id()), State::default(), meta, lengths)
}

/// How many bytes [`write_tfhe_server_key`] writes.
///
/// # Errors
/// None for a key that exists.
pub fn tfhe_server_key_bytes(key: &ServerKey) -> Result<u64, WireError> {
    Ok(server_key_header(key)?.total_bytes())
}

/// Writes a server key: seeds and bodies.
///
/// # Errors
/// [`WireError::Io`].
pub fn write_tfhe_server_key(key: &ServerKey, out: impl Write) -> Result<(), WireError> {
    let header = server_key_header(key)?;
    let mut writer = Writer::new(out, &header)?;
    write_server_segments(key, &mut writer)?;
    writer.finish()
}

fn write_switch(switch: &SwitchKey, params: &TfheParams, writer: &mut Writer<impl Write>) -> Result<(), WireError> {
    let (bodies, length) = (switch.bodies(), switch_width(params));
    let bytes: Vec<u8> = bodies.iter().flat_map(|b| b.to_le_bytes().into_iter().take(length)).collect();
    writer.segment(&bytes)
}

fn read_switch(params: &TfheParams, masks: MaskSeed, reader: &mut Reader<'_>) -> Result<SwitchKey, WireError> {
    let bodies = reader.segment()?.chunks_exact(switch_width(params)).map(|b| {
        let mut word = [0; 8];
        word[..b.len()].copy_from_slice(b);
        u64::from_le_bytes(word)
    });
    Ok(SwitchKey::from_bodies(params, masks, &bodies.collect::<Vec<_>>())?)
}

fn write_server_segments(key: &ServerKey, writer: &mut Writer<impl Write>) -> Result<(), WireError> {
    write_switch(key.switch_key(), key.params(), writer)?;
    let (bootstrap, q) = (key.bootstrap_key(), key.params().context().q());
    let mut bytes = Vec::new();
    for step in 0..bootstrap.steps().len() {
        bytes.clear();
        append_words(&bootstrap.steps().bodies(step)?, q, &mut bytes);
        writer.segment(&bytes)?;
    }
    Ok(())
}

/// Reads a server key that the stream ends with.
///
/// # Errors
/// Every [`WireError`].
pub fn read_tfhe_server_key(params: &TfheParams, mut input: impl Read) -> Result<ServerKey, WireError> {
    load_server_key(params, Source::stream(&mut input))
}

/// Reads a server key from memory or a mapped file, which is read once and in order; masks are
/// expanded in parallel inside a thread pool.
///
/// # Errors
/// As [`read_tfhe_server_key`], less [`WireError::Io`].
pub fn tfhe_server_key_from_bytes(params: &TfheParams, bytes: &[u8]) -> Result<ServerKey, WireError> {
    load_server_key(params, Source::Bytes(bytes))
}

fn load_server_key(params: &TfheParams, source: Source<'_>) -> Result<ServerKey, WireError> {
    let mut reader = Reader::open(source, ObjectType::TfheServerKey)?;
    let header = reader.header();
    header.expect_params(params.hash())?;
    header.expect_no_state()?;
    header.expect_segments(server_key_segments(params))?;
    let mut fields = Fields::new(header.meta());
    let (bootstrap, switch) = (MaskSeed::from_bytes(fields.bytes32()?), MaskSeed::from_bytes(fields.bytes32()?));
    fields.finish()?;
    let id = header.key();
    let key = read_server_segments(params, id, (bootstrap, switch), &mut reader)?;
    reader.finish()?;
    Ok(key)
}

fn read_server_segments(
    params: &TfheParams,
    id: KeyId,
    (bootstrap, switch): (MaskSeed, MaskSeed),
    reader: &mut Reader<'_>,
) -> Result<ServerKey, WireError> {
    let switch = read_switch(params, switch, reader)?;
    let expand = |i: usize, bodies: &[u64]| BootstrapKey::step_from_bodies(params, &bootstrap, i, bodies);
    let steps = read_parts(params, (1, BootstrapKey::steps_of(params)), reader, expand)?;
    Ok(ServerKey::from_parts(params, id, BootstrapKey::from_steps(params, bootstrap, steps)?, switch)?)
}

/// `count` parts of a key, made of the residues of a segment each, from segment `first` on; expanded in parallel
/// inside a thread pool.
fn read_parts<T: Send>(
    params: &TfheParams,
    (first, count): (usize, usize),
    reader: &mut Reader<'_>,
    expand: impl Fn(usize, &[u64]) -> Result<T, TfheError> + Sync + Send,
) -> Result<Vec<T>, WireError> {
    let mut parts = Vec::with_capacity(count);
    while parts.len() < count {
        let done = parts.len();
        let bodies = (done..count.min(done + STEPS_AT_ONCE))
            .map(|i| read_words(reader.segment()?, params.context().q(), first + i))
            .collect::<Result<Vec<_>, _>>()?;
        for part in threads::map(bodies.len(), |i| expand(done + i, &bodies[i])) {
            parts.push(part?);
        }
    }
    Ok(parts)
}

/// Bytes of a block of an array on the wire.
fn block_bytes(params: &TfheParams, seeded: bool) -> usize {
    let word = width(params.context().q());
    // Range and noise, then mask and body; or the body alone.
    if seeded { word } else { 2 + (params.context().lwe_dimension() + 1) * word }
}

fn array_segments(params: &TfheParams, blocks: usize, seeded: bool) -> impl Iterator<Item = u64> + use<> {
    let bytes = block_bytes(params, seeded);
    (0..blocks).step_by(SEGMENT_BLOCKS).map(move |at| (SEGMENT_BLOCKS.min(blocks - at) * bytes) as u64)
}

/// An array's bytes. An array that comes from encryption travels as a seed and its bodies.
///
/// # Errors
/// [`WireError::WrongParameters`] for an array of other parameters, [`WireError::Oversize`].
pub fn tfhe_array_to_bytes(params: &TfheParams, array: &EncryptedArray) -> Result<Vec<u8>, WireError> {
    let (hash, key) = array.owner();
    if hash != params.hash() {
        return Err(WireError::WrongParameters { found: hash, expected: params.hash() });
    }
    let array = array.known();
    let (kind, bits) = match array.element() {
        ElementType::Bool => (0u32, 1),
        ElementType::Integer(t) => (if t.signed() { 2 } else { 1 }, t.bits()),
    };
    let mut meta = Vec::new();
    for x in [kind, bits, array.shape().len() as u32, u32::from(array.seeded().is_some())] {
        meta.extend(x.to_le_bytes());
    }
    meta.extend(array.seeded().map_or(&[0; 32], |(seed, _)| seed.as_bytes()));
    array.shape().iter().for_each(|n| meta.extend((*n as u64).to_le_bytes()));
    let lengths = array_segments(params, array.block_count(), array.seeded().is_some()).collect();
    let header = Header::new(ObjectType::TfheArray, (hash, key), State::default(), meta, lengths)?;
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &header)?;
    let (q, mut bytes) = (params.context().q(), Vec::new());
    if let Some((_, bodies)) = array.seeded() {
        for bodies in bodies.chunks(SEGMENT_BLOCKS) {
            bytes.clear();
            bodies.iter().for_each(|body| append_words(&[*body], q, &mut bytes));
            writer.segment(&bytes)?;
        }
    } else {
        for blocks in array.blocks().chunks(SEGMENT_BLOCKS) {
            bytes.clear();
            for b in blocks {
                // Both are at most 12.
                bytes.extend([b.largest() as u8, b.noise() as u8]);
                append_words(b.ciphertext().words(), q, &mut bytes);
            }
            writer.segment(&bytes)?;
        }
    }
    writer.finish()?;
    Ok(out)
}

/// Reads an array from memory or a mapped file.
///
/// # Errors
/// Every [`WireError`] but [`WireError::Io`].
pub fn tfhe_array_from_bytes(params: &TfheParams, bytes: &[u8]) -> Result<EncryptedArray, WireError> {
    let mut reader = Reader::open(Source::Bytes(bytes), ObjectType::TfheArray)?;
    let header = reader.header();
    header.expect_params(params.hash())?;
    header.expect_no_state()?;
    let mut fields = Fields::new(header.meta());
    let element = match (fields.u32()?, fields.u32()?) {
        (0, 1) => ElementType::Bool,
        (kind @ (1 | 2), bits) => ElementType::Integer(IntegerType::new(bits, kind == 2)?),
        _ => return Err(WireError::Corrupt { what: "an unknown type of elements" }),
    };
    check_element(params, element)?;
    let axes = fields.u32()? as usize;
    if axes > MAX_AXES {
        return Err(WireError::Oversize { what: "a number of axes", found: axes as u64, limit: MAX_AXES as u64 });
    }
    let (seeded, seed) = (fields.u32()?, fields.bytes32()?);
    let seed = match seeded {
        1 => Some(MaskSeed::from_bytes(seed)),
        0 if seed == [0; 32] => None,
        _ => return Err(WireError::Corrupt { what: "an array neither seeded nor not" }),
    };
    let too_large = |_| WireError::Corrupt { what: "a shape that no array has" };
    let shape = (0..axes)
        .map(|_| fields.u64().and_then(|n| usize::try_from(n).map_err(too_large)))
        .collect::<Result<Vec<_>, _>>()?;
    fields.finish()?;
    let count = elements_of(&shape)? * element.blocks();
    header.expect_segments(array_segments(params, count, seed.is_some()))?;
    let (key, q, length) = (header.key(), params.context().q(), block_bytes(params, seed.is_some()));
    let segments = header.segments().len();
    let mut bodies = Vec::new();
    let mut blocks = Vec::new();
    for i in 0..segments {
        let bytes = reader.segment()?;
        if seed.is_some() {
            bodies.extend(read_words(bytes, q, i)?);
            continue;
        }
        for block in bytes.chunks_exact(length) {
            let c = LweCiphertext::from_words(params.context().modulus(), read_words(&block[2..], q, i)?)?;
            let (largest, noise) = (u64::from(block[0]), u64::from(block[1]));
            if noise == 0 && c.mask().iter().any(|a| *a != 0) {
                return Err(WireError::Corrupt { what: "a ciphertext without noise" });
            }
            blocks.push(EncryptedInt::from_parts(c, (params.hash(), key), largest, noise));
        }
    }
    reader.finish()?;
    Ok(match seed {
        Some(seed) => EncryptedArray::from_bodies(params, (element, shape), key, seed, bodies)?,
        None => EncryptedArray::from_blocks(element, shape, (params.hash(), key), blocks)?,
    })
}
