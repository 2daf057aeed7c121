//! The fuzz target on its seeds and some changes of them.

#[allow(dead_code)]
#[path = "../../../../fuzz/src/mutation.rs"]
mod mutation;
#[path = "../../../../fuzz/src/models.rs"]
mod target;

use target::{check, seeds};

#[test]
fn changes() {
    let seeds = seeds();
    assert!(seeds.iter().all(|seed| check(seed) == 1));
    let (whole, _) = mutation::smoke(&seeds, 200, target::mutate, |data| check(data) > 0);
    assert_eq!(whole, seeds.len());
}
