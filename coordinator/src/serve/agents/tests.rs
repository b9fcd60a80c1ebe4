//! The port over real TLS, as agents and people meet it.

mod instances;

use super::rig::{Identity, Rig, Session, csr, der, facts, hello, new_key, soon};
use crate::adapters::ca::PeerCertificate;
use crate::adapters::store::memory::MemoryStore;
use crate::ports::link::AgentLink;
use crate::ports::store::{CommitError, Op, Store};
use crate::records::{AuditRecord, DesiredState, OrderRecord, keys};
use drover_core::model::{Millis, PoolId, UnixMs};
use drover_core::rules::access::Role;
use drover_proto::v1::agent_message::Body;
use drover_proto::v1::coordinator_message::Body as Out;
use drover_proto::{limits, v1};
use ring::digest;
use rustls::pki_types::ServerName;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tonic::{Code, Status};

const DAY: Millis = Millis(24 * 3_600_000);

fn order(epoch: u64, generation: u64) -> OrderRecord {
    OrderRecord {
        epoch,
        generation,
        desired: DesiredState::Cordoned,
        drain: None,
        by: "admin/ada".into(),
        reason: String::new(),
    }
}

fn order_key(identity: &Identity) -> String {
    keys::named(keys::ORDER, &identity.id)
}

/// The connection broke in its handshake: no answer of ours.
fn cut(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled
    )
}

/// Hello, then Welcome.
async fn opened(rig: &Rig, identity: &Identity, highest: u64) -> (Session, v1::Welcome) {
    let mut session = rig.session(identity, hello(highest)).await;
    let welcome = session.welcome().await;
    (session, welcome)
}

#[tokio::test]
async fn a_host_enrols_and_speaks_for_itself() {
    let rig = Rig::new().await;
    let token = rig.token(Some("rack"), 1).await;
    let key = new_key();
    let reply = rig.try_enrol(&token, &key, "titan-01").await.unwrap();
    assert_eq!(reply.pool, "rack");
    assert_eq!(reply.ca_pem, rig.ca.pem());
    let certificate = der(&reply.certificate_pem);
    let read = PeerCertificate::read(&certificate).unwrap();
    assert_eq!(
        read.subject.uri(),
        format!("drover://node/{}", reply.node_id)
    );

    let node = rig.node(&reply.node_id).await.unwrap();
    assert_eq!(node.serial, read.serial);
    assert_eq!(node.pool, Some(PoolId::from("rack")));
    assert_eq!(node.instance.unwrap().as_str(), "titan-01");
    let audit = rig.store.list(keys::AUDIT).await.unwrap();
    let audit: Vec<AuditRecord> = audit
        .iter()
        .map(|entry| serde_json::from_slice(&entry.value).unwrap())
        .collect();
    let verbs: Vec<_> = audit.iter().map(|line| line.verb.as_str()).collect();
    assert_eq!(verbs, ["token.create", "node.enrol"]);

    let identity = Identity {
        id: reply.node_id,
        key,
        certificate,
    };
    let (mut session, welcome) = opened(&rig, &identity, 0).await;
    assert_eq!(welcome.protocol, limits::PROTOCOL);
    assert_eq!(welcome.store_id, rig.store.store_id());
    assert_eq!((welcome.report_interval_ms, welcome.epoch), (5_000, 1));
    let mut changed = rig.hub.changed();
    changed.mark_unchanged();
    let report = v1::Report {
        full: true,
        workloads: Some(v1::WorkloadList::default()),
        ..v1::Report::default()
    };
    session.say(Body::Report(report)).await;
    soon(changed.changed()).await.unwrap();
    let view = rig.hub.view(&Rig::node_id(&identity)).unwrap();
    assert!(view.connected && view.workloads.is_some());
    assert_eq!(view.facts.hostname, "titan-01");
    // Heartbeats come by themselves, and mean no order while control has said none.
    loop {
        if let Out::Heartbeat(word) = session.hear_any().await.unwrap() {
            assert_eq!((word.epoch, word.generation), (0, 0));
            break;
        }
    }
}

