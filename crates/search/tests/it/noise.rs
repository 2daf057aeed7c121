//! What plans predict of errors, measured.

use crate::world::*;
use sudare_search::Goal;
use sudare_testkit::{Random, sized};

/// Errors of indicators add up over all rows: the mean error times the rows of the plan stays under a tenth.
#[test]
fn the_bias_of_indicators_is_small() {
    let mut random = Random(21);
    let world = World::small(Goal { payload: None, ..goal(50_000) });
    world.counts_within_plan(&mut random, 1500, [sized(4, 25), 4]);
}
