//! AG-20: instance metadata against a scripted service.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use drover_agent::collector::{self, CollectorConfig, HostPaths, ImdsConfig, ProbeConfig};
use drover_agent::imds::documents::Kind;
use drover_agent::imds::{Endpoint, Imds, ImdsError, watch};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

/// One scripted answer.
#[derive(Clone, Copy)]
enum Answer {
    /// Status and body.
    Say(u16, &'static str),
    /// Half of a body, then the end of the connection.
    Half,
    /// Nothing at all.
    Silence,
}

/// A service that gives its answers in order, and then 404. It keeps what was asked: "PUT /latest/api/token", and for a
/// GET also the token.
struct Service {
    endpoint: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Service {
    async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/i-123", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let mut answers = VecDeque::from(answers);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut head = Vec::new();
                loop {
                    let mut line = String::new();
                    if stream.read_line(&mut line).await.unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    head.push(line.trim().to_lowercase());
                }
                let first = head.first().cloned().unwrap_or_default();
                let token = head
                    .iter()
                    .find_map(|line| line.strip_prefix("x-aws-ec2-metadata-token: "));
                let line = first.trim_end_matches(" http/1.1").to_owned();
                log.lock()
                    .unwrap()
                    .push(token.map_or(line.clone(), |token| format!("{line} {token}")));
                let answer = answers.pop_front().unwrap_or(Answer::Say(404, ""));
                let text = match answer {
                    Answer::Say(status, body) => {
                        format!(
                            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}",
                            body.len()
                        )
                    }
                    Answer::Half => {
                        "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{\"action\":".to_owned()
                    }
                    Answer::Silence => {
                        // Kept open until the client gives up.
                        let mut rest = String::new();
                        let _ended = stream.read_line(&mut rest).await;
                        continue;
                    }
                };
                // The client may have gone.
                let _gone = stream.write_all(text.as_bytes()).await;
            }
        });
        Self { endpoint, asked }
    }

    fn client(&self) -> Imds {
        Imds::new(Endpoint::parse(&self.endpoint).unwrap())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

const PUT: &str = "put /i-123/latest/api/token";

#[tokio::test]
async fn ag_20_an_expired_token_is_replaced_once() {
    let answers = vec![
        Answer::Say(200, "t1"),
        Answer::Say(404, ""),
        Answer::Say(401, ""),
        Answer::Say(200, "t2"),
        Answer::Say(404, ""),
    ];
    let service = Service::start(answers).await;
    let mut imds = service.client();
    assert_eq!(imds.get("meta-data/x").await, Ok(None));
    assert_eq!(imds.get("meta-data/x").await, Ok(None));
    let get = |token: &str| format!("get /i-123/latest/meta-data/x {token}");
    let want = [
        PUT.to_owned(),
        get("t1"),
        get("t1"),
        PUT.to_owned(),
        get("t2"),
    ];
    assert_eq!(service.asked(), want);
}

#[tokio::test]
async fn ag_20_a_fresh_token_that_is_refused_ends_the_round() {
    let answers = vec![
        Answer::Say(200, "t1"),
        Answer::Say(401, ""),
        Answer::Say(200, "t2"),
        Answer::Say(404, ""),
    ];
    let service = Service::start(answers).await;
    let mut imds = service.client();
    assert_eq!(imds.get("meta-data/x").await, Err(ImdsError::Refused));
    assert_eq!(service.asked().len(), 2, "one PUT a round");
    assert_eq!(imds.get("meta-data/x").await, Ok(None));
}

#[tokio::test]
async fn ag_20_without_a_token_nothing_is_asked() {
    for status in [403, 404] {
        let service = Service::start(vec![Answer::Say(status, "")]).await;
        let got = service.client().get("meta-data/x").await;
        assert_eq!(got, Err(ImdsError::Disabled(status)));
        assert_eq!(service.asked(), [PUT]);
    }
}

#[tokio::test]
async fn ag_20_a_put_without_an_answer_names_the_hop_limit() {
    let service = Service::start(vec![Answer::Silence]).await;
    let begin = Instant::now();
    let error = service.client().get("meta-data/x").await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(error.to_string().contains("hop limit"), "{error}");
}

#[tokio::test]
async fn ag_20_half_a_body_is_no_answer() {
    let service = Service::start(vec![
        Answer::Say(200, "t1"),
        Answer::Half,
        Answer::Say(200, "whole"),
    ])
    .await;
    let mut imds = service.client();
    assert!(matches!(
        imds.get("a").await,
        Err(ImdsError::NoAnswer { .. })
    ));
    assert_eq!(imds.get("a").await.unwrap().as_deref(), Some("whole"));
}

fn config(endpoint: &str, nothing: &std::path::Path) -> CollectorConfig {
    CollectorConfig {
        interval: Duration::from_millis(50),
        probe: ProbeConfig {
            program: env!("CARGO_BIN_EXE_drover-agent").into(),
            library: Some(nothing.join("no-library")),
            ..ProbeConfig::default()
        },
        imds: ImdsConfig {
            disabled: false,
            endpoint: Some(endpoint.to_owned()),
            poll: None,
        },
        paths: HostPaths {
            sys: nothing.to_owned(),
            ..HostPaths::default()
        },
        ..CollectorConfig::default()
    }
}

#[tokio::test]
async fn the_instance_becomes_a_fact_and_trouble_a_condition() {
    let nothing = tempfile::tempdir().unwrap();
    let answers = vec![
        Answer::Say(403, ""),
        Answer::Say(200, "t1"),
        Answer::Say(200, "i-123"),
        Answer::Say(200, "eu-west-1b"),
        Answer::Say(200, "p2.16xlarge\n"),
    ];
    let service = Service::start(answers).await;
    let collector = collector::spawn(config(&service.endpoint, nothing.path()));
    let mut seen = collector.observations();
    let wait = Duration::from_secs(90);
    let trouble = tokio::time::timeout(wait, seen.wait_for(|seen| !seen.conditions.is_empty()))
        .await
        .unwrap()
        .unwrap()
        .clone();
    assert_eq!(trouble.conditions[0].kind, "metadata_disabled");
    let known = tokio::time::timeout(wait, seen.wait_for(|seen| seen.facts.instance_id.is_some()))
        .await
        .unwrap()
        .unwrap()
        .clone();
    assert_eq!(known.facts.instance_id.as_deref(), Some("i-123"));
    assert_eq!(known.facts.zone.as_deref(), Some("eu-west-1b"));
    assert_eq!(known.facts.instance_type.as_deref(), Some("p2.16xlarge"));
    assert!(known.conditions.is_empty(), "{:?}", known.conditions);
    collector.stop().await;
}

/// Rounds of the watching task against a script; what it knows once `until` holds.
async fn watched(
    answers: Vec<Answer>,
    until: impl FnMut(&watch::Known) -> bool,
) -> (watch::Known, Vec<String>) {
    let service = Service::start(answers).await;
    let endpoint = Endpoint::parse(&service.endpoint).unwrap();
    let (mut known, task) = watch::spawn(endpoint, Some(Duration::from_millis(50)));
    let seen = tokio::time::timeout(Duration::from_secs(90), known.wait_for(until))
        .await
        .unwrap()
        .unwrap()
        .clone();
    task.abort();
    (seen, service.asked())
}

fn identity() -> Vec<Answer> {
    vec![
        Answer::Say(200, "t1"),
        Answer::Say(200, "i-123"),
        Answer::Say(200, "eu-west-1b"),
        Answer::Say(200, "p2.16xlarge"),
    ]
}

const SPOT: &str = r#"{"action":"terminate","time":"2026-03-01T10:02:00Z"}"#;

#[tokio::test]
async fn ag_20_a_token_that_expires_between_rounds_costs_one_put_and_no_notice_is_missed() {
    let mut answers = identity();
    // The first round's four documents, then 401, a new token, and the notice.
    answers.extend([Answer::Say(404, ""); 4]);
    answers.extend([
        Answer::Say(401, ""),
        Answer::Say(200, "t2"),
        Answer::Say(200, SPOT),
    ]);
    let (seen, asked) = watched(answers, |known| {
        known.documents.get(&Kind::Spot).map(String::as_str) == Some(SPOT)
    })
    .await;
    assert_eq!(seen.trouble, None, "no warning");
    let puts = asked.iter().filter(|line| line.starts_with("put")).count();
    assert_eq!(puts, 2, "{asked:?}");
    let tokenless = |line: &&String| line.starts_with("get") && line.split(' ').count() < 3;
    assert_eq!(asked.iter().find(tokenless), None, "never without a token");
}

#[tokio::test]
async fn ag_20_a_round_is_given_up_after_one_new_token_and_the_next_comes_on_time() {
    let mut answers = identity();
    answers.extend([Answer::Say(404, ""); 4]);
    answers.extend([
        Answer::Say(401, ""),
        Answer::Say(200, "t2"),
        Answer::Say(401, ""),
    ]);
    // The next round makes its own token.
    answers.extend([Answer::Say(200, "t3"), Answer::Say(200, SPOT)]);
    let mut degraded = false;
    let begin = Instant::now();
    let (_, asked) = watched(answers, |known| {
        degraded |= known.trouble == Some(ImdsError::Refused);
        degraded && known.documents.get(&Kind::Spot).map(String::as_str) == Some(SPOT)
    })
    .await;
    assert!(begin.elapsed() < Duration::from_secs(30), "no back-off");
    let after: Vec<&str> = asked[8..]
        .iter()
        .filter_map(|line| line.split(' ').next())
        .take(5)
        .collect();
    assert_eq!(after, ["get", "put", "get", "put", "get"], "{asked:?}");
}

#[tokio::test]
async fn ag_20_half_a_document_is_ignored_and_the_others_are_read() {
    let mut answers = identity();
    answers.extend([
        Answer::Half,
        Answer::Say(404, ""),
        Answer::Say(200, "Terminated"),
        Answer::Say(200, "[]"),
        Answer::Say(200, SPOT),
    ]);
    let mut halves = 0;
    let (seen, _) = watched(answers, |known| {
        if known.documents.contains_key(&Kind::Scheduled)
            && !known.documents.contains_key(&Kind::Spot)
        {
            halves += 1;
            assert_eq!(known.trouble, None, "the next round decides");
        }
        known.documents.contains_key(&Kind::Spot)
    })
    .await;
    assert!(halves > 0);
    assert_eq!(seen.documents[&Kind::Lifecycle], "Terminated");
}
