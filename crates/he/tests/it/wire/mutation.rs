//! A small fuzzer that runs with the ordinary tests: mutated objects through every decoder.
//! `fuzz/` has the long-running, coverage-guided one.

use super::objects::{Objects, literal, reread};
use std::time::{Duration, Instant};
use sudare_rlwe::wire::reseal_for_tests;
use sudare_testkit::Random;

const EDGES: [u64; 12] = [0, 1, 2, 3, 7, 0x7F, 0xFF, 0xFFFF, 1 << 31, u32::MAX as u64, 1 << 40, u64::MAX];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    // Half of all changes go to the header, where the decisions are.
    let area = if random.index(2) == 0 { bytes.len().min(512) } else { bytes.len() };
    let at = random.index(area);
    match random.index(7) {
        0 => bytes[at] ^= 1 << random.index(8),
        1 => bytes[at] = random.word() as u8,
        2 | 3 => {
            let width = 1 << random.index(4);
            let edge = EDGES[random.index(EDGES.len())].to_le_bytes();
            let at = at & !(width - 1);
            let end = bytes.len().min(at + width);
            bytes[at..end].copy_from_slice(&edge[..end - at]);
        }
        4 => bytes.truncate(at.max(1)),
        5 => {
            let more = random.index(9000);
            bytes.resize(bytes.len() + more, 0);
        }
        _ => {
            let from = random.index(other.len().max(1));
            let len = random.index(200).min(other.len() - from).min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&other[from..from + len]);
        }
    }
}

#[test]
fn mutated_objects_never_panic() {
    let o = Objects::new(&literal(), 1);
    let files = o.files();
    let mut random = Random(2024);
    let (start, mut tried, mut passed) = (Instant::now(), 0, 0);
    while tried < 40_000 && start.elapsed() < Duration::from_secs(2) {
        let (_, original) = &files[random.index(files.len())];
        let (_, other) = &files[random.index(files.len())];
        let mut bytes = original.clone();
        (0..=random.index(3)).for_each(|_| mutate(&mut random, &mut bytes, other));
        if bytes == *original {
            continue;
        }
        tried += 1;
        let resealed = random.index(4) != 0;
        if resealed {
            reseal_for_tests(&mut bytes);
        }
        for (name, _) in &files {
            if let Ok(again) = reread(&o.params, name, &bytes) {
                // What is accepted is the one encoding of what it means.
                assert!(again == bytes, "{name}");
                assert!(resealed || files.iter().any(|(_, f)| *f == bytes), "{name} was accepted damaged");
                passed += 1;
            }
        }
    }
    assert!(tried > 200 && passed > 0, "{tried} tried, {passed} passed");
}
