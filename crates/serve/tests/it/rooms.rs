//! Rooms, where parties that hold a key together meet: messages stay as they were sent, and a session of three goes through.

use crate::common::*;
use crate::service::{compute, refused, send};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_plan::{Goal, Plan, Sharing};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::release::ReleasePolicy;
use sudare_rlwe::wire::{MAGIC, ObjectType};
use sudare_serve::{Digest, Limits, Remote, RemoteError, RemoteRoom, Request, Settings};
use sudare_session::Encrypted;
use sudare_session::parties::{Folder, Member, Messages, Room};

const NAMES: [&str; 3] = ["north", "south", "west"];

fn kind<T: std::fmt::Debug>(answer: Result<T, RemoteError>) -> ErrorKind {
    match answer {
        Err(RemoteError::Refused(problem)) => problem.kind(),
        other => panic!("{other:?}"),
    }
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

/// (A + B)² in each element, which takes a relinearisation key.
fn squares() -> Plan {
    let inputs = ["A", "B"].map(|name| InputSpec::new(name, (2, 3), 1.0)).into();
    let nodes =
        vec![Node::input(0), Node::input(1), Node::new(Operation::Add, &[0, 1]), Node::new(Operation::Mul, &[2, 2])];
    plan(&Goal {
        release: Some(ReleasePolicy::new(4, 20).unwrap()),
        sharing: Some(Sharing { parties: 3, threshold: 2 }),
        ..Goal::new(Expr::new(inputs, nodes, 3).unwrap(), 1e-2)
    })
}

#[test]
fn messages_stay_as_they_were_sent() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let settings = Settings::new(folder.path());
    let server = Running::start(&settings, &tenants);
    let (remote, other) = (server.remote(&tenants.one), server.remote(&tenants.two));
    assert!(remote.rooms().unwrap().is_empty() && remote.messages("study", "").unwrap().is_empty());
    let [first, second] = [b"first message".as_slice(), b"second"].map(|bytes| send(&remote, bytes));
    remote.post("study", "key-north", first).unwrap();
    remote.post("study", "key-north", first).unwrap();
    remote.post("study", "key-south", second).unwrap();
    remote.post("study", "plan.json", first).unwrap();
    assert_eq!(kind(remote.post("study", "key-north", second)), ErrorKind::State);
    assert_eq!(kind(remote.post("study", "key-west", Digest::of(b"never sent"))), ErrorKind::NotFound);
    let there = |remote: &Remote, begin: &str| -> Vec<(String, Digest, u64)> {
        let all = remote.messages("study", begin).unwrap();
        all.into_iter().map(|(name, message)| (name, message.object, message.bytes)).collect()
    };
    let keys = vec![("key-north".to_owned(), first, 13), ("key-south".to_owned(), second, 6)];
    assert_eq!(there(&remote, "key-"), keys);
    assert_eq!(there(&remote, "").len(), 3);
    // Rooms are their tenant's, and so are their messages' objects.
    assert!(other.rooms().unwrap().is_empty() && there(&other, "").is_empty());
    assert_eq!(kind(other.post("study", "key-north", first)), ErrorKind::NotFound);
    assert_eq!(kind(other.delete_room("study")), ErrorKind::NotFound);
    assert_eq!(kind(remote.delete_object(first)), ErrorKind::State);
    for path in ["/v1/rooms/study/.x", "/v1/rooms/a%2Fb/x", "/v1/rooms/%2E%2E/x", "/v1/rooms/study/%FF"] {
        let body = format!("{{\"object\":\"{first}\"}}");
        let answer = server.ask_for(&tenants.one, "PUT", path, body.as_bytes());
        assert_eq!(answer.problem().kind(), ErrorKind::Request, "{path}");
    }
    for body in ["", "{}", "{\"object\":\"x\"}", &format!("{{\"object\":\"{first}\",\"more\":1}}")] {
        let answer = server.ask_for(&tenants.one, "PUT", "/v1/rooms/study/x", body.as_bytes());
        assert_eq!(answer.problem().kind(), ErrorKind::Request, "{body}");
    }
    assert!(matches!(remote.messages("../x", ""), Err(RemoteError::Address(_))));
    let audit = |name: &str| server.lines.lock().unwrap().iter().filter(|line| line.contains(name)).count();
    assert_eq!(audit("key-north"), 1, "of one message one line");
    server.stop();
    // What the next server finds; what was being written, and what names nothing, is no message.
    let room = folder.path().join("one/rooms/study");
    for (name, text) in [(".new-1", "x"), ("key-none", "x"), ("key-gone", &*Digest::of(b"gone").to_string())] {
        std::fs::write(room.join(name), text).unwrap();
    }
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    assert_eq!(there(&remote, "key-"), keys);
    assert_eq!(kind(remote.delete_object(first)), ErrorKind::State);
    remote.delete_room("study").unwrap();
    assert!(remote.rooms().unwrap().is_empty());
    let mut bytes = Vec::new();
    assert_eq!(kind(remote.fetch(first, &mut bytes)), ErrorKind::NotFound);
    assert!(!room.exists());
    server.stop();
}

