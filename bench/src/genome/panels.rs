//! The panels: built here, so that building is measured too.

use super::{Lab, Line, published};
use crate::Outcome;
use crate::timing::{Clock, Timing};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sudare_genome::Panel;
use sudare_genome::panel::{Build, Kinds};
use sudare_genome::vcf::VariantFile;

/// A panel and where queries for it come from.
pub struct Source {
    /// Its name in the lines.
    pub name: String,
    /// The panel.
    pub panel: Arc<Panel>,
    /// All its sites, haplotype by haplotype, of samples that the panel does not hold.
    pub others: Vec<Vec<bool>>,
}

/// Samples that are left out of a panel, to ask with.
const HELD_OUT: usize = 2;

fn build(lab: &mut Lab<'_>, name: &str, input: &Path, scratch: &Path, least: f64) -> Outcome<Source> {
    let file = VariantFile::open(input)?;
    let held: Vec<String> = file.samples().iter().rev().take(HELD_OUT).cloned().collect();
    let build = Build { kinds: Kinds::Snps, least_frequency: least, ..Build::default() };
    let output = scratch.join(name);
    let mut timing = Timing::default();
    crate::machine::reset_peak_rss();
    lab.unit.sample(&mut timing.unit);
    let clock = Clock::start();
    let built = build.run(input, &output, &|_, _| ())?;
    clock.stop(1, &mut timing.ours);
    let panel = Arc::new(Panel::open(&output)?);
    let others = haplotypes(&file, &panel, &held)?;
    // The whole panel is searched: the held-out samples are in it only while the build is measured.
    let line = Line::new("panel build", name, lab.machine).with_timing(timing);
    let (ms, rss) = (line.median_ms, line.peak_rss_mb);
    let mut line = match name {
        published::REAL => line.with_target(2000.0, "ms", ms),
        _ => line,
    };
    line.haplotypes = Some(panel.haplotypes());
    line.counters.insert("sites", built.outline.sites() as f64);
    line.counters.insert("bytes", built.bytes as f64);
    panel.check()?;
    let right = rss.is_none_or(|mb| mb < 200.0) || lab.lines.len() > 1;
    let line = line.with_answers(usize::from(!right), 1);
    lab.put(line)?;
    let smaller = Build { samples: sudare_genome::panel::Samples::Without(held), ..build };
    smaller.run(input, &output, &|_, _| ())?;
    Ok(Source { name: name.into(), panel: Arc::new(Panel::open(&output)?), others })
}

/// The haplotypes of some samples at a panel's sites.
fn haplotypes(file: &VariantFile, panel: &Panel, names: &[String]) -> Outcome<Vec<Vec<bool>>> {
    let sites = panel.description()?;
    let samples = names.iter().map(|n| file.sample(n)).collect::<Result<Vec<_>, _>>()?;
    let mut rows = vec![Vec::new(); 2 * samples.len()];
    let mut at = 0;
    file.visit(None, &samples, &|_, _| (), &mut |r| {
        if at < sites.len() && sites.parts(at)? == (r.position, r.reference, r.alternate) {
            for (row, genotype) in rows.chunks_mut(2).zip(r.genotypes) {
                row[0].push(genotype.alleles[0] == 1);
                row[1].push(genotype.alleles[1] == 1);
            }
            at += 1;
        }
        Ok(())
    })?;
    match at == sites.len() {
        true => Ok(rows),
        false => Err("the panel's sites are not those of its file".into()),
    }
}

/// All panels that there are.
pub fn all(lab: &mut Lab<'_>, scratch: &Path) -> Outcome<Vec<Source>> {
    let data = &lab.options.data;
    let mut inputs: Vec<(String, PathBuf, f64)> = lab
        .options
        .panels
        .iter()
        .map(|p| (p.file_name().unwrap_or_default().to_string_lossy().into_owned(), p.clone(), 0.0))
        .collect();
    if inputs.is_empty() {
        let (real, simulated) = (data.join("reference.vcf.gz"), data.join("simulated.vcf"));
        if real.is_file() {
            inputs.push((published::REAL.into(), real, 0.0));
        } else {
            inputs.push(("subset".into(), "data/genome/panel.vcf.gz".into(), 0.0));
            eprintln!("sudare-bench: no full panels in {}; `make genome-data` makes them", data.display());
        }
        if simulated.is_file() {
            inputs.push((published::SIMULATED.into(), simulated.clone(), 0.0));
            inputs.push((published::COMMON.into(), simulated, 0.05));
        }
    }
    inputs.iter().map(|(name, path, least)| build(lab, name, path, scratch, *least)).collect()
}
