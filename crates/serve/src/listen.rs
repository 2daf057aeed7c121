//! Connections: timers for every stage, places, TLS, and an end in time.

use crate::metrics::Metrics;
use crate::places::{Place, Places};
use crate::settings::Limits;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Most headers of a request, and most bytes of its head.
const MOST_HEADERS: usize = 64;
const MOST_HEAD: usize = 16 << 10;

/// Waits until a flag is set.
pub(crate) async fn set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|set| *set).await;
}

/// Accepts with the certificate of the moment until it is asked to stop, then waits until the last connection has ended.
pub(crate) async fn accept(
    listener: TcpListener,
    tls: impl Fn() -> Option<TlsAcceptor>,
    router: Router,
    limits: &Limits,
    metrics: Arc<Metrics>,
    mut stop: watch::Receiver<bool>,
) {
    let (places, mut open) = (Places::new(limits), JoinSet::new());
    loop {
        while open.try_join_next().is_some() {}
        let (stream, address) = tokio::select! {
            () = set(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                // Too many open files, or a connection that ended before it began.
                Err(_) => {
                    sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
        };
        let (tls, router, limits) = (tls(), router.clone(), limits.clone());
        let (metrics, stop, place) = (metrics.clone(), stop.clone(), places.enter(address.ip()));
        open.spawn(async move {
            metrics.connections.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                () = place.lost() => {}
                () = serve(stream, tls, router, &limits, stop, place.clone()) => {}
            }
            metrics.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: &Limits,
    stop: watch::Receiver<bool>,
    place: Arc<Place>,
) {
    let _ = stream.set_nodelay(true);
    let stream = Moving::new(stream, limits.stall);
    match tls {
        None => speak(stream, router, limits, stop, place).await,
        Some(acceptor) => {
            if let Ok(Ok(stream)) = timeout(limits.head, acceptor.accept(stream)).await {
                speak(stream, router, limits, stop, place).await;
            }
        }
    }
}

/// Answers the requests of a connection.
pub(crate) async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    router: Router,
    limits: &Limits,
    mut stop: watch::Receiver<bool>,
    place: Arc<Place>,
) {
    let router = TowerToHyperService::new(router);
    // Each request knows the place of its connection.
    let service = service_fn(move |mut request| {
        let extensions: &mut axum::http::Extensions = hyper::Request::extensions_mut(&mut request);
        extensions.insert(place.clone());
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = set(&mut stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// A connection whose writes end if the other side takes nothing for too long.
struct Moving {
    stream: TcpStream,
    stall: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Moving {
    fn new(stream: TcpStream, stall: Duration) -> Self {
        Self { stream, stall, deadline: None }
    }

    fn moved<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.deadline = None;
            return done;
        }
        let until = Instant::now() + self.stall;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Moving {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Moving {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.moved(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.moved(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(cx);
        self.moved(cx, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.moved(cx, done)
    }
}
