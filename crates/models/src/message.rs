//! Requests and answers as they travel: bundles of ciphertexts with a header that says to what they belong.

use crate::error::ModelError;
use crate::shared::Shared;
use serde::{Deserialize, Serialize};
use sudare_he::ckks::Ciphertext;
use sudare_rlwe::wire::{Bundle, Wire};

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    plan: String,
    answer: bool,
    examples: usize,
}

/// Ciphertexts of some examples, of one plan.
#[derive(Clone, Debug)]
struct Message {
    bundle: Bundle<Ciphertext>,
    examples: usize,
}

fn name(plan: &impl Shared) -> String {
    blake3::Hash::from_bytes(plan.hash()).to_hex().to_string()
}

impl Message {
    fn new(
        plan: &impl Shared,
        answer: bool,
        examples: usize,
        ciphertexts: Vec<Ciphertext>,
    ) -> Result<Self, ModelError> {
        let mixed = ModelError::Mixed { what: "an empty message" };
        let about = About { plan: name(plan), answer, examples };
        let (Some(key), Ok(header)) = (ciphertexts.first().map(Ciphertext::key), serde_json::to_vec(&about)) else {
            return Err(mixed);
        };
        Ok(Self { bundle: Bundle::new(plan.params().rlwe(), key, header, ciphertexts)?, examples })
    }

    fn read(plan: &impl Shared, bytes: &[u8], answer: bool) -> Result<Self, ModelError> {
        let what = if answer { "the answer" } else { "the request" };
        let bundle = Bundle::<Ciphertext>::from_bytes(plan.params().rlwe(), bytes)?;
        let about: Option<About> = serde_json::from_slice(bundle.application()).ok();
        let sound = |about: &About| {
            about.plan == name(plan)
                && about.answer == answer
                && about.examples > 0
                && plan.ciphertexts(about.examples, answer) == bundle.ciphertexts().len()
        };
        match about.filter(sound) {
            Some(about) => Ok(Self { examples: about.examples, bundle }),
            None => Err(ModelError::Mixed { what }),
        }
    }
}

macro_rules! message {
    ($(#[$doc:meta])* $name:ident, $answer:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Message);

        impl $name {
            pub(crate) fn new(plan: &impl Shared, examples: usize, ciphertexts: Vec<Ciphertext>) -> Result<Self, ModelError> {
                Ok(Self(Message::new(plan, $answer, examples, ciphertexts)?))
            }

            pub(crate) fn ciphertexts(&self) -> &[Ciphertext] {
                self.0.bundle.ciphertexts()
            }

            pub(crate) fn is_of(&self, plan: &impl Shared) -> bool {
                let of: Option<About> = serde_json::from_slice(self.0.bundle.application()).ok();
                of.is_some_and(|about| about.plan == name(plan))
            }

            /// Examples that it is about.
            pub fn examples(&self) -> usize {
                self.0.examples
            }

            /// Its bytes.
            ///
            /// # Errors
            /// [`ModelError::Wire`].
            pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
                Ok(self.0.bundle.to_bytes()?)
            }

            /// One of its bytes.
            ///
            /// # Errors
            /// [`ModelError::Wire`] for damaged bytes or other parameters; [`ModelError::Mixed`] for those of another plan.
            pub fn from_bytes(plan: &impl Shared, bytes: &[u8]) -> Result<Self, ModelError> {
                Ok(Self(Message::read(plan, bytes, $answer)?))
            }
        }
    };
}

message!(
    /// Encrypted examples.
    Request,
    false
);
message!(
    /// Encrypted answers.
    Answer,
    true
);
