//! Enrolment by the identity document of the instance, without a token.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drover_agent::config::parse;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::fake::Fake;
use crate::inside::{Inside, config_text};

const DOCUMENT: &str = "{\n  \"instanceId\" : \"i-0123456789abcdef0\"\n}";
const SIGNATURE: &str = "MIAGCSqGSIb3DQEHAqCAMIACAQEx\nAAAA";

/// Instance metadata that begins to know the documents when it is told to.
struct Metadata {
    endpoint: String,
    documents: Arc<Mutex<bool>>,
    asked: watch::Receiver<u32>,
}

impl Metadata {
    async fn start(ready: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let documents = Arc::new(Mutex::new(ready));
        let known = documents.clone();
        let (count, asked) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut first = String::new();
                let mut authorised = false;
                loop {
                    let mut line = String::new();
                    if stream.read_line(&mut line).await.unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    authorised |= line
                        .to_lowercase()
                        .starts_with("x-aws-ec2-metadata-token: secret");
                    if first.is_empty() {
                        first = line;
                    }
                }
                let ready = *known.lock().unwrap();
                let path = first.split(' ').nth(1).unwrap_or_default();
                let body = match path {
                    "/latest/api/token" => Some("secret"),
                    "/latest/dynamic/instance-identity/document" if authorised => {
                        count.send_modify(|asked| *asked += 1);
                        ready.then_some(DOCUMENT)
                    }
                    "/latest/dynamic/instance-identity/rsa2048" if authorised => {
                        ready.then_some(SIGNATURE)
                    }
                    _ => None,
                };
                let (status, body) = body.map_or((404, ""), |body| (200, body));
                let text = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                // The client may have gone.
                let _gone = stream.write_all(text.as_bytes()).await;
            }
        });
        Self {
            endpoint,
            documents,
            asked,
        }
    }

    /// An agent that trusts the CA of `trusted`'s token and proves itself with this instance to `fake`.
    fn agent(&self, fake: &Fake, trusted: &Fake, dir: &Path) -> Inside {
        let hash = trusted.token.rsplit('.').next().unwrap().to_owned();
        let join = format!("[join]\nmethod = \"instance-identity\"\nca_sha256 = \"{hash}\"\n");
        let text = config_text(fake, dir, &join)
            .replace(&format!("join_token = \"{}\"\n", fake.token), "")
            .replace("\"off\"", &format!("{:?}", self.endpoint));
        Inside::with(&parse(&text).unwrap())
    }
}

#[tokio::test]
async fn an_instance_proves_itself_as_soon_as_its_metadata_can() {
    let fake = Fake::start().await;
    let metadata = Metadata::start(false).await;
    let dir = tempfile::tempdir().unwrap();
    let agent = metadata.agent(&fake, &fake, dir.path());
    let mut asked = metadata.asked.clone();
    let twice = asked.wait_for(|asked| *asked >= 2);
    tokio::time::timeout(Duration::from_secs(90), twice)
        .await
        .expect("it asks again")
        .unwrap();
    assert!(fake.script().proofs.is_empty(), "nothing was shown yet");
    *metadata.documents.lock().unwrap() = true;
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let (token, shown) = fake.script().proofs[0].clone();
    let shown = shown.unwrap();
    assert_eq!(token, "");
    assert_eq!(
        (shown.document.as_str(), shown.rsa2048.as_str()),
        (DOCUMENT, SIGNATURE)
    );
    // The secret of the instance is nowhere on disk, and an enrolled node shows it to nobody any more.
    let stored = std::fs::read_to_string(dir.path().join("identity.json")).unwrap();
    assert!(!stored.contains("i-0123456789abcdef0"), "{stored}");
    let looks = *metadata.asked.borrow();
    agent.stop().await;
    let _agent = metadata.agent(&fake, &fake, dir.path());
    fake.until("second hello", |script| script.hellos.get(1).cloned())
        .await;
    assert_eq!(*metadata.asked.borrow(), looks);
    assert_eq!(fake.script().proofs.len(), 1);
}

#[tokio::test]
async fn a_refused_instance_keeps_its_key_until_it_is_asked_for_another() {
    let fake = Fake::start().await;
    let metadata = Metadata::start(true).await;
    let dir = tempfile::tempdir().unwrap();
    let _agent = metadata.agent(&fake, &fake, dir.path());
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let first = fake.script().enrolled_keys[0].clone();
    // Refused: it shows the same key again, so that no second key ever claims the instance by itself.
    fake.script().revoked = true;
    fake.hang_up();
    fake.until("hello again", |script| script.hellos.get(1).cloned())
        .await;
    assert_eq!(fake.script().enrolled_keys, [first.clone(), first.clone()]);
    // Readmitted: the coordinator asks for another key.
    fake.script().barred = vec![first.clone()];
    fake.script().revoked = true;
    fake.hang_up();
    fake.until("hello with another key", |script| {
        script.hellos.get(2).cloned()
    })
    .await;
    let keys = fake.script().enrolled_keys.clone();
    assert_eq!(keys.len(), 4);
    assert_eq!(keys[2], first);
    assert_ne!(keys[3], first);
}

#[tokio::test]
async fn another_ca_than_the_pinned_one_is_not_shown_the_document() {
    let fake = Fake::start().await;
    let other = Fake::start().await;
    let metadata = Metadata::start(true).await;
    let dir = tempfile::tempdir().unwrap();
    let _agent = metadata.agent(&fake, &other, dir.path());
    fake.until("two refused handshakes", |script| {
        (script.tls_failures >= 2).then_some(())
    })
    .await;
    assert!(fake.script().proofs.is_empty());
    assert!(!dir.path().join("identity.json").exists());
}
