//! Sessions of several parties in a shared folder.

use std::fs;
use std::path::{Path, PathBuf};
use sudare_expr::{Expr, InputSpec, Matrix, Node, Operation};
use sudare_methods::MatrixError;
use sudare_plan::{CostModel, Goal, Plan, Planner, Sharing};
use sudare_ring::{ErrorKind, Kinded};
use sudare_rlwe::release::ReleasePolicy;
use sudare_session::parties::{Folder, Member, Request, Room, Step};
use sudare_session::{Client, Encrypted, QUIET, Server};

const NAMES: [&str; 3] = ["north", "south", "west"];

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

fn request(parties: &[&str], receivers: &[&str]) -> Request {
    Request { parties: names(parties), receivers: names(receivers) }
}

fn goal(expression: Expr, error: f64, threshold: u32) -> Goal {
    Goal {
        release: Some(ReleasePolicy::new(4, 20).unwrap()),
        sharing: Some(Sharing { parties: 3, threshold }),
        ..Goal::new(expression, error)
    }
}

/// A + B + C.
fn sums(threshold: u32) -> Plan {
    let inputs = ["A", "B", "C"].map(|name| InputSpec::new(name, (3, 4), 1.0)).into();
    let mut nodes: Vec<Node> = (0..3).map(Node::input).collect();
    nodes.extend([Node::new(Operation::Add, &[0, 1]), Node::new(Operation::Add, &[3, 2])]);
    let expr = Expr::new(inputs, nodes, 4).unwrap();
    Planner::new(CostModel::default()).plan(&goal(expr, 1e-4, threshold)).unwrap()
}

/// A + B + C under a key that has one owner.
fn alone() -> Plan {
    let goal = Goal { sharing: None, release: None, ..goal(sums(2).expression().clone(), 1e-4, 2) };
    Planner::new(CostModel::default()).plan(&goal).unwrap()
}

/// (A · B) · 0.5.
fn product() -> Plan {
    let inputs = ["A", "B"].map(|name| InputSpec::new(name, (3, 3), 1.0)).into();
    let mut nodes: Vec<Node> = (0..2).map(Node::input).collect();
    nodes.push(Node::new(Operation::Matmul, &[0, 1]));
    let expr = Expr::new(inputs, nodes, 2).unwrap();
    Planner::new(CostModel::default()).plan(&goal(expr, 1e-2, 2)).unwrap()
}

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new(plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Room::create(Folder::at(&folder.path().join("room")), plan, &names(&NAMES)).unwrap();
        Self { folder }
    }

    fn room(&self) -> PathBuf {
        self.folder.path().join("room")
    }

    fn home(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("home-{name}"))
    }

    fn join(&self, name: &str) -> Result<Member, MatrixError> {
        Member::join(Folder::at(&self.room()), name, &self.home(name), 1)
    }

    /// All parties, with their keys made. Each is dropped and comes back from its folder between any two rounds.
    fn keyed(&self) -> Vec<Member> {
        NAMES.iter().for_each(|name| drop(self.join(name).unwrap()));
        for _ in 0..3 {
            NAMES
                .iter()
                .for_each(|name| Member::open(Folder::at(&self.room()), &self.home(name), 1).unwrap().round().unwrap());
        }
        assert_eq!(Room::open(Folder::at(&self.room())).unwrap().missing().unwrap(), []);
        NAMES.iter().map(|name| self.join(name).unwrap()).collect()
    }

    fn server(&self) -> Server {
        let room = Room::open(Folder::at(&self.room())).unwrap();
        Server::new(room.plan(), room.server_keys().unwrap(), 1).unwrap()
    }
}

fn matrix(rows: usize, cols: usize, seed: usize) -> Matrix {
    Matrix::from_fn(rows, cols, |i, j| ((seed * 31 + i * 7 + j * 3) % 19) as f64 / 9.5 - 1.0).unwrap()
}

fn all_of(folder: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        out.extend(fs::read(entry.unwrap().path()).unwrap());
    }
    out
}

