//! Where a file's bytes come from: plain, in blocks, or the blocks of a region.

use super::header::{Header, malformed};
use crate::{GenomeError, Region};
use noodles_bgzf as bgzf;
use noodles_core::Position;
use noodles_core::region::Interval;
use noodles_csi::binning_index::index::reference_sequence::bin::Chunk;
use noodles_csi::{self as csi, BinningIndex};
use noodles_tabix as tabix;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The last block of every whole BGZF file.
const END: [u8; 28] = *b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0\x1b\0\x03\0\0\0\0\0\0\0\0\0";

/// How a file is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    /// In blocks.
    pub blocks: bool,
    /// BCF, not VCF.
    pub binary: bool,
}

/// A file that counts what was read of it.
struct Counted {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(out)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.file.seek(to)?;
        self.read.set(at);
        Ok(at)
    }
}

enum Bytes {
    Plain(BufReader<Counted>),
    Blocks(bgzf::io::Reader<Counted>),
}

pub(super) struct Source {
    bytes: Bytes,
    read: Rc<Cell<u64>>,
    length: u64,
    /// The blocks that the index names for the region.
    chunks: Option<Vec<Chunk>>,
}

/// Errors of reading as this crate tells them.
pub(super) fn broken(e: &io::Error) -> GenomeError {
    match e.kind() {
        ErrorKind::UnexpectedEof => GenomeError::TruncatedGzip,
        ErrorKind::InvalidData => malformed("its compressed data is damaged"),
        kind => GenomeError::Io { kind },
    }
}

impl Source {
    /// Opens a file and finds out what it is.
    pub fn open(path: &Path) -> Result<(Self, Encoding), GenomeError> {
        let mut file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(GenomeError::Io { kind: ErrorKind::InvalidInput });
        }
        let length = file.metadata()?.len();
        let mut head = [0u8; 18];
        let count = read_up_to(&mut file, &mut head)?;
        let blocks = head[..2] == [0x1F, 0x8B];
        if blocks {
            if count < 18 || head[12..14] != *b"BC" {
                return Err(GenomeError::NotBgzf);
            }
            let mut end = [0u8; 28];
            if length < 28 {
                return Err(GenomeError::TruncatedGzip);
            }
            file.seek(SeekFrom::End(-28))?;
            file.read_exact(&mut end)?;
            if end != END {
                return Err(GenomeError::TruncatedGzip);
            }
        }
        file.seek(SeekFrom::Start(0))?;
        let read = Rc::new(Cell::new(0));
        let counted = Counted { file, read: read.clone() };
        let bytes = match blocks {
            true => Bytes::Blocks(bgzf::io::Reader::new(counted)),
            false => Bytes::Plain(BufReader::with_capacity(1 << 16, counted)),
        };
        let mut source = Self { bytes, read, length, chunks: None };
        let binary = source.stream(|reader| {
            let start = reader.fill_buf().map_err(|e| broken(&e))?;
            match start {
                [b'B', b'C', b'F', ..] => Ok(true),
                [b'#', ..] => Ok(false),
                _ => Err(malformed("it begins with neither ## nor BCF")),
            }
        })?;
        Ok((source, Encoding { blocks, binary }))
    }

    /// Bytes of the file that were read so far.
    pub fn read_so_far(&self) -> Rc<Cell<u64>> {
        self.read.clone()
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads what is left, or the region that an index gave.
    pub fn stream<T>(
        &mut self,
        work: impl FnOnce(&mut dyn BufRead) -> Result<T, GenomeError>,
    ) -> Result<T, GenomeError> {
        match (&mut self.bytes, self.chunks.take()) {
            (Bytes::Plain(reader), _) => work(reader),
            (Bytes::Blocks(reader), None) => work(reader),
            (Bytes::Blocks(reader), Some(chunks)) => work(&mut csi::io::Query::new(reader, chunks)),
        }
    }

    /// Looks a region up in the file's index; false without one.
    pub fn seek(
        &mut self,
        path: &Path,
        header: &Header,
        encoding: Encoding,
        region: Option<&Region>,
    ) -> Result<bool, GenomeError> {
        let Some(region) = region else { return Ok(false) };
        if !encoding.blocks {
            return Ok(false);
        }
        let Some(index) = find_index(path)? else { return Ok(false) };
        let id = match index.header() {
            Some(h) => h.reference_sequence_names().get_index_of(region.contig.as_bytes()),
            None => header.contig_names.iter().position(|c| *c == region.contig),
        };
        let chunks = match id {
            // No record on this contig.
            None => Vec::new(),
            Some(id) => {
                let end = region.end.min(i32::MAX as u32) as usize;
                let position = |x: usize| Position::try_from(x).map_err(|_| malformed("a position of its index"));
                let interval = Interval::from(position(region.start as usize)?..=position(end)?);
                index.query(id, interval).map_err(|_| malformed("its index is damaged; make it again"))?
            }
        };
        self.chunks = Some(chunks);
        Ok(true)
    }
}

fn read_up_to(file: &mut File, out: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < out.len() {
        match file.read(&mut out[count..])? {
            0 => break,
            n => count += n,
        }
    }
    Ok(count)
}

fn find_index(path: &Path) -> Result<Option<Box<dyn BinningIndex>>, GenomeError> {
    let beside = |end: &str| PathBuf::from(format!("{}{end}", path.display()));
    let damaged = |_| malformed("its index is damaged; make it again");
    let csi = beside(".csi");
    if csi.is_file() {
        return Ok(Some(Box::new(csi::fs::read(csi).map_err(damaged)?)));
    }
    let tbi = beside(".tbi");
    if tbi.is_file() {
        return Ok(Some(Box::new(tabix::fs::read(tbi).map_err(damaged)?)));
    }
    Ok(None)
}
