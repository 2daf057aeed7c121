//! What the tests of the service share: a server in this process, and a client that can misbehave.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use sudare_expr::{Expr, InputSpec, Matrix};
use sudare_plan::{CostModel, Goal, Plan, Planner};
use sudare_serve::{Event, Problem, Remote, Served, ServedPanel, Service, Settings, Stop, Tls, Token, Tokens};
use sudare_testkit::random::unit_at;

/// Tokens of two tenants.
pub struct Tenants {
    pub one: Token,
    pub two: Token,
    pub tokens: Tokens,
}

impl Tenants {
    pub fn new() -> Self {
        let (one, two) = (Token::new().unwrap(), Token::new().unwrap());
        let text =
            format!("{}\n{}\n", one.line("one", None, None).unwrap(), two.line("two", Some("second"), None).unwrap());
        Self { one, two, tokens: Tokens::read(&text).unwrap() }
    }
}

/// A server in this process.
pub struct Running {
    pub address: SocketAddr,
    pub lines: Arc<Mutex<Vec<String>>>,
    pub monitoring: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn start(settings: &Settings, tenants: &Tenants) -> Self {
        Self::with(settings, tenants, Vec::new(), None)
    }

    pub fn with(settings: &Settings, tenants: &Tenants, panels: Vec<ServedPanel>, tls: Option<Tls>) -> Self {
        Self::offering(settings, tenants, Served { panels, ..Served::default() }, tls)
    }

    pub fn offering(settings: &Settings, tenants: &Tenants, served: Served, tls: Option<Tls>) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = lines.clone();
        let log = move |event: &Event| {
            log.lock().unwrap().push(event.to_string());
            Ok(())
        };
        let service = Service::open(settings.clone(), tenants.tokens.clone(), served, log).unwrap();
        let service = service.with_monitoring("127.0.0.1:0".parse().unwrap()).unwrap();
        let monitoring = service.monitoring().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), Stop::new());
        let asked = stop.clone();
        let thread = std::thread::spawn(move || service.run(listener, tls, &asked).unwrap());
        Self { address, lines, monitoring, stop, thread: Some(thread) }
    }

    pub fn remote(&self, token: &Token) -> Remote {
        Remote::new(&format!("http://{}", self.address), token.secret(), None).unwrap()
    }

    /// Asks it to stop and waits until it has.
    pub fn stop(mut self) {
        self.end();
    }

    pub fn ask(&self) {
        self.stop.ask();
    }

    fn end(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// A request as bytes, and its answer.
    pub fn raw(&self, token: &str, method: &str, path: &str, headers: &str, body: &[u8]) -> Reply {
        let mut stream = self.connect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Refused bodies may not be taken to their end.
        let _ = stream.write_all(body);
        Reply::read(stream)
    }

    /// A request whose body says its length.
    pub fn ask_for(&self, token: &Token, method: &str, path: &str, body: &[u8]) -> Reply {
        self.raw(token.secret(), method, path, &format!("content-length: {}\r\n", body.len()), body)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        Self { status, head, body: bytes.get(end + 4..).unwrap_or_default().to_vec() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Its problem; its kind and status have to fit.
    #[track_caller]
    pub fn problem(&self) -> Problem {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem: Problem = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(problem.kind().status(), self.status);
        problem
    }
}

pub fn plan(goal: &Goal) -> Plan {
    Planner::new(CostModel::default()).plan(goal).unwrap()
}

/// A plan of a product of real matrices.
pub fn product(m: usize, k: usize, n: usize) -> Plan {
    let input = |name: &str, shape| InputSpec::new(name, shape, 1.0);
    plan(&Goal::new(Expr::product(input("A", (m, k)), input("B", (k, n))).unwrap(), 1e-4))
}

/// A plan of a product of integers, which takes no keys.
pub fn exact(m: usize, k: usize, n: usize) -> Plan {
    let input = |name: &str, shape| InputSpec::integers(name, shape, 100);
    plan(&Goal::new(Expr::product(input("A", (m, k)), input("B", (k, n))).unwrap(), 0.0))
}

pub fn values(rows: usize, cols: usize, seed: u64) -> Matrix {
    Matrix::from_fn(rows, cols, |i, j| unit_at(seed, i, j)).unwrap()
}