#[tokio::test]
async fn a_lost_reply_is_repeated_and_gives_the_same_node() {
    let rig = Rig::new().await;
    let token = rig.token(None, 1).await;
    let key = new_key();
    let first = rig.try_enrol(&token, &key, "titan-01").await.unwrap();
    let again = rig.try_enrol(&token, &key, "titan-01").await.unwrap();
    assert_eq!(first.node_id, again.node_id);
    assert_ne!(first.certificate_pem, again.certificate_pem);
    let read = PeerCertificate::read(&der(&again.certificate_pem)).unwrap();
    assert_eq!(rig.node(&first.node_id).await.unwrap().serial, read.serial);
    assert_eq!(rig.store.list(keys::NODE).await.unwrap().len(), 1);

    let other = rig.try_enrol(&token, &new_key(), "titan-02").await;
    let refused = other.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("used 1 times"), "{refused}");

    // Revoked in between: the repetition gives no new certificate.
    rig.desk()
        .revoke_node(&first.node_id.as_str().into(), "admin/ada", "stolen")
        .await
        .unwrap();
    let refused = rig.try_enrol(&token, &key, "titan-01").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn enrolment_that_is_refused_says_why() {
    let rig = Rig::new().await;
    let rack = rig.token(Some("rack"), 5).await;
    let expired = rig.token(None, 1).await;
    let revoked = rig.token(None, 1).await;
    let id = revoked.split('.').nth(1).unwrap();
    rig.tokens().revoke(id, "admin/ada").await.unwrap();
    let other = Rig::new().await;
    let foreign = other.token(None, 1).await;
    let ca = rig.ca.sha256();
    let unknown = format!("{}.00ff.00ff.{ca}", limits::TOKEN_PREFIX);
    rig.clock.advance(Millis(3_600_001));
    let fresh = rig.token(Some("rack"), 5).await;
    for (token, code, text) in [
        (&fresh, Code::FailedPrecondition, "does not list host"),
        (&expired, Code::PermissionDenied, "expired"),
        (&rack, Code::PermissionDenied, "expired"),
        (&revoked, Code::PermissionDenied, "revoked"),
        (&foreign, Code::Unauthenticated, "another coordinator"),
        (&unknown, Code::Unauthenticated, "not known"),
        (&"hello".to_owned(), Code::InvalidArgument, "no join token"),
    ] {
        let refused = rig.try_enrol(token, &new_key(), "titan-09").await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.message().contains(text), "{refused}");
    }
    assert!(rig.store.list(keys::NODE).await.unwrap().is_empty());

    let mut client = rig.agent(None).await;
    for (csr_der, facts, field) in [
        (b"junk".to_vec(), Some(facts("titan-01")), "csr_der"),
        (
            vec![0; limits::CERTIFICATE_BYTES + 1],
            Some(facts("titan-01")),
            "csr_der",
        ),
        (csr(&new_key()), None, "facts"),
        (
            csr(&new_key()),
            Some(facts(&"h".repeat(300))),
            "facts.hostname",
        ),
    ] {
        let request = v1::EnrolRequest {
            token: fresh.clone(),
            csr_der,
            facts,
            instance_identity: None,
        };
        let refused = client.enrol(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with(field), "{refused}");
    }
}

#[tokio::test]
async fn many_hosts_with_one_token_get_exactly_what_it_allows() {
    let rig = Arc::new(Rig::new().await);
    let token = rig.token(None, 20).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..30 {
        let (rig, token) = (rig.clone(), token.clone());
        tasks.spawn(async move {
            let key = new_key();
            rig.try_enrol(&token, &key, &format!("host-{n}")).await
        });
    }
    let results = tasks.join_all().await;
    let ids: BTreeSet<String> = results
        .iter()
        .filter_map(|result| Some(result.as_ref().ok()?.node_id.clone()))
        .collect();
    assert_eq!(ids.len(), 20);
    assert!(results.iter().all(|result| match result {
        Ok(_) => true,
        Err(status) => status.code() == Code::PermissionDenied,
    }));
    assert_eq!(rig.store.list(keys::NODE).await.unwrap().len(), 20);
}

