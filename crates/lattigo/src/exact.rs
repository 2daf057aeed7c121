//! Plaintexts and ciphertexts of BFV and BGV.
//!
//! Lattigo's one scheme `bgv` and ours keep the same form: t·Σ c_i·s^i ≡ g·m modulo t, with their scale as the plaintext
//! factor g. BFV is that form with scale-invariant products; ours has the factor −Q_l at each level, and so have products of
//! theirs of two such ciphertexts.

use crate::error::{LattigoError, unsupported};
use crate::layout::Residues::Plain;
use crate::metadata::{Metadata, integer_text};
use crate::{ERRORS, Exchange, Noise, Packing, require_two, stated};
use sudare_exact::bfv::Bfv;
use sudare_exact::{Ciphertext, IntegerParams, Plaintext, Scheme, State};
use sudare_ring::{Coeff, Eval, Poly, RingError};
use sudare_rlwe as rlwe;
use sudare_rlwe::{KeyId, RlweError};
use zeroize::Zeroizing;

impl Exchange<IntegerParams> {
    /// Both rows of slots.
    ///
    /// # Errors
    /// `ExactError::NoSlots` for a plaintext modulus without slots here.
    pub fn all_slots(&self) -> Result<Packing, LattigoError> {
        let (modulus, degree) = (self.params.t(), self.params.degree());
        if !self.params.has_slots() {
            return Err(sudare_exact::ExactError::NoSlots { modulus, degree }.into());
        }
        Ok(Packing::Slots { log_rows: 1, log_columns: self.params.row().trailing_zeros() })
    }

    /// The scale at which Lattigo should encode for BFV at a level: −Q_level modulo t. With another one reading multiplies
    /// the ciphertext by an integer, and its noise with it.
    ///
    /// # Errors
    /// `RlweError::NoSuchLevel`.
    pub fn bfv_scale(&self, level: usize) -> Result<u64, LattigoError> {
        self.rlwe().expect_level("a scale", level)?;
        Ok(Bfv::fresh_factor(&self.params, level))
    }

    /// Reads a ciphertext (`rlwe.Ciphertext` of `bgv`) under the key of this name, as one of BFV or BGV, and where its message
    /// stands. A BFV ciphertext of another scale than [`Exchange::bfv_scale`] is multiplied by the quotient of both, which is
    /// up to t/2 in absolute value, and so is its noise bound.
    ///
    /// # Errors
    /// [`LattigoError`] for bytes that are no such ciphertext; [`LattigoError::Claim`] for a bound that is no number;
    /// `RlweError::NoBudget` and `ExactError::NoiseTooSmall` for one that no such ciphertext has;
    /// `RlweError::WrongPlainModulus`.
    pub fn read_ciphertext<S: Scheme>(
        &self,
        key: KeyId,
        bytes: &[u8],
        noise: Noise,
    ) -> Result<(Ciphertext<S>, Packing), LattigoError> {
        let (metadata, mut parts, level) = self.read_element(bytes, 3)?;
        require_two(noise, parts.len())?;
        let model = self.params.noise();
        // Their encodings are not centred: a coefficient is under a unit, where ours is under half of one.
        let fresh = |encryption: f64| encryption * ERRORS + 2.0 * model.message();
        let mut noise = match noise {
            Noise::FreshSecretKey => fresh(model.secret_encryption()),
            Noise::FreshPublicKey => fresh(model.public_encryption()),
            Noise::Bound(noise) => stated("noise", noise)?,
        };
        let mut factor = self.factor(&metadata)?;
        if let Some(expected) = S::only_factor(&self.params, level).filter(|expected| *expected != factor) {
            let t = self.params.modulus();
            let quotient = t.center(t.mul(expected, t.inverse(factor)?));
            let scalars = Poly::<Eval>::scalar(self.params.q_at(level), quotient);
            parts.iter_mut().for_each(|poly| poly.mul_scalars(&scalars));
            (factor, noise) = (expected, noise * quotient.unsigned_abs() as f64);
        }
        let inner = rlwe::Ciphertext::from_parts(self.rlwe(), key, parts, level)?;
        let ciphertext = Ciphertext::from_parts(&self.params, inner, State { factor, noise })?;
        Ok((ciphertext, self.packing(metadata.packing)?))
    }