fn close(found: &Matrix, expected: &Matrix, error: f64) {
    for (x, y) in found.data().iter().zip(expected.data()) {
        assert!((x - y).abs() <= error, "{x} and {y}: {error:e}");
    }
}

#[test]
fn any_two_decrypt_a_sum_and_its_promise_holds() {
    let plan = sums(2);
    let promised = plan.summary().predicted_error;
    assert!(promised <= 1e-4 && promised > 10.0 * plan.expected().unwrap().error, "{promised:e}: {plan}");
    for two in [["north", "south"], ["north", "west"], ["south", "west"]] {
        let world = World::new(&plan);
        let mut parties = world.keyed();
        let inputs: Vec<Matrix> = (0..3).map(|i| matrix(3, 4, i)).collect();
        let encrypt = |(i, name): (usize, &str)| parties[i].client().unwrap().encrypt(name, &inputs[i]).unwrap();
        let values: Vec<Encrypted> = ["A", "B", "C"].into_iter().enumerate().map(encrypt).collect();
        let sum = world.server().run(&values).unwrap();
        let asked = request(&two, &["north"]);
        for party in parties.iter_mut().filter(|party| two.contains(&party.name())) {
            party.share(&sum, &asked).unwrap();
        }
        let room = Room::open(Folder::at(&world.room())).unwrap();
        assert_eq!(room.unanswered(&sum).unwrap(), Vec::<String>::new());
        let shown = parties[0].combine(&sum).unwrap().reals().unwrap();
        let expected = Matrix::from_fn(3, 4, |i, j| inputs.iter().map(|m| m.get(i, j)).sum()).unwrap();
        close(&shown[0], &expected, promised);
        // It is for north alone.
        assert!(parties[1].combine(&sum).is_err() && parties[2].combine(&sum).is_err());
    }
}

#[test]
fn products_are_computed_under_the_common_key() {
    let plan = product();
    let world = World::new(&plan);
    let mut parties = world.keyed();
    let (a, b) = (matrix(3, 3, 1), matrix(3, 3, 2));
    let client = parties[1].client().unwrap();
    let value = world.server().matmul(&client.encrypt("A", &a).unwrap(), &client.encrypt("B", &b).unwrap()).unwrap();
    // Somebody outside receives, and a party with it.
    let outside = world.join("ministry").unwrap();
    let asked = request(&["west", "south"], &["ministry", "south"]);
    parties[2].share(&value, &asked).unwrap();
    assert_eq!(outside.room().unanswered(&value).unwrap(), ["south"]);
    let missing = outside.combine(&value).unwrap_err().to_string();
    assert!(missing.contains("messages of south have not come"), "{missing}");
    // Whoever agrees names the same, in any order, or what was asked.
    parties[1].share(&value, &request(&["south", "west"], &["south", "ministry"])).unwrap();
    assert_eq!(outside.room().asked(&value).unwrap(), asked);
    let expected = a.matmul(&b).unwrap();
    for shown in [outside.combine(&value).unwrap(), parties[1].combine(&value).unwrap()] {
        let shown = shown.reals().unwrap();
        close(&shown[0], &expected, plan.summary().predicted_error);
    }
    let mut outside = outside;
    assert!(outside.round().is_err() && outside.share(&value, &asked).is_err());
}

#[test]
fn all_of_n_need_no_secret_shares() {
    let world = World::new(&sums(3));
    let mut parties = world.keyed();
    assert!(
        fs::read_dir(world.room()).unwrap().all(|f| !f.unwrap().file_name().to_string_lossy().starts_with("secret"))
    );
    let client = parties[0].client().unwrap();
    let values = ["A", "B", "C"].map(|name| client.encrypt(name, &matrix(3, 4, 5)).unwrap());
    let sum = world.server().run(&values).unwrap();
    for party in &mut parties {
        party.share(&sum, &request(&NAMES, &["west"])).unwrap();
    }
    let expected = matrix(3, 4, 5).map(|x| Some(3.0 * x)).unwrap();
    close(&parties[2].combine(&sum).unwrap().reals().unwrap()[0], &expected, 1e-4);
}

