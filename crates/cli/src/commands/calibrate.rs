//! `sudare calibrate`.

use super::{print, say};
use crate::args;
use crate::error::CliError;
use crate::files;
use crate::progress::Bar;
use std::io;
use std::time::Instant;
use sudare_plan::CostModel;
use sudare_ring::ErrorKind;
use sudare_session::machine;

pub fn calibrate(args: &args::Args, a: &args::Calibrate) -> Result<(), CliError> {
    let bar = Bar::clock("measuring this machine", 3.0, args.quiet);
    let start = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let model = CostModel::measure(machine::name(), threads, &|| start.elapsed())?;
    drop(bar);
    if a.json {
        let text =
            serde_json::to_string_pretty(&model).map_err(|e| CliError::new(ErrorKind::Internal, e.to_string()))?;
        print(text)?;
    } else {
        say(args, table(&model))?;
    }
    let folder = files::cache_folder()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "neither XDG_CACHE_HOME nor HOME is set"))?;
    let path = machine::store(&model, &folder)?;
    if a.json { Ok(()) } else { say(args, format!("kept in {}", path.display())) }
}

/// The figures for a person.
fn table(model: &CostModel) -> String {
    let mut lines = vec![
        format!("{}, kernels {} below 2^50 and {} above", model.machine, model.kernels[0], model.kernels[1]),
        "         N   NTT below 2^50   larger   pass below 2^50   larger   term below 2^50   larger   (µs)".into(),
    ];
    lines.extend(model.degrees.iter().map(|d| {
        format!(
            "{:>10} {:>16.1} {:>8.1} {:>17.1} {:>8.1} {:>17.1} {:>8.1}",
            1u64 << d.log_n.min(63),
            d.ntt_ns / 1e3,
            d.ntt_wide_ns / 1e3,
            d.pass_ns / 1e3,
            d.pass_wide_ns / 1e3,
            d.term_ns / 1e3,
            d.term_wide_ns / 1e3
        )
    }));
    lines.push(format!(
        "multiply-accumulate {:.3} ns, {:.3} below 2^26, keys {:.1} GB/s, {} threads of which each adds {:.0} %",
        model.mac_ns,
        model.mac_narrow_ns,
        model.key_bandwidth / 1e9,
        model.threads,
        model.thread_gain * 100.0
    ));
    lines.join("\n")
}
