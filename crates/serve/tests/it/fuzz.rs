//! What the fuzz target of connections checks, for its seeds and some changes of each; `make fuzz` goes on from there.

#[path = "../../../../fuzz/src/mutation.rs"]
mod mutation;
#[path = "../../../../fuzz/src/requests.rs"]
mod requests;

#[test]
fn whatever_a_connection_brings_is_answered_by_the_protocol() {
    let (seeds, changed) = mutation::smoke(&requests::seeds(), 15, requests::mutate, requests::check);
    assert!(seeds >= 7 && changed > 10, "{seeds} and {changed} are granted");
}