#[tokio::test]
async fn only_tls_1_3_is_spoken() {
    let rig = Rig::new().await;
    let try_version = async |version| {
        let config = rig.client_config(None, version);
        let tcp = tokio::net::TcpStream::connect(rig.address).await.unwrap();
        let name = ServerName::try_from(limits::COORDINATOR_NAME).unwrap();
        soon(tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp)).await
    };
    let refused = try_version(&rustls::version::TLS12).await.unwrap_err();
    assert!(
        refused.to_string().to_lowercase().contains("version"),
        "{refused}"
    );
    let stream = try_version(&rustls::version::TLS13).await.unwrap();
    // The CA comes along, so that a first contact can check its hash.
    let chain = stream.get_ref().1.peer_certificates().unwrap();
    assert_eq!(chain.last(), Some(rig.ca.der()));

    // No plaintext: the answer to it is no HTTP/2, and the connection ends.
    let mut plain = tokio::net::TcpStream::connect(rig.address).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut plain, preface)
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = soon(plain.read_to_end(&mut answer)).await;
    assert!(answer.len() < 16, "only a TLS alert: {answer:?}");
}

#[tokio::test]
async fn the_gate_lets_each_certificate_do_what_it_may() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let viewer = rig.person("vera", Role::Viewer).await;
    let admin = rig.person("ada", Role::Admin).await;
    let session = async |identity: Option<&Identity>| {
        let mut client = rig.agent(identity).await;
        let none = tokio_stream::empty::<v1::AgentMessage>();
        match soon(client.session(none)).await {
            Ok(_) => Code::Ok,
            Err(status) => status.code(),
        }
    };
    assert_eq!(session(None).await, Code::Unauthenticated);
    assert_eq!(session(Some(&admin)).await, Code::PermissionDenied);
    assert_eq!(session(Some(&node)).await, Code::Ok);

    // Behind the gate no admin service runs here: Unimplemented means let through.
    let thaw = async |identity: Option<&Identity>| {
        let mut client = rig.admin(identity).await;
        let asked = client.thaw(v1::ThawRequest::default());
        soon(asked).await.unwrap_err().code()
    };
    let status = async |identity: Option<&Identity>| {
        let mut client = rig.admin(identity).await;
        let asked = client.status(v1::StatusRequest {});
        soon(asked).await.unwrap_err().code()
    };
    assert_eq!(status(None).await, Code::Unauthenticated);
    assert_eq!(status(Some(&node)).await, Code::PermissionDenied);
    assert_eq!(thaw(Some(&node)).await, Code::PermissionDenied);
    assert_eq!(status(Some(&viewer)).await, Code::Unimplemented);
    assert_eq!(thaw(Some(&viewer)).await, Code::PermissionDenied);
    assert_eq!(thaw(Some(&admin)).await, Code::Unimplemented);

    // Enrol is for those who have nothing or are nodes.
    let mut client = rig.agent(Some(&admin)).await;
    let refused = client.enrol(v1::EnrolRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);

    // A certificate of another CA, or an expired one, does not even get a connection.
    let stranger = Rig::new().await.enrol("titan-01").await;
    assert!(cut(status(Some(&stranger)).await));
    rig.clock.advance(Millis(DAY.0 + 60_000));
    assert!(cut(session(Some(&node)).await));
    assert_eq!(status(Some(&viewer)).await, Code::Unimplemented);
}

#[tokio::test]
async fn a_certificate_that_expires_on_an_open_connection_calls_nothing_more() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let mut client = rig.agent(Some(&node)).await;
    let renew = || v1::RenewRequest {
        csr_der: csr(&node.key),
        ..v1::RenewRequest::default()
    };
    client.renew(renew()).await.unwrap();
    rig.clock.advance(DAY);
    let refused = client.renew(renew()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
}

