//! BFV and BGV against plain integer arithmetic, at small degrees that claim no security.

mod circuits;
mod noise;
mod operations;
mod refresh;
mod refusals;
mod simulated;
mod wire;
mod world;
