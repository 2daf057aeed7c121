//! Bad input: a clear error, the right exit code, nothing written.

use crate::common;
use common::*;

/// A place with a plan for 3×4 · 4×2, keys, and both operands encrypted.
fn prepared() -> Place {
    let place = Place::new();
    place.matrix("a.npy", 3, 4, &values(12, 1));
    place.matrix("b.csv", 4, 2, &values(8, 2));
    place.ok("plan --left 3x4 --right 4x2 --error 1e-4 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/public.key --as right b.csv -o b.ct");
    place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    place
}

#[test]
fn damaged_files() {
    let place = prepared();
    let damage = |name: &str, to: &str, how: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = place.read(name);
        how(&mut bytes);
        place.write(to, bytes);
    };
    let cut = |b: &mut Vec<u8>| b.truncate(b.len() - 7);
    let flip = |b: &mut Vec<u8>| {
        let at = b.len() / 2;
        b[at] ^= 4;
    };
    let grow = |b: &mut Vec<u8>| b.extend([0; 9]);
    for (how, phrase) in [(&cut as &dyn Fn(&mut Vec<u8>), "ends too early"), (&flip, ""), (&grow, "more bytes")] {
        damage("a.ct", "bad.ct", how);
        place.fails("matmul plan.json --keys keys/eval.keys bad.ct b.ct -o out.ct", 5, phrase);
        damage("c.ct", "bad.ct", how);
        place.fails("decrypt plan.json --keys keys/secret.key bad.ct -o out.npy", 5, phrase);
        damage("keys/eval.keys", "bad.keys", how);
        place.fails("matmul plan.json --keys bad.keys a.ct b.ct -o out.ct", 5, phrase);
        damage("keys/public.key", "bad.key", how);
        place.fails("encrypt plan.json --keys bad.key --as left a.npy -o out.ct", 5, phrase);
        damage("keys/secret.key", "bad.key", how);
        let out = place.run(&["decrypt", "plan.json", "--keys", "bad.key", "c.ct", "-o", "out.npy"]);
        assert_eq!(out.status.code(), Some(5));
    }
    damage("plan.json", "bad.json", &cut);
    place.fails("keygen bad.json -o other", 5, "plan cannot be used");
    let text = String::from_utf8(place.read("plan.json")).unwrap();
    for (from, to) in
        [("\"rows\": 3", "\"rows\": 5"), ("\"version\": 3", "\"version\": 9"), ("\"error\": 0.0001", "\"error\": 0.1")]
    {
        assert!(text.contains(from), "{from}");
        place.write("bad.json", text.replacen(from, to, 1));
        place.fails("encrypt bad.json --keys keys/public.key --as left a.npy -o out.ct", 5, "plan cannot be used");
    }
    place.write("bad.json", vec![b' '; 5 << 20]);
    place.fails("keygen bad.json -o other", 5, "a plan has at most");
    place.fails("matmul plan.json --keys keys/eval.keys a.npy b.ct -o out.ct", 5, "not a Sudare file");
}

#[test]
fn foreign_keys_and_plans() {
    let place = prepared();
    place.ok("keygen plan.json -o others");
    place.fails("matmul plan.json --keys others/eval.keys a.ct b.ct -o out.ct", 4, "key");
    place.fails("decrypt plan.json --keys others/secret.key c.ct -o out.npy", 4, "key");
    place.ok("encrypt plan.json --keys others/public.key --as right b.csv -o b2.ct");
    place.fails("matmul plan.json --keys keys/eval.keys a.ct b2.ct -o out.ct", 4, "key");
    // Another error, other parameters or at least another plan.
    place.ok("plan --left 3x4 --right 4x2 --error 1e-7 -o plan2.json");
    place.fails("matmul plan2.json --keys keys/eval.keys a.ct b.ct -o out.ct", 4, "");
    place.fails("decrypt plan2.json --keys keys/secret.key c.ct -o out.npy", 4, "");
    // One kind of key for another.
    place.fails("matmul plan.json --keys keys/public.key a.ct b.ct -o out.ct", 4, "evaluation keys");
    place.fails("encrypt plan.json --keys keys/eval.keys --as left a.npy -o out.ct", 4, "public key");
    // Operands in the wrong order, or the result for an operand.
    place.fails("matmul plan.json --keys keys/eval.keys b.ct a.ct -o out.ct", 3, "first");
    place.fails("decrypt plan.json --keys keys/secret.key a.ct -o out.npy", 4, "not possible here");
}