#[tokio::test]
async fn a_revoked_node_is_cut_off_and_stays_out() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let (mut session, _) = opened(&rig, &node, 0).await;
    let id = Rig::node_id(&node);
    let desk = rig.desk();
    desk.revoke_node(&id, "admin/ada", "stolen").await.unwrap();
    let end = session.end().await;
    assert_eq!(end.code(), Code::PermissionDenied, "{end}");
    assert!(rig.hub.view(&id).is_none());

    let mut again = rig.session(&node, hello(0)).await;
    assert_eq!(again.end().await.code(), Code::PermissionDenied);
    let mut client = rig.agent(Some(&node)).await;
    let request = v1::RenewRequest {
        csr_der: csr(&node.key),
        ..v1::RenewRequest::default()
    };
    let refused = client.renew(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    // An older certificate of the same node, whose serial was never listed, counts no more either.
    let csr = crate::adapters::ca::Csr::parse(&csr(&node.key)).unwrap();
    let now = crate::ports::clock::Clock::wall(&*rig.clock);
    let older = Identity {
        certificate: rig.ca.issue_node(&csr, &id, now).unwrap().der,
        ..node.clone()
    };
    let mut again = rig.session(&older, hello(0)).await;
    assert_eq!(again.end().await.code(), Code::PermissionDenied);
    assert!(rig.hub.view(&id).is_none());
}

async fn renew(
    rig: &Rig,
    with: Option<&Identity>,
    request: v1::RenewRequest,
) -> Result<v1::RenewReply, Status> {
    let mut client = rig.agent(with).await;
    soon(client.renew(request))
        .await
        .map(tonic::Response::into_inner)
}

/// The two steps of an expired certificate; `bend` may spoil the second request.
async fn renew_expired(
    rig: &Rig,
    node: &Identity,
    bend: impl FnOnce(&mut v1::RenewRequest),
) -> Result<v1::RenewReply, Status> {
    let mut request = v1::RenewRequest {
        csr_der: csr(&node.key),
        expired_certificate_der: node.certificate.to_vec(),
        ..v1::RenewRequest::default()
    };
    let first = renew(rig, None, request.clone()).await?;
    assert!(first.certificate_pem.is_empty());
    request.nonce = first.nonce;
    let csr_sha256 = digest::digest(&digest::SHA256, &request.csr_der);
    let message = [limits::RENEW_CONTEXT, &request.nonce, csr_sha256.as_ref()].concat();
    request.signature = rcgen::SigningKey::sign(&*node.key, &message).unwrap();
    bend(&mut request);
    renew(rig, None, request).await
}

#[tokio::test]
async fn a_valid_certificate_is_renewed_with_a_new_key() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let key = new_key();
    rig.clock.advance(Millis(DAY.0 * 2 / 3));
    let request = v1::RenewRequest {
        csr_der: csr(&key),
        ..v1::RenewRequest::default()
    };
    let reply = renew(&rig, Some(&node), request).await.unwrap();
    let fresh = Identity {
        id: node.id.clone(),
        key,
        certificate: der(&reply.certificate_pem),
    };
    let read = PeerCertificate::read(&fresh.certificate).unwrap();
    let record = rig.node(&node.id).await.unwrap();
    assert_eq!(
        (record.serial, record.not_after),
        (read.serial, read.not_after)
    );
    rig.clock.advance(Millis(DAY.0 / 2));
    let (_session, _) = opened(&rig, &fresh, 0).await;
}

#[tokio::test]
async fn an_expired_certificate_is_renewed_for_90_days_by_a_signature() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let other = rig.enrol("titan-02").await;
    let nothing = renew(
        &rig,
        None,
        v1::RenewRequest {
            csr_der: csr(&node.key),
            ..v1::RenewRequest::default()
        },
    );
    assert_eq!(nothing.await.unwrap_err().code(), Code::Unauthenticated);

    rig.clock.advance(Millis(DAY.0 * 8));
    let wrong = renew_expired(&rig, &node, |request| {
        let last = request.signature.len() - 1;
        request.signature[last] ^= 1;
    });
    assert_eq!(wrong.await.unwrap_err().code(), Code::Unauthenticated);
    let other_key = renew_expired(&rig, &node, |request| request.csr_der = csr(&other.key));
    assert_eq!(other_key.await.unwrap_err().code(), Code::Unauthenticated);
    let other_node = renew_expired(&rig, &node, |request| {
        request.expired_certificate_der = other.certificate.to_vec();
    });
    assert_eq!(other_node.await.unwrap_err().code(), Code::Aborted);
    let stale = renew_expired(&rig, &node, |_| rig.clock.advance(Millis(60_001)));
    assert_eq!(stale.await.unwrap_err().code(), Code::Aborted);

    let reply = renew_expired(&rig, &node, |_| {}).await.unwrap();
    let fresh = Identity {
        certificate: der(&reply.certificate_pem),
        ..node.clone()
    };
    let (_session, _) = opened(&rig, &fresh, 0).await;

    rig.clock.advance(Millis(DAY.0 * 92));
    let late = renew_expired(&rig, &other, |_| {}).await.unwrap_err();
    assert_eq!(late.code(), Code::PermissionDenied);
    assert!(late.message().contains("90 days"), "{late}");
}

