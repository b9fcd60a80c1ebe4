//! A second key claims an instance: the node of the first one goes into quarantine.
//!
//! Called by `instances`. **Invariant:** nothing on the node is changed and no instance is ended (I1, I6).

use super::{Asker, claim_key};
use crate::control::events::Happening;
use crate::control::journal::Change;
use crate::control::ledger::Held;
use crate::ports::store::CommitError;
use crate::records::{ClaimRecord, NodeRecord, QuarantineRecord};
use crate::serve::agents::enrol::node_key;
use crate::serve::agents::{Agents, commit_failed};
use drover_core::model::UnixMs;
use drover_proto::v1;
use tonic::Status;

impl Agents {
    /// A second key claims an instance. Either may be the thief: neither is believed until a person has looked.
    pub(super) async fn dispute(
        &self,
        asker: &Asker<'_>,
        claim: Held<ClaimRecord>,
        now: UnixMs,
    ) -> Result<Option<v1::EnrolReply>, Status> {
        let document = asker.document;
        let refused = || {
            Status::permission_denied(format!(
                "instance {} is claimed by another key: its node is in quarantine until `drover nodes readmit`",
                document.instance
            ))
        };
        if claim.value.disputed.is_some() {
            return Err(refused());
        }
        let id = claim.value.node.clone();
        let from = asker
            .from
            .map_or_else(|| "an unknown address".to_owned(), |from| from.to_string());
        let why = format!(
            "a second key claimed its instance {} from {from}, as host {:?}",
            document.instance, asker.facts.hostname
        );
        let mut change = Change::new();
        let disputed = ClaimRecord {
            disputed: Some(now),
            ..claim.value
        };
        change.put(claim_key(document), &disputed, Some(claim.revision));
        let node: Option<Held<NodeRecord>> = self.read(&node_key(&id)).await?;
        let name = node
            .as_ref()
            .map_or_else(|| id.0.clone(), |held| held.value.name.clone());
        if let Some(held) = node {
            let node = NodeRecord {
                quarantined: Some(QuarantineRecord {
                    at: now,
                    why: why.clone(),
                }),
                ..held.value
            };
            change.put(node_key(&id), &node, Some(held.revision));
        }
        change
            .event(Happening::Quarantined {
                node: id.clone(),
                name,
                why: why.clone(),
            })
            .audit("drover", "node.quarantine", id.as_str(), why);
        match self.parts.journal.commit(change).await {
            Ok(_) => {}
            Err(CommitError::Conflict { .. }) => return Ok(None),
            Err(error) => return Err(commit_failed(&error)),
        }
        fail::fail_point!("enrol.disputed");
        self.parts.hub.quarantine(&id);
        Err(refused())
    }
}
