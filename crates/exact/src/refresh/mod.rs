//! Refresh of BFV and BGV slots by removal of the noise digit: the same integers modulo t, exactly, with new noise and levels.
//!
//! All arithmetic is BGV's, modulo t² after the first step, over one chain of primes:
//!
//! 1. **StC**, modulo t on the lowest levels: slots become coefficients.
//! 2. **The digit.** The ciphertext is switched to an ephemeral sparse secret of weight h and from q_0 to modulus t². Its phase is then
//!    t·x + v exactly, |v| ≤ h/2 what rounding leaves. A product with the sparse secret, encrypted modulo t², brings t·x + v
//!    under the owner's key, at the top level.
//! 3. **CtS**, modulo t²: every coefficient stands in a slot, real and imaginary halves in the two rows.
//! 4. **z − H(z)** with H of degree 2h + 1, H(t·x + v) ≡ v modulo t². What is left, t·x modulo t², *is* a ciphertext of x modulo t.
//!
//! Digit removal is Halevi and Shoup's (EUROCRYPT 2015) with polynomials of low degree (Geelen, Iliashenko, Kang, Vercauteren,
//! EUROCRYPT 2023; Ma, Huang, Wang and Wang, EUROCRYPT 2024), for a prime t that has slots in the ring itself, in the manner
//! of a bootstrap of CKKS with a sparse secret (Bossuat, Troncoso-Pastoriza and Hubaux, ePrint 2022/024). Every bound is that of the noise model,
//! worked out before anything is encrypted: a set has room for each step or is refused.
//!
//! | Subject | Where |
//! |---|---|
//! | sets | [`RefreshSet`], [`RefreshLiteral`], [`RefreshParams`] |
//! | keys, on the wire too | [`RefreshKeys`] |
//! | the refresh | [`Refresher`] |
//! | H | [`removal_polynomial`] |
//!
//! ```
//! use sudare_exact::bgv::{Decryptor, Encryptor};
//! use sudare_exact::refresh::{RefreshKeys, RefreshSet, Refresher};
//! use sudare_exact::{Encoder, Packing, Wrap};
//! use sudare_rlwe::keys::SecretKey;
//!
//! # fn main() -> Result<(), sudare_exact::ExactError> {
//! // A small ring is no secure one: `RefreshSet::X15.literal().build()?` is.
//! let set = RefreshSet::X15.literal().insecure(9)?.build()?;
//! let secret = SecretKey::generate(set.params())?;
//! let server = Refresher::new(RefreshKeys::generate(&secret, &set)?, None)?;
//!
//! let encoder = Encoder::new(set.params());
//! let x = encoder.encode_unsigned(&[3, 5, 65536], Packing::Slots, Wrap::Refuse)?;
//! let (level, _) = set.input();
//! let low = Encryptor::with_secret_key(set.params(), &secret)?.encrypt_at(&x, level)?;
//!
//! let fresh = server.refresh(&low)?;
//! let square = server.evaluator()?.mul_relin(&fresh, &fresh)?;
//! let found = Decryptor::new(set.params(), &secret)?.decrypt(&square)?;
//! assert_eq!(encoder.decode_unsigned(&found, Packing::Slots)?[..3], [9, 25, 1]);
//! # Ok(())
//! # }
//! ```

mod keys;
mod layout;
mod map;
mod params;
mod refresher;
mod removal;
mod set;
mod slots;
#[cfg(test)]
mod tests;
mod transform;
mod wire;

pub use keys::RefreshKeys;
pub use params::RefreshParams;
pub use refresher::{Refresher, Step};
pub use removal::removal_polynomial;
pub use set::{RefreshLiteral, RefreshSet};
