//! The paths of the protocol.

use crate::body::{self, Channel, blocking};
use crate::digest::Digest;
use crate::events::{Caller, Event, Log};
use crate::jobs::{Job, Jobs};
use crate::listen;
use crate::metrics::{Gauges, Metrics};
use crate::objects::{Admission, Objects, Piece};
use crate::places::Place;
use crate::problem::Problem;
use crate::problem::answer::UPLOAD_OFFSET;
use crate::request::{Message, State as JobState};
use crate::service::Control;
use crate::settings::Limits;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, MatchedPath, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use hyper::body::Body as _;
use serde::Deserialize;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};
use sudare_models::{Shared as _, either};
use sudare_ring::ErrorKind;
use sudare_ring::error::told;
use sudare_store::layout::hex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Most bytes of a request for a job.
const MAX_REQUEST: usize = 1 << 18;
/// Most bytes of an idempotency key.
const MAX_KEY: usize = 256;
/// Longest that an answer waits for a job.
const MOST_WAIT: u64 = 60;
/// How often progress is told, and how long one stream of it lasts.
const EVENTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(600));

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What all paths share.
pub(crate) struct Shared {
    pub objects: Arc<Objects>,
    pub jobs: Arc<Jobs>,
    pub control: Control,
    pub behind_proxy: bool,
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
    pub log: Log,
    pub stop: watch::Receiver<bool>,
}

type App = Arc<Shared>;
type Answer = Result<Response, Problem>;

/// All paths and their methods: those of `openapi.json`.
pub(crate) fn router(shared: App) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/openapi.json", get(openapi))
        .route("/v1/config", get(config))
        .route("/v1/panels/{name}/sites", get(sites))
        .route("/v1/models/{name}/plan", get(model_plan))
        .route("/v1/tables", get(tables))
        .route("/v1/tables/{name}", get(table).delete(delete_table))
        .route("/v1/rooms", get(rooms))
        .route("/v1/rooms/{name}", get(messages).delete(delete_room))
        .route("/v1/rooms/{name}/{message}", put(post_message))
        .route("/v1/objects", get(objects))
        .route("/v1/objects/{digest}", get(object).put(put_object).delete(delete_object))
        .route("/v1/jobs", post(submit).get(list))
        .route("/v1/jobs/{id}", get(job).delete(delete_job))
        .route("/v1/jobs/{id}/events", get(events))
        .route("/v1/jobs/{id}/result", get(result))
        .fallback(|| async { Problem::not_found("path") })
        .method_not_allowed_fallback(|| async {
            Problem::new(ErrorKind::Method, "this path does not take this method")
        })
        .layer(from_fn_with_state(shared.clone(), watched))
        .with_state(shared)
}

/// The paths for monitoring, on an address of their own.
pub(crate) fn monitoring(shared: App) -> Router {
    Router::new().route("/metrics", get(metrics)).route("/healthz", get(health)).with_state(shared)
}

/// What an answer says of itself to the log.
#[derive(Clone, Default)]
struct Noted {
    job: Option<String>,
    received: u64,
}

/// Whose token a request shows, looked up once.
#[derive(Clone)]
struct Shown(Result<Caller, Problem>);

