//! Keys of a refresh on the wire: the key to the sparse secret, the sparse secret encrypted, then the evaluation keys; seeds in
//! place of masks.

use super::keys::RefreshKeys;
use super::params::RefreshParams;
use crate::State as PlainState;
use crate::bgv::Ciphertext;
use crate::error::ExactError;
use std::io::Write;
use std::sync::Arc;
use sudare_rlwe::ParamsHash;
use sudare_rlwe::RlweError;
use sudare_rlwe::wire::{Fields, Form, Header, KeyRecord, ObjectType, Reader, State, Wire, WireError, Writer};

impl Wire for RefreshKeys {
    type Params = RefreshParams;
    const TYPE: ObjectType = ObjectType::RefreshKeys;

    fn params_hash(params: &RefreshParams) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let (params, gate) = (self.params.params(), self.params.gate());
        let (mut meta, mut lengths) = (params.t().to_le_bytes().to_vec(), Vec::new());
        let switch = KeyRecord::of_switch(&self.to_sparse);
        switch.write(&mut meta);
        lengths.extend(switch.lengths(gate));
        for share in &self.sparse {
            let form = Form::of(share.inner());
            meta.extend(form.seed_bytes());
            lengths.extend(form.lengths(params));
        }
        for (record, _) in KeyRecord::all(&self.keys) {
            record.write(&mut meta);
            lengths.extend(record.lengths(params));
        }
        Header::new(Self::TYPE, (self.params.hash(), self.id()), State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        KeyRecord::write_key(&self.to_sparse, writer)?;
        self.sparse.iter().try_for_each(|share| Form::of(share.inner()).write(share.inner(), writer))?;
        KeyRecord::all(&self.keys).try_for_each(|(_, key)| KeyRecord::write_key(key, writer))
    }

    fn read_segments(params: &RefreshParams, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        let (set, gate, square) = (params.params().rlwe(), params.gate(), params.square());
        let (found, expected) = (fields.u64()?, params.params().t());
        if found != expected {
            return Err(ExactError::Rlwe(RlweError::WrongPlainModulus { what: "the file", found, expected }).into());
        }
        let switch = KeyRecord::read(gate, &mut fields)?;
        let top = set.max_level() as u32;
        let form = |fields: &mut Fields<'_>| Form::read(set, top, (2, 1), fields.bytes32()?);
        let shares = (0..params.layout().shares).map(|_| form(&mut fields)).collect::<Result<Vec<_>, _>>()?;
        let records = KeyRecord::read_all(set, &mut fields)?;
        fields.finish()?;
        // A set's keys are known: neither fewer nor others, nor at other levels.
        let found = records.iter().map(|r| (r.element, r.level));
        if (switch.element, switch.level) != (KeyRecord::SWITCH, gate.max_level()) || !found.eq(params.wanted()) {
            return Err(WireError::Corrupt { what: "keys of a refresh that are not the set's" });
        }
        let lengths = switch.lengths(gate).chain(shares.iter().flat_map(|form| form.lengths(set)));
        header.expect_segments(lengths.chain(records.iter().flat_map(|r| r.lengths(set))))?;
        let id = header.key();
        let to_sparse = switch.read_key(gate, reader)?;
        let noise = square.noise().message() + square.noise().secret_encryption();
        let mut sparse = Vec::with_capacity(shares.len());
        for form in shares {
            let inner = form.load(set, id, reader)?;
            sparse.push(Ciphertext::from_parts(square, inner, PlainState { factor: 1, noise })?);
        }
        let keys = Arc::new(KeyRecord::read_keys(&records, set, id, reader)?);
        Ok(Self { params: params.clone(), keys, to_sparse, sparse })
    }
}