#[test]
fn bad_data() {
    let place = prepared();
    let encrypt = |file: &str, code, phrase: &str| {
        place.fails(&format!("encrypt plan.json --keys keys/public.key --as left {file} -o out.ct"), code, phrase);
    };
    let mut data = values(12, 5);
    data[6] = f64::NAN;
    place.matrix("nan.npy", 3, 4, &data);
    encrypt("nan.npy", 3, "element (1, 2) is not a finite number");
    place.matrix("nan.csv", 3, 4, &data);
    encrypt("nan.csv", 3, "element (1, 2) is not a finite number");
    data[6] = -1.5;
    place.matrix("large.npy", 3, 4, &data);
    encrypt("large.npy", 3, "element (1, 2) is over the planned bound 1");
    place.matrix("shape.npy", 4, 3, &values(12, 5));
    encrypt("shape.npy", 3, "4×3");
    place.write("short.npy", npy("<f8", false, "(3, 4)", &[0; 80]));
    encrypt("short.npy", 3, "");
    place.write("huge.npy", npy("<f8", false, "(3000000000, 4000000000)", &[0; 80]));
    encrypt("huge.npy", 3, "");
    place.write("text.csv", "1,2,3,4\n5,6,seven,8\n1,2,3,4\n");
    encrypt("text.csv", 3, "line 2, column 3");
    place.write("a.txt", "1");
    encrypt("a.txt", 2, ".npy, .csv or .tsv");
    encrypt("missing.npy", 7, "missing.npy");
    place.fails("encrypt plan.json --keys keys/public.key --as middle a.npy -o out.ct", 2, "left, right");
    place.fails("encrypt plan.json --keys keys/public.key --as left a.npy -o nowhere/out.ct", 7, "nowhere");
    place.fails("decrypt plan.json --keys keys/secret.key c.ct -o out.txt", 2, ".npy, .csv or .tsv");
}

#[test]
fn an_old_output_survives() {
    let place = prepared();
    place.write("out.npy", "precious");
    place.write("bad.ct", "rubbish");
    place.fails("decrypt plan.json --keys keys/secret.key c.ct -o out.npy", 2, "out.npy: is there already");
    place.fails("decrypt plan.json --keys keys/secret.key bad.ct --force -o out.npy", 5, "bad.ct");
    assert_eq!(place.read("out.npy"), b"precious");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct --force -o out.npy");
    assert_ne!(place.read("out.npy"), b"precious");
}

/// The input would be lost, whatever name it has as an output.
#[test]
fn outputs_that_are_inputs() {
    let place = prepared();
    let also = "is also the input";
    std::fs::hard_link(place.path("a.npy"), place.path("linked.npy")).unwrap();
    std::fs::hard_link(place.path("c.ct"), place.path("c.npy")).unwrap();
    let mut names = vec!["a.npy", "./a.npy", "keys/../a.npy", "linked.npy", "plan.json", "keys/public.key"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.npy", place.path("named.npy")).unwrap();
        names.push("named.npy");
    }
    for name in names {
        place.fails(&format!("encrypt plan.json --keys keys/public.key --as left a.npy -o {name}"), 2, also);
    }
    for name in ["a.ct", "b.ct", "plan.json", "keys/eval.keys"] {
        place.fails(&format!("matmul plan.json --keys keys/eval.keys a.ct b.ct -o {name}"), 2, also);
        place.fails(&format!("run plan.json --keys keys/eval.keys left=a.ct b.ct -o {name}"), 2, also);
    }
    place.fails("decrypt plan.json --keys keys/secret.key c.ct -o c.npy", 2, also);
    std::fs::rename(place.path("plan.json"), place.path("keys/public.key")).unwrap();
    place.fails("keygen keys/public.key -o keys --force", 2, also);
    place.write("e.json", "{}");
    place.fails("plan --expression e.json -o e.json", 2, also);
}