#[tokio::test]
async fn an_expired_node_that_is_out_of_its_pool_revoked_or_unknown_is_not_renewed() {
    let rig = Rig::new().await;
    let token = rig.token(Some("closed"), 1).await;
    let key = new_key();
    let reply = rig.try_enrol(&token, &key, "a").await.unwrap();
    let out = Identity {
        id: reply.node_id,
        key,
        certificate: der(&reply.certificate_pem),
    };
    let revoked = rig.enrol("b").await;
    let desk = rig.desk();
    let id = Rig::node_id(&revoked);
    desk.revoke_node(&id, "admin/ada", "").await.unwrap();
    let unknown = rig.enrol("c").await;
    let key = keys::named(keys::NODE, &unknown.id);
    let store = &rig.store;
    store
        .commit(store.fence(), &[], &[Op::Delete(key)])
        .await
        .unwrap();
    rig.clock.advance(Millis(DAY.0 * 2));
    for (node, code) in [
        (&out, Code::FailedPrecondition),
        (&revoked, Code::PermissionDenied),
        (&unknown, Code::NotFound),
    ] {
        let refused = renew_expired(&rig, node, |_| {}).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
    }
}

#[tokio::test]
async fn a_message_of_8_mib_ends_the_session_and_nothing_else() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let (mut session, _) = opened(&rig, &node, 0).await;
    let notice = v1::Notice {
        id: "big".into(),
        message: "x".repeat(8 * 1024 * 1024),
        ..v1::Notice::default()
    };
    session.say(Body::Notice(notice)).await;
    let end = session.end().await;
    assert_eq!(end.code(), Code::OutOfRange, "{end}");
    assert!(rig.hub.notices().is_empty());
    let (_session, _) = opened(&rig, &node, 0).await;
}

#[tokio::test]
async fn what_breaks_the_protocol_ends_the_session_with_the_fields_name() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let gpus = v1::Report {
        telemetry: Some(v1::Telemetry {
            gpus: vec![v1::GpuUse::default(); limits::GPUS + 1],
            ..v1::Telemetry::default()
        }),
        ..v1::Report::default()
    };
    for (body, text) in [
        (Body::Report(gpus), "telemetry.gpus"),
        (Body::Notice(v1::Notice::default()), "notice.id"),
        (Body::Hello(hello(0)), "body"),
    ] {
        let (mut session, _) = opened(&rig, &node, 0).await;
        session.say(body).await;
        let end = session.end().await;
        assert_eq!(end.code(), Code::InvalidArgument);
        assert!(end.message().starts_with(text), "{end}");
    }
    let (mut session, _) = opened(&rig, &node, 0).await;
    session.seq = 0;
    session.say(Body::Report(v1::Report::default())).await;
    assert!(session.end().await.message().starts_with("seq"));
    let old = v1::Hello {
        protocol: 99,
        ..hello(0)
    };
    let mut session = rig.session(&node, old).await;
    assert!(session.end().await.message().starts_with("hello.protocol"));
}

