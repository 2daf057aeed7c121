//! Products by every method, and statistics of columns, against plain arithmetic.

mod coefficient;
mod common;
mod grid;
mod module;
mod slots;
mod statistics;
mod tiles;