#[test]
fn no_plan() {
    let place = Place::new();
    place.fails("plan --left 3x4 --right 5x2 -o plan.json", 3, "do not go together");
    place.fails("plan --left 3x4 --right 4x2 --error 1e-30 -o plan.json", 6, "error");
    place.fails("plan --left 3x4 --right 4x2 --error=-1 -o plan.json", 6, "above zero");
    place.fails("plan --left 3x4 --right 4x2 --memory 1kB -o plan.json", 6, "memory");
    place.fails("plan --left 3x4 --right 4x2 --method magic -o plan.json", 6, "magic");
    place.fails("plan --left 3x4 --right 4x2 --security 100 -o plan.json", 2, "128");
    place.write("e.json", "{\"inputs\": 3}");
    place.fails("plan --expression e.json -o plan.json", 6, "e.json");
}

#[test]
fn a_missing_rotation_key() {
    use sudare_rlwe::keys::EvalKeys;
    use sudare_rlwe::wire::Wire;
    let place = Place::new();
    place.matrix("a.npy", 4, 4, &values(16, 1));
    place.ok("plan --left 4x4 --right 4x4 --method improved3d -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/public.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/public.key --as right a.npy -o b.ct");
    place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    let plan = sudare_plan::Plan::from_json(&String::from_utf8(place.read("plan.json")).unwrap()).unwrap();
    let keys = EvalKeys::from_bytes(plan.params(), &place.read("keys/eval.keys")).unwrap();
    let mut fewer = EvalKeys::new(plan.params(), keys.id());
    fewer.set_relin(keys.relin_key().unwrap().clone()).unwrap();
    keys.galois_keys().skip(1).for_each(|k| fewer.insert(k.clone()).unwrap());
    place.write("fewer.keys", fewer.to_bytes().unwrap());
    place.fails("matmul plan.json --keys fewer.keys a.ct b.ct -o out.ct", 4, "no key for rotation by");
}

#[test]
fn a_kernel_family_that_is_none() {
    let place = Place::new();
    for (name, code) in [("portable", Some(0)), ("avx", Some(2))] {
        let command = std::process::Command::new(env!("CARGO_BIN_EXE_sudare"))
            .args(["plan", "--left", "2x2", "--right", "2x2", "-o", "plan.json"])
            .current_dir(place.folder.path())
            .env("XDG_CACHE_HOME", place.path("cache"))
            .env("SUDARE_KERNEL", name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&command.stderr);
        assert_eq!(command.status.code(), code, "{text}");
        assert!(code == Some(0) || text.contains("SUDARE_KERNEL: \"avx\" is not a kernel family"), "{text}");
    }
}

/// Whatever writes an output looks at what is in its place.
#[test]
fn a_secret_key_is_not_replaced() {
    let place = prepared();
    place.ok("bits keygen --parameters insecure_test -o bits");
    place.write("bits.npy", npy("|u1", false, "(2,)", &[1, 2]));
    for key in ["keys/secret.key", "bits/secret.key"] {
        for words in [
            "plan --left 3x4 --right 4x2 --error 1e-4",
            "encrypt plan.json --keys keys/public.key --as left a.npy",
            "matmul plan.json --keys keys/eval.keys a.ct b.ct",
            "decrypt plan.json --keys keys/secret.key c.ct",
            "bits encrypt --keys bits/secret.key --dtype uint8 bits.npy",
        ] {
            // For some of them the key is an input, too.
            for force in ["", " --force"] {
                place.fails(&format!("{words} -o {key}{force}"), 2, key);
            }
        }
        let plan = format!("plan --left 3x4 --right 4x2 --error 1e-4 -o {key}");
        place.fails(&plan, 2, "there is a key already");
        place.fails(&format!("{plan} --force"), 2, "holds a secret key");
    }
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.npy");
    place.ok("bits encrypt --keys bits/secret.key --dtype uint8 bits.npy -o bits.ct");
}

#[test]
fn a_line_of_commas() {
    let place = prepared();
    place.write("commas.csv", vec![b','; 20 << 20]);
    place.fails(
        "encrypt plan.json --keys keys/public.key --as left commas.csv -o out.ct",
        3,
        "more than 1048576 columns",
    );
}
