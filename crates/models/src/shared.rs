//! What plans of networks and of forests have in common: enough for keys and messages.

use crate::plan::Plan;
use sudare_he::circuits::bootstrapping::BootstrapLiteral;
use sudare_he::ckks::Params;

/// A plan: what client and server share.
pub trait Shared {
    /// Names the plan: parties that have one name have one plan.
    fn hash(&self) -> [u8; 32];
    /// Its parameters.
    fn params(&self) -> &Params;
    /// The bootstrapping set that it computes with, if it does.
    fn refresh(&self) -> Option<&BootstrapLiteral>;
    /// Ciphertexts of a request of so many examples, or of the answer.
    fn ciphertexts(&self, examples: usize, answer: bool) -> usize;
}

impl Shared for Plan {
    fn hash(&self) -> [u8; 32] {
        self.hash()
    }

    fn params(&self) -> &Params {
        self.params()
    }

    fn refresh(&self) -> Option<&BootstrapLiteral> {
        self.refresh()
    }

    fn ciphertexts(&self, examples: usize, answer: bool) -> usize {
        self.ciphertexts(examples, answer)
    }
}
