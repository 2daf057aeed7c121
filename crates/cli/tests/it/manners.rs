//! What a person at a terminal expects: pipes, names kept, every kind of file told apart, integers, tables, bits.

use crate::common;
use common::*;
use std::io::Write;
use std::process::Stdio;

/// Runs a command with standard input; gives standard output, after it succeeded.
fn piped(place: &Place, words: &str, input: &[u8]) -> Vec<u8> {
    let mut command = place.command(&words.split(' ').collect::<Vec<_>>());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let done = child.wait_with_output().unwrap();
    let _ = writer.join();
    assert!(done.status.success(), "sudare {words}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn names_and_separators_come_back() {
    let place = Place::new();
    place.write("a.csv", "# measured in May\npatient;height;weight\nanna;1,5;2\n\"smith; jo\";-1;0,25\n");
    place.write("b.tsv", "x\ty\n1\t2\n3\t4\n");
    place.ok("plan --left 2x2 --right 2x2 --max-abs 4 --error 1e-6 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.fails("encrypt plan.json --keys keys/secret.key --as left a.csv -o a.ct", 3, "--decimal-comma");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.csv --decimal-comma -o a.ct");
    place.ok("encrypt plan.json --keys keys/public.key --as right b.tsv -o b.ct");
    place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    // Names in one file and numbers with commas in the other: rows are taken from the first alone.
    place.write("rows.csv", "patient,h\nanna,1\n\"smith, jo\",2\n");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct --rows rows.csv --columns b.tsv -o c.csv");
    let shown = text(place.read("c.csv"));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], ",x,y");
    assert!(lines[1].starts_with("anna,7.") && lines[2].starts_with("\"smith, jo\",-0.2"), "{shown}");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct --separator ; --decimal-comma -o d.csv");
    assert!(text(place.read("d.csv")).lines().all(|line| line.contains(';') && line.contains(',')));
    place.fails("decrypt plan.json --keys keys/secret.key c.ct --rows rows.csv -o c.npy", 2, "written as .csv");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct --columns b.tsv -o c.tsv");
    assert!(text(place.read("c.tsv")).starts_with("x\ty\n"));
    for (name, remedy) in
        [("x.parquet", "read_parquet"), ("x.xlsx", "as .csv"), ("x", ".tsv"), ("x.gz", ".gz after it")]
    {
        place.fails(&format!("encrypt plan.json --keys keys/public.key --as right {name} -o b2.ct"), 2, remedy);
    }
    place.fails("decrypt plan.json --keys keys/secret.key c.ct --rows b.tsv -o e.csv", 3, "no names of rows");
    place.write("three.csv", "a,b,c\n1,2,3\n");
    place.fails("decrypt plan.json --keys keys/secret.key c.ct --columns three.csv -o e.csv", 3, "the result has 2");
}

#[test]
fn standard_input_and_output() {
    let place = Place::new();
    place.ok("plan --left 2x3 --right 3x1 --max-abs 4 --error 1e-6 -o plan.json");
    place.ok("keygen plan.json -o keys");
    let a = piped(&place, "encrypt plan.json --keys keys/secret.key --as left - -o -", b"1,2,3\n-1,0,1\n");
    let doubles: Vec<u8> = [1.0f64, 2.0, 0.5].iter().flat_map(|x| x.to_le_bytes()).collect();
    let b = npy("<f8", false, "(3, 1)", &doubles);
    place.write("b.ct", piped(&place, "encrypt plan.json --keys keys/public.key --as right - -o -", &b));
    let c = piped(&place, "matmul plan.json --keys keys/eval.keys - b.ct -o -", &a);
    let shown = text(piped(&place, "decrypt plan.json --keys keys/secret.key - -o -", &c));
    let found: Vec<f64> = shown.lines().map(|line| line.parse().unwrap()).collect();
    assert!(largest_difference(&found, &[6.5, -0.5]) < 1e-6, "{shown}");
    assert!(text(piped(&place, "info -", &c)).contains("2×1"));
    place.fails("matmul plan.json --keys keys/eval.keys - - -o c.ct", 2, "standard input is one file");
    place.fails("decrypt plan.json --keys - c.ct -o c.csv", 2, "keys are read from files");
}

