//! Enrolment by instance identity document over the real port: first use, repetition, a second claim, readmission.

use super::super::rig::{Identity, Rig, csr, der, facts, hello, new_key, soon};
use super::super::{KnownPool, rig};
use super::{DAY, opened};
use crate::config::enrolment::{InstanceIdentity, RegionCertificate};
use crate::ports::actuate::{Instance, InstanceState, PoolReading};
use crate::records::{AuditRecord, ClaimRecord, EventRecord, Severity, keys};
use drover_core::model::{Millis, UnixMs};
use drover_proto::v1;
use drover_tests::identity_document::{self as signing, Signer};
use rcgen::KeyPair;
use std::sync::{Arc, LazyLock};
use tonic::{Code, Status};

const INSTANCE: &str = "i-0123456789abcdef0";

static EAST: LazyLock<Signer> = LazyLock::new(Signer::first);

fn minutes(count: u64) -> Millis {
    Millis::minutes(count)
}

fn said(launched: UnixMs) -> signing::Identity {
    let at = i64::try_from(launched.0).unwrap();
    signing::Identity {
        instance: INSTANCE.into(),
        account: "123456789012".into(),
        region: "us-east-1".into(),
        zone: "us-east-1b".into(),
        instance_type: "g5.xlarge".into(),
        image: "ami-0aabbccdd".into(),
        pending: jiff::Timestamp::from_millisecond(at)
            .unwrap()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
    }
}

fn signed(identity: &signing::Identity) -> v1::InstanceIdentity {
    let document = identity.document();
    v1::InstanceIdentity {
        rsa2048: EAST.sign(&document),
        document,
    }
}

/// The group as its provider shows it, read now.
fn show(rig: &Rig, instances: &[(&str, UnixMs)]) {
    use crate::ports::clock::Clock as _;
    let instances = instances.iter().map(|(id, launched)| Instance {
        id: (*id).into(),
        state: InstanceState::Running,
        offering: None,
        zone: "us-east-1b".into(),
        instance_type: "g5.xlarge".into(),
        protected: Some(true),
        launched: Some(*launched),
        ends: None,
    });
    *rig.hosts.clouds.lock().unwrap() = vec![KnownPool {
        name: "east".into(),
        region: Some("us-east-1".into()),
        reading: Some(Arc::new(PoolReading {
            instances: instances.collect(),
            ..PoolReading::empty(rig.clock.wall())
        })),
    }];
}

/// A coordinator that believes the first signer, and an instance launched a minute ago.
async fn launched() -> (Rig, UnixMs) {
    use crate::ports::clock::Clock as _;
    let rig = Rig::new().await;
    let now = rig.clock.wall().0;
    let launched = UnixMs(now - now % 1_000 - 60_000);
    *rig.hosts.pinned.lock().unwrap() = Some(InstanceIdentity {
        accounts: ["123456789012".to_owned()].into(),
        certificates: [(
            "us-east-1".to_owned(),
            RegionCertificate::parse(EAST.certificate_pem()).unwrap(),
        )]
        .into(),
        within: minutes(15),
    });
    show(&rig, &[(INSTANCE, launched)]);
    (rig, launched)
}

async fn enrol(
    rig: &Rig,
    proof: v1::InstanceIdentity,
    key: &KeyPair,
) -> Result<v1::EnrolReply, Status> {
    let request = v1::EnrolRequest {
        token: String::new(),
        csr_der: csr(key),
        facts: Some(facts("ip-10-0-0-7")),
        instance_identity: Some(proof),
    };
    let mut client = rig.agent(None).await;
    soon(client.enrol(request))
        .await
        .map(tonic::Response::into_inner)
}

fn identity(reply: &v1::EnrolReply, key: Arc<KeyPair>) -> Identity {
    Identity {
        id: reply.node_id.clone(),
        key,
        certificate: der(&reply.certificate_pem),
    }
}

async fn audit(rig: &Rig, verb: &str) -> Vec<AuditRecord> {
    let all = rig.journal.audit(0, 1_000).await.unwrap();
    all.into_iter().filter(|line| line.verb == verb).collect()
}

async fn events(rig: &Rig, what: &str) -> Vec<Arc<EventRecord>> {
    let all = rig.journal.events(0, "", 1_000).await;
    all.into_iter().filter(|event| event.what == what).collect()
}

