//! An encrypted search from files, each command in a process and each side in a folder of its own.

use crate::common::*;
use std::fs;

#[test]
fn a_table_is_stored_asked_and_answered() {
    let place = Place::new();
    let plan = "index plan --d 8 --rows 20000 --above 0.9 --gap 0.75,0.97 --payload 2x10 -o plan.json";
    let text = place.ok(plan);
    assert!(text.contains("128 bits of security") && text.contains("the server learns"), "{text}");
    place.ok("index keygen plan.json -o keys");
    place.fails("index keygen plan.json -o keys", 2, "there is a key already");
    // Eight axes; rows 0 and 8 are one.
    let row = |i: usize| (0..8).map(|j| if i % 8 == j { "2.5" } else { "0" }).collect::<Vec<_>>().join(",") + "\n";
    fs::write(place.path("v.csv"), (0..9).map(row).collect::<String>()).unwrap();
    fs::write(place.path("p.csv"), (0..9).map(|i| format!("{i},{}\n", 1000 + i)).collect::<String>()).unwrap();
    place.fails("index store plan.json --keys keys/secret.key v.csv -o table", 3, "payload");
    place.ok("index store plan.json --keys keys/secret.key v.csv --payload p.csv -o table");
    place.ok("index discard plan.json --keys keys/secret.key table");
    fs::write(place.path("q.csv"), row(0) + &row(3)).unwrap();
    place.ok("index query plan.json --keys keys/secret.key q.csv -o q");
    place.ok("index count plan.json --keys keys/eval.keys table q -o count");
    assert_eq!(place.ok("index answer plan.json --keys keys/secret.key count"), "2\n1\n");
    place.ok("index fetch plan.json --keys keys/eval.keys table q -o fetch");
    assert_eq!(place.ok("index answer plan.json --keys keys/secret.key fetch"), "0,0,0,1000\n0,8,8,1008\n1,3,3,1003\n");
    place.fails("index count plan.json --keys keys/eval.keys q q -o other", 7, "q/table.json");
    place.fails("index answer plan.json --keys keys/secret.key q", 4, "another plan");
}
