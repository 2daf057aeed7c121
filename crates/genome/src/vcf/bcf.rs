//! BCF 2: the same records in binary.

use super::header::{Header, malformed};
use super::source::broken;
use super::{Genotype, MAX_HEADER, MISSING, Record};
use crate::GenomeError;
use crate::error::{RecordProblem, record};
use std::io::{BufRead, ErrorKind, Read};

/// Most bytes of a record's fields, and of its genotype fields for each sample.
const MAX_SHARED: u32 = 64 << 20;
const MAX_SAMPLE: u64 = 4096;

pub(super) fn read_header(reader: &mut dyn BufRead) -> Result<Header, GenomeError> {
    let mut lead = [0u8; 9];
    reader.read_exact(&mut lead).map_err(|e| broken(&e))?;
    if lead[..4] != *b"BCF\x02" {
        return Err(malformed("a BCF file of another version than 2"));
    }
    let length = u64::from(u32::from_le_bytes([lead[5], lead[6], lead[7], lead[8]]));
    if length > MAX_HEADER {
        return Err(malformed("its header is too long"));
    }
    let mut text = Vec::new();
    reader.take(length).read_to_end(&mut text).map_err(|e| broken(&e))?;
    if text.len() as u64 != length {
        return Err(malformed("it ends within its header"));
    }
    let mut header = Header::default();
    for line in text.split(|b| *b == b'\n' || *b == 0) {
        if header.line(&String::from_utf8_lossy(line))? {
            return Ok(header);
        }
    }
    Err(malformed("a header without column names"))
}

/// Reads values of a record, never past its end.
struct Values<'a>(&'a [u8]);

const SHORT: &str = "a record that is shorter than its fields";

impl<'a> Values<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], GenomeError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or_else(|| malformed(SHORT))?;
        self.0 = rest;
        Ok(head)
    }

    fn word(&mut self) -> Result<u32, GenomeError> {
        let b = self.take(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// Type and count of a typed value.
    fn kind(&mut self) -> Result<(u8, usize), GenomeError> {
        let byte = self.take(1)?[0];
        let count = match byte >> 4 {
            15 => self.integer()?,
            n => usize::from(n),
        };
        Ok((byte & 15, count))
    }

    /// A single typed integer that is not negative.
    fn integer(&mut self) -> Result<usize, GenomeError> {
        let (kind, count) = {
            let byte = self.take(1)?[0];
            (byte & 15, byte >> 4)
        };
        let value = match (kind, count) {
            (1, 1) => i64::from(self.take(1)?[0] as i8),
            (2, 1) => {
                let b = self.take(2)?;
                i64::from(i16::from_le_bytes([b[0], b[1]]))
            }
            (3, 1) => i64::from(self.word()? as i32),
            _ => return Err(malformed("a number of a type that is none")),
        };
        usize::try_from(value).map_err(|_| malformed("a negative number"))
    }

    fn text(&mut self) -> Result<&'a str, GenomeError> {
        let (kind, count) = self.kind()?;
        if kind != 7 && count != 0 {
            return Err(malformed("a text of a type that is none"));
        }
        std::str::from_utf8(self.take(count)?).map_err(|_| malformed("a text that is none"))
    }
}

/// Bytes of a value of a type.
fn width(kind: u8) -> Option<usize> {
    match kind {
        0 => Some(0),
        1 | 7 => Some(1),
        2 => Some(2),
        3 | 5 => Some(4),
        _ => None,
    }
}