async fn claim(rig: &Rig) -> ClaimRecord {
    rig.read(&keys::named(keys::CLAIM, INSTANCE)).await.unwrap()
}

#[tokio::test]
async fn an_instance_of_a_pool_enrols_without_a_token_and_may_repeat_it() {
    let (rig, launched) = launched().await;
    let key = new_key();
    let proof = signed(&said(launched));
    let reply = enrol(&rig, proof.clone(), &key).await.unwrap();
    assert_eq!(reply.pool, "east");
    assert_eq!(reply.ca_pem, rig.ca.pem());
    let node = rig.node(&reply.node_id).await.unwrap();
    assert_eq!(node.pool, Some("east".into()));
    assert_eq!(node.instance, Some(INSTANCE.into()));
    assert_eq!(node.token, None);
    let proven = node.proven.unwrap();
    assert_eq!(
        (proven.account.as_str(), proven.image.as_str()),
        ("123456789012", "ami-0aabbccdd")
    );
    assert_eq!(proven.pending, launched);
    let told = audit(&rig, "node.enrol").await;
    assert!(told[0].detail.contains(INSTANCE), "{told:?}");
    let (_session, _) = opened(&rig, &identity(&reply, key.clone()), 0).await;

    // The reply was lost; even long after the launch it is the same node, and no news for anybody.
    rig.clock.advance(DAY);
    let again = enrol(&rig, proof, &key).await.unwrap();
    assert_eq!(again.node_id, reply.node_id);
    assert!(events(&rig, "quarantined").await.is_empty());
}

#[tokio::test]
async fn a_second_claim_is_refused_alarms_and_quarantines_until_a_person_readmits() {
    let (rig, launched) = launched().await;
    let proof = signed(&said(launched));
    let (first, second) = (new_key(), new_key());
    let reply = enrol(&rig, proof.clone(), &first).await.unwrap();
    let node = identity(&reply, first.clone());
    let (mut session, _) = opened(&rig, &node, 0).await;

    let refused = enrol(&rig, proof.clone(), &second).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("another key"), "{refused}");
    // The session of the first is closed, and nothing of it is lost: nothing was killed or forgotten.
    let end = session.end().await;
    assert_eq!(end.code(), Code::PermissionDenied);
    assert!(end.message().contains("quarantine"), "{end}");
    let record = rig.node(&reply.node_id).await.unwrap();
    assert!(!record.revoked);
    let why = record.quarantined.unwrap().why;
    assert!(
        why.contains("127.0.0.1") && why.contains("ip-10-0-0-7"),
        "{why}"
    );
    let told = events(&rig, "quarantined").await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].severity, Severity::Alarm);
    assert_eq!(audit(&rig, "node.quarantine").await.len(), 1);

    // Neither key gets anything now, by session, renewal or enrolment; more tries are no more news.
    for key in [&first, &second] {
        let refused = enrol(&rig, proof.clone(), key).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
    let mut session = rig.session(&node, hello(0)).await;
    assert!(session.end().await.message().contains("quarantine"));
    let renewal = v1::RenewRequest {
        csr_der: csr(&first),
        ..v1::RenewRequest::default()
    };
    let refused = rig.agent(Some(&node)).await.renew(renewal.clone()).await;
    assert!(refused.unwrap_err().message().contains("quarantine"));
    assert_eq!(events(&rig, "quarantined").await.len(), 1);
    assert_eq!(audit(&rig, "node.quarantine").await.len(), 1);

    // Readmitted: the same node, with another key, although the launch is long ago.
    rig.clock.advance(minutes(120));
    rig.desk()
        .readmit(&reply.node_id, "admin/ada", "looked at it")
        .await
        .unwrap();
    assert_eq!(events(&rig, "readmitted").await.len(), 1);
    let again = enrol(&rig, proof.clone(), &first).await.unwrap();
    assert!(again.new_key_needed && again.certificate_pem.is_empty());
    let third = new_key();
    let fresh = enrol(&rig, proof.clone(), &third).await.unwrap();
    assert_eq!(fresh.node_id, reply.node_id);
    let (_session, _) = opened(&rig, &identity(&fresh, third), 0).await;
    // The old certificate counts no more, nor does the old key.
    let old = rig.session(&node, hello(0)).await.end().await;
    assert_eq!(old.code(), Code::PermissionDenied, "{old}");
    let refused = enrol(&rig, proof.clone(), &first).await.unwrap_err();
    assert!(refused.message().contains("taken back"), "{refused}");
    assert_eq!(events(&rig, "quarantined").await.len(), 1);
    // And another one is a second claim again.
    enrol(&rig, proof, &second).await.unwrap_err();
    assert_eq!(events(&rig, "quarantined").await.len(), 2);
    assert!(claim(&rig).await.disputed.is_some());
}

