//! CKKS and integers in it: results, noise, bootstrapping, formats and claims.

mod bootstrapping;
mod ckks;
mod discrete;
mod estimates;
mod expansion;
mod multiparty;
mod noise;
mod release;
mod simulated;
mod trace;
mod wire;
mod world;
