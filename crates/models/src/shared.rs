//! What networks and forests have in common: enough for keys and messages, and for those who take either.

use crate::error::ModelError;
use crate::keys::Keys;
use crate::plan::Plan;
use crate::{Model, Server, forest};
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

/// What is of a network, or of a forest: a model, a plan, a client, a server.
#[derive(Clone, Debug)]
pub enum Of<N, F> {
    /// Of a network.
    Network(N),
    /// Of a forest.
    Forest(F),
}

/// The same expression of what is of a network or of a forest: `either!(of, x => x.plan())`.
#[macro_export]
macro_rules! either {
    ($of:expr, $x:ident => $what:expr) => {
        match $of {
            $crate::Of::Network($x) => $what,
            $crate::Of::Forest($x) => $what,
        }
    };
}

impl Of<Model, forest::Model> {
    /// A model of its file's bytes.
    ///
    /// # Errors
    /// As [`Model::from_bytes`], [`forest::Model::from_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        Ok(match forest::Model::is_one(bytes) {
            true => Self::Forest(forest::Model::from_bytes(bytes)?),
            false => Self::Network(Model::from_bytes(bytes)?),
        })
    }

    /// A server with a client's keys; `stored`: with all weights encoded once.
    ///
    /// # Errors
    /// As [`Server::new`], [`forest::Server::new`].
    pub fn server(&self, keys: Keys, stored: bool) -> Result<Of<Server, forest::Server>, ModelError> {
        Ok(match self {
            Self::Network(model) => Of::Network(Server::new(model, keys, stored)?),
            Self::Forest(model) => Of::Forest(forest::Server::new(model, keys, stored)?),
        })
    }
}

impl Of<Plan, forest::Plan> {
    /// A plan of its text.
    ///
    /// # Errors
    /// As [`Plan::from_json`], [`forest::Plan::from_json`].
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        Ok(match forest::Plan::is_one(text) {
            true => Self::Forest(forest::Plan::from_json(text)?),
            false => Self::Network(Plan::from_json(text)?),
        })
    }
}
