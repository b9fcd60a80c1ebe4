//! The metadata service, asked over plain HTTP/1.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Status and what came of the body.
async fn send(service: &Metadata, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(service.address())
        .await
        .expect("connects");
    let text = format!("{request}host: x\r\nconnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).await.expect("is sent");
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.expect("is read");
    let reply = String::from_utf8(reply).expect("is text");
    let status = reply
        .get(9..12)
        .expect("a status")
        .parse()
        .expect("a number");
    let body = reply.split_once("\r\n\r\n").expect("a head").1.to_owned();
    (status, body)
}

async fn put_token(service: &Metadata, seconds: &str) -> (u16, String) {
    send(
        service,
        &format!("PUT /i-1/latest/api/token HTTP/1.1\r\n{TTL}: {seconds}\r\n"),
    )
    .await
}

async fn ask(service: &Metadata, path: &str, token: &str) -> (u16, String) {
    send(
        service,
        &format!("GET /i-1/latest/{path} HTTP/1.1\r\n{TOKEN}: {token}\r\n"),
    )
    .await
}

#[tokio::test]
async fn tokens_end_and_belong_to_one_instance() {
    let service = Metadata::start("p4d.24xlarge").await;
    assert_eq!(put_token(&service, "0").await.0, 400);
    assert_eq!(put_token(&service, "21601").await.0, 400);
    let (status, token) = put_token(&service, "60").await;
    assert_eq!(status, 200);
    let path = "meta-data/instance-type";
    assert_eq!(
        ask(&service, path, &token).await,
        (200, "p4d.24xlarge".to_owned())
    );
    let other = format!("GET /i-2/latest/{path} HTTP/1.1\r\n{TOKEN}: {token}\r\n");
    assert_eq!(send(&service, &other).await.0, 401);
    let bare = format!("GET /i-1/latest/{path} HTTP/1.1\r\n");
    assert_eq!(send(&service, &bare).await.0, 401);
    service.expire_tokens();
    assert_eq!(ask(&service, path, &token).await.0, 401);
    service.shorten_tokens(Duration::ZERO);
    let (_, token) = put_token(&service, "60").await;
    assert_eq!(ask(&service, path, &token).await.0, 401);
    let asked = service.asked("i-1");
    assert_eq!((asked.puts, asked.gets_of(path)), (4, 4));
    assert_eq!((asked.without_token, asked.violations.len()), (1, 1));
}

#[tokio::test]
async fn answers_come_in_order_and_the_last_one_stays() {
    let service = Metadata::start("g5.xlarge").await;
    let (_, token) = put_token(&service, "60").await;
    let path = "meta-data/spot/instance-action";
    assert_eq!(ask(&service, path, &token).await.0, 404);
    service.say(
        "i-1",
        path,
        [
            Answer::status(500),
            Answer::half("{\"action\":\"stop\"}"),
            Answer::text("last"),
        ],
    );
    assert_eq!(ask(&service, path, &token).await.0, 500);
    let (_, half) = ask(&service, path, &token).await;
    assert_eq!(half, "{\"action", "half of it, then the end");
    for _ in 0..3 {
        assert_eq!(ask(&service, path, &token).await.1, "last");
    }
    service.spot("i-1", "terminate", "2026-03-01T10:02:00Z");
    assert!(ask(&service, path, &token).await.1.contains("10:02:00Z"));
    service.say("i-1", path, []);
    assert_eq!(ask(&service, path, &token).await.0, 404);
    service.say(
        EVERY,
        "meta-data/placement/availability-zone",
        [Answer::text("us-east-1a")],
    );
    let path = "meta-data/placement/availability-zone";
    assert_eq!(ask(&service, path, &token).await.1, "us-east-1a");
}

#[tokio::test]
async fn requests_for_tokens_can_be_scripted_too() {
    let service = Metadata::start("g5.xlarge").await;
    service.say(
        "i-1",
        TOKEN_PATH,
        [Answer::status(403), Answer::pass(), Answer::silence()],
    );
    assert_eq!(put_token(&service, "60").await.0, 403);
    let (status, token) = put_token(&service, "60").await;
    assert_eq!(status, 200);
    assert_eq!(
        ask(&service, "meta-data/instance-id", &token).await.1,
        "i-1"
    );
    let waited = tokio::time::timeout(Duration::from_millis(50), put_token(&service, "60")).await;
    assert!(waited.is_err(), "no answer comes");
}

#[tokio::test]
async fn a_program_scripts_it_over_http() {
    let service = Metadata::start("g5.xlarge").await;
    let post = async |body: &str| {
        let head = format!(
            "POST /__metadata/script HTTP/1.1\r\ncontent-length: {}\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(service.address())
            .await
            .expect("connects");
        let text = format!("{head}host: x\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.expect("is sent");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.expect("is read");
        reply.get(9..12).expect("a status").to_owned()
    };
    let good = r#"{"instance":"i-1","path":"meta-data/x","answers":[{"body":"y"}]}"#;
    assert_eq!(post(good).await, "200");
    assert_eq!(
        post(r#"{"instance":"i-1","path":"x","answerz":[]}"#).await,
        "400"
    );
    let (_, token) = put_token(&service, "60").await;
    assert_eq!(ask(&service, "meta-data/x", &token).await.1, "y");
    let (_, asked) = send(&service, "GET /__metadata/asked/i-1 HTTP/1.1\r\n").await;
    assert!(asked.contains("\"meta-data/x\":1"), "{asked}");
}
