//! One scripted answer of the metadata service, good or bad.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

const BETWEEN_HALVES: Duration = Duration::from_millis(20);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// What is said.
    pub body: String,
    /// It comes so much later, milliseconds.
    pub delay_ms: u64,
    /// Only half of the body comes, then the connection ends.
    pub half: bool,
    /// Nothing comes, and the connection stays.
    pub silent: bool,
    /// Only at `api/token`: the request is answered as without a script (a good token, or the refusal it deserves).
    pub pass: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: 200,
            body: String::new(),
            delay_ms: 0,
            half: false,
            silent: false,
            pass: false,
        }
    }
}

impl Answer {
    /// A good answer.
    #[must_use]
    pub fn text(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            ..Self::default()
        }
    }

    /// Only a status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    /// 404, as for a path that has nothing to say.
    #[must_use]
    pub fn missing() -> Self {
        Self::status(404)
    }

    /// Half of a body, then the connection ends.
    #[must_use]
    pub fn half(body: impl Into<String>) -> Self {
        Self {
            half: true,
            ..Self::text(body)
        }
    }

    /// Nothing at all.
    #[must_use]
    pub fn silence() -> Self {
        Self {
            silent: true,
            ..Self::default()
        }
    }

    /// Only at `api/token`: what would be answered without a script.
    #[must_use]
    pub fn pass() -> Self {
        Self {
            pass: true,
            ..Self::default()
        }
    }

    /// The same, later.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    pub(super) fn passes(&self) -> bool {
        self.pass
    }

    /// Gives it.
    pub(super) async fn give(self) -> Response {
        if self.silent {
            std::future::pending::<()>().await;
        }
        // sleeps: the script wants a late answer
        tokio::time::sleep(Duration::from_millis(self.delay_ms)).await;
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if !self.half {
            return (status, self.body).into_response();
        }
        let whole = Bytes::from(self.body);
        let length = whole.len();
        let first = whole.slice(..length / 2);
        let (send, parts) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            // A client that has gone needs no second half.
            let _ = send.send(Ok(first)).await;
            // sleeps: the first half has to be on the wire before the connection ends
            tokio::time::sleep(BETWEEN_HALVES).await;
            let _ = send.send(Err(std::io::Error::other("only half"))).await;
        });
        let parts = tokio_stream::wrappers::ReceiverStream::new(parts);
        Response::builder()
            .status(status)
            .header("content-length", length)
            .body(Body::from_stream(parts))
            .unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }
}
