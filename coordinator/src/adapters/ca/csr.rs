//! Certificate requests from outside: only the key is taken from them, and only with proof of possession. Called by
//! `serve`; names and usages that a request asks for are ignored.

use super::sha256_hex;
use rcgen::{CertificateSigningRequestParams, PublicKey};
use rustls::pki_types::CertificateSigningRequestDer;
use x509_parser::prelude::FromDer;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// Not a request at all.
    #[error("is not a PKCS#10 request in DER")]
    Malformed,
    /// Not signed by its own key.
    #[error("is not signed by its own key")]
    Signature,
    /// Another kind of key.
    #[error("has a key that is not P-256")]
    Key,
}

/// A request whose signature is right and whose key is P-256.
#[derive(Debug)]
pub struct Csr {
    pub(super) key: PublicKey,
    key_sha256: String,
}

impl Csr {
    /// Parses and verifies.
    ///
    /// # Errors
    /// See [`CsrError`].
    pub fn parse(der: &[u8]) -> Result<Self, CsrError> {
        let (rest, request) =
            x509_parser::certification_request::X509CertificationRequest::from_der(der)
                .map_err(|_| CsrError::Malformed)?;
        if !rest.is_empty() {
            return Err(CsrError::Malformed);
        }
        let spki = &request.certification_request_info.subject_pki;
        let curve = spki.algorithm.parameters.as_ref();
        let curve = curve.and_then(|parameters| parameters.as_oid().ok());
        if curve.is_none_or(|oid| oid != x509_parser::oid_registry::OID_EC_P256) {
            return Err(CsrError::Key);
        }
        let key_sha256 = sha256_hex(spki.raw);
        let request = CertificateSigningRequestDer::from(der);
        let parsed =
            CertificateSigningRequestParams::from_der(&request).map_err(|error| match error {
                rcgen::Error::InvalidCertificationRequestSignature => CsrError::Signature,
                rcgen::Error::UnsupportedSignatureAlgorithm => CsrError::Key,
                _ => CsrError::Malformed,
            })?;
        Ok(Self {
            key: parsed.public_key,
            key_sha256,
        })
    }

    /// SHA-256 of the public key (SubjectPublicKeyInfo), hex: what a token's use is bound to.
    #[must_use]
    pub fn key_sha256(&self) -> &str {
        &self.key_sha256
    }
}