/// Tables and arrays packed by gzip, by their names and from a pipe.
#[test]
fn packed_files_are_read() {
    let place = Place::new();
    let packed = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    place.write("a.csv.gz", packed(b"name,x,y\nanna,1,2\nben,3,4\n"));
    place.write("b.tsv.gz", packed(b"x y\tz\n1\t2\n3\t5\n"));
    let doubles: Vec<u8> = [1.0f64, 2.0, 3.0, 5.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    place.write("b.npy.gz", packed(&npy("<f8", false, "(2, 2)", &doubles)));
    place.ok("plan --left 2x2 --right 2x2 --integers --max-abs 5 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/public.key --as left a.csv.gz -o a.ct");
    for name in ["b.tsv.gz", "b.npy.gz", "-"] {
        let words = format!("encrypt plan.json --keys keys/public.key --as right {name} -o b.ct --force");
        piped(&place, &words, &place.read("b.tsv.gz"));
        place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct --force");
        place.ok("decrypt plan.json --keys keys/secret.key c.ct --rows a.csv.gz --columns b.tsv.gz -o c.csv --force");
        assert_eq!(text(place.read("c.csv")), ",x y,z\nanna,7,12\nben,15,26\n", "{name}");
    }
    assert!(place.ok("info a.csv.gz").contains("x, y"));
    place.fails("decrypt plan.json --keys keys/secret.key c.ct -o d.csv.gz", 2, "pack it with gzip");
    place.write("cut.csv.gz", &place.read("a.csv.gz")[..20]);
    place.fails("encrypt plan.json --keys keys/public.key --as left cut.csv.gz -o d.ct", 5, "ends too early");
}

#[test]
fn thousands_that_are_set_apart() {
    let place = Place::new();
    place.ok("plan --left 2x2 --right 2x2 --max-abs 2000 --error 1 -o plan.json");
    place.ok("keygen plan.json -o keys");
    for line in ["\"1,000.5\",2", "1_000,2"] {
        place.write("a.csv", format!("{line}\n3,4\n"));
        let phrase = "a.csv: line 1, column 1 is not a number; write thousands without a separator, as 1000.5";
        place.fails("encrypt plan.json --keys keys/public.key --as left a.csv -o a.ct", 3, phrase);
    }
}

/// Every output of every subcommand: what is there stays, and nothing is computed.
#[test]
fn no_file_is_replaced_unasked() {
    let place = Place::new();
    for (words, outputs) in [
        ("plan --left 2x2 --right 2x2 -o OUT", &["OUT"][..]),
        ("keygen p -o OUT", &["OUT/secret.key", "OUT/public.key", "OUT/eval.keys"]),
        ("encrypt p --keys k --as left a.npy -o OUT", &["OUT"]),
        ("matmul p --keys k a b -o OUT", &["OUT"]),
        ("run p --keys k a b -o OUT", &["OUT"]),
        ("decrypt p --keys k c -o OUT.npy", &["OUT.npy"]),
        ("bits keygen -o OUT", &["OUT/secret.key", "OUT/eval.keys"]),
        ("bits encrypt --keys k x.csv -o OUT", &["OUT"]),
        ("bits run --keys k add x y -o OUT", &["OUT"]),
        ("bits decrypt --keys k x -o OUT.csv", &["OUT.csv"]),
        ("genome panel build a.vcf -o OUT", &["OUT", "OUT.sites"]),
        ("genome keygen -o OUT", &["OUT/secret.key", "OUT/eval.keys"]),
        ("genome query s --keys k --variants v --sample A --region 7:1-2 -o OUT", &["OUT", "OUT.private"]),
        ("genome search p q -o OUT", &["OUT"]),
        ("genome answer s --keys k q a -o OUT", &["OUT"]),
        ("index plan --d 8 --rows 9 --above 0.9 -o OUT", &["OUT"]),
        ("index keygen p -o OUT", &["OUT/secret.key", "OUT/eval.keys"]),
        ("index query p --keys k v.npy -o OUT", &["OUT"]),
        ("index count p --keys k t q -o OUT", &["OUT"]),
        ("index fetch p --keys k t q -o OUT", &["OUT"]),
        ("index scores p --keys k t q -o OUT", &["OUT"]),
        ("man OUT", &["OUT/sudare.1"]),
    ] {
        for (i, output) in outputs.iter().enumerate() {
            let name = |text: &str| text.replace("OUT", &format!("out{i}-{}", words.replace([' ', '/'], "_").len()));
            let file = name(output);
            std::fs::create_dir_all(place.path(&file).parent().unwrap()).unwrap();
            place.write(&file, "precious");
            place.fails(&name(words), 2, &format!("{file}: is there already; name another output, or add --force"));
            std::fs::remove_file(place.path(&file)).unwrap();
        }
    }
    place.write("p.json", "precious");
    place.ok("plan --left 2x2 --right 2x2 --force -o p.json");
    assert_ne!(place.read("p.json"), b"precious");
}

#[test]
fn a_manual_page_of_every_subcommand() {
    let place = Place::new();
    assert!(place.ok("man share/man/man1").contains("pages"));
    let page = |name: &str| text(place.read(&format!("share/man/man1/{name}.1")));
    let first = page("sudare");
    assert!(first.starts_with(".ie") && first.contains(".TH sudare 1") && first.contains("Exit codes"), "{first}");
    for name in ["plan", "encrypt", "bits-run", "genome-panel-build", "index-store", "serve", "token-add", "man"] {
        let page = page(&format!("sudare-{name}"));
        assert!(page.contains(".SH SYNOPSIS") && page.contains(&name.replace('-', " ")), "{page}");
    }
    assert!(!place.path("share/man/man1/sudare-help.1").exists());
}

#[test]
fn completions_of_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.ok(&format!("completion {shell}"));
        assert!(["decrypt", "decimal-comma", "keygen", "bits"].iter().all(|word| script.contains(word)), "{shell}");
    }
    assert_eq!(place.run(&["completion", "tcsh"]).status.code(), Some(2));
}

