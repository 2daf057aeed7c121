//! Sessions: who encrypts, who computes, who decrypts.
//!
//! A [`Client`] holds the secret key; a [`PublicClient`] encrypts for it and can do no more; a
//! [`Server`] holds evaluation keys and has no place for a secret. All three agree on a
//! [`Plan`](crate::plan::Plan), and an [`EncryptedMatrix`] names the plan and the node of its
//! expression whose value it is, so that nothing can be mixed up unnoticed.
//!
//! A [`TableClient`] and a [`TableServer`] agree on a [`TableSpec`] instead: they find statistics of
//! a table's columns.
//!
//! A [`Context`] is for trying things out without a plan; its [`ContextServer`] computes.

mod client;
mod context;
mod context_server;
mod encrypted;
mod release;
mod server;
mod table;

pub use client::{Client, PublicClient};
pub use context::{Context, ContextMatrix, ContextOptions, ContextSpec, LEVELS_PER_PRODUCT};
pub use context_server::ContextServer;
pub use encrypted::EncryptedMatrix;
pub use server::Server;
pub use table::{EncryptedMoments, EncryptedTable, TableClient, TableMoments, TableServer, TableSpec};

/// Told how far long work has come: steps done, steps in all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Reports to nobody.
pub const QUIET: Progress<'static> = &|_, _| {};
