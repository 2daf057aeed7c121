//! Protocol "trie".

pub mod dag;
