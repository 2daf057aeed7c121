//! What the fuzz targets of plans, stores and shared folders check, for their seeds and some changes of each; `make fuzz` goes on from there.

#[path = "../../../../fuzz/src/mutation.rs"]
mod mutation;
#[path = "../../../../fuzz/src/parties.rs"]
mod parties;
#[path = "../../../../fuzz/src/plans.rs"]
mod plans;
#[path = "../../../../fuzz/src/stores.rs"]
mod stores;

#[test]
fn plans_that_anybody_wrote_keep_their_promise() {
    let (seeds, changed) = mutation::smoke(&plans::seeds(), 40, plans::mutate, plans::check);
    assert!(seeds == plans::seeds().len() && changed > 10, "{seeds} and {changed} are taken");
}

#[test]
fn stores_that_anybody_changed_are_what_was_written_or_refused() {
    let (seeds, changed) = mutation::smoke(&stores::seeds(), 20, stores::mutate, stores::check);
    assert!(seeds >= 3 && changed > 10, "{seeds} and {changed} are taken");
}

#[test]
fn messages_in_a_shared_folder_are_taken_as_they_were_written_or_refused() {
    let (seeds, _) = mutation::smoke(&parties::seeds(), 400, parties::mutate, parties::check);
    assert_eq!(seeds, parties::seeds().len());
}
