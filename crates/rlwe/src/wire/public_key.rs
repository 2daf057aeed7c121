//! Public keys on the wire: b, and the seed of a.

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
        let (b, seed) = self.parts();
        let owner = (self.params().hash(), self.id());
        Header::new(Self::TYPE, owner, State::default(), seed.as_bytes().to_vec(), vec![packed_bytes(b.basis())])
    }

    fn write_segments<W: Write>(&self, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        writer.poly(self.parts().0)
    }

    fn read_segments(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let header = reader.header();
        header.expect_no_state()?;
        header.expect_segments([packed_bytes(params.q())])?;
        let mut fields = Fields::new(header.meta());
        let seed = MaskSeed::from_bytes(fields.bytes32()?);
        fields.finish()?;
        let id = header.key();
        let b = reader.poly(params.q())?;
        Ok(Self::from_parts(params, id, seed, b)?)
    }
}
