//! Progress of long work, at a terminal only.

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::fmt::Write;
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

    /// A bar for work that says nothing of itself, by the time that it should take.
    pub fn clock(what: &'static str, seconds: f64, quiet: bool) -> Self {
        Self::new(quiet, || {
            let template = format!("{{msg:<22}} [{{filled}}] {{part}} {{elapsed}} of about {seconds:.1} s");
            let filled = move |state: &ProgressState, out: &mut dyn Write| {
                let full = (30.0 * spent(state.elapsed(), seconds)) as usize;
                let _ = write!(out, "{:<30}", "█".repeat(full));
            };
            let part = move |state: &ProgressState, out: &mut dyn Write| {
                let _ = write!(out, "{:>3} %", (100.0 * spent(state.elapsed(), seconds)) as usize);
            };
            let style = ProgressStyle::with_template(&template);
            let bar = ProgressBar::new_spinner().with_message(what);
            bar.enable_steady_tick(Duration::from_millis(100));
            if let Ok(style) = style {
                bar.with_style(style.with_key("filled", filled).with_key("part", part))
            } else {
                bar
            }
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

/// The part of a forecast that is over; all of it only when the work says so.
fn spent(elapsed: Duration, seconds: f64) -> f64 {
    (elapsed.as_secs_f64() / seconds.max(1e-3)).min(0.99)
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_is_never_over_by_itself() {
        let at = |seconds| spent(Duration::from_secs_f64(seconds), 4.0);
        assert_eq!((at(0.0), at(1.0), at(4.0), at(400.0)), (0.0, 0.25, 0.99, 0.99));
        assert_eq!(spent(Duration::from_secs(1), 0.0), 0.99);
    }
}
