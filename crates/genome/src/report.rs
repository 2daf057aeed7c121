//! Answers as people and other programs read them.

use crate::{Answer, GenomeError, PanelHash, Sites};
use serde::Serialize;
use serde_json::json;

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Sample.
    pub sample: String,
    /// Its haplotype, 1 or 2; 0 where it has no number.
    pub hap: u32,
    /// Contig.
    pub chrom: String,
    /// Position of the first site.
    pub start_pos: u32,
    /// Position of the last site that matches; nothing if none does.
    pub end_pos: Option<u32>,
    /// Sites asked for.
    pub n_sites: usize,
    /// Sites that match.
    pub matched_sites: usize,
    /// `full`, `partial` or `none`.
    pub status: &'static str,
}

/// The head of a table of rows.
pub const TSV_HEAD: &str = "sample\thap\tchrom\tstart_pos\tend_pos\tn_sites\tmatched_sites\tstatus";

impl Row {
    /// An answer with its places on the panel.
    ///
    /// # Errors
    /// [`GenomeError::Range`] for a site that the panel does not have.
    pub fn new(answer: &Answer, sites: &Sites) -> Result<Self, GenomeError> {
        let start = sites.site(answer.asked.start)?;
        let end_pos = match answer.matched {
            0 => None,
            length => Some(sites.parts(answer.asked.start + length - 1)?.0),
        };
        let status = match answer.matched {
            0 => "none",
            length if length == answer.sites => "full",
            _ => "partial",
        };
        Ok(Self {
            sample: answer.asked.label.clone(),
            hap: answer.asked.haplotype,
            chrom: start.contig,
            start_pos: start.position,
            end_pos,
            n_sites: answer.sites,
            matched_sites: answer.matched,
            status,
        })
    }

    /// As a line of a table; what is not there is a dot.
    pub fn tsv(&self) -> String {
        let text = |x: &str| if x.is_empty() { ".".into() } else { x.replace(['\t', '\n', '\r'], " ") };
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            text(&self.sample),
            self.hap,
            text(&self.chrom),
            self.start_pos,
            self.end_pos.map_or_else(|| ".".into(), |p| p.to_string()),
            self.n_sites,
            self.matched_sites,
            self.status
        )
    }
}

/// A response in the shape of GA4GH Beacon v2: a result set of the panel, one result a row.
pub fn beacon(rows: &[Row], panel: PanelHash, assembly: &str) -> serde_json::Value {
    let found = rows.iter().filter(|r| r.matched_sites > 0).count();
    let results: Vec<_> = rows
        .iter()
        .map(|r| {
            json!({
                "biosampleId": r.sample,
                "haplotype": r.hap,
                "assemblyId": assembly,
                "referenceName": r.chrom,
                "start": [r.start_pos - 1],
                "end": [r.end_pos.unwrap_or(r.start_pos - 1)],
                "sitesAsked": r.n_sites,
                "sitesMatched": r.matched_sites,
                "status": r.status,
            })
        })
        .collect();
    json!({
        "meta": {
            "beaconId": "org.sudare.genome",
            "apiVersion": "v2.0",
            "returnedGranularity": "record",
            "returnedSchemas": [{ "entityType": "haplotypeMatch", "schema": "sudare-haplotype-match-v1" }],
        },
        "responseSummary": { "exists": found > 0, "numTotalResults": found },
        "response": {
            "resultSets": [{
                "id": panel.to_string(),
                "setType": "panel",
                "exists": found > 0,
                "resultsCount": found,
                "results": results,
            }],
        },
    })
}