#[tokio::test]
async fn i10_fenced_epochs_of_a_restored_store_exceed_what_the_node_has_seen() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let id = Rig::node_id(&node);
    // The store is older than the node: it says epoch 2, the node has seen 9.
    rig.put(&order_key(&node), &order(2, 7)).await;
    let (mut session, welcome) = opened(&rig, &node, 9).await;
    assert_eq!(welcome.epoch, 10);
    let stored: OrderRecord = rig.read(&order_key(&node)).await.unwrap();
    assert_eq!(stored, order(10, 7), "durable before anything is ordered");
    // Nothing is ordered until control says so; then under the new epoch.
    rig.hub.desire(&id, stored);
    let Out::Order(sent) = session.hear().await.unwrap() else {
        panic!("no order");
    };
    assert_eq!((sent.epoch, sent.generation), (10, 7));
    assert_eq!(sent.desired(), v1::Desired::Cordoned);
    loop {
        if let Out::Heartbeat(word) = session.hear_any().await.unwrap() {
            assert_eq!((word.epoch, word.generation), (10, 7));
            break;
        }
    }

    // Next session: again above, and the order of this process goes out at once.
    drop(session);
    let (mut session, welcome) = opened(&rig, &node, 10).await;
    assert_eq!(welcome.epoch, 11);
    let Out::Order(sent) = session.hear().await.unwrap() else {
        panic!("no order");
    };
    assert_eq!((sent.epoch, sent.generation), (11, 7));
    // A record that is above already stays as it is.
    drop(session);
    let (_session, welcome) = opened(&rig, &node, 3).await;
    assert_eq!(welcome.epoch, 11);
}

/// A person cordoned the node after the backup: the store knows an older order, the node obeys the newer one.
#[tokio::test]
async fn i7_undo_only_own_a_cordon_that_a_restored_store_has_lost_stays() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let older = OrderRecord {
        desired: DesiredState::Active,
        ..order(2, 7)
    };
    rig.put(&order_key(&node), &older).await;
    let says = v1::Hello {
        observed: Some(v1::Order {
            epoch: 2,
            generation: 8,
            desired: v1::Desired::Cordoned.into(),
            ..v1::Order::default()
        }),
        ..hello(2)
    };
    let mut session = rig.session(&node, says).await;
    assert_eq!(session.welcome().await.epoch, 3);
    let stored: OrderRecord = rig.read(&order_key(&node)).await.unwrap();
    assert_eq!((stored.epoch, stored.generation), (3, 1));
    assert_eq!(stored.desired, DesiredState::Cordoned);
    assert_eq!(stored.by, "somebody");
    let told = rig.journal.events(0, "", 10).await;
    assert!(
        told.iter().any(|event| event.what == "cordoned"),
        "{told:?}"
    );
}

/// A person may order something between the look at the record and the session's opening.
#[tokio::test]
async fn i10_fenced_an_order_that_was_made_while_the_node_said_hello_is_raised() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let id = Rig::node_id(&node);
    let (mut session, welcome) = opened(&rig, &node, 1).await;
    assert_eq!(welcome.epoch, 2);
    rig.put(&order_key(&node), &order(1, 1)).await;
    rig.hub.desire(&id, order(1, 1));
    assert!(matches!(session.hear().await, Ok(Out::Order(sent)) if sent.epoch == 1));
    session
        .say(Body::OrderStatus(v1::OrderStatus {
            epoch: 1,
            generation: 1,
            refused: "stale".to_owned(),
            ..v1::OrderStatus::default()
        }))
        .await;
    let end = session.end().await;
    assert_eq!(end.code(), Code::Aborted, "{end}");
    let (mut session, welcome) = opened(&rig, &node, 2).await;
    assert_eq!(welcome.epoch, 3);
    assert!(matches!(session.hear().await, Ok(Out::Order(sent)) if sent.epoch == 3));
}

#[tokio::test]
async fn i10_fenced_coordinator_ends_its_sessions() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let (mut session, _) = opened(&rig, &node, 0).await;
    let newer = MemoryStore::open(&rig.disk);
    assert!(newer.fence() > rig.store.fence());
    let end = session.end().await;
    assert_eq!(end.code(), Code::Unavailable, "{end}");
    assert!(soon(rig.served).await.unwrap(), "the port closes by itself");
}

