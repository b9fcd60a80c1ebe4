//! EC2 instance identity documents as proof of who asks to enrol: verified with the pinned certificate of their region,
//! of a pinned account. Pure; called by `serve/agents`, which decides about pools, age and first use.
//!
//! AWS publishes one RSA-2048 certificate per region, which signs by itself: there is no chain. The region in a document
//! is believed because it selects the certificate that must verify it.

mod ber;
mod document;
mod signed;
#[cfg(test)]
mod tests;

use crate::config::enrolment::InstanceIdentity;
use drover_core::model::UnixMs;
use drover_proto::limits;
use signed::Signed;

pub use ber::BerError;
pub use document::{Document, DocumentError};
pub use signed::SignatureError;

/// Why a document proves nothing. The texts go to whoever asks, who may be anybody: they tell nothing that is pinned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// Too large.
    #[error("the instance identity document or its signature is too large")]
    TooLarge,
    /// The signature.
    #[error("the signature of the instance identity document does not hold: {0}")]
    Signature(#[source] SignatureError),
    /// What was signed.
    #[error("the instance identity document is none: {0}")]
    Document(#[source] DocumentError),
    /// No certificate.
    #[error(
        "no certificate of region {0} is pinned: name it in enrolment.instance_identity.certificates of the coordinator"
    )]
    Region(String),
    /// The certificate does not count now.
    #[error("the pinned certificate of region {0} is not valid now")]
    Expired(String),
    /// Another document beside the signature.
    #[error("the document is not the one that was signed")]
    OtherDocument,
    /// Not ours.
    #[error(
        "account {0} may not enrol here: it is not in enrolment.instance_identity.accounts of the coordinator"
    )]
    Account(String),
}

/// What a document and its signature prove.
///
/// # Errors
/// See [`ProofError`].
pub fn verify(
    pinned: &InstanceIdentity,
    document: &str,
    rsa2048: &str,
    now: UnixMs,
) -> Result<Document, ProofError> {
    if document.len() > limits::IDENTITY_DOCUMENT_BYTES
        || rsa2048.len() > limits::IDENTITY_SIGNATURE_BYTES
    {
        return Err(ProofError::TooLarge);
    }
    let signed = Signed::read(rsa2048).map_err(ProofError::Signature)?;
    let said = Document::parse(signed.content()).map_err(ProofError::Document)?;
    let certificate = pinned
        .certificates
        .get(&said.region)
        .ok_or_else(|| ProofError::Region(said.region.clone()))?;
    signed.verify(certificate).map_err(ProofError::Signature)?;
    if now < certificate.not_before || now >= certificate.not_after {
        return Err(ProofError::Expired(said.region));
    }
    if document.trim_ascii().as_bytes() != signed.content().trim_ascii() {
        return Err(ProofError::OtherDocument);
    }
    if !pinned.accounts.contains(&said.account) {
        return Err(ProofError::Account(said.account));
    }
    Ok(said)
}
