//! Enrolment, renewal, and whom the agent believes.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tonic::Status;

use crate::fake::Fake;
use crate::inside::{Inside, idle};

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;

#[tokio::test]
async fn enrols_and_reports() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    let hello = fake
        .until("hello", |script| script.hellos.first().cloned())
        .await;
    let facts = hello.facts.unwrap();
    assert_eq!((facts.hostname.as_str(), facts.cpus), ("rack-1", Some(2)));
    assert_eq!(
        (hello.protocol, hello.highest_epoch, hello.observed),
        (1, 0, None)
    );
    let first = fake
        .until("report", |script| script.reports.first().cloned())
        .await;
    assert!(first.full && first.workloads.is_some());
    assert_eq!(first.telemetry.unwrap().cpu_permille, Some(123));
    agent.see(idle());
    let next = fake
        .until("second report", |script| script.reports.get(1).cloned())
        .await;
    assert!(!next.full && next.facts.is_none() && next.telemetry.is_some());
    assert_eq!(agent.interval(), Duration::from_millis(200));
    for name in ["node.key", "identity.json", "drain.json"] {
        let mode = std::fs::metadata(dir.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    // Enrolled once: the next start goes straight to the session.
    agent.stop().await;
    let _agent = Inside::start(&fake, dir.path(), "");
    let second = fake
        .until("second hello", |script| script.hellos.get(1).cloned())
        .await;
    assert_eq!(second.highest_epoch, 1);
    assert_eq!(fake.script().enrolled_keys.len(), 1);
}

#[tokio::test]
async fn a_lost_enrol_reply_is_repeated_with_the_same_key() {
    let fake = Fake::start().await;
    fake.script().lose_enrol_replies = 2;
    let dir = tempfile::tempdir().unwrap();
    let _agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let keys = fake.script().enrolled_keys.clone();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[tokio::test]
async fn another_ca_than_the_tokens_is_not_told_the_secret() {
    let fake = Fake::start().await;
    let other = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let text = crate::inside::config_text(&fake, dir.path(), "").replace(&fake.token, &other.token);
    let _agent = Inside::with(&drover_agent::config::parse(&text).unwrap());
    fake.until("two refused handshakes", |script| {
        (script.tls_failures >= 2).then_some(())
    })
    .await;
    assert!(fake.script().enrolled_keys.is_empty());
    assert!(!dir.path().join("identity.json").exists());
}

#[tokio::test]
async fn an_expired_certificate_is_renewed_with_a_signature() {
    let fake = Fake::start().await;
    fake.script().validity_s = Some((-9 * DAY_S, -7 * DAY_S));
    let dir = tempfile::tempdir().unwrap();
    let _agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    let script = fake.script();
    assert_eq!(
        (
            script.renewed_with_signature,
            script.renewed_with_certificate
        ),
        (1, 0)
    );
    assert_eq!(script.enrolled_keys.len(), 1);
}

#[tokio::test]
async fn a_certificate_past_two_thirds_is_renewed_within_the_session() {
    let fake = Fake::start().await;
    fake.script().validity_s = Some((-47 * HOUR_S, HOUR_S));
    let dir = tempfile::tempdir().unwrap();
    let _agent = Inside::start(&fake, dir.path(), "");
    fake.until("renewal", |script| {
        (script.renewed_with_certificate > 0).then_some(())
    })
    .await;
    assert_eq!(fake.script().renewed_with_signature, 0);
    assert_eq!(fake.script().hellos.len(), 1);
}

#[tokio::test]
async fn a_refused_node_asks_again_and_comes_back() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let _agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    fake.script().refuse = Some(Status::permission_denied("node n-1 is revoked"));
    fake.hang_up();
    fake.until("three refusals", |script| {
        (script.refusals >= 3).then_some(())
    })
    .await;
    fake.script().refuse = None;
    fake.until("hello again", |script| script.hellos.get(1).cloned())
        .await;
    assert_eq!(fake.script().enrolled_keys.len(), 1);
}

#[tokio::test]
async fn a_revoked_node_with_a_new_token_enrols_again_with_a_new_key() {
    let fake = Fake::start().await;
    let dir = tempfile::tempdir().unwrap();
    let agent = Inside::start(&fake, dir.path(), "");
    fake.until("hello", |script| script.hellos.first().cloned())
        .await;
    agent.stop().await;
    // Expired, and its renewal is refused: the fake knows no other way to refuse a node but not its enrolment.
    let key = std::fs::read(dir.path().join("node.key")).unwrap();
    let identity = std::fs::read_to_string(dir.path().join("identity.json")).unwrap();
    fake.script().revoked = true;
    let text = crate::inside::config_text(&fake, dir.path(), "").replace(".t-1.", ".t-2.");
    let _agent = Inside::with(&drover_agent::config::parse(&text).unwrap());
    fake.until("second enrolment", |script| {
        script.enrolled_keys.get(1).cloned()
    })
    .await;
    fake.until("hello again", |script| script.hellos.get(1).cloned())
        .await;
    assert_ne!(std::fs::read(dir.path().join("node.key")).unwrap(), key);
    assert_ne!(
        std::fs::read_to_string(dir.path().join("identity.json")).unwrap(),
        identity
    );
}

#[tokio::test]
async fn a_message_over_the_limit_ends_the_session_and_not_the_agent() {
    let fake = Fake::start().await;
    fake.script().store_id_bytes = 8 * 1024 * 1024;
    let dir = tempfile::tempdir().unwrap();
    let _agent = Inside::start(&fake, dir.path(), "");
    fake.until("two tries", |script| script.hellos.get(1).cloned())
        .await;
    assert!(fake.script().reports.is_empty());
    fake.script().store_id_bytes = 8;
    fake.until("a report", |script| script.reports.first().cloned())
        .await;
}
