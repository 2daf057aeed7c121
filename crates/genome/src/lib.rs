//! Private search in haplotype panels.
//!
//! A client asks a server for the longest match of its haplotype in the server's panel. The server learns
//! neither the haplotype nor where in a list of candidates it starts; the client learns the length of the
//! match and nothing else of the panel. Messages are bytes; sockets are the caller's.
//!
//! | Subject | Where |
//! |---|---|
//! | panels: from VCF and BCF to a PBWT in a mapped file, and their public description | [`panel`], [`vcf`] |
//! | the same search in the clear | [`search`] |
#![forbid(unsafe_code)]

mod bytes;
pub mod error;
pub mod panel;
mod region;
pub mod search;
pub mod trie;
pub mod vcf;

pub use error::{GenomeError, RecordProblem};
pub use panel::{Panel, PanelHash, Policy, Site, Sites};
pub use region::Region;
