//! From two matrix files to their product, each command in a process of its own.

use crate::common;
use common::*;

/// Plans, makes keys, encrypts, multiplies and decrypts; returns the product file's contents.
fn flow(place: &Place, shape: (usize, usize, usize), extension: &str, key: &str) -> f64 {
    flow_of(place, shape, extension, key, "--error 1e-4")
}

/// The same with other words for the plan.
fn flow_of(place: &Place, (m, k, n): (usize, usize, usize), extension: &str, key: &str, words: &str) -> f64 {
    let (a, b) = (values(m * k, 1), values(k * n, 2));
    place.matrix(&format!("a.{extension}"), m, k, &a);
    place.matrix(&format!("b.{extension}"), k, n, &b);
    let table = place.ok(&format!("plan --left {m}x{k} --right {k}x{n} --max-abs 1 {words} --force -o plan.json"));
    assert!(table.contains("128-bit security") || table.contains("192-bit") || table.contains("256-bit"), "{table}");
    place.ok("keygen plan.json -o keys --force");
    place.ok(&format!("encrypt plan.json --keys keys/{key} --as left a.{extension} --force -o a.ct"));
    place.ok(&format!("encrypt plan.json --keys keys/{key} --as right b.{extension} --force -o b.ct"));
    // The server has another folder and no secret key.
    let server = Place::new();
    for name in ["plan.json", "keys/eval.keys", "a.ct", "b.ct"] {
        std::fs::copy(place.path(name), server.path(name.rsplit('/').next().unwrap())).unwrap();
    }
    server.ok("matmul plan.json --keys eval.keys a.ct b.ct -o c.ct");
    std::fs::copy(server.path("c.ct"), place.path("c.ct")).unwrap();
    place.ok(&format!("decrypt plan.json --keys keys/secret.key c.ct --force -o c.{extension}"));
    let (rows, cols, c) = place.load(&format!("c.{extension}"));
    assert_eq!((rows, cols), (m, n));
    largest_difference(&c, &product(m, k, n, &a, &b))
}

#[test]
fn odd_shapes_in_both_formats() {
    let place = Place::new();
    for (shape, extension, key) in [
        ((3, 5, 2), "npy", "secret.key"),
        ((1, 1, 1), "csv", "public.key"),
        ((7, 1, 9), "npy", "public.key"),
        ((1, 33, 1), "csv", "secret.key"),
        ((17, 19, 23), "npy", "secret.key"),
    ] {
        let error = flow(&place, shape, extension, key);
        assert!(error < 1e-4, "{shape:?} {extension} {key}: {error:e}");
    }
}

/// A compact plan has smaller results with the wanted error, and `info` and `--json` know nothing more of it.
#[test]
fn compact_results_are_smaller() {
    let place = Place::new();
    let mut sizes = Vec::new();
    for words in ["--error 1e-3", "--error 1e-3 --compact"] {
        let error = flow_of(&place, (40, 60, 20), "npy", "secret.key", words);
        assert!(error < 1e-3, "{words}: {error:e}");
        sizes.push(place.read("c.ct").len());
    }
    assert!(2 * sizes[1] < sizes[0], "{sizes:?}");
    let table = place.run(&"plan --table 5x3 --compact -o table.json".split(' ').collect::<Vec<_>>());
    assert_eq!(table.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&table.stderr).contains("cannot be used with '--compact'"));
}

