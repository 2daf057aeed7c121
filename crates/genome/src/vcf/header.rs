//! The samples, the contigs and the assembly that a header names.

use crate::GenomeError;

/// A contig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contig {
    /// Its name.
    pub name: String,
    /// Its length, if the header tells.
    pub length: Option<u32>,
}

/// The parts of a header that panels need.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    pub samples: Vec<String>,
    pub contigs: Vec<Contig>,
    pub assembly: Option<String>,
    /// Names by number, as BCF records give them: contigs, and keys of fields.
    pub contig_names: Vec<String>,
    pub keys: Vec<String>,
}

pub(super) fn malformed(what: impl Into<String>) -> GenomeError {
    GenomeError::Variants { what: what.into() }
}

impl Header {
    /// Takes a line over. The line of the samples is the last: true.
    pub fn line(&mut self, line: &str) -> Result<bool, GenomeError> {
        if let Some(columns) = line.strip_prefix("#CHROM") {
            // Eight fixed columns and FORMAT.
            self.samples = columns.split('\t').skip(9).map(str::to_owned).collect();
            if columns.split('\t').count() < 8 || self.samples.len() > super::MAX_SAMPLES {
                return Err(malformed("the line of column names is too short or too long"));
            }
            return Ok(true);
        }
        let Some((key, value)) = line.strip_prefix("##").and_then(|l| l.split_once('=')) else {
            return if line.starts_with("##") { Ok(false) } else { Err(malformed("a header without column names")) };
        };
        match key {
            "contig" => self.contig(&Attributes::of(value)),
            "FILTER" | "INFO" | "FORMAT" => self.key(&Attributes::of(value))?,
            "reference" | "assembly" if self.assembly.is_none() => self.assembly = Some(assembly(value)),
            _ => {}
        }
        Ok(false)
    }

    fn contig(&mut self, a: &Attributes) {
        let Some(name) = a.get("ID") else { return };
        if let Some(named) = a.get("assembly") {
            self.assembly = Some(assembly(named));
        }
        let length = a.get("length").and_then(|l| l.parse().ok());
        self.contigs.push(Contig { name: name.into(), length });
        put(&mut self.contig_names, a.number(), name);
    }

    fn key(&mut self, a: &Attributes) -> Result<(), GenomeError> {
        if self.keys.is_empty() {
            // Always the first, whether the header names it or not.
            self.keys.push("PASS".into());
        }
        let Some(name) = a.get("ID") else { return Err(malformed("a header line without an ID")) };
        if a.number().is_some() || !self.keys.iter().any(|k| k == name) {
            put(&mut self.keys, a.number(), name);
        }
        Ok(())
    }
}

/// Most names that a header numbers.
const MAX_NAMES: usize = 1 << 20;

fn put(names: &mut Vec<String>, at: Option<usize>, name: &str) {
    let at = at.unwrap_or(names.len());
    if at < MAX_NAMES {
        if names.len() <= at {
            names.resize(at + 1, String::new());
        }
        names[at] = name.into();
    }
}

/// The assembly's name, from a name or the path of its file.
fn assembly(value: &str) -> String {
    let value = value.trim().trim_matches('"');
    let file = value.rsplit(['/', '\\']).next().unwrap_or(value);
    let mut name = file;
    for end in [".gz", ".fasta", ".fa", ".fna"] {
        name = name.strip_suffix(end).unwrap_or(name);
    }
    name.to_owned()
}

/// `<ID=20,length=63025520,Description="a, b">`.
struct Attributes(Vec<(String, String)>);

impl Attributes {
    fn of(value: &str) -> Self {
        let inner = value.trim().trim_start_matches('<').trim_end_matches('>');
        let (mut all, mut quoted, mut part) = (Vec::new(), false, String::new());
        for c in inner.chars().chain([',']) {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => {
                    if let Some((k, v)) = part.split_once('=') {
                        all.push((k.trim().to_owned(), v.to_owned()));
                    }
                    part.clear();
                }
                _ => part.push(c),
            }
        }
        Self(all)
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The number that BCF gives the name.
    fn number(&self) -> Option<usize> {
        self.get("IDX").and_then(|x| x.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mut h = Header::default();
        for line in [
            "##fileformat=VCFv4.2",
            "##reference=file:///data/hs37d5.fa.gz",
            "##FILTER=<ID=PASS,Description=\"All, filters\">",
            "##INFO=<ID=AC,Number=1,Type=Integer,Description=\"Allele count\">",
            "##FORMAT=<ID=GT,Number=1,Type=String,Description=\"GT, \\\"phased\">",
            "##contig=<ID=20,length=63025520>",
            "##contig=<ID=X,IDX=3>",
            "##odd",
        ] {
            assert!(!h.line(line).unwrap(), "{line}");
        }
        assert!(h.line("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tA\tB").unwrap());
        assert_eq!(h.samples, ["A", "B"]);
        assert_eq!(h.assembly.as_deref(), Some("hs37d5"));
        assert_eq!(h.contigs[0], Contig { name: "20".into(), length: Some(63_025_520) });
        assert_eq!(h.keys, ["PASS", "AC", "GT"]);
        assert_eq!((h.contig_names[0].as_str(), h.contig_names[3].as_str()), ("20", "X"));
        assert!(Header::default().line("20\t5\t.").is_err());
        assert!(Header::default().line("#CHROM\tPOS").is_err());
    }
}
