//! A segment on its way from the owner's disk to a server's: one stream of bytes.
//!
//! A line of JSON says which table it is of and what files follow, and with how many bytes; then come the files. The
//! receiver takes no other name than a segment's files have, and checks every byte before the table lists the segment.

use crate::error::SearchError;
use crate::files::{Files, Manifest, Part, SegmentRecord, Table, damaged, io};
use crate::plan::Index;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use sudare_rlwe::KeyId;
use sudare_store::atomic::{self, Access, Durability, Over, Scratch};
use sudare_store::layout::unhex;
use sudare_store::{BlockSource, Reader, StoreError};

/// Version of parcels that this release writes and reads.
const VERSION: u32 = 1;
/// What a parcel begins with.
pub const PARCEL: &[u8] = b"{\"sudare_segment\":";
/// Most bytes of its first line.
const MAX_HEAD: u64 = 1 << 20;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    sudare_segment: u32,
    table: Table,
    segment: usize,
    record: SegmentRecord,
    /// Names below the segment's folder, and bytes.
    files: Vec<(String, u64)>,
}

/// A segment of a finished table, to be read from its beginning or from any byte on.
#[derive(Debug)]
pub struct Parcel {
    head: Vec<u8>,
    files: Vec<(PathBuf, u64)>,
    at: u64,
    open: Option<(usize, File)>,
}

impl Parcel {
    /// The parcel of a segment, by its number.
    ///
    /// # Errors
    /// [`SearchError::Mixed`] for a table of another plan or key; [`SearchError::Goal`] for a segment that the table does not
    /// have; what is wrong with the files.
    pub fn new(index: &Index, key: KeyId, path: &Path, segment: usize) -> Result<Self, SearchError> {
        let files = Files::new(path);
        let (table, manifest) = files.open(index, key)?;
        let Some(record) = manifest.segments.get(segment).cloned() else {
            let (what, wanted) = ("the number of a segment", "one that the table has");
            return Err(SearchError::Goal { what, found: segment.to_string(), wanted });
        };
        let (mut named, mut paths) = (Vec::new(), Vec::new());
        for (part, digest) in parts(&record) {
            let reader = files.reader((segment, part), digest, (&table, index, key))?;
            for name in reader.sizes().files() {
                let path = reader.path().join(&name);
                let bytes = fs::metadata(&path).map_err(|e| io(&path, &e))?.len();
                named.push((format!("{}/{name}", part.name()), bytes));
                paths.push((path, bytes));
            }
        }
        let head = Head { sudare_segment: VERSION, table, segment, record, files: named };
        let mut head = serde_json::to_vec(&head).map_err(|e| damaged(path, e.to_string()))?;
        head.push(b'\n');
        Ok(Self { head, files: paths, at: 0, open: None })
    }

    /// Bytes in all.
    pub fn length(&self) -> u64 {
        self.head.len() as u64 + self.files.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }
}

impl Read for Parcel {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let mut start = self.head.len() as u64;
        if let Some(rest) = self.head.get(self.at as usize..).filter(|rest| !rest.is_empty()) {
            let count = rest.len().min(out.len());
            out[..count].copy_from_slice(&rest[..count]);
            self.at += count as u64;
            return Ok(count);
        }
        for (i, (path, bytes)) in self.files.iter().enumerate() {
            if self.at < start + bytes {
                if self.open.as_ref().is_none_or(|(open, _)| *open != i) {
                    self.open = Some((i, File::open(path)?));
                }
                let Some((_, file)) = &mut self.open else { break };
                file.seek(SeekFrom::Start(self.at - start))?;
                let most = ((start + bytes - self.at) as usize).min(out.len());
                let count = file.read(&mut out[..most])?;
                if count == 0 && most > 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                self.at += count as u64;
                return Ok(count);
            }
            start += bytes;
        }
        Ok(0)
    }
}