/// Whoever sends what another sends at the same time has it there afterwards, also where a server ended before it took the bytes in.
#[test]
fn the_same_message_of_several_clients_is_taken_in() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let settings = Settings::new(folder.path());
    let messages: Vec<Vec<u8>> = (1..9).map(|i| vec![i; 1 << 20]).collect();
    Running::start(&settings, &tenants).stop();
    for bytes in &messages {
        std::fs::write(folder.path().join("one/parts").join(Digest::of(bytes).to_string()), bytes).unwrap();
    }
    let server = Running::start(&settings, &tenants);
    let room = RemoteRoom::new(server.remote(&tenants.one), "study");
    for (i, bytes) in messages.iter().enumerate() {
        let name = format!("ask-{i}");
        std::thread::scope(|scope| {
            let posts: Vec<_> = (0..4).map(|_| scope.spawn(|| room.post(&name, bytes))).collect();
            posts.into_iter().for_each(|post| assert!(post.join().unwrap().unwrap(), "{name}"));
        });
        assert!(room.get(&name, 1 << 20).unwrap() == *bytes, "{name}");
    }
    // Nothing is left of what was begun anew.
    assert!(std::fs::read_dir(folder.path().join("one/parts")).unwrap().next().is_none());
    server.stop();
}

/// What a message takes is its tenant's, and what is removed is free again.
#[test]
fn messages_count_in_their_tenants_share() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let limits = Limits { tenant_bytes: 10_000, ..Limits::default() };
    let settings = Settings { limits, ..Settings::new(folder.path()) };
    let server = Running::start(&settings, &tenants);
    let remote = server.remote(&tenants.one);
    let object = send(&remote, b"message");
    for _ in 0..2 {
        remote.post("study", "a", object).unwrap();
        remote.post("study", "b", object).unwrap();
        assert_eq!(kind(remote.post("study", "c", object)), ErrorKind::Quota);
        remote.delete_room("study").unwrap();
        send(&remote, b"message");
    }
}

/// Secrets of parties are refused by their first bytes, as all secret keys are.
#[test]
fn no_party_sends_its_secrets() {
    let (folder, tenants) = (tempfile::tempdir().unwrap(), Tenants::new());
    let server = Running::start(&Settings::new(folder.path()), &tenants);
    for object in [ObjectType::PartyKey, ObjectType::PrivateShare] {
        let bytes = [&MAGIC[..], &1u16.to_le_bytes(), &object.code().to_le_bytes(), &[0; 100]].concat();
        let path = format!("/v1/objects/{}", Digest::of(&bytes));
        assert_eq!(server.ask_for(&tenants.one, "PUT", &path, &bytes).problem().kind(), ErrorKind::Secret);
        assert_eq!(server.ask_for(&tenants.one, "GET", &path, b"").status, 404);
    }
}

struct World {
    folder: tempfile::TempDir,
    tenants: Tenants,
}

impl World {
    fn start(&self) -> Running {
        Running::start(&Settings::new(self.folder.path().join("data")), &self.tenants)
    }

