//! Sessions: who encrypts, who computes, who decrypts.
//!
//! A [`Client`] holds the secret key; a [`PublicClient`] encrypts for it and can do no more; a
//! [`Server`] holds evaluation keys and has no place for a secret. All three agree on a
//! [`Plan`](sudare_plan::Plan), of whatever kind, and an [`Encrypted`] value names the plan and the node of its
//! expression whose value it is, so that nothing can be mixed up unnoticed.
//!
//! A [`Context`] is for trying things out without a plan: its [`Server`] has the same operations on the same type of
//! values, and does whatever is asked for within a depth.

#![forbid(unsafe_code)]

pub mod blocked;
mod client;
mod context;
#[cfg(feature = "gpu")]
pub mod device;
#[cfg(not(feature = "gpu"))]
#[path = "no_device.rs"]
mod device;
mod encrypted;
mod free;
mod keys;
mod layout;
pub mod machine;
mod moments;
mod operations;
mod part;
mod release;
mod server;
mod stored;

pub use client::{Client, PublicClient};
pub use context::{Context, ContextOptions, ContextSpec, LEVELS_PER_PRODUCT};
pub use encrypted::{Announced, Encrypted};
pub use keys::ServerKeys;
pub use moments::Moments;
pub use operations::function;
pub use part::{Form, Held, Layout, Part};
pub use server::Server;
pub use stored::{Multiplied, OutOfCore, Stored};

/// Told how far long work has come: steps done, steps in all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Reports to nobody.
pub const QUIET: Progress<'static> = &|_, _| {};
