//! TLS 1.3 towards the coordinator: whom the agent believes, and with what it proves itself.
//!
//! Called by `session/link`. The name is always checked; the time with 24 h of tolerance, since a host's clock may
//! be off. Before enrolment the CA is the one whose hash the join token carries, afterwards the pinned one.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::token::CaHash;

/// How wrong the host's clock may be when certificates are checked.
const TOLERANCE: Duration = Duration::from_secs(24 * 3_600);

/// Whom the agent believes.
#[derive(Debug, Clone)]
pub enum Trust {
    /// Whoever shows a chain with the certificate of this hash at its root.
    Hash(CaHash),
    /// Whoever chains to this certificate.
    Pinned(CertificateDer<'static>),
}

/// With what the agent proves itself: its leaf and key.
#[derive(Debug)]
pub struct ClientAuth {
    /// The leaf.
    pub certificate: CertificateDer<'static>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
}

/// The TLS side of one connection.
///
/// # Errors
/// The key does not fit, or the provider lacks TLS 1.3.
pub fn client_config(
    trust: Trust,
    auth: Option<ClientAuth>,
) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier {
        trust,
        provider: Arc::clone(&provider),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match auth {
        Some(auth) => builder.with_client_auth_cert(vec![auth.certificate], auth.key)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    // A resumed session would carry the old certificate past a renewal.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn root(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
    ) -> Result<CertificateDer<'static>, rustls::Error> {
        match &self.trust {
            Trust::Pinned(root) => Ok(root.clone()),
            Trust::Hash(hash) => chain
                .iter()
                .chain([leaf])
                .find(|der| CaHash::of(der) == *hash)
                .map(|der| der.clone().into_owned())
                .ok_or_else(|| {
                    rustls::Error::General(format!(
                        "the coordinator shows no CA whose SHA-256 is {hash}: check ca_sha256 (or the join token's end) \
                         against `ca=` in the log of `drover serve`, and that this is the right coordinator"
                    ))
                }),
        }
    }
}

/// The times at which a certificate may count as valid: now, and a day to either side.
fn moments(now: UnixTime) -> [UnixTime; 3] {
    let at = Duration::from_secs(now.as_secs());
    [
        now,
        UnixTime::since_unix_epoch(at.saturating_sub(TOLERANCE)),
        UnixTime::since_unix_epoch(at.saturating_add(TOLERANCE)),
    ]
}

fn is_about_time(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. }
        )
    )
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root(leaf, chain)?)?;
        let webpki = WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&self.provider),
        )
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))?;
        let mut last = None;
        for at in moments(now) {
            match webpki.verify_server_cert(leaf, chain, name, ocsp, at) {
                Err(error) if is_about_time(&error) => last = last.or(Some(error)),
                verdict => return verdict,
            }
        }
        Err(last.unwrap_or(rustls::Error::General("no moment was tried".into())))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests;
