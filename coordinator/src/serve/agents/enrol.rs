//! Enrolment: a join token for an identity, one guarded commit. Repeating it with the same token and key gives the same
//! node. Hosts without a token prove their instance in `instances`. Also takes in a node that holds a certificate of ours and is unknown, as after a restore of an older backup.

use super::{ATTEMPTS, Agents, commit_failed, read_failed, too_contended};
use crate::adapters::ca::{Csr, Issued, PeerCertificate};
use crate::adapters::link::Ending;
use crate::adapters::tokens::{Presented, TokenError, Use};
use crate::control::journal::Change;
use crate::control::ledger::Held;
use crate::ports::store::CommitError;
use crate::records::{NodeRecord, TokenRecord, keys};
use crate::serve::convert::limits::{self as check, FieldError};
use drover_core::model::{NodeId, UnixMs};
use drover_proto::{limits, v1};
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use tonic::Status;

fn token_refused(error: &TokenError) -> Status {
    let text = error.to_string();
    match error {
        TokenError::Malformed => Status::invalid_argument(text),
        TokenError::OtherCa | TokenError::Unknown => Status::unauthenticated(text),
        TokenError::Revoked
        | TokenError::Expired
        | TokenError::Exhausted(_)
        | TokenError::OtherHost { .. } => Status::permission_denied(text),
    }
}

impl Agents {
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Held<T>>, Status> {
        let entry = self.store().get(key).await.map_err(|e| read_failed(&e))?;
        let Some(entry) = entry else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&entry.value).map_err(|error| {
            tracing::error!(
                key,
                error = &error as &dyn std::error::Error,
                "broken record"
            );
            Status::internal(format!("the record {key} cannot be understood"))
        })?;
        Ok(Some(Held {
            value,
            revision: entry.revision,
        }))
    }

    pub(super) async fn enrol(
        &self,
        request: v1::EnrolRequest,
        from: Option<SocketAddr>,
    ) -> Result<v1::EnrolReply, Status> {
        check::blob("token", request.token.as_bytes(), limits::TEXT_BYTES)?;
        let csr = parse_csr(&request.csr_der)?;
        let facts = check::required("facts", request.facts.as_ref())?;
        check::facts(facts)?;
        if let Some(proof) = &request.instance_identity {
            if !request.token.is_empty() {
                let why = "stands beside instance_identity: one proof is enough";
                return Err(FieldError::new("token", why.to_owned()).into());
            }
            return self.enrol_instance(proof, &csr, facts, from).await;
        }
        let presented = Presented::parse(&request.token, self.parts.ca.sha256())
            .map_err(|error| token_refused(&error))?;
        let _one_at_a_time = self.enrolling.lock().await;
        for _ in 0..ATTEMPTS {
            match self.enrol_once(&presented, &csr, facts).await? {
                Some(reply) => return Ok(reply),
                None => continue,
            }
        }
        Err(too_contended())
    }

    /// `None`: somebody else changed a record meanwhile.
    async fn enrol_once(
        &self,
        presented: &Presented,
        csr: &Csr,
        facts: &v1::Facts,
    ) -> Result<Option<v1::EnrolReply>, Status> {
        let now = self.parts.clock.wall();
        let token_key = keys::named(keys::TOKEN, presented.id.as_str());
        let token: Option<Held<TokenRecord>> = self.read(&token_key).await?;
        let record = token.as_ref().map(|held| &held.value);
        let verdict = presented
            .judge(record, csr.key_sha256(), &facts.hostname, now)
            .inspect_err(|error| {
                tracing::warn!(
                    token = %presented.id, host = facts.hostname,
                    error = error as &dyn std::error::Error, "enrolment refused"
                );
            })
            .map_err(|error| token_refused(&error))?;
        let Some(mut token) = token else {
            return Err(token_refused(&TokenError::Unknown));
        };

        let mut change = Change::new();
        let (id, known) = match verdict {
            Use::First => {
                let id = NodeId::new(format!("n-{}", hex::encode(rand::random::<[u8; 6]>())));
                let used = (csr.key_sha256().to_owned(), id.clone());
                token.value.uses.push(used);
                change.put(token_key, &token.value, Some(token.revision));
                (id, None)
            }
            Use::Again(id) => {
                change.expect(token_key, token.revision);
                let known = self.read::<NodeRecord>(&node_key(&id)).await?;
                (id, known)
            }
        };
        let held = known.as_ref().map(|held| held.revision);
        let issued = self.issue(csr, &id, now)?;
        let mut node = match known {
            Some(held) => {
                fit(&held.value)?;
                held.value
            }
            None => {
                let pool = self
                    .parts
                    .admission
                    .admit(facts, token.value.pool.as_ref())
                    .map_err(Status::failed_precondition)?;
                NodeRecord {
                    instance: self.parts.admission.instance(facts, pool.as_ref()),
                    token: Some(token.value.id.clone()),
                    pool,
                    ..blank(&id, facts, now)
                }
            }
        };
        node.serial = issued.serial.clone();
        node.not_after = issued.not_after;
        change.put(node_key(&id), &node, held).audit(
            &format!("node/{id}"),
            "node.enrol",
            id.as_str(),
            format!(
                "host {:?} with token {} of {}, certificate {}",
                facts.hostname, token.value.id, token.value.by, issued.serial
            ),
        );
        match self.parts.journal.commit(change).await {
            Ok(_) => {}
            Err(CommitError::Conflict { .. }) => return Ok(None),
            Err(error) => return Err(commit_failed(&error)),
        }
        fail::fail_point!("enrol.committed");
        tracing::info!(node = %id, host = facts.hostname, serial = issued.serial, "enrolled");
        Ok(Some(self.enrolled(node, issued)))
    }

    pub(super) fn enrolled(&self, node: NodeRecord, issued: Issued) -> v1::EnrolReply {
        v1::EnrolReply {
            node_id: node.id.0,
            certificate_pem: issued.pem,
            ca_pem: self.parts.ca.pem().to_owned(),
            pool: node.pool.map(|pool| pool.0).unwrap_or_default(),
            new_key_needed: false,
        }
    }

    pub(super) fn issue(&self, csr: &Csr, id: &NodeId, now: UnixMs) -> Result<Issued, Status> {
        self.parts.ca.issue_node(csr, id, now).map_err(|error| {
            tracing::error!(node = %id, error = &error as &dyn std::error::Error, "cannot issue");
            Status::internal("cannot issue a certificate")
        })
    }

    /// The record of a node that shows a valid certificate. One that the store does not know was enrolled after the
    /// backup that the store was restored from: it becomes supply where admission puts it, rather than a dead host.
    pub(super) async fn known_or_adopted(
        &self,
        certificate: &PeerCertificate,
        id: &NodeId,
        facts: &v1::Facts,
    ) -> Result<NodeRecord, Status> {
        if let Some(held) = self.read::<NodeRecord>(&node_key(id)).await? {
            fit(&held.value)?;
            counts(&held.value, certificate)?;
            return Ok(held.value);
        }
        if self.parts.hub.is_forgotten(id) {
            return Err(Status::permission_denied(
                "this node was removed: it must enrol again",
            ));
        }
        let now = self.parts.clock.wall();
        let pool = self
            .parts
            .admission
            .admit(facts, None)
            .map_err(Status::failed_precondition)?;
        let node = NodeRecord {
            instance: self.parts.admission.instance(facts, pool.as_ref()),
            pool,
            serial: certificate.serial.clone(),
            not_after: certificate.not_after,
            ..blank(id, facts, now)
        };
        let mut change = Change::new();
        change.put(node_key(id), &node, None).audit(
            &format!("node/{id}"),
            "node.adopt",
            id.as_str(),
            format!(
                "host {:?}: certificate is ours, the store did not know it",
                facts.hostname
            ),
        );
        match self.parts.journal.commit(change).await {
            Ok(_) => {
                tracing::warn!(node = %id, host = facts.hostname, "took in a node that the store did not know");
                Ok(node)
            }
            Err(CommitError::Conflict { .. }) => Err(too_contended()),
            Err(error) => Err(commit_failed(&error)),
        }
    }
}

