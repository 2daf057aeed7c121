//! What is done with batches: the operations of `sudare_ring::ops` that the GPU has, bit by bit alike.
//!
//! | File | Operations |
//! |---|---|
//! | [`elementwise`] | sums, products, products with constants, tensor products: one launch each, for any number of items |
//! | [`transform`] | coefficients to values and back: two launches |
//! | [`permute`] | automorphisms in both forms: one launch |
//! | [`divide`] | [`Division`](crate::Division): rescale, mod-down: three launches |
//! | [`gadget`] | [`Gadget`](crate::Gadget): key switches, products that are relinearised and divided, rotations: five launches |
//! | [`rate`] | [`Rate`](rate::Rate): what the device does at best, for the lab |
//!
//! Every operand is checked before the first launch. Results are on the device when the queue comes to them: nothing
//! waits but [`Batch::to_host`](crate::Batch::to_host) and [`Device::synchronize`](crate::Device::synchronize).

pub mod divide;
pub mod elementwise;
pub mod gadget;
pub mod permute;
pub mod rate;
pub mod transform;

use crate::device::Device;
use crate::error::{CudaError, Result};
use sudare_ring::RnsBasis;

/// Layers of a transform that columns do; the rest are the parts'. Twin of `COLUMN_LAYERS`.
const COLUMN_LAYERS: u32 = 4;
/// Parts of a transform.
const PARTS: usize = 1 << COLUMN_LAYERS;

/// The exponent L of a part's length N/16.
fn part_layers(basis: &RnsBasis) -> u32 {
    basis.degree().trailing_zeros() - COLUMN_LAYERS
}

/// Threads that work on a part: each has 16 values.
fn part_threads(basis: &RnsBasis) -> usize {
    1 << (part_layers(basis) - 4)
}

/// Words of shared memory of a part's transform. Twin of `exchange_words` in `transform.cuh`.
fn exchange_words(basis: &RnsBasis) -> usize {
    let l = part_layers(basis);
    (1 << l) + (1 << (l - 4))
}

/// The name of a kernel on parts, for this degree.
fn part_kernel(name: &str, basis: &RnsBasis) -> String {
    format!("{name}_{}", part_layers(basis))
}

/// Threads of a block that works on columns.
fn column_threads(basis: &RnsBasis) -> usize {
    (basis.degree() / PARTS).min(128)
}

/// The same for a conversion from so many sources, 16 words each in shared memory: as many threads as have room.
fn lift_threads(device: &Device, basis: &RnsBasis, sources: usize) -> Result<usize> {
    let available = device.info().shared;
    let bytes = |threads: usize| 8 * 16 * sources * threads;
    let mut threads = column_threads(basis);
    while bytes(threads) > available && threads > 32 {
        threads /= 2;
    }
    if bytes(threads) > available {
        return Err(CudaError::SharedMemory { what: "a change of basis", wanted: bytes(threads), available });
    }
    Ok(threads)
}
