//! The calls of the admin service, one by one: who asks, and what answers. Used by `serve/admin`; a call of more than a
//! few lines is beside it, by what it is about.

use super::refusal::{refuse, text};
use super::{Admin, Answer, BackupStream, asked, events, refusal};
use crate::serve::convert::{calls, pools, records, requests};
use drover_proto::v1::admin_service_server::AdminService;
use drover_proto::{limits, v1};
use futures::stream::BoxStream;
use tonic::{Request, Response, Status};

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
        self.nodes_of(&request.get_ref().pool).await
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
        self.requests_shown(request.get_ref().all).await
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
        self.plan_made(request.get_ref().fresh).await
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Answer<v1::ExplainReply> {
        self.explained(&request.get_ref().subject).await
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
        self.cordon(by, wish).await
    }

    async fn uncordon_node(&self, request: Request<v1::UncordonNodeRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.uncordon(by, wish).await
    }

    async fn drain_node(&self, request: Request<v1::DrainNodeRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.view().await?;
        self.drain(by, wish).await
    }

    async fn cancel_drain(&self, request: Request<v1::CancelDrainRequest>) -> Answer<v1::Node> {
        let (by, wish) = asked(request)?;
        self.take_drain_back(by, wish).await
    }

    async fn create_request(
        &self,
        request: Request<v1::CreateRequestRequest>,
    ) -> Answer<v1::Request> {
        let (by, wish) = asked(request)?;
        self.ask_for(by, wish).await
    }

    async fn extend_request(
        &self,
        request: Request<v1::ExtendRequestRequest>,
    ) -> Answer<v1::Request> {
        let (by, wish) = asked(request)?;
        self.extend(by, wish).await
    }

    async fn cancel_request(
        &self,
        request: Request<v1::CancelRequestRequest>,
    ) -> Answer<v1::Request> {
        let (by, wish) = asked(request)?;
        self.take_back(by, wish).await
    }

    async fn pause_pool(&self, request: Request<v1::PausePoolRequest>) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        self.pause(by, wish).await
    }

    async fn resume_pool(&self, request: Request<v1::ResumePoolRequest>) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        self.resume(by, wish).await
    }

    async fn freeze(&self, request: Request<v1::FreezeRequest>) -> Answer<v1::FreezeReply> {
        let (by, wish) = asked(request)?;
        self.freeze_scope(by, wish).await
    }

    async fn thaw(&self, request: Request<v1::ThawRequest>) -> Answer<v1::FreezeReply> {
        let (by, wish) = asked(request)?;
        self.thaw_scope(by, wish).await
    }

    async fn set_pool_mode(&self, request: Request<v1::SetPoolModeRequest>) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        self.set_mode(by, wish).await
    }

    async fn set_pool_limits(
        &self,
        request: Request<v1::SetPoolLimitsRequest>,
    ) -> Answer<v1::Pool> {
        let (by, wish) = asked(request)?;
        self.set_limits(by, wish).await
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
        self.audited(request.get_ref()).await
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
