//! The wire format: round trips, golden files, hostile bytes.

mod golden;
mod hostile;
mod mutation;
mod objects;
mod round_trip;