#[test]
fn integers_to_the_last_digit() {
    let place = Place::new();
    let large = 9_007_199_254_740_991i64;
    place.write("a.csv", format!("{large},1\n-{large},3\n"));
    place.write(
        "b.npy",
        npy("<i8", false, "(2, 1)", &[large, -7].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()),
    );
    let table = place.ok(&format!("plan --left 2x2 --right 2x1 --integers --max-abs {large} -o plan.json"));
    assert!(table.contains("exact"), "{table}");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.csv -o a.ct");
    place.ok("encrypt plan.json --keys keys/secret.key --as right b.npy -o b.ct");
    place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.csv");
    let (l, expected) = (i128::from(large), |x: i128| x.to_string());
    assert_eq!(text(place.read("c.csv")), format!("{}\n{}\n", expected(l * l - 7), expected(-l * l - 21)));
    place.fails("decrypt plan.json --keys keys/secret.key c.ct -o c.npy", 3, ".csv");
    place.write("half.csv", "1,2\n3,4.5\n");
    place.fails("encrypt plan.json --keys keys/secret.key --as left half.csv -o h.ct", 3, "integer");
    place.fails("plan --left 2x2 --right 2x2 --integers --max-abs 0.5 -o p.json", 2, "bound on integers");
    let both = "plan --left 2x2 --right 2x2 --integers --error 1 -o p.json";
    assert_eq!(place.run(&both.split(' ').collect::<Vec<_>>()).status.code(), Some(2));
}

