//! Certificates of people, revocation and readmission. Called by the admin service, which has checked the role, and by `app` for
//! the first admin.

use crate::adapters::ca::{Ca, Csr, CsrError, IssueError, Issued, issue};
use crate::control::events::Happening;
use crate::control::journal::{Change, Journal};
use crate::ports::clock::Clock;
use crate::ports::link::AgentLink;
use crate::ports::store::{CommitError, ReadError, Revision};
use crate::records::{AdminRecord, ClaimRecord, NodeRecord, RevokedRecord, keys};
use drover_core::model::{Millis, NodeId, UnixMs};
use drover_core::rules::access::Role;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Why a wish about identities was not done.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The request is no good.
    #[error("csr_der {0}")]
    Csr(#[from] CsrError),
    /// The name or life is no good.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// No such node.
    #[error("no node has the id {0:?}")]
    NotFound(String),
    /// The record cannot be understood.
    #[error("the record of {0:?} cannot be understood")]
    Broken(String),
    /// It enrolled with a token: another token is the way back.
    #[error(
        "{0} did not enrol with an instance identity document: `drover nodes revoke` and a new join token let it enrol again"
    )]
    NoClaim(String),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error("the store refused the change")]
    Commit(#[source] CommitError),
}

/// How long an instance that was readmitted may enrol anew.
pub const REOPENED: Millis = Millis::minutes(60);
/// Keys taken back that are remembered of one instance.
const BARRED: usize = 64;

/// Issues and revokes.
#[derive(Clone)]
pub struct IdentityDesk {
    journal: Arc<Journal>,
    ca: Arc<Ca>,
    link: Arc<dyn AgentLink>,
    clock: Arc<dyn Clock>,
}