#[test]
fn missing_parties_are_named_and_steps_wait_for_them() {
    let world = World::new(&sums(2));
    let room = Room::open(Folder::at(&world.room())).unwrap();
    let of = |step: Step| room.missing().unwrap().into_iter().find(|m| m.step == step).map(|m| m.names);
    assert_eq!(of(Step::Join), Some(names(&NAMES)));
    let mut north = world.join("north").unwrap();
    north.round().unwrap();
    assert_eq!(of(Step::Join), Some(names(&["south", "west"])));
    assert_eq!(of(Step::PublicKey), Some(names(&["south", "west"])));
    assert_eq!(of(Step::Secret), Some(names(&NAMES)));
    let error = room.public_key().unwrap_err();
    assert!(error.to_string().contains("messages of south, west have not come"), "{error}");
}

#[test]
fn a_ciphertext_is_answered_once_and_alike() {
    let world = World::new(&sums(2));
    let mut parties = world.keyed();
    let client = parties[0].client().unwrap();
    let values = ["A", "B", "C"].map(|name| client.encrypt(name, &matrix(3, 4, 5)).unwrap());
    let sum = world.server().run(&values).unwrap();
    parties[0].share(&sum, &request(&["north", "west"], &["north"])).unwrap();
    let other = parties[0].share(&sum, &request(&["north", "south"], &["north"])).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::NotPlanned, "{other}");
    // Whoever removes the request and asks otherwise meets the ledger, also in a process that starts anew.
    parties.clear();
    for entry in fs::read_dir(world.room()).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("ask-") {
            fs::remove_file(path).unwrap();
        }
    }
    let mut north = world.join("north").unwrap();
    assert_eq!(north.releases(), 1);
    let refused = north.share(&sum, &request(&["north", "south"], &["north"])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Release, "{refused}");
    assert!(refused.to_string().contains("north has answered"), "{refused}");
}

/// A request stands for good, so one that cannot be answered is not put.
#[test]
fn nothing_is_asked_for_a_receiver_who_has_not_joined() {
    let world = World::new(&sums(2));
    let mut parties = world.keyed();
    let client = parties[0].client().unwrap();
    let values = ["A", "B", "C"].map(|name| client.encrypt(name, &matrix(3, 4, 5)).unwrap());
    let sum = world.server().run(&values).unwrap();
    let refused = parties[0].share(&sum, &request(&["north", "west"], &["office"])).unwrap_err();
    assert!(refused.to_string().contains("office has not joined"), "{refused}");
    // Nor for a value that is not the result.
    assert!(parties[0].share(&values[0], &request(&["north", "west"], &["north"])).is_err());
    for value in [&sum, &values[0]] {
        assert_eq!(parties[0].room().request(value).unwrap(), None);
    }
    parties[0].share(&sum, &request(&["north", "west"], &["north"])).unwrap();
}

/// Nor by who may not decrypt, has not got its part, or has no release left: whoever may ask afterwards is heard.
#[test]
fn nothing_is_asked_by_who_could_not_answer() {
    let world = World::new(&sums(2));
    let mut parties = world.keyed();
    let (server, client) = (world.server(), parties[0].client().unwrap());
    let sum = |seed| {
        let values = ["A", "B", "C"].map(|name| client.encrypt(name, &matrix(3, 4, seed)).unwrap());
        server.run(&values).unwrap()
    };
    let (first, asked) = (sum(9), request(&["north", "west"], &["south"]));
    let refused = parties[1].share(&first, &asked).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Mismatch, "{refused}");
    assert!(refused.to_string().contains("south is not among the parties that decrypt"), "{refused}");
    assert_eq!(parties[1].room().requests().unwrap(), []);
    // A receiver's key that nothing can be encrypted to.
    fs::write(world.room().join("key-nobody"), [0; 32]).unwrap();
    assert!(parties[0].share(&first, &request(&["north", "west"], &["nobody"])).is_err());
    assert_eq!(parties[0].room().request(&first).unwrap(), None);
    // North has four releases, and asks in vain for a fifth; the others have theirs.
    for seed in 0..4 {
        parties[0].share(&sum(seed), &request(&["north", "west"], &["north"])).unwrap();
    }
    assert_eq!(parties[0].share(&first, &asked).unwrap_err().kind(), ErrorKind::Release);
    assert_eq!(parties[0].room().request(&first).unwrap(), None);
    assert_eq!(parties[0].releases(), 4);
    let others = request(&["south", "west"], &["west"]);
    parties[1].share(&first, &others).unwrap();
    let all = parties[2].room().requests().unwrap();
    let found = all.iter().find(|found| found.request == others).unwrap();
    assert_eq!((all.len(), &found.unanswered[..]), (5, &names(&["west"])[..]));
    parties[2].share(&first, &others).unwrap();
    let expected = matrix(3, 4, 9).map(|x| Some(3.0 * x)).unwrap();
    close(&parties[2].combine(&first).unwrap().reals().unwrap()[0], &expected, 1e-4);
}

