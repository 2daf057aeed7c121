//! Products of stores, each command in a process of its own.

use crate::common;
use common::*;

#[test]
fn a_product_in_little_memory() {
    let (m, k, n) = (60, 80, 40);
    let place = Place::new();
    let (a, b) = (values(m * k, 1), values(k * n, 2));
    place.matrix("a.npy", m, k, &a);
    place.matrix("b.npy", k, n, &b);
    place.ok("plan --left 60x80 --right 80x40 --method coefficient -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left --store a.npy -o a.sudare");
    place.ok("encrypt plan.json --keys keys/public.key --as right --store b.npy -o b.sudare");
    let multiply = "matmul plan.json --keys keys/eval.keys a.sudare b.sudare --memory 1GB";
    let told = place.ok(&format!("{multiply} -o c.sudare"));
    assert!(["passes    left 1, right 1", "read", "memory", "blocks of"].iter().all(|w| told.contains(w)), "{told}");
    place.ok("decrypt plan.json --keys keys/secret.key c.sudare -o c.npy");
    let (_, _, c) = place.load("c.npy");
    assert!(largest_difference(&c, &product(m, k, n, &a, &b)) < 1e-4);

    // What is there is kept; with --resume a finished work is taken as it is.
    place.fails(&format!("{multiply} -o c.sudare"), 7, "this exists already");
    place.ok(&format!("{multiply} --resume -o c.sudare"));
    let little = multiply.replace("1GB", "1MB");
    place.fails(&format!("{little} -o d.sudare"), 6, "takes at least");
    place.fails(&format!("{} -o d.sudare", multiply.replace("a.sudare", "a.npy")), 2, "--store");
    let swapped = multiply.replace("a.sudare b.sudare", "b.sudare a.sudare");
    place.fails(&format!("{swapped} -o d.sudare"), 4, "not possible here");
    assert!(!place.path("d.sudare").exists());
}

/// Keys that stay in their file give the bytes of keys in memory, by `matmul` and by `run`, with room for one key and for all.
#[test]
fn keys_that_stay_in_their_file() {
    let (n, place) = (24, Place::new());
    let (a, b) = (values(n * n, 1), values(n * n, 2));
    place.matrix("a.npy", n, n, &a);
    place.matrix("b.npy", n, n, &b);
    place.ok("plan --left 24x24 --right 24x24 --method module -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/public.key --as right b.npy -o b.ct");
    let multiply = "matmul plan.json --keys keys/eval.keys a.ct b.ct";
    place.ok(&format!("{multiply} -o c.ct"));
    for (command, memory) in [("matmul", "1B"), ("matmul", "1.5MB"), ("matmul", "2GB"), ("run", "1MB")] {
        let multiply = multiply.replace("matmul", command);
        place.ok(&format!("{multiply} --keys-memory {memory} -o d.ct"));
        assert_eq!(place.read("d.ct"), place.read("c.ct"), "{command} --keys-memory {memory}");
        std::fs::remove_file(place.path("d.ct")).unwrap();
    }
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.npy");
    let (_, _, c) = place.load("c.npy");
    assert!(largest_difference(&c, &product(n, n, n, &a, &b)) < 1e-4);
}

#[test]
fn keys_memory_that_is_none() {
    let place = Place::new();
    place.matrix("a.npy", 3, 4, &values(12, 1));
    place.matrix("b.npy", 4, 2, &values(8, 2));
    place.ok("plan --left 3x4 --right 4x2 --error 1e-4 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/secret.key --as right b.npy -o b.ct");
    for command in ["matmul", "run"] {
        let with = |keys: &str, memory: &str| {
            format!("{command} plan.json --keys {keys} a.ct b.ct --keys-memory={memory} -o c.ct")
        };
        for nonsense in ["0", "-1", "much", "1PB", "nan", "1.2.3GB"] {
            // The parser of arguments tells of its help in a second line.
            let out = place.run(&with("keys/eval.keys", nonsense).split(' ').collect::<Vec<_>>());
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            assert_eq!(out.status.code(), Some(2), "{nonsense}: {text}");
            assert!(text.contains("--keys-memory") && text.contains("8GB or 512MB"), "{nonsense}: {text}");
        }
        // A remote server holds the keys that it was sent.
        let far = format!("{} --server http://127.0.0.1:1", with("keys/eval.keys", "1MB"));
        let out = place.run(&far.split(' ').collect::<Vec<_>>());
        assert_eq!(out.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&out.stderr).contains("cannot be used with"));
        place.fails(&with("keys/none.keys", "1MB"), 7, "none.keys");
        place.fails(&with("keys/public.key", "1MB"), 4, "evaluation keys");
        let mut keys = place.read("keys/eval.keys");
        let last = keys.len() - 40;
        keys[last] ^= 1;
        place.write("flipped.keys", &keys);
        place.fails(&with("flipped.keys", "1MB"), 5, "flipped.keys");
        place.write("cut.keys", &keys[..last]);
        place.fails(&with("cut.keys", "1MB"), 5, "cut.keys");
    }
    assert!(!place.path("c.ct").exists());
}
