//! A process that is forked while other threads work goes on in the child.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use sudare_ring::buffer::Buffer;
use sudare_testkit::process::alone;
use sudare_testkit::setting;

/// Whether a child that does `work` ends well within 20 seconds; one that does not is ended.
fn child_ends(work: impl FnOnce()) -> bool {
    // SAFETY: the child uses what is meant to work there, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        work();
        // SAFETY: the child ends here, without the parent's destructors and exit handlers.
        unsafe { libc::_exit(0) }
    }
    let (start, mut status) = (Instant::now(), -1);
    // SAFETY: a child of this process, and a place for its status.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if start.elapsed() > Duration::from_secs(20) {
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    status == 0
}

/// Large buffers are kept for all threads: two of them take and give back without a pause while others fork. With one lock
/// for parent and child, every other child waited for a thread that it does not have.
#[test]
fn children_take_large_buffers_beside_busy_threads() {
    let _alone = alone();
    // 2 MiB and more are large.
    const WORDS: usize = 3 << 17;
    let stop = AtomicBool::new(false);
    let hung = std::thread::scope(|scope| {
        for thread in 0..2 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let both = [Buffer::dirty(WORDS + thread), Buffer::dirty(2 * WORDS)];
                    assert!(both[0].len() == WORDS + thread && both[1].len() == 2 * WORDS);
                }
            });
        }
        let hung = (0..setting("SUDARE_FORKS", 100))
            .filter(|_| !child_ends(|| drop([Buffer::zeroed(WORDS), Buffer::zeroed(2 * WORDS)])))
            .count();
        stop.store(true, Ordering::Relaxed);
        hung
    });
    assert_eq!(hung, 0, "children that hung");
}
