//! Private search in haplotype panels.
//!
//! A client asks a server for the longest match of its haplotype in the server's panel. The server learns
//! neither the haplotype nor where in a list of candidates it starts; the client learns the length of the
//! match and nothing else of the panel. Messages are bytes; sockets are the caller's.
//!
//! | Subject | Where |
//! |---|---|
//! | panels: from VCF and BCF to a PBWT in a file, and their public description | [`panel`], [`vcf`] |
//! | the same search in the clear | [`search`] |
//! | what a client asks, and how it is read from its own file | [`Question`], [`Reading`] |
//! | the open parts of messages, and what a client keeps | [`message`] |
//! | leveled TFHE over the trie of a window | [`trie`] |
//! | encrypted indices, table lookups, bootstraps | [`lookup`] |
//! | BGV over slots, many queries at once | [`simd`] |
//! | a client and a server of any protocol | [`Client`], [`Server`] |
//! | which protocol, and why | [`planner`] |
//! | tables and Beacon v2 | [`report`] |
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod ahead;
mod answer_bits;
mod builder;
mod bytes;
mod client;
pub mod error;
pub mod lookup;
pub mod message;
pub mod panel;
pub mod planner;
mod protocol;
mod question;
mod region;
pub mod report;
pub mod search;
mod server;
pub mod simd;
pub mod trie;
pub mod vcf;

pub use client::{Client, Decoys, KeyPlan};
pub use error::{GenomeError, RecordProblem};
pub use message::{Answer, Asked, Pending, QueryId};
pub use panel::{Panel, PanelHash, Policy, Site, Sites};
pub use protocol::Protocol;
pub use question::{Question, Reading, Shape};
pub use region::Region;
pub use server::{Counters, Options, Padding, Server};
