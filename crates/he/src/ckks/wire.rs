//! Ciphertexts on the wire: their parts, or c_0 and the seed of c_1.

use super::Object;
use super::bytes::Fields;
use super::container::Reader;
use super::error::WireError;
use super::header::{Header, ObjectType, State};
use super::packing::packed_bytes;
use crate::ckks::Ciphertext;
use crate::keys::KeyId;
use crate::params::Params;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

/// What a header says of one ciphertext.
pub(super) struct Record {
    pub(super) state: State,
    parts: usize,
    seed: Option<MaskSeed>,
}

impl Record {
    /// Bytes of the parts and the seed.
    const FORM_BYTES: usize = 40;
    /// Bytes of a whole record.
    pub(super) const BYTES: usize = Self::FORM_BYTES + 32;

    pub(super) fn of(ciphertext: &Ciphertext) -> Result<Self, WireError> {
        let state = State {
            level: ciphertext.level() as u32,
            scale: ciphertext.scale(),
            bound: ciphertext.bound(),
            noise: ciphertext.noise(),
        };
        state.check(ciphertext.params())?;
        Ok(Self { state, parts: ciphertext.parts().len(), seed: ciphertext.seed() })
    }

    /// The parts that travel.
    pub(super) fn polys<'a>(&self, ciphertext: &'a Ciphertext) -> &'a [Poly<Eval>] {
        &ciphertext.parts()[..self.segments()]
    }

    fn segments(&self) -> usize {
        if self.seed.is_some() { 1 } else { self.parts }
    }

    fn write_form(&self, meta: &mut Vec<u8>) {
        meta.extend((self.parts as u32).to_le_bytes());
        meta.extend(u32::from(self.seed.is_some()).to_le_bytes());
        meta.extend(self.seed.as_ref().map_or(&[0; 32], MaskSeed::as_bytes));
    }

    fn read_form(params: &Params, state: State, fields: &mut Fields<'_>) -> Result<Self, WireError> {
        state.check(params)?;
        let parts = fields.u32()? as usize;
        let (seeded, seed) = (fields.u32()?, fields.bytes32()?);
        let seed = match (parts, seeded) {
            (2, 1) => Some(MaskSeed::from_bytes(seed)),
            (2 | 3, 0) if seed == [0; 32] => None,
            _ => return Err(WireError::Corrupt { what: "a ciphertext of impossible parts" }),
        };
        Ok(Self { state, parts, seed })
    }

    pub(super) fn write(&self, meta: &mut Vec<u8>) {
        self.write_form(meta);
        meta.extend(self.state.level.to_le_bytes());
        meta.extend([0; 4]);
        for x in [self.state.scale, self.state.bound, self.state.noise] {
            meta.extend(x.to_le_bytes());
        }
    }

    pub(super) fn read(params: &Params, fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let form = fields.take(Self::FORM_BYTES)?;
        let level = fields.u32()?;
        fields.zeros(4)?;
        let state = State { level, scale: fields.f64()?, bound: fields.f64()?, noise: fields.f64()? };
        Self::read_form(params, state, &mut Fields::new(form))
    }

    /// Bytes of each of its segments.
    pub(super) fn lengths(&self, params: &Params) -> impl Iterator<Item = u64> + use<> {
        std::iter::repeat_n(packed_bytes(params.q_at(self.state.level as usize)), self.segments())
    }

    /// Reads the parts.
    pub(super) fn load(self, params: &Params, key: KeyId, reader: &mut Reader<'_>) -> Result<Ciphertext, WireError> {
        let State { level, scale, bound, noise } = self.state;
        let (level, state) = (level as usize, (scale, bound, noise));
        let basis = params.q_at(level);
        Ok(match &self.seed {
            Some(seed) => Ciphertext::from_seeded(params, key, reader.poly(basis)?, seed, level, state)?,
            None => {
                let parts = (0..self.parts).map(|_| reader.poly(basis)).collect::<Result<_, _>>()?;
                Ciphertext::from_parts(params, key, parts, level, state)?
            }
        })
    }
}

impl Object for Ciphertext {
    const TYPE: ObjectType = ObjectType::Ciphertext;

    fn outline(&self) -> Result<(Header, Vec<&Poly<Eval>>), WireError> {
        let record = Record::of(self)?;
        let mut meta = Vec::new();
        record.write_form(&mut meta);
        let lengths = record.lengths(self.params()).collect();
        let header = Header::new(Self::TYPE, (self.params().hash(), self.key()), record.state, meta, lengths)?;
        Ok((header, record.polys(self).iter().collect()))
    }

    fn load(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        let mut fields = Fields::new(header.meta());
        let record = Record::read_form(params, header.state(), &mut fields)?;
        fields.finish()?;
        header.expect_segments(record.lengths(params))?;
        let key = header.key();
        record.load(params, key, reader)
    }
}
