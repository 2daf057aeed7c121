//! What computes: sessions of the crates below, kept between jobs while there is room for their keys.

use crate::digest::Digest;
use crate::objects::{Objects, Reservation};
use crate::problem::Problem;
use crate::request::{Operand, Request};
use crate::rooms::Rooms;
use crate::tables::{OpenTable, Tables};
use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sudare_expr::{Matrix, Operation};
use sudare_genome::message::Head;
use sudare_genome::{Options, Padding, Panel};
use sudare_models::{Shared as _, either, forest};
use sudare_plan::MAX_PLAN_BYTES;
use sudare_plan::Plan;
use sudare_ring::{ErrorKind, Threads};
use sudare_rlwe::keys::EvalKeys;
use sudare_rlwe::wire::Wire;
use sudare_search::server::Progress;
use sudare_search::{Answer, Gap, Index, Query, SearchError};
use sudare_session::Encrypted;
use sudare_session::parties::Room;

/// Bytes that a session takes beside its keys: tables, diagrams of a panel.
const SESSION_BYTES: u64 = 64 << 20;

/// Least bytes that are kept free for an answer to a search.
const ANSWER_BYTES: u64 = 1 << 20;

/// A panel as tenants may search it.
#[derive(Clone, Debug)]
pub struct ServedPanel {
    /// The name that clients ask for.
    pub name: String,
    /// The panel.
    pub panel: Arc<Panel>,
    /// Classes of padded searches. With them every search by "trie" is padded; without, none is.
    pub padding: Option<Padding>,
    /// The most haplotypes that a tenant may ask about, for good; without it as many as it likes.
    pub most_queries: Option<u64>,
}

impl ServedPanel {
    /// The class of a search.
    pub(crate) fn class(&self, asked: Option<u64>) -> Result<Option<u64>, Problem> {
        match (&self.padding, asked) {
            (Some(padding), asked) => Ok(Some(padding.class(asked)?)),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                let words = "the owner of this panel has set no class for padded searches; ask without one";
                Err(Problem::new(ErrorKind::Unsupported, words))
            }
        }
    }
}

/// A compiled network or forest.
pub type CompiledModel = sudare_models::NetworkOrForest<sudare_models::Model, forest::Model>;

/// A compiled model as tenants may use it.
#[derive(Clone, Debug)]
pub struct ServedModel {
    /// The name that clients ask for.
    pub name: String,
    /// The model, with its weights.
    pub model: CompiledModel,
}

/// What the operator offers to all tenants.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Haplotype panels.
    pub panels: Vec<ServedPanel>,
    /// Compiled models.
    pub models: Vec<ServedModel>,
}

/// What a session was made of: a tenant's own objects. Two tenants never share one.
#[derive(Clone, PartialEq, Eq)]
struct Name {
    tenant: Arc<str>,
    of: Of,
    keys: Option<Digest>,
}

/// Of what a session is.
#[derive(Clone, PartialEq, Eq)]
enum Of {
    Plan(Digest),
    Panel(String),
    Model(String),
    /// A table by its name, with its random name and its segments: when it grows, another session answers.
    Table(String, String, usize),
}

enum Session {
    Plan(Plan, sudare_session::Server),
    Panel(Box<sudare_genome::Server>),
    Model(Box<sudare_models::NetworkOrForest<sudare_models::Server, forest::Server>>, bool),
    Table(Box<OpenTable>),
}

impl Session {
    fn bytes(&self, keys: u64) -> u64 {
        SESSION_BYTES
            + match self {
                Self::Plan(_, server) => server.bytes() as u64,
                // Masks are expanded: twice what was sent, at most.
                Self::Panel(_) => 2 * keys,
                Self::Model(server, stored) => either!(&**server, server => server.plan().memory(*stored)),
                Self::Table(table) => table.bytes(),
            }
    }
}

/// How far a job has come.
#[derive(Default)]
pub(crate) struct Steps {
    done: AtomicU64,
    all: AtomicU64,
    /// Looks at work that tells nothing by itself.
    live: Mutex<Option<Box<dyn Fn() -> u64 + Send>>>,
}

