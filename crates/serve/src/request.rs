//! What a job is: asked for by a client, kept on the disk, shown to the client.

use crate::digest::Digest;
#[cfg(feature = "server")]
use crate::events::Event;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
#[cfg(feature = "server")]
use std::collections::BTreeSet;
use sudare_expr::Operation;

/// What is asked for. All objects are the tenant's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// An operation of a plan on its values: products, circuits, statistics, exact integers.
    Compute {
        /// The plan's file.
        plan: Digest,
        /// Evaluation keys; an exact product takes none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys: Option<Digest>,
        /// The operation; without one the whole expression is computed from its inputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<Operation>,
        /// What it is done to, in its order; inputs come in any.
        operands: Vec<Operand>,
    },
    /// A private search in a panel of the server.
    Search {
        /// The panel's name, as `/v1/config` has it.
        panel: String,
        /// Evaluation keys, where the protocol has any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys: Option<Digest>,
        /// The encrypted query.
        query: Digest,
        /// Products that the work for each start is padded to, in the range that the panel's owner set; the least of it
        /// if none is given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pad: Option<u64>,
    },
}

#[cfg(feature = "server")]
impl Request {
    /// An event with what is asked for: kinds and names of objects, and no number that a client wrote.
    pub(crate) fn audited(&self, event: Event) -> Event {
        let named = |event: Event, name, digest: &Option<Digest>| match digest {
            Some(digest) => event.with(name, digest.to_string()),
            None => event,
        };
        match self {
            Self::Compute { plan, keys, operation, operands } => {
                let event = event.with("operation", operation.as_ref().map_or("run", Operation::name));
                let event = named(event.with("plan", plan.to_string()), "keys", keys);
                event.with("operands", operands.iter().map(|o| o.object.to_string()).collect::<Vec<_>>())
            }
            Self::Search { panel, keys, query, .. } => {
                let event = event.with("operation", "search").with("panel", panel.as_str());
                named(event, "keys", keys).with("operands", vec![query.to_string()])
            }
        }
    }

    /// The objects that it names, each once.
    pub(crate) fn objects(&self) -> BTreeSet<Digest> {
        let mut all = self.read_whole();
        match self {
            Self::Compute { plan, keys, .. } => all.extend(keys.iter().chain([plan])),
            Self::Search { keys, .. } => all.extend(keys),
        }
        all
    }

    /// The objects that are in memory all at once while it runs, keys and plan aside, each once.
    pub(crate) fn read_whole(&self) -> BTreeSet<Digest> {
        match self {
            Self::Compute { operands, .. } => operands.iter().map(|o| o.object).collect(),
            Self::Search { query, .. } => BTreeSet::from([*query]),
        }
    }
}

/// A value of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operand {
    /// The encrypted value; or of a plain input its elements row by row, as little-endian doubles, or 128-bit integers
    /// in two's complement for a plan of integers.
    pub object: Digest,
    /// The name of an input that the plan gives to the server as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<String>,
}

impl Operand {
    /// An encrypted value.
    pub fn encrypted(object: Digest) -> Self {
        Self { object, plain: None }
    }
}

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum State {
    /// It waits.
    Queued,
    /// It runs.
    Running,
    /// It has a result.
    Done {
        /// The result, an object.
        result: Digest,
        /// Its length.
        bytes: u64,
        /// Whole seconds that it ran, rounded up: what a search takes longer tells of its panel.
        seconds: u64,
    },
    /// It was refused, and would be again.
    Failed {
        /// Why.
        problem: Problem,
    },
    /// It was cancelled.
    Cancelled,
}

impl State {
    /// Whether it stays as it is.
    pub fn ended(&self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    #[cfg(feature = "server")]
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A job as its tenant sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Its name.
    pub id: String,
    /// When it was accepted, in milliseconds since 1970.
    pub created: u64,
    /// Its state.
    #[serde(flatten)]
    pub state: State,
    /// Steps done: key switches of a plan, windows or sites of a search.
    pub done: u64,
    /// Steps in all; 0 where that is not known yet.
    pub steps: u64,
}

/// A job on the disk.
#[cfg(feature = "server")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub id: String,
    pub created: u64,
    /// Runs that were begun.
    pub attempts: u32,
    pub request: Request,
    pub state: State,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_strictly() {
        let name = Digest::of(b"x");
        let text = format!(
            r#"{{"kind":"compute","plan":"{name}","operation":{{"op":"scale","by":2.5}},"operands":[{{"object":"{name}"}}]}}"#
        );
        let read: Request = serde_json::from_str(&text).unwrap();
        let Request::Compute { operation, keys: None, .. } = &read else { panic!("{read:?}") };
        assert_eq!(*operation, Some(Operation::Scale { by: 2.5 }));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        for wrong in [
            text.replace("compute", "delete"),
            text.replace("\"by\":2.5", "\"by\":\"x\""),
            text.replace("\"by\":2.5", "\"by\":2.5,\"too\":1"),
            text.replace("{\"kind\"", "{\"secret\":1,\"kind\""),
            text.replace(&name.to_string(), "../../etc/passwd"),
        ] {
            assert!(serde_json::from_str::<Request>(&wrong).is_err(), "{wrong}");
        }
    }
}
