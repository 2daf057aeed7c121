//! Containers and grids for tests.

use serde_json::json;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use sudare_rlwe::wire::{Header, ObjectType, State, Writer as Container};
use sudare_rlwe::{KeyId, ParamsHash};
use sudare_store::{Description, Existing, Grid, StoreError, Writer};

pub const PARAMS: ParamsHash = ParamsHash([7; 32]);
pub const KEY: KeyId = KeyId([9; 16]);

/// A container of one segment whose bytes follow from its place.
pub fn container(row: usize, col: usize, bytes: usize) -> Vec<u8> {
    let meta = [row as u8, col as u8].to_vec();
    let object = ObjectType::Application(0x8001);
    let header = Header::new(object, (PARAMS, KEY), State::default(), meta, vec![bytes as u64]).unwrap();
    let data: Vec<u8> = (0..bytes).map(|i| (i * 31 + row * 7 + col * 3) as u8).collect();
    let mut out = Vec::new();
    let mut writer = Container::new(&mut out, &header).unwrap();
    writer.segment(&data).unwrap();
    writer.finish().unwrap();
    out
}

pub fn description() -> Description {
    Description { params: PARAMS, key: KEY, contents: json!({"shape": [20, 30], "scale": 1099511627776.5}) }
}

/// Rows and columns of shards, blocks of two pages.
pub fn grid(rows: usize, cols: usize, shard: (usize, usize)) -> Grid {
    Grid { rows, cols, block_bytes: 8192, shard_rows: shard.0, shard_cols: shard.1 }
}

/// Writes all blocks of a grid, telling before each.
pub fn write(path: &Path, grid: Grid, existing: Existing, mut tell: impl FnMut()) -> Result<[u8; 32], StoreError> {
    let writer = Writer::begin(path, grid, [3; 32], existing)?.expect("it was not finished");
    writer.fill(|row, col| {
        tell();
        Ok::<_, StoreError>(container(row, col, 3000))
    })?;
    writer.finish(description())
}

/// Puts a byte in the place of another. Nothing else is written: to write a whole file again takes a thousand times as long.
pub fn put(file: &Path, at: usize, byte: u8) {
    let mut file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(&[byte]).unwrap();
}

/// Every file below a folder with its bytes, in order.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        match entry.is_dir() {
            true => out.extend(files(&entry)),
            false => out.push((entry.clone(), std::fs::read(&entry).unwrap())),
        }
    }
    out.sort();
    out
}
