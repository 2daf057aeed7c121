//! Devices that compute in the processor's place.

use crate::error::{Refusal, Result};
use crate::work::long;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use sudare_cuda::{Cache, Device, Info, Kernels};
use sudare_ring::ErrorKind;
use sudare_ring::memo::PerProcess;
use sudare_store::atomic::{self, Access, Durability, Over};

/// Devices that were opened, by their names: all that computes on one shares it.
static OPEN: PerProcess<Mutex<BTreeMap<String, Device>>> = PerProcess::new();

#[cfg(feature = "emulate")]
const EMULATOR: &str = "emulator";
/// Bytes of memory that the emulator has.
#[cfg(feature = "emulate")]
const ROOM: usize = 1 << 30;

/// Kernels that were compiled: a folder that cannot be written costs the next start its compilation, and no more.
fn write(path: &Path, bytes: &[u8]) {
    let _ = atomic::write(path, &[bytes], Access::Usual, Over::NoKey, Durability::Process);
}

/// A file of the package's kernels, which are packed as .xz there.
fn unpacked(path: &Path) -> Option<Vec<u8>> {
    let packed = std::fs::read(format!("{}.xz", path.display())).ok()?;
    Python::attach(|py| py.import("lzma")?.call_method1("decompress", (packed.as_slice(),))?.extract()).ok()
}

/// The one thing that is said without being asked: a process that is silent for minutes looks dead.
fn compiling((major, minor): (u32, u32)) {
    eprintln!(
        "sudare: the GPU kernels are compiled for compute capability {major}.{minor}, which takes a minute or more, once"
    );
}

/// A device by its name: "cuda" is "cuda:0". Kernels that the folder `ahead` does not have are compiled, and kept in `cache`.
pub fn open(name: &str, ahead: Option<PathBuf>, cache: Option<PathBuf>) -> Result<Device> {
    let index = match name {
        "cuda" => Some(0),
        _ => name.strip_prefix("cuda:").and_then(|index| index.parse::<usize>().ok()),
    };
    let name = index.map_or_else(|| name.to_owned(), |index| format!("cuda:{index}"));
    let known = || OPEN.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = known().get(&name) {
        return Ok(device.clone());
    }
    // Kernels may take minutes to compile: nobody who only asks for a name waits for that.
    let device = match (name.as_str(), index) {
        (_, Some(index)) => {
            let cache = cache.map(|folder| Cache { folder, write, compiling });
            Device::open(index, &Kernels { ahead, read: unpacked, cache })?
        }
        #[cfg(feature = "emulate")]
        (EMULATOR, _) => Device::emulator(sudare_cuda::Trial::default(), ROOM),
        _ => {
            let text = format!(
                "there is no device {name:?}; take \"cpu\", \"cuda\" or \"cuda:1\", or one of sudare.devices()"
            );
            return Err(Refusal::Refused(ErrorKind::Input, text));
        }
    };
    // Whoever was first opened it for all.
    Ok(known().entry(name).or_insert(device).clone())
}

/// The name by which a device was opened.
pub fn name_of(device: &Device) -> String {
    let open = OPEN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let found = open.iter().find(|(_, known)| known.is(device)).map(|(name, _)| name.clone());
    found.unwrap_or_else(|| device.info().name.clone())
}

/// Name, model and bytes of memory of a device.
type Listed = (String, String, usize);

/// Each device that there is, and why there is no card, if there is none.
#[pyfunction]
pub fn devices(py: Python<'_>) -> Result<(Vec<Listed>, Option<String>)> {
    long(py, || {
        let (cards, missing) = match Device::list() {
            Ok(cards) => (cards, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let card = |(index, card): (usize, Info)| (format!("cuda:{index}"), card.name, card.memory);
        #[cfg_attr(not(feature = "emulate"), expect(unused_mut))]
        let mut all: Vec<_> = cards.into_iter().enumerate().map(card).collect();
        #[cfg(feature = "emulate")]
        all.push((EMULATOR.into(), "the kernels on the processor, for tests".into(), ROOM));
        Ok((all, missing))
    })
}
