//! Grids on a disk: what is written is read, damage is found, and interrupted work goes on.

use crate::support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use sudare_store::{Block, BlockSource, Existing, Grid, Reader, Reading, Request, StoreError, Writer, read_ahead};
use support::{container, description, files, grid, put, write};

fn block(source: &dyn BlockSource, row: usize, col: usize) -> Result<Vec<u8>, StoreError> {
    let mut block = Block::zeroed(source.block_bytes() as usize);
    source.read(row, col, &mut block)?;
    source.container(row, col, &block).map(<[u8]>::to_vec)
}

#[test]
fn what_is_written_is_read() {
    for shard in [(1, 1), (2, 3), (5, 4), (3, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sudare");
        let digest = write(&path, grid(5, 4, shard), Existing::Refuse, || ()).unwrap();
        for reading in [Reading::Cached, Reading::Direct] {
            let reader = Reader::open(&path, reading).unwrap();
            assert_eq!((reader.grid(), reader.block_bytes()), ((5, 4), 8192));
            assert_eq!(*reader.description(), description());
            assert_eq!(reader.digest(), digest);
            for (row, col) in (0..5).flat_map(|i| (0..4).map(move |j| (i, j))) {
                assert_eq!(block(&reader, row, col).unwrap(), container(row, col, 3000));
            }
            assert_eq!(reader.bytes_read(), 20 * 8192);
            reader.verify().unwrap();
            assert!(matches!(block(&reader, 5, 0), Err(StoreError::Range { .. })));
        }
        assert!(!path.join(".sudare-partial").exists());
    }
}

/// What stands in the repository was written once and is opened by zarr-python, xarray and dask as well
/// (`python/tests/test_store_layout.py`).
#[test]
fn the_golden_store_is_written_and_read() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1/grid.sudare");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grid.sudare");
    write(&path, grid(3, 2, (2, 2)), Existing::Refuse, || ()).unwrap();
    if std::env::var_os("SUDARE_WRITE_GOLDEN").is_some() {
        assert!(
            Command::new("cp").args(["-r".as_ref(), path.as_os_str(), golden.as_os_str()]).status().unwrap().success()
        );
    }
    let below = |root: &Path| -> Vec<_> {
        files(root).into_iter().map(|(p, b)| (p.strip_prefix(root).unwrap().to_path_buf(), b)).collect()
    };
    assert!(below(&path) == below(&golden));
    Reader::open(&golden, Reading::Cached).unwrap().verify().unwrap();
}

/// Every byte of every file, flipped.
#[test]
fn one_flipped_byte_anywhere_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sudare");
    write(&path, grid(2, 2, (1, 2)), Existing::Refuse, || ()).unwrap();
    let read = || Reader::open(&path, Reading::Cached).and_then(|reader| reader.verify());
    let (mut flips, mut through_blocks) = (0, 0);
    for (file, bytes) in files(&path) {
        // Of long runs every 13th byte, with all of the first and last.
        for at in (0..bytes.len()).filter(|at| *at < 600 || at % 13 == 0 || *at + 600 > bytes.len()) {
            put(&file, at, bytes[at] ^ 1 << (at % 8));
            let error = read().expect_err(&format!("{} byte {at}", file.display()));
            through_blocks += usize::from(matches!(error, StoreError::Block { .. }));
            flips += 1;
            put(&file, at, bytes[at]);
        }
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&file, &bytes[..cut]).unwrap();
            assert!(read().is_err(), "{} cut to {cut}", file.display());
        }
        fs::write(&file, [&bytes[..], &[0]].concat()).unwrap();
        assert!(read().is_err(), "{} longer", file.display());
        fs::write(&file, &bytes).unwrap();
    }
    read().unwrap();
    assert!(flips > 3000 && through_blocks > 1000, "{flips} {through_blocks}");
}

