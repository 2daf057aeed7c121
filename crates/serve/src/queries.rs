//! How many haplotypes each tenant has asked about in each panel, for good: a limit by key would be none, for keys cost nothing.
//!
//! The record of an accepted search has the total up to it ([`Record::asked`](crate::request::Record)), and is on the disk before the
//! search is accepted. So the largest total of a tenant's records and of its file counts, whatever ended the server, and a search that
//! nobody accepted is not counted. A total is in the file before a record with it goes, or is written less durably.
//!
//! ```text
//! TENANT/queries.json   totals by the names of panels
//! ```

use crate::objects::Objects;
use crate::problem::Problem;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use sudare_genome::GenomeError;
use sudare_store::atomic::{self, Access, Durability, Over};

/// Totals of a tenant: in all, and as its file has them.
#[derive(Default)]
struct Totals {
    asked: BTreeMap<String, u64>,
    kept: BTreeMap<String, u64>,
}

impl Totals {
    fn asked(&self, panel: &str) -> u64 {
        self.asked.get(panel).map_or(0, |asked| *asked)
    }
}

/// The totals of all tenants.
pub(crate) struct Queries {
    objects: Arc<Objects>,
    all: Mutex<HashMap<Arc<str>, Arc<Mutex<Totals>>>>,
}

impl Queries {
    pub fn new(objects: Arc<Objects>) -> Self {
        Self { objects, all: Mutex::default() }
    }

    /// Does something with the totals of a tenant while nobody else does.
    fn with<T>(&self, tenant: &str, work: impl FnOnce(&mut Totals) -> T) -> T {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(tenant.into()).or_default().clone();
        drop(all);
        work(&mut own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in the totals in the file of a tenant. A file that cannot be read is an error, for without it a tenant might ask again.
    pub fn enter(&self, tenant: &str) -> io::Result<()> {
        let kept: BTreeMap<String, u64> = match fs::read(self.objects.queries_file(tenant)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| {
                let words = format!(
                    "queries.json of {tenant} has no totals of queries; copy it from a backup, or write {{}} to count anew"
                );
                io::Error::new(io::ErrorKind::InvalidData, words)
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        self.with(tenant, |totals| *totals = Totals { asked: kept.clone(), kept });
        Ok(())
    }

    /// Takes in the total of a record.
    pub fn note(&self, tenant: &str, panel: &str, asked: u64) {
        self.with(tenant, |totals| {
            let total = totals.asked.entry(panel.to_owned()).or_default();
            *total = asked.max(*total);
        });
    }

    /// Haplotypes that a tenant has asked about.
    pub fn asked(&self, tenant: &str, panel: &str) -> u64 {
        self.with(tenant, |totals| totals.asked(panel))
    }

    /// Counts the haplotypes of a search, if they are not over the most. `accept` writes the record with the new total, and if the
    /// record is there the search counts. A tenant's searches are accepted one after the other: no two have one total.
    pub fn charge(
        &self,
        tenant: &str,
        (panel, most): (&str, Option<u64>),
        haplotypes: u64,
        record: &Path,
        accept: impl FnOnce(u64) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.with(tenant, |totals| {
            let found = totals.asked(panel).saturating_add(haplotypes);
            if let Some(allowed) = most.filter(|most| found > *most) {
                let what = "the largest number of haplotypes that a tenant asks about";
                return Err(GenomeError::Policy { what, allowed, found }.into());
            }
            let accepted = accept(found);
            if record.try_exists().unwrap_or(true) {
                totals.asked.insert(panel.to_owned(), found);
            }
            accepted
        })
    }

    /// Has a total of a record in the file too.
    pub fn keep(&self, tenant: &str, panel: &str, asked: u64) -> Result<(), Problem> {
        self.with(tenant, |totals| {
            if totals.kept.get(panel).is_some_and(|kept| *kept >= asked) {
                return Ok(());
            }
            let bytes = serde_json::to_vec(&totals.asked).map_err(io::Error::other)?;
            let path = self.objects.queries_file(tenant);
            atomic::write(&path, &[&bytes], Access::Owner, Over::NoKey, Durability::Power)?;
            totals.kept.clone_from(&totals.asked);
            Ok(())
        })
    }
}
