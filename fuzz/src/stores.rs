//! A folder that anybody may have filled: what is read of a store is what was written, and whoever goes on writing one
//! ends with what was to be written, or with an error, and changes nothing elsewhere.

use super::mutation::{self, Random};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_plan::resealed_for_tests;
use sudare_plan::{CostModel, Goal, Planner};
use sudare_rlwe::wire::{Header, ObjectType, State, Writer as Container};
use sudare_rlwe::{KeyId, ParamsHash};
use sudare_session::Client;
use sudare_session::{QUIET, Stored};
use sudare_store::{Block, BlockSource, Description, Existing, Grid, Reader, Reading, StoreError, Writer};

/// Places in a store: documents, shards, what is left of a work that was ended, folders.
const NAMES: [&str; 18] = [
    "zarr.json",
    "blocks/zarr.json",
    "digests/zarr.json",
    "digests/c/0/0/0",
    "blocks/c/0/0/0",
    "blocks/c/1/0/0",
    "blocks/c/0/1/0",
    ".sudare-partial",
    "blocks/c/0/0/0.partial",
    "blocks/c/1/0/0.partial",
    "digests/c/0/0",
    "blocks/c/0/0",
    "blocks/c/0",
    "blocks/c/1",
    "blocks/c",
    "blocks",
    "digests",
    "other",
];
const WORK: [u8; 32] = [3; 32];
/// Bytes of a file beside the store.
const FOREIGN: &[u8] = b"nobody's";
/// Largest blocks that are read: a root may say that they are larger.
const MOST_BLOCK: u64 = 1 << 20;

/// What a folder holds before it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A grid.
    Finished,
    /// A grid whose writer was ended before the second shard.
    Begun,
    /// An encrypted matrix.
    Matrix,
}

const KINDS: [Kind; 3] = [Kind::Finished, Kind::Begun, Kind::Matrix];

struct World {
    /// Files by their names, of each kind.
    files: [Vec<(String, Vec<u8>)>; 3],
    digest: [u8; 32],
    /// What the blocks of the grid hold, row by row.
    inner: Vec<Vec<u8>>,
    matrix: Vec<u8>,
}

fn grid() -> Grid {
    Grid { rows: 2, cols: 2, block_bytes: 8192, shard_rows: 1, shard_cols: 2 }
}

fn container(row: usize, col: usize) -> Vec<u8> {
    let owner = (ParamsHash([7; 32]), KeyId([9; 16]));
    let object = ObjectType::Application(0x8001);
    let header = Header::new(object, owner, State::default(), vec![row as u8, col as u8], vec![3000]);
    let data: Vec<u8> = (0..3000).map(|i: usize| (i * 31 + row * 7 + col * 3) as u8).collect();
    let mut out = Vec::new();
    let header = header.expect("a header");
    let mut writer = Container::new(&mut out, &header).expect("a container");
    writer.segment(&data).expect("a segment");
    writer.finish().expect("its end");
    out
}

fn write(path: &Path, existing: Existing) -> Result<Option<[u8; 32]>, StoreError> {
    let Some(writer) = Writer::begin(path, grid(), WORK, existing)? else { return Ok(None) };
    writer.fill(|row, col| Ok::<_, StoreError>(container(row, col)))?;
    let contents = json!({"shape": [20, 30], "scale": 1099511627776.5});
    writer.finish(Description { params: ParamsHash([7; 32]), key: KeyId([9; 16]), contents }).map(Some)
}

/// Every file below a folder, by its name there.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    fn visit(folder: &Path, root: &Path, out: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if entry.file_type().expect("its kind").is_dir() {
                visit(&path, root, out);
            } else {
                let name = path.strip_prefix(root).expect("it is below").to_str().expect("it is text").to_owned();
                out.push((name, fs::read(&path).unwrap_or_default()));
            }
        }
    }
    let mut out = Vec::new();
    visit(folder, folder, &mut out);
    out.sort();
    out
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let [finished, begun, matrix] = ["finished", "begun", "matrix"].map(|name| folder.path().join(name));
        let digest = write(&finished, Existing::Refuse).expect("it is written").expect("it was not there");
        let writer = Writer::begin(&begun, grid(), WORK, Existing::Refuse).expect("a writer").expect("it is new");
        let mut shard = writer.shard((0, 0)).expect("a shard");
        (0..2).for_each(|col| shard.push(&container(0, col)).expect("a block"));
        shard.finish().expect("its end");
        drop(writer);
        let input = |name, shape| InputSpec::new(name, shape, 1.0);
        let product = Expr::product(input("A", (6, 10)), input("B", (10, 5))).expect("it has a value");
        let planner = Planner { method: Some("coefficient".into()), ..Planner::new(CostModel::default()) };
        let client = Client::new(&planner.plan(&Goal::new(product, 1e-3)).expect("a plan"), 1).expect("a client");
        let numbers = Matrix::from_fn(6, 10, |i, j| (i * 10 + j) as f64 / 100.0).expect("a matrix");
        let stored = client.encrypt_stored("A", &[numbers], &matrix, QUIET).expect("it is stored");
        let matrix_bytes = stored.load().and_then(|value| value.to_bytes()).expect("it is read");
        let blocks =
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(row, col)| inner(&container(row, col)).expect("it is whole"));
        let files = [finished, begun, matrix].map(|path| files(&path));
        World { files, digest, inner: blocks.into(), matrix: matrix_bytes }
    })
}

