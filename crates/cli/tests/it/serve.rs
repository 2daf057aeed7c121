//! `sudare serve` as a process: a product by way of it, what kills it, and how it stops.

use crate::common;
use common::*;

use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use sudare_serve::{Remote, Request};

/// A server in a process of its own.
pub struct Server {
    pub child: Child,
    pub address: String,
}

impl Server {
    pub fn start(place: &Place, more: &[&str]) -> Self {
        let words = [&["serve", "--listen", "127.0.0.1:0", "--data", "data", "--tokens", "tokens"], more].concat();
        let mut child = place.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().split_once("://").unwrap_or_else(|| panic!("{line}")).1.to_owned();
        Self { child, address }
    }

    pub fn signal(&mut self, name: &str) {
        let done = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Its exit code; none after a signal.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub fn get(&self, token: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut out = Vec::new();
        let _ = stream.read_to_end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_product_far_away_with_kills_on_the_way() {
    let place = Place::new();
    let token = place.ok("token add clinic --tokens tokens").trim().to_owned();
    place.ok("token add lab --tokens tokens");
    let lines = String::from_utf8(place.read("tokens")).unwrap();
    assert!(lines.lines().count() == 2 && !lines.contains(&token), "{lines}");
    place.write("token", &token);
    let (a, b) = (values(12, 1), values(8, 2));
    place.matrix("a.npy", 3, 4, &a);
    place.matrix("b.npy", 4, 2, &b);
    place.ok("plan --left 3x4 --right 4x2 -o plan.json");
    place.ok("keygen plan.json -o keys");
    place.ok("encrypt plan.json --keys keys/secret.key --as left a.npy -o a.ct");
    place.ok("encrypt plan.json --keys keys/public.key --as right b.npy -o b.ct");
    // Accepts and runs nothing: then it is killed, with an upload that waits for its end.
    let mut server = Server::start(&place, &["--jobs", "0"]);
    let words = |server: &Server, out: &str| {
        format!(
            "matmul plan.json --keys keys/eval.keys a.ct b.ct -o {out} --server http://{} --token-file token",
            server.address
        )
    };
    let far = words(&server, "c.ct");
    let mut client = place.command(&far.split(' ').collect::<Vec<_>>()).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    let accepted = || std::fs::read_dir(place.path("data/clinic/jobs")).unwrap().flatten();
    while !accepted().any(|e| e.path().extension().is_some_and(|x| x == "json")) {
        assert!(started.elapsed() < Duration::from_secs(120), "no job came");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.signal("-KILL");
    assert_eq!(server.wait(), None);
    let _ = client.kill();
    let _ = client.wait();
    // The next server has the job, and does it.
    let mut server = Server::start(&place, &[]);
    let started = Instant::now();
    while !server.get(&token, "/v1/jobs").contains("\"done\"") {
        assert!(started.elapsed() < Duration::from_secs(120), "the job was lost");
        std::thread::sleep(Duration::from_millis(50));
    }
    let told = place.ok(&words(&server, "c.ct"));
    assert!(told.contains("(3, 2)"), "{told}");
    place.ok("decrypt plan.json --keys keys/secret.key c.ct -o c.npy");
    assert!(largest_difference(&place.load("c.npy").2, &product(3, 4, 2, &a, &b)) < 1e-4);
    place.ok(&words(&server, "d.ct"));
    // The same bits here as there.
    place.ok("matmul plan.json --keys keys/eval.keys a.ct b.ct -o here.ct");
    assert!(place.read("here.ct") == place.read("d.ct") && place.read("c.ct") == place.read("d.ct"));
    place.write("wrong", token.replace(&token[10..12], "zz"));
    let url = server.address.clone();
    place.fails(
        &format!(
            "{} --server http://{url} --token-file wrong",
            "matmul plan.json --keys keys/eval.keys a.ct b.ct -o e.ct"
        ),
        7,
        "token",
    );
    place.fails(
        &format!("matmul plan.json --keys keys/secret.key a.ct b.ct -o e.ct --server http://{url} --token-file token"),
        4,
        "stays with the client",
    );
    place.fails(
        "matmul plan.json --keys keys/eval.keys a.ct b.ct -o e.ct --server http://example.org --token-file token",
        3,
        "https",
    );
    place.fails("serve --listen 0.0.0.0:0 --data d --tokens tokens", 2, "TLS");
    place.fails("serve --listen 127.0.0.1:0 --data data --tokens tokens", 7, "another server");
    place.fails("serve --listen 127.0.0.1:0 --data d --tokens tokens --pad ref=64", 2, "no --panel");
    place.fails("serve --listen 127.0.0.1:0 --data d --tokens tokens --queries ref=5", 2, "no --panel");
    place.fails(
        "serve --listen 127.0.0.1:0 --data d --tokens tokens --panel ref=a --queries ref=5 --queries ref=6",
        2,
        "twice",
    );
    place.fails(
        "matmul plan.json --keys keys/eval.keys a.ct b.ct -o e.ct --server https://a:hidden@example.org --token-file token",
        3,
        "a password",
    );
    server.signal("-TERM");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_limit_of_queries_outlives_kills_and_keys() {
    let place = Place::new();
    let token = place.ok("token add clinic --tokens tokens").trim().to_owned();
    let data = |name: &str| format!("{}/../../data/genome/{name}", env!("CARGO_MANIFEST_DIR"));
    place.ok(&format!("genome panel build {} --kinds snps -o panel", data("panel.vcf.gz")));
    // The third key is refused, by a server that was killed after each of the others.
    for asked in 1..=3 {
        place.ok(&format!("genome keygen -o keys{asked}"));
        place.ok(&format!(
            "genome query panel.sites --keys keys{asked}/secret.key --variants {} --sample NA06994 --hap 2 \
             --region 20:1100000-1105000 -o q{asked}",
            data("others.vcf.gz")
        ));
        let mut server = Server::start(&place, &["--panel", "ref=panel", "--queries", "ref=2", "--jobs", "0"]);
        let remote = Remote::new(&format!("http://{}", server.address), &token, None).unwrap();
        let query = remote.send(&mut Cursor::new(place.read(&format!("q{asked}")))).unwrap();
        let request = Request::Search { panel: "ref".into(), keys: None, query, pad: None };
        let answer = remote.submit(&request, Some(&asked.to_string()));
        match asked {
            3 => assert!(answer.unwrap_err().to_string().contains("is 2, and 3 was asked for")),
            _ => drop(answer.unwrap()),
        }
        server.signal("-KILL");
        assert_eq!(server.wait(), None);
    }
}
