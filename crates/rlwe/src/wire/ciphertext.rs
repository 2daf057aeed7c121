//! Ciphertexts on the wire, as far as schemes share them: their parts, or c_0 and the seed of c_1.

use super::container::{Reader, Writer};
use super::error::WireError;
use super::packing::packed_bytes;
use crate::ciphertext::Ciphertext;
use crate::ids::KeyId;
use crate::params::Params;
use std::io::Write;
use sudare_ring::random::MaskSeed;

/// In what form a ciphertext travels: its level, how many parts it has, and the seed of c_1 if that is
/// all that travels of it.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    level: usize,
    parts: usize,
    seed: Option<MaskSeed>,
}

impl Form {
    /// Of a ciphertext.
    pub fn of(ciphertext: &Ciphertext) -> Self {
        Self { level: ciphertext.level(), parts: ciphertext.parts().len(), seed: ciphertext.seed() }
    }

    /// As it was read, checked.
    ///
    /// # Errors
    /// [`WireError::Oversize`] for a level that there is not; [`WireError::Corrupt`] for parts that no
    /// ciphertext has, or a seed where none belongs.
    pub fn read(params: &Params, level: u32, (parts, seeded): (u32, u32), seed: [u8; 32]) -> Result<Self, WireError> {
        let highest = params.max_level() as u64;
        if u64::from(level) > highest {
            return Err(WireError::Oversize { what: "a level", found: level.into(), limit: highest });
        }
        let seed = match (parts, seeded) {
            (2, 1) => Some(MaskSeed::from_bytes(seed)),
            (2 | 3, 0) if seed == [0; 32] => None,
            _ => return Err(WireError::Corrupt { what: "a ciphertext of impossible parts" }),
        };
        Ok(Self { level: level as usize, parts: parts as usize, seed })
    }

    /// Number of parts, and 1 for a seeded ciphertext.
    pub fn counts(&self) -> [u32; 2] {
        [self.parts as u32, u32::from(self.seed.is_some())]
    }

    /// The seed, or zeros.
    pub fn seed_bytes(&self) -> [u8; 32] {
        self.seed.map_or([0; 32], |seed| *seed.as_bytes())
    }

    fn segments(&self) -> usize {
        if self.seed.is_some() { 1 } else { self.parts }
    }

    /// Bytes of each of its segments.
    pub fn lengths(&self, params: &Params) -> impl Iterator<Item = u64> + use<> {
        std::iter::repeat_n(packed_bytes(params.q_at(self.level)), self.segments())
    }

    /// Writes the parts that travel.
    ///
    /// # Errors
    /// [`WireError::Io`].
    pub fn write<W: Write>(&self, ciphertext: &Ciphertext, writer: &mut Writer<'_, W>) -> Result<(), WireError> {
        ciphertext.parts().iter().take(self.segments()).try_for_each(|p| writer.poly(p))
    }

    /// Reads the parts.
    ///
    /// # Errors
    /// As [`Reader::poly`].
    pub fn load(self, params: &Params, key: KeyId, reader: &mut Reader<'_>) -> Result<Ciphertext, WireError> {
        let basis = params.q_at(self.level);
        Ok(match &self.seed {
            Some(seed) => Ciphertext::from_seeded(params, key, reader.poly(basis)?, seed, self.level)?,
            None => {
                let parts = (0..self.parts).map(|_| reader.poly(basis)).collect::<Result<_, _>>()?;
                Ciphertext::from_parts(params, key, parts, self.level)?
            }
        })
    }
}
