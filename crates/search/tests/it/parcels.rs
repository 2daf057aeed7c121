//! Segments that travel: what arrives is the table, and nothing else is taken.

use crate::world::*;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use sudare_ring::{ErrorKind, Kinded};
use sudare_search::parcel::{PARCEL, Parcel, receive};
use sudare_search::{Client, Manifest, SearchError};
use sudare_testkit::Random;

fn parcel(client: &Client, path: &Path, segment: usize) -> Vec<u8> {
    let mut parcel = Parcel::new(client.index(), client.secret().id(), path, segment).unwrap();
    let mut bytes = Vec::new();
    parcel.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, parcel.length());
    // From any byte on.
    let mut rest = Vec::new();
    parcel.seek(SeekFrom::Start(bytes.len() as u64 / 3)).unwrap();
    parcel.read_to_end(&mut rest).unwrap();
    assert!(bytes.ends_with(&rest) && bytes.starts_with(PARCEL));
    bytes
}

fn take(client: &Client, path: &Path, bytes: &[u8]) -> Result<Manifest, SearchError> {
    receive(client.index(), client.secret().id(), path, bytes, bytes.len() as u64)
}

#[test]
fn a_table_arrives_segment_by_segment() {
    for world in [World::small(goal(3000)), World::compact(goal(6000))] {
        let (mut random, folder) = (Random(71), tempfile::tempdir().unwrap());
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        let most = world.client.index().segment_rows();
        let data = Data::new(&mut random, most + 30, D);
        world.store(&here, &data);
        let all = [0, 1].map(|k| parcel(&world.client, &here, k));
        let refused = take(&world.client, &there, &all[1]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Format, "{refused}");
        assert_eq!(take(&world.client, &there, &all[0]).unwrap().rows(), most as u64);
        // What was begun by a work that ended is written anew, and what is there is taken again.
        fs::create_dir_all(there.join("segments/000001/rows/blocks")).unwrap();
        for _ in 0..2 {
            assert_eq!(take(&world.client, &there, &all[1]).unwrap().rows(), most as u64 + 30);
            assert_eq!(take(&world.client, &there, &all[0]).unwrap().rows(), most as u64 + 30);
        }
        let [a, b] = [&here, &there].map(|path| world.server.open(path, MEMORY).unwrap());
        let query = world.query(&data.questions(&mut random).concat());
        let [a, b] = [a, b].map(|table| world.server.count(&table, &query, &[GAP], QUIET).unwrap());
        assert_eq!(a.to_bytes().unwrap(), b.to_bytes().unwrap());
        assert!(Parcel::new(world.client.index(), world.client.secret().id(), &here, 2).is_err());
    }
}

#[test]
fn nothing_but_a_segment_of_the_table_is_taken() {
    let (mut random, folder) = (Random(72), tempfile::tempdir().unwrap());
    let world = World::small(goal(3000));
    let [here, there, other] = ["here", "there", "other"].map(|name| folder.path().join(name));
    let data = Data::new(&mut random, 20, D);
    world.store(&here, &data);
    world.store(&other, &data);
    let bytes = parcel(&world.client, &here, 0);
    let refused = |bytes: &[u8]| {
        let refused = take(&world.client, &there, bytes).unwrap_err().kind();
        assert!(!there.join("segments.json").exists() && !there.join("segments/000000").exists());
        refused
    };
    let end = bytes.iter().position(|b| *b == b'\n').unwrap();
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let with = |from: &str, to: &str| {
        assert!(head.contains(from), "{from}");
        [head.replacen(from, to, 1).as_bytes(), &bytes[end..]].concat()
    };
    for name in ["../zarr.json", "rows/../../../x", "/rows/zarr.json", "rows/blocks/c/00/0/0", "rows//zarr.json", "x"] {
        assert_eq!(refused(&with("rows/zarr.json", name)), ErrorKind::Format, "{name}");
    }
    assert_eq!(refused(&with("payload/zarr.json", "rows/zarr.json")), ErrorKind::Format);
    assert_eq!(refused(&with("rows/blocks/c/0/0/0", "rows/blocks/c/7/0/0")), ErrorKind::Io);
    assert_eq!(refused(&with("\"rows\":20", "\"rows\":600")), ErrorKind::Mismatch);
    assert_eq!(refused(&with("\"rows\":20", "\"rows\":0")), ErrorKind::Mismatch);
    assert_eq!(refused(&with("\"sudare_segment\":1", "\"sudare_segment\":9")), ErrorKind::Format);
    assert_eq!(refused(&with("\"segment\":0", "\"segment\":1")), ErrorKind::Format);
    assert_eq!(refused(&bytes[..bytes.len() - 1]), ErrorKind::Format);
    assert_eq!(refused(&[&bytes[..], b"x"].concat()), ErrorKind::Format);
    assert_eq!(refused(b"{}"), ErrorKind::Format);
    for at in [end + 5, bytes.len() - 5000, bytes.len() - 40] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(refused(&changed), ErrorKind::Format, "byte {at}");
    }
    // Another owner's, and one of another table.
    let stranger = Client::new(world.client.index()).unwrap();
    assert_eq!(take(&stranger, &folder.path().join("theirs"), &bytes).unwrap_err().kind(), ErrorKind::Mismatch);
    take(&world.client, &there, &bytes).unwrap();
    assert_eq!(take(&world.client, &there, &parcel(&world.client, &other, 0)).unwrap_err().kind(), ErrorKind::Mismatch);
    assert_eq!(world.server.open(&there, MEMORY).unwrap().rows(), 20);
}