impl IdentityDesk {
    /// Over these parts.
    #[must_use]
    pub fn new(
        journal: Arc<Journal>,
        ca: Arc<Ca>,
        link: Arc<dyn AgentLink>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            journal,
            ca,
            link,
            clock,
        }
    }

    /// The CA, PEM: goes with every certificate.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.ca.pem()
    }

    /// A client certificate for the key of `csr_der`. `ttl` zero: 90 days.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub async fn issue_admin(
        &self,
        name: &str,
        role: Role,
        csr_der: &[u8],
        ttl: Millis,
        by: &str,
    ) -> Result<Issued, IdentityError> {
        let csr = Csr::parse(csr_der)?;
        let life = if ttl == Millis::ZERO {
            issue::ADMIN_LIFE
        } else {
            ttl
        };
        let now = self.clock.wall();
        let issued = self.ca.issue_admin(&csr, role, name, life, now)?;
        let record = AdminRecord {
            name: name.to_owned(),
            role,
            serial: issued.serial.clone(),
            not_after: issued.not_after,
            by: by.to_owned(),
        };
        let key = keys::named(keys::ADMIN, name);
        loop {
            let held = self.journal.store().get(&key).await?;
            let mut change = Change::new();
            change
                .put(key.clone(), &record, held.map(|entry| entry.revision))
                .audit(
                    by,
                    "admin.issue",
                    name,
                    format!(
                        "role {}, serial {}",
                        crate::adapters::ca::identity::role_word(role),
                        record.serial
                    ),
                );
            match self.journal.commit(change).await {
                Ok(_) => return Ok(issued),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(IdentityError::Commit(error)),
            }
        }
    }

    /// Lets the instance of a node enrol once more, with a new key: ends its quarantine or revocation. `name` is the node's
    /// id or the instance's. The key that it had counts no more; the node stays the same one.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub async fn readmit(
        &self,
        name: &str,
        by: &str,
        reason: &str,
    ) -> Result<NodeRecord, IdentityError> {
        loop {
            let store = self.journal.store();
            let node = &self.node_or_instance(name).await?;
            let key = keys::named(keys::NODE, node.as_str());
            let (mut record, revision): (NodeRecord, _) = self
                .held(&key, name)
                .await?
                .ok_or_else(|| IdentityError::NotFound(name.to_owned()))?;
            let no_claim = || IdentityError::NoClaim(record.name.clone());
            let instance = record.instance.as_ref().ok_or_else(no_claim)?;
            let claim_key = keys::named(keys::CLAIM, instance.as_str());
            let (mut claim, claimed): (ClaimRecord, _) = self
                .held(&claim_key, name)
                .await?
                .filter(|(claim, _): &(ClaimRecord, _)| claim.node == *node)
                .ok_or_else(no_claim)?;
            let now = self.clock.wall();
            if !claim.barred.contains(&claim.key_sha256) {
                claim.barred.push(claim.key_sha256.clone());
            }
            let extra = claim.barred.len().saturating_sub(BARRED);
            claim.barred.drain(..extra);
            claim.disputed = None;
            claim.reopened_until = Some(now.after(REOPENED));
            record.quarantined = None;
            record.revoked = false;
            // Certificates end with whole seconds.
            let ends = now.after(issue::NODE_LIFE).0;
            record.void_before = Some(UnixMs(ends - ends % 1_000));
            let revoked = RevokedRecord {
                serial: record.serial.clone(),
                subject: format!("node/{node}"),
                at: now,
                by: by.to_owned(),
                reason: reason.to_owned(),
            };
            let revoked_key = keys::named(keys::REVOKED, &record.serial);
            let before = store.get(&revoked_key).await?;
            let mut change = Change::new();
            change
                .put(key.clone(), &record, Some(revision))
                .put(claim_key, &claim, Some(claimed))
                .put(revoked_key, &revoked, before.map(|entry| entry.revision))
                .event(Happening::Readmitted {
                    node: node.clone(),
                    name: record.name.clone(),
                    by: by.to_owned(),
                    reason: reason.to_owned(),
                })
                .audit(by, "node.readmit", node.as_str(), reason);
            match self.journal.commit(change).await {
                Ok(_) => {
                    self.link.forget(node);
                    return Ok(record);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(IdentityError::Commit(error)),
            }
        }
    }

    /// The node of this id, or of the instance of this id.
    async fn node_or_instance(&self, name: &str) -> Result<NodeId, IdentityError> {
        let instance = name.strip_prefix("instance/").unwrap_or(name);
        let claim: Option<(ClaimRecord, _)> =
            self.held(&keys::named(keys::CLAIM, instance), name).await?;
        Ok(claim.map_or_else(|| NodeId::new(name), |(claim, _)| claim.node))
    }

    async fn held<T: DeserializeOwned>(
        &self,
        key: &str,
        name: &str,
    ) -> Result<Option<(T, Revision)>, IdentityError> {
        let Some(entry) = self.journal.store().get(key).await? else {
            return Ok(None);
        };
        let value = serde_json::from_slice(&entry.value)
            .map_err(|_| IdentityError::Broken(name.to_owned()))?;
        Ok(Some((value, entry.revision)))
    }

    /// Revokes every certificate of a node and ends its session; it must enrol again, with a new key and token.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub async fn revoke_node(
        &self,
        node: &NodeId,
        by: &str,
        reason: &str,
    ) -> Result<NodeRecord, IdentityError> {
        let key = keys::named(keys::NODE, node.as_str());
        loop {
            let Some(entry) = self.journal.store().get(&key).await? else {
                return Err(IdentityError::NotFound(node.0.clone()));
            };
            let mut record: NodeRecord = serde_json::from_slice(&entry.value)
                .map_err(|_| IdentityError::Broken(node.0.clone()))?;
            record.revoked = true;
            let revoked = RevokedRecord {
                serial: record.serial.clone(),
                subject: format!("node/{node}"),
                at: self.clock.wall(),
                by: by.to_owned(),
                reason: reason.to_owned(),
            };
            let revoked_key = keys::named(keys::REVOKED, &record.serial);
            let before = self.journal.store().get(&revoked_key).await?;
            let mut change = Change::new();
            change
                .put(key.clone(), &record, Some(entry.revision))
                .put(revoked_key, &revoked, before.map(|entry| entry.revision))
                .audit(by, "node.revoke", node.as_str(), reason);
            match self.journal.commit(change).await {
                Ok(_) => {
                    fail::fail_point!("revoke.committed");
                    self.link.forget(node);
                    return Ok(record);
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(IdentityError::Commit(error)),
            }
        }
    }
}
