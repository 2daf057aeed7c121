//! Exchange of CKKS, BFV and BGV with [Lattigo](https://github.com/tuneinsight/lattigo) v6 in its own binary format: parameters,
//! keys, plaintexts and ciphertexts, both ways.
//!
//! | Subject | Where |
//! |---|---|
//! | parameters as JSON | [`params`] |
//! | keys of all schemes | methods of [`Exchange`] |
//! | plaintexts and ciphertexts of CKKS | methods of `Exchange<ckks::Params>` |
//! | plaintexts and ciphertexts of BFV and BGV | methods of `Exchange<IntegerParams>` |
//! | where values stand, and by which roots | `layout`, `roots` |
//!
//! Note 0046 of `docs/design` has the format and what is equal in both libraries. What Lattigo writes says nothing of bounds:
//! whoever reads a ciphertext states them ([`Claim`], [`Noise`]).
//!
//! ```
//! use sudare_he::ckks::{Decryptor, Encoder, Encryptor, ParamsLiteral};
//! use sudare_lattigo::{Claim, Exchange, Noise, params};
//! use sudare_rlwe::KeyId;
//! use sudare_rlwe::keys::SecretKey;
//! use sudare_rlwe::security::Security;
//!
//! # fn main() -> Result<(), sudare_lattigo::LattigoError> {
//! let ours = ParamsLiteral::with_depth(1, 40, Security::Bits128)?.build()?;
//! // Lattigo reads this by `json.Unmarshal` into a `ckks.Parameters`; what it writes is read here.
//! let json = params::ckks_to_json(&ours)?;
//! let theirs = Exchange::new(params::ckks_from_json(json.as_bytes(), Security::Bits128)?)?;
//!
//! let secret = SecretKey::generate(theirs.params())?;
//! let encoder = Encoder::new(theirs.params());
//! let x = Encryptor::with_secret_key(&secret)?.encrypt(&encoder.encode(&[0.5, -0.25], 1.0)?)?;
//! let bytes = theirs.write_ciphertext(&x, theirs.all_slots())?;
//!
//! let claim = Claim { bound: 1.0, noise: Noise::FreshSecretKey };
//! let (y, packing) = theirs.read_ciphertext(secret.id(), &bytes, claim)?;
//! assert_eq!(packing, theirs.all_slots());
//! let y = encoder.decode(&Decryptor::new(&secret).decrypt(&y)?)?;
//! assert!((y[0] - 0.5).abs() < 1e-6 && (y[1] + 0.25).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod bytes;
mod ckks;
mod error;
mod exact;
mod keys;
mod layout;
mod metadata;
pub mod params;
mod roots;

pub use error::LattigoError;
pub use metadata::Packing;

use bytes::{Reader, push_count};
use error::unsupported;
use layout::Layout;
use layout::Residues::Plain;
use metadata::Metadata;
use sudare_exact::IntegerParams;
use sudare_he::ckks as he;
use sudare_ring::prime::{is_prime, primitive_root};
use sudare_ring::random::SIGMA;
use sudare_ring::{Eval, Modulus, Poly, RingError};
use sudare_rlwe::Params;

/// What is said of the noise of a ciphertext from outside. It is a promise of whoever says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Lattigo encrypted it under the secret key, and nothing was computed with it.
    FreshSecretKey,
    /// Lattigo encrypted it under a public key, and nothing was computed with it.
    FreshPublicKey,
    /// A bound on its canonical norm, as a ciphertext here has it: of the error in integer units for CKKS, of v in
    /// (Q/t)·x + v for BFV and BGV.
    Bound(f64),
}

/// What is said of a CKKS ciphertext from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// Bound on the absolute values of its slots; of a message in coefficients their Euclidean norm.
    pub bound: f64,
    /// Its noise.
    pub noise: Noise,
}

/// Standard deviation of Lattigo's errors.
pub(crate) const THEIR_SIGMA: f64 = 3.2;

/// How much larger their errors are than ours.
pub(crate) const ERRORS: f64 = THEIR_SIGMA / SIGMA;

mod sealed {
    /// Only sets of these schemes are exchanged.
    pub trait Sealed {}
}

/// A scheme's parameters.
pub trait Set: sealed::Sealed + Clone {
    /// The RLWE parameters: what keys belong to.
    fn rlwe(&self) -> &Params;