/// A @ B − 3·C + W of batches: under the public key, with a plain input and integers over 64 bits.
#[test]
fn expressions_of_integers() {
    let place = Place::new();
    let (large, sides) = (1u128 << 70, r#""rows": 1, "cols": 1"#);
    let input = |name: &str, bound: u128, plain: bool| {
        format!(
            r#"{{"name": "{name}", {sides}, "max_abs": {:?}, "integers": {bound}, "plain": {plain}}}"#,
            bound as f64
        )
    };
    let inputs = [("A", large, false), ("B", 9, false), ("C", large, false), ("W", 9, true)];
    let inputs = inputs.map(|(name, bound, plain)| input(name, bound, plain)).join(", ");
    let nodes = r#"{"op": "input", "input": 0}, {"op": "input", "input": 1}, {"op": "matmul", "operands": [0, 1]},
        {"op": "input", "input": 2}, {"op": "scale", "by": 3.0, "operands": [3]}, {"op": "sub", "operands": [2, 4]},
        {"op": "input", "input": 3}, {"op": "add", "operands": [5, 6]}"#;
    place.write("e.json", format!(r#"{{"inputs": [{inputs}], "nodes": [{nodes}], "output": 7}}"#));
    let table = place.ok("plan --expression e.json -o plan.json");
    assert!(table.contains("exact"), "{table}");
    place.ok("keygen plan.json -o keys");
    for (name, x) in [("A", -(large as i128)), ("B", 9), ("C", large as i128), ("W", -9)] {
        place.write(&format!("{name}.csv"), format!("{x}\n"));
        if name != "W" {
            place.ok(&format!("encrypt plan.json --keys keys/public.key --as {name} {name}.csv -o {name}.ct"));
        }
    }
    place.ok("run plan.json --keys keys/eval.keys B.ct A.ct C.ct W=W.csv -o r.ct");
    place.ok("decrypt plan.json --keys keys/secret.key r.ct -o r.csv");
    assert_eq!(text(place.read("r.csv")), format!("{}\n", -12 * large as i128 - 9));
    place.write("over.csv", "10\n");
    place.fails("run plan.json --keys keys/eval.keys B.ct A.ct C.ct W=over.csv -o s.ct", 3, "9");
    place.ok("plan --left 1x2 --right 2x1 --integers --max-abs 5 --batch 3 --plain right -o many.json");
    place.ok("keygen many.json -o many");
    let bytes = |values: &[i64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    place.write("l.npy", npy("<i8", false, "(3, 1, 2)", &bytes(&[1, 2, 3, 4, 5, -5])));
    place.write("r.npy", npy("<i8", false, "(3, 2, 1)", &bytes(&[1, 1, 2, 0, 5, 5])));
    place.ok("encrypt many.json --keys many/secret.key --as left l.npy -o l.ct");
    place.ok("matmul many.json --keys many/eval.keys l.ct r.npy -o p.ct");
    place.ok("decrypt many.json --keys many/secret.key p.ct -o p.npy");
    assert!(place.read("p.npy").ends_with(&bytes(&[3, 6, 0])));
}

#[test]
fn statistics_of_a_table_with_names_and_a_release() {
    let place = Place::new();
    place.write("table.csv", "id,height,age\n7,170,20\n8,180,40\n9,160,60\n");
    place.ok("plan --table 3x2 --max-abs 250,120 --release 2 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.fails("encrypt plan.json --keys keys/secret.key --as table table.csv -o t.ct", 3, "3×3");
    place.ok("encrypt plan.json --keys keys/secret.key --as table table.csv --index -o t.ct");
    place.ok("run plan.json --keys keys/eval.keys t.ct -o m.ct");
    let said = place.ok("decrypt plan.json --keys keys/secret.key m.ct --columns table.csv --index --release -o m.csv");
    assert!(said.contains("1 more under this key"), "{said}");
    let shown = text(place.read("m.csv"));
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.iter().map(|line| line[0]).collect::<Vec<_>>(), ["", "mean", "height", "age"]);
    assert_eq!(lines[0][1..], ["height", "age"]);
    let number = |i: usize, j: usize| lines[i][j].parse::<f64>().unwrap();
    let found = [number(1, 1), number(1, 2), number(2, 1), number(2, 2), number(3, 2)];
    assert!(largest_difference(&found, &[170.0, 40.0, 100.0, -100.0, 400.0]) < 1.0, "{shown}");
    place.fails("plan --table 3x2 --max-abs 1,2,3 -o p.json", 2, "give one, or one for each of 2 columns");
}

#[test]
fn bits_are_computed_with() {
    let place = Place::new();
    place.ok("bits keygen --parameters insecure_test -o keys");
    place.write("x.csv", "200,-3\n7,100\n");
    place.write("y.csv", "5,-4\n7,99\n");
    place.ok("bits encrypt --keys keys/secret.key --dtype int16 x.csv -o x.ct");
    place.ok("bits encrypt --keys keys/secret.key --dtype int16 y.csv -o y.ct");
    let decrypted = |operation: &str| {
        place.ok(&format!("bits run --keys keys/eval.keys {operation} --force -o z.ct"));
        place.ok("bits decrypt --keys keys/secret.key z.ct --force -o z.csv");
        text(place.read("z.csv"))
    };
    assert_eq!(decrypted("add x.ct y.ct"), "205,-7\n14,199\n");
    assert_eq!(decrypted("maximum x.ct y.ct"), "200,-3\n7,100\n");
    assert_eq!(decrypted("less x.ct 8"), "0,1\n1,0\n");
    assert_eq!(decrypted("subtract x.ct -1"), "201,-2\n8,101\n");
    assert_eq!(decrypted("negative x.ct"), "-200,3\n-7,-100\n");
    place.fails(
        "bits encrypt --keys keys/secret.key --dtype int8 x.csv -o w.ct",
        3,
        "element 0, counted from 0, does not fit int8",
    );
    place.fails("bits run --keys keys/eval.keys plus x.ct y.ct -o w.ct", 2, "bitwise_and");
    place.fails("bits run --keys keys/eval.keys add x.ct -o w.ct", 2, "takes two arrays");
    place.fails("bits run --keys keys/eval.keys add x.ct 40000 -o w.ct", 2, "does not fit int16");
    place.fails("bits keygen -o other --parameters gate", 2, "gates");
    place.ok("bits keygen --parameters insecure_test_gates -o gates");
    place.fails("bits run --keys gates/eval.keys add x.ct y.ct -o w.ct", 4, "other parameters");
    place.fails("bits keygen --parameters insecure_test -o keys", 2, "--force");
}
