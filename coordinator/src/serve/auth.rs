//! Who may call what: one gate before both services. Without a client certificate only Enrol and Renew answer; nodes
//! may open a Session, people call the admin service as far as their role goes; a revoked or expired certificate calls
//! nothing. Puts a [`Caller`] into the request for the handlers, which need not check roles again.

use super::tls::Peer;
use crate::adapters::ca::{PeerCertificate, Subject};
use crate::ports::clock::Clock;
use crate::ports::store::Store;
use crate::records::keys;
use drover_core::model::NodeId;
use drover_core::rules::access::{Role, Verb};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Extensions, Request, Response};
use tower::{Layer, Service};

/// Whom a request is from: its certificate is ours, valid and not revoked.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The certificate.
    pub certificate: Arc<PeerCertificate>,
    /// Address.
    pub address: SocketAddr,
}

impl Caller {
    /// As audit lines name it: `admin/NAME` or `node/ID`.
    #[must_use]
    pub fn actor(&self) -> String {
        self.certificate.subject.to_string()
    }

    /// The node, if it is one.
    #[must_use]
    pub fn node(&self) -> Option<&NodeId> {
        match &self.certificate.subject {
            Subject::Node(id) => Some(id),
            Subject::Admin { .. } => None,
        }
    }

    /// Of a request that came through the gate.
    ///
    /// # Errors
    /// Unauthenticated without a certificate.
    pub fn of(extensions: &Extensions) -> Result<Self, Status> {
        extensions.get::<Self>().cloned().ok_or_else(no_certificate)
    }
}

fn no_certificate() -> Status {
    Status::unauthenticated("a client certificate of this coordinator is needed")
}

/// What a method asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing; a node's certificate may be shown.
    NodeOrNobody,
    /// A node's certificate.
    Node,
    /// At least this role.
    Role(Role),
}

/// By method path, e.g. `/drover.v1.AdminService/Status`. `None`: no such service. An admin method that is not listed
/// needs the highest role.
fn needs(path: &str) -> Option<Needs> {
    let (service, method) = path.strip_prefix("/drover.v1.")?.split_once('/')?;
    match (service, method) {
        ("AgentService", "Enrol" | "Renew") => Some(Needs::NodeOrNobody),
        ("AgentService", _) => Some(Needs::Node),
        ("AdminService", _) => Some(Needs::Role(role(method))),
        _ => None,
    }
}

/// What a method of the admin service does; `None`: it is not listed.
fn verb(method: &str) -> Option<Verb> {
    Some(match method {
        "Status" | "ListNodes" | "GetNode" | "ListPools" | "GetPool" | "ListRequests"
        | "GetRequest" | "ListDemand" | "Plan" | "Explain" | "Events" | "ListApiCalls"
        | "ListAdoptions" => Verb::Look,
        "CordonNode" | "UncordonNode" | "DrainNode" | "CancelDrain" => Verb::ChangeNode,
        "CreateRequest" | "ExtendRequest" | "CancelRequest" => Verb::ChangeRequest,
        "PausePool" | "ResumePool" => Verb::PausePool,
        "Freeze" => Verb::Freeze,
        "Thaw" => Verb::Thaw,
        "SurveyGroup" => Verb::Survey,
        "SetPoolMode" | "SetPoolLimits" | "MendGroup" | "AdoptGroup" => Verb::ChangePool,
        "Approve" => Verb::Approve,
        "CreateToken" | "ListTokens" | "RevokeToken" => Verb::Tokens,
        "RevokeNode" | "ReadmitNode" | "IssueAdminCertificate" => Verb::Certificates,
        "Backup" => Verb::Backup,
        "ListAudit" => Verb::Audit,
        _ => return None,
    })
}

fn role(method: &str) -> Role {
    verb(method).map_or(Role::Admin, Verb::needs)
}

