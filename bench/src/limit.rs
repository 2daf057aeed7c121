//! A limit on the memory that this process takes from now on: a control group of its own.

use crate::Outcome;
use std::path::{Path, PathBuf};

/// While it lives, new memory and what is kept of files that are read are counted in a control group with a
/// limit; what the process had before is not. Linux, control groups of version 1, for who may make them.
pub struct MemoryLimit {
    parent: PathBuf,
    own: PathBuf,
}

impl MemoryLimit {
    /// Starts the limit.
    pub fn new(bytes: usize) -> Outcome<Self> {
        let groups = std::fs::read_to_string("/proc/self/cgroup")?;
        let of_memory = |line: &&str| line.split(':').nth(1).is_some_and(|c| c.split(',').any(|c| c == "memory"));
        let line = groups.lines().find(of_memory).ok_or("there is no control group for memory")?;
        let path = line.splitn(3, ':').nth(2).unwrap_or("/").trim_start_matches('/');
        let parent = Path::new("/sys/fs/cgroup/memory").join(path);
        let own = parent.join(format!("sudare-lab-{}", std::process::id()));
        std::fs::create_dir(&own)?;
        let limit = Self { parent, own };
        std::fs::write(limit.own.join("memory.limit_in_bytes"), bytes.to_string())?;
        std::fs::write(limit.own.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(limit)
    }

    /// The most that was in use.
    pub fn peak(&self) -> Option<usize> {
        std::fs::read_to_string(self.own.join("memory.max_usage_in_bytes")).ok()?.trim().parse().ok()
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A group that cannot be left or removed ends with the machine; the figures stand.
        let _ = std::fs::write(self.parent.join("cgroup.procs"), std::process::id().to_string());
        let _ = std::fs::remove_dir(&self.own);
    }
}
