//! Sessions: who encrypts, who computes, who decrypts.
//!
//! A [`Client`] holds the secret key; a [`PublicClient`] encrypts for it and can do no more; a
//! [`Server`] holds evaluation keys and has no place for a secret. All three agree on a
//! [`Plan`](sudare_plan::Plan), of whatever kind, and an [`Encrypted`] value names the plan and the node of its
//! expression whose value it is, so that nothing can be mixed up unnoticed.
//!
//! A [`Context`] is for trying things out without a plan: its [`Server`] has the same operations on the same type of
//! values, and does whatever is asked for within a depth.
//!
//! An [`IntegerContext`] is the same for arrays of integers, exact to any depth, and a [`SmallContext`] for arrays of bits and of
//! integers of up to 8 bits, with any table of their values.
//!
//! Where [`parties`] hold the key together there is no client: each has a part of the key and a folder of its own, and a folder
//! that all of them see carries their messages.
//!
//! A product of integers, which takes no keys:
//!
//! ```
//! use sudare_expr::{Expr, InputSpec, Matrix};
//! use sudare_session::QUIET;
//! use sudare_plan::{CostModel, Goal, Planner};
//! use sudare_session::{Client, Server};
//!
//! # fn main() -> Result<(), sudare_methods::MatrixError> {
//! let expr = Expr::product(InputSpec::integers("A", (3, 5), 1000), InputSpec::integers("B", (5, 2), 50))?;
//! let plan = Planner::new(CostModel::default()).plan(&Goal::new(expr, 0.0))?;
//! let a = Matrix::<i128>::from_fn(3, 5, |i, t| (i * 400) as i128 - (t * 200) as i128)?;
//! let b = Matrix::<i128>::from_fn(5, 2, |t, j| 50 - (10 * t + j) as i128)?;
//!
//! let client = Client::new(&plan, 1)?;
//! let (x, y) = (client.encrypt_integers("A", &a, QUIET)?, client.encrypt_integers("B", &b, QUIET)?);
//! let product = Server::keyless(&plan, 1)?.matmul(&x, &y)?;
//! assert_eq!(client.decrypt_integers(&product)?, a.matmul(&b)?);
//! # Ok(())
//! # }
//! ```
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
mod integers;
mod keys;
mod layout;
pub mod machine;
mod moments;
mod operations;
mod part;
pub mod parties;
mod release;
mod server;
mod small;
mod stored;
mod unplanned;

pub use client::{Client, PublicClient};
pub use context::{Context, ContextOptions, ContextSpec, LEVELS_PER_PRODUCT};
pub use encrypted::{Announced, Encrypted, application};
pub use integers::IntegerContext;
pub use keys::ServerKeys;
pub use moments::Moments;
pub use operations::{function, minimum};
pub use part::{Form, Held, Layout, Part};
pub use server::Server;
pub use small::{SmallArray, SmallContext, SmallServer, SmallSet};
pub use stored::{Multiplied, OutOfCore, Stored};

/// Told how far long work has come: steps done, steps in all.
pub type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Reports to nobody.
pub const QUIET: Progress<'static> = &|_, _| {};