    /// The bytes of a ciphertext, whose message stands as it is said.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`, `RlweError::WrongPlainModulus`; [`LattigoError::Unsupported`] for slots that the plaintext
    /// modulus does not have.
    pub fn write_ciphertext<S: Scheme>(
        &self,
        ciphertext: &Ciphertext<S>,
        packing: Packing,
    ) -> Result<Vec<u8>, LattigoError> {
        self.require("the ciphertext", ciphertext.params())?;
        let polys: Vec<_> = ciphertext.parts().iter().collect();
        self.write_element(&self.metadata(ciphertext.factor(), packing)?, &polys)
    }

    /// Reads a plaintext (`rlwe.Plaintext` of `bgv`), and where its values stand.
    ///
    /// # Errors
    /// As [`Exchange::read_ciphertext`].
    pub fn read_plaintext(&self, bytes: &[u8]) -> Result<(Plaintext, Packing), LattigoError> {
        let (metadata, polys, level) = self.read_element(bytes, 1)?;
        let factor = self.factor(&metadata)?;
        let [poly] = <[_; 1]>::try_from(polys).map_err(|_| {
            unsupported("a plaintext", "a plaintext has one polynomial, and these bytes have another number")
        })?;
        let mut poly = Zeroizing::new(poly.into_coeff());
        // t times it is g·m.
        poly.mul_scalars(&Poly::<Coeff>::scalar(self.params.q_at(level), self.params.t() as i64));
        let t = self.params.modulus();
        let coefficients = poly.modulo(t, t.inverse(factor)?)?;
        Ok((Plaintext::from_coefficients(&self.params, coefficients)?, self.packing(metadata.packing)?))
    }

    /// The bytes of a plaintext at a level, with scale 1.
    ///
    /// # Errors
    /// As [`Exchange::write_ciphertext`]; `RlweError::NoSuchLevel`.
    pub fn write_plaintext(
        &self,
        plaintext: &Plaintext,
        level: usize,
        packing: Packing,
    ) -> Result<Vec<u8>, LattigoError> {
        self.require("the plaintext", plaintext.params())?;
        self.rlwe().expect_level("writing a plaintext", level)?;
        let (basis, t) = (self.params.q_at(level), self.params.modulus());
        let centered: Zeroizing<Vec<i64>> =
            Zeroizing::new(plaintext.coefficients().iter().map(|x| t.center(*x)).collect());
        let mut poly = Poly::<Coeff>::from_signed(basis, &centered);
        let inverses = basis.moduli().map(|q| Ok(q.shoup(q.inverse(t.value())?)));
        poly.mul_scalars(&inverses.collect::<Result<Vec<_>, RingError>>()?);
        let poly = Zeroizing::new(poly.into_eval());
        let mut out = Vec::new();
        self.metadata(1, packing)?.write(&mut out)?;
        crate::push_count(&mut out, 1);
        self.layout.write(&mut out, &poly, Plain);
        Ok(out)
    }

    fn require(&self, what: &'static str, found: &IntegerParams) -> Result<(), LattigoError> {
        self.rlwe().require(what, found.rlwe())?;
        self.require_modulus(what, found.t())
    }

    fn require_modulus(&self, what: &'static str, found: u64) -> Result<(), LattigoError> {
        match self.params.t() {
            expected if expected == found => Ok(()),
            expected => Err(RlweError::WrongPlainModulus { what, found, expected }.into()),
        }
    }

    /// The plaintext factor that metadata say, a unit modulo t.
    fn factor(&self, metadata: &Metadata) -> Result<u64, LattigoError> {
        let (factor, modulus) = metadata.integer_scale()?;
        self.require_modulus("the element", modulus)?;
        match factor {
            0 => Err(LattigoError::Text { what: "the metadata", reason: "the scale is 0".into() }),
            _ if factor < modulus => Ok(factor),
            _ => Err(LattigoError::Text {
                what: "the metadata",
                reason: "the scale is not below the plaintext modulus".into(),
            }),
        }
    }

    fn metadata(&self, factor: u64, packing: Packing) -> Result<Metadata, LattigoError> {
        let packing = self.packing(packing)?;
        Ok(Metadata { scale: integer_text(factor), modulus: integer_text(self.params.t()), packing })
    }

    /// Where a message stands, if there are such slots.
    fn packing(&self, packing: Packing) -> Result<Packing, LattigoError> {
        match packing {
            Packing::Coefficients => Ok(packing),
            Packing::Slots { .. } if !self.params.has_slots() || packing == self.all_slots()? => Ok(packing),
            Packing::Slots { .. } => {
                let row = self.params.row();
                let reason = format!("BFV and BGV have two rows of {row} slots; fill all of them, or use coefficients");
                Err(unsupported("a message in such slots", reason))
            }
        }
    }
}
