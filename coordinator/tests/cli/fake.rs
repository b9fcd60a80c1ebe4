//! An admin service that says what a test told it, and remembers what it was asked.

use super::peer::Ca;
use drover_proto::v1::admin_service_server::AdminService;
use drover_proto::v1::*;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio_stream::Stream;
use tonic::{Request as Ask, Response, Status};

/// What the service says.
#[derive(Default)]
pub struct Script {
    pub nodes: Vec<Node>,
    pub pools: Vec<Pool>,
    /// Answers of GetRequest in turn; the last one stays. An error stands for a coordinator that is away.
    pub requests: Vec<Result<Request, Status>>,
    pub demand: Vec<Demand>,
    pub plan: PlanReply,
    pub explain: ExplainReply,
    pub events: Vec<Event>,
    pub status: StatusReply,
    pub tokens: Vec<Token>,
    pub audit: Vec<AuditEntry>,
    pub api_calls: Vec<ApiCalls>,
    pub freezes: Vec<FreezeInfo>,
    pub backup: Vec<Vec<u8>>,
    pub survey: GroupSurvey,
    pub mended: Vec<String>,
    pub adoptions: Vec<Adoption>,
    pub config_table: String,
    /// Refuses everything that changes something.
    pub refuse: Option<Status>,
    /// Debug text of every message that came.
    pub asked: Vec<String>,
    pub ca: Option<Ca>,
}

#[derive(Clone)]
pub struct Fake(pub Arc<Mutex<Script>>);

impl Fake {
    fn tell<M: std::fmt::Debug, R>(
        &self,
        ask: Ask<M>,
        answer: impl FnOnce(&mut Script, M) -> Result<R, Status>,
    ) -> Result<Response<R>, Status> {
        let mut script = self.0.lock().expect("script");
        let message = ask.into_inner();
        script.asked.push(format!("{message:?}"));
        answer(&mut script, message).map(Response::new)
    }

    fn change<M: std::fmt::Debug, R>(
        &self,
        ask: Ask<M>,
        answer: impl FnOnce(&mut Script, M) -> Result<R, Status>,
    ) -> Result<Response<R>, Status> {
        self.tell(ask, |script, message| match script.refuse.clone() {
            Some(status) => Err(status),
            None => answer(script, message),
        })
    }
}

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn node(script: &Script, name: &str) -> Result<Node, Status> {
    let found = script.nodes.iter().find(|n| n.name == name || n.id == name);
    found
        .cloned()
        .ok_or_else(|| Status::not_found(format!("no node is named {name:?}")))
}

fn pool(script: &Script, name: &str) -> Result<Pool, Status> {
    let found = script.pools.iter().find(|p| p.name == name);
    found
        .cloned()
        .ok_or_else(|| Status::not_found(format!("no pool is named {name:?}")))
}

fn request(script: &mut Script) -> Result<Request, Status> {
    match script.requests.len() {
        0 => Err(Status::not_found("no request is named so")),
        1 => script.requests[0].clone(),
        _ => script.requests.remove(0),
    }
}

fn freezes(script: &Script) -> FreezeReply {
    FreezeReply {
        freezes: script.freezes.clone(),
    }
}

