//! A process of its own that multiplies stored matrices, to be killed or measured.

use std::path::Path;
use std::time::Duration;
use sudare_expr::{Expr, InputSpec};
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::wire::Wire;
use sudare_session::Server;
use sudare_session::{OutOfCore, Stored};
use sudare_store::Existing;

/// The folder of the child's work.
pub const CHILD: &str = "SUDARE_STORED_CHILD";

pub fn plan(method: &str, (m, k, n): (usize, usize, usize), batch: usize) -> Plan {
    let (a, b) = (InputSpec::new("A", (m, k), 1.0), InputSpec::new("B", (k, n), 1.0));
    let goal = Goal { batch, ..Goal::new(Expr::product(a, b).unwrap(), 1e-4) };
    Planner { method: Some(method.into()), ..Planner::new(CostModel::default()) }.plan(&goal).unwrap()
}

/// Something more than the least, so that there are several tiles of several blocks.
pub fn memory(least: u64) -> u64 {
    least + (80 << 20)
}

fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn multiplies() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let folder = Path::new(&folder);
    let memory = std::env::var("SUDARE_STORED_MEMORY").unwrap().parse().unwrap();
    let (a, b) = (Stored::open(&folder.join("a")).unwrap(), Stored::open(&folder.join("b")).unwrap());
    let keys = EvalKeys::from_bytes(a.plan().params(), &std::fs::read(folder.join("keys")).unwrap()).unwrap();
    let server = Server::new(a.plan(), keys, 2).unwrap();
    println!("before={}", status("VmRSS"));
    let options = OutOfCore { memory, existing: Existing::Resume };
    // Slow enough to be killed on the way, if it is to be.
    let pause = std::env::var("SUDARE_STORED_PAUSE").map_or(0, |ms| ms.parse().unwrap());
    let slowly = |_, _| std::thread::sleep(Duration::from_millis(pause));
    let done = server.matmul_stored(&a, &b, &folder.join("c"), options, &slowly).unwrap();
    println!("peak={}", status("VmHWM"));
    println!("read={}", done.read_bytes);
}
