//! Private searches from the user's own files, each command in a process and each side in a folder of its own.

use crate::common;
use common::*;
use std::path::PathBuf;

fn data(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/genome").join(name).display().to_string()
}

/// A small file of phased genotypes: three samples, eight sites; the last sample is the first one's twin up to a site.
fn variants(change: impl Fn(usize, &str) -> String) -> String {
    let head = "##fileformat=VCFv4.2\n##contig=<ID=7,length=1000>\n##reference=toy\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tA\tB\tC\n";
    let calls = ["0|1\t1|1", "1|0\t0|0", "1|1\t0|1", "0|0\t1|1", "1|0\t1|0", "0|1\t0|0", "1|1\t1|0", "0|0\t0|1"];
    let lines = calls.iter().enumerate().map(|(i, c)| {
        let a = c.split('\t').next().unwrap();
        // C's first haplotype is A's, but for the sixth site.
        let own = if i == 5 { if a.starts_with('0') { "1" } else { "0" } } else { &a[..1] };
        change(i, &format!("7\t{}\t.\tA\tG\t.\tPASS\t.\tGT\t{c}\t{own}|0\n", 10 * (i + 1)))
    });
    head.to_owned() + &lines.collect::<String>()
}

/// Copies files to another side.
fn carry(from: &Place, to: &Place, names: &[&str]) {
    for name in names {
        std::fs::copy(from.path(name), to.path(name.rsplit('/').next().unwrap())).unwrap();
    }
}

#[test]
fn a_real_panel_between_two_folders() {
    let (server, client) = (Place::new(), Place::new());
    let text =
        server.ok(&format!("genome panel build {} --kinds snps --most-starts 64 -o panel", data("panel.vcf.gz")));
    assert!(text.contains("600 haplotypes, 3090 sites on 20 (3090)") && text.contains("154 of other kinds"), "{text}");
    carry(&server, &client, &["panel.sites"]);
    let json: serde_json::Value = serde_json::from_str(&client.ok("genome panel info panel.sites --json")).unwrap();
    assert_eq!((json["haplotypes"].as_u64(), json["mostStarts"].as_u64()), (Some(600), Some(64)));
    assert!(client.ok("genome plan panel.sites --sites 60 --starts 5").contains("trie: least time"));
    client.ok("genome keygen -o keys");
    let query = format!(
        "genome query panel.sites --keys keys/secret.key --variants {} --sample NA06994 --hap 2 --region 20:1100000-1105000 --among 5 -o q",
        data("others.vcf.gz")
    );
    client.ok(&query);
    carry(&client, &server, &["q"]);
    server.ok("genome search panel q --store tables --memory 1kB -o a");
    let text = server.ok("genome search panel q --store tables --force -o a");
    assert!(text.contains("4 to choose among starts"), "{text}");
    assert!(exists(&server.path("tables")));
    carry(&server, &client, &["a"]);
    let table = client.ok("genome answer panel.sites --keys keys/secret.key q.private a");
    let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split('\t').collect()).collect();
    assert_eq!(lines[0], ["sample", "hap", "chrom", "start_pos", "end_pos", "n_sites", "matched_sites", "status"]);
    assert_eq!(lines[1][..3], ["NA06994", "2", "20"]);
    // The same in the clear.
    let panel = sudare_genome::Panel::open(&server.path("panel")).unwrap();
    let sites = panel.description().unwrap();
    let window = sites.window(&"20:1100000-1105000".parse().unwrap()).unwrap();
    let file = sudare_genome::vcf::VariantFile::open(data("others.vcf.gz").as_ref()).unwrap();
    let symbols = sudare_genome::Reading::default().symbols(&sites, &file, "NA06994", 2, window.clone()).unwrap();
    let expected = sudare_genome::search::longest(&panel, window.start, &symbols, 1).unwrap().length;
    assert_eq!((lines[1][5], lines[1][6]), (window.len().to_string().as_str(), expected.to_string().as_str()));
    client.ok("genome answer panel.sites --keys keys/secret.key q.private a --json -o beacon.json");
    let json: serde_json::Value = serde_json::from_slice(&client.read("beacon.json")).unwrap();
    assert_eq!(json["response"]["resultSets"][0]["results"][0]["sitesMatched"].as_u64(), Some(expected as u64));
    // Padded to the panel's class for this window.
    let class = server.ok("genome panel class panel --sites 5");
    assert!(class.trim().parse::<u64>().unwrap().is_power_of_two());
    server.fails("genome search panel q --pad 3 -o b", 6, "class");
}

