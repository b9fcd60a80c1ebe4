//! A server that gives AWS's answers as AWS words them, one after the other, and keeps what it was asked.
//!
//! For what neither moto nor the fault proxy can say. It understands nothing but the name of the action.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The action.
    pub action: String,
    /// The region it is signed for.
    pub region: String,
    /// The key it is signed with.
    pub key: String,
    /// Its body, decoded.
    pub body: String,
}

#[derive(Default)]
struct Shared {
    answers: BTreeMap<String, Vec<(u16, String)>>,
    asked: Vec<Asked>,
}

/// The server; it ends with its test.
pub struct Canned {
    url: String,
    shared: Arc<Mutex<Shared>>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Canned {
    /// Starts on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let shared: Arc<Mutex<Shared>> = Arc::default();
        let serving = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = serving.clone();
                tokio::spawn(async move { answer(stream, &shared).await });
            }
        });
        Self { url, shared }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The next answer to `action`; the last one is repeated.
    pub fn says(&self, action: &str, status: u16, body: &str) -> &Self {
        let mut shared = lock(&self.shared);
        let answers = shared.answers.entry(action.to_owned()).or_default();
        answers.push((status, body.to_owned()));
        self
    }

    /// An error in the Query protocol's form.
    pub fn refuses(&self, action: &str, status: u16, code: &str, words: &str) -> &Self {
        // EC2 nests it differently from all others.
        let ec2 = [
            "RunInstances",
            "DescribeRegions",
            "DescribeCapacityReservations",
            "DescribeSpotPriceHistory",
            "DescribeInstances",
        ];
        let error = format!("<Error><Code>{code}</Code><Message>{words}</Message></Error>");
        let body = if ec2.contains(&action) {
            format!("<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>")
        } else {
            format!("<ErrorResponse>{error}<RequestId>r</RequestId></ErrorResponse>")
        };
        self.says(action, status, &body)
    }

    /// All requests for `action`, in order.
    pub fn asked(&self, action: &str) -> Vec<Asked> {
        let shared = lock(&self.shared);
        let found = shared.asked.iter().filter(|a| a.action == action);
        found.cloned().collect()
    }
}

async fn answer(mut stream: TcpStream, shared: &Mutex<Shared>) {
    let Some((head, body)) = request(&mut stream).await else {
        return;
    };
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let target = header("x-amz-target");
    let action = match target.rsplit_once('.') {
        Some((_, action)) => action.to_owned(),
        None => body
            .split('&')
            .find_map(|pair| pair.strip_prefix("Action="))
            .unwrap_or_default()
            .to_owned(),
    };
    let authorization = header("authorization");
    let scope: Vec<&str> = authorization
        .split("Credential=")
        .nth(1)
        .unwrap_or_default()
        .split('/')
        .collect();
    let part = |n: usize| (*scope.get(n).unwrap_or(&"")).to_owned();
    let (status, reply) = {
        let mut shared = lock(shared);
        shared.asked.push(Asked {
            action: action.clone(),
            region: part(2),
            key: part(0),
            body: decoded(&body),
        });
        match shared.answers.get_mut(&action) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) if answers.len() == 1 => answers[0].clone(),
            _ => (404, format!("no answer for {action}")),
        }
    };
    let kind = if target.is_empty() {
        "text/xml"
    } else {
        "application/x-amz-json-1.0"
    };
    let text = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}",
        reply.len()
    );
    let _ = stream.write_all(text.as_bytes()).await;
}

async fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 4096];
        let read = stream.read(&mut some).await.ok()?;
        if read == 0 {
            return None;
        }
        bytes.extend_from_slice(&some[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(key, _)| key.eq_ignore_ascii_case("content-length"))
                .and_then(|(_, value)| value.trim().parse::<usize>().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
    }
}

/// Without the percent signs of a form.
fn decoded(body: &str) -> String {
    let bytes = body.as_bytes();
    let mut out = Vec::new();
    let mut n = 0;
    while n < bytes.len() {
        let hex = body.get(n + 1..n + 3).filter(|_| bytes[n] == b'%');
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                n += 3;
            }
            None => {
                out.push(if bytes[n] == b'+' { b' ' } else { bytes[n] });
                n += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
