//! A session of several parties, each command in a process of its own.

use crate::common::*;
#[cfg(unix)]
use crate::serve::Server;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn three_parties_by_files_alone() {
    three_parties(&Place::new(), || "room".to_owned());
}

/// The same at a server, which is killed before every command: what was sent is there.
#[cfg(unix)]
#[test]
fn three_parties_at_a_server() {
    let place = Place::new();
    let token = place.ok("token add clinic --tokens tokens");
    place.write("token", token.trim());
    let mut running: Option<Server> = None;
    let room = || {
        if let Some(mut server) = running.take() {
            server.signal("-KILL");
            assert_eq!(server.wait(), None);
        }
        let server = running.insert(Server::start(&place, &[]));
        format!("study --server http://{} --token-file token", server.address)
    };
    three_parties(&place, room);
    assert!(!place.path("study").exists());
    place.fails("party round study --home north --server http://127.0.0.1:1 --token-file token", 7, "127.0.0.1:1");
}

/// Commands that wait make the keys of a product, each started once; one is killed and started again.
fn by_waiting(place: &Place, room: &str) {
    place.ok("plan --left 2x3 --right 3x2 --error 1e-2 --parties 3 --threshold 2 --release 5,20 -o product.json");
    place.ok(&format!("party init {room} --plan product.json --names north,south,west"));
    for name in ["north", "south", "west"] {
        place.ok(&format!("party join {room} --as {name} --home {name}"));
    }
    let words = |name: &str| format!("party round {room} --home {name}");
    let start = |name: &str| {
        let words = format!("{} --wait=300", words(name));
        let mut command = place.command(&words.split(' ').collect::<Vec<_>>());
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    place.ok(&words("north"));
    place.fails(&format!("{} --wait=1", words("north")), 3, "messages of south, west have not come in 1 s");
    let mut ended = start("north");
    let mut line = String::new();
    BufReader::new(ended.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waits for south, west"), "{line}");
    let south = start("south");
    ended.kill().unwrap();
    ended.wait().unwrap();
    for child in [south, start("west"), start("north")] {
        let out = child.wait_with_output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success() && text.trim_end().ends_with("made by sudare party combine"), "{text}");
    }
    place.ok(&format!("party combine {room} -o made"));
    assert!(place.path("made/eval.keys").exists());
    // Each has taken over what the others sent: it can decrypt.
    for name in ["north", "south", "west"] {
        assert!(place.ok(&words(name)).contains("nobody is missing"));
    }
}

#[test]
fn commands_that_wait_by_files_alone() {
    by_waiting(&Place::new(), "room");
}

#[cfg(unix)]
#[test]
fn commands_that_wait_at_a_server() {
    let place = Place::new();
    place.write("token", place.ok("token add clinic --tokens tokens").trim());
    let server = Server::start(&place, &[]);
    by_waiting(&place, &format!("study --server http://{} --token-file token", server.address));
}

/// A session in the room that each command names.
fn three_parties(place: &Place, mut room: impl FnMut() -> String) {
    let ok = |words: &str, room: String| place.ok(&words.replace(" room", &format!(" {room}")));
    let fails = |words: &str, room: String, code: i32, told: &str| {
        place.fails(&words.replace(" room", &format!(" {room}")), code, told);
    };
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
    ok("party init room --plan plan.json --names north,south,west", room());
    for name in ["north", "south", "office"] {
        let shown = ok(&format!("party join room --as {name} --home {name}"), room());
        assert!(shown.contains("not joined yet; once they have, run this again"), "{shown}");
        assert_eq!(shown.contains("south, west have not"), name == "north", "{shown}");
    }
    let west = ok("party join room --as west --home west", room());
    let north = ok("party join room --as north --home north", room());
    assert!(west == north && north.lines().count() == 5 && north.contains("before the first round"), "{north}");
    let waits = ok("party round room --home north", room());
    assert!(waits.contains("public   waits for south, west"), "{waits}");
    fails("party combine room -o keys", room(), 3, "messages of south, west have not come");
    for name in ["south", "west", "north"] {
        ok(&format!("party round room --home {name}"), room());
    }
    for name in ["south", "west"] {
        ok(&format!("party round room --home {name}"), room());
    }
    ok("party combine room -o keys", room());
    for (name, file) in [("A", "a"), ("B", "b")] {
        place.ok(&format!("encrypt plan.json --keys keys/public.key --as {name} {file}.csv -o {file}.ct"));
    }
    place.ok("run plan.json --keys keys/eval.keys a.ct b.ct -o c.ct");
    // South may not ask for others, and leaves no request behind.
    fails("party share room c.ct --home south --by north,west --to south", room(), 4, "south is not among the parties");
    fails("party share room c.ct --home west", room(), 4, "nobody has asked");
    let asked = ok("party share room c.ct --home north --by north,west --to office", room());
    assert!(asked.contains("waits for west"), "{asked}");
    fails("party combine room c.ct --home office -o c.csv", room(), 3, "messages of west have not come");
    fails("party share room c.ct --home south --by south,west --to office", room(), 4, "answered once");
    // West sees who reads it before it agrees.
    let shown = ok("party share room c.ct --home west", room());
    assert!(shown.contains("north, west decrypt it for office; it waits for west\nnothing was sent"), "{shown}");
    let status = ok("party status room --home north", room());
    assert!(
        status.contains("nobody is missing") && status.contains("decrypt it for office; it waits for west"),
        "{status}"
    );
    assert!(status.contains("north has 4 of 5 releases left"), "{status}");
    let agreed = ok("party share room c.ct --home west --agree", room());
    assert!(agreed.contains("north, west decrypt it for office; all have answered"), "{agreed}");
    let again = ok("party share room c.ct --home west --by west,north --to office", room());
    assert_eq!(again, agreed.replace("north, west", "west, north"));
    ok("party combine room c.ct --home office -o c.csv", room());
    let (rows, cols, c) = place.load("c.csv");
    assert_eq!((rows, cols), (2, 3));
    let expected: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    assert!(largest_difference(&c, &expected) < 1e-6, "{c:?}");
    place.fails("keygen plan.json -o alone", 4, "hold the key together");
    fails("party combine room c.ct --home south -o d.csv", room(), 4, "for south");
}
