//! Encrypted bits and small integers against plain arithmetic, and their noise against its formulas.

mod bootstraps;
mod integers;
mod noise;
mod objects;
mod support;