impl Steps {
    fn tell(&self, done: u64, all: u64) {
        self.all.store(all, Ordering::Relaxed);
        self.done.fetch_max(done.min(all), Ordering::Relaxed);
    }

    /// Steps done and steps in all.
    pub fn get(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed))
    }

    /// Counts again. The operations of two jobs of one session are counted together.
    pub fn look(&self) {
        if let Some(count) = &*self.live.lock().unwrap_or_else(PoisonError::into_inner) {
            self.tell(count(), self.get().1);
        }
    }

    fn watch(&self, count: Option<Box<dyn Fn() -> u64 + Send>>) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = count;
    }
}

/// Runs jobs.
pub(crate) struct Engine {
    objects: Arc<Objects>,
    pub tables: Tables,
    pub rooms: Arc<Rooms>,
    served: Served,
    threads: usize,
    memory: u64,
    pool: Threads,
    /// The one used last comes last.
    kept: Mutex<Vec<(Name, Arc<Session>, u64)>>,
}

impl Engine {
    pub fn new(objects: Arc<Objects>, served: Served, threads: usize, memory: u64) -> Self {
        let (tables, rooms) = (Tables::new(objects.clone(), memory), Arc::new(Rooms::new(objects.clone())));
        Self { objects, tables, rooms, served, threads, memory, pool: Threads::new(threads), kept: Mutex::default() }
    }

    pub fn served(&self) -> &Served {
        &self.served
    }

    /// A panel by its name.
    pub fn panel(&self, name: &str) -> Result<&ServedPanel, Problem> {
        self.served.panels.iter().find(|panel| panel.name == name).ok_or_else(|| Problem::not_found("panel"))
    }

    /// What a request asks of a panel: the panel, and of how many haplotypes. Refuses what no search in it answers.
    pub fn asks(&self, tenant: &str, request: &Request) -> Result<Option<(&ServedPanel, u64)>, Problem> {
        let Request::Search { panel, query, pad, .. } = request else { return Ok(None) };
        let served = self.panel(panel)?;
        served.class(*pad)?;
        let head = Head::read_from(BufReader::new(self.objects.open_object(tenant, *query)?))?;
        head.check(&served.panel)?;
        Ok(Some((served, head.batch as u64)))
    }

