//! Enrolment by EC2 instance identity document: no secret on the host. The first key that uses an instance's document is
//! its node; the same key may repeat it; another one is refused, alarms, and puts the node into quarantine.
//!
//! Called by `enrol`. **Invariant:** a quarantine changes nothing on the node and ends no instance (I1, I6): its sessions
//! are refused, and it counts as unreachable until a person readmits it.

mod claim;
mod dispute;

use super::enrol::{blank, fit, node_key};
use super::place::{Misplaced, fresh, place};
use super::{ATTEMPTS, Agents, commit_failed, too_contended};
use crate::adapters::ca::Csr;
use crate::adapters::instance_identity::{self, Document, ProofError};
use crate::control::journal::Change;
use crate::control::ledger::Held;
use crate::ports::store::CommitError;
use crate::records::{ClaimRecord, NodeRecord, ProvenInstance, keys};
use crate::serve::convert::limits::FieldError;
use claim::{Claim, judge};
use drover_core::model::{Millis, NodeId, UnixMs};
use drover_proto::v1;
use std::net::SocketAddr;
use tonic::Status;

/// Who asks, with what it has proved.
struct Asker<'a> {
    document: &'a Document,
    csr: &'a Csr,
    facts: &'a v1::Facts,
    from: Option<SocketAddr>,
    within: Millis,
}

fn unproven(error: &ProofError) -> Status {
    let text = error.to_string();
    match error {
        ProofError::TooLarge | ProofError::Document(_) => Status::invalid_argument(text),
        ProofError::Signature(_)
        | ProofError::Region(_)
        | ProofError::Expired(_)
        | ProofError::OtherDocument => Status::unauthenticated(text),
        ProofError::Account(_) => Status::permission_denied(text),
    }
}

fn misplaced(error: &Misplaced) -> Status {
    let text = error.to_string();
    if error.may_pass() {
        Status::unavailable(text)
    } else {
        Status::failed_precondition(text)
    }
}

fn claim_key(document: &Document) -> String {
    keys::named(keys::CLAIM, document.instance.as_str())
}

impl Agents {
    /// An identity for an instance that proves which one it is.
    pub(super) async fn enrol_instance(
        &self,
        proof: &v1::InstanceIdentity,
        csr: &Csr,
        facts: &v1::Facts,
        from: Option<SocketAddr>,
    ) -> Result<v1::EnrolReply, Status> {
        let Some(pinned) = self.parts.admission.instance_identity() else {
            return Err(Status::failed_precondition(
                "this coordinator takes no instance identity documents: write [enrolment.instance_identity] into its config",
            ));
        };
        let now = self.parts.clock.wall();
        let document = instance_identity::verify(&pinned, &proof.document, &proof.rsa2048, now)
            .inspect_err(|error| {
                tracing::warn!(
                    from = from.map(tracing::field::display),
                    error = error as &dyn std::error::Error,
                    "enrolment refused"
                );
            })
            .map_err(|error| unproven(&error))?;
        let said = facts.instance_id.as_deref();
        if said.is_some_and(|said| said != document.instance.as_str()) {
            let why = "is another instance than the identity document's";
            return Err(FieldError::new("facts.instance_id", why.to_owned()).into());
        }
        let asker = Asker {
            document: &document,
            csr,
            facts,
            from,
            within: pinned.within,
        };
        let _one_at_a_time = self.enrolling.lock().await;
        for _ in 0..ATTEMPTS {
            if let Some(reply) = self.claim(&asker).await? {
                self.sweep_claims().await;
                return Ok(reply);
            }
        }
        Err(too_contended())
    }

    /// `None`: somebody else changed a record meanwhile.
    async fn claim(&self, asker: &Asker<'_>) -> Result<Option<v1::EnrolReply>, Status> {
        let now = self.parts.clock.wall();
        let claim: Option<Held<ClaimRecord>> = self.read(&claim_key(asker.document)).await?;
        let record = claim.as_ref().map(|held| &held.value);
        let verdict = judge(record, asker.csr.key_sha256(), now);
        match (verdict, claim) {
            (Claim::NeedsNewKey, _) => Ok(Some(v1::EnrolReply {
                new_key_needed: true,
                ..v1::EnrolReply::default()
            })),
            (Claim::Barred, _) => Err(Status::permission_denied(
                "the key of this node was taken back: `drover nodes readmit` lets its instance enrol once more",
            )),
            (Claim::Second, Some(claim)) => self.dispute(asker, claim, now).await,
            (Claim::First, _) | (Claim::Second, None) => {
                fresh(asker.document, asker.within, now).map_err(|error| misplaced(&error))?;
                self.give(asker, None, now).await
            }
            (Claim::Again | Claim::Anew, claim) => self.give(asker, claim, now).await,
        }
    }

    /// A certificate for the instance's node, minted when there is none.
    async fn give(
        &self,
        asker: &Asker<'_>,
        claim: Option<Held<ClaimRecord>>,
        now: UnixMs,
    ) -> Result<Option<v1::EnrolReply>, Status> {
        let document = asker.document;
        let id = claim.as_ref().map_or_else(
            || NodeId::new(format!("n-{}", hex::encode(rand::random::<[u8; 6]>()))),
            |held| held.value.node.clone(),
        );
        let known: Option<Held<NodeRecord>> = self.read(&node_key(&id)).await?;
        let held = known.as_ref().map(|held| held.revision);
        let mut node = match known {
            Some(held) => {
                fit(&held.value)?;
                held.value
            }
            None => {
                let pools = self.parts.admission.pools();
                let pool = place(&pools, document)
                    .inspect_err(|error| {
                        tracing::info!(
                            error = error as &dyn std::error::Error,
                            "enrolment refused"
                        );
                    })
                    .map_err(|error| misplaced(&error))?;
                NodeRecord {
                    instance: Some(document.instance.clone()),
                    pool: Some(pool),
                    ..blank(&id, asker.facts, now)
                }
            }
        };
        let issued = self.issue(asker.csr, &id, now)?;
        node.proven = Some(proven(document));
        node.serial = issued.serial.clone();
        node.not_after = issued.not_after;
        let before = claim.as_ref();
        let record = ClaimRecord {
            instance: document.instance.clone(),
            node: id.clone(),
            key_sha256: asker.csr.key_sha256().to_owned(),
            at: now,
            disputed: None,
            reopened_until: None,
            barred: before.map_or_else(Vec::new, |held| held.value.barred.clone()),
        };
        let mut change = Change::new();
        change
            .put(
                claim_key(document),
                &record,
                before.map(|held| held.revision),
            )
            .put(node_key(&id), &node, held)
            .audit(
                &format!("node/{id}"),
                "node.enrol",
                id.as_str(),
                format!(
                    "host {:?} as instance {} of account {}, image {}, certificate {}",
                    asker.facts.hostname,
                    document.instance,
                    document.account,
                    document.image,
                    issued.serial
                ),
            );
        match self.parts.journal.commit(change).await {
            Ok(_) => {}
            Err(CommitError::Conflict { .. }) => return Ok(None),
            Err(error) => return Err(commit_failed(&error)),
        }
        fail::fail_point!("enrol.committed");
        tracing::info!(
            node = %id, instance = %document.instance, host = asker.facts.hostname,
            serial = issued.serial, "enrolled"
        );
        Ok(Some(self.enrolled(node, issued)))
    }
}

fn proven(document: &Document) -> ProvenInstance {
    ProvenInstance {
        account: document.account.clone(),
        region: document.region.clone(),
        zone: document.zone.clone(),
        instance_type: document.instance_type.clone(),
        image: document.image.clone(),
        pending: document.pending,
    }
}
