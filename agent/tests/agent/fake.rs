//! A coordinator for tests: real TLS and gRPC, its answers set by the test, everything it hears kept.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use drover_agent::clock;
use drover_agent::identity::token::CaHash;
use drover_proto::limits;
use drover_proto::v1::agent_service_server::{AgentService, AgentServiceServer};
use drover_proto::v1::{
    Ack, AgentMessage, CoordinatorMessage, EnrolReply, EnrolRequest, Heartbeat, Hello,
    InstanceIdentity, Notice, Order, OrderStatus, RenewReply, RenewRequest, Report, Welcome,
    agent_message, coordinator_message,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};
use rustls::pki_types::{CertificateSigningRequestDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;
use tonic::{Request, Response, Status, Streaming};

const DAY_S: i64 = 86_400;

/// What the test sets and looks at.
#[derive(Debug, Default)]
pub struct Script {
    /// Enrol replies still to be lost on the way.
    pub lose_enrol_replies: u32,
    /// Enrol, Renew and Session answer this instead.
    pub refuse: Option<Status>,
    /// Renew and Session refuse the node until it enrols again.
    pub revoked: bool,
    /// Enrol asks whoever comes with one of these keys for another.
    pub barred: Vec<Vec<u8>>,
    /// New certificates are valid from and until so many seconds from now.
    pub validity_s: Option<(i64, i64)>,
    /// Epoch in Welcome.
    pub epoch: u64,
    /// Its clock minus the true one.
    pub clock_ms: i64,
    /// Notices and results are acknowledged.
    pub ack: bool,
    /// (epoch, generation) that heartbeats mean; none are sent without.
    pub beat: Option<(u64, u64)>,
    /// Bytes of the store's name in Welcome.
    pub store_id_bytes: usize,

    /// Public keys in certificate requests, in order.
    pub enrolled_keys: Vec<Vec<u8>>,
    /// What came with them: a token's text, or an instance's documents.
    pub proofs: Vec<(String, Option<InstanceIdentity>)>,
    pub tls_failures: u32,
    pub refusals: u32,
    pub renewed_with_certificate: u32,
    pub renewed_with_signature: u32,
    pub hellos: Vec<Hello>,
    pub reports: Vec<Report>,
    pub notices: Vec<Notice>,
    pub statuses: Vec<OrderStatus>,
    nonce: Vec<u8>,
    out: Option<mpsc::Sender<Result<CoordinatorMessage, Status>>>,
}

impl Script {
    fn now_ms(&self) -> u64 {
        clock::unix_ms().saturating_add_signed(self.clock_ms)
    }
}

/// A running one.
pub struct Fake {
    pub address: SocketAddr,
    pub token: String,
    script: Arc<Mutex<Script>>,
    changed: watch::Sender<()>,
}

struct Ca {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

#[derive(Clone)]
struct Service {
    ca: Arc<Ca>,
    script: Arc<Mutex<Script>>,
    changed: watch::Sender<()>,
}

impl Fake {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "fake CA");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let ca = Arc::new(Ca { issuer });
        let hash = CaHash::of(ca.issuer.der());
        let script = Arc::new(Mutex::new(Script {
            epoch: 1,
            ack: true,
            ..Script::default()
        }));
        let changed = watch::channel(()).0;
        let service = Service {
            ca: Arc::clone(&ca),
            script: Arc::clone(&script),
            changed: changed.clone(),
        };
        let (accepted, incoming) = mpsc::channel(16);
        tokio::spawn(accept(listener, acceptor(&ca), accepted, service.clone()));
        let server = tonic::transport::Server::builder()
            .add_service(AgentServiceServer::new(service))
            .serve_with_incoming(ReceiverStream::new(incoming));
        tokio::spawn(server);
        Self {
            address,
            token: format!("{}.t-1.secret.{hash}", limits::TOKEN_PREFIX),
            script,
            changed,
        }
    }

    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// Waits until the script looks so; panics with what it was when it takes too long.
    pub async fn until<T>(&self, what: &str, mut seen: impl FnMut(&Script) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        let wait = async {
            loop {
                if let Some(found) = seen(&self.script()) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_secs(90), wait).await {
            Ok(found) => found,
            Err(_) => panic!("not in time: {what}\n{:#?}", self.script()),
        }
    }

    /// The latest status of a drain, once it satisfies the test.
    pub async fn status(&self, what: &str, seen: impl Fn(&OrderStatus) -> bool) -> OrderStatus {
        self.until(what, |script| {
            script
                .statuses
                .iter()
                .rev()
                .find(|status| seen(status))
                .cloned()
        })
        .await
    }

    /// Sends an order with its clock's now.
    pub async fn order(&self, mut order: Order) {
        let out = {
            let script = self.script();
            order.now_unix_ms = script.now_ms();
            script.out.clone().unwrap()
        };
        let body = coordinator_message::Body::Order(order);
        out.send(Ok(CoordinatorMessage { body: Some(body) }))
            .await
            .unwrap();
    }

    /// Ends the session.
    pub fn hang_up(&self) {
        self.script().out = None;
    }
}

fn acceptor(ca: &Ca) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![limits::COORDINATOR_NAME.to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf = params.signed_by(&key, &ca.issuer).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca.issuer.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![leaf.der().clone(), ca.issuer.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    accepted: mpsc::Sender<std::io::Result<Conn>>,
    service: Service,
) {
    while let Ok((tcp, _)) = listener.accept().await {
        match acceptor.accept(tcp).await {
            Ok(stream) => {
                if accepted.send(Ok(Conn(stream))).await.is_err() {
                    return;
                }
            }
            Err(_) => {
                service.script.lock().unwrap().tls_failures += 1;
                service.changed.send_replace(());
            }
        }
    }
}

struct Conn(TlsStream<TcpStream>);

/// The client's certificate.
#[derive(Clone)]
struct Peer(Option<Vec<u8>>);

impl Connected for Conn {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        let certificates = self.0.get_ref().1.peer_certificates();
        Peer(certificates.map(|chain| chain[0].to_vec()))
    }
}

impl AsyncRead for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Conn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Service {
    fn change<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        let result = change(&mut self.script.lock().unwrap());
        self.changed.send_replace(());
        result
    }

    fn refused(&self) -> Result<(), Status> {
        self.change(|script| match &script.refuse {
            Some(status) => {
                script.refusals += 1;
                Err(status.clone())
            }
            None => Ok(()),
        })
    }

    fn revoked(&self) -> Result<(), Status> {
        if self.script.lock().unwrap().revoked {
            return Err(Status::permission_denied("node n-1 is revoked"));
        }
        Ok(())
    }

    fn issue(&self, csr_der: &[u8]) -> (Vec<u8>, String) {
        let der = CertificateSigningRequestDer::from(csr_der);
        let mut csr = CertificateSigningRequestParams::from_der(&der).unwrap();
        let validity = self.script.lock().unwrap().validity_s;
        let (from, until) = validity.unwrap_or((-DAY_S, DAY_S));
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        csr.params.not_before = epoch + at(from);
        csr.params.not_after = epoch + at(until);
        csr.params.is_ca = IsCa::NoCa;
        csr.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let uri = format!("{}n-1", limits::NODE_URI);
        csr.params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
        let key = rcgen::PublicKeyData::der_bytes(&csr.public_key).to_vec();
        let certificate = csr.signed_by(&self.ca.issuer).unwrap();
        (key, certificate.pem())
    }
}

