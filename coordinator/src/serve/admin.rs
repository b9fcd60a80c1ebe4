//! The admin service: people's wishes to `control::commands` and the desks, the fleet's view to the wire. Made by `app`,
//! served by [`super::run`] behind the gate of `serve/auth`, which has checked the role of every call.
//! **Invariant:** decides nothing; everything that changes something is audited under the caller's name.

mod desk;
mod events;
mod groups;
mod refusal;
mod shown;

use super::auth::Caller;
use super::convert::{calls, pools, records, requests};
use super::identities::IdentityDesk;
use super::tokens::TokenDesk;
use crate::control::commands::{Commands, LimitsWish};
use crate::control::view::NodeView;
use crate::ports::calls::CallCounts;
use crate::ports::clock::Clock;
use crate::ports::survey::GroupSurvey;
use drover_core::model::Millis;
use drover_core::planner;
use drover_proto::v1::admin_service_server::{AdminService, AdminServiceServer};
use drover_proto::{limits, v1};
use futures::stream::BoxStream;
use refusal::{named, refuse, text};
use shown::noted;
use std::path::PathBuf;
use std::sync::Arc;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

/// Lines of a list without a limit.
const LINES: usize = 200;
/// Most lines of a list.
const LINES_MOST: usize = 100_000;
/// Bytes of one piece of a backup.
const CHUNK: usize = 1024 * 1024;

/// The service.
pub struct Admin {
    commands: Commands,
    tokens: TokenDesk,
    identities: IdentityDesk,
    state_dir: PathBuf,
    clock: Arc<dyn Clock>,
    calls: Option<Arc<dyn CallCounts>>,
    survey: Option<Arc<dyn GroupSurvey>>,
}

impl Admin {
    /// Over these parts; `state_dir` holds the CA key, for backups.
    #[must_use]
    pub fn new(
        commands: Commands,
        tokens: TokenDesk,
        identities: IdentityDesk,
        state_dir: PathBuf,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            commands,
            tokens,
            identities,
            state_dir,
            clock,
            calls: None,
            survey: None,
        }
    }

    /// Tells what is asked of a cloud's API as well.
    #[must_use]
    pub fn with_calls(mut self, calls: Arc<dyn CallCounts>) -> Self {
        self.calls = Some(calls);
        self
    }

    /// The same with an AWS that can be asked about groups.
    #[must_use]
    pub fn with_survey(mut self, survey: Option<Arc<dyn GroupSurvey>>) -> Self {
        self.survey = survey;
        self
    }

    /// For [`super::run`].
    #[must_use]
    pub fn routes(self) -> Routes {
        let service = AdminServiceServer::new(self)
            .max_decoding_message_size(limits::MESSAGE_BYTES)
            .max_encoding_message_size(limits::ADMIN_REPLY_BYTES);
        Routes::new(service)
    }
}

type Answer<T> = Result<Response<T>, Status>;
type BackupStream = BoxStream<'static, Result<v1::BackupChunk, Status>>;

/// Who asks, as audit lines name it, and what.
fn asked<T>(request: Request<T>) -> Result<(String, T), Status> {
    let by = Caller::of(request.extensions())?.actor();
    Ok((by, request.into_inner()))
}

fn lines(limit: u32) -> usize {
    match usize::try_from(limit) {
        Ok(0) => LINES,
        Ok(limit) => limit.min(LINES_MOST),
        Err(_) => LINES_MOST,
    }
}

fn span(ms: u64) -> Option<Millis> {
    Some(Millis(ms)).filter(|span| *span != Millis::ZERO)
}

