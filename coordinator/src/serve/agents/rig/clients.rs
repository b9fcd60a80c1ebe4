//! Clients of the port under test: keys, certificates, and TLS channels with or without them. A part of `rig`.

use super::Rig;
use crate::serve::tls::TlsClock;
use drover_proto::limits;
use drover_proto::v1::admin_service_client::AdminServiceClient;
use drover_proto::v1::agent_service_client::AgentServiceClient;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::sync::Arc;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};

/// A key with what a coordinator gave for it.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) id: String,
    pub(crate) key: Arc<KeyPair>,
    pub(crate) certificate: CertificateDer<'static>,
}

pub(crate) fn new_key() -> Arc<KeyPair> {
    Arc::new(KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap())
}

pub(crate) fn csr(key: &KeyPair) -> Vec<u8> {
    let request = CertificateParams::default().serialize_request(key).unwrap();
    request.der().to_vec()
}

pub(crate) fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

impl Rig {
    /// TLS to the port as a client with or without an identity.
    pub(crate) fn client_config(
        &self,
        identity: Option<&Identity>,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.ca.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let time = Arc::new(TlsClock(self.clock.clone()));
        let config = rustls::ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let key = identity.key.serialize_der();
                let key = PrivateKeyDer::try_from(key).unwrap();
                let chain = vec![identity.certificate.clone()];
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }

    pub(crate) async fn channel(&self, identity: Option<&Identity>) -> Channel {
        let config = Arc::new(self.client_config(identity, &rustls::version::TLS13));
        let address = self.address;
        let connector = tower::service_fn(move |_| {
            let config = config.clone();
            async move {
                let tcp = TcpStream::connect(address).await?;
                let name = ServerName::try_from(limits::COORDINATOR_NAME).unwrap();
                let stream = tokio_rustls::TlsConnector::from(config)
                    .connect(name, tcp)
                    .await?;
                Ok::<_, std::io::Error>(TokioIo::new(stream))
            }
        });
        Endpoint::from_static("http://coordinator.drover.internal")
            .connect_with_connector_lazy(connector)
    }

    pub(crate) async fn agent(&self, identity: Option<&Identity>) -> AgentServiceClient<Channel> {
        AgentServiceClient::new(self.channel(identity).await)
            .max_encoding_message_size(64 * 1024 * 1024)
    }

    pub(crate) async fn admin(&self, identity: Option<&Identity>) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel(identity).await)
    }
}
