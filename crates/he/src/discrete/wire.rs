//! Keys between CKKS and LWE on the wire: the packing key part by part, the key switch, the key out; seeds in place of masks.

use super::lwe::{LweKeys, LweParams};
use std::io::Write;
use sudare_ring::random::MaskSeed;
use sudare_rlwe::wire::packing::{append_words, read_words, width};
use sudare_rlwe::wire::{Fields, Header, KeyRecord, ObjectType, Reader, State, Wire, WireError, Writer};
use sudare_rlwe::{KeyId, ParamsHash};
use sudare_tfhe::exchange::{EntryKey, ExitKey};

impl LweParams {
    /// Bytes of the packing key's parts, and of the key out.
    fn lengths(&self) -> [Vec<u64>; 2] {
        let exchange = self.exchange();
        let bytes = |words: usize, q: u64| (words * width(q)) as u64;
        let entry = 0..EntryKey::parts_of(exchange);
        [
            entry.map(|part| bytes(EntryKey::words_of(exchange, part), exchange.entry().q())).collect(),
            vec![bytes(ExitKey::words_of(exchange), exchange.exit().q())],
        ]
    }
}

impl Wire for LweKeys {
    type Params = LweParams;
    const TYPE: ObjectType = ObjectType::LweKeys;

    fn params_hash(params: &LweParams) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let mut meta = self.tfhe_id().0.to_vec();
        meta.extend(self.entry.mask_seed().as_bytes());
        meta.extend(self.exit.mask_seed().as_bytes());
        let record = KeyRecord::of_switch(&self.switch);
        record.write(&mut meta);
        let [mut lengths, exit] = self.params.lengths();
        lengths.extend(record.lengths(self.params.entry()));
        lengths.extend(exit);
        Header::new(Self::TYPE, (self.params.hash(), self.id()), State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        let exchange = self.params.exchange();
        let mut bytes = Vec::new();
        for part in 0..EntryKey::parts_of(exchange) {
            bytes.clear();
            append_words(&self.entry.bodies(part), exchange.entry().q(), &mut bytes);
            writer.segment(&bytes)?;
        }
        KeyRecord::write_key(&self.switch, writer)?;
        bytes.clear();
        append_words(&self.exit.bodies(), exchange.exit().q(), &mut bytes);
        writer.segment(&bytes)
    }

    fn read_segments(params: &LweParams, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        let tfhe = KeyId(fields.bytes16()?);
        let [entry_seed, exit_seed] = [fields.bytes32()?, fields.bytes32()?].map(MaskSeed::from_bytes);
        let (set, exchange) = (params.entry(), params.exchange());
        let record = KeyRecord::read(set, &mut fields)?;
        fields.finish()?;
        if (record.element, record.level) != (KeyRecord::SWITCH, 0) {
            return Err(WireError::Corrupt { what: "keys between schemes that are not the set's" });
        }
        let [entry, exit] = params.lengths();
        let parts = entry.len();
        header.expect_segments(entry.into_iter().chain(record.lengths(set)).chain(exit))?;
        let id = header.key();
        let mut segment = 0;
        let mut words = |reader: &mut Reader<'_>, q: u64| {
            let words = read_words(reader.segment()?, q, segment);
            segment += 1;
            words
        };
        let q = exchange.entry().q();
        let bodies = (0..parts).map(|_| words(reader, q)).collect::<Result<Vec<_>, _>>()?;
        let entry = EntryKey::from_bodies(exchange, entry_seed, &bodies)?;
        let switch = record.read_key(set, reader)?;
        let exit = read_words(reader.segment()?, exchange.exit().q(), parts + 1)?;
        let exit = ExitKey::from_bodies(exchange, exit_seed, &exit)?;
        Ok(Self { params: params.clone(), ids: [id, tfhe], entry, switch, exit })
    }
}