#[test]
fn a_block_in_another_place_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sudare");
    write(&path, grid(2, 1, (1, 1)), Existing::Refuse, || ()).unwrap();
    let shards = [path.join("blocks/c/0/0/0"), path.join("blocks/c/1/0/0")];
    let bytes = shards.clone().map(|p| fs::read(p).unwrap());
    fs::write(&shards[0], &bytes[1]).unwrap();
    fs::write(&shards[1], &bytes[0]).unwrap();
    let reader = Reader::open(&path, Reading::Direct).unwrap();
    assert!(matches!(block(&reader, 0, 0), Err(StoreError::Damaged { .. })));
    assert!(matches!(reader.verify(), Err(StoreError::Damaged { .. })));
}

#[test]
fn names_that_are_taken_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sudare");
    let sizes = grid(2, 2, (1, 2));
    let begin = |work, existing| Writer::begin(&path, sizes, work, existing);
    assert!(matches!(Reader::open(&path, Reading::Cached), Err(StoreError::NotAStore { .. })));

    let first = begin([3; 32], Existing::Refuse).unwrap().unwrap();
    assert!(matches!(begin([3; 32], Existing::Resume), Err(StoreError::Busy { .. })));
    drop(first);
    assert!(matches!(Reader::open(&path, Reading::Cached), Err(StoreError::Unfinished { .. })));
    assert!(matches!(begin([3; 32], Existing::Refuse), Err(StoreError::Unfinished { .. })));
    assert!(matches!(begin([4; 32], Existing::Resume), Err(StoreError::OtherWork { .. })));
    assert_eq!(Writer::begun(&path), Some(sizes));

    let writer = begin([3; 32], Existing::Resume).unwrap().unwrap();
    let mut short = writer.shard((0, 0)).unwrap();
    assert!(matches!(short.push(&container(0, 0, 5000)), Err(StoreError::Wire(_))), "another length");
    short.push(&container(0, 0, 3000)).unwrap();
    assert!(matches!(short.finish(), Err(StoreError::Range { .. })), "a block is missing");
    assert!(matches!(writer.finish(description()), Err(StoreError::Range { .. })), "shards are missing");

    write(&path, sizes, Existing::Resume, || ()).unwrap();
    assert!(matches!(begin([3; 32], Existing::Refuse), Err(StoreError::Exists { .. })));
    assert!(begin([3; 32], Existing::Resume).unwrap().is_none(), "nothing is left to do");
    assert!(matches!(begin([4; 32], Existing::Resume), Err(StoreError::OtherWork { .. })));

    let other = folder.path().join("folder");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine.txt"), "mine").unwrap();
    assert!(matches!(Writer::begin(&other, sizes, [0; 32], Existing::Resume), Err(StoreError::Exists { .. })));
}

#[test]
fn sizes_that_no_grid_has_are_refused() {
    for (rows, cols, bytes) in [(0, 1, 4096), (1, 0, 4096), (1, 1, 0), (1, 1, 4095), (1 << 30, 1 << 30, 4096)] {
        assert!(matches!(Grid::new(rows, cols, bytes), Err(StoreError::Range { .. })), "{rows} {cols} {bytes}");
    }
    // Shards are parts of tiles.
    let tiled = Grid::of_tiles(100, 70, 1 << 20, (40, 35)).unwrap();
    assert_eq!((tiled.shard_rows, tiled.shard_cols), (40, 5));
    let wide = Grid::of_tiles(100, 400, 1 << 20, (40, 400)).unwrap();
    assert_eq!((wide.shard_rows, wide.shard_cols), (5, 50));
    let prime = Grid::of_tiles(158, 158, 2 << 20, (79, 67)).unwrap();
    assert_eq!((prime.shard_rows, prime.shard_cols), (79, 1));
    // Of no tiles, about equal ones.
    let plain = Grid::new(1000, 1009, 1 << 20).unwrap();
    assert_eq!((plain.shard_rows, plain.shard_cols), (1, 253));
}

