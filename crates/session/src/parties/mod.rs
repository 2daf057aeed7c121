//! Sessions of several parties that hold a plan's key together: messages that all see, and a folder that each keeps.
//!
//! [`Room`] is what all see: the plan, the names of the parties, and the [`Messages`], each named after its
//! step and its sender, which appear whole and never change: files of a [`Folder`], or objects of a server. Whoever carries them needs no secret and learns none:
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

mod member;
mod messages;
mod opening;
mod request;
mod room;
mod seal;

pub use member::Member;
pub use messages::{Folder, Messages, too_long};
pub use opening::Opened;
pub use request::{Asked, Request};
pub use room::{MAX_NAME, Missing, Room, Step};
pub use seal::{SealedKey, Sealing};
