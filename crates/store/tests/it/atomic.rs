//! Files are whole or not there, and no secret key is lost to one.

use crate::support::{KEY, PARAMS, grid, write as write_grid};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use sudare_rlwe::KeyId;
use sudare_rlwe::wire::{Header, ObjectType, State, Writer};
use sudare_store::atomic::{self, Access, Durability, Over, Part, Scratch, secret_key_at};
use sudare_store::{Existing, StoreError};

fn object(object: ObjectType) -> Vec<u8> {
    let header = Header::new(object, (PARAMS, KEY), State::default(), Vec::new(), vec![8]).unwrap();
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &header).unwrap();
    writer.segment(&[1; 8]).unwrap();
    writer.finish().unwrap();
    out
}

fn write(path: &Path, parts: &[&[u8]], access: Access, over: Over) -> Result<(), StoreError> {
    atomic::write(path, parts, access, over, Durability::Power)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn no_file_takes_a_secret_keys_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let under = [object(ObjectType::TfheParams), object(ObjectType::TfheClientKey)].concat();
    for key in [object(ObjectType::SecretKey), object(ObjectType::GenomeClientKey), under] {
        fs::write(&path, &key).unwrap();
        assert_eq!(secret_key_at(&path), Some(Some(KEY)));
        for over in [Over::NoKey, Over::Key(KeyId([1; 16]))] {
            let refused = write(&path, &[b"new"], Access::Usual, over);
            assert!(matches!(refused, Err(StoreError::KeyLost { .. })));
            assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (key.clone(), vec!["x".into()]));
        }
        // A damaged one may still be mended.
        fs::write(&path, &key[..key.len() - 60]).unwrap();
        assert!(secret_key_at(&path).is_some());
        assert!(matches!(write(&path, &[b"new"], Access::Usual, Over::NoKey), Err(StoreError::KeyLost { .. })));
        write(&path, &[&key[..20], &key[20..]], Access::Owner, Over::Key(KEY)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), key);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        write(&path, &[b"new"], Access::Usual, Over::All).unwrap();
        assert_eq!((fs::read(&path).unwrap(), secret_key_at(&path)), (b"new".to_vec(), None));
        assert!(matches!(write(&path, &[], Access::Owner, Over::Key(KEY)), Err(StoreError::Taken { .. })));
    }
    for other in [object(ObjectType::PublicKey), object(ObjectType::TfheParams), b"SUDARE".to_vec(), Vec::new()] {
        fs::write(&path, &other).unwrap();
        write(&path, &[b"new"], Access::Usual, Over::NoKey).unwrap();
    }
}

#[test]
fn what_ended_processes_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("k"), folder.path().join(".other.abc.part"));
    for left in [&folder.path().join(".k.abc.part"), &other] {
        fs::write(left, "half a key").unwrap();
    }
    // Somebody writes it now.
    let held = Scratch::beside(&path, Access::Owner).unwrap();
    write(&path, &[b"whole"], Access::Owner, Over::NoKey).unwrap();
    let now = held.path().file_name().unwrap().to_str().unwrap().to_owned();
    let mut expected = vec![now, ".other.abc.part".into(), "k".into()];
    expected.sort();
    assert_eq!(names(folder.path()), expected);
}

/// A link that somebody put where a store writes leads nowhere.
#[test]
fn links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (foreign, path) = (folder.path().join("foreign"), folder.path().join("x.sudare"));
    fs::write(&foreign, "foreign").unwrap();
    fs::create_dir(&path).unwrap();
    symlink(&foreign, path.join(".sudare-partial")).unwrap();
    assert!(matches!(write_grid(&path, grid(2, 2, (1, 1)), Existing::Resume, || ()), Err(StoreError::Io { .. })));
    fs::remove_file(path.join(".sudare-partial")).unwrap();
    // In the place of a shard and of the root, and where their scratch files might be.
    let root = path.join("zarr.json");
    fs::create_dir_all(path.join("blocks/c/0/0")).unwrap();
    File::create(path.join(".sudare-partial")).unwrap();
    symlink(&foreign, path.join("blocks/c/0/0/.0.abc.part")).unwrap();
    symlink(&foreign, path.join(".zarr.json.abc.part")).unwrap();
    write_grid(&path, grid(2, 2, (1, 1)), Existing::Resume, || ()).unwrap();
    assert_eq!(fs::read(&foreign).unwrap(), b"foreign");
    assert!(fs::symlink_metadata(&root).unwrap().is_file());
    // Nor does one in the place of a folder, on which a work goes on or ends.
    let (other, there) = (folder.path().join("y.sudare"), folder.path().join("there"));
    fs::create_dir(&there).unwrap();
    fs::write(there.join("0"), "foreign").unwrap();
    for (from, to) in [("blocks/c/0/0", "blocks/c/0"), ("digests/c/0/0", "digests/c/0")] {
        fs::create_dir_all(other.join(to)).unwrap();
        File::create(other.join(".sudare-partial")).unwrap();
        symlink(&there, other.join(from)).unwrap();
        let refused = write_grid(&other, grid(2, 2, (1, 1)), Existing::Resume, || ());
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
        let refused = write_grid(&other, grid(2, 2, (1, 1)), Existing::Resume, || ());
        assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
        assert_eq!(fs::read(there.join("0")).unwrap(), b"foreign");
        assert_eq!(fs::read_dir(&there).unwrap().count(), 1);
        fs::remove_dir_all(&other).unwrap();
    }
    // And a link in the place itself is replaced.
    symlink(&foreign, folder.path().join("link")).unwrap();
    write(&folder.path().join("link"), &[b"new"], Access::Usual, Over::NoKey).unwrap();
    assert_eq!(fs::read(&foreign).unwrap(), b"foreign");
}

/// A file that several processes write takes its place as others do, and goes on where the last one ended.
#[test]
fn a_part_grows_and_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (part, path) = (folder.path().join("part"), folder.path().join("x"));
    Part::open(part.clone(), 0).unwrap().write_all(b"half and something").unwrap();
    let mut second = Part::open(part.clone(), 4).unwrap();
    second.write_all(b" and the other").unwrap();
    fs::write(&path, object(ObjectType::SecretKey)).unwrap();
    assert!(matches!(second.place(&path, Over::NoKey, Durability::Power), Err(StoreError::KeyLost { .. })));
    assert!(part.exists());
    Part::open(part, 0).unwrap().place(&path, Over::All, Durability::Power).unwrap();
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"half and the other".to_vec(), vec!["x".into()]));
}

/// One at a time has a file; whoever comes later is told so, and what is in it stays.
#[test]
fn a_file_is_owned_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let mut first = atomic::own(&path).unwrap().unwrap();
    first.write_all(b"mine").unwrap();
    assert!(atomic::own(&path).unwrap().is_none());
    drop(first);
    assert!(atomic::own(&path).unwrap().is_some());
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}
