//! The wire format: round trips, golden files, hostile bytes.

#[path = "../../../../rlwe/tests/support/edits.rs"]
mod edits;
mod exact;
mod fields;
mod golden;
mod hostile;
mod mutation;
mod objects;
mod round_trip;
