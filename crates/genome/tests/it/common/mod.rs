//! What the tests of panels and searches share.
#![allow(dead_code, missing_docs, unreachable_pub)]

use noodles_bgzf as bgzf;
use std::io::Write;
use std::path::{Path, PathBuf};
use sudare_genome::panel::Build;
use sudare_genome::{GenomeError, Panel};
pub use sudare_testkit::Random;

/// Haplotypes that are mosaics of a few founders, so that matches are long and shared.
pub fn haplotypes(count: usize, sites: usize, salt: u64) -> Vec<Vec<bool>> {
    let mut r = Random(salt);
    let founders: Vec<Vec<bool>> = (0..4).map(|_| (0..sites).map(|_| r.chance(30)).collect()).collect();
    (0..count)
        .map(|_| {
            let mut from = r.index(4);
            (0..sites)
                .map(|k| {
                    if r.chance(8) {
                        from = r.index(4);
                    }
                    founders[from][k] ^ r.chance(2)
                })
                .collect()
        })
        .collect()
}

/// A query that follows a haplotype for a while, then another.
pub fn query(haplotypes: &[Vec<bool>], start: usize, sites: usize, r: &mut Random) -> Vec<bool> {
    let mut from = r.index(haplotypes.len());
    let wrong = r.index(8) as u64;
    (start..start + sites)
        .map(|k| {
            if r.chance(wrong) {
                from = r.index(haplotypes.len());
            }
            haplotypes[from][k] ^ r.chance(wrong / 2)
        })
        .collect()
}

/// A VCF of diploid samples S0, S1, … at positions 10, 20, … of contig 20, from two haplotypes each.
pub fn vcf(haplotypes: &[Vec<bool>]) -> String {
    assert!(haplotypes.len().is_multiple_of(2));
    let names: Vec<String> = (0..haplotypes.len() / 2).map(|i| format!("S{i}")).collect();
    let mut out = format!(
        "##fileformat=VCFv4.2\n##contig=<ID=20,length=63025520>\n##reference=toy1\n##FORMAT=<ID=GT,Number=1,Type=String,Description=\"Genotype\">\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{}\n",
        names.join("\t")
    );
    for k in 0..haplotypes[0].len() {
        let calls: Vec<String> =
            haplotypes.chunks(2).map(|p| format!("{}|{}", u8::from(p[0][k]), u8::from(p[1][k]))).collect();
        out += &format!("20\t{}\t.\tA\tG\t.\tPASS\t.\tGT\t{}\n", 10 * (k + 1), calls.join("\t"));
    }
    out
}

/// A folder of its own for a test.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn build(&self, build: &Build, input: &Path) -> Result<Panel, GenomeError> {
        let output = self.path("panel.sudare");
        build.run(input, &output, &|_, _| ())?;
        Panel::open(&output)
    }

    /// A panel of these haplotypes.
    pub fn panel(&self, haplotypes: &[Vec<bool>]) -> Panel {
        let input = self.write("panel.vcf", vcf(haplotypes));
        self.build(&Build::default(), &input).unwrap()
    }
}

pub fn bgzf(bytes: &[u8]) -> Vec<u8> {
    let mut writer = bgzf::io::Writer::new(Vec::new());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

pub fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/genome").join(name)
}
