//! What happens when a signal ends the command: its scratch files go with it.

use crate::files;
use std::sync::{Mutex, PoisonError};

/// What the next signal does instead of ending the command.
static GENTLY: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Has the next signal ask for an end; the one after it ends the command at once.
pub fn end_gently(ask: impl Fn() + Send + 'static) {
    *GENTLY.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(ask));
}

/// Ctrl-C and a request to end. A closed terminal leaves files that the next run removes: whether
/// that signal is to be ignored is for `nohup` to say.
#[cfg(unix)]
const ENDING: [i32; 2] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];

/// Waits for signals on a thread of its own, but for those that whoever started the command has it
/// ignore.
#[cfg(unix)]
pub fn listen() {
    let heard: Vec<i32> = ENDING.into_iter().filter(|signal| !ignored(*signal)).collect();
    // Without the thread, signals end the command as they always do.
    let Ok(mut signals) = signal_hook::iterator::Signals::new(heard) else { return };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            let gently = GENTLY.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(ask) = gently {
                ask();
                continue;
            }
            files::remove_scratch();
            // Ends the process as if nobody had listened.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
}

/// Has a hangup do something instead of ending the command: administrators send it to have files read again.
#[cfg(unix)]
pub fn on_hangup(heard: impl Fn() + Send + 'static) {
    let hangup = signal_hook::consts::SIGHUP;
    if ignored(hangup) {
        return;
    }
    let Ok(mut signals) = signal_hook::iterator::Signals::new([hangup]) else { return };
    let _ = std::thread::Builder::new().name("hangup".into()).spawn(move || signals.forever().for_each(|_| heard()));
}

/// Whether the process was started with a signal ignored, as shells do for work in the background.
#[cfg(unix)]
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Nothing is listened to elsewhere.
#[cfg(not(unix))]
pub fn listen() {
    let _ = (files::remove_scratch, &GENTLY);
}

/// There is no such signal elsewhere.
#[cfg(not(unix))]
pub fn on_hangup(_heard: impl Fn() + Send + 'static) {}
