//! Plaintexts on the wire: not encrypted.

use super::Object;
use super::container::Reader;
use super::error::WireError;
use super::header::{Header, ObjectType, State};
use super::packing::packed_bytes;
use crate::ckks::Plaintext;
use crate::keys::KeyId;
use crate::params::Params;
use sudare_ring::{Eval, Poly};

impl Object for Plaintext {
    const TYPE: ObjectType = ObjectType::Plaintext;

    fn outline(&self) -> Result<(Header, Vec<&Poly<Eval>>), WireError> {
        let state = State { level: self.level as u32, scale: self.scale, bound: self.bound, noise: self.noise };
        state.check(&self.params)?;
        let owner = (self.params.hash(), KeyId([0; 16]));
        let header = Header::new(Self::TYPE, owner, state, Vec::new(), vec![packed_bytes(self.poly.basis())])?;
        Ok((header, vec![&self.poly]))
    }

    fn load(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_key(KeyId([0; 16]))?;
        let state = header.state();
        state.check(params)?;
        if !header.meta().is_empty() {
            return Err(WireError::Corrupt { what: "metadata where none belongs" });
        }
        let level = state.level as usize;
        header.expect_segments([packed_bytes(params.q_at(level))])?;
        let poly = reader.poly(params.q_at(level))?;
        let (scale, bound, noise) = (state.scale, state.bound, state.noise);
        Ok(Self { params: params.clone(), poly, level, scale, bound, noise })
    }
}
