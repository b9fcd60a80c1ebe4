//! The node's key and certificate on disk.
//!
//! Called by `identity`. The key is written before it is used, so that a reply that was lost can be asked for again
//! with the same key; it never leaves the host.

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};

use super::renew::Validity;
use super::token::CaHash;
use crate::state::{StateDir, StateError};

const KEY_FILE: &str = "node.key";
const IDENTITY_FILE: &str = "identity.json";

/// Why key or certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeystoreError {
    /// The file system said no.
    #[error("the keystore cannot be used")]
    State(#[from] StateError),
    /// The key is damaged or cannot be made.
    #[error("the node's key cannot be used")]
    Key(#[source] rcgen::Error),
    /// A certificate is none.
    #[error("the {what} is no certificate")]
    Certificate {
        /// Which one.
        what: &'static str,
    },
    /// The leaf is not for the node's key.
    #[error("the certificate is for another key")]
    OtherKey,
    /// The leaf names no node.
    #[error("the certificate names no node")]
    NoNode,
    /// The leaf or the reply names another node.
    #[error("the certificate is for node {0}")]
    OtherNode(String),
    /// Somebody else's CA came with the reply.
    #[error("the reply brought the CA {got}, expected {want}")]
    OtherCa {
        /// Of the reply.
        got: CaHash,
        /// Of the token or the config.
        want: CaHash,
    },
}

/// The node's key pair.
#[derive(Debug)]
pub struct NodeKey {
    pair: KeyPair,
}

impl NodeKey {
    /// The key on disk; made and written first when there is none.
    ///
    /// # Errors
    /// It cannot be read, made or written.
    pub fn load_or_make(state: &StateDir) -> Result<Self, KeystoreError> {
        if let Some(pem) = state.read(KEY_FILE)? {
            let pem = String::from_utf8_lossy(&pem);
            let pair = KeyPair::from_pem(&pem).map_err(KeystoreError::Key)?;
            return Ok(Self { pair });
        }
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(KeystoreError::Key)?;
        state.write(KEY_FILE, pair.serialize_pem().as_bytes())?;
        Ok(Self { pair })
    }

    /// A certificate request: proof of possession. The coordinator chooses all names itself.
    ///
    /// # Errors
    /// It cannot be signed.
    pub fn request_der(&self) -> Result<Vec<u8>, KeystoreError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "drover node");
        let request = params
            .serialize_request(&self.pair)
            .map_err(KeystoreError::Key)?;
        Ok(request.der().to_vec())
    }

    /// ECDSA P-256 SHA-256, ASN.1, over a message.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeystoreError> {
        rcgen::SigningKey::sign(&self.pair, message).map_err(KeystoreError::Key)
    }

    /// The key for TLS.
    #[must_use]
    pub fn private_der(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.pair.serialize_der()))
    }

    fn public_raw(&self) -> &[u8] {
        rcgen::PublicKeyData::der_bytes(&self.pair)
    }
}

/// Takes the key away, so that the next enrolment makes another one.
///
/// # Errors
/// It cannot be removed.
pub fn forget(state: &StateDir) -> Result<(), StateError> {
    state.remove(IDENTITY_FILE)?;
    state.remove(KEY_FILE)
}

/// What is on disk beside the key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    node_id: String,
    pool: String,
    token_id: String,
    certificate_pem: String,
    ca_pem: String,
}

/// An enrolled node's identity.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Minted by the coordinator.
    pub node_id: String,
    /// Pool of the token or the instance, empty when none.
    pub pool: String,
    /// The token that was used; "instance-identity" without one.
    pub token_id: String,
    /// The leaf.
    pub certificate: CertificateDer<'static>,
    /// The pinned CA.
    pub ca: CertificateDer<'static>,
    /// Of the leaf.
    pub validity: Validity,
    stored: Stored,
}

