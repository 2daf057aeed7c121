//! Tables on the disk: segments that appear whole, foreign and damaged files.

use crate::world::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread, time};
use sudare_ring::{ErrorKind, Kinded};
use sudare_search::{Answer, Client, Index, Query, SearchError, Server};
use sudare_store::StoreError;
use sudare_testkit::Random;

fn segments(path: &Path) -> PathBuf {
    path.join("segments")
}

#[test]
fn storing_goes_on_and_appends() {
    let mut random = Random(31);
    let data = Data::new(&mut random, 1300, D);
    let world = World::small(goal(3000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    // Given up after a segment and a half.
    let mut storing = world.client.store(&path).unwrap();
    storing.push(&data.rows[..700 * D], &data.payload[..700 * 3]).unwrap();
    drop(storing);
    assert_eq!(world.server.open(&path, MEMORY).unwrap_err(), StoreError::Unfinished { path: path.clone() }.into());
    let first = segments(&path).join("000000/rows/zarr.json");
    let (before, made) = (fs::read(&first).unwrap(), fs::metadata(&first).unwrap().modified().unwrap());
    // Other rows are another work; the same ones go on from the segment that is there.
    let mut other = world.client.store(&path).unwrap();
    let changed: Vec<f32> = data.rows.iter().map(|x| -x).collect();
    let refused = other.push(&changed[..600 * D], &data.payload[..600 * 3]).unwrap_err();
    assert!(matches!(refused, SearchError::OtherRows { .. }), "{refused}");
    world.store(&path, &data);
    assert_eq!((fs::read(&first).unwrap(), fs::metadata(&first).unwrap().modified().unwrap()), (before, made));
    let refused = world.client.store(&path).unwrap_err();
    assert_eq!(refused, StoreError::Exists { path: path.clone() }.into());

    // An append that was given up gives way to other rows, once it is removed.
    let gone = Data::new(&mut random, 512, D);
    let mut storing = world.client.append(&path).unwrap();
    storing.push(&gone.rows, &gone.payload).unwrap();
    drop(storing);
    let other = Data::new(&mut random, 512, D);
    let refused = world.client.append(&path).unwrap().push(&other.rows, &other.payload).unwrap_err();
    assert!(matches!(refused, SearchError::OtherRows { .. }), "{refused}");
    assert_eq!((world.client.discard(&path).unwrap(), world.client.discard(&path).unwrap()), (1, 0));

    let more = Data::new(&mut random, 10, D);
    let mut storing = world.client.append(&path).unwrap();
    storing.push(&more.rows, &more.payload).unwrap();
    assert_eq!(storing.finish().unwrap(), 1310);
    let database = world.server.open(&path, MEMORY).unwrap();
    assert_eq!((database.rows(), database.segments()), (1310, (4, 4)));
    let query = more.rows[4 * D..5 * D].to_vec();
    let hits = world.server.fetch(&database, &world.query(&query), GAP, QUIET).unwrap();
    let hits = world.client.hits(&hits).unwrap().remove(0);
    let found = hits.iter().find(|hit| hit.row == 1304).unwrap();
    assert_eq!(found.payload, more.payload[12..15]);

    // Room for twelve segments.
    for _ in 0..8 {
        let mut storing = world.client.append(&path).unwrap();
        storing.push(&more.rows, &more.payload).unwrap();
        storing.finish().unwrap();
    }
    let mut storing = world.client.append(&path).unwrap();
    let refused = storing.push(&more.rows, &more.payload);
    assert_eq!(refused, Err(SearchError::TooManySegments { planned: 12, rows: 512 }));
    assert_eq!(storing.rows(), 1390);
}

const CHILD: &str = "SUDARE_TEST_TABLE";

/// Run by the next test, and killed by it.
#[test]
#[ignore = "stores rows until it is killed"]
fn a_child_that_stores() {
    let Some(folder) = env::var_os(CHILD) else { return };
    let data = Data::new(&mut Random(32), 6000, D);
    let world = World::small(goal(6000));
    let folder = Path::new(&folder);
    let secret = sudare_rlwe::wire::secret_key_to_bytes(world.client.secret()).unwrap();
    fs::write(folder.join("key"), &*secret).unwrap();
    world.store(&folder.join("t"), &data);
}

#[cfg(unix)]
#[test]
fn a_killed_writer_loses_no_finished_segment() {
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "files::a_child_that_stores", "--ignored"])
        .env(CHILD, folder.path())
        .stdout(Stdio::null())
        .spawn();
    let (mut child, path) = (child.unwrap(), folder.path().join("t"));
    let begun = time::Instant::now();
    while !segments(&path).join("000002/payload/zarr.json").exists() {
        assert!(begun.elapsed().as_secs() < 120);
        thread::sleep(time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let data = Data::new(&mut Random(32), 6000, D);
    let index = Index::insecure(goal(6000), 9).unwrap();
    let secret = fs::read(folder.path().join("key")).unwrap();
    let secret = sudare_rlwe::wire::secret_key_from_bytes(index.params().rlwe(), &secret).unwrap();
    let client = Client::with_secret(&index, secret).unwrap();
    let server = Server::new(&index, client.keys().unwrap()).unwrap();
    let world = World { client, server };
    let kept: Vec<PathBuf> = (0..3).map(|k| segments(&path).join(format!("{k:06}/rows/zarr.json"))).collect();
    let before: Vec<_> = kept.iter().map(|p| fs::read(p).unwrap()).collect();
    world.store(&path, &data);
    assert_eq!(kept.iter().map(|p| fs::read(p).unwrap()).collect::<Vec<_>>(), before);
    let query = &data.rows[3000 * D..3001 * D];
    assert_eq!(world.count(&path, query).unwrap(), data.matches(query, 0.8).len() as u64);
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    entries.flat_map(|p| if p.is_dir() { files(&p) } else { vec![p] }).collect()
}

#[test]
fn damaged_swapped_and_missing_files_are_refused() {
    let data = Data::new(&mut Random(33), 600, D);
    let world = World::small(goal(1000));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    world.store(&path, &data);
    let query = &data.rows[..D];
    let count = || world.count(&path, query);
    let expected = data.matches(query, 0.8).len() as u64;
    assert_eq!(count().unwrap(), expected);
    for file in files(&path) {
        let bytes = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert!(count().is_err(), "{} is missing", file.display());
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        assert!(count().is_err(), "{} is cut", file.display());
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 3] ^= 1;
        fs::write(&file, &flipped).unwrap();
        // No byte that is read goes unseen, of payloads neither.
        assert!(count().is_err(), "{} is changed", file.display());
        fs::write(&file, &bytes).unwrap();
    }
    assert_eq!(count().unwrap(), expected);
    // Segments in each other's place.
    let [a, b, c] = ["000000", "000001", "x"].map(|name| segments(&path).join(name));
    for (from, to) in [(&a, &c), (&b, &a), (&c, &b)] {
        fs::rename(from, to).unwrap();
    }
    assert!(matches!(count(), Err(SearchError::Damaged { .. })));
}

#[test]
fn foreign_objects_are_refused() {
    let data = Data::new(&mut Random(34), 50, D);
    let [one, other] = [(); 2].map(|()| World::small(goal(1000)));
    let wider = World::small(goal(1001));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    one.store(&path, &data);
    for stranger in [&other, &wider] {
        assert_eq!(stranger.server.open(&path, MEMORY).unwrap_err().kind(), ErrorKind::Mismatch);
        assert_eq!(stranger.client.append(&path).unwrap_err().kind(), ErrorKind::Mismatch);
    }
    let database = one.server.open(&path, MEMORY).unwrap();
    assert!(matches!(one.server.open(&path, 1 << 20), Err(SearchError::TooLittleMemory { .. })));
    let ask = |query: &Query| one.server.count(&database, query, &[GAP], QUIET);
    let query = &data.rows[..D];
    assert_eq!(ask(&other.query(query)).unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(
        wider.server.count(&database, &wider.query(query), &[GAP], QUIET).unwrap_err().kind(),
        ErrorKind::Mismatch
    );
    // Of one key, and another plan.
    let secret = sudare_rlwe::wire::secret_key_to_bytes(one.client.secret()).unwrap();
    let secret = sudare_rlwe::wire::secret_key_from_bytes(wider.client.index().params(), &secret).unwrap();
    let foreign = Client::with_secret(wider.client.index(), secret).unwrap().query(query).unwrap();
    assert_eq!(ask(&foreign).unwrap_err().kind(), ErrorKind::Mismatch);
    let index = one.client.index();
    let bytes = one.query(query).to_bytes().unwrap();
    assert_eq!(Query::from_bytes(wider.client.index(), &bytes).unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(Answer::from_bytes(index, &bytes).unwrap_err().kind(), ErrorKind::Mismatch);
    for cut in [0, 1, 100, bytes.len() / 2, bytes.len() - 1] {
        assert!(Query::from_bytes(index, &bytes[..cut]).is_err());
    }
    let answer = ask(&one.query(query)).unwrap();
    assert!(matches!(one.client.hits(&answer), Err(SearchError::OtherAnswer { .. })));
    assert!(matches!(one.client.scores(&answer), Err(SearchError::OtherAnswer { .. })));
    assert_eq!(other.client.counts(&answer).unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(Query::from_bytes(index, &answer.to_bytes().unwrap()).unwrap_err().kind(), ErrorKind::Mismatch);
    // A server without one of its keys.
    let keys = sudare_rlwe::keys::KeyGenerator::new(one.client.secret()).unwrap().eval_keys(Some(9), &[]).unwrap();
    assert_eq!(Server::new(index, keys).unwrap_err().kind(), ErrorKind::MissingKey);
}