    /// A model by its name.
    pub fn model(&self, name: &str) -> Result<&CompiledModel, Problem> {
        let found = self.served.models.iter().find(|served| served.name == name);
        found.map(|served| &served.model).ok_or_else(|| Problem::not_found("model"))
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(Name, Arc<Session>, u64)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of keys in memory.
    pub fn bytes(&self) -> u64 {
        self.kept().iter().map(|(.., bytes)| bytes).sum()
    }

    /// Forgets sessions that an object was part of.
    pub fn forget(&self, tenant: &str, digest: Digest) {
        self.kept()
            .retain(|(name, ..)| &*name.tenant != tenant || (name.of != Of::Plan(digest) && name.keys != Some(digest)));
    }

    /// Forgets the sessions of a table that grew or went.
    pub fn forget_table(&self, tenant: &str, table: &str) {
        let of = |name: &Name| &*name.tenant == tenant && matches!(&name.of, Of::Table(known, ..) if known == table);
        self.kept().retain(|(name, ..)| !of(name));
    }

    /// Runs a job and stores its result; gives the result's name and length.
    pub fn run(&self, tenant: &Arc<str>, request: &Request, steps: &Steps) -> Result<(Digest, u64), Problem> {
        match request {
            Request::Compute { plan, keys, operation, operands } => {
                let name = Name { tenant: tenant.clone(), of: Of::Plan(*plan), keys: *keys };
                let session = self.session(&name)?;
                let Session::Plan(plan, server) = &*session else { return Err(broken()) };
                let inputs = plan.expression().inputs().len();
                require_operands(operation.as_ref().map_or(inputs, Operation::operands), operands.len())?;
                let room = self.room(tenant, plan, operation.as_ref(), operands)?;
                // Each is read once, however often it is named: what is shared of a value is not copied.
                let mut read = HashMap::new();
                for operand in operands {
                    if !read.contains_key(operand) {
                        read.insert(operand, self.operand(tenant, plan, server, operand)?);
                    }
                }
                let values: Vec<Encrypted> = operands.iter().filter_map(|operand| read.get(operand).cloned()).collect();
                // Summaries count in doubles; what is shown is a whole number of steps.
                steps.tell(0, plan.summary().key_switches.max(1.0) as u64);
                let (counted, before) = (server.clone(), server.counters().key_switches);
                steps.watch(Some(Box::new(move || counted.counters().key_switches.saturating_sub(before))));
                let value = match operation {
                    Some(operation) => server.apply(operation, &values.iter().collect::<Vec<_>>()),
                    None => server.run(&values),
                };
                steps.look();
                steps.watch(None);
                let value = value?;
                steps.tell(steps.get().1, steps.get().1);
                self.objects.put(room, |out| Ok(value.write_to(out)?))
            }
            Request::Search { panel, keys, query, pad } => {
                let name = Name { tenant: tenant.clone(), of: Of::Panel(panel.clone()), keys: *keys };
                let session = self.session(&name)?;
                let Session::Panel(server) = &*session else { return Err(broken()) };
                let class = self.panel(panel)?.class(*pad)?;
                let query = self.objects.read(tenant, *query)?;
                let room = self.objects.reserve(tenant, ANSWER_BYTES.max(query.len() as u64))?;
                let progress = |done: usize, all: usize| steps.tell(done as u64, all as u64);
                let options = Options { class, progress: Some(&progress) };
                let (answer, _) = self.pool.run(|| server.search(&query, options))?;
                self.objects.put(room, |out| Ok(out.write_all(&answer)?))
            }
            Request::Count { table, query, gaps } => {
                let gaps: Vec<Gap> = gaps.iter().map(|(low, high)| Gap { low: *low, high: *high }).collect();
                let bytes = |index: &Index| index.bytes().count.saturating_mul(gaps.len() as u64);
                self.ask((tenant, table, *query), steps, bytes, |open, query, tell| {
                    open.server.count(&open.database, query, &gaps, tell)
                })
            }
            Request::Fetch { table, query, gap: (low, high) } => {
                let gap = Gap { low: *low, high: *high };
                self.ask(
                    (tenant, table, *query),
                    steps,
                    |index| index.bytes().fetch,
                    |open, query, tell| open.server.fetch(&open.database, query, gap, tell),
                )
            }
            Request::Scores { table, query } => self.ask(
                (tenant, table, *query),
                steps,
                |index| index.bytes().scores,
                |open, query, tell| open.server.scores(&open.database, query, tell),
            ),
            Request::Append { table, segment, plan, keys } => {
                // Before the table changes, so that what is refused was not done.
                let room = self.objects.reserve(tenant, ANSWER_BYTES)?;
                let manifest = self.tables.append(tenant, table, *segment, (*plan, *keys), &self.pool)?;
                self.forget_table(tenant, table);
                let told = serde_json::json!({ "rows": manifest.rows(), "segments": manifest.segments.len() });
                self.objects.put(room, |out| Ok(write!(out, "{told}")?))
            }
            Request::Combine { room } => {
                steps.tell(0, 1);
                let found = Room::open(self.rooms.open(tenant, room))?;
                let summary = found.plan().summary();
                let (memory, bytes) = (summary.key_bytes(), summary.key_wire_bytes());
                if memory > self.memory {
                    let words = format!(
                        "keys of {memory} bytes are over the {} that this server holds in memory; ask its operator \
                         for more",
                        self.memory
                    );
                    return Err(Problem::new(ErrorKind::TooLarge, words));
                }
                let room = self.objects.reserve(tenant, ANSWER_BYTES.max(bytes))?;
                let keys = self.pool.run(|| found.server_keys())?;
                steps.tell(1, 1);
                self.objects.put(room, |out| Ok(keys.write_to(out)?))
            }
            Request::Infer { model, keys, inputs } => {
                let of = Of::Model(model.clone());
                let session = self.session(&Name { tenant: tenant.clone(), of, keys: Some(*keys) })?;
                let Session::Model(server, _) = &*session else { return Err(broken()) };
                let inputs = self.objects.read(tenant, *inputs)?;
                let request = either!(&**server, server => sudare_models::Request::from_bytes(server.plan(), &inputs))?;
                let room = self.objects.reserve(tenant, ANSWER_BYTES.max(inputs.len() as u64))?;
                let tell = |done: usize, all: usize| steps.tell(done as u64, all as u64);
                let answer = self.pool.run(|| either!(&**server, server => server.run(&request, &tell)))?.to_bytes()?;
                self.objects.put(room, |out| Ok(out.write_all(&answer)?))
            }
        }
    }

    /// Asks a table that is open; the answer to a question takes about as many bytes as `bytes` says.
    fn ask(
        &self,
        (tenant, table, query): (&Arc<str>, &str, Digest),
        steps: &Steps,
        bytes: impl Fn(&Index) -> u64,
        work: impl Fn(&OpenTable, &Query, Progress<'_>) -> Result<Answer, SearchError> + Sync,
    ) -> Result<(Digest, u64), Problem> {
        let manifest = self.tables.manifest(tenant, table)?;
        let of = Of::Table(table.to_owned(), manifest.index, manifest.segments.len());
        let session = self.session(&Name { tenant: tenant.clone(), of, keys: None })?;
        let Session::Table(open) = &*session else { return Err(broken()) };
        let index = open.server.index();
        let query = Query::from_bytes(index, &self.objects.read(tenant, query)?)?;
        let expected = bytes(index).saturating_mul(query.len() as u64);
        let room = self.objects.reserve(tenant, ANSWER_BYTES.max(expected))?;
        let tell = |done: usize, all: usize| steps.tell(done as u64, all as u64);
        let answer = self.pool.run(|| work(open, &query, &tell))?.to_bytes()?;
        self.objects.put(room, |out| Ok(out.write_all(&answer)?))
    }

    /// Reservation for a result: of a plan as it says, of an operation at least as much as its operands have.
    fn room(
        &self,
        tenant: &Arc<str>,
        plan: &Plan,
        operation: Option<&Operation>,
        operands: &[Operand],
    ) -> Result<Reservation, Problem> {
        let result = plan.summary().operands.last().map_or(0, |line| line.wire_bytes);
        let mut bytes = result;
        if operation.is_some() {
            // Fresh values travel at half their size.
            let each = operands.iter().filter_map(|o| self.objects.length(tenant, o.object).ok());
            bytes = bytes.max(each.fold(0, |sum: u64, length| sum.saturating_add(length.saturating_mul(2))));
        }
        self.objects.reserve(tenant, bytes)
    }

    /// A session that is kept, or a new one.
    fn session(&self, name: &Name) -> Result<Arc<Session>, Problem> {
        if let Some(session) = self.take(name) {
            return Ok(session);
        }
        let mut keys_bytes = 0;
        if let Some(digest) = name.keys {
            keys_bytes = self.objects.length(&name.tenant, digest).unwrap_or(0);
        }
        let session = Arc::new(match &name.of {
            Of::Plan(plan) => self.plan_session(name, *plan)?,
            Of::Panel(panel) => self.panel_session(name, panel)?,
            Of::Model(model) => self.model_session(name, model)?,
            Of::Table(table, ..) => Session::Table(Box::new(self.pool.run(|| self.tables.open(&name.tenant, table))?)),
        });
        let bytes = session.bytes(keys_bytes);
        if bytes <= self.memory {
            let mut kept = self.kept();
            // Another job may have made the same one meanwhile.
            kept.retain(|(known, ..)| known != name);
            kept.push((name.clone(), session.clone(), bytes));
            let mut all: u64 = kept.iter().map(|(.., bytes)| bytes).sum();
            while all > self.memory {
                all -= kept.remove(0).2;
            }
        }
        Ok(session)
    }

    fn take(&self, name: &Name) -> Option<Arc<Session>> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(known, ..)| known == name)?;
        let entry = kept.remove(at);
        let session = entry.1.clone();
        kept.push(entry);
        Some(session)
    }