impl Identity {
    /// The identity on disk, `None` on a node that never enrolled.
    ///
    /// # Errors
    /// It is damaged, or for another key.
    pub fn load(state: &StateDir, key: &NodeKey) -> Result<Option<Self>, KeystoreError> {
        let stored: Option<Stored> = state.load(IDENTITY_FILE)?;
        stored.map(|stored| Self::check(stored, key)).transpose()
    }

    /// Checks what enrolment brought and writes it.
    ///
    /// # Errors
    /// It does not fit the key or the proof's CA, or cannot be written.
    pub fn adopt(
        state: &StateDir,
        key: &NodeKey,
        reply: drover_proto::v1::EnrolReply,
        proof: &super::proof::Proof,
    ) -> Result<Self, KeystoreError> {
        let identity = Self::check(
            Stored {
                node_id: reply.node_id,
                pool: reply.pool,
                token_id: proof.id().to_owned(),
                certificate_pem: reply.certificate_pem,
                ca_pem: reply.ca_pem,
            },
            key,
        )?;
        let got = CaHash::of(&identity.ca);
        if got != proof.ca() {
            return Err(KeystoreError::OtherCa {
                got,
                want: proof.ca(),
            });
        }
        state.save(IDENTITY_FILE, &identity.stored)?;
        Ok(identity)
    }

    /// Checks a renewed certificate and writes it.
    ///
    /// # Errors
    /// It does not fit the key or the node, or cannot be written.
    pub fn renewed(
        &self,
        state: &StateDir,
        key: &NodeKey,
        certificate_pem: String,
    ) -> Result<Self, KeystoreError> {
        let mut stored = self.stored.clone();
        stored.certificate_pem = certificate_pem;
        let identity = Self::check(stored, key)?;
        state.save(IDENTITY_FILE, &identity.stored)?;
        Ok(identity)
    }

    fn check(stored: Stored, key: &NodeKey) -> Result<Self, KeystoreError> {
        let read = |what, pem: &str| {
            CertificateDer::from_pem_slice(pem.as_bytes())
                .map_err(|_| KeystoreError::Certificate { what })
        };
        let certificate = read("leaf", &stored.certificate_pem)?;
        let ca = read("CA", &stored.ca_pem)?;
        let leaf = Leaf::read(&certificate)?;
        if leaf.public_raw != key.public_raw() {
            return Err(KeystoreError::OtherKey);
        }
        if leaf.node_id != stored.node_id {
            return Err(KeystoreError::OtherNode(leaf.node_id));
        }
        Ok(Self {
            node_id: stored.node_id.clone(),
            pool: stored.pool.clone(),
            token_id: stored.token_id.clone(),
            certificate,
            ca,
            validity: leaf.validity,
            stored,
        })
    }
}

struct Leaf {
    node_id: String,
    public_raw: Vec<u8>,
    validity: Validity,
}

impl Leaf {
    fn read(der: &CertificateDer<'_>) -> Result<Self, KeystoreError> {
        use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};
        let broken = || KeystoreError::Certificate { what: "leaf" };
        let (_, leaf) = X509Certificate::from_der(der).map_err(|_| broken())?;
        let names = leaf.subject_alternative_name().map_err(|_| broken())?;
        let node_id = names
            .iter()
            .flat_map(|names| &names.value.general_names)
            .find_map(|name| match name {
                GeneralName::URI(uri) => uri.strip_prefix(drover_proto::limits::NODE_URI),
                _ => None,
            })
            .filter(|id| !id.is_empty())
            .ok_or(KeystoreError::NoNode)?
            .to_owned();
        let ms = |time: x509_parser::time::ASN1Time| {
            u64::try_from(time.timestamp())
                .unwrap_or(0)
                .saturating_mul(1_000)
        };
        Ok(Self {
            node_id,
            public_raw: leaf.public_key().subject_public_key.data.to_vec(),
            validity: Validity {
                not_before_ms: ms(leaf.validity().not_before),
                not_after_ms: ms(leaf.validity().not_after),
            },
        })
    }
}
