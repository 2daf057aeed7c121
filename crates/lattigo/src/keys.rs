//! Keys of all schemes.
//!
//! Both libraries cut a polynomial into digits of as many data primes as there are special primes, and have P·g_j·s' in the
//! pair of digit j; the key of an automorphism ψ leads from s to ψ^−1(s) in both. So keys differ in their order of
//! values, in Montgomery's form, and in that no seed stands for the a_j of theirs.

use crate::bytes::{Reader, push_count};
use crate::error::{LattigoError, unsupported};
use crate::layout::Residues::Montgomery;
use crate::{Exchange, Set};
use sudare_ring::{Coeff, Eval, Poly, RnsBasis};
use sudare_rlwe::keys::{EvalKeys, GaloisKey, KeyGenerator, KeySwitchKey, PublicKey, SecretKey};
use sudare_rlwe::{KeyId, RlweError};
use zeroize::Zeroizing;

/// Parts of a public key and of a digit of an evaluation key.
const PAIR: usize = 2;

impl<P: Set> Exchange<P> {
    fn top(&self) -> &RnsBasis {
        let params = self.rlwe();
        params.qp_at(params.max_level())
    }

    /// Reads a secret key (`rlwe.SecretKey`). Lattigo names no keys: `key` is the name that everything under it gets here.
    ///
    /// ```
    /// use sudare_he::ckks::ParamsLiteral;
    /// use sudare_lattigo::Exchange;
    /// use sudare_rlwe::keys::SecretKey;
    /// use sudare_rlwe::security::Security;
    ///
    /// # fn main() -> Result<(), sudare_lattigo::LattigoError> {
    /// let there = Exchange::new(ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?)?;
    /// let secret = SecretKey::generate(there.params())?;
    /// let bytes = there.write_secret_key(&secret)?;
    /// let again = there.read_secret_key(secret.id(), &bytes)?;
    /// assert_eq!(again.coefficients(), secret.coefficients());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`LattigoError`] for bytes that are no such key; `RlweError::Parameters` for a polynomial that is no secret of the set.
    pub fn read_secret_key(&self, key: KeyId, bytes: &[u8]) -> Result<SecretKey, LattigoError> {
        let (mut reader, params) = (Reader::new(bytes), self.rlwe());
        let s = Zeroizing::new(self.layout.read_extended(&mut reader, self.top(), Montgomery)?);
        reader.finish()?;
        // Its first prime says what it is; the others have to say the same.
        let first = Zeroizing::new(s.truncated(1).into_coeff());
        let coefficients = Zeroizing::new(first.centered());
        let again = Zeroizing::new(Poly::<Coeff>::from_signed(self.top(), &coefficients).into_eval());
        if !Zeroizing::new(s.sub(&again)).is_zero() {
            let reason = "the residues modulo the primes are not those of one secret key; check that the bytes are a \
                          secret key of these parameters"
                .into();
            return Err(RlweError::Parameters { reason }.into());
        }
        Ok(SecretKey::from_coefficients(params, key, coefficients)?)
    }

    /// The bytes of a secret key (`rlwe.SecretKey`), in memory that is wiped when dropped. Whoever reads them can decrypt
    /// everything.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`.
    pub fn write_secret_key(&self, key: &SecretKey) -> Result<Zeroizing<Vec<u8>>, LattigoError> {
        self.rlwe().require("the secret key", key.params())?;
        let s = Poly::<Coeff>::from_signed(self.top(), key.coefficients()).into_eval();
        let s = Zeroizing::new(s);
        // Never grown, since growing would leave copies behind.
        let mut out = Zeroizing::new(Vec::with_capacity(self.layout.bytes(self.rlwe().q().len(), true)));
        self.layout.write_extended(&mut out, &s, Montgomery);
        Ok(out)
    }

    /// Reads a public key (`rlwe.PublicKey`): its part over the data primes, which is all that encryption takes here.
    ///
    /// # Errors
    /// [`LattigoError`] for bytes that are no such key.
    pub fn read_public_key(&self, key: KeyId, bytes: &[u8]) -> Result<PublicKey, LattigoError> {
        let (mut reader, params) = (Reader::new(bytes), self.rlwe());
        let [b, a] = self.read_pair(&mut reader, self.top())?;
        reader.finish()?;
        let data = params.q().len();
        Ok(PublicKey::from_pair(params, key, [b, a].map(|poly| poly.into_truncated(data)))?)
    }

