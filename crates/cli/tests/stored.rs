//! Products of stores, each command in a process of its own.

mod common;
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
    place.fails(&format!("{multiply} -o c.sudare"), 7, "there is something already");
    place.ok(&format!("{multiply} --resume -o c.sudare"));
    let little = multiply.replace("1GB", "1MB");
    place.fails(&format!("{little} -o d.sudare"), 6, "takes at least");
    place.fails(&format!("{} -o d.sudare", multiply.replace("a.sudare", "a.npy")), 2, "--store");
    let swapped = multiply.replace("a.sudare b.sudare", "b.sudare a.sudare");
    place.fails(&format!("{swapped} -o d.sudare"), 4, "not in the plan");
    assert!(!place.path("d.sudare").exists());
}
