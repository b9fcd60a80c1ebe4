//! The longer wishes of the admin service: drains, tokens, revocation, certificates, backups. Used by `serve/admin`.

use super::refusal::{identity, named, refuse, sealing, text, token};
use super::shown::kind_of;
use super::{Admin, Answer, BackupStream, CHUNK, given, span};
use crate::adapters::backup;
use crate::adapters::ca::identity::parse_role;
use crate::adapters::tokens::TokenWish;
use crate::control::commands::{CommandError, DrainWish};
use crate::control::journal::Change;
use crate::serve::convert::{nodes, records};
use drover_core::model::{Millis, PoolId};
use drover_proto::{limits, v1};
use tonic::{Response, Status};

impl Admin {
    /// Begins to empty a node.
    pub(super) async fn drain(&self, by: String, wish: v1::DrainNodeRequest) -> Answer<v1::Node> {
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let view = self.view().await?;
        let id = self.commands.node_id(&wish.node).map_err(refuse)?;
        let node = view.nodes.iter().find(|node| node.id == id);
        let kind = node.and_then(|node| kind_of(&view, node));
        let policy = v1::DrainPolicy::try_from(wish.policy)
            .map_err(|_| Status::invalid_argument("policy: not known; say wait, evict or force"))?;
        let then = nodes::then_from(&wish.then, kind).map_err(|why| named("then", &why))?;
        let wish = DrainWish {
            node: id.0.clone(),
            policy: nodes::policy_from(policy),
            deadline: span(wish.deadline_ms),
            grace: span(wish.grace_ms),
            reason: if wish.reason.is_empty() {
                format!("asked by {by}")
            } else {
                wish.reason
            },
            then,
        };
        let id = self.commands.drain(&by, &wish).await.map_err(refuse)?;
        self.changed_node(id.as_str()).await
    }

    /// Makes a join token.
    pub(super) async fn admit(
        &self,
        by: String,
        wish: v1::CreateTokenRequest,
    ) -> Answer<v1::CreateTokenReply> {
        if let Some(pool) = given(&wish.pool) {
            Self::pool(&*self.view().await?, pool)?;
        }
        let wish = TokenWish {
            pool: given(&wish.pool).map(PoolId::from),
            host: given(&wish.host).map(str::to_owned),
            max_uses: wish.max_uses,
            ttl: Millis(wish.ttl_ms),
        };
        let (record, secret) = self.tokens.create(wish, &by).await.map_err(token)?;
        let shown = Some(records::token(&record));
        Ok(Response::new(v1::CreateTokenReply {
            token: shown,
            text: secret,
        }))
    }

    /// Revokes a node.
    pub(super) async fn expel(&self, by: String, wish: v1::RevokeNodeRequest) -> Answer<v1::Node> {
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let view = self.view().await?;
        let id = self.commands.node_id(&wish.node).map_err(refuse)?;
        // It may be gone from the view afterwards.
        let before = self.node(&view, id.as_str())?;
        let done = self.identities.revoke_node(&id, &by, &wish.reason).await;
        done.map_err(identity)?;
        let after = self.changed_node(id.as_str()).await;
        Ok(after.unwrap_or_else(|_| Response::new(before)))
    }

    /// Lets a node's instance enrol once more. A revoked node is not in the view: its id or instance names it all the same.
    pub(super) async fn readmit(
        &self,
        by: String,
        wish: v1::ReadmitNodeRequest,
    ) -> Answer<v1::Node> {
        text("node", &wish.node, limits::NAME_BYTES)?;
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        self.view().await?;
        let name = match self.commands.node_id(&wish.node) {
            Ok(id) => id.0,
            Err(CommandError::NotFound { .. }) => wish.node,
            Err(error) => return Err(refuse(error)),
        };
        let done = self.identities.readmit(&name, &by, &wish.reason).await;
        let record = done.map_err(identity)?;
        self.changed_node(record.id.as_str()).await
    }

    /// Issues a client certificate.
    pub(super) async fn certify(
        &self,
        by: String,
        wish: v1::IssueAdminCertificateRequest,
    ) -> Answer<v1::IssueAdminCertificateReply> {
        let role = parse_role(&wish.role)
            .ok_or_else(|| named("role", "is not known; say viewer, operator or admin"))?;
        if wish.csr_der.len() > limits::CERTIFICATE_BYTES {
            return Err(named("csr_der", "is too large"));
        }
        let ttl = Millis(wish.ttl_ms);
        let issued = self
            .identities
            .issue_admin(&wish.name, role, &wish.csr_der, ttl, &by)
            .await;
        Ok(Response::new(v1::IssueAdminCertificateReply {
            certificate_pem: issued.map_err(identity)?.pem,
            ca_pem: self.identities.ca_pem().to_owned(),
        }))
    }

    /// Makes a backup.
    pub(super) async fn seal(&self, by: String, wish: v1::BackupRequest) -> Answer<BackupStream> {
        text("passphrase", &wish.passphrase, limits::TEXT_BYTES)?;
        let store = self.commands.journal().store();
        let made = backup::create(store.as_ref(), &self.state_dir, &wish.passphrase).await;
        let bytes = made.map_err(sealing)?;
        let mut change = Change::new();
        change.audit(
            &by,
            "backup.create",
            "store",
            format!("{} bytes", bytes.len()),
        );
        let written = self.commands.journal().commit(change).await;
        written.map_err(|error| refuse(CommandError::Commit(error)))?;
        let chunks: Vec<_> = bytes
            .chunks(CHUNK)
            .map(|data| {
                Ok(v1::BackupChunk {
                    data: data.to_vec(),
                })
            })
            .collect();
        Ok(Response::new(Box::pin(futures::stream::iter(chunks))))
    }
}
