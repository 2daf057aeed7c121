//! Encrypted search among vectors: which rows of a table are like this one? The server that holds the table and answers
//! knows neither rows nor question nor matches.
//!
//! | Subject | Where |
//! |---|---|
//! | what is wanted, what it takes, and how far answers can be wrong | [`plan`] |
//! | the polynomials that turn a score into 0 or 1 | [`threshold`] |
//! | the compact mode: a small ring, and a step on a circle | `compact` |
//! | numbers that come back with a match, and their type | `payload` |
//! | where rows and payloads stand in ciphertexts | `layout` |
//! | what the server computes with | `keys` |
//! | the owner of rows and questions: stores, asks, reads answers | [`client`] |
//! | payloads of any number of matches out of sums of cells | `peel` |
//! | files: segments that appear whole, and their list | `files` |
//! | a segment on its way to a server | [`parcel`] |
//! | who answers | [`server`] |
//! | scores against a table that the server has in the clear | [`plain`] |
//!
//! A score is the inner product of two normalised vectors. Ciphertext j of a segment has coordinate j of its rows, two rows
//! in a complex slot; the question is one ciphertext, which the server expands to one of each coordinate. So a segment's
//! scores are d products in one sum of three parts, with one relinearisation and no rotation. A composite polynomial makes
//! them indicators, which are added up (count), or multiplied with payloads first (fetch). In compact mode scores come from a small
//! ring at a tenth of the bytes, and half a bootstrap makes them indicators.
#![forbid(unsafe_code)]

pub mod client;
mod compact;
mod error;
mod files;
mod keys;
mod layout;
mod message;
pub mod parcel;
mod payload;
mod peel;
pub mod plain;
pub mod plan;
pub mod server;
pub mod threshold;

pub use client::{Client, Hit, Storing};
pub use error::SearchError;
pub use files::{Manifest, SegmentRecord};
pub use keys::Keys;
pub use message::{Answer, Asked, Query};
pub use parcel::Parcel;
pub use payload::{Dtype, Payload};
pub use plan::{Goal, Index, Mode};
pub use server::{Database, Server};
pub use threshold::{Gap, Threshold};
