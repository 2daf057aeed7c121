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
    /// How many rows of a table score above each of some thresholds: of several it is a histogram.
    Count {
        /// The table's name.
        table: String,
        /// The encrypted questions.
        query: Digest,
        /// Both ends of the gap of each threshold: no score lies between them.
        gaps: Vec<(f64, f64)>,
    },
    /// Which rows of a table score above a threshold, with their payloads.
    Fetch {
        /// The table's name.
        table: String,
        /// The encrypted questions.
        query: Digest,
        /// Both ends of the threshold's gap.
        gap: (f64, f64),
    },
    /// The scores of all rows of a table.
    Scores {
        /// The table's name.
        table: String,
        /// The encrypted questions.
        query: Digest,
    },
    /// Takes a segment into a table, which the first one begins. The result says how many rows and segments there are.
    Append {
        /// The table's name.
        table: String,
        /// The segment, as `sudare_search::Parcel` has it.
        segment: Digest,
        /// The plan of the search, where the table is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Digest>,
        /// Evaluation keys, where the table is new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys: Option<Digest>,
    },
    /// Evaluation keys of several parties, from the messages of a room.
    Combine {
        /// The room's name.
        room: String,
    },
    /// What a model of the server says of encrypted inputs.
    Infer {
        /// The model's name, as `/v1/config` has it.
        model: String,
        /// Evaluation keys of its plan.
        keys: Digest,
        /// The encrypted inputs.
        inputs: Digest,
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
            Self::Count { table, query, .. } | Self::Fetch { table, query, .. } | Self::Scores { table, query } => {
                let operation = match self {
                    Self::Count { .. } => "count",
                    Self::Fetch { .. } => "fetch",
                    _ => "scores",
                };
                let event = event.with("operation", operation).with("table", table.as_str());
                event.with("operands", vec![query.to_string()])
            }
            Self::Append { table, segment, plan, keys } => {
                let event = event.with("operation", "append").with("table", table.as_str());
                named(named(event, "plan", plan), "keys", keys).with("operands", vec![segment.to_string()])
            }
            Self::Combine { room } => event.with("operation", "combine").with("room", room.as_str()),
            Self::Infer { model, keys, inputs } => {
                let event = event.with("operation", "infer").with("model", model.as_str());
                event.with("keys", keys.to_string()).with("operands", vec![inputs.to_string()])
            }
        }
    }

    /// The objects that it names, each once.
    pub(crate) fn objects(&self) -> BTreeSet<Digest> {
        let mut all = self.read_whole();
        match self {
            Self::Compute { plan, keys, .. } => all.extend(keys.iter().chain([plan])),
            Self::Search { keys, .. } => all.extend(keys),
            Self::Append { segment, plan, keys, .. } => all.extend(plan.iter().chain(keys).chain([segment])),
            Self::Infer { keys, .. } => all.extend([keys]),
            Self::Count { .. } | Self::Fetch { .. } | Self::Scores { .. } | Self::Combine { .. } => {}
        }
        all
    }

    /// The table that it names.
    pub(crate) fn table(&self) -> Option<&str> {
        match self {
            Self::Count { table, .. }
            | Self::Fetch { table, .. }
            | Self::Scores { table, .. }
            | Self::Append { table, .. } => Some(table),
            Self::Compute { .. } | Self::Search { .. } | Self::Combine { .. } | Self::Infer { .. } => None,
        }
    }

    /// The room that it names.
    pub(crate) fn room(&self) -> Option<&str> {
        match self {
            Self::Combine { room } => Some(room),
            Self::Compute { .. }
            | Self::Search { .. }
            | Self::Count { .. }
            | Self::Fetch { .. }
            | Self::Scores { .. }
            | Self::Append { .. }
            | Self::Infer { .. } => None,
        }
    }

    /// The objects that are in memory all at once while it runs, keys and plan aside, each once.
    pub(crate) fn read_whole(&self) -> BTreeSet<Digest> {
        match self {
            Self::Compute { operands, .. } => operands.iter().map(|o| o.object).collect(),
            Self::Search { query, .. }
            | Self::Count { query, .. }
            | Self::Fetch { query, .. }
            | Self::Scores { query, .. } => BTreeSet::from([*query]),
            Self::Infer { inputs, .. } => BTreeSet::from([*inputs]),
            // A segment is read piece by piece, and messages one after the other.
            Self::Append { .. } | Self::Combine { .. } => BTreeSet::new(),
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

/// An object as its tenant sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectView {
    /// Its name.
    pub digest: Digest,
    /// What it is, in words; "an unfinished upload" for what has arrived of one.
    pub kind: String,
    /// Its bytes on the server's disk.
    pub bytes: u64,
    /// When it was last sent to, read or named by a job, in milliseconds since 1970.
    pub used: u64,
}

/// A message of a room: the object that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The object.
    pub object: Digest,
    /// Its length; 0 where the client names it.
    #[serde(default)]
    pub bytes: u64,
}

/// A table as its tenant sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableView {
    /// Its name.
    pub name: String,
    /// Rows.
    pub rows: u64,
    /// Bytes of its tenant's share.
    pub bytes: u64,
    /// The text of its plan.
    pub plan: String,
    /// The list of its segments, as `sudare_search::Manifest` has it.
    pub manifest: serde_json::Value,
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
    /// Steps done: key switches of a plan, windows or sites of a search, segments of a table, ciphertexts of a model.
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
    /// Of a search, haplotypes that the tenant has asked about in the panel, with those of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

#[cfg(feature = "server")]
impl Record {
    /// The panel of a search, and the haplotypes that the tenant has asked about in it up to this one.
    pub(crate) fn asked_of(&self) -> Option<(&str, u64)> {
        match &self.request {
            Request::Search { panel, .. } => Some((panel, self.asked?)),
            _ => None,
        }
    }
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