fn given(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

#[tonic::async_trait]
impl AdminService for Admin {
    async fn status(&self, _: Request<v1::StatusRequest>) -> Answer<v1::StatusReply> {
        let store = self.commands.journal().store();
        let of = (store.store_id(), store.fence().0);
        let view = self.commands.view();
        Ok(Response::new(records::status(&view, of, self.clock.wall())))
    }

    async fn list_nodes(
        &self,
        request: Request<v1::ListNodesRequest>,
    ) -> Answer<v1::ListNodesReply> {
        let pool = request.into_inner().pool;
        let view = self.view().await?;
        if !pool.is_empty() {
            Self::pool(&view, &pool)?;
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

    async fn get_node(&self, request: Request<v1::GetNodeRequest>) -> Answer<v1::Node> {
        self.node(&*self.view().await?, &request.get_ref().node)
            .map(Response::new)
    }

    async fn list_pools(&self, _: Request<v1::ListPoolsRequest>) -> Answer<v1::ListPoolsReply> {
        let pools = self.view().await?.pools.iter().map(pools::pool).collect();
        Ok(Response::new(v1::ListPoolsReply { pools }))
    }

    async fn get_pool(&self, request: Request<v1::GetPoolRequest>) -> Answer<v1::Pool> {
        Self::pool(&*self.view().await?, &request.get_ref().pool).map(Response::new)
    }

    async fn list_requests(
        &self,
        request: Request<v1::ListRequestsRequest>,
    ) -> Answer<v1::ListRequestsReply> {
        use crate::control::view::RequestShown::{Cancelled, Ended};
        let all = request.get_ref().all;
        let view = self.view().await?;
        let shown = view
            .requests
            .iter()
            .filter(|r| all || !matches!(r.shown, Ended | Cancelled));
        let requests = shown.map(requests::request).collect();
        Ok(Response::new(v1::ListRequestsReply { requests }))
    }

    async fn get_request(&self, request: Request<v1::GetRequestRequest>) -> Answer<v1::Request> {
        Self::request(&*self.view().await?, &request.get_ref().name).map(Response::new)
    }

    async fn list_demand(&self, _: Request<v1::ListDemandRequest>) -> Answer<v1::ListDemandReply> {
        let demand = self
            .view()
            .await?
            .demand
            .iter()
            .map(requests::demand)
            .collect();
        Ok(Response::new(v1::ListDemandReply { demand }))
    }

    async fn plan(&self, request: Request<v1::PlanRequest>) -> Answer<v1::PlanReply> {
        let (cycle, plan) = if request.get_ref().fresh {
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

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Answer<v1::ExplainReply> {
        let subject = request.into_inner().subject;
        text("subject", &subject, limits::NAME_BYTES)?;
        self.view().await?;
        let said = self.commands.explain(&subject).await.map_err(refuse)?;
        Ok(Response::new(v1::ExplainReply {
            kind: said.kind.to_owned(),
            name: said.name,
            summary: said.summary,
            lines: said.lines,
        }))
    }

    type EventsStream = BoxStream<'static, Result<v1::Event, Status>>;

    async fn events(&self, request: Request<v1::EventsRequest>) -> Answer<Self::EventsStream> {
        let mut wish = request.into_inner();
        wish.subject = self.subject(&wish.subject).await?;
        Ok(Response::new(
            events::stream(self.commands.clone(), wish).await,
        ))
    }

    async fn cordon_node(&self, request: Request<v1::CordonNodeRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.view().await?;
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let id = self
            .commands
            .cordon(&by, &wish.node, &wish.reason)
            .await
            .map_err(refuse)?;
        self.changed_node(id.as_str()).await
    }

    async fn uncordon_node(&self, request: Request<v1::UncordonNodeRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.view().await?;
        let id = self
            .commands
            .uncordon(&by, &wish.node)
            .await
            .map_err(refuse)?;
        self.changed_node(id.as_str()).await
    }

    async fn drain_node(&self, request: Request<v1::DrainNodeRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.view().await?;
        self.drain(by, wish).await
    }

    async fn cancel_drain(&self, request: Request<v1::CancelDrainRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.view().await?;
        let id = self
            .commands
            .cancel_drain(&by, &wish.node)
            .await
            .map_err(refuse)?;
        self.changed_node(id.as_str()).await
    }

    async fn create_request(
        &self,
        request: Request<v1::CreateRequestRequest>,
    ) -> Answer<v1::Request> {
        let (by, wish) = asked(request)?;
        let spec = wish.spec.ok_or_else(|| named("spec", "is missing"))?;
        let (name, spec) =
            requests::spec_from(spec, self.clock.wall()).map_err(|bad| named(bad.0, &bad.1))?;
        let name = self
            .commands
            .create_request(&by, &name, &spec)
            .await
            .map_err(refuse)?;
        self.changed_request(name.as_str()).await
    }

    async fn extend_request(
        &self,
        request: Request<v1::ExtendRequestRequest>,
    ) -> Answer<v1::Request> {
        let (by, wish) = asked(request)?;
        let by_ms = span(wish.by_ms).ok_or_else(|| named("by_ms", "is 0; say by how much"))?;
        let name = self
            .commands
            .extend_request(&by, &wish.name, by_ms)
            .await
            .map_err(refuse)?;
        self.changed_request(name.as_str()).await
    }

    async fn cancel_request(
        &self,
        request: Request<v1::CancelRequestRequest>,
    ) -> Answer<v1::Request> {
        let (by, wish) = asked(request)?;
        let name = self
            .commands
            .cancel_request(&by, &wish.name)
            .await
            .map_err(refuse)?;
        self.changed_request(name.as_str()).await
    }

    async fn pause_pool(&self, request: Request<v1::PausePoolRequest>) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let done = self
            .commands
            .pause_pool(&by, &wish.pool, &wish.reason)
            .await;
        self.changed_pool(done.map_err(refuse)?).await
    }

    async fn resume_pool(&self, request: Request<v1::ResumePoolRequest>) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        let done = self.commands.resume_pool(&by, &wish.pool).await;
        self.changed_pool(done.map_err(refuse)?).await
    }

    async fn freeze(&self, request: Request<v1::FreezeRequest>) -> Answer<v1::FreezeReply> {
        let (by, wish) = asked(request)?;
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let done = self
            .commands
            .freeze(&by, given(&wish.pool), &wish.reason)
            .await;
        let done = done.map_err(refuse)?;
        Ok(noted(self.freezes().await?, done.unchanged))
    }

    async fn thaw(&self, request: Request<v1::ThawRequest>) -> Answer<v1::FreezeReply> {
        let (by, wish) = asked(request)?;
        self.commands
            .thaw(&by, given(&wish.pool))
            .await
            .map_err(refuse)?;
        self.freezes().await
    }

    async fn set_pool_mode(&self, request: Request<v1::SetPoolModeRequest>) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        text("reason", &wish.reason, limits::TEXT_BYTES)?;
        let mode = pools::mode_from(&wish.mode).map_err(|why| named("mode", &why))?;
        let done = self
            .commands
            .change_pool_mode(&by, &wish.pool, mode, &wish.reason, wish.sooner)
            .await;
        self.changed_pool(done.map_err(refuse)?).await
    }

    async fn set_pool_limits(
        &self,
        request: Request<v1::SetPoolLimitsRequest>,
    ) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        let limits = LimitsWish {
            min: wish.min,
            max: wish.max,
            spare: wish.spare,
            reset: wish.reset,
        };
        let done = self
            .commands
            .set_pool_limits(&by, &wish.pool, &limits)
            .await;
        self.changed_pool(done.map_err(refuse)?).await
    }

    async fn survey_group(
        &self,
        request: Request<v1::SurveyGroupRequest>,
    ) -> Answer<v1::GroupSurvey> {
        self.look_at(request.into_inner()).await
    }

    async fn mend_group(
        &self,
        request: Request<v1::MendGroupRequest>,
    ) -> Answer<v1::MendGroupReply> {
        let (by, wish) = asked(request)?;
        self.mend(by, wish).await
    }

    async fn adopt_group(
        &self,
        request: Request<v1::AdoptGroupRequest>,
    ) -> Answer<v1::AdoptGroupReply> {
        let (by, wish) = asked(request)?;
        self.take_on(by, wish).await
    }

    async fn list_adoptions(
        &self,
        request: Request<v1::ListAdoptionsRequest>,
    ) -> Answer<v1::ListAdoptionsReply> {
        let adoptions = self.adoptions_of(&request.get_ref().pool).await?;
        Ok(Response::new(v1::ListAdoptionsReply { adoptions }))
    }

    async fn approve(&self, request: Request<v1::ApproveRequest>) -> Answer<v1::ApproveReply> {
        let (by, wish) = asked(request)?;
        let record = self.commands.approve(&by, &wish.id).await.map_err(refuse)?;
        let approved = Some(records::approval(&record));
        Ok(Response::new(v1::ApproveReply { approved }))
    }

    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Answer<v1::CreateTokenReply> {
        let (by, wish) = asked(request)?;
        self.admit(by, wish).await
    }

    async fn list_tokens(&self, _: Request<v1::ListTokensRequest>) -> Answer<v1::ListTokensReply> {
        let all = self.tokens.list().await.map_err(refusal::token)?;
        let tokens = all.iter().map(records::token).collect();
        Ok(Response::new(v1::ListTokensReply { tokens }))
    }

    async fn revoke_token(&self, request: Request<v1::RevokeTokenRequest>) -> Answer<v1::Token> {
        let (by, wish) = asked(request)?;
        text("id", &wish.id, limits::NAME_BYTES)?;
        let record = self
            .tokens
            .revoke(&wish.id, &by)
            .await
            .map_err(refusal::token)?;
        Ok(Response::new(records::token(&record)))
    }

    async fn revoke_node(&self, request: Request<v1::RevokeNodeRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.view().await?;
        self.expel(by, wish).await
    }

    async fn readmit_node(&self, request: Request<v1::ReadmitNodeRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.view().await?;
        self.readmit(by, wish).await
    }

    async fn issue_admin_certificate(
        &self,
        request: Request<v1::IssueAdminCertificateRequest>,
    ) -> Answer<v1::IssueAdminCertificateReply> {
        let (by, wish) = asked(request)?;
        self.certify(by, wish).await
    }

    type BackupStream = BackupStream;

    async fn backup(&self, request: Request<v1::BackupRequest>) -> Answer<Self::BackupStream> {
        let (by, wish) = asked(request)?;
        self.seal(by, wish).await
    }

    async fn list_audit(
        &self,
        request: Request<v1::ListAuditRequest>,
    ) -> Answer<v1::ListAuditReply> {
        let wish = request.into_inner();
        let found = self
            .commands
            .journal()
            .audit(wish.after_seq, lines(wish.limit))
            .await;
        let entries = found.map_err(|error| refuse(error.into()))?;
        let entries = entries.into_iter().map(records::audit).collect();
        Ok(Response::new(v1::ListAuditReply { entries }))
    }

    async fn list_api_calls(
        &self,
        _: Request<v1::ListApiCallsRequest>,
    ) -> Answer<v1::ListApiCallsReply> {
        let counts = self.calls.as_ref().map(|told| told.calls());
        let calls = counts.into_iter().flatten().map(calls::calls).collect();
        Ok(Response::new(v1::ListApiCallsReply { calls }))
    }
}