#[test]
fn releases_end() {
    let world = World::new(&sums(2));
    let mut parties = world.keyed();
    let (server, client) = (world.server(), parties[0].client().unwrap());
    for i in 0..5 {
        let values = ["A", "B", "C"].map(|name| client.encrypt(name, &matrix(3, 4, i)).unwrap());
        let sum = server.run(&values).unwrap();
        let answer = parties[0].share(&sum, &request(&["north", "west"], &["north"]));
        assert_eq!(answer.is_ok(), i < 4, "{i}: {answer:?}");
    }
}

#[test]
fn names_and_folders_belong_together() {
    let world = World::new(&sums(2));
    let plan = sums(2);
    // One process has a party.
    let north = world.join("north").unwrap();
    assert_eq!(world.join("north").unwrap_err().kind(), ErrorKind::Io);
    drop(north);
    // Another folder is another party, and the name is taken.
    let taken = Member::join(Folder::at(&world.room()), "north", &world.home("elsewhere"), 1).unwrap_err();
    assert!(taken.to_string().contains("key-north"), "{taken}");
    let other = Member::join(Folder::at(&world.room()), "south", &world.home("north"), 1).unwrap_err();
    assert!(other.to_string().contains("north"), "{other}");
    for name in ["", "a/b", "../x", "a-b", "ä", &"x".repeat(33)] {
        assert!(world.join(name).is_err(), "{name}");
    }
    let again = Room::create(Folder::at(&world.room()), &plan, &names(&NAMES)).unwrap_err();
    assert!(again.to_string().contains("already"), "{again}");
    let elsewhere = world.folder.path().join("two");
    for few in [&NAMES[..2], &["north", "North", "west"], &["a", "b", "a b"]] {
        assert!(Room::create(Folder::at(&elsewhere), &plan, &names(few)).is_err());
    }
    assert!(!elsewhere.exists() && Room::open(Folder::at(&elsewhere)).is_err());
    // A ledger that is gone is no empty one.
    fs::remove_dir_all(world.home("north").join("ledger")).unwrap();
    assert!(world.join("north").is_err());
    // The plan's key has no owner.
    assert_eq!(Client::new(&plan, 1).unwrap_err().kind(), ErrorKind::NotPlanned);
    assert_eq!(
        Room::create(Folder::at(&elsewhere), &alone(), &names(&NAMES)).unwrap_err().kind(),
        ErrorKind::NotPlanned
    );
}