impl Seek for Parcel {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The name of the key that the table in a folder is under.
///
/// # Errors
/// What is wrong with the files.
pub fn key(path: &Path) -> Result<KeyId, SearchError> {
    Files::new(path).key()
}

/// The stores of a segment, and their digests.
fn parts(record: &SegmentRecord) -> impl Iterator<Item = (Part, &str)> {
    let payload = record.payload.as_deref().map(|digest| (Part::Payload, digest));
    [(Part::Rows, record.digest.as_str())].into_iter().chain(payload)
}

/// Whether it is the name of a file of a segment, in the one way to write it.
fn is_file(name: &str) -> bool {
    let number = |text: &str| text.parse::<u32>().is_ok_and(|n| n.to_string() == text);
    match *name.split('/').collect::<Vec<_>>() {
        [part, ref rest @ ..] if part == Part::Rows.name() || part == Part::Payload.name() => match *rest {
            ["zarr.json"] | ["blocks" | "digests", "zarr.json"] | ["digests", "c", "0", "0", "0"] => true,
            ["blocks", "c", i, j, "0"] => number(i) && number(j),
            _ => false,
        },
        _ => false,
    }
}

/// Takes a segment that was sent, of so many bytes, into the table in a folder, which the first segment begins. The table's
/// list of segments then. A segment that the table has is taken again without a change.
///
/// # Errors
/// [`SearchError::Mixed`] for a segment of another table, plan or key; [`SearchError::Damaged`] for bytes that are no segment
/// and for one that is not the table's next; [`SearchError::TooManyRows`], [`SearchError::TooManySegments`]; what the disk refuses.
/// The table is as it was.
pub fn receive(index: &Index, key: KeyId, path: &Path, input: impl Read, bytes: u64) -> Result<Manifest, SearchError> {
    let (files, mut input) = (Files::new(path), BufReader::with_capacity(1 << 20, input));
    let no_segment = |what: &str| damaged(path, format!("what was sent is not a segment: {what}; send it again"));
    let mut line = Vec::new();
    input.by_ref().take(MAX_HEAD).read_until(b'\n', &mut line).map_err(|e| io(path, &e))?;
    let head: Head = serde_json::from_slice(&line).map_err(|e| no_segment(&e.to_string()))?;
    let names: BTreeSet<&str> = head.files.iter().map(|(name, _)| name.as_str()).collect();
    let total = head.files.iter().try_fold(line.len() as u64, |sum, (_, bytes)| sum.checked_add(*bytes));
    if total != Some(bytes) || names.len() != head.files.len() || !names.iter().all(|name| is_file(name)) {
        return Err(no_segment("its files are not those that it names"));
    }
    if head.sudare_segment != VERSION {
        return Err(no_segment("it is of another release"));
    }
    let Some(name) = unhex(&head.table.index) else { return Err(no_segment("its table has no name")) };
    let table = files.checked(head.table.clone(), index, key)?;
    let begun = files.begin(index, key, name)?;
    if begun != table {
        return Err(SearchError::Mixed { what: "the segment" });
    }
    let mut manifest = match files.open(index, key) {
        Ok((_, manifest)) => manifest,
        Err(SearchError::Store(StoreError::Unfinished { .. })) => {
            Manifest { index: table.index.clone(), segments: Vec::new() }
        }
        Err(e) => return Err(e),
    };
    let Head { segment, record, .. } = head;
    match manifest.segments.get(segment) {
        Some(known) if *known == record => return Ok(manifest),
        Some(_) => return Err(SearchError::Mixed { what: "the segment" }),
        None if segment > manifest.segments.len() => {
            let words = format!(
                "segment {segment} was sent, and segment {} is the next; send them in order",
                manifest.segments.len()
            );
            return Err(damaged(path, words));
        }
        None => {}
    }
    let payloads = index.goal().payload.is_some();
    if !(1..=index.segment_rows()).contains(&(record.rows as usize)) || record.payload.is_some() != payloads {
        return Err(SearchError::Mixed { what: "the segment" });
    }
    manifest.segments.push(record);
    let (found, planned) = (manifest.rows(), index.goal().rows);
    if found > planned {
        return Err(SearchError::TooManyRows { found, planned });
    }
    if manifest.segments.len() as u64 > index.most_segments() {
        return Err(SearchError::TooManySegments { planned: index.most_segments(), rows: index.segment_rows() as u64 });
    }
    let written = write(&files, segment, &head.files, &mut input).and_then(|()| {
        check(index, key, &files, (&table, segment), &manifest.segments[segment], &names)?;
        files.finish(&manifest)
    });
    if written.is_err() {
        files.remove(segment)?;
    }
    written.map(|()| manifest)
}

/// Writes the files of a segment, instead of what an ended work left there.
fn write(files: &Files, segment: usize, named: &[(String, u64)], input: &mut impl Read) -> Result<(), SearchError> {
    files.remove(segment)?;
    for (name, bytes) in named {
        sudare_ring::interrupt::check();
        let path = files.segment(segment).join(name);
        atomic::make_folder(&path)?;
        let mut out = Scratch::beside(&path, Access::Usual).map_err(|e| io(&path, &e))?;
        let copied = std::io::copy(&mut input.take(*bytes), &mut out).and_then(|count| out.flush().map(|()| count));
        if copied.map_err(|e| io(&path, &e))? != *bytes {
            return Err(damaged(&path, "it ends too early; send it again"));
        }
        out.place(&path, Over::NoKey, Durability::Power)?;
    }
    Ok(())
}

/// Reads a segment whole: it is what the record says, in the table's place, and no file is left over.
fn check(
    index: &Index,
    key: KeyId,
    files: &Files,
    (table, segment): (&Table, usize),
    record: &SegmentRecord,
    names: &BTreeSet<&str>,
) -> Result<(), SearchError> {
    let mut expected = BTreeSet::new();
    for (part, digest) in parts(record) {
        let reader: Reader = files.reader((segment, part), digest, (table, index, key))?;
        if reader.grid() != index.grid(record.rows, part) {
            return Err(SearchError::Mixed { what: "the segment" });
        }
        reader.verify()?;
        expected.extend(reader.sizes().files().iter().map(|name| format!("{}/{name}", part.name())));
    }
    match expected.iter().map(String::as_str).eq(names.iter().copied()) {
        true => Ok(()),
        false => Err(damaged(&files.segment(segment), "its files are not those that its list names; send it again")),
    }
}
