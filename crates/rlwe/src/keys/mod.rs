//! Keys. A [`SecretKey`] stays with its owner; a server asks a [`KeySource`] for evaluation keys,
//! which hold no secret: [`EvalKeys`] has them in memory.

mod generator;
mod public;
mod secret;
mod source;
mod switch;

pub use generator::KeyGenerator;
pub(crate) use generator::inverse_element;
pub use public::PublicKey;
pub use secret::SecretKey;
pub use source::{EvalKeys, KeySource};
pub use switch::{GaloisKey, KeySwitchKey};

use sudare_ring::random::Purpose;

/// Public and evaluation keys.
const PUBLISHED_KEY: Purpose = Purpose { masks: "sudare mask", errors: "sudare error" };
