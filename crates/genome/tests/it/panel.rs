//! Panels: what is read, what is refused, and that a panel holds what its input held.

use crate::common;
use common::*;
use std::collections::BTreeSet;
use sudare_genome::panel::{Build, Column, Kinds, Policy, Samples};
use sudare_genome::search::{longest, longest_from_all, longest_naive};
use sudare_genome::vcf::VariantFile;
use sudare_genome::{GenomeError, Panel, RecordProblem, Region, Sites};
use sudare_rlwe::wire::{WireError, reseal_for_tests};

/// All haplotypes of a file over the sites of a panel, read without the PBWT.
fn matrix(file: &VariantFile, panel: &Panel, samples: &[usize]) -> Vec<Vec<bool>> {
    let sites = panel.description().unwrap();
    let wanted: BTreeSet<(u32, String, String)> =
        (0..sites.len()).map(|i| sites.parts(i).unwrap()).map(|(p, r, a)| (p, r.to_owned(), a.to_owned())).collect();
    let mut rows = vec![Vec::new(); 2 * samples.len()];
    let mut take = |r: &sudare_genome::vcf::Record<'_>| {
        if wanted.contains(&(r.position, r.reference.to_owned(), r.alternate.to_owned())) {
            for (i, g) in r.genotypes.iter().enumerate() {
                rows[2 * i].push(g.alleles[0] == 1);
                rows[2 * i + 1].push(g.alleles[1] == 1);
            }
        }
        Ok(())
    };
    file.visit(None, samples, &|_, _| (), &mut take).unwrap();
    rows
}

#[test]
fn search_agrees_with_comparing_each_haplotype() {
    for (n, sites, salt) in [(2, 5, 1), (20, 60, 2), (128, 90, 3), (130, 40, 4)] {
        let place = Place::new();
        let haplotypes = haplotypes(n, sites, salt);
        let panel = place.panel(&haplotypes);
        assert_eq!((panel.haplotypes(), panel.sites()), (n, sites));
        let mut r = Random(salt);
        for _ in 0..2500 {
            let start = r.index(sites);
            let q = 1 + r.index(sites - start);
            let query = query(&haplotypes, start, q, &mut r);
            let eps = 1 + r.index(4) as u32;
            let expected = longest_naive(&haplotypes, start, &query, eps);
            let found = longest(&panel, start, &query, eps).unwrap();
            if n as u32 >= eps {
                assert_eq!(found, expected, "{start} {q} {eps}");
            } else {
                assert_eq!(found.length, 0);
            }
        }
    }
}

#[test]
fn a_real_panel() {
    let place = Place::new();
    let build = Build { kinds: Kinds::Snps, ..Build::default() };
    let input = data("panel.vcf.gz");
    let panel = place.build(&build, &input).unwrap();
    assert_eq!((panel.haplotypes(), panel.sites()), (600, 3090));
    assert_eq!(panel.outline().assembly, "GRCh37");
    assert_eq!(panel.outline().contigs[0].contig.length, Some(63_025_520));
    let file = VariantFile::open(&input).unwrap();
    let all: Vec<usize> = (0..300).collect();
    let rows = matrix(&file, &panel, &all);
    // Other people's haplotypes from every site on.
    let others = VariantFile::open(&data("others.vcf.gz")).unwrap();
    let query = &matrix(&others, &panel, &[0, 3])[2];
    assert_eq!(query.len(), 3090);
    for start in (0..3000).step_by(37) {
        for eps in [1, 5] {
            let found = longest(&panel, start, &query[start..start + 90], eps).unwrap();
            assert_eq!(found, longest_naive(&rows, start, &query[start..start + 90], eps));
        }
    }
    let from_all = longest_from_all(&panel, 100, &query[100..160], 1).unwrap();
    assert_eq!(from_all[7], longest(&panel, 107, &query[107..160], 1).unwrap());
    panel.check().unwrap();
}