/// Counts and logs answers: who asks from where, the pattern of the path and never what stands in it but a job, the status,
/// bytes and seconds.
async fn watched(State(app): State<App>, path: Option<MatchedPath>, mut request: Request, next: Next) -> Response {
    let (started, method) = (Instant::now(), request.method().clone());
    let place = request.extensions().get::<Arc<Place>>().cloned();
    let address = app.address(request.headers(), place.as_deref());
    let shown = app.caller(request.headers(), address);
    request.extensions_mut().insert(Shown(shown.clone()));
    let placed = match (&place, &shown) {
        (Some(place), Ok(caller)) => place.belongs_to(&caller.tenant),
        _ => Ok(()),
    };
    let keep = shown.is_ok() && placed.is_ok();
    let mut response = match placed {
        Ok(()) => next.run(request).await,
        Err(problem) => {
            body::linger(request.into_body());
            problem.into_response()
        }
    };
    // Who shows no token has the place for one answer.
    if !keep {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let status = response.status().as_u16();
    app.metrics.answered(status);
    let Noted { job, received } = response.extensions_mut().remove().unwrap_or_default();
    let sent = if method == Method::HEAD { None } else { response.body().size_hint().exact() };
    let name = |of: fn(&Caller) -> &str| shown.as_ref().map_or("-", of).to_owned();
    let mut event = Event::log("request")
        .with("address", address.to_string())
        .with("tenant", name(|caller| &caller.tenant))
        .with("token", name(|caller| &caller.token))
        .with("method", method.as_str())
        .with("path", path.as_ref().map_or("-", MatchedPath::as_str))
        .with("status", status);
    if let Some(job) = job {
        event = event.with("job", job);
    }
    let event = event.with("received", received).with("sent", sent.unwrap_or(0));
    let _ = (app.log)(&event.lasting(started.elapsed().as_secs_f64()));
    response
}

impl Shared {
    /// From where a request comes. A proxy adds the last address of its list; those before it are its client's words.
    fn address(&self, headers: &HeaderMap, place: Option<&Place>) -> IpAddr {
        let last = || {
            headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
        };
        let forwarded = if self.behind_proxy { last() } else { None };
        forwarded.unwrap_or_else(|| place.map_or(Ipv4Addr::UNSPECIFIED.into(), |place| place.address))
    }

    /// Whose token a request shows, as of now.
    fn caller(&self, headers: &HeaderMap, address: IpAddr) -> Result<Caller, Problem> {
        let none = || Problem::new(ErrorKind::Unauthorized, "give the tenant's token: Authorization: Bearer …");
        let (tokens, token) = (self.control.tokens(), bearer(headers).ok_or_else(none)?);
        let entry = tokens.shown(token, SystemTime::now())?;
        Ok(Caller { tenant: entry.tenant.clone(), token: entry.name.clone(), address })
    }

    /// Appends to the audit log first: what it cannot take is refused.
    fn audit(&self, event: Event) -> Result<(), Problem> {
        (self.log)(&event).map_err(Problem::from)
    }
}

/// A response that says which job it is of.
fn of_job(response: impl IntoResponse, job: &str) -> Response {
    let mut response = response.into_response();
    response.extensions_mut().insert(Noted { job: Some(job.to_owned()), received: 0 });
    response
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        match parts.extensions.get() {
            Some(Shown(shown)) => shown.clone(),
            None => Err(Problem::new(ErrorKind::Internal, "nobody looked at the token of this request")),
        }
    }
}

/// Whose request it is.
struct Tenant(Arc<str>);

impl FromRequestParts<App> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        Ok(Self(Caller::from_request_parts(parts, app).await?.tenant))
    }
}

/// What stands in a path for the part in braces.
struct Named(String);

impl FromRequestParts<App> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        // Escapes of bytes that are no text.
        let path = Path::<String>::from_request_parts(parts, app).await;
        path.map(|Path(name)| Self(name)).map_err(|e| Problem::request(e.body_text()))
    }
}

/// A digest of the path.
fn digest(text: &str) -> Result<Digest, Problem> {
    text.parse().map_err(|e: crate::digest::NoDigest| Problem::request(e.to_string()))
}

async fn health(State(app): State<App>) -> Answer {
    match *app.stop.borrow() {
        true => Err(Problem::new(ErrorKind::Stopping, "the server is stopping")),
        false => Ok("ok\n".into_response()),
    }
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], crate::OPENAPI).into_response()
}

