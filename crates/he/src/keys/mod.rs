//! Keys. A [`SecretKey`] stays with its owner; [`EvalKeys`] is what a server gets and holds no
//! secret.

mod eval;
mod generator;
pub(crate) mod noise_poly;
mod public;
mod secret;
mod switch;

pub use eval::EvalKeys;
pub use generator::KeyGenerator;
pub use public::PublicKey;
pub use secret::SecretKey;
pub use switch::{GaloisKey, KeySwitchKey};

use serde::{Deserialize, Serialize};
use std::fmt;
use sudare_ring::random::Purpose;

/// Fresh ciphertexts of CKKS, BFV and BGV.
pub(crate) const ENCRYPTION: Purpose = Purpose { masks: "sudare mask", errors: "sudare encryption" };
/// Public and evaluation keys.
const PUBLISHED_KEY: Purpose = Purpose { masks: "sudare mask", errors: "sudare error" };

/// Names a secret key on everything made from it; random, and says nothing of the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyId(pub [u8; 16]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