#[test]
fn bcf_regions_samples_and_frequencies() {
    let place = Place::new();
    let vcf = VariantFile::open(&data("panel.vcf.gz")).unwrap();
    let bcf = VariantFile::open(&data("small.bcf")).unwrap();
    let first: Vec<String> = vcf.samples()[..40].to_vec();
    assert_eq!(bcf.samples(), first);
    let region: Region = "20:1000000-1048000".parse().unwrap();
    let of = |input: &str, samples, region: Option<&Region>, least| Build {
        region: region.cloned(),
        samples,
        kinds: Kinds::SkipOthers,
        least_frequency: least,
        assembly: (input != "panel.vcf.gz").then(|| "GRCh37".into()),
        ..Build::default()
    };
    // The same records as text by a tabix index, as binary by a CSI index, and unpacked without any.
    let a = place
        .build(&of("panel.vcf.gz", Samples::Only(first.clone()), Some(&region), 0.0), &data("panel.vcf.gz"))
        .unwrap();
    let b = place.build(&of("small.bcf", Samples::All, Some(&region), 0.0), &data("small.bcf")).unwrap();
    let mut packed = Vec::new();
    std::io::copy(&mut noodles_bgzf::io::Reader::new(std::fs::File::open(data("panel.vcf.gz")).unwrap()), &mut packed)
        .unwrap();
    let plain = place.write("plain.vcf", &packed);
    let c = place.build(&of("panel.vcf.gz", Samples::Only(first.clone()), Some(&region), 0.0), &plain).unwrap();
    assert!(a.sites() > 300 && a.haplotypes() == 80);
    assert_eq!((a.hash(), a.sites()), (b.hash(), b.sites()));
    assert_eq!(a.hash(), c.hash());
    // All but some.
    let rest = vcf.samples()[40..].to_vec();
    let d = place.build(&of("panel.vcf.gz", Samples::Without(rest), Some(&region), 0.0), &plain).unwrap();
    assert_eq!(d.hash(), a.hash());
    // Common variants alone.
    let e = place.build(&of("panel.vcf.gz", Samples::All, Some(&region), 0.05), &plain).unwrap();
    assert!(e.sites() > 20 && e.sites() < a.sites() / 2);
    let rows = matrix(&vcf, &e, &(0..300).collect::<Vec<_>>());
    for k in 0..e.sites() {
        let ones = rows.iter().filter(|row| row[k]).count();
        assert!((30..=570).contains(&ones), "{ones}");
    }
    let narrow = Build { region: Some("20:1,000,226-1,000,341".parse().unwrap()), ..Build::default() };
    assert_eq!(place.build(&narrow, &data("panel.vcf.gz")).unwrap().sites(), 2);
    let nothing = Build { region: Some("20:5-9".parse().unwrap()), ..Build::default() };
    assert!(matches!(place.build(&nothing, &data("panel.vcf.gz")), Err(GenomeError::Empty { .. })));
    let foreign = Build { region: Some("chr20".parse().unwrap()), ..Build::default() };
    let refused = place.build(&foreign, &data("panel.vcf.gz")).unwrap_err();
    assert_eq!(refused, GenomeError::Contig { name: "chr20".into(), known: "20".into() });
}

#[test]
fn haploid_samples() {
    let place = Place::new();
    let mut text = vcf(&haplotypes(4, 10, 7));
    text = text.replace("\tS0\tS1", "\tS0\tS1\tMALE").replace("\tPASS\t.\tGT\t", "\tPASS\t.\tGT:DP\t");
    let text: String =
        text.lines().map(|l| if l.starts_with('#') { format!("{l}\n") } else { format!("{l}:3\t1:9\n") }).collect();
    let input = place.write("x.vcf", &text);
    let panel = place.build(&Build::default(), &input).unwrap();
    assert_eq!(panel.haplotypes(), 5);
    assert!(longest(&panel, 0, &[true; 10], 1).unwrap().length == 10);
    let mixed = text.replacen("\t1:9\n", "\t1|1:9\n", 2).replacen("\t1|1:9\n", "\t1:9\n", 1);
    let refused = place.build(&Build::default(), &place.write("y.vcf", mixed)).unwrap_err();
    let problem = RecordProblem::Ploidy { sample: "MALE".into() };
    assert_eq!(refused, GenomeError::Record { contig: "20".into(), position: 20, problem });
}

