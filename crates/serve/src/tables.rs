//! Tables of tenants: encrypted vectors that stay, each with its plan and its owner's evaluation keys.
//!
//! ```text
//! TENANT/tables/NAME/plan.json   written last: without it there is no table
//!                    eval.keys
//!                    rows/       the table as `sudare-search` has it
//! ```
//!
//! A table is its tenant's until the tenant removes it, and counts in the tenant's share.

use crate::digest::Digest;
use crate::objects::Objects;
use crate::problem::Problem;
use crate::request::TableView;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use sudare_ring::{ErrorKind, Kinded, Threads};
use sudare_search::parcel::receive;
use sudare_search::{Database, Index, Keys, Manifest, SearchError, Server};
use sudare_store::atomic::{self, Access, Durability, Over, Scratch};

/// Most bytes of a plan of a search.
const MAX_PLAN: u64 = 1 << 20;
/// Most characters of a table's name.
const MAX_NAME: usize = 64;
const PLAN: &str = "plan.json";
const KEYS: &str = "eval.keys";
const ROWS: &str = "rows";

/// The tables of all tenants.
pub(crate) struct Tables {
    objects: Arc<Objects>,
    /// Bytes that a table and its keys may take in memory.
    memory: u64,
    /// For each tenant what is held by who changes one of its tables: nobody waits for another tenant's disk.
    changing: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// A table that is open.
pub(crate) struct OpenTable {
    pub server: Server,
    pub database: Database,
}

impl OpenTable {
    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let (index, (_, held)) = (self.server.index(), self.database.segments());
        let bytes = index.bytes();
        bytes.memory + held as u64 * bytes.rows / index.segments().max(1)
    }
}

/// Counts what a folder takes more or less when it is dropped, however the work in it ends. What is no table then is removed.
struct Counting<'a> {
    objects: &'a Objects,
    tenant: &'a str,
    folder: &'a Path,
    before: u64,
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        remove_begun(self.folder);
        self.objects.settle(self.tenant, self.before, folder_bytes(self.folder));
    }
}

/// Removes a folder without a plan: it is no table, and its tenant could not remove it.
fn remove_begun(folder: &Path) {
    if matches!(folder.join(PLAN).try_exists(), Ok(false)) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// Removes what a server that ended had begun in the folder of a tenant's tables. Bytes of what is there then.
pub(crate) fn enter(tables: &Path) -> u64 {
    if let Ok(entries) = fs::read_dir(tables) {
        entries.flatten().for_each(|entry| remove_begun(&entry.path()));
    }
    folder_bytes(tables)
}

/// Bytes of all files in a folder.
pub fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let one = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    };
    entries.flatten().map(one).sum()
}

fn absent() -> Problem {
    Problem::not_found("table")
}

/// The text of a plan.
fn text(plan: File) -> Result<String, Problem> {
    let mut text = String::new();
    let wrong = |e: io::Error| match e.kind() {
        io::ErrorKind::InvalidData => Problem::new(ErrorKind::Format, "the plan is not text; send it again"),
        _ => e.into(),
    };
    plan.take(MAX_PLAN).read_to_string(&mut text).map_err(wrong)?;
    Ok(text)
}

/// The text of a table's plan.
fn plan_of(folder: &Path) -> Result<String, Problem> {
    let missing = |e: io::Error| if e.kind() == io::ErrorKind::NotFound { absent() } else { e.into() };
    text(File::open(folder.join(PLAN)).map_err(missing)?)
}

impl Tables {
    pub fn new(objects: Arc<Objects>, memory: u64) -> Self {
        Self { objects, memory, changing: Mutex::default() }
    }

    fn changing(&self, tenant: &str) -> Arc<Mutex<()>> {
        let mut all = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(tenant.to_owned()).or_default().clone()
    }

    /// Where a table is; refuses what is no name.
    fn folder(&self, tenant: &str, name: &str) -> Result<PathBuf, Problem> {
        let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        if !(1..=MAX_NAME).contains(&name.len()) || !name.bytes().all(good) {
            let words = format!("the name of a table has 1 to {MAX_NAME} letters, digits, hyphens and underscores");
            return Err(Problem::request(words));
        }
        Ok(self.objects.tables_folder(tenant).join(name))
    }

    /// What the folder of a table has of it: names of files stay with the operator.
    fn told(folder: &Path, name: &str, error: SearchError) -> Problem {
        match error.system() {
            Some(_) => error.into(),
            None => Problem::new(error.kind(), error.to_string().replace(&*folder.to_string_lossy(), name)),
        }
    }

    /// The list of a table's segments.
    pub fn manifest(&self, tenant: &str, name: &str) -> Result<Manifest, Problem> {
        let folder = self.folder(tenant, name)?;
        if !folder.join(PLAN).exists() {
            return Err(absent());
        }
        Manifest::load(&folder.join(ROWS)).map_err(|e| Self::told(&folder, name, e))
    }

    /// A table as its tenant sees it.
    pub fn view(&self, tenant: &str, name: &str) -> Result<TableView, Problem> {
        let (folder, manifest) = (self.folder(tenant, name)?, self.manifest(tenant, name)?);
        let (plan, bytes, rows) = (plan_of(&folder)?, folder_bytes(&folder), manifest.rows());
        let manifest = serde_json::to_value(&manifest).map_err(io::Error::other)?;
        Ok(TableView { name: name.to_owned(), rows, bytes, plan, manifest })
    }

