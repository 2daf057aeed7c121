//! What the tests of the command share.
#![allow(dead_code, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own for a test, and the command run in it.
pub struct Place {
    pub folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, to be run here.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sudare"));
        command.args(words).current_dir(self.folder.path()).env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs what has to succeed; returns standard output.
    pub fn ok(&self, words: &str) -> String {
        let out = self.run(&words.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "sudare {words}: {text}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// Runs what has to fail with a code and with one line that holds a phrase; nothing may have
    /// been written.
    pub fn fails(&self, words: &str, code: i32, phrase: &str) {
        let before = self.listing();
        let out = self.run(&words.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "sudare {words}: {text}");
        assert!(text.contains(phrase), "sudare {words}: {text}");
        assert_eq!(text.trim_end().lines().count(), 1, "sudare {words}: {text}");
        assert!(!text.contains("panicked"), "{text}");
        assert_eq!(before, self.listing(), "sudare {words} left something behind");
    }

    /// The names of all files.
    pub fn files(&self) -> Vec<String> {
        let relative = |p: PathBuf| p.strip_prefix(self.folder.path()).unwrap().display().to_string();
        self.listing().into_iter().map(|(path, _)| relative(path)).collect()
    }

    /// All files with their contents' hashes.
    pub fn listing(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    all.push((path, bytes));
                }
            }
        }
        all.sort();
        all
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Writes a matrix as .npy or .csv, by the name.
    pub fn matrix(&self, name: &str, rows: usize, cols: usize, data: &[f64]) {
        assert_eq!(rows * cols, data.len());
        if name.ends_with(".csv") {
            let lines: Vec<String> =
                data.chunks(cols).map(|r| r.iter().map(f64::to_string).collect::<Vec<_>>().join(",")).collect();
            return self.write(name, lines.join("\n"));
        }
        self.write(name, npy("<f8", false, &format!("({rows}, {cols})"), &doubles(data)));
    }

    /// Reads a matrix that the command wrote.
    pub fn load(&self, name: &str) -> (usize, usize, Vec<f64>) {
        let bytes = self.read(name);
        if name.ends_with(".csv") {
            let text = String::from_utf8(bytes).unwrap();
            let rows: Vec<Vec<f64>> =
                text.lines().map(|l| l.split(',').map(|x| x.parse().unwrap()).collect()).collect();
            return (rows.len(), rows[0].len(), rows.concat());
        }
        let header = String::from_utf8_lossy(&bytes[10..10 + usize::from(bytes[8]) + 256 * usize::from(bytes[9])]);
        let shape = header.split('(').nth(1).unwrap().split(')').next().unwrap();
        let sides: Vec<usize> = shape.split(',').filter_map(|s| s.trim().parse().ok()).collect();
        let count: usize = sides.iter().product();
        let data = bytes[bytes.len() - 8 * count..].chunks(8);
        let data = data.map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
        (count / sides.last().unwrap(), *sides.last().unwrap(), data)
    }
}

pub fn doubles(data: &[f64]) -> Vec<u8> {
    data.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// A .npy file of version 1.
pub fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
    out.extend(data);
    out
}

/// Values between −1 and 1 that look random and are the same each time.
pub fn values(count: usize, seed: u64) -> Vec<f64> {
    sudare_testkit::Random(seed).units(count)
}

pub fn product(m: usize, k: usize, n: usize, a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..m * n).map(|at| (0..k).map(|t| a[at / n * k + t] * b[t * n + at % n]).sum()).collect()
}

pub fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |m, (x, y)| m.max((x - y).abs()))
}

pub fn exists(path: &Path) -> bool {
    path.exists()
}