#[test]
fn refusals_name_the_record_and_the_remedy() {
    let place = Place::new();
    let good = vcf(&haplotypes(6, 8, 9));
    let lines: Vec<&str> = good.lines().collect();
    let at = |position: u32| lines.iter().position(|l| l.starts_with(&format!("20\t{position}\t"))).unwrap();
    let with = |position: u32, change: &dyn Fn(&str) -> String| {
        let mut all: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        all[at(position)] = change(lines[at(position)]);
        all.join("\n") + "\n"
    };
    let call = |line: &str, sample: usize, new: &str| {
        let mut fields: Vec<&str> = line.split('\t').collect();
        fields[9 + sample] = new;
        fields.join("\t")
    };
    let s1 = || "S1".to_owned();
    let cases: Vec<(String, RecordProblem, &str)> = vec![
        (with(30, &|l| call(l, 1, "0/1")), RecordProblem::Unphased { sample: s1() }, "phase"),
        (with(30, &|l| call(l, 1, ".|.")), RecordProblem::Missing { sample: s1() }, "impute"),
        (with(30, &|l| call(l, 1, "1")), RecordProblem::Ploidy { sample: s1() }, "region"),
        (with(30, &|l| call(l, 1, "x|y")), RecordProblem::Genotype { sample: s1() }, "read"),
        (with(30, &|l| call(l, 1, "0|2")), RecordProblem::Genotype { sample: s1() }, "read"),
        (with(30, &|l| l.replace("\tA\tG\t", "\tA\tG,T\t")), RecordProblem::Multiallelic, "bcftools norm"),
        (with(30, &|l| l.replace("\tA\tG\t", "\tA\t.\t")), RecordProblem::NoAlternative, "drop"),
        (with(40, &|l| l.replace("20\t40\t", "20\t30\t")), RecordProblem::Duplicate, "bcftools norm"),
        (with(40, &|l| l.replace("20\t40\t", "20\t29\t")), RecordProblem::Unsorted, "bcftools sort"),
        (with(30, &|l| l.replace("\tGT\t", "\tDP:GT\t")), RecordProblem::NoGenotypes, "GT"),
    ];
    for (text, problem, remedy) in cases {
        let position = match problem {
            RecordProblem::Duplicate | RecordProblem::Unsorted if text.contains("\n20\t29\t") => 29,
            _ => 30,
        };
        let refused = place.build(&Build::default(), &place.write("x.vcf", &text)).unwrap_err();
        assert_eq!(refused, GenomeError::Record { contig: "20".into(), position, problem });
        assert!(refused.to_string().contains(remedy) && refused.to_string().starts_with("20:"), "{refused}");
    }
    // Homozygous genotypes need no phase, and a contig that comes back is out of order.
    place.build(&Build::default(), &place.write("x.vcf", with(30, &|l| call(l, 1, "1/1")))).unwrap();
    let back =
        format!("{good}21\t5\t.\tA\tG\t.\t.\t.\tGT\t0|0\t0|0\t0|0\n20\t90\t.\tA\tG\t.\t.\t.\tGT\t0|0\t0|0\t0|0\n");
    let refused = place.build(&Build::default(), &place.write("x.vcf", &back)).unwrap_err();
    assert!(matches!(refused, GenomeError::Record { position: 90, problem: RecordProblem::Unsorted, .. }));
    // Other kinds are left out when asked for.
    let several = with(30, &|l| l.replace("\tA\tG\t", "\tA\tG,T\t"));
    let skip = Build { kinds: Kinds::SkipOthers, ..Build::default() };
    assert_eq!(place.build(&skip, &place.write("x.vcf", &several)).unwrap().sites(), 7);
    let two = place
        .build(&Build { samples: Samples::Only(vec!["S9".into()]), ..Build::default() }, &place.write("x.vcf", &good));
    assert_eq!(two.unwrap_err(), GenomeError::Sample { name: "S9".into() });
    let none = VariantFile::open(&place.path("none.vcf")).unwrap_err();
    assert_eq!(none, GenomeError::Io { kind: std::io::ErrorKind::NotFound });
}

#[test]
fn damaged_files() {
    let place = Place::new();
    let good = vcf(&haplotypes(40, 300, 11));
    let packed = bgzf(good.as_bytes());
    let build = |bytes: &[u8]| place.build(&Build::default(), &place.write("x.vcf.gz", bytes));
    assert_eq!(build(&packed).unwrap().sites(), 300);
    for cut in [20, packed.len() / 3, packed.len() - 28, packed.len() - 1] {
        assert_eq!(build(&packed[..cut]).unwrap_err(), GenomeError::TruncatedGzip, "{cut}");
    }
    // An end mark does not hide a gap before it.
    let gap = [&packed[..packed.len() / 2], &packed[packed.len() - 28..]].concat();
    assert!(build(&gap).is_err());
    let mut flipped = packed.clone();
    flipped[packed.len() / 2] ^= 8;
    assert!(build(&flipped).is_err());
    let mut gzip = packed.clone();
    gzip[12] = b'X';
    assert_eq!(build(&gzip).unwrap_err(), GenomeError::NotBgzf);
    for text in [&b"hello"[..], b"", b"##fileformat=VCFv4.2\n", b"#CHROM\tPOS\n", &good.as_bytes()[..300]] {
        assert!(build(text).is_err(), "{text:?}");
    }
    for cut in (300..good.len()).step_by(997) {
        // Text that ends within a record is refused, or ends after one.
        if let Ok(panel) = build(&good.as_bytes()[..cut]) {
            assert!(panel.sites() <= 300);
        }
    }
    // Every byte of a small BCF file, unpacked so that no compression stands before the reader.
    let mut raw = Vec::new();
    std::io::copy(&mut noodles_bgzf::io::Reader::new(std::fs::File::open(data("small.bcf")).unwrap()), &mut raw)
        .unwrap();
    let skip = Build { kinds: Kinds::SkipOthers, ..Build::default() };
    assert_eq!(place.build(&skip, &place.write("x.bcf", &raw)).unwrap().sites(), 400);
    let mut r = Random(5);
    for _ in 0..300 {
        let mut bytes = raw.clone();
        let at = r.index(4000);
        bytes[at] ^= 1 << r.index(8);
        let _ = place.build(&skip, &place.write("x.bcf", &bytes));
        let _ = place.build(&skip, &place.write("x.bcf", &raw[..at]));
    }
}