    /// Names of a tenant's tables, in order.
    pub fn list(&self, tenant: &str) -> Result<Vec<String>, Problem> {
        let entries = match fs::read_dir(self.objects.tables_folder(tenant)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?.collect::<io::Result<Vec<_>>>()?,
        };
        let whole = entries.iter().filter(|entry| entry.path().join(PLAN).exists());
        let mut names: Vec<String> = whole.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Opens a table on the threads of the caller. It holds as many segments as half of the memory has room for, so that a
    /// second one finds some too.
    pub fn open(&self, tenant: &str, name: &str) -> Result<OpenTable, Problem> {
        let folder = self.folder(tenant, name)?;
        let told = |e| Self::told(&folder, name, e);
        let index = Index::from_json(&plan_of(&folder)?).map_err(told)?;
        let keys = Keys::read_from(&index, BufReader::with_capacity(1 << 20, File::open(folder.join(KEYS))?));
        let server = keys.and_then(|keys| Server::new(&index, keys)).map_err(told)?;
        let memory = (self.memory / 2).max(index.bytes().memory.min(self.memory));
        let database = server.open(&folder.join(ROWS), memory).map_err(told)?;
        Ok(OpenTable { server, database })
    }

    /// Takes in a segment that was sent, with the first one plan and keys, which the table keeps.
    pub fn append(
        &self,
        tenant: &Arc<str>,
        name: &str,
        segment: Digest,
        (plan, keys): (Option<Digest>, Option<Digest>),
        pool: &Threads,
    ) -> Result<Manifest, Problem> {
        let folder = self.folder(tenant, name)?;
        let told = |e| Self::told(&folder, name, e);
        let length = |digest| Ok::<_, Problem>(self.objects.open_object(tenant, digest)?.metadata()?.len());
        let changing = self.changing(tenant);
        let _changing = changing.lock().unwrap_or_else(PoisonError::into_inner);
        let new = !folder.join(PLAN).try_exists()?;
        let all = [Some(segment), plan.filter(|_| new), keys.filter(|_| new)].into_iter().flatten();
        let _room = self.objects.reserve(tenant, all.map(length).sum::<Result<u64, Problem>>()?)?;
        let _counting = Counting { objects: &self.objects, tenant, folder: &folder, before: folder_bytes(&folder) };
        let file = self.objects.open_object(tenant, segment)?;
        let bytes = file.metadata()?.len();
        if !new {
            let index = Index::from_json(&plan_of(&folder)?).map_err(told)?;
            let key = sudare_search::parcel::key(&folder.join(ROWS)).map_err(told)?;
            return pool.run(|| receive(&index, key, &folder.join(ROWS), file, bytes)).map_err(told);
        }
        let (Some(plan), Some(keys)) = (plan, keys) else { return Err(first()) };
        // What could not be removed before.
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let written = text(self.objects.open_object(tenant, plan)?)?;
        let index = Index::from_json(&written)?;
        let least = index.bytes().memory;
        if least > self.memory {
            return Err(SearchError::TooLittleMemory { given: self.memory, least }.into());
        }
        let sent = || Ok::<_, Problem>(BufReader::with_capacity(1 << 20, self.objects.open_object(tenant, keys)?));
        let key = pool.run(|| {
            let keys = Keys::read_from(&index, sent()?)?;
            let key = keys.id();
            Server::new(&index, keys)?;
            Ok::<_, Problem>(key)
        })?;
        let rows = folder.join(ROWS);
        atomic::make_folder(&rows)?;
        let manifest = pool.run(|| receive(&index, key, &rows, file, bytes)).map_err(told)?;
        let mut out = Scratch::within(&folder, crate::objects::UNFINISHED, Access::Owner)?;
        io::copy(&mut sent()?, &mut out)?;
        out.place(&folder.join(KEYS), Over::NoKey, Durability::Power)?;
        let (path, text) = (folder.join(PLAN), written.as_bytes());
        atomic::write(&path, &[text], Access::Owner, Over::NoKey, Durability::Power)?;
        Ok(manifest)
    }

    /// Refuses an append that no table can be begun with, before anything is read.
    pub fn check_append(&self, tenant: &str, name: &str, first_of_all: bool) -> Result<(), Problem> {
        match self.folder(tenant, name)?.join(PLAN).exists() || first_of_all {
            true => Ok(()),
            false => Err(first()),
        }
    }

    /// Removes a table.
    pub fn delete(&self, tenant: &str, name: &str) -> Result<(), Problem> {
        let folder = self.folder(tenant, name)?;
        let changing = self.changing(tenant);
        let _changing = changing.lock().unwrap_or_else(PoisonError::into_inner);
        let _counting = Counting { objects: &self.objects, tenant, folder: &folder, before: folder_bytes(&folder) };
        match fs::remove_file(folder.join(PLAN)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(absent()),
            removed => Ok(removed.and_then(|()| fs::remove_dir_all(&folder))?),
        }
    }
}

fn first() -> Problem {
    let words = "there is no such table; send its first segment with the plan and the evaluation keys";
    Problem::new(ErrorKind::MissingKey, words)
}
