//! CRC-32C (Castagnoli), which Zarr's shard indices end with.

/// The reflected polynomial's effect on each byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut x = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            x = if x & 1 == 1 { x >> 1 ^ 0x82f6_3b78 } else { x >> 1 };
            bit += 1;
        }
        table[byte] = x;
        byte += 1;
    }
    table
};

/// The checksum of bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    /// The check value of the catalogue of CRCs, and the 32 zero bytes of RFC 3720, appendix B.4.
    #[test]
    fn known_checksums() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(super::crc32c(&[0; 32]), 0x8a91_36aa);
    }
}
