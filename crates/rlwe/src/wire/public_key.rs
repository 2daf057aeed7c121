//! Public keys on the wire: b, and the seed of a or, where none stands for it, a itself.

use super::bytes::Fields;
use super::container::{Reader, Writer};
use super::error::WireError;
use super::header::{Header, State};
use super::packing::packed_bytes;
use super::{ObjectType, Wire};
use crate::ids::ParamsHash;
use crate::keys::PublicKey;
use crate::params::Params;
use std::io::Write;
use sudare_ring::random::MaskSeed;

impl Wire for PublicKey {
    type Params = Params;
    const TYPE: ObjectType = ObjectType::PublicKey;

    fn params_hash(params: &Params) -> ParamsHash {
        params.hash()
    }

    fn header(&self) -> Result<Header, WireError> {
        let bytes = packed_bytes(self.params().q());
        let (meta, lengths) = match self.seed() {
            Some(seed) => (seed.as_bytes().to_vec(), vec![bytes]),
            None => (Vec::new(), vec![bytes; 2]),
        };
        Header::new(Self::TYPE, (self.params().hash(), self.id()), State::default(), meta, lengths)
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        let [b, a] = self.polys();
        writer.poly(b)?;
        if self.seed().is_none() { writer.poly(a) } else { Ok(()) }
    }

    fn read_segments(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        let (id, bytes) = (header.key(), packed_bytes(params.q()));
        if header.meta().is_empty() {
            header.expect_segments([bytes; 2])?;
            let b = reader.poly(params.q())?;
            return Ok(Self::from_pair(params, id, [b, reader.poly(params.q())?])?);
        }
        header.expect_segments([bytes])?;
        let mut fields = Fields::new(header.meta());
        let seed = MaskSeed::from_bytes(fields.bytes32()?);
        fields.finish()?;
        let b = reader.poly(params.q())?;
        Ok(Self::from_parts(params, id, seed, b)?)
    }
}