    /// The bytes of a public key (`rlwe.PublicKey`), made anew from the secret key: theirs covers the special primes too,
    /// and no key over the data primes alone can be extended.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; `RlweError::Ring` if the system gives no entropy.
    pub fn write_public_key(&self, secret: &SecretKey) -> Result<Vec<u8>, LattigoError> {
        let params = self.rlwe();
        params.require("the secret key", secret.params())?;
        let generator = KeyGenerator::new(secret)?;
        let pair = match params.p().is_empty() {
            true => generator.public_key()?.polys().map(Clone::clone),
            // A key from the secret 0 is encryptions of zero over Q·P.
            false => {
                let key = generator.key_from(&vec![0; params.degree()], params.max_level())?;
                [key.b(0), key.a(0)]
            }
        };
        let mut out = Vec::with_capacity(8 + PAIR * self.layout.bytes(params.q().len(), true));
        push_count(&mut out, PAIR);
        pair.iter().for_each(|poly| self.layout.write_extended(&mut out, poly, Montgomery));
        Ok(out)
    }

    /// A count of two, and as many polynomials over Q·P.
    fn read_pair(&self, reader: &mut Reader<'_>, basis: &RnsBasis) -> Result<[Poly<Eval>; PAIR], LattigoError> {
        match reader.u64()? {
            2 => {}
            1 => {
                return Err(unsupported(
                    "a compressed key",
                    "Lattigo's generator draws its second half; expand it in Lattigo first (EvaluationKey.Expand)",
                ));
            }
            found => return Err(LattigoError::Size { what: "parts of a key", found, expected: 2 }),
        }
        let b = self.layout.read_extended(reader, basis, Montgomery)?;
        Ok([b, self.layout.read_extended(reader, basis, Montgomery)?])
    }

    /// A gadget ciphertext: base of its second decomposition, digits, and of each its pair.
    fn read_switch(&self, reader: &mut Reader<'_>) -> Result<KeySwitchKey, LattigoError> {
        let params = self.rlwe();
        self.require_digits()?;
        if reader.u64()? != 0 {
            return Err(unsupported(
                "a key with digits of fewer bits than a prime",
                "generate it with BaseTwoDecomposition 0 and at least one special prime",
            ));
        }
        let digits = reader.at_most("digits of a key", params.digits_at(params.max_level()))?;
        // The level stands within the first polynomial.
        let mut ahead = reader.clone();
        ahead.require("second digits of a key", 1)?;
        ahead.u64()?;
        let level = ahead.at_most("primes of a key", params.q().len())? - 1;
        if digits != params.digits_at(level) {
            let (found, expected) = (digits as u64, params.digits_at(level) as u64);
            return Err(LattigoError::Size { what: "digits of a key at its level", found, expected });
        }
        let (mut b, mut a) = (Vec::new(), Vec::new());
        for _ in 0..digits {
            reader.require("second digits of a key", 1)?;
            let [first, second] = self.read_pair(reader, params.qp_at(level))?;
            b.push(first);
            a.push(second);
        }
        Ok(KeySwitchKey::from_pairs(params, level, &b, &a)?)
    }

    fn write_switch(&self, out: &mut Vec<u8>, key: &KeySwitchKey) -> Result<(), LattigoError> {
        self.rlwe().require("the evaluation key", key.params())?;
        self.require_digits()?;
        out.reserve(16 + key.digits() * (16 + PAIR * self.layout.bytes(key.level() + 1, true)));
        push_count(out, 0);
        push_count(out, key.digits());
        for j in 0..key.digits() {
            push_count(out, 1);
            push_count(out, PAIR);
            [key.b(j), key.a(j)].iter().for_each(|poly| self.layout.write_extended(out, poly, Montgomery));
        }
        Ok(())
    }

    /// Their digits have as many data primes as there are special primes.
    fn require_digits(&self) -> Result<(), LattigoError> {
        let (special, digit) = (self.rlwe().p().len(), self.rlwe().literal().digit_limbs);
        if special > 0 && digit == special {
            return Ok(());
        }
        Err(unsupported(
            "an evaluation key",
            format!(
                "Lattigo's digits have as many data primes as there are special primes, and these parameters have \
                 {digit} a digit and {special} special primes; take a set with equally many"
            ),
        ))
    }