#[tokio::test]
async fn sc_89_two_leaders_one_memory() {
    let a = Rig::new().await;
    let node = a.enrol("titan-01").await;
    let id = Rig::node_id(&node);
    a.put("/idle/n", &"since noon").await;
    a.put("/launch/l", &"in flight").await;
    a.put(&order_key(&node), &order(1, 1)).await;
    a.hub.desire(&id, order(1, 1));
    let (mut session, _) = opened(&a, &node, 0).await;
    assert!(matches!(session.hear().await, Ok(Out::Order(sent)) if sent.epoch == 1));

    // B leads. A wakes and sends a write and an order.
    let b = a.successor().await;
    let write = [Op::Put(order_key(&node), b"{}".to_vec())];
    let refused = a.store.commit(a.store.fence(), &[], &write).await;
    assert!(
        matches!(refused, Err(CommitError::Fenced { .. })),
        "{refused:?}"
    );
    let end = session.end().await;
    assert_eq!(end.code(), Code::Unavailable, "{end}");
    a.hub.desire(&id, order(1, 2));
    assert!(soon(a.served).await.unwrap(), "A steps down");

    // Under B the epoch is above A's, so that an order of A that is still on its way is stale.
    let (mut session, welcome) = opened(&b, &node, 1).await;
    assert_eq!(welcome.epoch, 2);
    let stored: OrderRecord = b.read(&order_key(&node)).await.unwrap();
    assert_eq!(stored, order(2, 1), "A's order changed nothing");
    b.hub.desire(&id, stored);
    assert!(matches!(session.hear().await, Ok(Out::Order(sent)) if sent.epoch == 2));
    for (key, value) in [("/idle/n", "since noon"), ("/launch/l", "in flight")] {
        assert_eq!(b.read::<String>(key).await.as_deref(), Some(value));
    }
    assert_eq!(b.ca.sha256(), a.ca.sha256());
}

#[tokio::test]
async fn a_newer_session_ends_the_older() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let (mut first, _) = opened(&rig, &node, 0).await;
    let (_second, _) = opened(&rig, &node, 0).await;
    let end = first.end().await;
    assert_eq!(end.code(), Code::Aborted, "{end}");
    assert!(rig.hub.view(&Rig::node_id(&node)).unwrap().connected);
}

#[tokio::test]
async fn notices_are_acknowledged_when_control_has_them() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let (mut session, _) = opened(&rig, &node, 0).await;
    let mut changed = rig.hub.changed();
    changed.mark_unchanged();
    let spot = v1::Notice {
        id: "spot-1".into(),
        kind: "spot_interruption".into(),
        ..v1::Notice::default()
    };
    let seq = session.say(Body::Notice(spot)).await;
    soon(changed.changed()).await.unwrap();
    let notices = rig.hub.notices();
    assert_eq!(notices.len(), 1);
    rig.hub
        .settle_notices(&[(notices[0].node.clone(), "spot-1".into())]);
    assert_eq!(session.hear().await.unwrap(), Out::Ack(v1::Ack { seq }));
}

#[tokio::test]
async fn a_node_that_the_store_does_not_know_is_taken_in_and_a_removed_one_is_not() {
    let rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let id = Rig::node_id(&node);
    let key = keys::named(keys::NODE, &node.id);
    let delete = [Op::Delete(key)];
    let store = &rig.store;
    store.commit(store.fence(), &[], &delete).await.unwrap();
    let (session, _) = opened(&rig, &node, 4).await;
    let record = rig.node(&node.id).await.unwrap();
    assert_eq!((record.name.as_str(), record.pool), ("titan-01", None));
    assert!(record.joined > UnixMs(0) && !record.serial.is_empty());
    drop(session);

    rig.hub.forget(&id);
    store.commit(store.fence(), &[], &delete).await.unwrap();
    let mut again = rig.session(&node, hello(4)).await;
    assert_eq!(again.end().await.code(), Code::PermissionDenied);
    assert_eq!(rig.node(&node.id).await, None);
}

#[tokio::test]
async fn the_port_stops_when_asked_and_tells_its_sessions() {
    let mut rig = Rig::new().await;
    let node = rig.enrol("titan-01").await;
    let (mut session, _) = opened(&rig, &node, 0).await;
    rig.stop();
    let end = session.end().await;
    assert_eq!(end.code(), Code::Unavailable, "{end}");
    drop(session);
    assert!(soon(rig.served).await.unwrap());
}