#[test]
fn other_number_types_and_axes() {
    let place = Place::new();
    place.ok("plan --left 2x3 --right 3x1 --max-abs 10,2 --error 1e-3 -o plan.json");
    place.ok("keygen plan.json -o keys");
    // Fortran order, single precision; and a one-axis array of bytes.
    let a: Vec<u8> = [1f32, 4.0, 2.0, 5.0, 3.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    place.write("a.npy", npy("<f4", true, "(2, 3)", &a));
    place.write("b.npy", npy("|i1", false, "(3,)", &[1, 0xff, 2]));
    place.ok("encrypt plan.json --keys keys/public.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/public.key --as right b.npy -o b.ct");
    place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.csv");
    let (_, _, c) = place.load("c.csv");
    assert!(largest_difference(&c, &[5.0, 11.0]) < 1e-3, "{c:?}");
}

#[test]
fn releases_are_counted_in_the_keys_file() {
    let place = Place::new();
    let (a, b) = (values(12, 3), values(8, 4));
    place.matrix("a.npy", 3, 4, &a);
    place.matrix("b.npy", 4, 2, &b);
    let table = place.ok("plan --left 3x4 --right 4x2 --error 1e-3 --release 3,30 -o plan.json");
    assert!(table.contains("3 results, 30 bits"), "{table}");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/public.key --as right b.npy -o b.ct");
    place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    let want = product(3, 4, 2, &a, &b);
    std::fs::copy(place.path("keys/secret.key"), place.path("before.key")).unwrap();
    let decrypt = "decrypt plan.json --keys keys/secret.key c.ct -o c.npy --force";
    // One forgotten word is no private decryption.
    place.fails(decrypt, 4, "--release what others will see, with --private");
    let both = format!("{decrypt} --release --private");
    assert_eq!(place.run(&both.split(' ').collect::<Vec<_>>()).status.code(), Some(2));
    place.ok(&format!("{decrypt} --private"));
    let private = largest_difference(&place.load("c.npy").2, &want);
    assert_eq!(place.read("keys/secret.key"), place.read("before.key"), "the owner's eyes are not counted");
    // Two at once are two.
    let release = format!("{decrypt} --release");
    let text = std::thread::scope(|scope| {
        let other = scope.spawn(|| place.ok("decrypt plan.json --keys keys/secret.key c.ct -o d.npy --release"));
        format!("{}{}", place.ok(&release), other.join().unwrap())
    });
    assert!(text.contains("2 more under this key") && text.contains("1 more under this key"), "{text}");
    for name in ["c.npy", "d.npy"] {
        let released = largest_difference(&place.load(name).2, &want);
        assert!(released < 1e-3 && released > 1e3 * private, "{released:e} {private:e}");
    }
    assert!(place.ok(&release).contains("0 more under this key"));
    place.fails(&release, 4, "3 releases were declared and all are used");
    place.ok(&format!("{decrypt} --private"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(place.path("keys/secret.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // A copy of the key of before does not know, which the security page says.
    place.ok("decrypt plan.json --keys before.key c.ct -o e.npy --release");

    place.ok("plan --left 3x4 --right 4x2 --error 1e-4 -o plain.json");
    place.ok("keygen plain.json -o other");
    place.ok("encrypt plain.json --keys other/secret.key --as left a.npy -o x.ct");
    place.ok("encrypt plain.json --keys other/secret.key --as right b.npy -o y.ct");
    place.ok("matmul plain.json --keys other/eval.keys x.ct y.ct -o z.ct");
    place.fails("decrypt plain.json --keys other/secret.key z.ct -o z.npy --release", 4, "--release COUNT,BITS");
    let refused = place.run(&["plan", "--left", "3x4", "--right", "4x2", "--release", "1,0", "-o", "bad.json"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("20 to 64 bits"));
    place.fails("plan --left 3x4 --right 4x2 --error 1e-12 --release 1000 -o bad.json", 6, "fewer results");
}

#[test]
fn plain_weights() {
    let place = Place::new();
    let (a, w) = (values(12, 3), values(8, 4));
    place.matrix("a.npy", 3, 4, &a);
    place.matrix("w.csv", 4, 2, &w);
    place.ok("plan --left 3x4 --right 4x2 --plain right --error 1e-4 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/public.key --as left a.npy -o a.ct");
    place.ok("matmul plan.json --keys keys/eval.keys a.ct w.csv -o c.ct");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.npy");
    assert!(largest_difference(&place.load("c.npy").2, &product(3, 4, 2, &a, &w)) < 1e-4);
}

#[cfg(unix)]
#[test]
fn the_secret_key_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.ok("plan --left 2x2 --right 2x2 -o plan.json");
    place.ok("keygen plan.json -o keys");
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("keys/secret.key"), 0o600);
    assert_ne!(mode("keys/public.key") & 0o044, 0);
    place.fails("keygen plan.json -o keys", 2, "--force");
}

#[test]
fn calibration_is_kept() {
    let place = Place::new();
    let text = place.ok("calibrate --json");
    assert!(text.contains("\"mac_ns\""));
    assert!(exists(&place.path("cache/sudare/cost-model.json")));
}

/// Exact products and statistics go through the same steps as every other plan.
#[test]
fn plans_of_every_kind() {
    let place = Place::new();
    let exact = r#"{"inputs": [
        {"name": "A", "rows": 4, "cols": 3, "max_abs": 1000.0, "integers": 1000},
        {"name": "B", "rows": 4, "cols": 2, "max_abs": 7.0, "integers": 7}],
        "nodes": [{"op": "input", "input": 0}, {"op": "transpose", "operands": [0]}, {"op": "input", "input": 1},
        {"op": "matmul", "operands": [1, 2]}], "output": 3}"#;
    let table = r#"{"inputs": [{"name": "X", "rows": 4, "cols": 3, "max_abs": 1000.0, "columns": [1000.0, 1000.0, 1000.0]}],
        "nodes": [{"op": "input", "input": 0}, {"op": "moments", "operands": [0]}], "output": 1}"#;
    let a: Vec<f64> = (0..12).map(|i| f64::from(i * i * 8 - 500)).collect();
    let b: Vec<f64> = (0..8).map(|i| f64::from(i - 3)).collect();
    place.matrix("a.npy", 4, 3, &a);
    place.matrix("b.csv", 4, 2, &b);
    place.write("exact.json", exact);
    place.write("table.json", table);

    let shown = place.ok("plan --expression exact.json --error 0 -o plan.json");
    assert!(shown.contains("none: the result is exact") && shown.contains("bgv, N = "), "{shown}");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as A a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/secret.key --as B b.csv -o b.ct");
    place.ok("run plan.json --keys keys/eval.keys A=a.ct B=b.ct -o c.ct");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.csv");
    let turned: Vec<f64> = (0..12).map(|i| a[i % 4 * 3 + i / 4]).collect();
    assert_eq!(place.load("c.csv"), (3, 2, product(3, 4, 2, &turned, &b)));
    place.write("half.csv", "0.5,1\n1,1\n1,1\n1,1\n");
    place.fails(
        "encrypt plan.json --keys keys/secret.key --as B half.csv -o h.ct",
        3,
        "line 1, column 1 is not an integer",
    );
    place.ok("encrypt plan.json --keys keys/public.key --as A a.npy -o p.ct");
    place.ok("run plan.json --keys keys/eval.keys A=p.ct B=b.ct --force -o c.ct");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c2.csv");
    assert_eq!(place.load("c2.csv"), (3, 2, product(3, 4, 2, &turned, &b)));

    place.ok("plan --expression table.json --error 0.1 --force -o plan.json");
    place.ok("keygen plan.json -o keys --force");
    place.ok("encrypt plan.json --keys keys/secret.key --as X a.npy -o x.ct");
    place.fails("encrypt plan.json --keys keys/public.key --as X a.npy -o y.ct", 4, "encryptions under the secret key");
    place.ok("run plan.json --keys keys/eval.keys X=x.ct -o m.ct");
    place.ok("decrypt plan.json --keys keys/secret.key m.ct -o m.csv");
    let (rows, columns, found) = place.load("m.csv");
    let mean = |j: usize| (0..4).map(|i| a[i * 3 + j]).sum::<f64>() / 4.0;
    let covariance =
        |j: usize, k: usize| (0..4).map(|i| (a[i * 3 + j] - mean(j)) * (a[i * 3 + k] - mean(k))).sum::<f64>() / 3.0;
    let wanted: Vec<f64> = (0..12).map(|at| if at < 3 { mean(at) } else { covariance(at / 3 - 1, at % 3) }).collect();
    assert_eq!((rows, columns), (4, 3));
    assert!(largest_difference(&found, &wanted) < 1e-2, "{found:?} {wanted:?}");
}
