//! Products, expressions, plans, sessions and statistics, against plain arithmetic.

mod child;
mod coefficient;
mod common;
mod context;
#[cfg(feature = "emulate")]
mod device;
mod exact;
mod expressions;
mod files;
#[allow(dead_code, unreachable_pub)]
mod fuzz;
mod golden;
mod grid;
mod integers;
mod module;
mod packing;
mod planning;
mod promise;
mod refresh;
mod release;
mod session;
mod slots;
mod statistics;
mod stored;
mod table;
mod tables;
mod tiles;
