//! FHEW: gates by the other two blind rotations, on the same encrypted bits as [`crate::ServerKey`]'s.
//!
//! - The accumulator of Ducas and Micciancio (2014/816), after Alperin-Sheriff and Peikert (2014/094): a
//!   key for each digit that an exponent can have, one external product a digit.
//! - Its automorphism form by Lee, Micciancio, Kim, Choi, Deryabin, Eom and Yoo (2022/198): one key for
//!   each coefficient of the secret, exponents brought about by automorphisms of the accumulator.

mod automorphism;
mod digits;
mod gates;
mod params;
mod seeded;
pub mod variance;

pub use automorphism::AutomorphismBootstrapKey;
pub use digits::DigitBootstrapKey;
pub use gates::FhewKey;
pub use params::{FhewLiteral, FhewMethod, FhewParams};
