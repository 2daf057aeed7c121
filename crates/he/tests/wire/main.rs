//! The wire format: round trips, golden files, hostile bytes.

mod exact;
mod fields;
mod golden;
mod hostile;
mod mutation;
mod objects;
mod round_trip;
mod tfhe;
