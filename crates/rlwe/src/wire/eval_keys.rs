//! Evaluation keys on the wire: of each key its level, the seed of its a_j, and its b_j.

use super::bytes::Fields;
use super::container::{Reader, Writer};
use super::error::WireError;
use super::header::{Header, State};
use super::packing::packed_bytes;
use super::{ObjectType, Wire};
use crate::ids::ParamsHash;
use crate::keys::{EvalKeys, GaloisKey, KeySwitchKey};
use crate::params::Params;
use std::io::Write;
use sudare_ring::random::MaskSeed;

/// Stands for relinearisation where a Galois element stands otherwise; those are odd.
const RELIN: u64 = 0;
/// Bytes of a key's record.
const RECORD_BYTES: usize = 48;

/// What the header says of one key.
struct Record {
    element: u64,
    level: usize,
    seed: MaskSeed,
}

impl Record {
    fn write(element: u64, key: &KeySwitchKey, meta: &mut Vec<u8>) {
        meta.extend(element.to_le_bytes());
        meta.extend((key.level() as u32).to_le_bytes());
        meta.extend([0; 4]);
        meta.extend(key.seed().as_bytes());
    }

    fn read(params: &Params, fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let element = fields.u64()?;
        let order = 2 * params.degree() as u64;
        if element != RELIN && (element % 2 == 0 || element >= order) {
            return Err(WireError::Corrupt { what: "a key of no Galois element" });
        }
        let level = fields.u32()? as usize;
        let highest = params.max_level();
        if level > highest {
            return Err(WireError::Oversize { what: "a level", found: level as u64, limit: highest as u64 });
        }
        fields.zeros(4)?;
        Ok(Self { element, level, seed: MaskSeed::from_bytes(fields.bytes32()?) })
    }

    /// Bytes of each of its segments.
    fn lengths(&self, params: &Params) -> impl Iterator<Item = u64> + use<> {
        let bytes = packed_bytes(params.qp_at(self.level));
        std::iter::repeat_n(bytes, params.digits_at(self.level))
    }
}

/// Every key with the number that stands for it, in the order in which they travel.
fn records(keys: &EvalKeys) -> impl Iterator<Item = (u64, &KeySwitchKey)> {
    let relin = keys.relin_key().into_iter().map(|key| (RELIN, key));
    relin.chain(keys.galois_keys().map(|g| (g.element(), g.key())))
}

impl Wire for EvalKeys {
    type Params = Params;
    const TYPE: ObjectType = ObjectType::EvalKeys;

    fn params_hash(params: &Params) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let (mut meta, mut lengths) = (Vec::new(), Vec::new());
        for (element, key) in records(self) {
            Record::write(element, key, &mut meta);
            let bytes = packed_bytes(self.params().qp_at(key.level()));
            lengths.extend(std::iter::repeat_n(bytes, key.digits()));
        }
        let owner = (self.params().hash(), self.id());
        Header::new(Self::TYPE, owner, State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        // Keys stand in memory as the inner product reads them; one polynomial at a time is put
        // together for the wire.
        records(self).try_for_each(|(_, key)| (0..key.digits()).try_for_each(|j| writer.poly(&key.b(j))))
    }

    fn read_segments(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        let count = header.meta().len() / RECORD_BYTES;
        let records = (0..count).map(|_| Record::read(params, &mut fields)).collect::<Result<Vec<_>, _>>()?;
        fields.finish()?;
        if !records.is_sorted_by(|a, b| a.element < b.element) {
            return Err(WireError::Corrupt { what: "keys out of order or twice" });
        }
        if params.p().is_empty() && !records.is_empty() {
            return Err(WireError::Corrupt { what: "key-switching keys without special primes" });
        }
        header.expect_segments(records.iter().flat_map(|r| r.lengths(params)))?;
        let mut keys = Self::new(params, header.key());
        for Record { element, level, seed } in records {
            let basis = params.qp_at(level);
            let b = (0..params.digits_at(level)).map(|_| reader.poly(basis)).collect::<Result<Vec<_>, _>>()?;
            let key = KeySwitchKey::from_parts(params, level, seed, b)?;
            match element {
                RELIN => keys.set_relin(key)?,
                element => keys.insert(GaloisKey::from_parts(element, key)?)?,
            }
        }
        Ok(keys)
    }
}
