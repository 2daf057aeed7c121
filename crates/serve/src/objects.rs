//! Objects of tenants: files named by their digests, in a folder for each tenant.
//!
//! An upload is a file in `parts` until its digest matches; its length is what the server has of it, also after a
//! restart. Reservation for a piece is taken before its body is read.

use crate::digest::{Digest, Naming};
use crate::problem::Problem;
use crate::request::ObjectView;
use crate::settings::Limits;
use crate::tables;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use sudare_ring::ErrorKind;
use sudare_rlwe::wire::{MAGIC, ObjectType, peek};
use sudare_search::parcel::PARCEL;
use sudare_store::atomic::{self, Access, Durability, Over, Part, Scratch};

/// Bytes at the front of an object that tell its kind.
pub(crate) const HEAD: usize = 12;
/// What names of files that are not whole yet begin with.
pub(crate) const UNFINISHED: &str = ".new-";
/// Most containers in one object: an exact value has one for each modulus.
const MAX_CONTAINERS: usize = 1024;

/// What a tenant has here.
#[derive(Default)]
struct Account {
    /// Bytes on the disk, tables among them, and room for pieces under way.
    bytes: u64,
    /// Uploads under way.
    uploads: HashSet<Digest>,
    /// Objects that are messages of rooms, and of how many: they stay.
    messages: HashMap<Digest, usize>,
}

/// The objects of all tenants.
pub(crate) struct Objects {
    data: PathBuf,
    limits: Limits,
    accounts: Mutex<HashMap<Arc<str>, Account>>,
}

/// Bytes of a tenant's share that are taken for something to come, or for a record; dropped, they are free.
pub(crate) struct Reservation {
    objects: Arc<Objects>,
    tenant: Arc<str>,
    bytes: u64,
}

/// A piece of an upload: where it starts, its length, the length of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start: u64,
    pub length: u64,
    pub total: u64,
}

/// What became of a request to send a piece.
pub(crate) enum Admission {
    /// The object is here already.
    Present,
    /// Its bytes are wanted.
    Wanted(Upload),
}

/// An upload under way. Dropped, it leaves what has arrived for the next request.
pub(crate) struct Upload {
    objects: Arc<Objects>,
    tenant: Arc<str>,
    digest: Digest,
    piece: Piece,
    written: u64,
    file: Option<Part>,
}

impl Objects {
    /// The objects in a folder; of nobody yet.
    pub fn open(data: &Path, limits: &Limits) -> Arc<Self> {
        Arc::new(Self { data: data.to_owned(), limits: limits.clone(), accounts: Mutex::default() })
    }