/// The bytes of an input, one after the other, and zeros after the last.
struct Script<'d>(&'d [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        let (head, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        head
    }

    fn name(&mut self) -> &'static str {
        NAMES[usize::from(self.byte()) % NAMES.len()]
    }
}

/// A folder without a change; and some changes for a start.
pub fn seeds() -> Vec<Vec<u8>> {
    let plain = (0..3).map(|kind| vec![kind, 0]);
    let changed =
        (0..3).flat_map(|kind| (0..10).map(move |op| vec![kind, 1, op, 0, 9, 9, 9, 4, 1, 2, 3, 4, op, 7, 4, 1, 0, 0]));
    plain.chain(changed).collect()
}

/// Changes the changes.
pub fn mutate(random: &mut Random, data: &mut Vec<u8>, other: &[u8]) {
    mutation::bytes(random, data, other);
    data.truncate(400);
}

/// Fills a folder, changes it as the input says, reads it, and goes on writing it; whether it was read to its end.
pub fn check(data: &[u8]) -> bool {
    let mut script = Script(data);
    let kind = KINDS[usize::from(script.byte()) % KINDS.len()];
    let flags = script.byte();
    let (resealed, resumed) = (flags & 2 != 0, flags & 4 != 0);
    let folder = tempfile::tempdir().expect("a folder");
    let (root, foreign) = (folder.path().join("x.sudare"), folder.path().join("foreign"));
    for (name, bytes) in &world().files[kind as usize] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    fs::create_dir(&foreign).expect("a folder");
    fs::write(foreign.join("0"), FOREIGN).expect("a file");
    let mut changes = 0;
    while !script.0.is_empty() && changes < 16 {
        // What cannot be done is left out.
        let _ = change(&root, &mut script);
        changes += 1;
    }
    if resealed {
        reseal(&root);
    }
    let taken = match kind {
        Kind::Matrix => read_matrix(&root, resealed),
        Kind::Finished | Kind::Begun => {
            let digest = (!resealed).then_some(world().digest);
            let taken = read_grid(&root, digest);
            if resumed || kind == Kind::Begun { go_on(&root, digest) } else { taken }
        }
    };
    assert!(files(&foreign) == [("0".to_owned(), FOREIGN.to_vec())], "something was written through a link");
    taken
}