    fn plan_session(&self, name: &Name, plan: Digest) -> Result<Session, Problem> {
        let mut text = String::new();
        let file = self.objects.open_object(&name.tenant, plan)?;
        file.take(MAX_PLAN_BYTES as u64 + 1)
            .read_to_string(&mut text)
            .map_err(|_| Problem::new(ErrorKind::Format, "the plan is not text; send it again"))?;
        let plan = Plan::from_json(&text)?;
        let server = match name.keys {
            Some(keys) => {
                let file = self.objects.open_object(&name.tenant, keys)?;
                let keys = EvalKeys::read_from(plan.params(), BufReader::with_capacity(1 << 20, file))?;
                sudare_session::Server::new(&plan, keys, self.threads)?
            }
            None if plan.is_keyless() => sudare_session::Server::keyless(&plan, self.threads)?,
            None => {
                let words = "this plan computes with evaluation keys; send them and name them as the job's keys";
                return Err(Problem::new(ErrorKind::MissingKey, words));
            }
        };
        Ok(Session::Plan(plan, server))
    }

    fn model_session(&self, name: &Name, model: &str) -> Result<Session, Problem> {
        let (model, Some(keys)) = (self.model(model)?, name.keys) else { return Err(broken()) };
        let keys = self.objects.read(&name.tenant, keys)?;
        let (stored, keys) = either!(model, model => {
            let plan = model.plan();
            (plan.stores() && plan.memory(true) <= self.memory, sudare_models::Keys::from_bytes(plan, &keys)?)
        });
        let server = self.pool.run(|| model.server(keys, stored))?;
        Ok(Session::Model(Box::new(server), stored))
    }

