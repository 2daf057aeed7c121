//! The kernels in machine code: compiled ahead, or by NVRTC when they are first wanted.

use crate::error::{CudaError, Result};
use std::path::{Path, PathBuf};

/// Where a card's kernels come from: folders of images compiled ahead, then NVIDIA's run-time compiler.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// The folder that `make cuda-kernels` filled, as a wheel of the Python package has one.
    pub ahead: Option<PathBuf>,
    /// Reads a file of that folder, if it is there: a wheel's are compressed.
    pub read: fn(&Path) -> Option<Vec<u8>>,
    /// Where what is compiled now is kept so that the next start finds it; nothing is without one.
    pub cache: Option<Cache>,
}

/// A folder where compiled kernels are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The folder.
    pub folder: PathBuf,
    /// Makes a file in it, whole or not at all: this crate writes none itself.
    pub write: fn(&Path, &[u8]),
    /// Called before kernels are compiled for a compute capability, which takes a minute or more: to say so.
    pub compiling: fn((u32, u32)),
}

/// Compute capabilities of systems on a chip (Tegra), which run no machine code of cards (CUDA C++ Programming Guide, binary
/// compatibility).
const ON_A_CHIP: [(u32, u32); 3] = [(7, 2), (8, 7), (10, 1)];

/// PTX of the oldest card's.
const PTX: &str = "compute_75.ptx";

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

/// The name of an image of this source, for `sm_90.cubin` and the like.
pub fn image_name(what: &str) -> String {
    let digest =
        source().bytes().fold(0xCBF2_9CE4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
    format!("kernels-{digest:016x}-{what}")
}

impl Default for Kernels {
    fn default() -> Self {
        Self { ahead: None, read: |path| std::fs::read(path).ok(), cache: None }
    }
}

impl Kernels {
    /// Images in a folder that `make cuda-kernels` filled.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { ahead: Some(folder.into()), ..Self::default() }
    }

    /// The machine code for a card: made for it, or for an earlier one of its generation, which it runs as well (systems on a
    /// chip run none but their own); or PTX, of which the driver makes code for cards that came later; or what NVRTC makes.
    pub(crate) fn image(&self, (major, minor): (u32, u32)) -> Result<Vec<u8>> {
        let kept = |minor| image_name(&format!("sm_{major}{minor}.cubin"));
        let found = |name: String| self.ahead.as_ref().and_then(|folder| (self.read)(&folder.join(name)));
        let whole = |cubin: &Vec<u8>| cubin.starts_with(b"\x7FELF");
        let least = if ON_A_CHIP.contains(&(major, minor)) { minor } else { 0 };
        let cubin = (least..=minor).rev().find_map(|minor| found(kept(minor)).filter(whole)).or_else(|| {
            self.cache.as_ref().and_then(|cache| std::fs::read(cache.folder.join(kept(minor))).ok()).filter(whole)
        });
        if let Some(cubin) = cubin {
            return Ok(cubin);
        }
        if let Some(cache) = &self.cache {
            (cache.compiling)((major, minor));
        }
        if let Some(text) = found(image_name(PTX)) {
            return Ok(text);
        }
        let cubin = super::compile(&source(), (major, minor))
            .map_err(|reason| CudaError::NoKernels { capability: (major, minor), reason })?;
        if let Some(cache) = &self.cache {
            (cache.write)(&cache.folder.join(kept(minor)), &cubin);
        }
        Ok(cubin)
    }
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
        let cache = Cache { folder: folder.clone(), write, compiling: |_| () };
        let kernels = Kernels { cache: Some(cache), ..Kernels::default() };
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

    #[test]
    fn images_made_ahead_are_found_by_the_card() {
        let folder = std::env::temp_dir().join(format!("sudare-images-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let kernels = Kernels::in_folder(&folder);
        let put = |what: &str, bytes: &[u8]| std::fs::write(folder.join(image_name(what)), bytes).unwrap();
        put("sm_80.cubin", b"\x7FELF 80");
        put("sm_86.cubin", b"\x7FELF 86");
        put(PTX, b".version");
        let image = |capability| kernels.image(capability).unwrap();
        // Its own; that of an earlier card of its generation; PTX where there is none of it.
        assert_eq!(image((8, 6)), b"\x7FELF 86");
        assert_eq!(image((8, 9)), b"\x7FELF 86");
        assert_eq!(image((8, 5)), b"\x7FELF 80");
        assert_eq!(image((9, 0)), b".version");
        assert_eq!(image((8, 7)), b".version");
        // Images of another source are not ours.
        std::fs::write(folder.join("kernels-0123456789abcdef-sm_86.cubin"), b"\x7FELF other").unwrap();
        assert_eq!(image((8, 6)), b"\x7FELF 86");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// The script that compiles ahead gives images the names that are looked for.
    #[test]
    fn the_script_and_this_name_images_alike() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cuda-kernels");
        let said = std::process::Command::new("python3").arg(script).args(["--name", PTX]).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&said.stdout).trim(),
            image_name(PTX),
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
    }
}