/// Seconds since 1970, so many from now.
fn at(shift_s: i64) -> Duration {
    Duration::from_millis(clock::unix_ms().saturating_add_signed(shift_s * 1_000))
}

type Outbound = ReceiverStream<Result<CoordinatorMessage, Status>>;

#[tonic::async_trait]
impl AgentService for Service {
    type SessionStream = Outbound;

    async fn enrol(&self, request: Request<EnrolRequest>) -> Result<Response<EnrolReply>, Status> {
        self.refused()?;
        let request = request.into_inner();
        let (key, certificate_pem) = self.issue(&request.csr_der);
        let proof = (request.token, request.instance_identity);
        let barred = self.change(|script| {
            script.proofs.push(proof);
            let barred = script.barred.contains(&key);
            script.enrolled_keys.push(key);
            barred
        });
        if barred {
            return Ok(Response::new(EnrolReply {
                new_key_needed: true,
                ..EnrolReply::default()
            }));
        }
        let lost = self.change(|script| {
            script.revoked = false;
            let lost = script.lose_enrol_replies > 0;
            script.lose_enrol_replies = script.lose_enrol_replies.saturating_sub(1);
            lost
        });
        if lost {
            return Err(Status::unavailable("lost on the way"));
        }
        Ok(Response::new(EnrolReply {
            node_id: "n-1".into(),
            certificate_pem,
            ca_pem: self.ca.issuer.pem(),
            pool: "rack".into(),
            new_key_needed: false,
        }))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Result<Response<RenewReply>, Status> {
        self.refused()?;
        self.revoked()?;
        let peer = request
            .extensions()
            .get::<Peer>()
            .and_then(|peer| peer.0.clone());
        let request = request.into_inner();
        if peer.is_some() {
            self.change(|script| script.renewed_with_certificate += 1);
        } else if request.nonce.is_empty() {
            let nonce = self.change(|script| {
                script.nonce = clock::unix_ms().to_be_bytes().to_vec();
                script.nonce.clone()
            });
            return Ok(Response::new(RenewReply {
                certificate_pem: String::new(),
                nonce,
            }));
        } else {
            check_signature(&request, &self.script.lock().unwrap().nonce)?;
            self.change(|script| {
                script.renewed_with_signature += 1;
                script.validity_s = None;
            });
        }
        let (_, certificate_pem) = self.issue(&request.csr_der);
        Ok(Response::new(RenewReply {
            certificate_pem,
            nonce: Vec::new(),
        }))
    }

    async fn session(
        &self,
        request: Request<Streaming<AgentMessage>>,
    ) -> Result<Response<Outbound>, Status> {
        self.refused()?;
        self.revoked()?;
        let peer = request
            .extensions()
            .get::<Peer>()
            .and_then(|peer| peer.0.clone());
        if peer.is_none() {
            return Err(Status::unauthenticated("no certificate"));
        }
        let (out, stream) = mpsc::channel(64);
        tokio::spawn(self.clone().converse(request.into_inner(), out));
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

impl Service {
    async fn converse(
        self,
        mut inbound: Streaming<AgentMessage>,
        out: mpsc::Sender<Result<CoordinatorMessage, Status>>,
    ) {
        let weak = out.downgrade();
        self.change(|script| script.out = Some(out));
        let mut beat = tokio::time::interval(Duration::from_millis(50));
        let mut last_seq = 0;
        loop {
            let answer = tokio::select! {
                message = inbound.message() => match message {
                    Ok(Some(message)) => {
                        assert_eq!(message.seq, last_seq + 1, "seq grows by one");
                        last_seq = message.seq;
                        self.change(|script| hear(script, message))
                    }
                    Ok(None) | Err(_) => return,
                },
                _ = beat.tick() => self.heartbeat(),
            };
            // The test hung up when the only strong sender, in the script, is gone.
            let Some(out) = weak.upgrade() else {
                return;
            };
            if let Some(body) = answer
                && out
                    .send(Ok(CoordinatorMessage { body: Some(body) }))
                    .await
                    .is_err()
            {
                return;
            }
        }
    }

    fn heartbeat(&self) -> Option<coordinator_message::Body> {
        let script = self.script.lock().unwrap();
        let (epoch, generation) = script.beat?;
        Some(coordinator_message::Body::Heartbeat(Heartbeat {
            now_unix_ms: script.now_ms(),
            epoch,
            generation,
        }))
    }
}

fn hear(script: &mut Script, message: AgentMessage) -> Option<coordinator_message::Body> {
    let seq = message.seq;
    let ack = script
        .ack
        .then_some(coordinator_message::Body::Ack(Ack { seq }));
    match message.body.unwrap() {
        agent_message::Body::Hello(hello) => {
            assert_eq!(seq, 1, "Hello comes first");
            script.hellos.push(hello);
            Some(coordinator_message::Body::Welcome(Welcome {
                protocol: limits::PROTOCOL,
                epoch: script.epoch,
                report_interval_ms: 200,
                full_interval_ms: 60_000,
                now_unix_ms: script.now_ms(),
                store_id: "s".repeat(script.store_id_bytes),
                heartbeat_interval_ms: 10_000,
            }))
        }
        agent_message::Body::Report(report) => {
            script.reports.push(report);
            None
        }
        agent_message::Body::Notice(notice) => {
            script.notices.push(notice);
            ack
        }
        agent_message::Body::OrderStatus(status) => {
            script.statuses.push(status);
            ack
        }
    }
}

fn check_signature(request: &RenewRequest, nonce: &[u8]) -> Result<(), Status> {
    use x509_parser::prelude::{FromDer, X509Certificate};
    if request.nonce != nonce {
        return Err(Status::permission_denied("another nonce"));
    }
    let (_, old) = X509Certificate::from_der(&request.expired_certificate_der)
        .map_err(|_| Status::invalid_argument("no certificate"))?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &request.csr_der);
    let message = [limits::RENEW_CONTEXT, nonce, digest.as_ref()].concat();
    let key = &old.public_key().subject_public_key.data;
    ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_ASN1, key)
        .verify(&message, &request.signature)
        .map_err(|_| Status::permission_denied("bad signature"))
}
