//! Jobs: a bounded queue, threads of its own that compute, and a record of each job on the disk.
//!
//! A job is on the disk before it is accepted, and its result before it is done. What a server that was killed had
//! begun is begun again by the next one.

use crate::digest::Digest;
use crate::engine::{Engine, Steps, require_operands};
use crate::events::{Caller, Event, Log};
use crate::metrics::Metrics;
use crate::objects::{Objects, Reservation, UNFINISHED};
use crate::problem::Problem;
use crate::queries::Queries;
use crate::request::{JobView, Record, Request, State};
use crate::settings::Limits;
use std::collections::HashMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};
use sudare_expr::{Operation, expr::MAX_NODES};
use sudare_ring::ErrorKind;
use sudare_ring::interrupt::Interrupt;
use sudare_store::atomic::{self, Access, Durability, Over, Scratch};
use tokio::sync::watch;

/// A job that ended the server so many times is not begun again.
const MOST_ATTEMPTS: u32 = 2;

/// What a record may grow by until its job has ended: the result's name, or the words of a refusal.
const RECORD_GROWTH: u64 = 1 << 10;

/// Milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A job.
pub(crate) struct Job {
    tenant: Arc<str>,
    record: Mutex<Record>,
    /// Its record is the tenant's.
    _room: Reservation,
    steps: Steps,
    cancelled: AtomicBool,
    /// Whether it is on the disk: before that nobody is told of it.
    accepted: AtomicBool,
    ended: watch::Sender<bool>,
}

impl Job {
    fn new(tenant: &Arc<str>, record: Record, room: Reservation) -> Arc<Self> {
        let ended = watch::Sender::new(record.state.ended());
        let (steps, cancelled, accepted) = (Steps::default(), AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self {
            tenant: tenant.clone(),
            record: Mutex::new(record),
            _room: room,
            steps,
            cancelled,
            accepted,
            ended,
        })
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As its tenant sees it.
    pub fn view(&self) -> JobView {
        let (record, (done, steps)) = (self.record(), self.steps.get());
        JobView { id: record.id.clone(), created: record.created, state: record.state.clone(), done, steps }
    }

    /// Changes when the job ends.
    pub fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }
}

#[derive(Default)]
struct Inner {
    jobs: HashMap<(Arc<str>, String), Arc<Job>>,
    queue: Vec<Arc<Job>>,
    /// When each tenant's last job was begun.
    served: HashMap<Arc<str>, u64>,
    begun: u64,
    running: usize,
    stopping: bool,
}

/// All jobs.
pub(crate) struct Jobs {
    objects: Arc<Objects>,
    pub engine: Engine,
    pub queries: Queries,
    limits: Limits,
    metrics: Arc<Metrics>,
    log: Log,
    inner: Mutex<Inner>,
    wake: Condvar,
    halted: Arc<AtomicBool>,
    /// Whether a job that would not end was left behind: it writes nothing any more.
    left: AtomicBool,
}

impl Jobs {
    /// No jobs yet.
    pub fn new(objects: Arc<Objects>, engine: Engine, limits: &Limits, metrics: Arc<Metrics>, log: Log) -> Arc<Self> {
        let halted = Arc::new(AtomicBool::new(false));
        let (limits, inner, wake) = (limits.clone(), Mutex::default(), Condvar::new());
        let (left, queries) = (AtomicBool::new(false), Queries::new(objects.clone()));
        Arc::new(Self { objects, engine, queries, limits, metrics, log, inner, wake, halted, left })
    }

