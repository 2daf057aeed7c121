//! A private search from end to end: `cargo run -p sudare-genome --example 1_search`.

use std::path::Path;
use std::sync::Arc;
use sudare_genome::panel::{Build, Kinds};
use sudare_genome::vcf::VariantFile;
use sudare_genome::{Client, GenomeError, KeyPlan, Options, Panel, Question, Reading, Server, Sites};

fn main() -> Result<(), GenomeError> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/genome");
    let folder = tempfile::tempdir()?;

    // The server builds a panel and publishes its description: sites, and nothing of any haplotype.
    let path = folder.path().join("panel");
    Build { kinds: Kinds::Snps, ..Build::default() }.run(&data.join("panel.vcf.gz"), &path, &|_, _| ())?;
    let panel = Arc::new(Panel::open(&path)?);
    let description = panel.description()?.to_bytes()?;
    let server = Server::new(panel)?;

    // The client reads one haplotype of another sample, and hides where it starts among three places.
    let sites = Sites::from_bytes(&description)?;
    let window = sites.window(&"20:1100000-1103000".parse()?)?;
    let me = VariantFile::open(&data.join("others.vcf.gz"))?;
    let symbols = Reading::default().symbols(&sites, &me, "NA06989", 1, window.clone())?;
    let question = Question::new(&sites, window.start, symbols, 1)?.among(&sites, &[12, 345])?;
    let client = Client::generate(KeyPlan::trie())?;
    let (query, pending) = client.query(&sites, &[question], false)?;

    // Bytes go there and back.
    let (answer, counters) = server.search(&query, Options::default())?;
    let found = client.answer(&pending, &answer)?;
    println!("{} of {} sites match; {counters:?}", found[0].matched, found[0].sites);
    println!("{} bytes up, {} down", query.len(), answer.len());
    assert!(found[0].matched <= window.len());
    Ok(())
}
