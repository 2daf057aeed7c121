//! Tests that need a process of their own, or the system.

use std::collections::HashSet;
use std::ffi::CString;
use std::io::{self, Read, Write, pipe};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time: what another test holds is no leak, and a forked child must not find a lock that another thread
/// held.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this process makes of `work`, and what a forked child makes of it at the same time. Only for a test that is
/// [`alone`].
pub fn in_both(mut work: impl FnMut() -> Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let (mut receive, mut send) = pipe().unwrap();
    // SAFETY: no other thread of this process runs (the harness waits for this one), so the child
    // may go on as the parent does; it leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        drop(receive);
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| send.write_all(&work())));
        // SAFETY: the child ends here, without the parent's destructors and exit handlers.
        unsafe { libc::_exit(i32::from(!matches!(made, Ok(Ok(()))))) }
    }
    drop(send);
    let ours = work();
    let mut theirs = Vec::new();
    receive.read_to_end(&mut theirs).unwrap();
    let mut status = -1;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed");
    (ours, theirs)
}

/// A named pipe, which keeps who opens it waiting. A child process that makes it would hold the locks of other tests until it runs.
///
/// # Errors
/// What the system says.
pub fn fifo(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a path that ends with a zero byte.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first bytes of masks, each with the name of what made it.
#[derive(Debug, Default)]
pub struct Masks(Vec<(&'static str, [u8; MASK])>);

/// Bytes of a mask that are compared.
const MASK: usize = 64;

impl Masks {
    /// A mask, or the seed that stands for it: at least 32 bytes.
    pub fn bytes(&mut self, of: &'static str, mask: &[u8]) {
        assert!(mask.len() >= 32, "{of}: a mask of {} bytes", mask.len());
        let mut first = [0; MASK];
        let len = mask.len().min(MASK);
        first[..len].copy_from_slice(&mask[..len]);
        self.0.push((of, first));
    }

    /// A mask of words.
    pub fn words<'a>(&mut self, of: &'static str, mask: impl IntoIterator<Item = &'a u64>) {
        self.bytes(of, &mask.into_iter().take(MASK / 8).flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    }
}

/// Publishes twice, forks, publishes twice on either side, and finds no mask a second time.
///
/// A forked process is a copy of its parent's memory, as a virtual machine that is started twice from one snapshot is:
/// whatever randomness an object kept, both would use.
#[track_caller]
pub fn no_mask_repeats_across_fork(publish: impl Fn(&mut Masks)) {
    let twice = || {
        let mut masks = Masks::default();
        publish(&mut masks);
        publish(&mut masks);
        masks.0
    };
    let bytes = |masks: Vec<(&str, [u8; MASK])>| masks.into_iter().flat_map(|(_, mask)| mask).collect::<Vec<u8>>();
    let before = twice();
    let (ours, theirs) = in_both(|| bytes(twice()));
    let names: Vec<&str> = before.iter().map(|(name, _)| *name).collect();
    let mut seen = HashSet::new();
    for (when, masks) in [("before the fork", bytes(before)), ("parent", ours), ("child", theirs)] {
        assert_eq!(masks.len(), MASK * names.len());
        for (name, mask) in names.iter().zip(masks.chunks_exact(MASK)) {
            assert!(seen.insert(mask.to_vec()), "{name}, {when}: a mask that was used before");
        }
    }
}

/// Two secrets with `values` equally likely coefficients agree in about one of `values`.
#[track_caller]
pub fn unrelated(what: &str, values: f64, a: &[i64], b: &[i64]) {
    assert_eq!(a.len(), b.len());
    let (n, equal) = (a.len() as f64, a.iter().zip(b).filter(|(x, y)| x == y).count() as f64);
    let deviation = (n / values * (1.0 - 1.0 / values)).sqrt();
    assert!((equal - n / values).abs() < 6.0 * deviation, "{what}: {equal} of {n} coefficients agree");
}
