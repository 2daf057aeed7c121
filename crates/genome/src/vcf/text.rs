//! VCF: one record a line.

use super::header::{Header, malformed};
use super::source::broken;
use super::{Genotype, MAX_HEADER, MISSING, Record};
use crate::GenomeError;
use crate::error::{RecordProblem, record};
use std::io::{BufRead, Read};

/// Most bytes of a record for each of its samples, and besides.
const MAX_RECORD: u64 = 4096;
const MAX_BESIDE: u64 = 64 << 20;

/// The next line without its end; false at the end of the file.
fn line(reader: &mut dyn BufRead, limit: u64, out: &mut Vec<u8>) -> Result<bool, GenomeError> {
    out.clear();
    let read = reader.take(limit).read_until(b'\n', out).map_err(|e| broken(&e))?;
    if read as u64 == limit {
        return Err(malformed("a line over the length that its samples take"));
    }
    if out.last() == Some(&b'\n') {
        out.pop();
        if out.last() == Some(&b'\r') {
            out.pop();
        }
    }
    Ok(read > 0)
}

pub(super) fn read_header(reader: &mut dyn BufRead) -> Result<Header, GenomeError> {
    let (mut header, mut bytes, mut all) = (Header::default(), Vec::new(), 0);
    while line(reader, MAX_HEADER, &mut bytes)? {
        all += bytes.len() as u64;
        if all > MAX_HEADER {
            return Err(malformed("its header is too long"));
        }
        // Descriptions may be in any encoding.
        if header.line(&String::from_utf8_lossy(&bytes))? {
            return Ok(header);
        }
    }
    Err(malformed("it ends within its header"))
}

pub(super) fn read_records(
    reader: &mut dyn BufRead,
    header: &Header,
    samples: &[usize],
    each: &mut dyn FnMut(&Record<'_>) -> Result<(), GenomeError>,
) -> Result<(), GenomeError> {
    let limit = MAX_BESIDE + MAX_RECORD * header.samples.len() as u64;
    let (mut bytes, mut fields, mut genotypes) = (Vec::new(), Vec::new(), Vec::new());
    while line(reader, limit, &mut bytes)? {
        if bytes.is_empty() {
            continue;
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed("a record that is no text"))?;
        let mut columns = text.splitn(9, '\t');
        let mut next = || columns.next().ok_or_else(|| malformed("a record with too few columns"));
        let (contig, position) = (next()?, next()?);
        let (_, reference, alternate) = (next()?, next()?, next()?);
        let position = position.parse().map_err(|_| malformed("a position that is no number"))?;
        let _quality_filter_info = (next()?, next()?, next()?);
        genotypes.clear();
        if !samples.is_empty() {
            let refuse = |problem| record(contig, position, problem);
            let rest = columns.next().unwrap_or_default();
            let (format, rest) = rest.split_once('\t').ok_or_else(|| refuse(RecordProblem::NoGenotypes))?;
            if format != "GT" && !format.starts_with("GT:") {
                return Err(refuse(RecordProblem::NoGenotypes));
            }
            fields.clear();
            fields.extend(field_ends(rest.as_bytes()));
            if fields.len() != header.samples.len() {
                return Err(refuse(RecordProblem::Malformed { what: "another number of genotypes than of samples" }));
            }
            for &i in samples {
                let start = if i == 0 { 0 } else { fields[i - 1] + 1 };
                let field = &rest.as_bytes()[start..fields[i]];
                let genotype = genotype(field)
                    .ok_or_else(|| refuse(RecordProblem::Genotype { sample: header.samples[i].clone() }))?;
                genotypes.push(genotype);
            }
        }
        each(&Record { contig, position, reference, alternate, genotypes: &genotypes })?;
    }
    Ok(())
}

/// Where tab-separated fields end.
fn field_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    bytes.iter().enumerate().filter(|(_, b)| **b == b'\t').map(|(i, _)| i).chain([bytes.len()])
}

/// `0|1`, `1/1`, `0`, `.|.`, with further fields after a colon.
fn genotype(field: &[u8]) -> Option<Genotype> {
    if let [a @ b'0'..=b'9', b'|', b @ b'0'..=b'9'] = field {
        return Some(Genotype { alleles: [a - b'0', b - b'0'], ploidy: 2, phased: true });
    }
    let field = field.split(|b| *b == b':').next()?;
    let at = field.iter().position(|b| *b == b'|' || *b == b'/');
    let Some(at) = at else {
        let a = allele(field)?;
        return Some(Genotype { alleles: [a; 2], ploidy: 1, phased: true });
    };
    let alleles = [allele(&field[..at])?, allele(&field[at + 1..])?];
    Some(Genotype { alleles, ploidy: 2, phased: field[at] == b'|' })
}

fn allele(text: &[u8]) -> Option<u8> {
    match text {
        b"." => Some(MISSING),
        _ => std::str::from_utf8(text).ok()?.parse().ok().filter(|a| *a != MISSING),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn genotypes() {
        let is = |alleles, ploidy, phased| Some(Genotype { alleles, ploidy, phased });
        assert_eq!(genotype(b"0|1"), is([0, 1], 2, true));
        assert_eq!(genotype(b"1/0:35,2"), is([1, 0], 2, false));
        assert_eq!(genotype(b"12|3"), is([12, 3], 2, true));
        assert_eq!(genotype(b"1"), is([1, 1], 1, true));
        assert_eq!(genotype(b".|."), is([MISSING; 2], 2, true));
        assert_eq!(genotype(b"./1"), is([MISSING, 1], 2, false));
        for bad in [&b""[..], b"0|", b"|", b"a|1", b"0|1|1", b"255|0", b"-1|0"] {
            assert_eq!(genotype(bad), None, "{bad:?}");
        }
    }
}
