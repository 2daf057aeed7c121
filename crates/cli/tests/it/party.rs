//! A session of several parties, each command in a process of its own.

use crate::common::*;

#[test]
fn three_parties_by_files_alone() {
    let place = Place::new();
    let (a, b) = (values(6, 1), values(6, 2));
    place.matrix("a.csv", 2, 3, &a);
    place.matrix("b.csv", 2, 3, &b);
    place.write(
        "sum.json",
        br#"{"inputs": [{"name": "A", "rows": 2, "cols": 3, "max_abs": 1.0}, {"name": "B", "rows": 2, "cols": 3, "max_abs": 1.0}],
            "nodes": [{"op": "input", "input": 0}, {"op": "input", "input": 1}, {"op": "add", "operands": [0, 1]}], "output": 2}"#,
    );
    let shown = place.ok("plan --expression sum.json --error 1e-6 --parties 3 --threshold 2 --release 5 -o plan.json");
    assert!(shown.contains("3 parties, any 2 of whom decrypt"), "{shown}");
    place.ok("party init room --plan plan.json --names north,south,west");
    for name in ["north", "south", "west", "office"] {
        place.ok(&format!("party join room --as {name} --home {name}"));
    }
    let waits = place.ok("party round room --home north");
    assert!(waits.contains("public   waits for south, west"), "{waits}");
    place.fails("party combine room -o keys", 3, "[1, 2]");
    for name in ["south", "west", "north"] {
        place.ok(&format!("party round room --home {name}"));
    }
    for name in ["south", "west"] {
        place.ok(&format!("party round room --home {name}"));
    }
    place.ok("party combine room -o keys");
    for (name, file) in [("A", "a"), ("B", "b")] {
        place.ok(&format!("encrypt plan.json --keys keys/public.key --as {name} {file}.csv -o {file}.ct"));
    }
    place.ok("run plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    let asked = place.ok("party share room c.ct --home north --by north,west --to office");
    assert!(asked.contains("waits for west"), "{asked}");
    place.fails("party combine room c.ct --home office -o c.csv", 3, "[2]");
    place.fails("party share room c.ct --home south --by south,west --to office", 4, "answered once");
    let agreed = place.ok("party share room c.ct --home west");
    assert!(agreed.contains("north, west decrypt it for office; all have answered"), "{agreed}");
    place.ok("party combine room c.ct --home office -o c.csv");
    let (rows, cols, c) = place.load("c.csv");
    assert_eq!((rows, cols), (2, 3));
    let expected: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    assert!(largest_difference(&c, &expected) < 1e-6, "{c:?}");
    place.fails("keygen plan.json -o alone", 4, "hold the key together");
    place.fails("party combine room c.ct --home south -o d.csv", 4, "for south");
}