#[tokio::test]
async fn certificates_of_before_a_readmission_count_no_more_whatever_their_number() {
    let (rig, launched) = launched().await;
    let proof = signed(&said(launched));
    let key = new_key();
    let reply = enrol(&rig, proof.clone(), &key).await.unwrap();
    let node = identity(&reply, key.clone());
    // A renewed one is the last that the record knows; the first is as valid.
    rig.clock.advance(minutes(1));
    let renewal = v1::RenewRequest {
        csr_der: csr(&key),
        ..v1::RenewRequest::default()
    };
    let mut client = rig.agent(Some(&node)).await;
    soon(client.renew(renewal.clone())).await.unwrap();
    rig.clock.advance(minutes(1));
    rig.desk().readmit(INSTANCE, "admin/ada", "").await.unwrap();
    let mut session = rig.session(&node, hello(0)).await;
    let end = session.end().await;
    assert!(end.message().contains("taken back"), "{end}");
    let refused = soon(client.renew(renewal)).await.unwrap_err();
    assert!(refused.message().contains("taken back"), "{refused}");
    // A reopening that nobody used ends, and leaves no key that counts.
    rig.clock.advance(minutes(61));
    let refused = enrol(&rig, proof.clone(), &key).await.unwrap_err();
    assert!(refused.message().contains("taken back"), "{refused}");
}

#[tokio::test]
async fn a_revoked_node_is_readmitted_and_one_with_a_token_is_not() {
    let (rig, launched) = launched().await;
    let proof = signed(&said(launched));
    let key = new_key();
    let reply = enrol(&rig, proof.clone(), &key).await.unwrap();
    let desk = rig.desk();
    let id = rig::Rig::node_id(&identity(&reply, key.clone()));
    desk.revoke_node(&id, "admin/ada", "lost").await.unwrap();
    let refused = enrol(&rig, proof.clone(), &key).await.unwrap_err();
    assert!(refused.message().contains("revoked"), "{refused}");
    desk.readmit(INSTANCE, "admin/ada", "").await.unwrap();
    let fresh = enrol(&rig, proof, &new_key()).await.unwrap();
    assert_eq!(fresh.node_id, reply.node_id);
    assert!(!rig.node(&reply.node_id).await.unwrap().revoked);

    let other = rig.enrol("titan-01").await;
    let refused = desk.readmit(&other.id, "admin/ada", "").await.unwrap_err();
    assert!(refused.to_string().contains("join token"), "{refused}");
    let refused = desk.readmit("n-0", "admin/ada", "").await.unwrap_err();
    assert!(refused.to_string().contains("no node"), "{refused}");
}

