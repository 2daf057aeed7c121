//! Bodies: received no slower than the least rate, sent as they are read from the disk.

use crate::digest::Digest;
use crate::objects::Upload;
use crate::problem::Problem;
use crate::settings::Limits;
use axum::body::Body;
use axum::body::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use sudare_ring::ErrorKind;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 20;
/// Bytes that are read at once for an answer.
const CHUNK: usize = 1 << 18;
/// What is read of a refused body, so that its sender gets to the answer: bytes and time.
const LINGER: (u64, Duration) = (64 << 20, Duration::from_secs(5));

/// Runs what waits for the disk on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let fault = |_| Problem::new(ErrorKind::Internal, "the server failed; its operator should report it");
    tokio::task::spawn_blocking(work).await.map_err(fault)?
}

/// Reads a body whose answer is known already, for a while: a client that is still sending would otherwise see its
/// connection reset and not the answer.
pub(crate) fn linger(mut body: Body) {
    tokio::spawn(timeout(LINGER.1, async move {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len) as u64;
            if read > LINGER.0 {
                break;
            }
        }
    }));
}

/// The clock of a body.
struct Pace {
    started: Instant,
    received: u64,
    stall: Duration,
    rate: u64,
}

impl Pace {
    fn new(limits: &Limits) -> Self {
        Self { started: Instant::now(), received: 0, stall: limits.stall, rate: limits.rate }
    }

    /// The next bytes; none at the end.
    async fn next(&mut self, body: &mut Body) -> Result<Option<Bytes>, Problem> {
        let slow = || Problem::new(ErrorKind::Slow, "the body is too slow; send smaller pieces over a better line");
        loop {
            let frame = timeout(self.stall, body.frame()).await.map_err(|_| slow())?;
            let Some(frame) = frame else { return Ok(None) };
            let broken = |_| Problem::request("the body ended before its end; go on where the server says");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            self.received += data.len() as u64;
            let elapsed = self.started.elapsed();
            if elapsed > self.stall && self.received / elapsed.as_secs().max(1) < self.rate {
                return Err(slow());
            }
            return Ok(Some(data));
        }
    }
}

/// A small body, whole.
pub(crate) async fn small(mut body: Body, most: usize, limits: &Limits) -> Result<Vec<u8>, Problem> {
    let (mut out, mut pace) = (Vec::new(), Pace::new(limits));
    while let Some(data) = pace.next(&mut body).await? {
        if out.len() + data.len() > most {
            linger(body);
            return Err(Problem::new(ErrorKind::TooLarge, format!("this body has at most {most} bytes; send less")));
        }
        out.extend_from_slice(&data);
    }
    Ok(out)
}

/// Writes a body as it arrives. What arrived stays, whatever ends it.
pub(crate) async fn receive(mut body: Body, upload: Upload, limits: &Limits) -> Result<Upload, Problem> {
    let (mut upload, mut gathered, mut pace) = (upload, Vec::new(), Pace::new(limits));
    loop {
        let next = pace.next(&mut body).await;
        if let Ok(Some(data)) = &next {
            gathered.extend_from_slice(data);
            if gathered.len() < GATHERED {
                continue;
            }
        }
        let bytes = std::mem::take(&mut gathered);
        if !bytes.is_empty() {
            let (back, written) = blocking(move || {
                let written = upload.write(&bytes);
                Ok((upload, written))
            })
            .await?;
            if let Err(problem) = written {
                linger(body);
                return Err(problem);
            }
            upload = back;
        }
        if next?.is_none() {
            return Ok(upload);
        }
    }
}

/// What a task sends as it has it.
pub(crate) struct Channel {
    from: mpsc::Receiver<io::Result<Bytes>>,
    left: Option<u64>,
}

impl Channel {
    /// A body of a length, if it is known, and where to put it.
    pub fn open(length: Option<u64>) -> (mpsc::Sender<io::Result<Bytes>>, Body) {
        let (to, from) = mpsc::channel(4);
        (to, Body::new(Self { from, left: length }))
    }
}

impl hyper::body::Body for Channel {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.from.poll_recv(cx).map(|next| {
            let next = next?;
            if let (Ok(data), Some(left)) = (&next, &mut self.left) {
                *left = left.saturating_sub(data.len() as u64);
            }
            Some(next.map(Frame::data))
        })
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A part of a file as a body.
pub(crate) fn of_file(mut file: File, start: u64, length: u64) -> Body {
    let (to, body) = Channel::open(Some(length));
    tokio::spawn(async move {
        let mut left = length;
        let mut first = true;
        while left > 0 {
            let read = tokio::task::spawn_blocking(move || {
                let mut buffer = vec![0; CHUNK.min(left as usize)];
                let read = (|| {
                    if first {
                        file.seek(SeekFrom::Start(start))?;
                    }
                    file.read_exact(&mut buffer)
                })();
                (file, read.map(|()| Bytes::from(buffer)))
            });
            let Ok((back, read)) = read.await else { return };
            (file, first) = (back, false);
            left -= read.as_ref().map_or(left, |data| data.len() as u64);
            if to.send(read).await.is_err() {
                return;
            }
        }
    });
    body
}

/// The entity tag of an object: its digest.
pub(crate) fn tag(digest: Digest) -> String {
    format!("\"{digest}\"")
}