#[test]
fn messages_of_others_are_refused_by_name() {
    let world = World::new(&sums(2));
    drop(world.keyed());
    let (from, to) = (world.room().join("public-south"), world.room().join("public-north"));
    let own = fs::read(&to).unwrap();
    fs::write(&to, fs::read(&from).unwrap()).unwrap();
    let error = Room::open(Folder::at(&world.room())).unwrap().public_key().unwrap_err().to_string();
    assert!(error.contains("a message of north is south's"), "{error}");
    fs::write(&to, &own[..own.len() / 2]).unwrap();
    let error = Room::open(Folder::at(&world.room())).unwrap().public_key().unwrap_err().to_string();
    assert!(error.contains("message of north") && error.contains("not arrived completely"), "{error}");
    // A secret share that is not from its sender.
    let world = World::new(&sums(2));
    let mut parties: Vec<Member> = NAMES.iter().map(|name| world.join(name).unwrap()).collect();
    parties.iter_mut().take(2).for_each(|party| party.round().unwrap());
    let (secret, other) = (world.room().join("secret-south-west"), world.room().join("secret-north-west"));
    let own = fs::read(&secret).unwrap();
    fs::write(&secret, fs::read(other).unwrap()).unwrap();
    let error = parties[2].round().unwrap_err().to_string();
    assert!(error.contains("message of south"), "{error}");
    fs::write(&secret, own).unwrap();
    parties[2].round().unwrap();
}

/// Integers are opened exactly, by any two, whatever their size.
#[test]
fn any_two_decrypt_sums_of_integers() {
    let largest = 1i128 << 40;
    let inputs = ["A", "B", "C"].map(|name| InputSpec::integers(name, (3, 4), largest as u128)).into();
    let mut nodes: Vec<Node> = (0..3).map(Node::input).collect();
    nodes.extend([Node::new(Operation::Add, &[0, 1]), Node::new(Operation::Sub, &[3, 2])]);
    let expr = Expr::new(inputs, nodes, 4).unwrap();
    let plan = Planner::new(CostModel::default()).plan(&goal(expr, 0.0, 2)).unwrap();
    let world = World::new(&plan);
    let mut parties = world.keyed();
    let integers =
        |seed: i128| Matrix::<i128>::from_fn(3, 4, |i, j| (seed * 1_234_567 - (i * 4 + j) as i128) * 12_345).unwrap();
    let client = parties[2].client().unwrap();
    for two in [["north", "south"], ["north", "west"], ["south", "west"]] {
        let encrypt = |(name, seed)| client.encrypt_integers_batch(name, &[integers(seed)], QUIET).unwrap();
        let values = [("A", 3), ("B", 5), ("C", 9)].map(encrypt);
        let sum = world.server().run(&values).unwrap();
        for party in parties.iter_mut().filter(|party| two.contains(&party.name())) {
            party.share(&sum, &request(&two, &["south"])).unwrap();
        }
        let expected = Matrix::<i128>::from_fn(3, 4, |i, j| {
            [3, 5].map(|s| integers(s).get(i, j)).iter().sum::<i128>() - integers(9).get(i, j)
        });
        let shown = parties[1].combine(&sum).unwrap();
        assert!(shown.clone().reals().is_err());
        assert_eq!(shown.integers().unwrap(), [expected.unwrap()]);
        assert!(parties[0].combine(&sum).is_err());
    }
    // Four are declared, and each sum has so many ciphertexts.
    assert!(parties.iter().all(|party| party.releases() > 0));
}

/// Values go beside the messages, each under a name for good.
#[test]
fn values_are_put_where_all_see_them() {
    let world = World::new(&sums(2));
    let parties = world.keyed();
    let value = parties[0].client().unwrap().encrypt("A", &matrix(3, 4, 5)).unwrap();
    let other = parties[0].client().unwrap().encrypt("A", &matrix(3, 4, 6)).unwrap();
    let room = Room::open(Folder::at(&world.room())).unwrap();
    assert!(room.value("first").unwrap().is_none());
    room.put("first", &value).unwrap();
    room.put("first", &value).unwrap();
    assert_eq!(room.put("first", &other).unwrap_err().kind(), ErrorKind::Io);
    let read = room.value("first").unwrap().unwrap();
    assert_eq!(read.to_bytes().unwrap(), value.to_bytes().unwrap());
    for name in ["", "a/b", "../x", ".x"] {
        assert!(room.put(name, &value).is_err() && room.value(name).is_err(), "{name}");
    }
    let foreign = Client::new(&alone(), 1).unwrap().encrypt("A", &matrix(3, 4, 5)).unwrap();
    assert_eq!(room.put("second", &foreign).unwrap_err().kind(), ErrorKind::Mismatch);
    fs::write(world.room().join("value-third"), b"none").unwrap();
    assert_eq!(room.value("third").unwrap_err().kind(), ErrorKind::Format);
}

