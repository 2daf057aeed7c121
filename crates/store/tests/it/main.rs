//! Stores and files of keys, whole, damaged and killed.

mod keys;
mod store;
mod support;
