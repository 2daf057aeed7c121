//! The `sudare` command as a person runs it.

#[cfg(unix)]
mod administration;
mod common;
#[cfg(unix)]
mod endings;
mod flow;
mod genome;
mod index;
mod kinds;
mod manners;
mod model;
mod party;
mod refusals;
#[cfg(unix)]
mod serve;
mod stored;
