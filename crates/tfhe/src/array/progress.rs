//! How far an operation on an array has come.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Is called with the steps done and the steps in all, from any thread.
pub type Progress<'p> = &'p (dyn Fn(usize, usize) + Sync);

/// Fractions of a part that are reported.
const FRACTIONS: usize = 1000;

/// Reports the progress of operations, each of which may be a part of a longer one.
#[derive(Default)]
pub(crate) struct Observer<'p> {
    progress: Option<Progress<'p>>,
    part: AtomicUsize,
    /// Parts of the longer operation; 0 where there is none.
    parts: AtomicUsize,
}

impl<'p> Observer<'p> {
    pub(crate) fn new(progress: Progress<'p>) -> Self {
        Self { progress: Some(progress), ..Self::default() }
    }

    /// What follows is part number `part` of `parts`.
    pub(crate) fn at(&self, part: usize, parts: usize) {
        self.part.store(part, Ordering::Relaxed);
        self.parts.store(parts, Ordering::Relaxed);
        if part > 0 {
            self.report(0, 1);
        }
    }

    /// So many steps of the part are done.
    fn report(&self, done: usize, steps: usize) {
        let Some(progress) = self.progress else { return };
        match (self.part.load(Ordering::Relaxed), self.parts.load(Ordering::Relaxed)) {
            (_, 0) => progress(done, steps),
            (part, parts) => progress(part * FRACTIONS + done * FRACTIONS / steps.max(1), parts * FRACTIONS),
        }
    }

    /// Counts the steps of one operation, which end on any thread.
    pub(crate) fn counting(&self, steps: usize) -> impl Fn(usize) + Sync + '_ {
        let done = AtomicUsize::new(0);
        move |more| self.report(done.fetch_add(more, Ordering::Relaxed) + more, steps)
    }
}
