//! Sessions of several parties that hold a plan's key together: a folder that all see, and one that each keeps.
//!
//! [`Room`] is the shared folder. It has the plan, the names of the parties, and a file for each message, which is named after its
//! step and its sender, appears whole and is never changed. Whoever carries the folder about needs no secret and learns none:
//! what is for one receiver's eyes is encrypted to it (HPKE). [`Member`] is a party with the folder that it keeps: its secret, its ledger of answers, the key
//! that others encrypt to. It can be killed at any time and goes on from there.
//!
//! ```text
//! init ──► join (each) ──► round (each, until nothing is missing) ──► keys ──► encrypt, compute as with any plan
//!                                          result ──► share (as many as decrypt) ──► open (each receiver)
//! ```
//!
//! Decryption shares are what the receivers that a request names can read, each under its own key: so a result is for them alone, and
//! one answer serves all of them.

mod folder;
mod member;
mod request;
mod seal;

pub use folder::{MAX_NAME, Missing, Room, Step};
pub use member::Member;
pub use request::Request;
pub use seal::{SealedKey, Sealing};