    /// Takes in the jobs of tenants that are on the disk; those that have not ended wait again.
    pub fn enter(&self, tenants: &[Arc<str>]) -> io::Result<()> {
        self.engine.rooms.enter(tenants)?;
        let (objects, mut inner) = (&self.objects, self.inner());
        for tenant in tenants {
            self.queries.enter(tenant)?;
            for entry in fs::read_dir(objects.jobs_folder(tenant))?.flatten() {
                if entry.file_type()?.is_dir() {
                    continue;
                }
                let bytes = fs::read(entry.path())?;
                let Ok(mut record) = serde_json::from_slice::<Record>(&bytes) else {
                    let words = format!("a record of a job of {tenant} cannot be read and is left as it is");
                    let _ = (self.log)(&Event::note(words));
                    continue;
                };
                if let Some((panel, asked)) = record.asked_of() {
                    self.queries.note(tenant, panel, asked);
                }
                if record.state == State::Running {
                    record.state = State::Queued;
                }
                let room = objects.occupy(tenant, bytes.len() as u64 + RECORD_GROWTH);
                let (id, job) = (record.id.clone(), Job::new(tenant, record, room));
                job.accepted.store(true, Ordering::Relaxed);
                if !job.record().state.ended() {
                    inner.queue.push(job.clone());
                }
                inner.jobs.insert((tenant.clone(), id), job);
            }
        }
        inner.queue.sort_by_key(|job| job.record().created);
        self.wake.notify_all();
        Ok(())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jobs that wait, and that run.
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.inner();
        (inner.queue.len(), inner.running)
    }

    fn path(&self, job: &Job) -> PathBuf {
        self.objects.jobs_folder(&job.tenant).join(format!("{}.json", job.record().id))
    }

    fn store(&self, job: &Job, durability: Durability) -> Result<(), Problem> {
        if self.left.load(Ordering::Relaxed) {
            return Ok(());
        }
        if durability == Durability::Process {
            self.keep_asked(job)?;
        }
        let path = self.path(job);
        let bytes = serde_json::to_vec(&*job.record()).map_err(io::Error::other)?;
        let mut scratch = Scratch::within(atomic::folder(&path), UNFINISHED, Access::Owner)?;
        scratch.write_all(&bytes)?;
        Ok(scratch.place(&path, Over::NoKey, durability)?)
    }

    /// Keeps what a search counts, for its record may be lost.
    fn keep_asked(&self, job: &Job) -> Result<(), Problem> {
        let found = job.record().asked_of().map(|(panel, asked)| (panel.to_owned(), asked));
        found.map_or(Ok(()), |(panel, asked)| self.queries.keep(&job.tenant, &panel, asked))
    }

