//! A CA, a server certificate and client certificates made on the spot, and a TLS 1.3 listener for tonic: what the CLI
//! meets in these tests. Must not share code with what it tests.

use drover_proto::limits::COORDINATOR_NAME;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

/// A CA that lives for one test.
pub struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("key");
        Self(CertifiedIssuer::self_signed(params, key).expect("CA"))
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes ca.crt, me.crt and me.key for a person of a role.
    pub fn write_client(&self, dir: &Path) {
        let key = KeyPair::generate().expect("key");
        let mut params = CertificateParams::default();
        let uri = "drover://admin/admin/me".try_into().expect("uri");
        params.subject_alt_names = vec![SanType::URI(uri)];
        let certificate = params.signed_by(&key, &self.0).expect("certificate");
        for (name, text) in [
            ("ca.crt", self.pem()),
            ("me.crt", certificate.pem()),
            ("me.key", key.serialize_pem()),
        ] {
            std::fs::write(dir.join(name), text).expect("file");
        }
    }

    /// Signs what the CLI asks for.
    pub fn sign(&self, csr_der: &[u8]) -> String {
        let csr =
            rcgen::CertificateSigningRequestParams::from_der(&csr_der.into()).expect("request");
        csr.signed_by(&self.0).expect("certificate").pem()
    }

    pub fn acceptor(&self) -> tokio_rustls::TlsAcceptor {
        let key = KeyPair::generate().expect("key");
        let params = CertificateParams::new(vec![COORDINATOR_NAME.to_owned()]).expect("name");
        let certificate = params.signed_by(&key, &self.0).expect("certificate");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
            roots.into(),
            Arc::clone(&provider),
        )
        .build()
        .expect("verifier");
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_client_cert_verifier(clients)
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .expect("server certificate");
        config.alpn_protocols = vec![b"h2".to_vec()];
        tokio_rustls::TlsAcceptor::from(Arc::new(config))
    }
}

/// Connections that passed the handshake; others are dropped.
pub fn incoming(
    listener: TcpListener,
    acceptor: tokio_rustls::TlsAcceptor,
) -> impl tokio_stream::Stream<Item = std::io::Result<Tls>> {
    futures::stream::unfold((listener, acceptor), |(listener, acceptor)| async move {
        loop {
            let Ok((tcp, _)) = listener.accept().await else {
                continue;
            };
            if let Ok(stream) = acceptor.accept(tcp).await {
                return Some((Ok(Tls(stream)), (listener, acceptor)));
            }
        }
    })
}

/// tonic wants to know what it is connected to.
pub struct Tls(TlsStream<TcpStream>);

impl tonic::transport::server::Connected for Tls {
    type ConnectInfo = ();
    fn connect_info(&self) {}
}

impl AsyncRead for Tls {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Tls {
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