    /// Reads a relinearisation key (`rlwe.RelinearizationKey`).
    ///
    /// # Errors
    /// [`LattigoError`] for bytes that are no such key; [`LattigoError::Unsupported`] for a compressed one, one of base-two
    /// digits, and parameters whose digits are not Lattigo's.
    pub fn read_relin_key(&self, bytes: &[u8]) -> Result<KeySwitchKey, LattigoError> {
        self.read_whole(bytes, Self::read_switch)
    }

    /// The bytes of a relinearisation key.
    ///
    /// # Errors
    /// `RlweError::WrongParameters`; [`LattigoError::Unsupported`] for parameters whose digits are not Lattigo's.
    pub fn write_relin_key(&self, key: &KeySwitchKey) -> Result<Vec<u8>, LattigoError> {
        let mut out = Vec::new();
        self.write_switch(&mut out, key)?;
        Ok(out)
    }

    /// Reads the key of an automorphism (`rlwe.GaloisKey`).
    ///
    /// # Errors
    /// As [`Exchange::read_relin_key`]; `RlweError::Ring` for a number that names no automorphism.
    pub fn read_galois_key(&self, bytes: &[u8]) -> Result<GaloisKey, LattigoError> {
        self.read_whole(bytes, Self::read_galois)
    }

    fn read_galois(&self, reader: &mut Reader<'_>) -> Result<GaloisKey, LattigoError> {
        let element = reader.u64()?;
        reader.require("the order of roots of a key", 2 * self.rlwe().degree())?;
        Ok(GaloisKey::from_parts(element, self.read_switch(reader)?)?)
    }

    /// The bytes of the key of an automorphism.
    ///
    /// # Errors
    /// As [`Exchange::write_relin_key`].
    pub fn write_galois_key(&self, key: &GaloisKey) -> Result<Vec<u8>, LattigoError> {
        let mut out = Vec::new();
        self.write_galois(&mut out, key)?;
        Ok(out)
    }

    fn write_galois(&self, out: &mut Vec<u8>, key: &GaloisKey) -> Result<(), LattigoError> {
        out.extend(key.element().to_le_bytes());
        push_count(out, 2 * self.rlwe().degree());
        self.write_switch(out, key.key())
    }

    /// Reads a set of evaluation keys (`rlwe.MemEvaluationKeySet`).
    ///
    /// # Errors
    /// As [`Exchange::read_galois_key`].
    pub fn read_eval_keys(&self, key: KeyId, bytes: &[u8]) -> Result<EvalKeys, LattigoError> {
        self.read_whole(bytes, |exchange, reader| {
            let mut keys = EvalKeys::new(exchange.rlwe(), key);
            if reader.flag("a flag before the relinearisation key")? {
                keys.set_relin(exchange.read_switch(reader)?)?;
            }
            if reader.flag("a flag before the Galois keys")? {
                for _ in 0..reader.u32()? {
                    let (name, key) = (reader.u64()?, exchange.read_galois(reader)?);
                    if name != key.element() {
                        let (found, expected) = (key.element(), name);
                        return Err(LattigoError::Size { what: "the element of a Galois key", found, expected });
                    }
                    keys.insert(key)?;
                }
            }
            Ok(keys)
        })
    }

    /// The bytes of a set of evaluation keys.
    ///
    /// # Errors
    /// As [`Exchange::write_relin_key`].
    pub fn write_eval_keys(&self, keys: &EvalKeys) -> Result<Vec<u8>, LattigoError> {
        let mut out = vec![u8::from(keys.relin_key().is_some())];
        if let Some(key) = keys.relin_key() {
            self.write_switch(&mut out, key)?;
        }
        out.push(1);
        // There are at most N keys.
        out.extend((keys.galois_keys().count() as u32).to_le_bytes());
        for key in keys.galois_keys() {
            out.extend(key.element().to_le_bytes());
            self.write_galois(&mut out, key)?;
        }
        Ok(out)
    }

    pub(crate) fn read_whole<T>(
        &self,
        bytes: &[u8],
        read: impl FnOnce(&Self, &mut Reader<'_>) -> Result<T, LattigoError>,
    ) -> Result<T, LattigoError> {
        let mut reader = Reader::new(bytes);
        let object = read(self, &mut reader)?;
        reader.finish()?;
        Ok(object)
    }
}
