//! Packed operands against plain arithmetic.

mod packing;
