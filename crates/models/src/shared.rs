//! What networks and forests have in common: keys, messages, memory, and what those need who take either.

use crate::error::ModelError;
use crate::keys::Keys;
use crate::plan::{Figures, Plan};
use crate::{Model, Server, forest};
use sudare_he::circuits::bootstrapping::BootstrapLiteral;
use sudare_he::ckks::Params;
use sudare_rlwe::keys::KeySwitchKey;

/// Bytes of encoded weights that a server keeps by itself.
const STORED: u64 = 1 << 30;

/// A plan: what client and server share.
pub trait Shared: Clone {
    /// Names the plan: parties that have one name have one plan.
    fn hash(&self) -> [u8; 32];
    /// Its parameters.
    fn params(&self) -> &Params;
    /// The bootstrapping set that it computes with, if it does.
    fn refresh(&self) -> Option<&BootstrapLiteral>;
    /// Ciphertexts of a request of so many examples, or of the answer.
    fn ciphertexts(&self, examples: usize, answer: bool) -> usize;
    /// Level of the relinearisation key, if there is one, and the Galois elements of automorphism keys, each with its level.
    fn key_levels(&self) -> (Option<usize>, &[(u64, usize)]);
    /// What its server keeps and works in.
    fn footprint(&self) -> Footprint;

    /// Bytes of all keys of a server in memory.
    fn key_bytes(&self) -> u64 {
        let (relin, galois) = self.key_levels();
        let levels = relin.into_iter().chain(galois.iter().map(|(_, level)| *level));
        let bytes = |level: usize| KeySwitchKey::bytes_at(self.params().rlwe().literal(), level) as u64;
        self.footprint().bootstrap_keys.saturating_add(levels.map(bytes).sum())
    }

    /// Whether a server keeps the weights encoded, if its owner does not choose: it keeps up to 1 GiB.
    fn stores(&self) -> bool {
        self.footprint().prepared[0] <= STORED
    }

    /// Bytes of memory that a server takes for a request of the batch that the model was compiled for, one ciphertext at a time;
    /// `stored`: with all weights encoded, else those of one layer or part.
    fn memory(&self, stored: bool) -> u64 {
        let Footprint { prepared: [all, largest], diagonals, working, .. } = self.footprint();
        [if stored { all } else { largest }, diagonals, working].into_iter().fold(self.key_bytes(), u64::saturating_add)
    }
}

/// Bytes that a server takes, but for keys of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Encoded weights: all, and the largest layer or part.
    pub prepared: [u64; 2],
    /// Diagonals of refreshes or tables.
    pub diagonals: u64,
    /// Keys of refreshes or tables.
    pub bootstrap_keys: u64,
    /// What it works in for a request, one ciphertext after the other; the weights as they are among them.
    pub working: u64,
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

    fn key_levels(&self) -> (Option<usize>, &[(u64, usize)]) {
        (self.figures().relin, &self.figures().galois)
    }

    fn footprint(&self) -> Footprint {
        let Figures { prepared, diagonals, bootstrap_keys, working, .. } = *self.figures();
        Footprint { prepared, diagonals, bootstrap_keys, working }
    }
}

/// What is of a network, or of a forest: a model, a plan, a client, a server.
#[derive(Clone, Debug)]
pub enum NetworkOrForest<N, F> {
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
            $crate::NetworkOrForest::Network($x) => $what,
            $crate::NetworkOrForest::Forest($x) => $what,
        }
    };
}

impl NetworkOrForest<Model, forest::Model> {
    /// Bytes by which a file shows whether it is one of a model.
    pub const STARTS: usize = 32;

    /// Whether a file that begins so is one of a model.
    pub fn is_one(start: &[u8]) -> bool {
        Model::is_one(start) || forest::Model::is_one(start)
    }

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

    /// Its plan.
    pub fn plan(&self) -> NetworkOrForest<Plan, forest::Plan> {
        match self {
            Self::Network(model) => NetworkOrForest::Network(model.plan().clone()),
            Self::Forest(model) => NetworkOrForest::Forest(model.plan().clone()),
        }
    }

    /// A server with a client's keys; `stored`: with all weights encoded once.
    ///
    /// # Errors
    /// As [`Server::new`], [`forest::Server::new`].
    pub fn server(&self, keys: Keys, stored: bool) -> Result<NetworkOrForest<Server, forest::Server>, ModelError> {
        Ok(match self {
            Self::Network(model) => NetworkOrForest::Network(Server::new(model, keys, stored)?),
            Self::Forest(model) => NetworkOrForest::Forest(forest::Server::new(model, keys, stored)?),
        })
    }
}

impl NetworkOrForest<Plan, forest::Plan> {
    /// Whether a text is that of a model's plan, and none of matrices.
    pub fn is_one(text: &str) -> bool {
        Plan::is_one(text) || forest::Plan::is_one(text)
    }

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
