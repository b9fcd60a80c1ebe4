//! A metadata service of our own (version 2 only) for hosts that play EC2 instances: `/INSTANCE/latest/...`.
//!
//! Used by tests that start an agent as one, and by the program `aws-proxy`. It answers for any instance: who is whom is
//! told by the endpoint that an agent is given. Answers are scripted per instance and path. Described in
//! `tests/README-aws-proxy.md`; it must not answer a question that has no token.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

mod answer;
mod script;
#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use script::{Asked, Violation};

use script::Script;

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";
/// AWS's longest life of a token, seconds.
const LONGEST: u64 = 21_600;
/// The path that scripts the answers to requests for tokens.
pub const TOKEN_PATH: &str = "api/token";
/// In place of an instance: every instance that has no script of its own for a path.
pub const EVERY: &str = "*";

/// A running service; it ends when this is dropped.
pub struct Metadata {
    address: SocketAddr,
    script: Arc<Script>,
    task: JoinHandle<()>,
}

impl Metadata {
    /// Starts on a free port of the loopback; every instance is of this type.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start(instance_type: &str) -> Self {
        Self::start_on("127.0.0.1:0", instance_type)
            .await
            .expect("loopback has free ports")
    }

    /// Starts on `listen`.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start_on(listen: &str, instance_type: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let script = Arc::new(Script::new(instance_type));
        let router = Router::new()
            .route("/__metadata/script", post(take_script))
            .route("/__metadata/asked/{instance}", get(tell_asked))
            .route("/{instance}/latest/api/token", put(token))
            .route("/{instance}/latest/{*path}", get(read))
            .with_state(script.clone());
        let task = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            script,
            task,
        })
    }

    /// The table of an agent's config that makes its host this instance.
    #[must_use]
    pub fn of(&self, instance: &str) -> String {
        format!("[metadata]\nendpoint = \"{}\"\n", self.endpoint(instance))
    }

    /// What an instance is to ask in place of `http://169.254.169.254`.
    #[must_use]
    pub fn endpoint(&self, instance: &str) -> String {
        format!("http://{}/{instance}", self.address)
    }

    /// Scripts what `instance` (or [`EVERY`]) is answered at `path`, for instance `meta-data/spot/instance-action`, or
    /// [`TOKEN_PATH`]. The answers are given in order, the last one for ever. An empty list ends the script.
    pub fn say(&self, instance: &str, path: &str, answers: impl IntoIterator<Item = Answer>) {
        self.script
            .set(instance, path, answers.into_iter().collect());
    }

    /// Announces the end of a spot instance: `action` is `terminate`, `stop` or `hibernate`, `time` RFC 3339.
    pub fn spot(&self, instance: &str, action: &str, time: &str) {
        let body = format!("{{\"action\": \"{action}\", \"time\": \"{time}\"}}");
        self.say(
            instance,
            "meta-data/spot/instance-action",
            [Answer::text(body)],
        );
    }

    /// Recommends to replace an instance, since `time` (RFC 3339).
    pub fn rebalance(&self, instance: &str, time: &str) {
        let path = "meta-data/events/recommendations/rebalance";
        let body = format!("{{\"noticeTime\": \"{time}\"}}");
        self.say(instance, path, [Answer::text(body)]);
    }

    /// What the group wants the instance to become, for instance `Terminated`.
    pub fn target_state(&self, instance: &str, state: &str) {
        let path = "meta-data/autoscaling/target-lifecycle-state";
        self.say(instance, path, [Answer::text(state)]);
    }

    /// The scheduled events of an instance, a JSON list as AWS's.
    pub fn scheduled(&self, instance: &str, events: &serde_json::Value) {
        let path = "meta-data/events/maintenance/scheduled";
        self.say(instance, path, [Answer::text(events.to_string())]);
    }

    /// The identity document of an instance and its `rsa2048` signature (base64 without armour).
    pub fn identity(&self, instance: &str, document: &str, rsa2048: &str) {
        let base = "dynamic/instance-identity";
        self.say(
            instance,
            &format!("{base}/document"),
            [Answer::text(document)],
        );
        self.say(
            instance,
            &format!("{base}/rsa2048"),
            [Answer::text(rsa2048)],
        );
    }

    /// Lets tokens live no longer than this, whatever is asked.
    pub fn shorten_tokens(&self, life: Duration) {
        self.script.shorten_tokens(Some(life));
    }

    /// Makes every token that was given invalid.
    pub fn expire_tokens(&self) {
        self.script.expire_tokens();
    }

    /// What `instance` has asked so far.
    #[must_use]
    pub fn asked(&self, instance: &str) -> Asked {
        self.script.asked(instance)
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn token(
    State(script): State<Arc<Script>>,
    Path(instance): Path<String>,
    headers: HeaderMap,
) -> Response {
    script.note_put(&instance);
    if let Some(answer) = script.next(&instance, TOKEN_PATH)
        && !answer.passes()
    {
        return answer.give().await;
    }
    if headers.contains_key("x-forwarded-for") {
        return StatusCode::FORBIDDEN.into_response();
    }
    let asked = headers.get(TTL).and_then(|v| v.to_str().ok());
    let Some(seconds) = asked
        .and_then(|t| t.parse::<u64>().ok())
        .filter(|s| (1..=LONGEST).contains(s))
    else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let token = script.give_token(&instance, Duration::from_secs(seconds));
    ([(TTL, HeaderValue::from(seconds))], token).into_response()
}

async fn read(
    State(script): State<Arc<Script>>,
    Path((instance, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let token = headers.get(TOKEN).and_then(|v| v.to_str().ok());
    script.note_get(&instance, &path, token.is_some());
    if !token.is_some_and(|t| script.takes_token(&instance, t)) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match script.next(&instance, &path) {
        Some(answer) => answer.give().await,
        None => script.unscripted(&instance, &path).give().await,
    }
}

/// A script as the admin path takes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewScript {
    instance: String,
    path: String,
    answers: Vec<Answer>,
}

async fn take_script(State(script): State<Arc<Script>>, body: Bytes) -> Response {
    match serde_json::from_slice::<NewScript>(&body) {
        Ok(new) => {
            script.set(&new.instance, &new.path, new.answers);
            Body::from("{\"ok\":true}").into_response()
        }
        Err(e) => (StatusCode::BAD_REQUEST, format!("{{\"error\":\"{e}\"}}")).into_response(),
    }
}

async fn tell_asked(State(script): State<Arc<Script>>, Path(instance): Path<String>) -> Response {
    match serde_json::to_string(&script.asked(&instance)) {
        Ok(text) => text.into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}
