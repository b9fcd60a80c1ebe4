//! Why things are as they are: the plan, an explanation, the audit log. Used by `serve/admin`; changes nothing.

use super::refusal::{refuse, text};
use super::{Admin, Answer, lines};
use crate::serve::convert::records;
use drover_core::planner;
use drover_proto::{limits, v1};
use std::sync::Arc;
use tonic::{Response, Status};

impl Admin {
    /// The last plan, or a fresh one that changes nothing.
    pub(super) async fn plan_made(&self, fresh: bool) -> Answer<v1::PlanReply> {
        let (cycle, plan) = if fresh {
            (
                0,
                Arc::new(self.commands.plan_fresh().await.map_err(refuse)?),
            )
        } else {
            self.commands.last_plan().ok_or_else(|| {
                Status::failed_precondition("no plan has been made yet; try again in a moment")
            })?
        };
        Ok(Response::new(v1::PlanReply {
            input_json: planner::to_bytes(&plan.0),
            plan_json: planner::to_bytes(&plan.1),
            cycle,
        }))
    }

    /// Why one thing is as it is.
    pub(super) async fn explained(&self, subject: &str) -> Answer<v1::ExplainReply> {
        text("subject", subject, limits::NAME_BYTES)?;
        self.view().await?;
        let said = self.commands.explain(subject).await.map_err(refuse)?;
        Ok(Response::new(v1::ExplainReply {
            kind: said.kind.to_owned(),
            name: said.name,
            summary: said.summary,
            lines: said.lines,
        }))
    }

    /// What was changed, and by whom.
    pub(super) async fn audited(&self, wish: &v1::ListAuditRequest) -> Answer<v1::ListAuditReply> {
        let found = self
            .commands
            .journal()
            .audit(wish.after_seq, lines(wish.limit))
            .await;
        let entries = found.map_err(|error| refuse(error.into()))?;
        let entries = entries.into_iter().map(records::audit).collect();
        Ok(Response::new(v1::ListAuditReply { entries }))
    }
}