/// The gate.
#[derive(Clone)]
pub struct Gate {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl Gate {
    /// Reads revocations from this store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    async fn admit(&self, path: &str, peer: Option<&Peer>) -> Result<Option<Caller>, Status> {
        let needs = needs(path).ok_or_else(|| Status::unimplemented("no such service"))?;
        let shown = peer.and_then(|peer| Some((peer, peer.certificate.as_ref()?)));
        let Some((peer, certificate)) = shown else {
            return match needs {
                Needs::NodeOrNobody => Ok(None),
                Needs::Node | Needs::Role(_) => Err(no_certificate()),
            };
        };
        match (needs, &certificate.subject) {
            (Needs::NodeOrNobody | Needs::Node, Subject::Node(_)) => {}
            (Needs::NodeOrNobody | Needs::Node, Subject::Admin { .. }) => {
                return Err(Status::permission_denied("this is for nodes"));
            }
            (Needs::Role(_), Subject::Node(_)) => {
                return Err(Status::permission_denied("this is not for nodes"));
            }
            (Needs::Role(least), Subject::Admin { role, .. }) if *role < least => {
                return Err(Status::permission_denied(format!(
                    "this needs the role {}, and your certificate says {}",
                    crate::adapters::ca::identity::role_word(least),
                    crate::adapters::ca::identity::role_word(*role)
                )));
            }
            (Needs::Role(_), Subject::Admin { .. }) => {}
        }
        if self.clock.wall() >= certificate.not_after {
            return Err(Status::unauthenticated("the certificate has expired"));
        }
        let revoked = self
            .store
            .get(&keys::named(keys::REVOKED, &certificate.serial))
            .await
            .map_err(|error| {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot read revocations"
                );
                Status::unavailable("the store cannot be read")
            })?;
        if revoked.is_some() {
            return Err(Status::permission_denied("the certificate was revoked"));
        }
        Ok(Some(Caller {
            certificate: certificate.clone(),
            address: peer.address,
        }))
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated {
            gate: self.clone(),
            inner,
        }
    }
}

/// A service behind the gate.
#[derive(Clone)]
pub struct Gated<S> {
    gate: Gate,
    inner: S,
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let gate = self.gate.clone();
        // The one that said it is ready is the one to call.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        Box::pin(async move {
            // Only the gate says who calls.
            request.extensions_mut().remove::<Caller>();
            let peer = request.extensions().get::<Peer>().cloned();
            match gate.admit(request.uri().path(), peer.as_ref()).await {
                Ok(caller) => {
                    if let Some(caller) = caller {
                        request.extensions_mut().insert(caller);
                    }
                    inner.call(request).await
                }
                Err(status) => {
                    tracing::info!(
                        path = request.uri().path(),
                        peer = peer.map(|peer| peer.address.to_string()),
                        reason = status.message(),
                        "call refused"
                    );
                    Ok(status.into_http())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_proto_has_the_role_that_its_section_says() {
        let proto = include_str!("../../../proto/drover/v1/admin.proto");
        let mut section = None;
        let mut seen = 0;
        for line in proto.lines().map(str::trim) {
            match line {
                "// viewer" => section = Some(Role::Viewer),
                "// operator" => section = Some(Role::Operator),
                "// admin" => section = Some(Role::Admin),
                "}" => break,
                _ => {}
            }
            let Some(method) = line
                .strip_prefix("rpc ")
                .and_then(|rest| rest.split('(').next())
            else {
                continue;
            };
            seen += 1;
            assert_eq!(Some(role(method)), section, "{method}");
            assert!(verb(method).is_some(), "{method} is in no line of the docs");
        }
        assert!(seen > 25, "{seen}");
    }

    #[test]
    fn only_two_methods_answer_without_a_certificate() {
        for (path, expect) in [
            ("/drover.v1.AgentService/Enrol", Some(Needs::NodeOrNobody)),
            ("/drover.v1.AgentService/Renew", Some(Needs::NodeOrNobody)),
            ("/drover.v1.AgentService/Session", Some(Needs::Node)),
            ("/drover.v1.AgentService/Other", Some(Needs::Node)),
            (
                "/drover.v1.AdminService/Status",
                Some(Needs::Role(Role::Viewer)),
            ),
            (
                "/drover.v1.AdminService/Other",
                Some(Needs::Role(Role::Admin)),
            ),
            ("/drover.v1.OtherService/Enrol", None),
            ("/", None),
        ] {
            assert_eq!(needs(path), expect, "{path}");
        }
    }
}
