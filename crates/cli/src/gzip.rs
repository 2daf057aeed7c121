//! What is packed by gzip.

use crate::error::CliError;
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use sudare_ring::ErrorKind;

/// The first bytes of such a file.
const MAGIC: &[u8] = b"\x1f\x8b";

/// The bytes that were packed, at most `limit` of them; bytes that are not packed stay as they are.
pub fn unpacked(bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>, CliError> {
    if !bytes.starts_with(MAGIC) {
        return Ok(bytes);
    }
    let mut out = Vec::new();
    MultiGzDecoder::new(&bytes[..]).take(limit.saturating_add(1)).read_to_end(&mut out).map_err(|error| {
        let words = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the file ends too early; copy it again",
            _ => "the file is damaged, or packed by something else than gzip; copy it again",
        };
        CliError::new(ErrorKind::Format, words)
    })?;
    if out.len() as u64 > limit {
        return Err(CliError::new(
            ErrorKind::Format,
            format!("the unpacked file is over the limit of {limit} bytes; check that it is the right one"),
        ));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn one_member_or_several_up_to_the_limit() {
        let (a, b) = (packed(b"1,2\n"), packed(b"3,4\n"));
        assert_eq!(unpacked(a.clone(), 100).unwrap(), b"1,2\n");
        assert_eq!(unpacked([a.clone(), b].concat(), 8).unwrap(), b"1,2\n3,4\n");
        assert_eq!(unpacked(b"1,2\n".to_vec(), 1).unwrap(), b"1,2\n");
        // A small file may hold any number of zeros.
        let zeros = packed(&vec![0; 1 << 20]);
        assert!(zeros.len() < 4096);
        assert!(unpacked(zeros, 1 << 16).unwrap_err().to_string().contains("limit of 65536"));
        for cut in 2..a.len() {
            assert_eq!(unpacked(a[..cut].to_vec(), 100).unwrap_err().code(), 5, "{cut}");
        }
        let mut flipped = a;
        flipped[12] ^= 1;
        assert!(unpacked(flipped, 100).is_err());
    }
}