/// A panel without C, and keys of a protocol; C's and others' queries of it.
struct Asked {
    place: Place,
    keys: &'static str,
}

impl Asked {
    fn new(protocol: &'static str) -> Self {
        let place = Place::new();
        place.write("mine.vcf", variants(|_, l| l.to_owned()));
        place.ok("genome panel build mine.vcf --samples ^C -o panel");
        place.ok(&format!("genome keygen --protocol {protocol} --sites 7 -o {protocol}"));
        Self { place, keys: protocol }
    }

    fn query(&self, more: &str) {
        let keys = self.keys;
        self.place.ok(&format!(
            "genome query panel.sites --keys {keys}/secret.key --variants mine.vcf --region 7:10-70 {more} --force -o q"
        ));
    }

    fn answer(&self) -> String {
        self.place.ok(&format!("genome answer panel.sites --keys {}/secret.key q.private a", self.keys))
    }

    #[track_caller]
    fn require(&self, sample: &str, hap: &str, matched: &str, status: &str) {
        let lines = self.answer();
        let line: Vec<&str> = lines.lines().last().unwrap().split('\t').collect();
        assert_eq!([line[0], line[1], line[5], line[6], line[7]], [sample, hap, "7", matched, status], "{lines}");
    }
}

#[test]
fn the_trie_protocol() {
    let asked = Asked::new("trie");
    let place = &asked.place;
    asked.query("--sample C --hap 1 --circuit-private");
    place.fails("genome search panel q --force -o a", 4, "eval");
    place.ok("genome search panel q --keys trie/eval.keys -o a");
    asked.require("C", "1", "5", "partial");
    // Shared by two.
    asked.query("--sample C --hap 1 --eps 2");
    place.ok("genome search panel q --force -o a");
    // Only one haplotype begins as C's first does.
    asked.require("C", "1", "0", "none");
    place.fails("genome keygen -o trie", 2, "--force");
    place.fails(
        "genome query panel.sites --keys trie/secret.key --variants mine.vcf --sample A,C --region 7:10-70 -o two",
        2,
        "queries of one message",
    );
}

#[test]
fn the_lookup_protocol() {
    let asked = Asked::new("lookup");
    let place = &asked.place;
    place.ok("genome keygen --protocol trie --sites 7 -o trie");
    asked.query("--sample B --hap 2");
    place.fails("genome search panel q --force -o a", 4, "keys");
    place.fails("genome search panel q --keys trie/eval.keys -o a", 4, "keys");
    place.ok("genome search panel q --keys lookup/eval.keys --force -o a");
    asked.require("B", "2", "7", "full");
    place.fails("genome answer panel.sites --keys trie/secret.key q.private a", 4, "protocol");
    // A panel of one's own, on a server that learns nothing of it.
    place.ok("genome panel encrypt panel --keys lookup/secret.key --region 7:10-10 --sites 7 -o tables");
    place.ok("genome search tables q --keys lookup/eval.keys --force -o a");
    asked.require("B", "2", "7", "full");
    place.ok("genome search tables q --keys lookup/eval.keys --memory 1GB --force -o a");
    place.fails("genome search tables q --keys lookup/eval.keys --memory 1kB -o b", 6, " or more");
    place.fails(
        "genome panel encrypt panel --keys lookup/secret.key --region 7:10-10 --sites 7 -o tables",
        7,
        "already",
    );
    let mut shard = place.read("tables/blocks/c/0/0/0");
    shard[9000] ^= 1;
    place.write("tables/blocks/c/0/0/0", shard);
    place.fails("genome search tables q --keys lookup/eval.keys -o b", 5, "tables");
}

#[test]
fn the_simd_protocol() {
    let asked = Asked::new("simd");
    // Four haplotypes in one message.
    asked.query("--sample A,C --hap 1,2 --among 2");
    asked.place.ok("genome search panel q --keys simd/eval.keys -o a");
    let table = asked.answer();
    assert_eq!(table.lines().count(), 5);
    let found: Vec<&str> = table.lines().skip(1).map(|l| l.split('\t').nth(6).unwrap()).collect();
    assert_eq!((found[0], found[1], found[2]), ("7", "7", "5"), "{table}");
}

