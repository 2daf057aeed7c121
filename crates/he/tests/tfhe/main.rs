//! Encrypted bits and small integers against plain arithmetic, and their noise against its formulas.

mod bootstraps;
mod circuit_bootstrap;
mod derive;
mod failure;
mod fhew;
mod integers;
mod leveled;
mod measure;
mod noise;
mod objects;

use measure::support;