    /// Opens the folders of tenants that have none open, and says whose; what a server that ended was writing is removed,
    /// parts of uploads stay.
    pub fn enter(&self, tenants: &[Arc<str>]) -> io::Result<Vec<Arc<str>>> {
        let (mut accounts, mut new) = (self.accounts(), Vec::new());
        for tenant in tenants {
            if accounts.contains_key(tenant) {
                continue;
            }
            let mut bytes = 0;
            for name in ["objects", "parts", "jobs"] {
                let folder = self.data.join(&**tenant).join(name);
                fs::create_dir_all(&folder)?;
                atomic::remove_abandoned(&folder, UNFINISHED);
                if name != "jobs" {
                    bytes += fs::read_dir(&folder)?
                        .flatten()
                        .filter_map(|e| e.metadata().ok())
                        .map(|m| m.len())
                        .sum::<u64>();
                }
            }
            bytes += tables::enter(&self.tables_folder(tenant));
            accounts.insert(tenant.clone(), Account { bytes, ..Account::default() });
            new.push(tenant.clone());
        }
        Ok(new)
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Arc<str>, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of a tenant's jobs.
    pub fn jobs_folder(&self, tenant: &str) -> PathBuf {
        self.data.join(tenant).join("jobs")
    }

    /// The folder of a tenant's rooms.
    pub fn rooms_folder(&self, tenant: &str) -> PathBuf {
        self.data.join(tenant).join("rooms")
    }

    /// The file with the totals of a tenant's queries.
    pub fn queries_file(&self, tenant: &str) -> PathBuf {
        self.data.join(tenant).join("queries.json")
    }

    /// The folder of a tenant's tables.
    pub fn tables_folder(&self, tenant: &str) -> PathBuf {
        self.data.join(tenant).join("tables")
    }

    /// Counts a folder of the tenant's that took so many bytes before, and takes others now.
    pub fn settle(&self, tenant: &str, before: u64, after: u64) {
        if let Some(account) = self.accounts().get_mut(tenant) {
            account.bytes = account.bytes.saturating_sub(before).saturating_add(after);
        }
    }

    fn path(&self, tenant: &str, digest: Digest) -> PathBuf {
        self.data.join(tenant).join("objects").join(digest.to_string())
    }

    fn part(&self, tenant: &str, digest: Digest) -> PathBuf {
        self.data.join(tenant).join("parts").join(digest.to_string())
    }

    /// The length of an object, or what has arrived of it.
    pub fn length(&self, tenant: &str, digest: Digest) -> Result<u64, u64> {
        let length = |path: PathBuf| fs::metadata(path).map(|m| m.len()).ok();
        length(self.path(tenant, digest)).ok_or_else(|| length(self.part(tenant, digest)).unwrap_or(0))
    }

    /// Bytes of all tenants.
    pub fn bytes(&self) -> u64 {
        self.accounts().values().map(|account| account.bytes).sum()
    }

    /// Opens an object for reading, and notes that it is used.
    pub fn open_object(&self, tenant: &str, digest: Digest) -> Result<File, Problem> {
        let file = File::open(self.path(tenant, digest)).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                Problem::new(ErrorKind::NotFound, format!("there is no object {digest}; send it first"))
            }
            _ => e.into(),
        })?;
        let _ = file.set_modified(SystemTime::now());
        Ok(file)
    }

    /// All of an object.
    pub fn read(&self, tenant: &str, digest: Digest) -> Result<Vec<u8>, Problem> {
        let mut out = Vec::new();
        self.open_object(tenant, digest)?.read_to_end(&mut out)?;
        Ok(out)
    }

    /// Takes room for a piece before its body is read.
    pub fn admit(self: &Arc<Self>, tenant: &Arc<str>, digest: Digest, piece: Piece) -> Result<Admission, Problem> {
        let limit = self.limits.object_bytes;
        if piece.total > limit {
            let words = format!(
                "{} bytes are over this server's limit of {limit} for an object; send it in parts, or ask its \
                 operator for more",
                piece.total
            );
            return Err(Problem::new(ErrorKind::TooLarge, words));
        }
        let mut accounts = self.accounts();
        let mut here = match self.length(tenant, digest) {
            Ok(_) => return Ok(Admission::Present),
            Err(part) => part,
        };
        let all: usize = accounts.values().map(|account| account.uploads.len()).sum();
        let account = accounts.get_mut(tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        if account.uploads.contains(&digest) {
            let words = "this object is being sent by another request; wait for it or end it";
            return Err(Problem::new(ErrorKind::TooMany, words).retry(1));
        }
        // What arrived whole for a server that ended before it took it in.
        if piece.start == 0 && here > 0 && here >= piece.total {
            fs::remove_file(self.part(tenant, digest))?;
            account.bytes = account.bytes.saturating_sub(here);
            here = 0;
        }
        if piece.start != here {
            let words = format!("{here} bytes of this object have arrived; go on there, not at {}", piece.start);
            return Err(Problem::new(ErrorKind::Offset, words).at(here));
        }
        let (free, limit) = (self.limits.tenant_bytes.saturating_sub(account.bytes), self.limits.tenant_bytes);
        if piece.total - piece.start > free {
            let words = format!(
                "{} more bytes are over this tenant's share of {limit}; delete objects",
                piece.total - piece.start
            );
            return Err(Problem::new(ErrorKind::Quota, words));
        }
        if account.uploads.len() >= self.limits.tenant_uploads {
            let words = format!(
                "{} uploads of this tenant are under way, which is the most at once; wait for one to end",
                account.uploads.len()
            );
            return Err(Problem::new(ErrorKind::TooMany, words).retry(1));
        }
        if all >= self.limits.uploads {
            return Err(Problem::new(
                ErrorKind::Busy,
                "as many uploads are under way as this server takes; try again later",
            )
            .retry(2));
        }
        account.bytes += piece.length;
        account.uploads.insert(digest);
        let (objects, tenant) = (self.clone(), tenant.clone());
        Ok(Admission::Wanted(Upload { objects, tenant, digest, piece, written: 0, file: None }))
    }

    /// Takes room for something before it is there.
    pub fn reserve(self: &Arc<Self>, tenant: &Arc<str>, bytes: u64) -> Result<Reservation, Problem> {
        let mut accounts = self.accounts();
        let account = accounts.get_mut(tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let limit = self.limits.tenant_bytes;
        if bytes > limit.saturating_sub(account.bytes) {
            let words = format!("{bytes} more bytes are over this tenant's share of {limit}; delete objects or jobs");
            return Err(Problem::new(ErrorKind::Quota, words));
        }
        account.bytes += bytes;
        Ok(Reservation { objects: self.clone(), tenant: tenant.clone(), bytes })
    }

    /// Takes room for what is there already.
    pub fn occupy(self: &Arc<Self>, tenant: &Arc<str>, bytes: u64) -> Reservation {
        if let Some(account) = self.accounts().get_mut(tenant) {
            account.bytes += bytes;
        }
        Reservation { objects: self.clone(), tenant: tenant.clone(), bytes }
    }

    /// Stores a result in the room that was taken for it; gives its name and length. More than that is stored where the
    /// tenant's share has it.
    pub fn put(
        &self,
        mut room: Reservation,
        fill: impl Fn(&mut dyn Write) -> Result<(), Problem>,
    ) -> Result<(Digest, u64), Problem> {
        let tenant = room.tenant.clone();
        let tenant = &*tenant;
        let folder = self.data.join(tenant).join("objects");
        let scratch = Scratch::within(&folder, UNFINISHED, Access::Owner)?;
        let mut out = Naming::new(io::BufWriter::with_capacity(1 << 20, scratch.file()));
        fill(&mut out)?;
        let (digest, length) = out.finish()?;
        // Before the accounts are held: it takes long.
        scratch.file().sync_all()?;
        let mut accounts = self.accounts();
        let account = accounts.get_mut(tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let path = self.path(tenant, digest);
        let added = if self.length(tenant, digest).is_ok() { 0 } else { length };
        let (after, limit) = (account.bytes.saturating_sub(room.bytes).saturating_add(added), self.limits.tenant_bytes);
        if added > room.bytes && after > limit {
            let words =
                format!("a result of {length} bytes is over this tenant's share of {limit}; delete objects or jobs");
            return Err(Problem::new(ErrorKind::Quota, words));
        }
        scratch.put(&path)?;
        (account.bytes, room.bytes) = (after, 0);
        drop(accounts);
        atomic::sync_folder(&folder)?;
        Ok((digest, length))
    }

    /// Keeps an object that is a message of a room; gives its length.
    pub fn keep(&self, tenant: &str, digest: Digest) -> Result<u64, Problem> {
        let mut accounts = self.accounts();
        let length = self.open_object(tenant, digest)?.metadata()?.len();
        let account = accounts.get_mut(tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        *account.messages.entry(digest).or_default() += 1;
        Ok(length)
    }

    /// Keeps an object for one message less.
    pub fn release(&self, tenant: &str, digest: Digest) {
        if let Some(account) = self.accounts().get_mut(tenant)
            && let Some(count) = account.messages.get_mut(&digest)
        {
            *count -= 1;
            account.messages.retain(|_, count| *count > 0);
        }
    }

    /// Whether an object is a message of a room.
    pub fn is_message(&self, tenant: &str, digest: Digest) -> bool {
        self.accounts().get(tenant).is_some_and(|account| account.messages.contains_key(&digest))
    }

    /// A tenant's objects and what has arrived of others, the longest unused first.
    pub fn list(&self, tenant: &str) -> Result<Vec<ObjectView>, Problem> {
        let mut all = Vec::new();
        for folder in ["objects", "parts"] {
            for entry in fs::read_dir(self.data.join(tenant).join(folder))?.flatten() {
                let Some(digest) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                // What is removed meanwhile is not there.
                let Ok(mut file) = File::open(entry.path()) else { continue };
                let meta = file.metadata()?;
                let kind = match folder {
                    "objects" => kind(&head(&mut file)?),
                    _ => "an unfinished upload".into(),
                };
                let used = meta.modified()?.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
                all.push(ObjectView { digest, kind, bytes: meta.len(), used });
            }
        }
        all.sort_by_key(|object| (object.used, object.digest));
        Ok(all)
    }

    /// Removes an object and what arrived of it.
    pub fn delete(&self, tenant: &str, digest: Digest) -> Result<(), Problem> {
        let mut accounts = self.accounts();
        let account = accounts.get_mut(tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        if account.messages.contains_key(&digest) {
            return Err(Problem::new(
                ErrorKind::State,
                "this object is a message of a room, and stays with it; delete the room",
            ));
        }
        if account.uploads.contains(&digest) {
            return Err(Problem::new(ErrorKind::State, "this object is being sent; end that first"));
        }
        let mut found = false;
        for path in [self.path(tenant, digest), self.part(tenant, digest)] {
            if let Ok(meta) = fs::metadata(&path) {
                fs::remove_file(&path)?;
                account.bytes = account.bytes.saturating_sub(meta.len());
                found = true;
            }
        }
        if found { Ok(()) } else { Err(Problem::not_found("object")) }
    }

    /// Removes objects and parts that nobody used for as long as they are kept.
    pub fn expire(&self, in_use: impl Fn(&str, Digest) -> bool) {
        let tenants: Vec<Arc<str>> = self.accounts().keys().cloned().collect();
        let old = |meta: &fs::Metadata| {
            meta.modified().ok().and_then(|t| t.elapsed().ok()).is_some_and(|age| age > self.limits.keep)
        };
        for tenant in tenants {
            for folder in ["objects", "parts"] {
                let Ok(entries) = fs::read_dir(self.data.join(&*tenant).join(folder)) else { continue };
                for entry in entries.flatten().filter(|e| e.metadata().is_ok_and(|m| old(&m))) {
                    let name = entry.file_name().to_str().and_then(|name| name.parse().ok());
                    if let Some(digest) = name.filter(|digest| !in_use(&tenant, *digest)) {
                        let _ = self.delete(&tenant, digest);
                    }
                }
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0
            && let Some(account) = self.objects.accounts().get_mut(&self.tenant)
        {
            account.bytes = account.bytes.saturating_sub(self.bytes);
        }
    }
}

impl Upload {
    /// Bytes of the piece that have not arrived.
    pub fn missing(&self) -> u64 {
        self.piece.length - self.written
    }

    /// Bytes that this request brought.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of the object that are here.
    pub fn offset(&self) -> u64 {
        self.piece.start + self.written
    }

    /// Writes bytes that arrived. The first have to be enough to tell what the object is: a secret is refused before
    /// any of it is stored.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        if bytes.len() as u64 > self.missing() {
            return Err(Problem::request("the body is longer than Content-Length or Content-Range says"));
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                if self.piece.start == 0 {
                    refuse_secrets(bytes)?;
                    if bytes.len() < HEAD && self.piece.total > bytes.len() as u64 {
                        return Err(Problem::request(format!(
                            "the first piece of an object has at least {HEAD} bytes; send a larger one"
                        )));
                    }
                }
                let path = self.objects.part(&self.tenant, self.digest);
                none.insert(Part::open(path, self.piece.start)?)
            }
        };
        file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Takes the object in if all of it is here, and says what it is. Bytes of another digest, and objects that are none
    /// of this protocol, are removed.
    pub fn finish(mut self) -> Result<Option<String>, Problem> {
        if self.offset() < self.piece.total {
            return Ok(None);
        }
        let (objects, tenant) = (&self.objects, &self.tenant);
        let (part, path) = (objects.part(tenant, self.digest), objects.path(tenant, self.digest));
        if self.piece.total == 0 {
            return Err(Problem::request("an object has at least one byte"));
        }
        let file = self.file.take().ok_or_else(|| Problem::request("no byte of this piece was sent; send it again"))?;
        let checked = (|| {
            let (found, _) = Digest::of_stream(File::open(&part)?)?;
            if found != self.digest {
                let words = "these bytes have another SHA-256 than the name says; they were damaged on the way: send them again";
                return Err(Problem::new(ErrorKind::Digest, words));
            }
            inspect(&mut File::open(&part)?)
        })();
        let kind = match checked {
            Ok(kind) => kind,
            Err(problem) => {
                self.discard();
                return Err(problem);
            }
        };
        file.place(&path, Over::NoKey, Durability::Power)?;
        Ok(Some(kind))
    }

    /// Removes everything that arrived.
    fn discard(&mut self) {
        if fs::remove_file(self.objects.part(&self.tenant, self.digest)).is_ok()
            && let Some(account) = self.objects.accounts().get_mut(&self.tenant)
        {
            account.bytes = account.bytes.saturating_sub(self.offset());
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let missing = self.missing();
        if let Some(account) = self.objects.accounts().get_mut(&self.tenant) {
            account.bytes = account.bytes.saturating_sub(missing);
            account.uploads.remove(&self.digest);
        }
    }
}

/// Refuses what a server must never have, by the first bytes.
fn refuse_secrets(head: &[u8]) -> Result<(), Problem> {
    if head.len() < HEAD || head[..8] != MAGIC {
        return Ok(());
    }
    let found = ObjectType::from_code(u16::from_le_bytes([head[10], head[11]]));
    match found {
        Some(kind) if kind.is_secret() || kind == ObjectType::GenomePending => {
            let words = format!(
                "this is {kind}: it stays with the client. Nothing of it was stored; if it went over a line without TLS, make a new key"
            );
            Err(Problem::new(ErrorKind::Secret, words))
        }
        _ => Ok(()),
    }
}

/// The first bytes of an object, from where its file stands.
fn head(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// What an object is, by its first bytes. A plan, a segment of a table, and the elements of a plain input are no containers.
fn kind(head: &[u8]) -> String {
    if head.len() == HEAD && head[..8] == MAGIC {
        let found = ObjectType::from_code(u16::from_le_bytes([head[10], head[11]]));
        return found.map_or_else(|| "an object of another release".into(), |found| found.to_string());
    }
    let plain = match head {
        _ if head.len() == HEAD && PARCEL.starts_with(head) => "a segment",
        [b'{', ..] => "a plan",
        _ => "a plain value",
    };
    plain.into()
}

/// What an object is; refuses those that no job takes.
fn inspect(file: &mut File) -> Result<String, Problem> {
    let total = file.metadata()?.len();
    let (mut start, mut found) = (0, String::new());
    for at in 0..MAX_CONTAINERS {
        file.seek(SeekFrom::Start(start))?;
        let head = head(file)?;
        if head.len() < HEAD || head[..8] != MAGIC {
            return match at {
                0 => Ok(kind(&head)),
                _ => Err(Problem::new(ErrorKind::Format, "there are bytes after the object; send the object alone")),
            };
        }
        refuse_secrets(&head)?;
        file.seek(SeekFrom::Start(start))?;
        let header = peek(&mut *file)?;
        match header.object() {
            ObjectType::EvalKeys
            | ObjectType::BootstrapKeys
            | ObjectType::Bundle
            | ObjectType::IntegerBundle
            | ObjectType::TfheServerKey
            | ObjectType::CircuitKey
            | ObjectType::GenomeKeys
            | ObjectType::GenomeQuery
            | ObjectType::GenomeAnswer
            | ObjectType::PartySession
            | ObjectType::PublicKeyShare
            | ObjectType::GaloisShare
            | ObjectType::RelinFirstShare
            | ObjectType::RelinSecondShare => {}
            other => {
                let words =
                    format!("this is {other}, which no job takes; send plans, keys, encrypted values and questions");
                return Err(Problem::new(ErrorKind::WrongType, words));
            }
        }
        if at == 0 {
            found = kind(&head);
        }
        start = start.saturating_add(header.total_bytes());
        if start == total {
            return Ok(found);
        }
        if start > total {
            return Err(Problem::new(ErrorKind::Format, "the object ends too early; send it again"));
        }
    }
    Err(Problem::new(ErrorKind::Format, "the object has too many parts; send it as it was written"))
}