    fn panel_session(&self, name: &Name, panel: &str) -> Result<Session, Problem> {
        let mut server = sudare_genome::Server::new(self.panel(panel)?.panel.clone())?;
        if let Some(keys) = name.keys {
            let bytes = self.objects.read(&name.tenant, keys)?;
            self.pool.run(|| server.add_keys(&bytes))?;
        }
        Ok(Session::Panel(Box::new(server)))
    }

    fn operand(
        &self,
        tenant: &str,
        plan: &Plan,
        server: &sudare_session::Server,
        operand: &Operand,
    ) -> Result<Encrypted, Problem> {
        let file = self.objects.open_object(tenant, operand.object)?;
        let Some(name) = &operand.plain else {
            return Ok(Encrypted::read_from(plan, BufReader::with_capacity(1 << 20, file))?);
        };
        let input = plan.expression().input(name).map(|at| &plan.expression().inputs()[at]);
        let input = input.ok_or_else(|| Problem::not_found("input of the plan"))?;
        let (shape, members) = ((input.rows, input.cols), plan.batch());
        let (width, kind) = if plan.is_exact() { (16, "128-bit integers") } else { (8, "doubles") };
        let expected = (width * shape.0 * shape.1 * members) as u64;
        let found = file.metadata()?.len();
        if found != expected {
            let words = format!(
                "{name} takes {expected} bytes of {kind}, and this object has {found}; send the matrix of the plan"
            );
            return Err(Problem::new(ErrorKind::Shape, words));
        }
        let mut bytes = Vec::new();
        BufReader::new(file).read_to_end(&mut bytes)?;
        if plan.is_exact() {
            let numbers: Vec<i128> = bytes.as_chunks::<16>().0.iter().map(|b| i128::from_le_bytes(*b)).collect();
            let one = |values: &[i128]| Matrix::<i128>::new(shape.0, shape.1, values.to_vec());
            let matrices = numbers.chunks(shape.0 * shape.1).map(one).collect::<Result<Vec<_>, _>>()?;
            return Ok(server.plain_integers(name, &matrices)?);
        }
        let numbers: Vec<f64> = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
        let one = |values: &[f64]| Matrix::new(shape.0, shape.1, values.to_vec());
        let matrices = numbers.chunks(shape.0 * shape.1).map(one).collect::<Result<Vec<_>, _>>()?;
        Ok(server.plain(name, &matrices)?)
    }
}

fn broken() -> Problem {
    Problem::new(ErrorKind::Internal, "the session is of another kind than was asked for")
}

/// Refuses a job with more or fewer operands than it takes, before any of them is read.
pub(crate) fn require_operands(expected: usize, found: usize) -> Result<(), Problem> {
    if expected == found {
        return Ok(());
    }
    let words = format!("this operation takes {expected} operand(s), and {found} were given");
    Err(Problem::new(ErrorKind::Shape, words))
}
