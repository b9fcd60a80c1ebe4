//! What a node that has no certificate proves itself with: a join token, or what the metadata of its instance says of it.
//!
//! Called by `identity` for each try to enrol. A document is a bearer secret: it is read anew each time, sent to the
//! coordinator that the pinned CA vouches for, and neither kept nor logged.

use std::path::PathBuf;

use drover_proto::limits;
use drover_proto::v1::InstanceIdentity;

use super::token::{CaHash, JoinToken};
use crate::collector::ImdsConfig;
use crate::imds::{Endpoint, Imds, ImdsError};

/// Stands in the keystore where a token's id would.
const INSTANCE: &str = "instance-identity";

/// Where the documents are.
const DOCUMENT: &str = "dynamic/instance-identity/document";
const RSA2048: &str = "dynamic/instance-identity/rsa2048";

/// What a node proves itself with.
#[derive(Debug, Clone)]
pub enum Proof {
    /// A join token.
    Token(JoinToken),
    /// The identity document of its EC2 instance.
    Instance(InstanceProof),
}

/// Where the identity document of an instance is, and to whom it may be shown.
#[derive(Debug, Clone)]
pub struct InstanceProof {
    /// The CA that the coordinator must prove.
    pub ca: CaHash,
    /// Where metadata is.
    pub imds: ImdsConfig,
    /// /sys, whose DMI says whether this is an EC2 instance.
    pub sys: PathBuf,
}

/// What goes into one request.
pub(super) struct Shown {
    pub(super) token: String,
    pub(super) instance_identity: Option<InstanceIdentity>,
}

/// Why there is nothing to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// No EC2.
    #[error(
        "[join] says method = \"instance-identity\", and this host is no EC2 instance: its DMI names another vendor, and metadata.endpoint names no address"
    )]
    NoInstance,
    /// The config or the environment names no endpoint.
    #[error(transparent)]
    Endpoint(#[from] crate::imds::endpoint::BadEndpoint),
    /// Metadata cannot be read.
    #[error("instance metadata cannot be read")]
    Metadata(#[from] ImdsError),
    /// Metadata without it.
    #[error("instance metadata holds no {0}")]
    Missing(&'static str),
    /// Larger than the coordinator takes.
    #[error("{0} of the instance metadata is too large")]
    TooLarge(&'static str),
}

impl ProofError {
    /// Only a person can help.
    #[must_use]
    pub const fn needs_a_person(&self) -> bool {
        match self {
            Self::NoInstance | Self::Endpoint(_) | Self::TooLarge(_) => true,
            Self::Metadata(error) => matches!(error, ImdsError::Disabled(_)),
            Self::Missing(_) => false,
        }
    }
}

impl Proof {
    /// The CA that the coordinator must prove.
    #[must_use]
    pub fn ca(&self) -> CaHash {
        match self {
            Self::Token(token) => token.ca(),
            Self::Instance(proof) => proof.ca,
        }
    }

    /// What the keystore remembers of it: the token's id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Token(token) => token.id(),
            Self::Instance(_) => INSTANCE,
        }
    }

    /// For messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Token(token) => format!("join_token {}", token.id()),
            Self::Instance(_) => "the identity document of this instance".to_owned(),
        }
    }

    /// It cannot have made an identity that another proof made, of this CA.
    pub(super) fn is_elsewhere(&self, token_id: &str, ca: CaHash) -> bool {
        let same = matches!(self, Self::Token(token) if token.id() == token_id);
        !same && self.ca() != ca
    }

    /// Reads what is to be shown.
    ///
    /// # Errors
    /// See [`ProofError`].
    pub(super) async fn show(&self) -> Result<Shown, ProofError> {
        match self {
            Self::Token(token) => Ok(Shown {
                token: token.text().to_owned(),
                instance_identity: None,
            }),
            Self::Instance(proof) => Ok(Shown {
                token: String::new(),
                instance_identity: Some(proof.read().await?),
            }),
        }
    }
}

impl InstanceProof {
    async fn read(&self) -> Result<InstanceIdentity, ProofError> {
        let endpoint = Endpoint::find(&self.imds, &self.sys)?.ok_or(ProofError::NoInstance)?;
        let mut imds = Imds::new(endpoint);
        Ok(InstanceIdentity {
            document: text(&mut imds, DOCUMENT, limits::IDENTITY_DOCUMENT_BYTES).await?,
            rsa2048: text(&mut imds, RSA2048, limits::IDENTITY_SIGNATURE_BYTES).await?,
        })
    }
}

async fn text(imds: &mut Imds, path: &'static str, most: usize) -> Result<String, ProofError> {
    let text = imds.get(path).await?.ok_or(ProofError::Missing(path))?;
    if text.len() > most {
        return Err(ProofError::TooLarge(path));
    }
    Ok(text)
}