#[tokio::test]
async fn what_proves_too_little_is_refused_with_its_cause_and_leaves_nothing() {
    let (rig, launched) = launched().await;
    let good = || signed(&said(launched));
    let other = |change: fn(&mut signing::Identity)| {
        let mut identity = said(launched);
        change(&mut identity);
        signed(&identity)
    };
    let altered = v1::InstanceIdentity {
        document: good().document.replace(INSTANCE, "i-0fffffffffffffff0"),
        ..good()
    };
    let west = v1::InstanceIdentity {
        rsa2048: Signer::second().sign(&good().document),
        ..good()
    };
    let old = signed(&said(UnixMs(launched.0 - 900_000)));
    for (what, proof, code, needle) in [
        (
            "altered",
            altered,
            Code::Unauthenticated,
            "not the one that was signed",
        ),
        (
            "another region's certificate",
            west,
            Code::Unauthenticated,
            "another certificate",
        ),
        (
            "region not pinned",
            other(|said| said.region = "eu-west-1".into()),
            Code::Unauthenticated,
            "eu-west-1",
        ),
        (
            "another account",
            other(|said| said.account = "999999999999".into()),
            Code::PermissionDenied,
            "999999999999",
        ),
        (
            "not seen yet",
            other(|said| said.instance = "i-0fffffffffffffff0".into()),
            Code::Unavailable,
            "not seen yet",
        ),
        ("too old", old, Code::FailedPrecondition, "16 min ago"),
        (
            "another zone",
            other(|said| said.zone = "us-east-1a".into()),
            Code::FailedPrecondition,
            "not what its provider says",
        ),
        (
            "oversized",
            v1::InstanceIdentity {
                document: "x".repeat(5_000),
                ..good()
            },
            Code::InvalidArgument,
            "too large",
        ),
        (
            "empty",
            v1::InstanceIdentity::default(),
            Code::Unauthenticated,
            "does not hold",
        ),
    ] {
        let refused = enrol(&rig, proof, &new_key()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{what}: {refused}");
        assert!(refused.message().contains(needle), "{what}: {refused}");
        assert!(
            !refused.message().contains("123456789012"),
            "{what}: {refused}"
        );
    }
    // A reading of later than the launch and its lag: then it is in no group of ours.
    rig.clock.advance(minutes(3));
    show(&rig, &[]);
    let refused = enrol(&rig, good(), &new_key()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("in no group"), "{refused}");
    assert!(rig.store.list(keys::NODE).await.unwrap().is_empty());
    assert!(rig.store.list(keys::CLAIM).await.unwrap().is_empty());
    assert!(audit(&rig, "node.enrol").await.is_empty());

    // Two proofs, facts of another instance, and a coordinator that takes no documents.
    let request = |change: fn(&mut v1::EnrolRequest)| {
        let mut request = v1::EnrolRequest {
            csr_der: csr(&new_key()),
            facts: Some(facts("h")),
            instance_identity: Some(good()),
            ..v1::EnrolRequest::default()
        };
        change(&mut request);
        request
    };
    let mut client = rig.agent(None).await;
    let two = request(|request| request.token = "drover-join-v1.a".into());
    let refused = client.enrol(two).await.unwrap_err();
    assert!(refused.message().starts_with("token"), "{refused}");
    let facts = request(|request| {
        request.facts.as_mut().unwrap().instance_id = Some("i-0ffffffff".into());
    });
    let refused = client.enrol(facts).await.unwrap_err();
    assert!(
        refused.message().starts_with("facts.instance_id"),
        "{refused}"
    );
    *rig.hosts.pinned.lock().unwrap() = None;
    let refused = client.enrol(request(|_| {})).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn many_at_once_with_one_document_make_one_node() {
    let (rig, launched) = launched().await;
    let rig = Arc::new(rig);
    let proof = signed(&said(launched));
    let tries = (0..8).map(|_| {
        let (rig, proof) = (rig.clone(), proof.clone());
        tokio::spawn(async move { enrol(&rig, proof, &new_key()).await })
    });
    let mut given = 0;
    for tried in tries.collect::<Vec<_>>() {
        given += usize::from(tried.await.unwrap().is_ok());
    }
    assert_eq!(given, 1);
    assert_eq!(rig.store.list(keys::NODE).await.unwrap().len(), 1);
    assert_eq!(events(&rig, "quarantined").await.len(), 1);
}

#[tokio::test]
async fn claims_of_nodes_that_are_gone_leave_the_store_after_a_day_and_no_others() {
    let (rig, launched) = launched().await;
    let old = |node: &str| ClaimRecord {
        instance: "i-0ffffffff".into(),
        node: node.into(),
        key_sha256: "ab".into(),
        at: launched,
        disputed: None,
        reopened_until: None,
        barred: Vec::new(),
    };
    let known = rig.enrol("titan-01").await;
    for (instance, node) in [
        ("i-0aaaaaaaa", "n-gone"),
        ("i-0bbbbbbbb", known.id.as_str()),
    ] {
        rig.put(&keys::named(keys::CLAIM, instance), &old(node))
            .await;
    }
    let claims = async || {
        let entries = rig.store.list(keys::CLAIM).await.unwrap();
        let keys = entries.into_iter().map(|entry| entry.key);
        keys.map(|key| key.trim_start_matches(keys::CLAIM).to_owned())
            .collect::<Vec<_>>()
    };
    let key = new_key();
    let proof = signed(&said(launched));
    enrol(&rig, proof.clone(), &key).await.unwrap();
    assert_eq!(claims().await.len(), 3, "none is old");
    rig.clock.advance(DAY);
    rig.clock.advance(minutes(1));
    enrol(&rig, proof, &key).await.unwrap();
    assert_eq!(claims().await, [INSTANCE, "i-0bbbbbbbb"], "in order");
}
