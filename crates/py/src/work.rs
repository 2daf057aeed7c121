//! Long work that the interpreter can end.

use crate::error::{Refusal, Result, raised};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use sudare_ring::ErrorKind;
use sudare_ring::interrupt::Interrupt;
use sudare_session::Progress;

/// Most threads that one object is given.
const MAX_THREADS: u16 = 4096;

/// Runs work without the interpreter's lock. Every 50 ms the caller's thread runs the handlers of
/// signals that came in; what they raise (a `KeyboardInterrupt`) ends the work and is raised here.
pub fn long<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    with_progress(py, None, |_| work())
}

/// Bytes for Python, which work makes without the interpreter's lock.
pub fn bytes<'py, B: AsRef<[u8]> + Send>(
    py: Python<'py>,
    work: impl FnOnce() -> Result<B> + Send,
) -> Result<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, long(py, work)?.as_ref()))
}

/// The same for work that tells how far it has come: a callable of (done, all) is called by the
/// caller's thread, and what it raises ends the work too.
pub fn with_progress<T: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(Progress<'_>) -> Result<T> + Send,
) -> Result<T> {
    let listener = Arc::new(Listener { callback, ..Listener::default() });
    let interrupt = Interrupt::watching({
        let listener = listener.clone();
        move || Python::attach(|py| listener.keep(py.check_signals().and_then(|()| listener.show(py))))
    });
    let done = py.detach(|| interrupt.run(|| work(&|done, all| listener.tell(done, all))));
    if matches!(done, Ok(Ok(_))) {
        listener.keep(listener.show(py));
    }
    match (listener.raised(), done) {
        (Some(error), _) => Err(Refusal::Raised(error)),
        (None, Ok(result)) => result,
        (None, Err(interrupted)) => Err(Refusal::Raised(PyKeyboardInterrupt::new_err(interrupted.to_string()))),
    }
}

/// How often the caller's thread looks up from what another one waits for.
const EVERY: Duration = Duration::from_millis(50);

/// Waits for a remote machine on a thread of its own, so that handlers of signals run and the callable of (done, all) is
/// called meanwhile. What they raise is raised at once: the thread, which holds nothing of the caller, ends when the machine
/// has answered or its time is over.
pub fn away<T: Send + 'static, E: Send + 'static>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    refused: impl Fn(E) -> Refusal,
    work: impl FnOnce(&dyn Fn(u64, u64)) -> std::result::Result<T, E> + Send + 'static,
) -> Result<T> {
    let listener = Arc::new(Listener { callback, ..Listener::default() });
    let (done, answer) = sync_channel(1);
    let tells = listener.clone();
    std::thread::spawn(move || {
        let tell = |done, all| {
            tells.tell(usize::try_from(done).unwrap_or(usize::MAX), usize::try_from(all).unwrap_or(usize::MAX))
        };
        // Nobody may listen any more.
        let _ = done.send(work(&tell));
    });
    let answer = Mutex::new(answer);
    loop {
        let heard = py.detach(|| answer.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(EVERY));
        let looked = py.check_signals().and_then(|()| listener.show(py)).map_err(Refusal::Raised);
        match heard {
            Ok(found) => return looked.and_then(|()| found.map_err(&refused)),
            Err(RecvTimeoutError::Timeout) => looked?,
            Err(RecvTimeoutError::Disconnected) => {
                let words = "the thread that asked a remote server ended without an answer: an error in Sudare; \
                             please report it";
                return Err(Refusal::Refused(ErrorKind::Internal, words.into()));
            }
        }
    }
}

/// A number of threads; 0 for one for each processor.
pub struct Workers(pub usize);

impl<'a, 'py> FromPyObject<'a, 'py> for Workers {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.extract::<u16>() {
            Ok(count) if count <= MAX_THREADS => Ok(Self(count.into())),
            _ => {
                let shown = given.repr()?;
                let text = format!("threads is a whole number from 0 to {MAX_THREADS}, not {shown}");
                Err(raised(given.py(), ErrorKind::Input, &text))
            }
        }
    }
}

/// What the work tells, and what listening to it raised.
#[derive(Default)]
struct Listener {
    callback: Option<Py<PyAny>>,
    done: AtomicUsize,
    all: AtomicUsize,
    shown: AtomicUsize,
    raised: Mutex<Option<PyErr>>,
}

impl Listener {
    /// From any thread.
    fn tell(&self, done: usize, all: usize) {
        self.all.store(all, Ordering::Relaxed);
        self.done.fetch_max(done, Ordering::Relaxed);
    }

    /// Calls the callable if there is something new.
    fn show(&self, py: Python<'_>) -> PyResult<()> {
        let (done, all) = (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        match &self.callback {
            Some(callback) if all > 0 && done > self.shown.swap(done, Ordering::Relaxed) => {
                callback.call1(py, (done, all)).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Keeps the first error; whether this is one.
    fn keep(&self, found: PyResult<()>) -> bool {
        let Err(error) = found else { return false };
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        true
    }

    fn raised(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
