//! For tests that reach the checks behind the digests: no secret is involved, anybody can compute them.

use crate::block::{container, digest_with};
use crate::layout::{DIGEST, Description, Grid, Paths, Root, unhex};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use sudare_rlwe::{KeyId, ParamsHash};

/// Most bytes of a store that are gone through.
const MOST: u64 = 16 << 20;

/// Makes all checksums, digests and documents of a store match again after its files were changed, as far as its root and
/// the lengths of its shards allow.
pub fn reseal_for_tests(path: &Path) {
    let _ = reseal(&Paths(path.into()));
}

fn reseal(paths: &Paths) -> Option<()> {
    let document: Value = serde_json::from_slice(&fs::read(plain(paths.root())?).ok()?).ok()?;
    let fields = &document["attributes"]["sudare"];
    let grid: Grid = serde_json::from_value(fields["grid"].clone()).ok()?;
    grid.check().ok().filter(|()| grid.block_bytes.saturating_mul(grid.blocks() as u64) <= MOST)?;
    let mut table = vec![0; grid.blocks() * DIGEST];
    let (down, across) = grid.shards();
    for shard in (0..down).flat_map(|i| (0..across).map(move |j| (i, j))) {
        let Some(file) = plain(paths.shard(shard)) else { continue };
        let mut bytes = fs::read(&file).ok()?;
        let members: Vec<(usize, usize)> = grid.members(shard).collect();
        bytes.resize(members.len() * grid.block_bytes as usize, 0);
        for ((row, col), block) in members.into_iter().zip(bytes.chunks_mut(grid.block_bytes as usize)) {
            sudare_rlwe::wire::reseal_for_tests(block);
            if let Ok((header, inner)) = container(block) {
                table[(row * grid.cols + col) * DIGEST..][..DIGEST].copy_from_slice(&digest_with(&header, inner));
            }
        }
        bytes.extend(grid.index(shard));
        fs::write(file, bytes).ok()?;
    }
    let text = |name: &str| fields[name].as_str().unwrap_or_default();
    let description = Description {
        params: ParamsHash(unhex(text("params"))?),
        key: KeyId(unhex(text("key"))?),
        contents: fields["contents"].clone(),
    };
    let root = Root::new(grid, unhex(text("work"))?, description, &table);
    for (path, bytes) in [
        (paths.blocks(), grid.blocks_document()),
        (paths.digests(), grid.digests_document()),
        (paths.digest_table(), table),
        (paths.root(), root.document()),
    ] {
        fs::write(plain(path)?, bytes).ok()?;
    }
    Some(())
}

/// A path to a file that no link is part of, from the store's folder on.
fn plain(path: PathBuf) -> Option<PathBuf> {
    let links = path.ancestors().take(6).any(Path::is_symlink);
    (!links && path.is_file()).then_some(path)
}
