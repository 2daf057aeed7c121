//! What an operator decides.

use std::path::PathBuf;
use std::time::Duration;

/// Where a server keeps what it is given, and how it works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder for objects and jobs; one server at a time has it.
    pub data: PathBuf,
    /// Threads for each job (0: one for each processor).
    pub threads: usize,
    /// Jobs that run at once; with 0 they are accepted and wait for the next start.
    pub workers: usize,
    /// Whether all connections are a proxy's, which says in `X-Forwarded-For` from where they come.
    pub behind_proxy: bool,
    /// Limits.
    pub limits: Limits,
}

impl Settings {
    /// The defaults in a folder: one job at a time on all processors.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self { data: data.into(), threads: 0, workers: 1, behind_proxy: false, limits: Limits::default() }
    }
}

/// Limits. Those of requests are looked at before a body is read.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of an object.
    pub object_bytes: u64,
    /// Bytes of all objects of a tenant, parts of uploads, results and records of jobs among them.
    pub tenant_bytes: u64,
    /// Jobs of a tenant that wait or run.
    pub tenant_jobs: usize,
    /// Jobs that wait or run.
    pub jobs: usize,
    /// Uploads of a tenant under way.
    pub tenant_uploads: usize,
    /// Uploads under way.
    pub uploads: usize,
    /// Records of finished jobs that are kept for a tenant; the oldest go first.
    pub tenant_records: usize,
    /// Connections.
    pub connections: usize,
    /// Of these, connections that have shown no token, no more than half; the others are kept for tenants.
    pub unauthenticated: usize,
    /// Connections from one address that have shown no token.
    pub address_unauthenticated: usize,
    /// Connections of a tenant.
    pub tenant_connections: usize,
    /// Bytes of keys that stay in memory between jobs, and bytes that the operands of a job may take there.
    pub memory: u64,
    /// How long a job may run.
    pub job: Duration,
    /// How long an object that nobody uses and a finished job are kept.
    pub keep: Duration,
    /// For a TLS handshake, and for the head of a request.
    pub head: Duration,
    /// How long a connection may stand still in the middle of a body or an answer.
    pub stall: Duration,
    /// Least bytes a second of a body, looked at after `stall`.
    pub rate: u64,
    /// How long requests and jobs may go on after the server is asked to stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            object_bytes: 8 << 30,
            tenant_bytes: 64 << 30,
            tenant_jobs: 16,
            jobs: 64,
            tenant_uploads: 8,
            uploads: 64,
            tenant_records: 1000,
            connections: 1024,
            unauthenticated: 512,
            address_unauthenticated: 64,
            tenant_connections: 128,
            memory: 4 << 30,
            job: Duration::from_secs(3600),
            keep: Duration::from_secs(7 * 24 * 3600),
            head: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            rate: 8 << 10,
            grace: Duration::from_secs(25),
        }
    }
}