#[tonic::async_trait]
impl AdminService for Fake {
    async fn status(&self, ask: Ask<StatusRequest>) -> Result<Response<StatusReply>, Status> {
        self.tell(ask, |s, _| Ok(s.status.clone()))
    }
    async fn list_nodes(
        &self,
        ask: Ask<ListNodesRequest>,
    ) -> Result<Response<ListNodesReply>, Status> {
        self.tell(ask, |s, _| {
            Ok(ListNodesReply {
                nodes: s.nodes.clone(),
            })
        })
    }
    async fn get_node(&self, ask: Ask<GetNodeRequest>) -> Result<Response<Node>, Status> {
        self.tell(ask, |s, m| node(s, &m.node))
    }
    async fn list_pools(
        &self,
        ask: Ask<ListPoolsRequest>,
    ) -> Result<Response<ListPoolsReply>, Status> {
        self.tell(ask, |s, _| {
            Ok(ListPoolsReply {
                pools: s.pools.clone(),
            })
        })
    }
    async fn get_pool(&self, ask: Ask<GetPoolRequest>) -> Result<Response<Pool>, Status> {
        self.tell(ask, |s, m| pool(s, &m.pool))
    }
    async fn list_requests(
        &self,
        ask: Ask<ListRequestsRequest>,
    ) -> Result<Response<ListRequestsReply>, Status> {
        self.tell(ask, |s, _| {
            let requests = s.requests.iter().filter_map(|r| r.clone().ok()).collect();
            Ok(ListRequestsReply { requests })
        })
    }
    async fn get_request(&self, ask: Ask<GetRequestRequest>) -> Result<Response<Request>, Status> {
        self.tell(ask, |s, _| request(s))
    }
    async fn list_demand(
        &self,
        ask: Ask<ListDemandRequest>,
    ) -> Result<Response<ListDemandReply>, Status> {
        self.tell(ask, |s, _| {
            Ok(ListDemandReply {
                demand: s.demand.clone(),
            })
        })
    }
    async fn plan(&self, ask: Ask<PlanRequest>) -> Result<Response<PlanReply>, Status> {
        self.tell(ask, |s, _| Ok(s.plan.clone()))
    }
    async fn explain(&self, ask: Ask<ExplainRequest>) -> Result<Response<ExplainReply>, Status> {
        self.tell(ask, |s, _| Ok(s.explain.clone()))
    }
    type EventsStream = Streamed<Event>;
    async fn events(
        &self,
        ask: Ask<EventsRequest>,
    ) -> Result<Response<Self::EventsStream>, Status> {
        self.tell(ask, |s, _| {
            let events: Vec<_> = s.events.iter().cloned().map(Ok).collect();
            Ok(Box::pin(tokio_stream::iter(events)) as Self::EventsStream)
        })
    }
    async fn cordon_node(&self, ask: Ask<CordonNodeRequest>) -> Result<Response<Node>, Status> {
        self.change(ask, |s, m| node(s, &m.node))
    }
    async fn uncordon_node(&self, ask: Ask<UncordonNodeRequest>) -> Result<Response<Node>, Status> {
        self.change(ask, |s, m| node(s, &m.node))
    }
    async fn drain_node(&self, ask: Ask<DrainNodeRequest>) -> Result<Response<Node>, Status> {
        self.change(ask, |s, m| node(s, &m.node))
    }
    async fn cancel_drain(&self, ask: Ask<CancelDrainRequest>) -> Result<Response<Node>, Status> {
        self.change(ask, |s, m| node(s, &m.node))
    }
    async fn create_request(
        &self,
        ask: Ask<CreateRequestRequest>,
    ) -> Result<Response<Request>, Status> {
        self.change(ask, |_, m| {
            Ok(Request {
                spec: m.spec,
                state: "pending".to_owned(),
                ..Default::default()
            })
        })
    }
    async fn extend_request(
        &self,
        ask: Ask<ExtendRequestRequest>,
    ) -> Result<Response<Request>, Status> {
        self.change(ask, |s, _| request(s))
    }
    async fn cancel_request(
        &self,
        ask: Ask<CancelRequestRequest>,
    ) -> Result<Response<Request>, Status> {
        self.change(ask, |s, _| request(s))
    }
    async fn pause_pool(&self, ask: Ask<PausePoolRequest>) -> Result<Response<Pool>, Status> {
        self.change(ask, |s, m| pool(s, &m.pool))
    }
    async fn resume_pool(&self, ask: Ask<ResumePoolRequest>) -> Result<Response<Pool>, Status> {
        self.change(ask, |s, m| pool(s, &m.pool))
    }
    async fn freeze(&self, ask: Ask<FreezeRequest>) -> Result<Response<FreezeReply>, Status> {
        self.change(ask, |s, _| Ok(freezes(s)))
    }
    async fn thaw(&self, ask: Ask<ThawRequest>) -> Result<Response<FreezeReply>, Status> {
        self.change(ask, |s, _| Ok(freezes(s)))
    }
    async fn set_pool_mode(&self, ask: Ask<SetPoolModeRequest>) -> Result<Response<Pool>, Status> {
        self.change(ask, |s, m| pool(s, &m.pool))
    }
    async fn set_pool_limits(
        &self,
        ask: Ask<SetPoolLimitsRequest>,
    ) -> Result<Response<Pool>, Status> {
        self.change(ask, |s, m| pool(s, &m.pool))
    }
    async fn survey_group(
        &self,
        ask: Ask<SurveyGroupRequest>,
    ) -> Result<Response<GroupSurvey>, Status> {
        self.tell(ask, |s, _| Ok(s.survey.clone()))
    }
    async fn mend_group(
        &self,
        ask: Ask<MendGroupRequest>,
    ) -> Result<Response<MendGroupReply>, Status> {
        self.change(ask, |s, _| {
            Ok(MendGroupReply {
                done: s.mended.clone(),
                survey: Some(s.survey.clone()),
            })
        })
    }
    async fn adopt_group(
        &self,
        ask: Ask<AdoptGroupRequest>,
    ) -> Result<Response<AdoptGroupReply>, Status> {
        self.change(ask, |s, _| {
            Ok(AdoptGroupReply {
                survey: Some(s.survey.clone()),
                adoption: s.adoptions.first().cloned(),
                config_table: s.config_table.clone(),
                appears: String::new(),
            })
        })
    }
    async fn list_adoptions(
        &self,
        ask: Ask<ListAdoptionsRequest>,
    ) -> Result<Response<ListAdoptionsReply>, Status> {
        self.tell(ask, |s, _| {
            Ok(ListAdoptionsReply {
                adoptions: s.adoptions.clone(),
            })
        })
    }
    async fn approve(&self, ask: Ask<ApproveRequest>) -> Result<Response<ApproveReply>, Status> {
        self.change(ask, |s, _| {
            Ok(ApproveReply {
                approved: s.status.approvals.first().cloned(),
            })
        })
    }
    async fn create_token(
        &self,
        ask: Ask<CreateTokenRequest>,
    ) -> Result<Response<CreateTokenReply>, Status> {
        self.change(ask, |s, _| {
            Ok(CreateTokenReply {
                token: s.tokens.first().cloned(),
                text: "drover-join-v1.t1.secret.abcd".to_owned(),
            })
        })
    }
    async fn list_tokens(
        &self,
        ask: Ask<ListTokensRequest>,
    ) -> Result<Response<ListTokensReply>, Status> {
        self.tell(ask, |s, _| {
            Ok(ListTokensReply {
                tokens: s.tokens.clone(),
            })
        })
    }
    async fn revoke_token(&self, ask: Ask<RevokeTokenRequest>) -> Result<Response<Token>, Status> {
        self.change(ask, |s, _| Ok(s.tokens[0].clone()))
    }
    async fn revoke_node(&self, ask: Ask<RevokeNodeRequest>) -> Result<Response<Node>, Status> {
        self.change(ask, |s, m| node(s, &m.node))
    }
    async fn readmit_node(&self, ask: Ask<ReadmitNodeRequest>) -> Result<Response<Node>, Status> {
        self.change(ask, |s, m| node(s, &m.node))
    }
    async fn issue_admin_certificate(
        &self,
        ask: Ask<IssueAdminCertificateRequest>,
    ) -> Result<Response<IssueAdminCertificateReply>, Status> {
        self.change(ask, |s, m| {
            let ca = s.ca.as_ref().expect("CA");
            Ok(IssueAdminCertificateReply {
                certificate_pem: ca.sign(&m.csr_der),
                ca_pem: ca.pem(),
            })
        })
    }
    type BackupStream = Streamed<BackupChunk>;
    async fn backup(
        &self,
        ask: Ask<BackupRequest>,
    ) -> Result<Response<Self::BackupStream>, Status> {
        self.change(ask, |s, _| {
            let chunks: Vec<_> = s
                .backup
                .iter()
                .map(|data| Ok(BackupChunk { data: data.clone() }))
                .collect();
            Ok(Box::pin(tokio_stream::iter(chunks)) as Self::BackupStream)
        })
    }
    async fn list_audit(
        &self,
        ask: Ask<ListAuditRequest>,
    ) -> Result<Response<ListAuditReply>, Status> {
        self.tell(ask, |s, _| {
            Ok(ListAuditReply {
                entries: s.audit.clone(),
            })
        })
    }
    async fn list_api_calls(
        &self,
        ask: Ask<ListApiCallsRequest>,
    ) -> Result<Response<ListApiCallsReply>, Status> {
        self.tell(ask, |s, _| {
            Ok(ListApiCallsReply {
                calls: s.api_calls.clone(),
            })
        })
    }
}