/// Blocks come in the order asked for, whatever the window, and reading stops with the one who asked.
#[test]
fn blocks_are_read_ahead_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sudare");
    write(&path, grid(6, 5, (2, 5)), Existing::Refuse, || ()).unwrap();
    let reader = Reader::open(&path, Reading::Direct).unwrap();
    let order: Vec<(usize, usize)> = (0..60).map(|i| (i * 7 % 6, i * 3 % 5)).collect();
    let requests: Vec<Request<'_>> =
        order.iter().map(|(row, col)| Request { source: &reader, row: *row, col: *col }).collect();
    // A window of less than a step of seven, which is out at once.
    for (window, threads) in [(0, 1), (8192, 2), (4 * 8192, 3), (1 << 30, 4)] {
        read_ahead(&requests, window, threads, |ahead| {
            for step in order.chunks(7) {
                let blocks: Vec<_> = step.iter().map(|_| ahead.next().unwrap().unwrap()).collect();
                for (block, (row, col)) in blocks.iter().zip(step) {
                    assert_eq!(reader.container(*row, *col, block).unwrap(), container(*row, *col, 3000));
                }
                ahead.give_back(blocks);
            }
            assert!(ahead.next().unwrap().is_none());
        });
        let first = read_ahead(&requests, window, threads, |ahead| ahead.next().unwrap().unwrap());
        assert_eq!(reader.container(0, 0, &first).unwrap(), container(0, 0, 3000));
    }
}

const CHILD: &str = "SUDARE_STORE_CHILD";

/// The process that is killed: no test of its own without the variable.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let slowly = || std::thread::sleep(Duration::from_micros(300));
    write(Path::new(&path), grid(12, 6, (2, 3)), Existing::Resume, slowly).unwrap();
}

/// Killed at random moments and resumed: the same bytes, no leftovers, finished shards as they were.
#[test]
fn killed_writing_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    write(&whole, grid(12, 6, (2, 3)), Existing::Refuse, || ()).unwrap();
    let expected: Vec<Vec<u8>> = files(&whole).into_iter().map(|(_, bytes)| bytes).collect();
    let exe = std::env::current_exe().unwrap();
    let rounds = sudare_testkit::setting("SUDARE_KILLS", 6);
    let (mut interrupted, mut kept) = (0, 0);
    for round in 0..rounds {
        let path = folder.path().join(format!("killed-{round}"));
        // Two kills, at moments spread over the time that the work takes.
        for kill in 0..2 {
            let mut child = Command::new(&exe)
                .args(["--exact", "store::child_that_writes", "--nocapture"])
                .env(CHILD, &path)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros(2000 + (round * 2 + kill) * 7919 % 45_000));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        if path.join("zarr.json").exists() {
            Reader::open(&path, Reading::Cached).unwrap().verify().unwrap();
        } else {
            assert!(Reader::open(&path, Reading::Cached).is_err());
            interrupted += 1;
        }
        let finished = |root: &Path| -> Vec<_> {
            let is_shard = |p: &Path| p.ends_with("0") && p.starts_with(root.join("blocks"));
            files(root).into_iter().map(|(p, _)| p).filter(|p| is_shard(p)).collect()
        };
        let before: Vec<_> = if path.exists() { finished(&path) } else { Vec::new() };
        let inode = |p: &Path| fs::metadata(p).map(|m| (m.ino(), m.mtime_nsec())).unwrap();
        let inodes: Vec<_> = before.iter().map(|p| inode(p)).collect();
        if !path.join("zarr.json").exists() {
            write(&path, grid(12, 6, (2, 3)), Existing::Resume, || ()).unwrap();
        } else {
            Writer::begin(&path, grid(12, 6, (2, 3)), [3; 32], Existing::Resume).unwrap();
        }
        kept += before.len();
        assert_eq!(
            before.iter().map(|p| inode(p)).collect::<Vec<_>>(),
            inodes,
            "finished shards are not written again"
        );
        let found: Vec<Vec<u8>> = files(&path).into_iter().map(|(_, bytes)| bytes).collect();
        assert!(found == expected, "other bytes or leftovers in round {round}");
    }
    assert!(interrupted > 0 && kept > 0, "{interrupted} of {rounds} were interrupted, {kept} shards were kept");
}
