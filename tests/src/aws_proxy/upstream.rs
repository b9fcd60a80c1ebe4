//! The way to moto: forwards calls, and makes the proxy's own.
//!
//! Used by everything in the proxy that asks moto for something. It must not change what it carries.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::query::{Query, only_reads};
use super::reply::Reply;
use super::views::Mark;
use super::xml::Element;

/// Longer than any call to moto takes, even beside a build.
const DEADLINE: Duration = Duration::from_secs(60);

/// A client of one moto server.
pub(super) struct Upstream {
    base: String,
    client: Client<HttpConnector, Full<Bytes>>,
    /// Changes so far by region, each counted as it begins and as it ends.
    changes: Mutex<BTreeMap<String, u64>>,
}

impl Upstream {
    /// A client of the server at `base`, for instance `http://127.0.0.1:15000`.
    pub(super) fn new(base: &str) -> Self {
        // No idle connections are kept: the server's worker may close one just as it is used again.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build_http();
        Self {
            base: base.trim_end_matches('/').to_owned(),
            client,
            changes: Mutex::default(),
        }
    }

    /// What has changed in a region so far.
    pub(super) fn mark(&self, region: &str) -> Mark {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        Mark::new(changes.get(region).copied().unwrap_or_default())
    }

    fn note_change(&self, region: &str) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        *changes.entry(region.to_owned()).or_default() += 1;
    }

    /// Sends one form as `service` of `region` and gives moto's answer as it is.
    pub(super) async fn send(
        &self,
        region: &str,
        service: &str,
        body: Vec<u8>,
    ) -> Result<Reply, String> {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let reads = matches!(service, "sqs" | "sts" | "iam")
            || form_urlencoded::parse(&body)
                .find(|(key, _)| key == "Action")
                .is_some_and(|(_, action)| only_reads(&action));
        if reads {
            return self.post(region, service, &headers, body).await;
        }
        self.note_change(region);
        let reply = self.post(region, service, &headers, body).await;
        self.note_change(region);
        reply
    }

    async fn post(
        &self,
        region: &str,
        service: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Reply, String> {
        let scope = format!(
            "AWS4-HMAC-SHA256 Credential=proxy/20260101/{region}/{service}/aws4_request, SignedHeaders=host, Signature=0"
        );
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/", self.base))
            .header("authorization", scope);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|e| e.to_string())?;
        let answer = async {
            let response = self
                .client
                .request(request)
                .await
                .map_err(|e| format!("moto: {e:?}"))?;
            let status: StatusCode = response.status();
            let content_type = response
                .headers()
                .get("content-type")
                .and_then(|t| t.to_str().ok())
                .filter(|t| t.contains("json") || t.starts_with("text/html"))
                .unwrap_or("text/xml")
                .to_owned();
            let body = response
                .into_body()
                .collect()
                .await
                .map_err(|e| format!("moto: {e}"))?
                .to_bytes()
                .to_vec();
            Ok(Reply {
                status: status.as_u16(),
                content_type,
                body,
            })
        };
        tokio::time::timeout(DEADLINE, answer)
            .await
            .map_err(|_| "moto: no answer in time".to_owned())?
    }

    /// Forwards a call unchanged.
    pub(super) async fn forward(&self, query: &Query) -> Result<Reply, String> {
        if let Some(call) = &query.json {
            let headers = [
                ("content-type", call.content_type.as_str()),
                ("x-amz-target", call.target.as_str()),
            ];
            let body = call.body.to_string().into_bytes();
            return self
                .post(&query.region, &query.service, &headers, body)
                .await;
        }
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(&query.params)
            .finish();
        self.send(&query.region, &query.service, body.into_bytes())
            .await
    }

    /// Makes a call of EC2 and gives the answer, good or bad.
    pub(super) async fn ask_ec2(
        &self,
        region: &str,
        action: &str,
        params: &[(&str, &str)],
    ) -> Result<Reply, String> {
        self.ask(region, "ec2", "2016-11-15", action, params).await
    }

    /// Makes a call of EC2 and reads the answer.
    pub(super) async fn ec2(
        &self,
        region: &str,
        action: &str,
        params: &[(&str, &str)],
    ) -> Result<Element, String> {
        self.call(region, "ec2", "2016-11-15", action, params).await
    }

    /// Makes a call of Auto Scaling and reads the answer.
    pub(super) async fn autoscaling(
        &self,
        region: &str,
        action: &str,
        params: &[(&str, &str)],
    ) -> Result<Element, String> {
        self.call(region, "autoscaling", "2011-01-01", action, params)
            .await
    }

    async fn ask(
        &self,
        region: &str,
        service: &str,
        version: &str,
        action: &str,
        params: &[(&str, &str)],
    ) -> Result<Reply, String> {
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", action)
            .append_pair("Version", version)
            .extend_pairs(params)
            .finish();
        self.send(region, service, body.into_bytes()).await
    }

    /// Makes a call of `service` and reads the answer.
    pub(super) async fn call(
        &self,
        region: &str,
        service: &str,
        version: &str,
        action: &str,
        params: &[(&str, &str)],
    ) -> Result<Element, String> {
        let reply = self.ask(region, service, version, action, params).await?;
        let text = String::from_utf8_lossy(&reply.body);
        if !reply.is_ok() {
            return Err(format!("moto: {action} gave {}: {text}", reply.status));
        }
        Element::parse(&text).map_err(|e| format!("moto: {action}: {e}"))
    }
}
