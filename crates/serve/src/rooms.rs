//! Rooms of tenants: objects under names that stay, which several parties that hold a key together send each other.
//!
//! ```text
//! TENANT/rooms/ROOM/MESSAGE   the digest of the message's object
//! ```
//!
//! A message is there whole or not at all and never changes, and its object stays as long as the room, which is the tenant's until the
//! tenant removes it. What messages say is their parties' affair: the server reads them where it is asked to combine keys.

use crate::digest::Digest;
use crate::objects::Objects;
use crate::problem::Problem;
use crate::request::Message;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_methods::MatrixError;
use sudare_ring::ErrorKind;
use sudare_session::parties::{Messages, too_long};
use sudare_store::atomic::{self, Access};

/// Most characters of a room's name, and of a message's: two names of parties, a result's, and a step's.
const MAX_NAME: usize = 64;
const MAX_MESSAGE_NAME: usize = 128;
/// Most messages of a room.
const MAX_MESSAGES: usize = 1 << 17;
/// What a message takes of its tenant's share besides its object.
const MESSAGE_BYTES: u64 = 4 << 10;

type Room = BTreeMap<String, Message>;

/// The rooms of all tenants.
pub(crate) struct Rooms {
    objects: Arc<Objects>,
    all: Mutex<HashMap<Arc<str>, BTreeMap<String, Room>>>,
}

/// Whether a text is a name: it stands in paths, and hidden files have none.
fn is_name(name: &str, most: usize) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (1..=most).contains(&name.len()) && name.bytes().all(good) && !name.starts_with('.')
}

fn check_name(name: &str, whose: &str, most: usize) -> Result<(), Problem> {
    if is_name(name, most) {
        return Ok(());
    }
    let words = format!(
        "the name of a {whose} has 1 to {most} letters, digits, hyphens, underscores and dots, and does not begin \
         with a dot"
    );
    Err(Problem::request(words))
}

fn absent() -> Problem {
    Problem::not_found("room")
}

