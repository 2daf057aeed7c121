//! Evaluation keys on the wire: of each key its level, the seed of its a_j, and its b_j; where no seed stands for the a_j,
//! each follows its b_j.

use super::bytes::Fields;
use super::container::{Reader, Writer};
use super::error::WireError;
use super::header::{Header, State};
use super::packing::packed_bytes;
use super::{ObjectType, Wire};
use crate::ids::{KeyId, ParamsHash};
use crate::keys::{EvalKeys, GaloisKey, KeySwitchKey};
use crate::params::Params;
use std::io::Write;
use sudare_ring::random::MaskSeed;

/// Bytes of a key's record.
const RECORD_BYTES: usize = 48;

/// What a header says of one key-switching key.
#[derive(Clone, Debug)]
pub struct KeyRecord {
    /// The Galois element; 0 for a relinearisation key and any other.
    pub element: u64,
    /// The highest level of ciphertexts that it serves.
    pub level: usize,
    /// None where the a_j themselves travel.
    seed: Option<MaskSeed>,
}

impl KeyRecord {
    /// Stands for a key that is no automorphism's, where a Galois element stands otherwise; those are odd.
    pub const SWITCH: u64 = 0;

    /// The record of a key that is no automorphism's.
    pub fn of_switch(key: &KeySwitchKey) -> Self {
        Self::of(Self::SWITCH, key)
    }

    /// The record of an automorphism's key.
    pub fn of_galois(key: &GaloisKey) -> Self {
        Self::of(key.element(), key.key())
    }

    fn of(element: u64, key: &KeySwitchKey) -> Self {
        Self { element, level: key.level(), seed: key.seed().copied() }
    }

    /// Writes the record.
    pub fn write(&self, meta: &mut Vec<u8>) {
        meta.extend(self.element.to_le_bytes());
        meta.extend((self.level as u32).to_le_bytes());
        meta.extend(u32::from(self.seed.is_none()).to_le_bytes());
        meta.extend(self.seed.map_or([0; 32], |seed| *seed.as_bytes()));
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`WireError::Corrupt`], [`WireError::Oversize`] for a level that the set lacks.
    pub fn read(params: &Params, fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let element = fields.u64()?;
        let order = 2 * params.degree() as u64;
        if element != Self::SWITCH && (element % 2 == 0 || element >= order) {
            return Err(WireError::Corrupt { what: "a key of no Galois element" });
        }
        let level = fields.u32()? as usize;
        let highest = params.max_level();
        if level > highest {
            return Err(WireError::Oversize { what: "a level", found: level as u64, limit: highest as u64 });
        }
        let seed = match (fields.u32()?, fields.bytes32()?) {
            (0, seed) => Some(MaskSeed::from_bytes(seed)),
            (1, seed) if seed == [0; 32] => None,
            _ => return Err(WireError::Corrupt { what: "a key with a seed that does not stand for it" }),
        };
        Ok(Self { element, level, seed })
    }

    /// Polynomials of a digit that travel: b_j, and a_j where no seed stands for it.
    fn parts(&self) -> usize {
        if self.seed.is_some() { 1 } else { 2 }
    }

    /// Number of its segments.
    pub fn segments(&self, params: &Params) -> usize {
        params.digits_at(self.level) * self.parts()
    }

    /// Bytes of each of its segments.
    pub fn lengths(&self, params: &Params) -> impl Iterator<Item = u64> + use<> {
        let bytes = packed_bytes(params.qp_at(self.level));
        std::iter::repeat_n(bytes, self.segments(params))
    }

    /// Writes a key's segments.
    ///
    /// # Errors
    /// [`WireError::Io`].
    pub fn write_key<W: Write>(key: &KeySwitchKey, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        // Keys stand in memory as the inner product reads them; one polynomial at a time is put
        // together for the wire.
        (0..key.digits()).try_for_each(|j| {
            writer.poly(&key.b(j))?;
            if key.seed().is_none() { writer.poly(&key.a(j)) } else { Ok(()) }
        })
    }

    /// Reads the segments that it announces.
    ///
    /// # Errors
    /// Every [`WireError`].
    pub fn read_key(&self, params: &Params, reader: &mut Reader<'_>) -> Result<KeySwitchKey, WireError> {
        let basis = params.qp_at(self.level);
        let (mut b, mut a) = (Vec::new(), Vec::new());
        for _ in 0..params.digits_at(self.level) {
            b.push(reader.poly(basis)?);
            if self.seed.is_none() {
                a.push(reader.poly(basis)?);
            }
        }
        Ok(match self.seed {
            Some(seed) => KeySwitchKey::from_parts(params, self.level, seed, b)?,
            None => KeySwitchKey::from_pairs(params, self.level, &b, &a)?,
        })
    }

    /// The records of evaluation keys, in the order in which they travel, that a header's remaining fields hold.
    ///
    /// # Errors
    /// As [`KeyRecord::read`].
    pub fn read_all(params: &Params, fields: &mut Fields<'_>) -> Result<Vec<Self>, WireError> {
        let count = fields.left() / RECORD_BYTES;
        let records = (0..count).map(|_| Self::read(params, fields)).collect::<Result<Vec<_>, _>>()?;
        if !records.is_sorted_by(|a, b| a.element < b.element) {
            return Err(WireError::Corrupt { what: "keys out of order or twice" });
        }
        if params.p().is_empty() && !records.is_empty() {
            return Err(WireError::Corrupt { what: "key-switching keys without special primes" });
        }
        Ok(records)
    }

    /// The records of a container of evaluation keys, from its header, which announces their segments and no more.
    ///
    /// # Errors
    /// As [`KeyRecord::read_all`].
    pub fn of_header(params: &Params, header: &Header) -> Result<Vec<Self>, WireError> {
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        let records = Self::read_all(params, &mut fields)?;
        fields.finish()?;
        header.expect_segments(records.iter().flat_map(|r| r.lengths(params)))?;
        Ok(records)
    }

    /// Evaluation keys from their records and the segments that follow.
    ///
    /// # Errors
    /// Every [`WireError`].
    pub fn read_keys(
        records: &[Self],
        params: &Params,
        id: KeyId,
        reader: &mut Reader<'_>,
    ) -> Result<EvalKeys, WireError> {
        let mut keys = EvalKeys::new(params, id);
        for record in records {
            let key = record.read_key(params, reader)?;
            match record.element {
                Self::SWITCH => keys.set_relin(key)?,
                element => keys.insert(GaloisKey::from_parts(element, key)?)?,
            }
        }
        Ok(keys)
    }

    /// Every key with its record, in the order in which they travel.
    pub fn all(keys: &EvalKeys) -> impl Iterator<Item = (Self, &KeySwitchKey)> {
        let relin = keys.relin_key().into_iter().map(|key| (Self::of_switch(key), key));
        relin.chain(keys.galois_keys().map(|g| (Self::of_galois(g), g.key())))
    }
}

impl Wire for EvalKeys {
    type Params = Params;
    const TYPE: ObjectType = ObjectType::EvalKeys;

    fn params_hash(params: &Params) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let (mut meta, mut lengths) = (Vec::new(), Vec::new());
        for (record, _) in KeyRecord::all(self) {
            record.write(&mut meta);
            lengths.extend(record.lengths(self.params()));
        }
        let owner = (self.params().hash(), self.id());
        Header::new(Self::TYPE, owner, State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        KeyRecord::all(self).try_for_each(|(_, key)| KeyRecord::write_key(key, writer))
    }

    fn read_segments(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        let records = KeyRecord::of_header(params, header)?;
        let id = header.key();
        KeyRecord::read_keys(&records, params, id, reader)
    }
}