/// A file that anybody can put there is not read past what its message has.
#[test]
fn messages_of_any_length_are_refused() {
    let world = World::new(&sums(2));
    drop(world.keyed());
    let lengthen = |name: &str, bytes: u64| {
        fs::OpenOptions::new().write(true).open(world.room().join(name)).unwrap().set_len(bytes).unwrap();
    };
    let room = Room::open(Folder::at(&world.room())).unwrap();
    let refused = |error: MatrixError| assert!(error.to_string().contains("longer than any message"), "{error}");
    lengthen("key-north", 33);
    refused(room.key_of("north").unwrap_err());
    lengthen("public-south", 1 << 32);
    refused(room.public_key().unwrap_err());
}

/// The folder of a party is made for its owner alone, and so are the files with secrets in it.
#[cfg(unix)]
#[test]
fn nobody_else_reads_a_party() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(&sums(2));
    drop(world.keyed());
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let home = world.home("north");
    assert_eq!(mode(home.clone()), 0o700);
    for name in ["seat", "party"] {
        assert_eq!(mode(home.join(name)), 0o600, "{name}");
    }
}

/// A secret that others can read is no party's.
#[cfg(unix)]
#[test]
fn a_party_that_others_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(&sums(2));
    drop(world.keyed());
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let home = world.home("north");
    for (path, open, own) in
        [(home.clone(), 0o755, 0o700), (home.join("party"), 0o644, 0o600), (home.join("seat"), 0o640, 0o600)]
    {
        set(&path, open);
        let opened = Member::open(Folder::at(&world.room()), &home, 1).unwrap_err();
        for refused in [opened, world.join("north").unwrap_err()] {
            let words = refused.to_string();
            assert!(words.contains(&format!("chmod {own:o}")) && words.contains(path.to_str().unwrap()), "{words}");
            assert_eq!(refused.kind(), ErrorKind::Io);
        }
        set(&path, own);
        drop(world.join("north").unwrap());
    }
    // Nor does anybody begin in a folder of others: nothing is put there.
    let guest = world.home("guest");
    fs::create_dir(&guest).unwrap();
    set(&guest, 0o755);
    assert!(world.join("guest").is_err() && fs::read_dir(&guest).unwrap().next().is_none());
    assert_eq!(Room::open(Folder::at(&world.room())).unwrap().joined().unwrap(), names(&NAMES));
}

/// Nothing in the shared folder has a party's secret: neither its seed nor its secret shares.
#[test]
fn the_folder_has_no_secret() {
    let world = World::new(&sums(2));
    drop(world.keyed());
    let seen = all_of(&world.room());
    for name in NAMES {
        let seat = fs::read(world.home(name).join("seat")).unwrap();
        let party = fs::read(world.home(name).join("party")).unwrap();
        let holds = |part: &[u8]| seen.windows(part.len()).any(|window| window == part);
        assert!(!holds(&seat[..32]));
        // What is not zero begins with the seed and ends with the secret share.
        let last = party.len() - 4096;
        assert!(party[last..].iter().any(|b| *b != 0));
        assert!([last, last + 640, last + 2000].iter().all(|at| !holds(&party[*at..at + 32])));
    }
}

#[test]
fn requests_are_read_as_they_are_written() {
    let asked = request(&["a", "b"], &["c"]);
    assert_eq!(Request::from_bytes(&asked.to_bytes().unwrap()).unwrap(), asked);
    for wrong in
        [request(&[], &["a"]), request(&["a"], &[]), request(&["a", "a"], &["b"]), request(&["a"], &["b", "b"])]
    {
        assert!(wrong.to_bytes().is_err());
    }
    assert!(Request::from_bytes(b"{}").is_err() && Request::from_bytes(b"\xff").is_err());
}
