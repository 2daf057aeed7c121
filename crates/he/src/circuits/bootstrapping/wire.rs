//! Bootstrapping keys on the wire: the keys to the sparse secret and back, then the evaluation keys, seeds in place of masks.

use super::keys::BootstrapKeys;
use super::params::BootstrapParams;
use crate::error::HeError;
use std::io::Write;
use std::sync::Arc;
use sudare_rlwe::keys::GaloisKey;
use sudare_rlwe::wire::{Fields, Header, KeyRecord, ObjectType, Reader, State, Wire, WireError, Writer};
use sudare_rlwe::{ParamsHash, RaiseKeys, ToDense};

impl BootstrapParams {
    /// Element and level of every evaluation key of the set, in the order in which they travel.
    fn wanted(&self) -> Result<impl Iterator<Item = (u64, usize)>, HeError> {
        let figures = self.figures()?;
        let galois = figures.galois.iter().map(|(element, level)| (*element, *level));
        Ok(figures.relin.map(|level| (0, level)).into_iter().chain(galois))
    }
}

impl Wire for BootstrapKeys {
    type Params = BootstrapParams;
    const TYPE: ObjectType = ObjectType::BootstrapKeys;

    fn params_hash(params: &BootstrapParams) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let params = &self.params;
        let (mut meta, mut lengths) = (Vec::new(), Vec::new());
        let gates = self.gates().into_iter().map(|(record, _, set)| (record, set));
        let others = KeyRecord::all(&self.keys).map(|(record, _)| (record, params.params().rlwe()));
        for (record, set) in gates.chain(others) {
            record.write(&mut meta);
            lengths.extend(record.lengths(set));
        }
        Header::new(Self::TYPE, (params.hash(), self.id()), State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        let all = KeyRecord::all(&self.keys).map(|(_, key)| key);
        self.gates().into_iter().map(|(_, key, _)| key).chain(all).try_for_each(|key| KeyRecord::write_key(key, writer))
    }

    fn read_segments(params: &BootstrapParams, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        let mut fields = Fields::new(header.meta());
        let (gate, open, set) = (params.gate(), params.open(), params.params().rlwe());
        let sparse = (0..params.literal().entries()).map(|_| KeyRecord::read(gate, &mut fields));
        let sparse = sparse.collect::<Result<Vec<_>, _>>()?;
        // One key back, or one for each diagonal of a stage.
        let stage = params.layout().keyed().map(|stage| stage.elements());
        let back = stage.clone().unwrap_or_else(|| vec![KeyRecord::SWITCH]);
        let dense = back.iter().map(|_| KeyRecord::read(open, &mut fields)).collect::<Result<Vec<_>, _>>()?;
        let records = KeyRecord::read_all(set, &mut fields)?;
        fields.finish()?;
        let corrupt = || WireError::Corrupt { what: "bootstrapping keys that are not the set's" };
        // A set's keys are known: neither fewer nor others, nor at other levels.
        let found = records.iter().map(|r| (r.element, r.level));
        let closed = sparse.iter().all(|key| (key.element, key.level) == (0, 0));
        let top = params.layout().levels.top;
        let opened = dense.iter().zip(&back).all(|(key, element)| (key.element, key.level) == (*element, top));
        if !closed || !opened || !found.eq(params.wanted().map_err(|_| corrupt())?) {
            return Err(corrupt());
        }
        let lengths = sparse.iter().flat_map(|key| key.lengths(gate));
        let lengths = lengths.chain(dense.iter().flat_map(|key| key.lengths(open)));
        header.expect_segments(lengths.chain(records.iter().flat_map(|r| r.lengths(set))))?;
        let id = header.key();
        let to_sparse = sparse.iter().map(|key| key.read_key(gate, reader)).collect::<Result<_, _>>()?;
        let mut dense = dense.iter().map(|key| key.read_key(open, reader)).collect::<Result<Vec<_>, _>>()?;
        let to_dense = match (stage, dense.pop()) {
            (None, Some(key)) => ToDense::Switch(key),
            (Some(elements), Some(last)) => {
                let keys = elements.into_iter().zip(dense.into_iter().chain([last]));
                ToDense::Map(keys.map(|(element, key)| GaloisKey::from_parts(element, key)).collect::<Result<_, _>>()?)
            }
            (_, None) => return Err(corrupt()),
        };
        let keys = KeyRecord::read_keys(&records, set, id, reader)?;
        Ok(Self { params: params.clone(), keys, gates: Arc::new(RaiseKeys { to_sparse, to_dense }) })
    }
}