    fn home(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn room(&self, server: &Running) -> Arc<RemoteRoom> {
        RemoteRoom::new(server.remote(&self.tenants.one), "study")
    }
}

fn close(found: &Matrix, expected: &Matrix, error: f64) {
    for (x, y) in found.data().iter().zip(expected.data()) {
        assert!((x - y).abs() <= error, "{x} and {y}: {error:e}");
    }
}

/// Three parties meet at a server, which ends and comes back between any two rounds; it combines their keys and computes, and two of them open.
#[test]
fn a_session_goes_through_a_server() {
    let world = World { folder: tempfile::tempdir().unwrap(), tenants: Tenants::new() };
    let plan = squares();
    let server = world.start();
    let created = Room::create(world.room(&server), &plan, &names(&NAMES)).unwrap();
    // A room is for one key.
    let again = Room::create(world.room(&server), &plan, &names(&NAMES)).unwrap_err();
    assert!(again.to_string().contains("already") && again.to_string().contains("study"), "{again}");
    let request = Request::Combine { room: "study".into() };
    assert_eq!(refused(&server.remote(&world.tenants.one), &request), ErrorKind::Shape, "nobody has sent a share");
    assert_eq!(
        refused(&server.remote(&world.tenants.one), &Request::Combine { room: "none".into() }),
        ErrorKind::NotFound
    );
    for name in NAMES {
        drop(Member::join(world.room(&server), name, &world.home(name), 1).unwrap());
    }
    let taken = Member::join(world.room(&server), "north", &world.home("elsewhere"), 1).unwrap_err();
    assert!(taken.to_string().contains("key-north"), "{taken}");
    server.stop();
    for _ in 0..3 {
        let server = world.start();
        for name in NAMES {
            Member::open(world.room(&server), &world.home(name), 1).unwrap().round().unwrap();
        }
        server.stop();
    }
    let server = world.start();
    let remote = server.remote(&world.tenants.one);
    let room = Room::open(world.room(&server)).unwrap();
    assert_eq!((room.missing().unwrap().len(), room.session().id()), (0, created.session().id()));
    // The server adds what it has.
    let job = remote.submit(&request, None).unwrap();
    let (keys, length) = remote.wait(&job.id, &|_, _| ()).unwrap();
    let mut own = Vec::new();
    room.server_keys().unwrap().write_to(&mut own).unwrap();
    assert_eq!((keys, length), (Digest::of(&own), own.len() as u64));
    let mut parties: Vec<Member> =
        NAMES.iter().map(|name| Member::join(world.room(&server), name, &world.home(name), 1).unwrap()).collect();
    let (a, b) = (values(2, 3, 1), values(2, 3, 2));
    let client = parties[0].client().unwrap();
    let put = |name: &str, x: &Matrix| room.put(name, &client.encrypt(name, x).unwrap()).unwrap();
    put("A", &a);
    put("B", &b);
    let there = remote.messages("study", "value-").unwrap();
    let program = remote.messages("study", "plan").unwrap()["plan.json"].object;
    let operands: Vec<Digest> = there.values().map(|message| message.object).collect();
    let job = remote.submit(&compute(program, Some(keys), None, &operands), None).unwrap();
    let (result, _) = remote.wait(&job.id, &|_, _| ()).unwrap();
    remote.post("study", "value-result", result).unwrap();
    let result: Encrypted = room.value("result").unwrap().unwrap();
    let asked = sudare_session::parties::Request { parties: names(&["north", "west"]), receivers: names(&["south"]) };
    parties[0].share(&result, &asked).unwrap();
    assert_eq!(room.unanswered(&result).unwrap(), ["west"]);
    let other = sudare_session::parties::Request { parties: names(&["south", "west"]), ..asked.clone() };
    assert_eq!(parties[1].share(&result, &other).unwrap_err().kind(), ErrorKind::NotPlanned);
    parties[2].share(&result, &asked).unwrap();
    let expected = Matrix::from_fn(2, 3, |i, j| (a.get(i, j) + b.get(i, j)).powi(2)).unwrap();
    close(&parties[1].combine(&result).unwrap().reals().unwrap()[0], &expected, plan.summary().predicted_error);
    // A copy of the room is a folder with which a session goes on as well.
    let copy = world.folder.path().join("copy");
    copied(&*world.room(&server), &copy);
    assert_eq!(Room::open(Folder::at(&copy)).unwrap().unanswered(&result).unwrap(), names(&[]));
    server.stop();
    // Without a server a party gets an error that says so.
    let gone = parties[0].round().unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Io, "{gone}");
}

fn copied(messages: &dyn Messages, to: &Path) {
    let folder = Folder::at(to);
    for name in messages.names("").unwrap() {
        assert!(folder.post(&name, &messages.get(&name, 1 << 30).unwrap()).unwrap());
    }
    let public = messages.get("public-north", 1 << 30).unwrap();
    assert!(messages.post("public-north", &public).unwrap());
    assert!(!messages.post("public-north", b"another").unwrap());
    assert!(messages.get("public-north", 100).unwrap_err().to_string().contains("longer than any message"));
    assert!(messages.get("public-nobody", 100).is_err());
}
