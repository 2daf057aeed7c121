//! Keys of several parties: what they compute, what they hide, what they refuse.

mod attacks;
mod decryption;
mod evaluation;
mod messages;
mod noise;
mod refresh;
mod world;