pub(super) fn parse_csr(der: &[u8]) -> Result<Csr, Status> {
    check::blob("csr_der", der, limits::CERTIFICATE_BYTES)?;
    Csr::parse(der).map_err(|error| FieldError::new("csr_der", error.to_string()).into())
}

pub(super) fn node_key(id: &NodeId) -> String {
    keys::named(keys::NODE, id.as_str())
}

/// The node may have certificates and sessions.
pub(super) fn fit(node: &NodeRecord) -> Result<(), Status> {
    if node.quarantined.is_some() {
        return Err(Status::permission_denied(Ending::Quarantined.to_string()));
    }
    if node.revoked {
        return Err(revoked());
    }
    Ok(())
}

pub(super) fn revoked() -> Status {
    Status::permission_denied("this node was revoked: it must enrol again with a new key and token")
}

/// The certificate was not given before the node was readmitted: whoever holds one of those must enrol again.
pub(super) fn counts(node: &NodeRecord, certificate: &PeerCertificate) -> Result<(), Status> {
    if node
        .void_before
        .is_some_and(|end| certificate.not_after < end)
    {
        return Err(Status::permission_denied(
            "this certificate was taken back when the node was readmitted: it must enrol again",
        ));
    }
    Ok(())
}

pub(super) fn blank(id: &NodeId, facts: &v1::Facts, now: UnixMs) -> NodeRecord {
    NodeRecord {
        machine_id: facts.machine_id.clone(),
        ..NodeRecord::joined(id.clone(), facts.hostname.clone(), now)
    }
}