impl Rooms {
    pub fn new(objects: Arc<Objects>) -> Self {
        Self { objects, all: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Arc<str>, BTreeMap<String, Room>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self, tenant: &str, room: &str) -> PathBuf {
        self.objects.rooms_folder(tenant).join(room)
    }

    /// Takes in the rooms of tenants that are on the disk. A message whose object is gone is none: its sender sends it again.
    pub fn enter(&self, tenants: &[Arc<str>]) -> io::Result<()> {
        for tenant in tenants {
            let mut rooms = BTreeMap::new();
            let folder = self.objects.rooms_folder(tenant);
            fs::create_dir_all(&folder)?;
            for entry in fs::read_dir(&folder)? {
                let (entry, mut room) = (entry?, Room::new());
                if !entry.file_type()?.is_dir() {
                    continue;
                }
                for file in fs::read_dir(entry.path())? {
                    let file = file?;
                    let Some(name) =
                        file.file_name().to_str().filter(|n| is_name(n, MAX_MESSAGE_NAME)).map(str::to_owned)
                    else {
                        // What a server that ended was writing.
                        let _ = fs::remove_file(file.path());
                        continue;
                    };
                    let kept = || {
                        let object = fs::read_to_string(file.path()).ok()?.parse().ok()?;
                        Some(Message { object, bytes: self.objects.keep(tenant, object).ok()? })
                    };
                    match kept() {
                        Some(message) => drop(room.insert(name, message)),
                        None => fs::remove_file(file.path())?,
                    }
                }
                self.objects.settle(tenant, 0, MESSAGE_BYTES * room.len() as u64);
                rooms.insert(entry.file_name().to_string_lossy().into_owned(), room);
            }
            self.all().insert(tenant.clone(), rooms);
        }
        Ok(())
    }

    /// Names of a tenant's rooms, in order.
    pub fn list(&self, tenant: &str) -> Vec<String> {
        self.all().get(tenant).map_or_else(Vec::new, |rooms| rooms.keys().cloned().collect())
    }

    /// Messages of a room whose names begin so. A room that has none yet is empty.
    pub fn messages(&self, tenant: &str, room: &str, beginning: &str) -> Result<Room, Problem> {
        check_name(room, "room", MAX_NAME)?;
        let all = self.all();
        let Some(found) = all.get(tenant).and_then(|rooms| rooms.get(room)) else { return Ok(Room::new()) };
        let begin_so = found.range(beginning.to_owned()..).take_while(|(name, _)| name.starts_with(beginning));
        Ok(begin_so.map(|(name, message)| (name.clone(), *message)).collect())
    }

    /// A message of a room.
    pub fn message(&self, tenant: &str, room: &str, name: &str) -> Result<Message, Problem> {
        let all = self.all();
        let found = all.get(tenant).and_then(|rooms| rooms.get(room)).and_then(|room| room.get(name));
        found.copied().ok_or_else(|| Problem::not_found("message"))
    }

    /// Makes an object a message, where there is none of the name, and says whether it is new. The same one again changes nothing.
    pub fn post(&self, tenant: &Arc<str>, room: &str, name: &str, object: Digest) -> Result<bool, Problem> {
        check_name(room, "room", MAX_NAME)?;
        check_name(name, "message", MAX_MESSAGE_NAME)?;
        let mut all = self.all();
        let rooms = all.get_mut(tenant).ok_or_else(|| Problem::not_found("tenant"))?;
        let found = rooms.get(room);
        match found.and_then(|room| room.get(name)) {
            Some(message) if message.object == object => return Ok(false),
            Some(_) => {
                return Err(Problem::new(
                    ErrorKind::State,
                    "there is another message of this name, and messages stay; take another name",
                ));
            }
            None if found.map_or(0, Room::len) >= MAX_MESSAGES => {
                return Err(Problem::new(
                    ErrorKind::Quota,
                    format!("a room has at most {MAX_MESSAGES} messages; take another room"),
                ));
            }
            None => {}
        }
        let taken = self.objects.reserve(tenant, MESSAGE_BYTES)?;
        let bytes = self.objects.keep(tenant, object)?;
        let path = self.folder(tenant, room).join(name);
        let text = object.to_string();
        // On the disk before the answer.
        let written =
            atomic::make_folder(&path).and_then(|()| atomic::write_new(&path, &[text.as_bytes()], Access::Owner));
        if let Err(error) = written {
            self.objects.release(tenant, object);
            return Err(error.into());
        }
        drop(taken);
        self.objects.settle(tenant, 0, MESSAGE_BYTES);
        rooms.entry(room.to_owned()).or_default().insert(name.to_owned(), Message { object, bytes });
        Ok(true)
    }

    /// Removes a room and its messages; gives the objects that no room names any more.
    pub fn delete(&self, tenant: &str, room: &str) -> Result<BTreeSet<Digest>, Problem> {
        let mut all = self.all();
        let removed = all.get_mut(tenant).and_then(|rooms| rooms.remove(room)).ok_or_else(absent)?;
        self.objects.settle(tenant, MESSAGE_BYTES * removed.len() as u64, 0);
        removed.values().for_each(|message| self.objects.release(tenant, message.object));
        let removed: BTreeSet<Digest> = removed.values().map(|message| message.object).collect();
        fs::remove_dir_all(self.folder(tenant, room))?;
        Ok(removed.into_iter().filter(|object| !self.objects.is_message(tenant, *object)).collect())
    }

    /// Refuses a room that is none.
    pub fn check(&self, tenant: &str, room: &str) -> Result<(), Problem> {
        check_name(room, "room", MAX_NAME)?;
        self.all().get(tenant).and_then(|rooms| rooms.get(room)).map(drop).ok_or_else(absent)
    }

    /// A room as its parties see it, for what the server computes with it.
    pub fn open(self: &Arc<Self>, tenant: &Arc<str>, room: &str) -> Arc<Opened> {
        Arc::new(Opened { rooms: self.clone(), tenant: tenant.clone(), room: room.to_owned() })
    }
}

/// The messages of a room, on the server.
pub(crate) struct Opened {
    rooms: Arc<Rooms>,
    tenant: Arc<str>,
    room: String,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opened({})", self.room)
    }
}

/// The error that a party would get.
fn as_error(problem: Problem) -> MatrixError {
    MatrixError::Messages { kind: problem.kind(), words: problem.to_string() }
}

impl Messages for Opened {
    fn names(&self, beginning: &str) -> Result<BTreeSet<String>, MatrixError> {
        let found = self.rooms.messages(&self.tenant, &self.room, beginning).map_err(as_error)?;
        Ok(found.into_keys().collect())
    }

    fn get(&self, name: &str, limit: u64) -> Result<Vec<u8>, MatrixError> {
        let message = self.rooms.message(&self.tenant, &self.room, name).map_err(as_error)?;
        if message.bytes > limit {
            return Err(too_long(&self.place(name)));
        }
        self.rooms.objects.read(&self.tenant, message.object).map_err(as_error)
    }

    fn post(&self, name: &str, bytes: &[u8]) -> Result<bool, MatrixError> {
        let put = || {
            let room = self.rooms.objects.reserve(&self.tenant, bytes.len() as u64)?;
            let (object, _) = self.rooms.objects.put(room, |out| Ok(out.write_all(bytes)?))?;
            self.rooms.post(&self.tenant, &self.room, name, object)
        };
        match put() {
            Err(problem) if problem.kind() == ErrorKind::State => Ok(false),
            posted => posted.map(|_| true).map_err(as_error),
        }
    }

    fn place(&self, name: &str) -> PathBuf {
        PathBuf::from(&self.room).join(name)
    }
}
