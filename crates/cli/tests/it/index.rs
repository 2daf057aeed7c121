//! An encrypted search from files, each command in a process and each side in a folder of its own.

use crate::common::*;
use crate::serve::Server;
use std::fs;

#[test]
fn a_table_is_stored_asked_and_answered() {
    let place = Place::new();
    let plan = "index plan --d 8 --rows 20000 --above 0.9 --gap 0.75,0.97 --payload 2x16 -o plan.json";
    let text = place.ok(plan);
    assert!(text.contains("128 bits of security") && text.contains("the server learns"), "{text}");
    place.ok("index keygen plan.json -o keys");
    place.fails("index keygen plan.json -o keys", 2, "there is a key already");
    // Eight axes; rows 0 and 8 are one.
    let row = |i: usize| (0..8).map(|j| if i % 8 == j { "2.5" } else { "0" }).collect::<Vec<_>>().join(",") + "\n";
    fs::write(place.path("v.csv"), (0..9).map(row).collect::<String>()).unwrap();
    fs::write(place.path("p.csv"), (0..9).map(|i| format!("{i},{}\n", -1000 - i)).collect::<String>()).unwrap();
    // The same plan to the server, whose owner has numbers of another type, as Python saves it.
    let text = fs::read_to_string(place.path("plan.json")).unwrap();
    for dtype in ["i2", "f2"] {
        let typed = text.replace("\"bits\": 16", &format!("\"bits\": 16, \"dtype\": \"{dtype}\""));
        fs::write(place.path(&format!("{dtype}.json")), typed).unwrap();
    }
    place.fails("index store i2.json --keys keys/secret.key v.csv -o table", 3, "payload");
    for (plan, dtype) in [("plan", "u2"), ("f2", "f2")] {
        let store = format!("index store {plan}.json --keys keys/secret.key v.csv --payload p.csv -o table");
        place.fails(&store, 3, &format!("payloads of this plan are {dtype}"));
    }
    place.ok("index store i2.json --keys keys/secret.key v.csv --payload p.csv -o table");
    place.ok("index discard plan.json --keys keys/secret.key table");
    fs::write(place.path("q.csv"), row(0) + &row(3)).unwrap();
    place.ok("index query plan.json --keys keys/secret.key q.csv -o q");
    place.ok("index count plan.json --keys keys/eval.keys table q -o count");
    assert_eq!(place.ok("index answer plan.json --keys keys/secret.key count"), "2\n1\n");
    place.ok("index fetch plan.json --keys keys/eval.keys table q -o fetch");
    assert_eq!(
        place.ok("index answer i2.json --keys keys/secret.key fetch"),
        "0,0,0,-1000\n0,8,8,-1008\n1,3,3,-1003\n"
    );
    let unsigned = "0,0,0,64536\n0,8,8,64528\n1,3,3,64533\n";
    assert_eq!(place.ok("index answer plan.json --keys keys/secret.key fetch"), unsigned);
    place.fails("index answer f2.json --keys keys/secret.key fetch", 3, "payloads of this plan are f2");
    place.fails("index count plan.json --keys keys/eval.keys q q -o other", 7, "q/table.json");
    place.fails("index answer plan.json --keys keys/secret.key q", 4, "another plan");
}

#[test]
fn a_table_at_a_server_answers_as_one_here() {
    // A server's folder changes also where nothing does at a client.
    let (place, there) = (Place::new(), Place::new());
    fs::write(place.path("token"), there.ok("token add clinic --tokens tokens")).unwrap();
    place.ok("index plan --d 4 --rows 20000 --above 0.9 --gap 0.75,0.97 -o plan.json");
    place.ok("index keygen plan.json -o keys");
    let row = |i: usize| (0..4).map(|j| if i % 4 == j { "1" } else { "0" }).collect::<Vec<_>>().join(",") + "\n";
    fs::write(place.path("v.csv"), (0..6).map(row).collect::<String>()).unwrap();
    place.ok("index store plan.json --keys keys/secret.key v.csv -o table");
    fs::write(place.path("q.csv"), row(1) + &row(2)).unwrap();
    place.ok("index query plan.json --keys keys/secret.key q.csv -o q");
    let server = Server::start(&there, &[]);
    let far = format!("--server http://{} --token-file token", server.address);
    place.fails(&format!("index count plan.json axes q -o count {far}"), 4, "no such table");
    let send = format!("index send plan.json --keys keys/eval.keys table axes {far}");
    assert!(place.ok(&send).contains("6 rows at http://"));
    place.ok(&format!("index count plan.json axes q -o count {far}"));
    assert_eq!(place.ok("index answer plan.json --keys keys/secret.key count"), "2\n1\n");
    place.ok("index append plan.json --keys keys/secret.key q.csv -o table");
    assert!(place.ok(&send).contains("8 rows at http://"));
    place.ok(&format!("--force index count plan.json axes q --above 0.9,0.85 -o count {far}"));
    assert_eq!(place.ok("index answer plan.json --keys keys/secret.key count"), "3,3\n2,2\n");
    place.fails("index send plan.json --keys keys/eval.keys table axes", 2, "--server");
}

#[test]
fn rows_in_the_clear_are_scored() {
    let place = Place::new();
    place.ok("index plain keygen --d 3 -o asker.key");
    place.fails("index plain keygen --d 3 -o asker.key", 2, "there");
    fs::write(place.path("rows.csv"), "1,0,0\n0,2,0\n-3,0,0\n").unwrap();
    fs::write(place.path("q.csv"), "5,0,0\n").unwrap();
    place.ok("index plain query --d 3 --keys asker.key q.csv -o q");
    place.ok("index plain scores --d 3 rows.csv q -o scores");
    let line = place.ok("index plain answer --d 3 --keys asker.key scores");
    let found: Vec<f64> = line.trim().split(',').map(|x| x.parse().unwrap()).collect();
    assert!(
        found.iter().zip([1.0, 0.0, -1.0]).all(|(x, exact)| (x - exact).abs() < 1e-3) && found.len() == 3,
        "{line}"
    );
    place.ok("index plain keygen --d 3 -o other.key");
    place.fails("index plain answer --d 3 --keys other.key scores", 4, "scores");
    place.fails("index plain scores --d 2 rows.csv q -o other", 4, "another plan");
}
