//! Stores and files of keys, whole, damaged and killed.

mod atomic;
mod keys;
mod ledger;
mod store;
mod support;
