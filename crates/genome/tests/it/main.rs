//! Panels, and the three protocols against the plain search.

mod common;
mod golden;
mod lookup;
mod panel;
mod session;
mod simd;
mod trie;
