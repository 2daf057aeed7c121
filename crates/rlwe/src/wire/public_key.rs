//! Public keys on the wire: b, and the seed of a.

use super::Object;
use super::bytes::Fields;
use super::container::Reader;
use super::error::WireError;
use super::header::{Header, ObjectType, State};
use super::packing::packed_bytes;
use crate::keys::PublicKey;
use crate::params::Params;
use sudare_ring::random::MaskSeed;
use sudare_ring::{Eval, Poly};

impl Object for PublicKey {
    const TYPE: ObjectType = ObjectType::PublicKey;

    fn outline(&self) -> Result<(Header, Vec<&Poly<Eval>>), WireError> {
        let (b, seed) = self.parts();
        let owner = (self.params().hash(), self.id());
        let lengths = vec![packed_bytes(b.basis())];
        let header = Header::new(Self::TYPE, owner, State::default(), seed.as_bytes().to_vec(), lengths)?;
        Ok((header, vec![b]))
    }

    fn load(params: &Params, reader: &mut Reader<'_>) -> Result<Self, WireError> {
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
