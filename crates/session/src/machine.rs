//! What is known of this machine: its memory, and its prices in a file.

use serde_json::Value;
use std::collections::BTreeMap;
use std::env::consts;
use std::path::{Path, PathBuf};
use sudare_he::HeError;
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Planner};
use sudare_ring::measure;
use sudare_rlwe::RlweError;
use sudare_store::atomic::{self, Access, Durability, Over};

/// Most bytes of a cache file that are read.
const MAX_CACHE_BYTES: u64 = 1 << 20;
/// Its name in the folder that the caller gives.
const FILE: &str = "cost-model.json";

/// Bytes of memory of this machine, as far as the system tells.
pub fn memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|l| l.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// A planner for one thread that may use all of this machine's memory, at the prices that [`stored`] finds in a folder.
pub fn planner(folder: Option<&Path>) -> Planner {
    Planner { memory: memory().unwrap_or(u64::MAX), ..Planner::new(stored(folder)) }
}

/// The model of this machine that [`store`] kept in a folder, if there is one, else the built-in one.
pub fn stored(folder: Option<&Path>) -> CostModel {
    let model = || {
        let path = folder?.join(FILE);
        if std::fs::metadata(&path).ok()?.len() > MAX_CACHE_BYTES {
            return None;
        }
        let text = std::fs::read_to_string(path).ok()?;
        // Those of other machines and versions may have another form.
        let mut all: BTreeMap<String, Value> = serde_json::from_str(&text).ok()?;
        serde_json::from_value(all.remove(&cache_key().ok()?)?).ok().filter(CostModel::plausible)
    };
    model().unwrap_or_default()
}

/// Keeps the model for [`stored`], beside those of other machines, and says in which file.
///
/// # Errors
/// [`MatrixError::Store`] for a folder that cannot be written.
pub fn store(model: &CostModel, folder: &Path) -> Result<PathBuf, MatrixError> {
    let path = folder.join(FILE);
    let mut all: BTreeMap<String, Value> =
        std::fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
    let no_json = |_| RlweError::Internal { what: "the prices are no JSON" };
    all.insert(cache_key()?, serde_json::to_value(model).map_err(no_json)?);
    let bytes = serde_json::to_vec_pretty(&all).map_err(no_json)?;
    atomic::make_folder(&path)?;
    // Two processes may calibrate at once: the last one's file stays.
    atomic::write(&path, &[&bytes], Access::Usual, Over::NoKey, Durability::Process)?;
    Ok(path)
}

fn cache_key() -> Result<String, HeError> {
    let [narrow, wide] = measure::families()?;
    Ok(format!("{} / {narrow} {wide} / {}", name(), env!("CARGO_PKG_VERSION")))
}

/// The processor's own name, as far as the system tells it.
pub fn name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    match field("model name") {
        Some(model) => {
            format!(
                "{model}, family {} model {}",
                field("cpu family").unwrap_or_default(),
                field("model").unwrap_or_default()
            )
        }
        None => format!("{} {}", consts::ARCH, consts::OS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prices that another version wrote, of this machine and of others, are no reason to forget those of this one.
    #[test]
    fn prices_are_kept_beside_others_of_any_form() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, r#"{"another machine": {"version": 1}, "a third": 7}"#).unwrap();
        assert_eq!(stored(Some(folder.path())), CostModel::default());
        let mine = CostModel { mac_ns: 0.125, ..CostModel::default() };
        assert_eq!(store(&mine, folder.path()).unwrap(), path);
        assert_eq!(stored(Some(folder.path())), mine);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("a third") && text.contains("another machine"));
        // An older form of this machine's own prices is not read.
        let old = BTreeMap::from([(cache_key().unwrap(), serde_json::json!({"version": 1}))]);
        std::fs::write(&path, serde_json::to_vec(&old).unwrap()).unwrap();
        assert_eq!(stored(Some(folder.path())), CostModel::default());
    }
}
