//! What the service shows: parts of the fleet's view by name, before and after a change. Used by `serve/admin`.

use super::refusal::{refuse, text};
use super::{Admin, Answer};
use crate::control::commands::Outcome;
use crate::control::view::{FleetView, NodeView};
use crate::serve::convert::{nodes, pools, requests};
use drover_core::model::{PoolId, PoolKind};
use drover_proto::{limits, v1};
use std::sync::Arc;
use tonic::metadata::MetadataValue;
use tonic::{Response, Status};

/// The kind of a node's pool.
pub(super) fn kind_of(view: &FleetView, node: &NodeView) -> Option<PoolKind> {
    node.pool
        .as_ref()
        .and_then(|id| view.pool(id.as_str()))
        .and_then(|pool| pool.kind)
}

impl Admin {
    /// The fleet as the last cycle saw it. Before the first one nothing is known, and an empty fleet would be a lie: it
    /// is waited for.
    ///
    /// # Errors
    /// Unavailable when no cycle ends in time.
    pub(super) async fn view(&self) -> Result<Arc<FleetView>, Status> {
        let mut view = self.commands.view();
        if view.cycle == 0 {
            view = self.commands.fresh_view().await;
        }
        if view.cycle == 0 {
            return Err(Status::unavailable(
                "the coordinator has just started and knows no node yet; try again in a moment",
            ));
        }
        Ok(view)
    }

    /// What events call the one thing that is meant, which no view names before the first cycle; empty for all.
    pub(super) async fn subject(&self, name: &str) -> Result<String, Status> {
        text("subject", name, limits::NAME_BYTES)?;
        if !name.is_empty() {
            self.view().await?;
        }
        self.commands.event_subject(name).await.map_err(refuse)
    }

    pub(super) fn wire(&self, view: &FleetView, node: &NodeView) -> v1::Node {
        let kind = kind_of(view, node);
        let now = self.clock.wall();
        // What the agent said since the last cycle is shown at once.
        match self.commands.agent(&node.id) {
            Some(agent) => {
                let newer = NodeView {
                    last_seen: Some(agent.last_seen),
                    agent: Some(agent),
                    ..node.clone()
                };
                nodes::node(&newer, kind, now)
            }
            None => nodes::node(node, kind, now),
        }
    }

    /// The one node that is meant, as the view shows it.
    pub(super) fn node(&self, view: &FleetView, name: &str) -> Result<v1::Node, Status> {
        text("node", name, limits::NAME_BYTES)?;
        let id = self.commands.node_id(name).map_err(refuse)?;
        let node = view.nodes.iter().find(|node| node.id == id);
        node.map(|node| self.wire(view, node))
            .ok_or_else(|| Status::not_found(format!("node {name} is no longer here")))
    }

    /// The node after a change, from a cycle that has seen it.
    pub(super) async fn changed_node(&self, id: &str) -> Answer<v1::Node> {
        let view = self.commands.fresh_view().await;
        self.node(&view, id).map(Response::new)
    }

    pub(super) fn pool(view: &FleetView, name: &str) -> Result<v1::Pool, Status> {
        text("pool", name, limits::NAME_BYTES)?;
        let pool = view.pool(name).map(pools::pool);
        pool.ok_or_else(|| Status::not_found(format!("no pool is named {name:?}")))
    }

    pub(super) async fn changed_pool(&self, done: Outcome<PoolId>) -> Answer<v1::Pool> {
        let view = self.commands.fresh_view().await;
        let pool = Self::pool(&view, done.of.as_str()).map(Response::new)?;
        Ok(noted(pool, done.unchanged))
    }

    pub(super) fn request(view: &FleetView, name: &str) -> Result<v1::Request, Status> {
        text("name", name, limits::NAME_BYTES)?;
        let request = view.request(name).map(requests::request);
        request.ok_or_else(|| Status::not_found(format!("no request is named {name:?}")))
    }

    pub(super) async fn changed_request(&self, name: &str) -> Answer<v1::Request> {
        let view = self.commands.fresh_view().await;
        Self::request(&view, name).map(Response::new)
    }

    pub(super) async fn freezes(&self) -> Answer<v1::FreezeReply> {
        let view = self.commands.fresh_view().await;
        let freezes = view.freezes.iter().map(pools::freeze).collect();
        Ok(Response::new(v1::FreezeReply { freezes }))
    }
}

/// An answer with a word for the person beside it: why nothing was changed.
pub(super) fn noted<T>(answer: Response<T>, note: Option<String>) -> Response<T> {
    beside(answer, limits::NOTE, note)
}

/// An answer with a warning beside it: it was done, and this is open.
pub(super) fn warned<T>(answer: Response<T>, warning: Option<String>) -> Response<T> {
    beside(answer, limits::WARNING, warning)
}

fn beside<T>(mut answer: Response<T>, key: &'static str, text: Option<String>) -> Response<T> {
    if let Some(text) = text {
        let text = MetadataValue::from_bytes(text.as_bytes());
        answer.metadata_mut().insert_bin(key, text);
    }
    answer
}
