//! Progress of long work, at a terminal only.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Bars go to standard error, and only if a person is looking.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar for countable steps.
    pub fn steps(what: &'static str, quiet: bool) -> Self {
        Self::new(quiet, || {
            let style = ProgressStyle::with_template("{msg:<22} [{bar:30}] {percent:>3} % {pos}/{len} {eta}");
            let bar = ProgressBar::new(0).with_message(what);
            if let Ok(style) = style { bar.with_style(style) } else { bar }
        })
    }

    /// A clock for work of about so many seconds.
    pub fn clock(what: &'static str, seconds: f64, quiet: bool) -> Self {
        Self::new(quiet, || {
            let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let bar = ProgressBar::new_spinner().with_message(format!("{what}, about {seconds:.1} s:"));
            bar.enable_steady_tick(Duration::from_millis(100));
            if let Ok(style) = style { bar.with_style(style) } else { bar }
        })
    }

    fn new(quiet: bool, make: impl FnOnce() -> ProgressBar) -> Self {
        Self((!quiet && std::io::stderr().is_terminal()).then(make))
    }

    /// How far it has come.
    pub fn set(&self, done: usize, all: usize) {
        if let Some(bar) = &self.0 {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
