//! Plaintexts and ciphertexts of CKKS: the same polynomials, the same slots, a scale as a decimal number.

use crate::error::{LattigoError, unsupported};
use crate::metadata::{Metadata, integer_text, real_text};
use crate::{Claim, ERRORS, Exchange, Noise, Packing, require_two, stated};
use sudare_he::ckks::noise::TAIL;
use sudare_he::ckks::{Ciphertext, EncodeAt, Encoder, Params, Plaintext, State};
use sudare_rlwe as rlwe;
use sudare_rlwe::KeyId;

impl Exchange<Params> {
    /// All slots of the ring.
    pub fn all_slots(&self) -> Packing {
        Packing::Slots { log_rows: 0, log_columns: self.params.log_n() - 1 }
    }

    /// Reads a ciphertext (`rlwe.Ciphertext` of `ckks`) under the key of this name, and where its message stands. Fewer slots
    /// than the ring has repeat among all of them.
    ///
    /// # Errors
    /// [`LattigoError`] for bytes that are no such ciphertext; [`LattigoError::Claim`] for bounds that are no numbers;
    /// `HeError::TooLarge` for a bound that the level does not hold.
    pub fn read_ciphertext(
        &self,
        key: KeyId,
        bytes: &[u8],
        claim: Claim,
    ) -> Result<(Ciphertext, Packing), LattigoError> {
        let (metadata, parts, level) = self.read_element(bytes, 3)?;
        require_two(claim.noise, parts.len())?;
        let inner = rlwe::Ciphertext::from_parts(self.rlwe(), key, parts, level)?;
        let (scale, bound) = (metadata.real_scale()?, stated("bound", claim.bound)?);
        let sketch = self.params.sketch();
        let fresh = |encryption: rlwe::noise::Noise| {
            encryption.bound(&TAIL) * ERRORS + self.encoding(EncodeAt { level, scale, max_abs: bound })
        };
        let noise = match claim.noise {
            Noise::FreshSecretKey => fresh(sketch.secret_encryption()),
            Noise::FreshPublicKey => fresh(sketch.public_encryption()),
            Noise::Bound(noise) => stated("noise", noise)?,
        };
        let state = State { scale, bound, noise };
        state.check_fits("reading a ciphertext", self.rlwe(), level)?;
        Ok((Ciphertext::from_parts(inner, state)?, self.packing(&metadata)?))
    }

    /// The bytes of a ciphertext, whose message stands as it is said.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; [`LattigoError::Unsupported`] for slots that the ring does not have.
    pub fn write_ciphertext(&self, ciphertext: &Ciphertext, packing: Packing) -> Result<Vec<u8>, LattigoError> {
        self.rlwe().require("the ciphertext", ciphertext.params())?;
        let polys: Vec<_> = ciphertext.parts().iter().collect();
        self.write_element(&self.metadata(ciphertext.scale(), packing)?, &polys)
    }

    /// Reads a plaintext (`rlwe.Plaintext` of `ckks`) whose values have this bound, and where they stand.
    ///
    /// # Errors
    /// As [`Exchange::read_ciphertext`].
    pub fn read_plaintext(&self, bytes: &[u8], bound: f64) -> Result<(Plaintext, Packing), LattigoError> {
        let (metadata, polys, level) = self.read_element(bytes, 1)?;
        let (scale, bound) = (metadata.real_scale()?, stated("bound", bound)?);
        let noise = self.encoding(EncodeAt { level, scale, max_abs: bound });
        let state = State { scale, bound, noise };
        state.check_fits("reading a plaintext", self.rlwe(), level)?;
        let [poly] = <[_; 1]>::try_from(polys).map_err(|_| {
            unsupported("a plaintext", "a plaintext has one polynomial, and these bytes have another number")
        })?;
        Ok((Plaintext::from_parts(self.rlwe(), poly, state)?, self.packing(&metadata)?))
    }

    /// The bytes of a plaintext, whose message stands as it is said.
    ///
    /// # Errors
    /// As [`Exchange::write_ciphertext`].
    pub fn write_plaintext(&self, plaintext: &Plaintext, packing: Packing) -> Result<Vec<u8>, LattigoError> {
        self.rlwe().require("the plaintext", plaintext.params())?;
        self.write_element(&self.metadata(plaintext.scale(), packing)?, &[plaintext.poly()])
    }

    /// Bound on the error of their encoding: they round as we do.
    fn encoding(&self, at: EncodeAt) -> f64 {
        Encoder::new(&self.params).noise(at)
    }

    fn metadata(&self, scale: f64, packing: Packing) -> Result<Metadata, LattigoError> {
        let metadata = Metadata { scale: real_text(scale), modulus: integer_text(0), packing };
        self.packing(&metadata)?;
        Ok(metadata)
    }

    /// Where a message stands, if the ring has such slots.
    fn packing(&self, metadata: &Metadata) -> Result<Packing, LattigoError> {
        match metadata.packing {
            Packing::Slots { log_rows, log_columns } if log_rows != 0 || log_columns >= self.params.log_n() => {
                let most = self.params.log_n() - 1;
                let reason = format!("CKKS has one row of 2^0 to 2^{most} slots; take such a number");
                Err(unsupported("a message in such slots", reason))
            }
            packing => Ok(packing),
        }
    }
}
