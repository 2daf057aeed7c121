//! CKKS, BFV and BGV: results, noise, bootstrapping, formats and claims.

mod bootstrapping;
mod ckks;
mod discrete;
mod estimates;
mod exact;
mod expansion;
mod multiparty;
mod noise;
mod refresh;
mod release;
mod simulated;
mod trace;
mod wire;
mod world;
