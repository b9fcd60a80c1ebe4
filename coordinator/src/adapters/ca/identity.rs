//! Who a certificate speaks for: read from its SAN, nothing else. Called for every TLS connection by `serve/tls` and
//! for expired certificates by `serve/agents`. Whether it still counts (revoked, unknown) is not decided here.

use super::{Ca, sha256_hex};
use drover_core::model::{NodeId, UnixMs};
use drover_core::rules::access::Role;
use drover_proto::limits;
use rustls::pki_types::{CertificateDer, UnixTime};
use std::time::Duration;
use x509_parser::extensions::GeneralName;

/// Whom a certificate names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A node.
    Node(NodeId),
    /// A person or script.
    Admin {
        /// Role.
        role: Role,
        /// Name.
        name: String,
    },
}

impl Subject {
    /// The SAN URI.
    #[must_use]
    pub fn uri(&self) -> String {
        match self {
            Self::Node(id) => format!("{}{id}", limits::NODE_URI),
            Self::Admin { role, name } => {
                format!("{}{}/{name}", limits::ADMIN_URI, role_word(*role))
            }
        }
    }

    fn parse(uri: &str) -> Option<Self> {
        if let Some(id) = uri.strip_prefix(limits::NODE_URI) {
            return is_name(id).then(|| Self::Node(NodeId::from(id)));
        }
        let (role, name) = uri.strip_prefix(limits::ADMIN_URI)?.split_once('/')?;
        let role = parse_role(role)?;
        is_name(name).then(|| Self::Admin {
            role,
            name: name.to_owned(),
        })
    }
}

/// As audit lines name it: `node/ID` or `admin/NAME`.
impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(id) => write!(f, "node/{id}"),
            Self::Admin { name, .. } => write!(f, "admin/{name}"),
        }
    }
}

/// A role as certificates and commands write it.
#[must_use]
pub const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
        Role::Admin => "admin",
    }
}

/// The role of that word.
#[must_use]
pub fn parse_role(word: &str) -> Option<Role> {
    [Role::Viewer, Role::Operator, Role::Admin]
        .into_iter()
        .find(|role| role_word(*role) == word)
}

/// What may stand in a SAN as a name: 1 to 64 letters, digits and `.`, `_`, `-`, `@`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte))
}

/// A certificate of ours, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Whom it names.
    pub subject: Subject,
    /// Serial, hex.
    pub serial: String,
    /// Until when it is valid.
    pub not_after: UnixMs,
    /// SHA-256 of the certificate (DER), hex.
    pub sha256: String,
    /// SHA-256 of its public key (SubjectPublicKeyInfo), hex.
    pub key_sha256: String,
}

/// Why a certificate does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not a certificate.
    #[error("is not a certificate in DER")]
    Malformed,
    /// Not signed by our CA, or not for clients.
    #[error("was not issued by this coordinator's CA for clients")]
    Foreign,
    /// No name of ours in it.
    #[error("names neither a node nor a person")]
    Nameless,
    /// The signature over the nonce is not by its key.
    #[error("does not belong to the key that signed")]
    Signature,
}

impl PeerCertificate {
    /// Reads a certificate that was verified before (by TLS or by [`Ca::verify_at_any_time`]).
    ///
    /// # Errors
    /// Not a certificate, or without exactly one name of ours.
    pub fn read(der: &[u8]) -> Result<Self, CertificateError> {
        let (_, certificate) =
            x509_parser::parse_x509_certificate(der).map_err(|_| CertificateError::Malformed)?;
        let names = certificate
            .subject_alternative_name()
            .map_err(|_| CertificateError::Malformed)?
            .ok_or(CertificateError::Nameless)?;
        let [GeneralName::URI(uri)] = names.value.general_names.as_slice() else {
            return Err(CertificateError::Nameless);
        };
        let not_after = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
        Ok(Self {
            subject: Subject::parse(uri).ok_or(CertificateError::Nameless)?,
            serial: hex::encode(certificate.raw_serial()),
            not_after: UnixMs(not_after.saturating_mul(1_000)),
            sha256: sha256_hex(der),
            key_sha256: sha256_hex(certificate.public_key().raw),
        })
    }
}

impl Ca {
    /// Verifies that our CA issued this for clients, as of its last valid second, and that `signature` over `message`
    /// is by its key. For the renewal of expired certificates: how long ago it expired is the caller's to judge.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn verify_at_any_time(
        &self,
        der: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<PeerCertificate, CertificateError> {
        let read = PeerCertificate::read(der)?;
        let certificate = CertificateDer::from(der);
        let end_entity = webpki::EndEntityCert::try_from(&certificate)
            .map_err(|_| CertificateError::Malformed)?;
        let anchor =
            webpki::anchor_from_trusted_cert(self.der()).map_err(|_| CertificateError::Foreign)?;
        let last = UnixTime::since_unix_epoch(Duration::from_millis(read.not_after.0));
        end_entity
            .verify_for_usage(
                &[webpki::ring::ECDSA_P256_SHA256],
                &[anchor],
                &[],
                last,
                webpki::KeyUsage::client_auth(),
                None,
                None,
            )
            .map_err(|_| CertificateError::Foreign)?;
        end_entity
            .verify_signature(webpki::ring::ECDSA_P256_SHA256, message, signature)
            .map_err(|_| CertificateError::Signature)?;
        Ok(read)
    }
}
