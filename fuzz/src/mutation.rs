//! Changes to bytes and to JSON that reach further than random ones: by the coverage-guided targets, and by the tests that
//! run a few thousand inputs of each target with everything else.

use serde_json::{Value, json};

pub use sudare_testkit::Random;

/// A number below `n`, or 0.
pub fn below(random: &mut Random, n: usize) -> usize {
    random.index(n.max(1))
}

fn one<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.index(of.len())]
}

const EDGES: [u64; 12] = [0, 1, 2, 3, 7, 0x7F, 0xFF, 0xFFFF, 1 << 31, u32::MAX as u64, 1 << 40, u64::MAX];

/// Changes bytes once; some come from `other`.
pub fn bytes(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    if bytes.is_empty() {
        bytes.push(random.word() as u8);
    }
    // Half of all changes go to the header, where the decisions are.
    let area = if below(random, 2) == 0 { bytes.len().min(512) } else { bytes.len() };
    let at = below(random, area);
    match below(random, 7) {
        0 => bytes[at] ^= 1 << below(random, 8),
        1 => bytes[at] = random.word() as u8,
        2 | 3 => {
            let width = 1 << below(random, 4);
            let edge = EDGES[below(random, EDGES.len())].to_le_bytes();
            let at = at & !(width - 1);
            let end = bytes.len().min(at + width);
            bytes[at..end].copy_from_slice(&edge[..end - at]);
        }
        4 => bytes.truncate(at.max(1)),
        5 => {
            let more = below(random, 9000);
            bytes.resize(bytes.len() + more, 0);
        }
        _ => {
            let from = below(random, other.len());
            let len = below(random, 200).min(other.len() - from).min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&other[from..from + len]);
        }
    }
}

/// A value at a random place of a document, and how many there are below it.
fn place<'v>(random: &mut Random, value: &'v mut Value) -> &'v mut Value {
    let inside = match value {
        Value::Array(all) => all.len(),
        Value::Object(all) => all.len(),
        _ => 0,
    };
    // Deeper with every step, so that leaves come up as well as what holds them.
    if inside == 0 || below(random, 6) == 0 {
        return value;
    }
    let at = below(random, inside);
    match value {
        Value::Array(all) => place(random, &mut all[at]),
        Value::Object(all) => place(random, all.values_mut().nth(at).expect("it is below the length")),
        leaf => leaf,
    }
}

/// A value as hostile as its kind allows, or of another kind.
fn other(random: &mut Random, value: &Value) -> Value {
    let near = value.as_u64().unwrap_or(0);
    match (below(random, 10), value) {
        (0..=3, Value::Number(n)) if n.is_u64() => {
            let near = [
                near.wrapping_add(1),
                near.wrapping_sub(1),
                near / 2,
                near.wrapping_mul(2),
                near ^ 1 << below(random, 64),
            ];
            json!(one(random, &near))
        }
        (0..=3, Value::Number(n)) => {
            let x = n.as_f64().unwrap_or(0.0);
            json!(one(random, &[-x, x * 2.0, x / 2.0, x * 1e9, x * 1e-9, x.next_up(), x.round()]))
        }
        (0..=3, Value::String(text)) => {
            let mut text: Vec<char> = text.chars().collect();
            let at = below(random, text.len() + 1);
            match below(random, 3) {
                0 => text.truncate(at),
                1 => text.insert(at, *one(random, &['\0', '\u{1b}', '/', '.', '"', '\u{202e}', 'é', '\n', '0'])),
                _ => text = text.repeat(below(random, 40)),
            }
            text.into_iter().collect::<String>().into()
        }
        (0..=3, Value::Array(all)) => {
            let mut all = all.clone();
            match below(random, 4) {
                0 if !all.is_empty() => drop(all.remove(below(random, all.len()))),
                1 => all.reverse(),
                2 if !all.is_empty() => all.push(one(random, &all).clone()),
                _ => all = all.iter().cycle().take(all.len() * below(random, 70)).cloned().collect(),
            }
            all.into()
        }
        (0..=3, Value::Object(all)) => {
            let mut all = all.clone();
            let key = all.keys().nth(below(random, all.len())).cloned().unwrap_or_default();
            let found = all.remove(&key).unwrap_or_default();
            if below(random, 2) == 0 {
                all.insert(format!("{key}x"), found);
            }
            all.into()
        }
        (4 | 5, _) => json!(one(random, &EDGES)),
        (6, _) => json!(one(random, &[0.0, -0.0, 1e-300, -1.0, 5e-324, 1e300, f64::MAX, 0.5])),
        (7, _) => {
            one(random, &[json!(null), json!(true), json!([]), json!({}), json!(""), json!(-1), json!("Insecure")])
                .clone()
        }
        _ => json!(random.word() >> below(random, 64)),
    }
}

/// Changes a document at one place; part of another place may come there. Whether the text was one.
pub fn json(random: &mut Random, text: &mut String) -> bool {
    let Ok(mut document) = serde_json::from_str::<Value>(text) else { return false };
    let mut from = document.clone();
    let target = place(random, &mut document);
    *target = match below(random, 5) {
        0 => place(random, &mut from).take(),
        _ => other(random, target),
    };
    *text = document.to_string();
    true
}

/// Seeds, and so many changes of each: how many of the seeds were taken, and how many of the others.
pub fn smoke(
    seeds: &[Vec<u8>],
    tries: usize,
    mutate: impl Fn(&mut Random, &mut Vec<u8>, &[u8]),
    check: impl Fn(&[u8]) -> bool,
) -> (usize, usize) {
    let (mut random, mut taken) = (Random(2024), (0, 0));
    for seed in seeds {
        taken.0 += usize::from(check(seed));
        for _ in 0..tries {
            let mut data = seed.clone();
            (0..=below(&mut random, 3)).for_each(|_| {
                let other = &seeds[below(&mut random, seeds.len())];
                mutate(&mut random, &mut data, other);
            });
            taken.1 += usize::from(check(&data));
        }
    }
    taken
}
