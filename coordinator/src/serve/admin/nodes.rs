//! Nodes: the list, and wishes about one: cordons, drains, revocation. Used by `serve/admin`.

use super::refusal::{identity, named, refuse, text};
use super::shown::kind_of;
use super::{Admin, Answer, span};
use crate::control::commands::{CommandError, DrainWish};
use crate::control::view::NodeView;
use crate::serve::convert::nodes;
use drover_proto::{limits, v1};
use tonic::{Response, Status};

impl Admin {
    /// Nodes of one pool, or all.
    pub(super) async fn nodes_of(&self, pool: &str) -> Answer<v1::ListNodesReply> {
        let view = self.view().await?;
        if !pool.is_empty() {
            Self::pool(&view, pool)?;
        }
        let of_pool = |node: &&NodeView| {
            pool.is_empty() || node.pool.as_ref().is_some_and(|id| id.as_str() == pool)
        };
        let nodes = view
            .nodes
            .iter()
            .filter(of_pool)
            .map(|node| self.wire(&view, node))
            .collect();
        Ok(Response::new(v1::ListNodesReply { nodes }))
    }

    /// Keeps work off a node.
    pub(super) async fn cordon(&self, by: String, wish: v1::CordonNodeRequest) -> Answer<v1::Node> {
        self.view().await?;
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let id = self
            .commands
            .cordon(&by, &wish.node, &wish.reason)
            .await
            .map_err(refuse)?;
        self.changed_node(id.as_str()).await
    }

    /// Takes a cordon back.
    pub(super) async fn uncordon(
        &self,
        by: String,
        wish: v1::UncordonNodeRequest,
    ) -> Answer<v1::Node> {
        self.view().await?;
        let id = self
            .commands
            .uncordon(&by, &wish.node)
            .await
            .map_err(refuse)?;
        self.changed_node(id.as_str()).await
    }

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

    /// Takes a drain back.
    pub(super) async fn take_drain_back(
        &self,
        by: String,
        wish: v1::CancelDrainRequest,
    ) -> Answer<v1::Node> {
        self.view().await?;
        let id = self
            .commands
            .cancel_drain(&by, &wish.node)
            .await
            .map_err(refuse)?;
        self.changed_node(id.as_str()).await
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
}