/// A place in the store, if no link leads out on the way to it.
fn inside(root: &Path, name: &str) -> Option<PathBuf> {
    let mut path = root.to_owned();
    for part in Path::new(name).iter() {
        if path.is_symlink() {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

fn change(root: &Path, script: &mut Script<'_>) -> Option<()> {
    let (op, name) = (script.byte() % 10, script.name());
    let path = inside(root, name)?;
    let length = fs::symlink_metadata(&path).map(|m| m.len()).unwrap_or(0);
    let open = || OpenOptions::new().write(true).open(&path).ok().filter(|_| !path.is_symlink());
    let clear = |path: &Path| {
        let _ = if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    };
    match op {
        0 => {
            let (at, count) = (script.number(3) % length.max(1), usize::from(script.byte()));
            let mut file = open()?;
            file.seek(SeekFrom::Start(at)).ok()?;
            file.write_all(script.take(count)).ok()?;
        }
        1 => open()?.set_len(script.number(3) % (length + 1)).ok()?,
        2 => {
            let count = usize::from(script.byte());
            let mut file = open()?;
            file.seek(SeekFrom::End(0)).ok()?;
            file.write_all(script.take(count)).ok()?;
        }
        3 => clear(&path),
        4 => {
            let to = match script.byte() % 4 {
                0 => root.parent()?.join("foreign"),
                1 => root.parent()?.join("foreign/0"),
                2 => root.parent()?.join("foreign/new"),
                _ => root.join(script.name()),
            };
            clear(&path);
            symlink(to, &path).ok()?;
        }
        5 => fs::rename(&path, inside(root, script.name())?).ok()?,
        6 => {
            let count = usize::from(script.byte());
            clear(&path);
            fs::create_dir_all(path.parent()?).ok()?;
            fs::write(&path, script.take(count)).ok()?;
        }
        7 => {
            let mut text = fs::read_to_string(open().map(|_| &path)?).ok()?;
            mutation::json(&mut Random(script.number(4)), &mut text);
            let document: Value = serde_json::from_str(&text).ok()?;
            fs::write(&path, format!("{document:#}\n")).ok()?;
        }
        8 => {
            clear(&path);
            fs::create_dir_all(&path).ok()?;
        }
        _ => {
            let to = inside(root, script.name()).filter(|to| !to.is_symlink())?;
            fs::copy(Some(&path).filter(|path| !path.is_symlink())?, to).ok()?;
        }
    }
    Some(())
}

/// Makes digests and checksums right, and the plan's hash, as whoever changes a store can.
fn reseal(root: &Path) {
    let path = root.join("zarr.json");
    if let Some(text) = inside(root, "zarr.json").filter(|p| p.is_file()).and_then(|p| fs::read_to_string(p).ok())
        && let Ok(mut document) = serde_json::from_str::<Value>(&text)
        && let Some(plan) = document.pointer_mut("/attributes/sudare/contents/plan")
        && let Some(resealed) = resealed_for_tests(&plan.to_string())
    {
        *plan = serde_json::from_str(&resealed).expect("it is JSON");
        fs::write(&path, format!("{document:#}\n")).expect("a file");
    }
    sudare_store::reseal_for_tests(root);
}

fn told(error: &dyn std::fmt::Display) {
    let words = error.to_string();
    assert!((1..4096).contains(&words.len()) && !words.contains(char::is_control), "{words:?}");
}

/// The bytes in a container.
fn inner(container: &[u8]) -> Option<Vec<u8>> {
    sudare_rlwe::wire::Container::from_bytes(container).and_then(|c| c.segment(0).map(<[u8]>::to_vec)).ok()
}

/// Reads a grid, of this digest if one is given, and with blocks that were written; whether it is whole.
fn read_grid(root: &Path, digest: Option<[u8; 32]>) -> bool {
    let _ = sudare_store::is_store(root);
    let reader = match Reader::open(root, Reading::Cached) {
        Ok(reader) => reader,
        Err(error) => {
            told(&error);
            return false;
        }
    };
    assert!(digest.is_none_or(|digest| reader.digest() == digest), "another store has the digest of this one");
    let (rows, cols) = reader.grid();
    if reader.block_bytes() > MOST_BLOCK || rows * cols > 256 {
        return false;
    }
    let (mut all, mut block) = (true, Block::zeroed(reader.block_bytes() as usize));
    for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
        let found = reader.read(row, col, &mut block).and_then(|()| reader.container(row, col, &block));
        match (found.map(inner), digest) {
            (Ok(Some(data)), Some(digest)) => {
                // A shard of another place may be taken up: the containers of a matrix say their place.
                assert!(world().inner.contains(&data), "block ({row}, {col})");
                assert!(digest != world().digest || data == world().inner[row * 2 + col], "block ({row}, {col})");
            }
            // What a container holds is checked by whoever reads it.
            (Ok(_), _) => {}
            (Err(error), _) => {
                told(&error);
                all = false;
            }
        }
    }
    let whole = reader.verify();
    assert!(all || whole.is_err(), "blocks are refused of a store that is whole");
    whole.is_ok()
}

/// Goes on with the work; whether it was ended.
fn go_on(root: &Path, digest: Option<[u8; 32]>) -> bool {
    let _ = Writer::begun(root);
    match write(root, Existing::Resume) {
        Ok(Some(digest)) => {
            assert!(read_grid(root, Some(digest)), "what was written is not what is read");
            assert!(!root.join(".sudare-partial").exists());
            true
        }
        // It is there already; whether it is whole is seen when it is read.
        Ok(None) => read_grid(root, digest),
        Err(error) => {
            told(&error);
            false
        }
    }
}

fn read_matrix(root: &Path, resealed: bool) -> bool {
    let stored = match Stored::open(root) {
        Ok(stored) => stored,
        Err(error) => {
            told(&error);
            return false;
        }
    };
    let shown = stored.to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    let whole = stored.verify();
    match stored.load().and_then(|value| value.to_bytes()) {
        Ok(bytes) => {
            assert!(whole.is_ok(), "it is read, and not whole: {whole:?}");
            assert!(resealed || bytes == world().matrix, "another value was read than was written");
            true
        }
        Err(error) => {
            told(&error);
            false
        }
    }
}