#[test]
fn files_of_panels_and_descriptions_are_checked() {
    let place = Place::new();
    let haplotypes = haplotypes(70, 500, 13);
    let policy = Policy { least_eps: 2, most_sites: 300, most_starts: 7 };
    let input = place.write("panel.vcf", vcf(&haplotypes));
    let panel = place.build(&Build { policy, ..Build::default() }, &input).unwrap();
    let bytes = std::fs::read(place.path("panel.sudare")).unwrap();
    let sites = panel.description().unwrap();
    let described = sites.to_bytes().unwrap();
    let again = Sites::from_bytes(&described).unwrap();
    assert_eq!(again.outline(), panel.outline());
    assert_eq!(again.to_bytes().unwrap(), described);
    assert_eq!(again.outline().policy, policy);
    assert_eq!(again.site(17).unwrap().position, 180);
    assert_eq!(again.window(&"20:95-200".parse().unwrap()).unwrap(), 9..20);
    // Nothing of the columns is in the description.
    let mut column = Column::default();
    panel.column(17, &mut column).unwrap();
    assert!(described.len() < bytes.len());
    let read = |bytes: &[u8]| Panel::from_bytes(bytes.to_vec()).and_then(|p| p.check());
    read(&bytes).unwrap();
    let mut r = Random(3);
    for _ in 0..2000 {
        let mut bad = bytes.clone();
        let at = r.index(bytes.len());
        bad[at] ^= 1 << r.index(8);
        assert!(read(&bad).is_err(), "{at}");
        assert!(read(&bytes[..at]).is_err());
        let at = r.index(described.len());
        let mut bad = described.clone();
        bad[at] ^= 1 << r.index(8);
        assert!(Sites::from_bytes(&bad).is_err(), "{at}");
        assert!(Sites::from_bytes(&described[..at]).is_err());
        let edge = [0u64, 1, 0xFF, 1 << 31, 1 << 40, u64::MAX][r.index(6)].to_le_bytes();
        for (good, panels) in [(&described, false), (&bytes, true)] {
            let mut bad = good.clone();
            let at = 128 + r.index(120);
            bad[at..at + 8].copy_from_slice(&edge);
            reseal_for_tests(&mut bad);
            let _ = if panels { read(&bad).is_ok() } else { Sites::from_bytes(&bad).is_ok() };
        }
    }
    let grown = [&bytes[..], &[0]].concat();
    assert!(matches!(read(&grown), Err(GenomeError::Wire(WireError::Trailing { .. }))));
    assert!(matches!(Panel::from_bytes(described), Err(GenomeError::Wire(WireError::WrongType { .. }))));
    assert!(matches!(panel.column(500, &mut column), Err(GenomeError::Range { .. })));
    assert!(matches!(longest(&panel, 490, &[false; 11], 1), Err(GenomeError::Window { .. })));
    assert!(matches!(longest(&panel, 490, &[false; 3], 0), Err(GenomeError::Range { .. })));
}

/// Building keeps no more than a block in memory; blocks of many sites come out as they went in.
#[test]
fn many_blocks() {
    let place = Place::new();
    let haplotypes = haplotypes(10, 9000, 17);
    let panel = place.panel(&haplotypes);
    assert_eq!(panel.sites(), 9000);
    for start in [0, 4090, 4096, 8190, 8950] {
        let query = &haplotypes[3][start..start + 50];
        assert_eq!(longest(&panel, start, query, 1).unwrap(), longest_naive(&haplotypes, start, query, 1));
    }
    let sites = panel.description().unwrap();
    assert_eq!(sites.parts(8192).unwrap(), (81930, "A", "G"));
}

/// A file that somebody shortens while it is read is an error, where a mapped one would end the process.
#[test]
fn a_panel_that_is_cut_meanwhile() {
    let place = Place::new();
    let panel = place.panel(&haplotypes(600, 400, 3));
    let path = place.path("panel.sudare");
    let whole = std::fs::read(&path).unwrap();
    let mut column = Column::default();
    for length in [whole.len() - 1, whole.len() / 2, 100, 0] {
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
        assert!(matches!(panel.column(399, &mut column), Err(GenomeError::Io { .. })), "{length}");
        assert!(panel.check().is_err() && Panel::open(&path).is_err());
        std::fs::write(&path, &whole).unwrap();
        panel.check().unwrap();
    }
    panel.column(399, &mut column).unwrap();
}