#[cfg(unix)]
#[test]
fn what_is_private_is_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("mine.vcf", variants(|_, l| l.to_owned()));
    place.ok("genome panel build mine.vcf -o panel");
    place.ok("genome keygen -o keys");
    place.ok("genome query panel.sites --keys keys/secret.key --variants mine.vcf --sample A --region 7:10-40 -o q");
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    for name in ["keys/secret.key", "q.private", "panel"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_ne!(mode("q") & 0o044, 0);
}

#[test]
fn refusals() {
    let place = Place::new();
    place.write("mine.vcf", variants(|_, l| l.to_owned()));
    place.ok("genome panel build mine.vcf --least-eps 1 --most-sites 6 -o panel");
    place.ok("genome keygen -o keys");
    let build = |text: String, code, phrase: &str| {
        place.write("bad.vcf", text);
        place.fails("genome panel build bad.vcf -o other", code, phrase);
    };
    build(
        variants(|i, l| if i == 3 { l.replace("0|0", "0/1") } else { l.into() }),
        3,
        "7:40: the genotype of A is not phased",
    );
    build(variants(|i, l| if i == 3 { l.replace("0|0", ".|.") } else { l.into() }), 3, "missing");
    build(variants(|i, l| if i == 3 { l.replace("\tG\t", "\tG,T\t") } else { l.into() }), 3, "bcftools norm");
    build(variants(|i, l| if i == 3 { l.replace("\t40\t", "\t20\t") } else { l.into() }), 3, "bcftools sort");
    build("hello".into(), 3, "cannot be read");
    place.write("cut.vcf.gz", &std::fs::read(data("panel.vcf.gz")).unwrap()[..50_000]);
    place.fails("genome panel build cut.vcf.gz -o other", 5, "ends too early");
    place.fails("genome panel build nothing.vcf -o other", 7, "");
    place.fails("genome panel build mine.vcf --region chr7 -o other", 3, "there is no contig");
    place.fails("genome panel build mine.vcf --samples D -o other", 3, "no sample");
    let query = |more: &str, code, phrase: &str| {
        let base = "genome query panel.sites --keys keys/secret.key --variants mine.vcf";
        place.fails(&format!("{base} {more} -o q"), code, phrase);
    };
    query("--sample A --region 7:10-80", 6, "policy");
    query("--sample D --region 7:10-40", 3, "no sample");
    query("--sample A --region 8:10-40", 3, "contig");
    query("--sample A --region 7:11-19", 3, "no site");
    query("--sample A --region 7:10-40 --among 9", 2, "starts");
    query("--sample A --region 7:10-40 --assembly other", 3, "assembly");
    place.write("few.vcf", variants(|i, l| if i == 2 { String::new() } else { l.into() }));
    let few = "genome query panel.sites --keys keys/secret.key --variants few.vcf --sample A --region 7:10-40";
    place.fails(&format!("{few} -o q"), 3, "7:30");
    place.ok(&format!("{few} --absent-is-reference -o q"));
    place.ok("genome search panel q --force -o a");
    // Damage, strangers, and files of another kind.
    let damage = |name: &str, to: &str| {
        let mut bytes = place.read(name);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        place.write(to, bytes);
    };
    for (name, words) in [
        ("q", "genome search panel bad -o b"),
        ("a", "genome answer panel.sites --keys keys/secret.key q.private bad"),
        ("q.private", "genome answer panel.sites --keys keys/secret.key bad a"),
        ("keys/secret.key", "genome answer panel.sites --keys bad q.private a"),
        ("panel.sites", "genome answer bad --keys keys/secret.key q.private a"),
        ("panel", "genome panel info bad"),
    ] {
        damage(name, "bad");
        let out = place.run(&words.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(5), "{words}: {text}");
    }
    place.ok("genome keygen -o others");
    place.fails("genome answer panel.sites --keys others/secret.key q.private a", 4, "key");
    place.fails("genome search q panel -o b", 4, "");
    place.write("other.vcf", variants(|i, l| if i == 1 { l.replace("0|0", "0|1") } else { l.into() }));
    place.ok("genome panel build other.vcf -o other");
    place.fails("genome search other q -o b", 4, "panel");
    place.fails("genome answer other.sites --keys keys/secret.key q.private a", 4, "panel");
    place.ok(&format!("{few} --absent-is-reference -o q2"));
    place.fails("genome answer panel.sites --keys keys/secret.key q2.private a", 4, "another query");
}
