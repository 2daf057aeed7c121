//! How the command ends when something comes between: nobody reads what it says, the disk is full,
//! a signal comes, another run makes the same files. What is left is whole, or nothing.

use crate::common;
use common::*;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use sudare_rlwe::wire::peek;

const PLAN: [&str; 7] = ["plan", "--left", "3x4", "--right", "4x2", "-o", "plan.json"];
const KEYGEN: [&str; 4] = ["keygen", "plan.json", "-o", "keys"];

/// Bytes that a pipe holds when nobody reads.
const PIPE: usize = 1 << 16;

/// A command whose standard output is a pipe that is full: it waits with everything written and
/// nothing in its place until somebody reads.
fn start_full(mut command: Command) -> (Child, PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b' '; PIPE]).unwrap();
    (command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap(), reader)
}

/// Ends the wait: exit code and standard error.
fn let_go(child: Child, mut reader: PipeReader) -> (Option<i32>, String) {
    let drained = std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    let out = child.wait_with_output().unwrap();
    drained.join().unwrap().unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

fn scratch_files(place: &Place, folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place.path(folder)) else { return Vec::new() };
    let paths = entries.map(|e| e.unwrap().path());
    paths.filter(|p| p.extension().is_some_and(|e| e == "part")).collect()
}

fn wait_for(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < Duration::from_secs(120), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process sleeps in a system call.
fn sleeps(child: &Child) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// Waits until a keygen has written its files and waits for a reader.
fn wait_until_written(place: &Place, child: &Child, files: usize) {
    wait_for("keys written", || scratch_files(place, "keys").len() == files && sleeps(child));
    // Asleep a second time: not by chance between two files.
    std::thread::sleep(Duration::from_millis(200));
    wait_for("a wait for the reader", || sleeps(child));
}

fn planned() -> Place {
    let place = Place::new();
    place.ok(&PLAN.join(" "));
    place
}

/// All keys of a folder are of one `keygen`.
fn assert_one_set(place: &Place) {
    let ids = ["keys/secret.key", "keys/public.key", "keys/eval.keys"].map(|f| peek(&*place.read(f)).unwrap().key());
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
}

#[test]
fn nobody_reads_what_it_says() {
    let place = Place::new();
    let mut child = place.command(&PLAN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(7), "{text}");
    assert!(text.contains("standard output") && !text.contains("panicked"), "{text}");
    assert!(place.files().is_empty(), "{:?}", place.files());

    // A reader of the first line gets them all.
    let mut child = place.command(&PLAN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && !first.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(place.files(), ["plan.json"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_disk_is_full() {
    let place = planned();
    place.matrix("a.npy", 3, 4, &values(12, 1));
    place.ok("keygen plan.json -o keys");
    let before = place.listing();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let other = ["plan", "--left", "3x4", "--right", "4x2", "-o", "other.json"];
    let encrypt = ["encrypt", "plan.json", "--keys", "keys/public.key", "--as", "left", "a.npy", "-o", "a.ct"];
    // Standard output, standard error as well, and the output itself: no file over one kilobyte.
    let mut commands = Vec::new();
    for words in [&other[..], &encrypt, &["keygen", "plan.json", "-o", "more"]] {
        let mut command = place.command(words);
        command.stdout(full());
        commands.push(command);
        let mut command = place.command(words);
        command.stdout(full()).stderr(full());
        commands.push(command);
        let mut command = Command::new("sh");
        let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
        command.args(["-c", limited, env!("CARGO_BIN_EXE_sudare")]).args(words).current_dir(place.folder.path());
        command.env("XDG_CACHE_HOME", place.path("cache"));
        commands.push(command);
    }
    for mut command in commands {
        let out = command.output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(7), "{command:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
        assert_eq!(before, place.listing(), "{command:?} left something behind");
    }
}

#[test]
fn a_signal_comes() {
    let place = planned();
    for (name, number) in [("INT", 2), ("TERM", 15)] {
        // Whoever runs the tests may ignore signals, and so would what they start.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_sudare")]).args(KEYGEN);
        command.current_dir(place.folder.path()).env("XDG_CACHE_HOME", place.path("cache"));
        let (mut child, _reader) = start_full(command);
        wait_until_written(&place, &child, 3);
        let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{status}");
        assert_eq!(place.files(), ["plan.json"]);
    }
    // Who started it may have it ignore signals.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' INT; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_sudare")]).args(KEYGEN);
    command.current_dir(place.folder.path()).env("XDG_CACHE_HOME", place.path("cache"));
    let (child, reader) = start_full(command);
    wait_until_written(&place, &child, 3);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let (code, text) = let_go(child, reader);
    assert_eq!(code, Some(0), "{text}");
    assert_one_set(&place);
}

#[test]
fn what_others_left() {
    let place = Place::new();
    place.write(".plan.json.Ab12Cd.part", "half of a plan");
    place.write(".other.json.Ab12Cd.part", "another's");
    // Somebody is writing this one.
    place.write(".plan.json.Ef34Gh.part", "the other half");
    let held = File::open(place.path(".plan.json.Ef34Gh.part")).unwrap();
    held.lock().unwrap();
    place.ok(&PLAN.join(" "));
    assert_eq!(place.files(), [".other.json.Ab12Cd.part", ".plan.json.Ef34Gh.part", "plan.json"]);
    drop(held);
    place.ok(&[&PLAN[..], &["--force"]].concat().join(" "));
    assert_eq!(place.files(), [".other.json.Ab12Cd.part", "plan.json"]);
}

#[test]
fn two_make_keys_at_once() {
    let place = planned();
    for (words, force) in [(KEYGEN.to_vec(), false), ([&KEYGEN[..], &["--force"]].concat(), true)] {
        let (first, from_first) = start_full(place.command(&words));
        wait_until_written(&place, &first, 3);
        let (second, from_second) = start_full(place.command(&words));
        wait_until_written(&place, &second, 6);
        // Both have looked, and seen no key that is not to be replaced.
        let (code, text) = let_go(second, from_second);
        assert_eq!(code, Some(0), "{text}");
        let kept = place.read("keys/secret.key");
        let (code, text) = let_go(first, from_first);
        if force {
            assert_eq!(code, Some(0), "{text}");
            assert_ne!(place.read("keys/secret.key"), kept);
        } else {
            assert_eq!(code, Some(2), "{text}");
            assert!(text.contains("keys/secret.key: is there already") && text.contains("--force"), "{text}");
            assert_eq!(place.read("keys/secret.key"), kept);
        }
        assert_one_set(&place);
        assert!(scratch_files(&place, "keys").is_empty());
    }
    // One that comes for the others' names gives back what it has placed.
    fs::remove_dir_all(place.path("keys")).unwrap();
    let (child, reader) = start_full(place.command(&KEYGEN));
    wait_until_written(&place, &child, 3);
    place.write("keys/eval.keys", "somebody else's");
    let (code, text) = let_go(child, reader);
    assert_eq!(code, Some(2), "{text}");
    assert_eq!(place.files(), ["keys/eval.keys", "plan.json"]);
    assert_eq!(place.read("keys/eval.keys"), b"somebody else's");
}
