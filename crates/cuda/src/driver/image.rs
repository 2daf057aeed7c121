//! The kernels in machine code: compiled ahead, or by NVRTC when they are first wanted.

use crate::error::{CudaError, Result};
use std::path::{Path, PathBuf};

/// Where a card's kernels come from.
#[derive(Clone, Debug, Default)]
pub enum Kernels {
    /// Those in this program if it was built with some, else compiled by NVRTC.
    #[default]
    Any,
    /// A file that `make cuda-kernels` wrote: cubin, fatbin or PTX.
    File(PathBuf),
    /// Compiled by NVRTC, and kept so that the next start finds them.
    Compiled {
        /// Where they are kept; nothing is without one.
        cache: Option<Cache>,
    },
}

/// A folder where compiled kernels are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The folder.
    pub folder: PathBuf,
    /// Makes a file in it, whole or not at all: this crate writes none itself.
    pub write: fn(&Path, &[u8]),
    /// Called before kernels are compiled for a compute capability, which takes minutes: to say so.
    pub compiling: fn((u32, u32)),
}

/// What `make cuda-kernels` compiled, where a build was given it.
const BUILT: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/built.rs"));

/// The source, a file after the other as `kernels.cu` includes them.
const FILES: [&str; 7] = [
    include_str!("../../kernels/dialect.cuh"),
    include_str!("../../kernels/arith.cuh"),
    include_str!("../../kernels/transform.cuh"),
    include_str!("../../kernels/elementwise.cuh"),
    include_str!("../../kernels/switch.cuh"),
    include_str!("../../kernels/rates.cuh"),
    include_str!("../../kernels/kernels.cu"),
];

/// One text without includes of our own, as a compiler without a file system takes it.
pub fn source() -> String {
    let line = |l: &&str| !l.starts_with("#include \"") && !l.starts_with("#pragma once");
    FILES.iter().flat_map(|f| f.lines()).filter(line).fold(String::new(), |all, l| all + l + "\n")
}

impl Kernels {
    /// As [`Kernels::Any`]; what has to be compiled is kept in a folder.
    pub fn here(cache: Option<Cache>) -> Self {
        if BUILT.is_some() { Self::Any } else { Self::Compiled { cache } }
    }

    /// The machine code for a card.
    pub(crate) fn image(&self, capability: (u32, u32)) -> Result<Vec<u8>> {
        match self {
            Self::Any => match BUILT {
                Some(built) => Ok(built.to_vec()),
                None => compiled(capability, None),
            },
            Self::File(path) => std::fs::read(path)
                .map_err(|e| CudaError::NoKernels { capability, reason: format!("{}: {e}", path.display()) }),
            Self::Compiled { cache } => compiled(capability, cache.as_ref()),
        }
    }
}

/// Compiles, or takes what an earlier start kept.
fn compiled(capability: (u32, u32), cache: Option<&Cache>) -> Result<Vec<u8>> {
    let source = source();
    let kept = cache.map(|cache| {
        let digest =
            source.bytes().fold(0xCBF2_9CE4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
        cache.folder.join(format!("kernels-{digest:016x}-sm_{}{}.cubin", capability.0, capability.1))
    });
    if let Some(cubin) = kept.as_ref().and_then(|path| std::fs::read(path).ok()).filter(|c| c.starts_with(b"\x7FELF")) {
        return Ok(cubin);
    }
    if let Some(cache) = cache {
        (cache.compiling)(capability);
    }
    let cubin = super::compile(&source, capability).map_err(|reason| CudaError::NoKernels { capability, reason })?;
    if let (Some(path), Some(cache)) = (kept, cache) {
        (cache.write)(&path, &cubin);
    }
    Ok(cubin)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NVRTC compiles without a driver: with the wheel nvidia-cuda-nvrtc on the LD_LIBRARY_PATH this tries the options.
    #[test]
    fn nvrtc_makes_machine_code_or_is_missed_by_name() {
        let there = crate::driver::nvrtc::is_there();
        let folder = std::env::temp_dir().join(format!("sudare-nvrtc-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |path: &Path, bytes: &[u8]| std::fs::write(path, bytes).unwrap();
        let kernels = Kernels::Compiled { cache: Some(Cache { folder: folder.clone(), write, compiling: |_| () }) };
        match kernels.image((9, 0)) {
            Ok(cubin) => {
                assert!(there && cubin.starts_with(b"\x7FELF"));
                // The second start finds what the first one kept, where no compiler would run.
                let kept: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
                assert_eq!(kept.len(), 1);
                std::fs::write(&kept[0], b"\x7FELF, kept").unwrap();
                assert_eq!(kernels.image((9, 0)).unwrap(), b"\x7FELF, kept");
            }
            Err(CudaError::NoKernels { capability, reason }) => {
                assert!(!there && capability == (9, 0) && reason.contains("libnvrtc.so"), "{reason}");
            }
            Err(other) => panic!("{other}"),
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
