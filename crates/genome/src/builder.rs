//! Decision diagrams, built from the last variable to the first.

use crate::GenomeError;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use sudare_tfhe::leveled::{Diagram, Value};

/// Makes each node once: a node with equal children is its child, and nodes that differ by an exchange of their
/// children share a product.
#[derive(Default)]
pub struct Builder {
    products: Vec<[Value; 2]>,
    counts: Vec<u32>,
    known: HashMap<u64, u32, BuildHasherDefault<PairHasher>>,
}

impl Builder {
    /// The variable before the last one begins.
    pub fn variable(&mut self) {
        self.counts.push(0);
        self.known.clear();
    }

    /// The node `low + w·(high − low)` of the variable that began last.
    pub fn node(&mut self, low: Value, high: Value) -> Value {
        if low == high {
            return low;
        }
        let pair = |a: Value, b: Value| u64::from(a.code()) << 32 | u64::from(b.code());
        if let Some(product) = self.known.get(&pair(high, low)) {
            return Value::of_product(*product, true);
        }
        // Diagrams have fewer than 2^30 products.
        let next = self.products.len() as u32;
        let product = *self.known.entry(pair(low, high)).or_insert(next);
        if product == next {
            self.products.push([low, high]);
            if let Some(count) = self.counts.last_mut() {
                *count += 1;
            }
        }
        Value::of_product(product, false)
    }

    /// The diagram.
    pub fn finish(self, terminals: usize, root: Value) -> Result<Diagram, GenomeError> {
        Ok(Diagram::new(self.products, self.counts, terminals as u32, root)?)
    }
}

/// Mixes a pair of numbers; nobody chooses them to collide.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, x: u64) {
        let x = (self.0 ^ x).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        self.0 = x ^ (x >> 32);
    }
}
