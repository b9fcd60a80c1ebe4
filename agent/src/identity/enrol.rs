//! The two unary calls that make and keep an identity: Enrol and Renew.
//!
//! Called by `identity`. One try each; repeating is the session's.

use std::time::Duration;

use drover_proto::limits;
use drover_proto::v1::{EnrolReply, EnrolRequest, Facts, RenewRequest};
use tonic::{Code, Status};

use super::keystore::{Identity, KeystoreError, NodeKey};
use super::proof::Shown;
use super::tls::Trust;
use super::token::CaHash;
use crate::session::link::{Client, DialError, Dialler};

/// How long one call may take.
const CALL_DEADLINE: Duration = Duration::from_secs(15);

/// What the coordinator said no to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its words.
    pub message: String,
    /// It is about the token or certificate that was shown, not about this host or the request.
    pub is_of_credentials: bool,
}

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No connection.
    #[error("no connection")]
    Dial(#[from] DialError),
    /// The coordinator said no, and asking again at once will not help.
    #[error("refused: {}", .0.message)]
    Refused(Refusal),
    /// The call broke; asking again may help.
    #[error("the call failed: {0}")]
    Broken(String),
    /// What came back, or our own key, cannot be used.
    #[error("the identity cannot be used")]
    Keystore(#[from] KeystoreError),
}

impl CallError {
    /// Reads a gRPC status.
    #[must_use]
    pub fn of(status: &Status) -> Self {
        match status.code() {
            Code::Unauthenticated
            | Code::PermissionDenied
            | Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::ResourceExhausted
            | Code::Unimplemented => Self::Refused(Refusal {
                message: status.message().to_owned(),
                is_of_credentials: matches!(
                    status.code(),
                    Code::Unauthenticated | Code::PermissionDenied
                ),
            }),
            code => Self::Broken(format!("{code:?}: {}", status.message())),
        }
    }
}

/// A unary call with a deadline.
async fn call<T>(
    call: impl Future<Output = Result<tonic::Response<T>, Status>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(CALL_DEADLINE, call).await {
        Ok(Ok(reply)) => Ok(reply.into_inner()),
        Ok(Err(status)) => Err(CallError::of(&status)),
        Err(_) => Err(CallError::Broken("no answer in time".into())),
    }
}

/// Trades a proof for an identity. Repeating it with the same proof and key is harmless.
///
/// # Errors
/// See [`CallError`].
pub(super) async fn enrol(
    dialler: &Dialler,
    ca: CaHash,
    shown: Shown,
    key: &NodeKey,
    facts: Facts,
) -> Result<EnrolReply, CallError> {
    let mut client = dialler.dial(Trust::Hash(ca), None).await?;
    call(client.enrol(EnrolRequest {
        token: shown.token,
        csr_der: key.request_der()?,
        facts: Some(facts),
        instance_identity: shown.instance_identity,
    }))
    .await
}

/// A fresh certificate over a connection with the valid one.
///
/// # Errors
/// See [`CallError`].
pub async fn renew(client: &mut Client, key: &NodeKey) -> Result<String, CallError> {
    let request = RenewRequest {
        csr_der: key.request_der()?,
        ..RenewRequest::default()
    };
    filled(call(client.renew(request)).await?.certificate_pem)
}

/// A fresh certificate for one that has expired: without a client certificate, with a signature over a nonce.
///
/// # Errors
/// See [`CallError`].
pub async fn renew_expired(
    dialler: &Dialler,
    identity: &Identity,
    key: &NodeKey,
) -> Result<String, CallError> {
    let trust = Trust::Pinned(identity.ca.clone());
    let mut client = dialler.dial(trust, None).await?;
    let mut request = RenewRequest {
        csr_der: key.request_der()?,
        expired_certificate_der: identity.certificate.to_vec(),
        ..RenewRequest::default()
    };
    let first = call(client.renew(request.clone())).await?;
    if first.nonce.is_empty() {
        return filled(first.certificate_pem);
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, &request.csr_der);
    let message = [limits::RENEW_CONTEXT, &first.nonce, digest.as_ref()].concat();
    request.signature = key.sign(&message)?;
    request.nonce = first.nonce;
    filled(call(client.renew(request)).await?.certificate_pem)
}

fn filled(certificate_pem: String) -> Result<String, CallError> {
    if certificate_pem.is_empty() {
        return Err(CallError::Broken("the reply holds no certificate".into()));
    }
    Ok(certificate_pem)
}