async fn config(State(app): State<App>, Tenant(tenant): Tenant) -> Response {
    let limits = &app.limits;
    let served = app.jobs.engine.served();
    let models: Vec<_> = served
        .models
        .iter()
        .map(
            |served| json!({ "name": served.name, "plan": hex(&either!(&served.model, model => model.plan().hash())) }),
        )
        .collect();
    let panels: Vec<_> = served
        .panels
        .iter()
        .map(|served| {
            let (panel, pad) = (&served.panel, served.padding.map(|padding| padding.range()));
            json!({
                "name": served.name,
                "hash": panel.hash().to_string(),
                "sites": panel.sites(),
                "pad": pad,
                "asked": app.jobs.queries.asked(&tenant, &served.name),
                "most_queries": served.most_queries,
            })
        })
        .collect();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "object_bytes": limits.object_bytes,
        "tenant_bytes": limits.tenant_bytes,
        "tenant_jobs": limits.tenant_jobs,
        "tenant_uploads": limits.tenant_uploads,
        "keep_seconds": limits.keep.as_secs(),
        "panels": panels,
        "models": models,
    }))
    .into_response()
}

async fn sites(State(app): State<App>, _: Tenant, Named(name): Named) -> Answer {
    let panel = app.jobs.engine.panel(&name)?.panel.clone();
    let bytes = blocking(move || Ok(panel.description()?.to_bytes()?)).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

async fn model_plan(State(app): State<App>, _: Tenant, Named(name): Named) -> Answer {
    let plan = either!(app.jobs.engine.model(&name)?, model => model.plan().to_json().to_owned());
    Ok(([(header::CONTENT_TYPE, "application/json")], plan).into_response())
}

async fn tables(State(app): State<App>, Tenant(tenant): Tenant) -> Answer {
    let names = blocking(move || app.jobs.engine.tables.list(&tenant)).await?;
    Ok(Json(names).into_response())
}

async fn table(State(app): State<App>, Tenant(tenant): Tenant, Named(name): Named) -> Answer {
    let view = blocking(move || app.jobs.engine.tables.view(&tenant, &name)).await?;
    Ok(Json(view).into_response())
}

async fn delete_table(State(app): State<App>, caller: Caller, Named(name): Named) -> Answer {
    if app.jobs.uses_table(&caller.tenant, &name) {
        return Err(Problem::new(ErrorKind::State, "a job that waits or runs names this table; cancel it first"));
    }
    let (tenant, engine) = (caller.tenant.clone(), app.clone());
    let view = name.clone();
    blocking(move || engine.jobs.engine.tables.manifest(&tenant, &view).map(drop)).await?;
    app.audit(caller.audit("removal").with("table", name.as_str()))?;
    app.jobs.engine.forget_table(&caller.tenant, &name);
    blocking(move || app.jobs.engine.tables.delete(&caller.tenant, &name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn rooms(State(app): State<App>, Tenant(tenant): Tenant) -> Response {
    Json(app.jobs.engine.rooms.list(&tenant)).into_response()
}

#[derive(Deserialize)]
struct Begin {
    #[serde(default)]
    begin: String,
}

async fn messages(
    State(app): State<App>,
    Tenant(tenant): Tenant,
    Named(name): Named,
    begin: Result<Query<Begin>, QueryRejection>,
) -> Answer {
    let Query(Begin { begin }) = begin.map_err(|e| Problem::request(e.body_text()))?;
    Ok(Json(app.jobs.engine.rooms.messages(&tenant, &name, &begin)?).into_response())
}

/// `PUT`: an object becomes a message, for good.
async fn post_message(
    State(app): State<App>,
    caller: Caller,
    names: Result<Path<(String, String)>, PathRejection>,
    body: Body,
) -> Answer {
    if *app.stop.borrow() {
        body::linger(body);
        return Err(Problem::new(ErrorKind::Stopping, "the server is stopping; try again later").retry(10));
    }
    let Path((room, name)) = names.map_err(|e| Problem::request(e.body_text()))?;
    let bytes = body::small(body, MAX_REQUEST, &app.limits).await?;
    let Message { object, .. } = serde_json::from_slice(&bytes)
        .map_err(|e| Problem::request(format!("the body is not a message: {}", told(e))))?;
    let (tenant, posted) = (caller.tenant.clone(), app.clone());
    let event = caller.audit("message").with("room", told(&room)).with("message", told(&name));
    let new = blocking(move || posted.jobs.engine.rooms.post(&tenant, &room, &name, object)).await?;
    if new {
        app.audit(event.with("object", object.to_string()))?;
    }
    let mut response = if new { StatusCode::CREATED } else { StatusCode::OK }.into_response();
    response.extensions_mut().insert(Noted { job: None, received: bytes.len() as u64 });
    Ok(response)
}

async fn delete_room(State(app): State<App>, caller: Caller, Named(name): Named) -> Answer {
    if app.jobs.uses_room(&caller.tenant, &name) {
        return Err(Problem::new(ErrorKind::State, "a job that waits or runs names this room; cancel it first"));
    }
    app.jobs.engine.rooms.check(&caller.tenant, &name)?;
    app.audit(caller.audit("removal").with("room", name.as_str()))?;
    blocking(move || {
        for object in app.jobs.engine.rooms.delete(&caller.tenant, &name)? {
            // What a job still names goes when it has been kept long enough.
            if !app.jobs.uses(&caller.tenant, object) {
                app.jobs.engine.forget(&caller.tenant, object);
                app.objects.delete(&caller.tenant, object)?;
            }
        }
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn objects(State(app): State<App>, Tenant(tenant): Tenant) -> Answer {
    let all = blocking(move || app.objects.list(&tenant)).await?;
    Ok(Json(all).into_response())
}

/// `GET` and `HEAD`: an object, or how much of it has arrived.
async fn object(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
    method: Method,
    headers: HeaderMap,
) -> Answer {
    let digest = digest(&name)?;
    if let Err(here) = app.objects.length(&caller.tenant, digest) {
        return Err(Problem::not_found("object").at(here));
    }
    send(&app, &caller, digest, &method, &headers).await
}

/// An object as an answer, or the part of it that is asked for.
async fn send(app: &App, caller: &Caller, digest: Digest, method: &Method, headers: &HeaderMap) -> Answer {
    let (objects, tenant) = (app.objects.clone(), caller.tenant.clone());
    let (file, length) = blocking(move || {
        let file = objects.open_object(&tenant, digest)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    })
    .await?;
    let wanted = headers.get(header::RANGE).and_then(|v| v.to_str().ok()).and_then(|text| range(text, length));
    let (status, start, end) = match wanted {
        None => (StatusCode::OK, 0, length),
        Some(Ok((start, end))) => (StatusCode::PARTIAL_CONTENT, start, end),
        Some(Err(())) => {
            let range = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, range).into_response());
        }
    };
    if method != Method::HEAD {
        // Of an object that is fetched in pieces, the first.
        if start == 0 {
            app.audit(caller.audit("fetch").with("object", digest.to_string()).with("bytes", length))?;
        }
        app.metrics.sent.fetch_add(end - start, Ordering::Relaxed);
    }
    let mut response = (status, body::of_file(file, start, end - start)).into_response();
    let out = response.headers_mut();
    let text = |text: String| axum::http::HeaderValue::try_from(text).map_err(|e| Problem::request(e.to_string()));
    out.insert(header::CONTENT_TYPE, text("application/octet-stream".into())?);
    out.insert(header::ACCEPT_RANGES, text("bytes".into())?);
    out.insert(header::ETAG, text(body::tag(digest))?);
    out.insert(header::CONTENT_LENGTH, (end - start).into());
    if status == StatusCode::PARTIAL_CONTENT {
        out.insert(header::CONTENT_RANGE, text(format!("bytes {start}-{}/{length}", end - 1))?);
    }
    Ok(response)
}

/// One range of bytes: start and end. Anything else asks for the whole.
fn range(text: &str, length: u64) -> Option<Result<(u64, u64), ()>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let count: u64 = last.parse().ok()?;
        return Some(if count == 0 { Err(()) } else { Ok((length.saturating_sub(count), length)) });
    }
    let first: u64 = first.parse().ok()?;
    let last: u64 = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    if first > last {
        return None;
    }
    Some(if first < length { Ok((first, last.saturating_add(1).min(length))) } else { Err(()) })
}

/// Which bytes a `PUT` brings: all of them, or those that `Content-Range: bytes 0-99/1000` says.
fn piece(headers: &HeaderMap) -> Result<Piece, Problem> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let length = headers.get(header::CONTENT_LENGTH).and_then(|v| number(v.to_str().ok()?));
    let length = length.ok_or_else(|| {
        Problem::new(ErrorKind::LengthRequired, "the length of the body is missing; give it as Content-Length")
    })?;
    let Some(value) = headers.get(header::CONTENT_RANGE) else { return Ok(Piece { start: 0, length, total: length }) };
    let read = || {
        let (range, total) = value.to_str().ok()?.trim().strip_prefix("bytes")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (start, total) = (number(first)?, number(total)?);
        let end = number(last)?.checked_add(1)?;
        (end.checked_sub(start)? == length && length > 0 && end <= total).then_some(Piece { start, length, total })
    };
    read().ok_or_else(|| Problem::request("Content-Range does not fit the body; write it as bytes FIRST-LAST/TOTAL"))
}

async fn put_object(
    State(app): State<App>,
    caller: Caller,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let admitted = (|| {
        if *app.stop.borrow() {
            return Err(Problem::new(ErrorKind::Stopping, "the server is stopping; try again later").retry(10));
        }
        app.objects.admit(&caller.tenant, digest(&name)?, piece(&headers)?)
    })();
    let upload = match admitted {
        Ok(Admission::Wanted(upload)) => upload,
        Ok(Admission::Present) => {
            body::linger(body);
            return Ok(StatusCode::OK.into_response());
        }
        Err(problem) => {
            body::linger(body);
            return Err(problem);
        }
    };
    let upload = body::receive(body, upload, &app.limits).await?;
    let (missing, offset, received) = (upload.missing(), upload.offset(), upload.written());
    app.metrics.received.fetch_add(received, Ordering::Relaxed);
    if missing > 0 {
        return Err(Problem::request("the body ended before its end; go on where the server says").at(offset));
    }
    let mut response = match blocking(move || upload.finish()).await? {
        Some(kind) => {
            app.audit(caller.audit("object").with("object", name).with("kind", kind).with("bytes", offset))?;
            StatusCode::CREATED.into_response()
        }
        None => (StatusCode::ACCEPTED, [(UPLOAD_OFFSET, offset.to_string())]).into_response(),
    };
    response.extensions_mut().insert(Noted { job: None, received });
    Ok(response)
}

async fn delete_object(State(app): State<App>, caller: Caller, Named(name): Named) -> Answer {
    let (digest, tenant) = (digest(&name)?, caller.tenant.clone());
    if app.jobs.uses(&tenant, digest) {
        return Err(Problem::new(ErrorKind::State, "a job that waits or runs names this object; cancel it first"));
    }
    if app.objects.is_message(&tenant, digest) {
        return Err(Problem::new(
            ErrorKind::State,
            "this object is a message of a room, and stays with it; delete the room",
        ));
    }
    if app.objects.length(&tenant, digest).is_ok() {
        app.audit(caller.audit("removal").with("object", digest.to_string()))?;
    }
    app.jobs.engine.forget(&tenant, digest);
    blocking(move || app.objects.delete(&tenant, digest)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn submit(State(app): State<App>, caller: Caller, headers: HeaderMap, body: Body) -> Answer {
    let key = match headers.get(IDEMPOTENCY_KEY).map(|v| v.to_str()) {
        None => None,
        Some(Ok(key)) if (1..=MAX_KEY).contains(&key.len()) => Some(key.to_owned()),
        Some(_) => return Err(Problem::request("an idempotency key has 1 to 256 visible characters")),
    };
    // A repeated request is answered also where there is no room for a new one.
    if key.is_none()
        && let Err(problem) = app.jobs.room(&caller.tenant)
    {
        body::linger(body);
        return Err(problem);
    }
    let bytes = body::small(body, MAX_REQUEST, &app.limits).await?;
    let request =
        serde_json::from_slice(&bytes).map_err(|e| Problem::request(format!("the body is not a job: {}", told(e))))?;
    let (jobs, received) = (app.jobs.clone(), bytes.len() as u64);
    let (job, new) = blocking(move || jobs.submit(&caller, request, key.as_deref())).await?;
    let view = job.view();
    let (id, place) = (view.id.clone(), format!("/v1/jobs/{}", view.id));
    let status = if new { StatusCode::ACCEPTED } else { StatusCode::OK };
    let mut response = (status, [(header::LOCATION, place)], Json(view)).into_response();
    response.extensions_mut().insert(Noted { job: Some(id), received });
    Ok(response)
}

async fn list(State(app): State<App>, Tenant(tenant): Tenant) -> Response {
    Json(app.jobs.list(&tenant)).into_response()
}

type Waiting = Result<Query<Wait>, QueryRejection>;

#[derive(Deserialize)]
struct Wait {
    #[serde(default)]
    wait: u64,
}

/// A job; with `?wait=SECONDS` as soon as it has ended, or after so long.
async fn job(State(app): State<App>, Tenant(tenant): Tenant, Named(id): Named, wait: Waiting) -> Answer {
    let job = app.jobs.get(&tenant, &id)?;
    let Query(Wait { wait: seconds }) = wait.map_err(|e| Problem::request(e.body_text()))?;
    if seconds > 0 {
        until_ended(&job, Duration::from_secs(seconds.min(MOST_WAIT)), &app).await;
    }
    Ok(of_job(Json(job.view()), &id))
}

/// Waits for the end of a job, for some time or until the server stops.
async fn until_ended(job: &Job, most: Duration, app: &App) {
    let (mut ended, mut stop) = (job.ended(), app.stop.clone());
    let _ = timeout(most, async {
        tokio::select! {
            () = listen::set(&mut ended) => {}
            () = listen::set(&mut stop) => {}
        }
    })
    .await;
}

async fn delete_job(State(app): State<App>, caller: Caller, Named(id): Named) -> Answer {
    let (jobs, response) = (app.jobs.clone(), of_job(StatusCode::NO_CONTENT, &id));
    jobs.get(&caller.tenant, &id)?;
    app.audit(caller.audit("removal").with("job", id.as_str()))?;
    blocking(move || jobs.delete(&caller.tenant, &id)).await?;
    Ok(response)
}

/// Server-sent events: the job whenever it changes, the last time when it has ended.
async fn events(State(app): State<App>, caller: Caller, Named(id): Named) -> Answer {
    let job = app.jobs.get(&caller.tenant, &id)?;
    let (to, body) = Channel::open(None);
    tokio::spawn(async move {
        let (started, mut last) = (Instant::now(), String::new());
        let mut stop = app.stop.clone();
        let allowed = || app.control.tokens().has(&caller.tenant, &caller.token, SystemTime::now());
        while started.elapsed() < EVENTS.1 && !*stop.borrow() && allowed() {
            let view = job.view();
            let text = serde_json::to_string(&view).unwrap_or_default();
            if text != last {
                if to.send(Ok(Bytes::from(format!("data: {text}\n\n")))).await.is_err() {
                    return;
                }
                last = text;
            }
            if view.state.ended() {
                return;
            }
            let mut ended = job.ended();
            tokio::select! {
                () = listen::set(&mut ended) => {}
                () = listen::set(&mut stop) => return,
                () = to.closed() => return,
                () = sleep(EVENTS.0) => {}
            }
        }
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok(of_job((headers, body), &id))
}

async fn result(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named,
    method: Method,
    headers: HeaderMap,
) -> Answer {
    match app.jobs.get(&caller.tenant, &id)?.view().state {
        JobState::Done { result, .. } => Ok(of_job(send(&app, &caller, result, &method, &headers).await?, &id)),
        JobState::Failed { problem } => Err(problem),
        state => Err(Problem::new(ErrorKind::State, format!("the job is {}, and it has no result", state.name()))),
    }
}

async fn metrics(State(app): State<App>) -> Response {
    let (queued, running) = app.jobs.counts();
    let gauges = Gauges { queued, running, stored: app.objects.bytes(), keys: app.jobs.engine.bytes() };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.render(&gauges)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_the_standard_has_them() {
        assert_eq!(range("bytes=0-", 10), Some(Ok((0, 10))));
        assert_eq!(range("bytes=2-5", 10), Some(Ok((2, 6))));
        assert_eq!(range("bytes=2-99", 10), Some(Ok((2, 10))));
        assert_eq!(range("bytes=-3", 10), Some(Ok((7, 10))));
        assert_eq!(range("bytes=10-", 10), Some(Err(())));
        for whole in ["", "bytes=", "bytes=a-b", "bytes=5-2", "items=0-1", "bytes=0-1,3-4"] {
            assert_eq!(range(whole, 10), None, "{whole}");
        }
    }

    #[test]
    fn pieces_say_what_they_bring() {
        let read = |length: &str, range: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_LENGTH, length.parse().unwrap());
            if let Some(range) = range {
                headers.insert(header::CONTENT_RANGE, range.parse().unwrap());
            }
            piece(&headers).map(|p| (p.start, p.length, p.total))
        };
        assert_eq!(read("7", None).unwrap(), (0, 7, 7));
        assert_eq!(read("7", Some("bytes 3-9/20")).unwrap(), (3, 7, 20));
        for wrong in
            ["bytes 3-8/20", "bytes 3-9/9", "bytes 9-3/20", "bytes 3-9/*", "bytes 3-18446744073709551615/20", ""]
        {
            assert_eq!(read("7", Some(wrong)).unwrap_err().kind(), ErrorKind::Request, "{wrong}");
        }
        assert_eq!(piece(&HeaderMap::new()).unwrap_err().kind(), ErrorKind::LengthRequired);
    }

    /// What is said of the protocol is what is there.
    #[test]
    fn the_document_has_every_path() {
        let document: serde_json::Value = serde_json::from_str(crate::OPENAPI).unwrap();
        let mut told: Vec<String> = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys().filter(|m| *m != "parameters") {
                told.push(format!("{method} {path}"));
            }
        }
        let source = include_str!("routes.rs").split("fn router(").nth(1).unwrap().split("\n}").next().unwrap();
        let mut there: Vec<String> = Vec::new();
        for route in source.split(".route(\"").skip(1) {
            let (path, rest) = route.split_once('"').unwrap();
            let handlers = rest.split("\n").next().unwrap();
            for method in ["get", "put", "post", "delete"] {
                if handlers.contains(&format!("{method}(")) {
                    there.push(format!("{method} {path}"));
                }
            }
        }
        // HEAD is answered as GET is.
        there.push("head /v1/objects/{digest}".into());
        told.sort();
        there.sort();
        assert_eq!(told, there);
        let kinds = document["components"]["schemas"]["Problem"]["properties"]["kind"]["enum"].as_array().unwrap();
        let known: Vec<&str> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(kinds.iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>(), known);
    }
}
