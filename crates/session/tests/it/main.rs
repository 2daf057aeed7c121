//! Products, expressions, plans, sessions and statistics, against plain arithmetic.

mod arrays;
mod child;
mod common;
mod context;
#[cfg(feature = "emulate")]
mod device;
mod exact;
mod expressions;
mod files;
#[allow(dead_code, unreachable_pub)]
mod fuzz;
mod integers;
mod parties;
mod promise;
mod refresh;
mod release;
mod session;
mod small;
mod stored;
mod table;
mod tables;