    /// The automorphism X ↦ X^k that everything goes through, so that slots are in one order.
    #[doc(hidden)]
    fn automorphism(&self) -> Result<u64, LattigoError>;
}

impl sealed::Sealed for he::Params {}
impl Set for he::Params {
    fn rlwe(&self) -> &Params {
        he::Params::rlwe(self)
    }

    /// Slots are values at the same complex roots.
    fn automorphism(&self) -> Result<u64, LattigoError> {
        Ok(1)
    }
}

impl sealed::Sealed for IntegerParams {}
impl Set for IntegerParams {
    fn rlwe(&self) -> &Params {
        IntegerParams::rlwe(self)
    }

    fn automorphism(&self) -> Result<u64, LattigoError> {
        /// Least degree of a ring modulo t there.
        const LEAST: u64 = 16;
        let t = self.t();
        if !is_prime(t) || t % LEAST != 1 {
            return Err(unsupported(
                "a plaintext modulus",
                format!("Lattigo takes primes ≡ 1 modulo {LEAST}, and not {t}; take such a prime"),
            ));
        }
        if !self.has_slots() {
            return Ok(1);
        }
        let (t, n) = (Modulus::new(t)?, self.slots());
        let wrong = RingError::NotNttFriendly { value: t.value(), order: 2 * n as u64 };
        Ok(roots::exponent(&t, n, primitive_root(&t, n).ok_or(wrong)?, roots::theirs(&t, n)?)?)
    }
}

/// Reads and writes objects of one parameter set as Lattigo has them.
///
/// For BFV and BGV everything goes through one automorphism of the ring, since roots of unity modulo t differ (`layout`): a secret
/// key that is exchanged for CKKS and for BFV is then two keys here.
#[derive(Debug)]
pub struct Exchange<P> {
    params: P,
    layout: Layout,
}

impl<P: Set> Exchange<P> {
    /// Finds Lattigo's roots of unity for a parameter set: some milliseconds for each prime.
    ///
    /// # Errors
    /// [`LattigoError::Unsupported`] for a plaintext modulus that Lattigo does not take.
    pub fn new(params: P) -> Result<Self, LattigoError> {
        let layout = Layout::new(params.rlwe(), params.automorphism()?)?;
        Ok(Self { params, layout })
    }

    /// The parameters.
    pub fn params(&self) -> &P {
        &self.params
    }

    fn rlwe(&self) -> &Params {
        self.params.rlwe()
    }

    /// Metadata and `parts` polynomials at most, over the primes of one level.
    fn read_element(&self, bytes: &[u8], most: usize) -> Result<(Metadata, Vec<Poly<Eval>>, usize), LattigoError> {
        let (mut reader, params) = (Reader::new(bytes), self.rlwe());
        let metadata = Metadata::read(&mut reader)?;
        let parts = reader.at_most("parts of an element", most)?;
        let level = reader.clone().at_most("primes of an element", params.q().len())? - 1;
        let polys = (0..parts).map(|_| self.layout.read(&mut reader, params.q_at(level), Plain));
        let polys = polys.collect::<Result<Vec<_>, _>>()?;
        reader.finish()?;
        Ok((metadata, polys, level))
    }

    fn write_element(&self, metadata: &Metadata, polys: &[&Poly<Eval>]) -> Result<Vec<u8>, LattigoError> {
        let mut out = Vec::new();
        metadata.write(&mut out)?;
        push_count(&mut out, polys.len());
        polys.iter().for_each(|poly| self.layout.write(&mut out, poly, Plain));
        Ok(out)
    }
}

/// A bound that the caller states.
fn stated(what: &'static str, found: f64) -> Result<f64, LattigoError> {
    if found.is_finite() && found >= 0.0 { Ok(found) } else { Err(LattigoError::Claim { what, found }) }
}

/// Refuses a number of parts that a fresh ciphertext does not have.
fn require_two(noise: Noise, parts: usize) -> Result<(), LattigoError> {
    match noise {
        Noise::Bound(_) => Ok(()),
        Noise::FreshSecretKey | Noise::FreshPublicKey if parts == 2 => Ok(()),
        Noise::FreshSecretKey | Noise::FreshPublicKey => Err(unsupported(
            "a fresh ciphertext",
            format!("it has two parts, and this one has {parts}; give a bound on its noise"),
        )),
    }
}