pub(super) fn read_records(
    reader: &mut dyn BufRead,
    header: &Header,
    samples: &[usize],
    each: &mut dyn FnMut(&Record<'_>) -> Result<(), GenomeError>,
) -> Result<(), GenomeError> {
    let most = u64::from(MAX_SHARED) + MAX_SAMPLE * header.samples.len() as u64;
    let (mut bytes, mut genotypes, mut alternate) = (Vec::new(), Vec::new(), String::new());
    loop {
        if reader.fill_buf().map_err(|e| broken(&e))?.is_empty() {
            return Ok(());
        }
        let mut lengths = [0u8; 8];
        read_whole(reader, &mut lengths)?;
        let [a, b, c, d, e, f, g, h] = lengths;
        let (shared, own) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let length = u64::from(shared) + u64::from(own);
        if shared > MAX_SHARED || length > most {
            return Err(malformed("a record over the length that its samples take"));
        }
        bytes.clear();
        reader.take(length).read_to_end(&mut bytes).map_err(|e| broken(&e))?;
        if (bytes.len() as u64) < length {
            return Err(malformed(SHORT));
        }
        let (shared, own) = bytes.split_at(shared as usize);
        let mut v = Values(shared);
        let contig = v.word()? as usize;
        let contig = header.contig_names.get(contig).ok_or_else(|| malformed("a contig that its header lacks"))?;
        // Positions count from 0 here; −1 is before the first base.
        let position = (v.word()? as i32).wrapping_add(1);
        let position = u32::try_from(position).map_err(|_| malformed("a negative position"))?;
        v.take(8)?;
        let (alleles, fields) = (v.word()? >> 16, v.word()?);
        let (formats, count) = (fields >> 24, (fields & 0xFF_FFFF) as usize);
        v.text()?;
        if alleles == 0 {
            return Err(malformed("a record without alleles"));
        }
        let reference = v.text()?;
        alternate.clear();
        for i in 1..alleles {
            if i > 1 {
                alternate.push(',');
            }
            alternate.push_str(v.text()?);
        }
        genotypes.clear();
        if !samples.is_empty() {
            if count != header.samples.len() {
                let what = "another number of genotypes than of samples";
                return Err(record(contig, position, RecordProblem::Malformed { what }));
            }
            let refuse = |problem| record(contig, position, problem);
            let field = genotype_field(header, own, formats, count)?;
            let (kind, ploidy, values) = field.ok_or_else(|| refuse(RecordProblem::NoGenotypes))?;
            for &i in samples {
                let genotype = genotype(kind, ploidy, values, i)
                    .ok_or_else(|| refuse(RecordProblem::Genotype { sample: header.samples[i].clone() }))?;
                genotypes.push(genotype);
            }
        }
        each(&Record { contig, position, reference, alternate: &alternate, genotypes: &genotypes })?;
    }
}

fn read_whole(reader: &mut dyn BufRead, out: &mut [u8]) -> Result<(), GenomeError> {
    reader.read_exact(out).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => malformed(SHORT),
        _ => broken(&e),
    })
}

/// Type, values a sample and values of a field.
type Field<'a> = (u8, usize, &'a [u8]);

/// The field GT.
fn genotype_field<'a>(
    header: &Header,
    bytes: &'a [u8],
    formats: u32,
    samples: usize,
) -> Result<Option<Field<'a>>, GenomeError> {
    let mut v = Values(bytes);
    for _ in 0..formats {
        let key = v.integer()?;
        let (kind, count) = v.kind()?;
        let width = width(kind).ok_or_else(|| malformed("a field of a type that is none"))?;
        let length = count.checked_mul(width).and_then(|x| x.checked_mul(samples)).ok_or_else(|| malformed(SHORT))?;
        let values = v.take(length)?;
        if header.keys.get(key).is_some_and(|k| k == "GT") {
            return Ok(Some((kind, count, values)));
        }
    }
    Ok(None)
}

/// The value `2·(allele + 1) + phased`; 0 and 1 are missing alleles.
fn genotype(kind: u8, ploidy: usize, values: &[u8], i: usize) -> Option<Genotype> {
    // Values past the last one of a sample with fewer.
    let (width, end) = match kind {
        1 => (1, 0x81),
        2 => (2, 0x8001),
        3 => (4, 0x8000_0001),
        _ => return None,
    };
    let value = |j: usize| {
        let at = (i * ploidy + j) * width;
        let mut word = [0u8; 4];
        word[..width].copy_from_slice(values.get(at..at + width)?);
        Some(u32::from_le_bytes(word))
    };
    let allele = |x: u32| match x >> 1 {
        0 => Some(MISSING),
        a => u8::try_from(a - 1).ok().filter(|a| *a != MISSING),
    };
    match ploidy {
        1 => {
            let a = allele(value(0)?)?;
            Some(Genotype { alleles: [a; 2], ploidy: 1, phased: true })
        }
        2 => {
            let (first, second) = (value(0)?, value(1)?);
            let a = allele(first)?;
            if second == end {
                return Some(Genotype { alleles: [a; 2], ploidy: 1, phased: true });
            }
            Some(Genotype { alleles: [a, allele(second)?], ploidy: 2, phased: second & 1 == 1 })
        }
        _ => None,
    }
}