    /// Refuses a job for which there is no room, before anything of it is read.
    pub fn room(&self, tenant: &str) -> Result<(), Problem> {
        self.has_room(&self.inner(), tenant).inspect_err(|_| {
            self.metrics.refused.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn has_room(&self, inner: &Inner, tenant: &str) -> Result<(), Problem> {
        if inner.stopping {
            return Err(Problem::new(ErrorKind::Stopping, "the server is stopping; try again later").retry(10));
        }
        let waiting = inner.jobs.values().filter(|job| !*job.ended.borrow());
        let (mut all, mut own) = (0, 0);
        for job in waiting {
            all += 1;
            own += usize::from(&*job.tenant == tenant);
        }
        if own >= self.limits.tenant_jobs {
            let words =
                format!("{own} jobs of this tenant wait or run, which is the most at once; wait for one to end");
            return Err(Problem::new(ErrorKind::TooMany, words).retry(2));
        }
        if all >= self.limits.jobs {
            return Err(
                Problem::new(ErrorKind::Busy, "as many jobs wait as this server takes; try again later").retry(5)
            );
        }
        Ok(())
    }

    /// Accepts a job, which the audit has before. The same idempotency key gives the same job, and whether it is new.
    pub fn submit(&self, caller: &Caller, request: Request, key: Option<&str>) -> Result<(Arc<Job>, bool), Problem> {
        let tenant = &caller.tenant;
        let mut name = [0; 16];
        match key {
            Some(key) => name.copy_from_slice(&Digest::of(format!("{tenant} {key}").as_bytes()).0[..16]),
            None => getrandom::fill(&mut name)
                .map_err(|_| Problem::new(ErrorKind::Machine, "the system gives no randomness"))?,
        }
        let id: String = name.iter().map(|b| format!("{b:02x}")).collect();
        let known = |inner: &Inner| inner.jobs.get(&(tenant.clone(), id.clone())).cloned();
        let asked = request.clone();
        let same = |job: Arc<Job>| match job.record().request == asked {
            true if job.accepted.load(Ordering::Relaxed) => Ok((job.clone(), false)),
            true => Err(Problem::new(ErrorKind::TooMany, "this job is being accepted; ask again in a second").retry(1)),
            false => Err(Problem::new(
                ErrorKind::Idempotency,
                "this idempotency key came with another request before; take a new one for each request",
            )),
        };
        if let Some(job) = known(&self.inner()) {
            return same(job);
        }
        self.check(tenant, &request)?;
        let asks = self.engine.asks(tenant, &asked)?;
        let record = Record { id: id.clone(), created: now(), attempts: 0, request, state: State::Queued, asked: None };
        let length = serde_json::to_vec(&record).map_err(io::Error::other)?.len() as u64;
        let room = self.objects.reserve(tenant, length + RECORD_GROWTH)?;
        let job = {
            let mut inner = self.inner();
            if let Some(job) = known(&inner) {
                return same(job);
            }
            self.has_room(&inner, tenant).inspect_err(|_| {
                self.metrics.refused.fetch_add(1, Ordering::Relaxed);
            })?;
            let job = Job::new(tenant, record, room);
            inner.jobs.insert((tenant.clone(), id.clone()), job.clone());
            job
        };
        let event = asked.audited(caller.audit("job").with("job", id.as_str()));
        let path = self.path(&job);
        let accept = |total: Option<u64>| {
            job.record().asked = total;
            (self.log)(&event)?;
            // A part of it might be begun by the next start.
            self.store(&job, Durability::Power).inspect_err(|_| drop(fs::remove_file(&path)))
        };
        let accepted = match asks {
            Some((panel, haplotypes)) => {
                let limit = (panel.name.as_str(), panel.most_queries);
                self.queries.charge(tenant, limit, haplotypes, &path, |total| accept(Some(total)))
            }
            None => accept(None),
        };
        if let Err(error) = accepted {
            self.inner().jobs.remove(&(tenant.clone(), id));
            return Err(error);
        }
        job.accepted.store(true, Ordering::Relaxed);
        self.inner().queue.push(job.clone());
        self.wake.notify_one();
        self.forget_oldest(tenant);
        Ok((job, true))
    }

    /// Refuses what no job may ask for, before anything of it is read.
    fn check(&self, tenant: &Arc<str>, request: &Request) -> Result<(), Problem> {
        match request {
            Request::Compute { operation, operands, .. } => {
                // Of a whole expression the plan says how many, once it is read.
                let expected = operation.as_ref().map_or(operands.len().clamp(1, MAX_NODES), Operation::operands);
                require_operands(expected, operands.len())?;
            }
            // Of a search the engine reads more.
            Request::Search { .. } => {}
            Request::Count { table, .. } | Request::Fetch { table, .. } | Request::Scores { table, .. } => {
                self.engine.tables.manifest(tenant, table)?;
            }
            Request::Append { table, plan, keys, .. } => {
                self.engine.tables.check_append(tenant, table, plan.is_some() && keys.is_some())?;
            }
            Request::Combine { room } => self.engine.rooms.check(tenant, room)?,
            Request::Infer { model, .. } => {
                self.engine.model(model)?;
            }
        }
        for digest in request.objects() {
            // Also notes that it is used: it is not removed while the job waits.
            self.objects.open_object(tenant, digest)?;
        }
        let lengths = request.read_whole().into_iter().filter_map(|digest| self.objects.length(tenant, digest).ok());
        let bytes = lengths.fold(0, u64::saturating_add);
        // Masks of fresh values are expanded: twice what was sent, at most.
        if bytes.saturating_mul(2) > self.limits.memory {
            let most = self.limits.memory / 2;
            let words = format!(
                "operands of {bytes} bytes are over the {most} that this server takes in memory for a job; compute in \
                 parts"
            );
            return Err(Problem::new(ErrorKind::TooLarge, words));
        }
        Ok(())
    }

    /// Forgets the oldest ended jobs of a tenant over the most that are kept.
    fn forget_oldest(&self, tenant: &str) {
        let own = |job: &&Arc<Job>| &*job.tenant == tenant && job.accepted.load(Ordering::Relaxed);
        let mut all: Vec<Arc<Job>> = self.inner().jobs.values().filter(own).cloned().collect();
        let over = all.len().saturating_sub(self.limits.tenant_records);
        all.retain(|job| *job.ended.borrow());
        all.sort_by_key(|job| job.record().created);
        all.iter().take(over).for_each(|job| drop(self.forget(job)));
    }

    /// A tenant's job.
    pub fn get(&self, tenant: &Arc<str>, id: &str) -> Result<Arc<Job>, Problem> {
        let found = self.inner().jobs.get(&(tenant.clone(), id.to_owned())).cloned();
        found.filter(|job| job.accepted.load(Ordering::Relaxed)).ok_or_else(|| Problem::not_found("job"))
    }

    /// A tenant's jobs, the oldest first.
    pub fn list(&self, tenant: &str) -> Vec<JobView> {
        let own = |job: &Job| &*job.tenant == tenant && job.accepted.load(Ordering::Relaxed);
        let mut all: Vec<JobView> = self.inner().jobs.values().filter(|job| own(job)).map(|job| job.view()).collect();
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        all
    }

    /// Whether a job that has not ended names an object.
    pub fn uses(&self, tenant: &str, digest: Digest) -> bool {
        let inner = self.inner();
        let waiting = inner.jobs.values().filter(|job| &*job.tenant == tenant && !*job.ended.borrow());
        waiting.into_iter().any(|job| job.record().request.objects().contains(&digest))
    }

    /// Whether a job that has not ended names a table.
    pub fn uses_table(&self, tenant: &str, name: &str) -> bool {
        let inner = self.inner();
        let mut waiting = inner.jobs.values().filter(|job| &*job.tenant == tenant && !*job.ended.borrow());
        waiting.any(|job| job.record().request.table() == Some(name))
    }

    /// Whether a job that has not ended names a room.
    pub fn uses_room(&self, tenant: &str, name: &str) -> bool {
        let inner = self.inner();
        let mut waiting = inner.jobs.values().filter(|job| &*job.tenant == tenant && !*job.ended.borrow());
        waiting.any(|job| job.record().request.room() == Some(name))
    }

    /// Cancels a job that waits or runs; forgets one that ended.
    pub fn delete(&self, tenant: &Arc<str>, id: &str) -> Result<(), Problem> {
        let job = self.get(tenant, id)?;
        let waited = {
            let mut inner = self.inner();
            let before = inner.queue.len();
            inner.queue.retain(|other| !Arc::ptr_eq(other, &job));
            inner.queue.len() < before
        };
        if waited {
            self.end(&job, State::Cancelled, Instant::now());
        } else if *job.ended.borrow() {
            self.forget(&job)?;
        } else {
            job.cancelled.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn forget(&self, job: &Job) -> Result<(), Problem> {
        self.keep_asked(job)?;
        let (path, id) = (self.path(job), job.record().id.clone());
        self.inner().jobs.remove(&(job.tenant.clone(), id));
        let _ = fs::remove_file(path);
        Ok(())
    }

    /// Forgets what ended too long ago.
    pub fn expire(&self) {
        let now = now();
        let ended: Vec<Arc<Job>> = self.inner().jobs.values().filter(|job| *job.ended.borrow()).cloned().collect();
        let old = |job: &&Arc<Job>| u128::from(now.saturating_sub(job.record().created)) > self.limits.keep.as_millis();
        ended.iter().filter(old).for_each(|job| drop(self.forget(job)));
    }

    /// Computes on the calling thread until the server stops.
    pub fn work(&self) {
        while self.work_once() {}
    }

    /// Waits for a job and computes it; false if the server stops.
    pub fn work_once(&self) -> bool {
        let Some(job) = self.next() else { return false };
        self.run(&job);
        self.inner().running -= 1;
        true
    }

    /// The next job: the first of the tenant who waited longest.
    fn next(&self) -> Option<Arc<Job>> {
        let mut inner = self.inner();
        loop {
            if inner.stopping {
                return None;
            }
            let served = |job: &Job| inner.served.get(&job.tenant).copied().unwrap_or(0);
            let first = inner.queue.iter().enumerate().min_by_key(|(at, job)| (served(job), *at)).map(|(at, _)| at);
            if let Some(at) = first {
                let job = inner.queue.remove(at);
                inner.begun += 1;
                inner.running += 1;
                let begun = inner.begun;
                inner.served.insert(job.tenant.clone(), begun);
                return Some(job);
            }
            inner = self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn run(&self, job: &Arc<Job>) {
        let started = Instant::now();
        let request = {
            let mut record = job.record();
            record.attempts += 1;
            record.state = State::Running;
            record.request.clone()
        };
        if job.record().attempts > MOST_ATTEMPTS {
            let words = format!(
                "the server ended {MOST_ATTEMPTS} times while this job ran, so it is not begun again; its operator \
                 should look into the log"
            );
            let problem = Problem::new(ErrorKind::Internal, words);
            return self.end(job, State::Failed { problem }, started);
        }
        if let Err(problem) = self.store(job, Durability::Process) {
            return self.end(job, State::Failed { problem }, started);
        }
        let (watched, halted, limit) = (job.clone(), self.halted.clone(), self.limits.job);
        let interrupt = Interrupt::watching(move || {
            watched.steps.look();
            watched.cancelled.load(Ordering::Relaxed) || halted.load(Ordering::Relaxed) || started.elapsed() > limit
        });
        let run = || interrupt.run(|| self.engine.run(&job.tenant, &request, &job.steps));
        let seconds = || started.elapsed().as_secs_f64().ceil() as u64;
        let state = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(Ok((result, bytes)))) => State::Done { result, bytes, seconds: seconds() },
            Ok(Ok(Err(problem))) => State::Failed { problem },
            Ok(Err(_)) if job.cancelled.load(Ordering::Relaxed) => State::Cancelled,
            Ok(Err(_)) if !self.halted.load(Ordering::Relaxed) => {
                let words = format!(
                    "the job ran for {} s, the most that this server gives a job; compute in parts",
                    limit.as_secs()
                );
                State::Failed { problem: Problem::new(ErrorKind::TimeLimit, words) }
            }
            Ok(Err(_)) => {
                // The server stops: its next start begins again.
                let mut record = job.record();
                (record.state, record.attempts) = (State::Queued, record.attempts - 1);
                drop(record);
                let _ = self.store(job, Durability::Power);
                return;
            }
            Err(_) => {
                let words = "a fault of the server ended this job; its operator should report it";
                State::Failed { problem: Problem::new(ErrorKind::Internal, words) }
            }
        };
        self.metrics.milliseconds.fetch_add(started.elapsed().as_millis() as u64, Ordering::Relaxed);
        self.end(job, state, started);
    }

    fn end(&self, job: &Job, state: State, started: Instant) {
        let counter = match &state {
            State::Done { .. } => &self.metrics.done,
            State::Cancelled => &self.metrics.cancelled,
            _ => &self.metrics.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let named = |event: Event| {
            let mut record = job.record();
            record.state.clone_from(&state);
            let event = event.with("tenant", &*job.tenant).with("job", record.id.as_str()).with("state", state.name());
            let event = match &state {
                State::Failed { problem } => event.with("why", problem.kind().name()),
                State::Done { bytes, .. } => event.with("bytes", *bytes),
                _ => event,
            };
            event.lasting(started.elapsed().as_secs_f64())
        };
        let line = named(Event::log("job"));
        // Without the disk the job is done again after a restart: its result is the same.
        if let Err(error) = self.store(job, Durability::Process) {
            let _ = (self.log)(&Event::note(format!("the record of a job cannot be written: {error}")));
        }
        let audit = match &state {
            State::Done { result, .. } => named(Event::audit("end")).with("result", result.to_string()),
            _ => named(Event::audit("end")),
        };
        if let Err(error) = (self.log)(&audit) {
            let _ = (self.log)(&Event::note(format!("the audit cannot be written: {error}")));
        }
        job.ended.send_replace(true);
        let _ = (self.log)(&line);
    }

    /// Accepts and begins nothing any more.
    pub fn stop(&self) {
        self.inner().stopping = true;
        self.wake.notify_all();
    }

    /// Ends the jobs that run; they wait for the next start.
    pub fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// Has a job that does not end all the same write nothing any more.
    pub fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }
}
