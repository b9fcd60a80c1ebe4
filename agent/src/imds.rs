//! EC2 instance metadata, version 2 only: no token, no question. Over plain HTTP/1 to a link-local address, never
//! through a proxy.
//!
//! Used by `watch`, which asks in rounds for facts and notices. It must not fall back to version 1 and must not delay
//! anything else (AG-20).

pub mod documents;
pub mod endpoint;
pub mod pace;
pub mod watch;

use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

pub use endpoint::Endpoint;

/// One question may take so long. A hop limit that is too low shows as a time-out of the PUT.
const LIMIT: Duration = Duration::from_secs(2);
const CONNECT: Duration = Duration::from_secs(1);
/// Life of a token.
const TOKEN: Duration = Duration::from_secs(21_600);
/// A token is replaced when it has so long left.
const TOKEN_REST: Duration = Duration::from_secs(15);
const MAX_BODY: usize = 64 << 10;
/// Header of a token's life, seconds: asked for, and answered.
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";

/// Why metadata could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImdsError {
    /// The service refuses tokens.
    #[error("metadata is disabled for this instance (status {0})")]
    Disabled(u16),
    /// A fresh token was refused.
    #[error("the metadata service refuses a fresh token")]
    Refused,
    /// No connection or no answer.
    #[error("no answer from the metadata service{hint}: {reason}")]
    NoAnswer {
        /// " (is the hop limit too low?)" or nothing.
        hint: &'static str,
        /// What the connection said.
        reason: String,
    },
    /// Another status.
    #[error("the metadata service answers with status {0}")]
    Status(u16),
}

/// A client with its token.
#[derive(Debug)]
pub struct Imds {
    endpoint: Endpoint,
    token: Option<(String, Instant)>,
}

/// Questions that are asked together: at most one token is made for all of them.
#[derive(Debug)]
pub struct Round<'a> {
    imds: &'a mut Imds,
    /// A token was made in this round.
    made: bool,
}

/// An answer of the service.
struct Answer {
    status: StatusCode,
    /// Life of the token in it, where it says one.
    ttl: Option<Duration>,
    text: String,
}

impl Imds {
    /// Asks nothing yet.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            token: None,
        }
    }

    /// Begins a round.
    pub fn round(&mut self) -> Round<'_> {
        Round {
            imds: self,
            made: false,
        }
    }

    /// A round of one question.
    ///
    /// # Errors
    /// As [`Round::get`].
    pub async fn get(&mut self, path: &str) -> Result<Option<String>, ImdsError> {
        self.round().get(path).await
    }

    /// The token there is, when it is valid for some time.
    fn valid(&self) -> Option<String> {
        let (token, until) = self.token.as_ref()?;
        (Instant::now() + TOKEN_REST < *until).then(|| token.clone())
    }

    async fn ask(&mut self, path: &str, token: &str) -> Result<Option<String>, ImdsError> {
        let header = ("x-aws-ec2-metadata-token", token.to_owned());
        let answer = self
            .send(Method::GET, path, header)
            .await
            .map_err(|reason| ImdsError::NoAnswer { hint: "", reason })?;
        match answer.status {
            StatusCode::OK => Ok(Some(answer.text)),
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::UNAUTHORIZED => {
                self.token = None;
                Err(ImdsError::Refused)
            }
            other => Err(ImdsError::Status(other.as_u16())),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        header: (&'static str, String),
    ) -> Result<Answer, String> {
        timeout(LIMIT, self.exchange(method, path, header))
            .await
            .unwrap_or_else(|_| Err("timed out".to_owned()))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        header: (&'static str, String),
    ) -> Result<Answer, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let address = (self.endpoint.host.as_str(), self.endpoint.port);
        let stream = timeout(CONNECT, TcpStream::connect(address))
            .await
            .map_err(|_| "connecting timed out".to_owned())?
            .map_err(|error| said(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| said(&error))?;
        let request = Request::builder()
            .method(method)
            .uri(format!("{}/latest/{path}", self.endpoint.prefix))
            .header("host", self.endpoint.authority())
            .header(header.0, header.1)
            .body(Empty::<Bytes>::new())
            .map_err(|error| said(&error))?;
        let answer = async {
            let response = sender
                .send_request(request)
                .await
                .map_err(|error| said(&error))?;
            let status = response.status();
            let ttl = response
                .headers()
                .get(TTL)
                .and_then(|value| value.to_str().ok()?.trim().parse().ok())
                .map(Duration::from_secs);
            let body = Limited::new(response.into_body(), MAX_BODY)
                .collect()
                .await
                .map_err(|error| said(&error))?;
            let text = String::from_utf8(body.to_bytes().to_vec()).map_err(|error| said(&error))?;
            Ok(Answer { status, ttl, text })
        };
        let connection = async {
            // Its error reaches the request as well.
            let _ended = connection.await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = answer => answer,
            () = connection => Err("connection ended".to_owned()),
        }
    }
}

impl Round<'_> {
    /// The text at `path` below /latest/, `None` when there is none (404).
    ///
    /// # Errors
    /// See [`ImdsError`]. A token that has expired is replaced once, unless this round has made one already.
    pub async fn get(&mut self, path: &str) -> Result<Option<String>, ImdsError> {
        let token = self.token().await?;
        match self.imds.ask(path, &token).await {
            Err(ImdsError::Refused) if !self.made => {
                let token = self.token().await?;
                self.imds.ask(path, &token).await
            }
            other => other,
        }
    }

    /// The token there is, or a new one.
    async fn token(&mut self) -> Result<String, ImdsError> {
        if let Some(token) = self.imds.valid() {
            return Ok(token);
        }
        if self.made {
            return Err(ImdsError::Refused);
        }
        self.made = true;
        let asked = Instant::now();
        let header = (TTL, TOKEN.as_secs().to_string());
        let answer = self
            .imds
            .send(Method::PUT, "api/token", header)
            .await
            .map_err(|reason| ImdsError::NoAnswer {
                hint: " (is the hop limit too low?)",
                reason,
            })?;
        match answer.status {
            StatusCode::OK => {
                let life = answer.ttl.unwrap_or(TOKEN).min(TOKEN);
                self.imds.token = Some((answer.text.clone(), asked + life));
                Ok(answer.text)
            }
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                Err(ImdsError::Disabled(answer.status.as_u16()))
            }
            other => Err(ImdsError::Status(other.as_u16())),
        }
    }
}
