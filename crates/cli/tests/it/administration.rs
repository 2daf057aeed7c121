//! What an administrator does to a server that runs, and what befalls it: reloads, renewals, full disks, old folders.

use crate::common::*;
use crate::serve::Server;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};
use sudare_serve::Digest;

/// Waits until something is so.
fn until(what: &str, so: impl Fn() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Has the server read its files again, and waits until it says so in its audit.
fn reload(place: &Place, server: &mut Server) {
    let count = || place.path("audit").exists() && lines(place, "audit").iter().any(|l| l["event"] == "reload");
    server.signal("-HUP");
    until("no reload", count);
}

/// The lines of a log of JSON.
fn lines(place: &Place, name: &str) -> Vec<serde_json::Value> {
    let text = String::from_utf8(place.read(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs what a server refuses; the folder has a device in it that nobody could read to its end.
fn refused(place: &Place, words: &str, phrase: &str) {
    let out = place.run(&words.split(' ').collect::<Vec<_>>());
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(7) && text.contains(phrase), "{text}");
}

/// A connection that stays open.
struct Kept(BufReader<TcpStream>);

impl Kept {
    fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// The next answer: its first line and its body.
    fn answer(&mut self) -> (String, String) {
        let (mut head, mut length) = (Vec::new(), 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            if let Some(text) = line.to_lowercase().strip_prefix("content-length: ") {
                length = text.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head.push(line);
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (head.first().cloned().unwrap_or_default(), String::from_utf8_lossy(&body).into_owned())
    }

    fn get(&mut self, token: &str) -> (String, String) {
        self.send(format!("GET /v1/config HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"));
        self.answer()
    }
}

#[test]
fn no_token_is_lost_where_several_are_added_at_once() {
    let place = Place::new();
    let name = |n: usize| format!("n{n}");
    let added = |from: usize, file: &str| {
        let start = |n: usize| place.command(&["token", "add", "clinic", "--name", &name(n), "--tokens", file]).spawn();
        let all: Vec<_> = (from..from + 8).map(|n| start(n).unwrap()).collect();
        assert!(all.into_iter().all(|mut child| child.wait().unwrap().success()));
    };
    added(0, "tokens");
    // A link stays one.
    #[cfg(unix)]
    std::os::unix::fs::symlink("tokens", place.path("link")).unwrap();
    added(8, if cfg!(unix) { "link" } else { "tokens" });
    let listed = place.ok("token list --tokens tokens");
    assert!((0..16).all(|n| listed.contains(&format!("{} ", name(n)))), "{listed}");
    assert!(!cfg!(unix) || place.path("link").is_symlink());
}

#[test]
fn a_reload_drops_nothing_but_what_was_removed() {
    let place = Place::new();
    let token = |words: &str| place.ok(&format!("token add {words} --tokens tokens")).trim().to_owned();
    let (laptop, ward) = (token("clinic --name laptop"), token("clinic --name ward --expires 2999-01-31"));
    place.fails("token add clinic --name ward --tokens tokens", 5, "another token");
    let over = place.run(&["token", "add", "clinic", "--expires", "2001-01-31", "--tokens", "tokens"]);
    assert!(over.status.code() == Some(2) && String::from_utf8_lossy(&over.stderr).contains("this moment is over"));
    place.fails("token remove clinic other --tokens tokens", 3, "token list");
    let listed = place.ok("token list --tokens tokens");
    assert!(
        listed.contains("laptop") && listed.contains("never") && listed.contains("2999-01-31T00:00:00Z"),
        "{listed}"
    );
    let json: serde_json::Value = serde_json::from_str(&place.ok("token list --tokens tokens --json")).unwrap();
    assert_eq!((&json[1]["name"], &json[1]["expired"]), (&"ward".into(), &false.into()));
    let logs = ["--log", "log", "--log-format", "json", "--audit", "audit"];
    let mut server = Server::start(&place, &logs);
    let url = format!("http://{}", server.address);
    place.ok(&format!("health {url}"));

    // Half of an upload, and a connection of each token.
    let object = format!("{{{}}}", "x".repeat(1998));
    let name = Digest::of(object.as_bytes());
    let mut upload = Kept::open(&server);
    upload.send(format!(
        "PUT /v1/objects/{name} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {laptop}\r\ncontent-length: 2000\r\n\r\n{}",
        &object[..1000]
    ));
    let (mut gone, mut stays) = (Kept::open(&server), Kept::open(&server));
    assert!(gone.get(&ward).0.contains("200") && stays.get(&laptop).0.contains("200"));

    // One token is removed, one comes, and somebody has moved the log away.
    place.ok("token remove clinic ward --tokens tokens");
    let lab = token("lab --expires 3s");
    assert!(server.get(&lab, "/v1/config").starts_with("HTTP/1.1 401"));
    std::fs::rename(place.path("log"), place.path("log.1")).unwrap();
    reload(&place, &mut server);
    assert!(gone.get(&ward).0.contains("401"), "a removed token on an open connection");
    assert!(stays.get(&laptop).0.contains("200"));
    upload.send(&object[1000..]);
    assert!(upload.answer().0.contains("201"));
    assert!(server.get(&lab, "/v1/config").starts_with("HTTP/1.1 200"));
    let refused = || server.get(&lab, "/v1/config");
    until("a token that does not end", || refused().starts_with("HTTP/1.1 401"));
    assert!(refused().contains("expired"));
    // A file that cannot be read changes nothing.
    let tokens = place.read("tokens");
    place.write("tokens", "nonsense");
    server.signal("-HUP");
    until("no word of it", || lines(&place, "log").iter().any(|l| l.to_string().contains("nothing is changed")));
    assert!(stays.get(&laptop).0.contains("200"));
    place.write("tokens", tokens);

    // Who asked, from where, what and how much: not with which token.
    let log = lines(&place, "log");
    let put = log.iter().find(|l| l["method"] == "PUT").unwrap();
    assert_eq!(
        (&put["address"], &put["tenant"], &put["token"]),
        (&"127.0.0.1".into(), &"clinic".into(), &"laptop".into())
    );
    assert_eq!((&put["status"], &put["received"], put["seconds"].is_number()), (&201.into(), &2000.into(), true));
    assert!(lines(&place, "log.1").iter().any(|l| l["status"] == 401) && !lines(&place, "log.1").is_empty());
    let audit = lines(&place, "audit");
    let sent = audit.iter().find(|l| l["event"] == "object").unwrap();
    assert_eq!(
        (&sent["object"], &sent["kind"], &sent["token"]),
        (&name.to_string().into(), &"a plan".into(), &"laptop".into())
    );
    let all = [place.read("log"), place.read("log.1"), place.read("audit")].concat();
    let all = String::from_utf8(all).unwrap();
    assert!(![&laptop, &ward, &lab].iter().any(|token| all.contains(token.as_str())) && !all.contains("xxxx"));
    let mode = |name: &str| std::fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("log"), mode("audit"), mode("tokens")), (0o600, 0o600, 0o600));
    server.signal("-TERM");
    assert_eq!(server.wait(), Some(0));
    for name in ["start", "reload", "stop"] {
        assert!(lines(&place, "audit").iter().any(|l| l["event"] == name), "no {name}");
    }
    let stopped = lines(&place, "log").iter().any(|l| l["words"].as_str().is_some_and(|w| w.starts_with("stopped: ")));
    assert!(stopped);
}

#[test]
fn jobs_go_on_while_files_are_read_again_and_are_in_the_audit() {
    let place = Place::new();
    place.write("token", place.ok("token add clinic --name ward --tokens tokens"));
    place.matrix("a.npy", 3, 4, &values(12, 1));
    place.matrix("b.npy", 4, 2, &values(8, 2));
    place.ok("plan --left 3x4 --right 4x2 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/secret.key --as right b.npy -o b.ct");
    let mut server = Server::start(&place, &["--audit", "audit"]);
    let words = format!(
        "matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct --server http://{} --token-file token",
        server.address
    );
    let mut client = place.command(&words.split(' ').collect::<Vec<_>>()).stdout(Stdio::null()).spawn().unwrap();
    let ended = loop {
        server.signal("-HUP");
        if let Some(ended) = client.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(ended.success());
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.npy");
    let wanted = product(3, 4, 2, &values(12, 1), &values(8, 2));
    assert!(largest_difference(&place.load("c.npy").2, &wanted) < 1e-4);
    let audit = lines(&place, "audit");
    let of = |event: &str| audit.iter().filter(|l| l["event"] == event).collect::<Vec<_>>();
    let (sent, job, end) = (of("object"), of("job"), of("end"));
    let name = |file: &str| serde_json::Value::from(Digest::of(&place.read(file)).to_string());
    assert_eq!(sent.len(), 4);
    assert_eq!(
        (&job[0]["plan"], &job[0]["keys"], &job[0]["operation"]),
        (&name("plan.json"), &name("keys/eval.keys"), &"run".into())
    );
    assert_eq!(job[0]["operands"], serde_json::json!([name("a.ct"), name("b.ct")]));
    assert_eq!((&end[0]["job"], &end[0]["state"], &end[0]["result"]), (&job[0]["job"], &"done".into(), &name("c.ct")));
    assert_eq!((&of("fetch")[0]["object"], of("removal").len()), (&name("c.ct"), 2));

    // What cannot be in the audit is not done.
    drop(server);
    std::fs::remove_file(place.path("audit")).unwrap();
    symlink("/dev/full", place.path("audit")).unwrap();
    let server = Server::start(&place, &["--audit", "audit"]);
    let words = words.split(" --server").next().unwrap();
    let words = format!("{words} --server http://{} --token-file token", server.address).replace("c.ct", "d.ct");
    refused(&place, &words, "disk is full");
}

#[test]
fn a_certificate_is_renewed_and_may_be_self_signed() {
    let place = Place::new();
    place.ok("token add clinic --tokens tokens");
    let renew = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        place.write(name, made.cert.pem());
        place.write("cert.pem", made.cert.pem());
        place.write("key.pem", made.signing_key.serialize_pem());
    };
    let mode = |mode| std::fs::set_permissions(place.path("key.pem"), std::fs::Permissions::from_mode(mode)).unwrap();
    renew("first.pem");
    mode(0o644);
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--audit", "audit"];
    let words = format!("serve --listen 127.0.0.1:0 --data data --tokens tokens {}", tls[..4].join(" "));
    place.fails(&words, 7, "chmod 640");
    mode(0o640);
    let mut server = Server::start(&place, &tls);
    let health = format!("health https://{}", server.address);
    place.ok(&format!("{health} --ca first.pem"));
    renew("second.pem");
    mode(0o600);
    place.fails(&format!("{health} --ca second.pem"), 7, "certificate");
    reload(&place, &mut server);
    place.ok(&format!("{health} --ca second.pem"));
    place.fails(&format!("{health} --ca first.pem"), 7, "certificate");
}

/// The image cannot be built here: its words are run, with the folders and ports of a test.
#[test]
fn the_image_serves_and_its_health_check_finds_it() {
    let place = Place::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let image = std::fs::read_to_string(root.join("Dockerfile")).unwrap().replace("\\\n", "");
    let compose = std::fs::read_to_string(root.join("compose.yml")).unwrap();
    assert!(["data:/data", "./private:/private:ro", "8443:8443"].iter().all(|words| compose.contains(words)));
    let words = |start: &str| {
        let line = image.lines().find(|line| line.starts_with(start)).unwrap();
        let list: Vec<String> = serde_json::from_str(&line[line.find('[').unwrap()..]).unwrap();
        let ours = [("0.0.0.0:8443", "127.0.0.1:0"), ("/private/", ""), ("/data", "data")];
        list.iter().map(|word| ours.iter().fold(word.clone(), |w, (from, to)| w.replace(from, to))).collect::<Vec<_>>()
    };
    let monitoring = "127.0.0.1:9443";
    let serve: Vec<String> = words("CMD ").iter().map(|word| word.replace(monitoring, "127.0.0.1:0")).collect();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    place.write("cert.pem", made.cert.pem());
    place.write("key.pem", made.signing_key.serialize_pem());
    std::fs::set_permissions(place.path("key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
    place.ok("token add clinic --tokens tokens");
    let mut command = place.command(&serve.iter().map(String::as_str).collect::<Vec<_>>());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("figures at ") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    let figures = line.trim().trim_start_matches("figures at http://").trim_end_matches("/metrics").to_owned();
    let health = words("HEALTHCHECK ")[1..].join(" ").replace(monitoring, &figures);
    assert!(health.starts_with("health http://127.0.0.1:") && !health.contains("9443"), "{health}");
    place.ok(&health);
    child.kill().unwrap();
    child.wait().unwrap();
    refused(&place, &health, "whether the server runs");
}

#[test]
fn a_full_disk_is_said_in_seconds() {
    let place = Place::new();
    place.write("token", place.ok("token add clinic --tokens tokens"));
    place.matrix("a.npy", 3, 4, &values(12, 1));
    place.ok("plan --left 3x4 --right 4x2 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.npy -o a.ct");
    place.matrix("b.npy", 4, 2, &values(8, 2));
    place.ok("encrypt plan.json --keys keys/secret.key --as right b.npy -o b.ct");
    let server = Server::start(&place, &[]);
    // What is written there goes to a device that is full always.
    let keys = Digest::of(&place.read("keys/eval.keys"));
    symlink("/dev/full", place.path(&format!("data/clinic/parts/{keys}"))).unwrap();
    let started = Instant::now();
    let words = format!(
        "matmul plan.json --keys keys/eval.keys a.ct b.ct -o c.ct --server http://{} --token-file token",
        server.address
    );
    refused(&place, &words, "the server's disk is full");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn a_folder_of_before_is_taken_over_and_a_newer_one_is_not() {
    let place = Place::new();
    let token = place.ok("token add clinic --tokens tokens").trim().to_owned();
    let object = b"{a plan of before}";
    let path = format!("data/clinic/objects/{}", Digest::of(object));
    std::fs::create_dir_all(place.path("data/clinic/objects")).unwrap();
    std::fs::set_permissions(place.path("data"), std::fs::Permissions::from_mode(0o700)).unwrap();
    place.write("data/lock", "");
    place.write(&path, object);
    let mut server = Server::start(&place, &[]);
    assert!(server.get(&token, &format!("/v1/objects/{}", Digest::of(object))).ends_with("{a plan of before}"));
    server.signal("-TERM");
    assert_eq!(server.wait(), Some(0));
    assert_eq!(place.read("data/.version"), b"1\n");
    for (version, words) in [("2\n", "a newer release wrote this folder"), ("x\n", "says no version")] {
        place.write("data/.version", version);
        place.fails("serve --listen 127.0.0.1:0 --data data --tokens tokens", 5, words);
    }
}
