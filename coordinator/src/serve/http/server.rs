//! Connections of the HTTP listener, within limits: few of them, small heads, nobody who dawdles. Used by `serve/http`.

use super::{Page, router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at once; others wait in the kernel's queue.
const CONNECTIONS: usize = 64;
/// For the head of a request, and between two requests: longer than the usual interval of a scrape.
const HEAD: Duration = Duration::from_secs(90);
/// A connection is closed after so long, in the midst of an answer as well: who reads slowly holds no place for ever.
const LIFE: Duration = Duration::from_secs(15 * 60);
/// The head of a request, bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// After a connection could not be taken (no descriptors left).
const PAUSE: Duration = Duration::from_millis(200);

/// Serves the page until it is dropped.
pub async fn serve(listener: TcpListener, page: Arc<Page>) {
    let router = router(page);
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    // Dropped with this future, and all connections with it.
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                open.spawn(async move {
                    answer(stream, router).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for monitoring was not taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, router: axum::Router) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    match tokio::time::timeout(LIFE, serving).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection for monitoring broke"),
    }
}
