//! Region strings, as bcftools takes them.

use crate::GenomeError;
use std::fmt;
use std::str::FromStr;

/// A contig, or a part of it: positions from 1, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The contig's name.
    pub contig: String,
    /// First position.
    pub start: u32,
    /// Last position.
    pub end: u32,
}

impl Region {
    /// Whether a position of this contig lies inside.
    pub fn holds(&self, contig: &str, position: u32) -> bool {
        contig == self.contig && (self.start..=self.end).contains(&position)
    }
}

impl FromStr for Region {
    type Err = GenomeError;

    /// `chr20`, `chr20:1000000`, `chr20:1000000-`, `chr20:1,000,000-2,000,000`.
    fn from_str(text: &str) -> Result<Self, GenomeError> {
        let refuse = || GenomeError::Region { text: text.into() };
        let number = |t: &str| match t.replace(',', "").parse::<u32>() {
            Ok(x) if x > 0 => Ok(x),
            _ => Err(refuse()),
        };
        let (contig, start, end) = match text.rsplit_once(':') {
            None => (text, 1, u32::MAX),
            Some((contig, range)) => match range.split_once('-') {
                None => (contig, number(range)?, number(range)?),
                Some((start, "")) => (contig, number(start)?, u32::MAX),
                Some((start, end)) => (contig, number(start)?, number(end)?),
            },
        };
        if contig.is_empty() || contig.len() > 255 || contig.chars().any(char::is_whitespace) || start > end {
            return Err(refuse());
        }
        Ok(Self { contig: contig.into(), start, end })
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.start, self.end) {
            (1, u32::MAX) => f.write_str(&self.contig),
            (start, u32::MAX) => write!(f, "{}:{start}-", self.contig),
            (start, end) => write!(f, "{}:{start}-{end}", self.contig),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_bcftools_reads_them() {
        let region = |text: &str| text.parse::<Region>();
        let is = |contig: &str, start, end| Ok(Region { contig: contig.into(), start, end });
        assert_eq!(region("chr20"), is("chr20", 1, u32::MAX));
        assert_eq!(region("20:5"), is("20", 5, 5));
        assert_eq!(region("20:5-"), is("20", 5, u32::MAX));
        assert_eq!(region("20:1,000-2,000"), is("20", 1000, 2000));
        assert_eq!(region("HLA:A:7-9"), is("HLA:A", 7, 9));
        for text in ["", ":1-2", "20:9-8", "20:0-8", "20:x", "20:1-x", "2 0"] {
            assert!(matches!(region(text), Err(GenomeError::Region { .. })), "{text}");
        }
        for text in ["chr20", "20:5-", "20:1000-2000"] {
            assert_eq!(region(text).unwrap().to_string(), text);
        }
    }
}
