//! Who this node is: key, certificate and the pinned CA, made by enrolment and kept by renewal.
//!
//! Called by `session`, which decides when to try. Never exits the agent: a refused node says so and asks again.

pub mod enrol;
mod keeper;
pub mod keystore;
pub mod proof;
pub mod renew;
pub mod tls;
pub mod token;

use enrol::CallError;
pub use keeper::Keeper;
use keystore::KeystoreError;
use proof::ProofError;

/// Why the node has no usable identity now.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Never enrolled, and nothing to enrol with.
    #[error(
        "not enrolled and no join_token in the config: make one with `drover tokens create` and set join_token, or on EC2 \
         set [join] method = \"instance-identity\""
    )]
    NoToken,
    /// There is nothing to prove the node with.
    #[error("cannot prove which instance this is")]
    Proof(#[from] ProofError),
    /// The coordinator does not take the proof.
    #[error("the coordinator refused {proof}: {message}{}", advice(*.new_token_helps, message))]
    ProofRefused {
        /// A token by its id, or the instance.
        proof: String,
        /// The coordinator's words.
        message: String,
        /// It is about a token, not about this host.
        new_token_helps: bool,
    },
    /// The coordinator does not take the certificate, and a new token was not given.
    #[error(
        "the coordinator refused this node's identity ({0}): if it was revoked, set a new join_token to enrol again"
    )]
    IdentityRefused(String),
    /// Expired for more than 90 days.
    #[error("the certificate expired more than 90 days ago: set a new join_token to enrol again")]
    TooOld,
    /// A try failed that may succeed later.
    #[error("cannot {verb}")]
    Call {
        /// What was tried.
        verb: &'static str,
        /// Why.
        source: CallError,
    },
    /// Key or certificate cannot be used.
    #[error("the keystore cannot be used")]
    Keystore(#[from] KeystoreError),
}

/// What to do about a refusal: a new token only where that mends it, and not said twice.
fn advice(new_token_helps: bool, message: &str) -> &'static str {
    if new_token_helps && !message.contains("drover tokens create") {
        "; make a new one with `drover tokens create`"
    } else {
        ""
    }
}

impl IdentityError {
    /// Only a person can help: try again slowly.
    #[must_use]
    pub fn needs_a_person(&self) -> bool {
        match self {
            Self::Proof(error) => error.needs_a_person(),
            Self::Call { source, .. } => {
                !matches!(source, CallError::Dial(_) | CallError::Broken(_))
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Status;

    #[test]
    fn a_new_token_is_advised_only_where_it_helps() {
        let text = |status: Status| {
            let CallError::Refused(refusal) = CallError::of(&status) else {
                panic!("refused: {status}");
            };
            let error = IdentityError::ProofRefused {
                proof: "join_token t-1".to_owned(),
                new_token_helps: refusal.is_of_credentials,
                message: refusal.message,
            };
            error.to_string()
        };
        assert_eq!(
            text(Status::permission_denied("this join token was revoked")),
            "the coordinator refused join_token t-1: this join token was revoked; make a new one with \
             `drover tokens create`"
        );
        assert_eq!(
            text(Status::failed_precondition("pool gpu takes no such host")),
            "the coordinator refused join_token t-1: pool gpu takes no such host"
        );
        let own = "this join token has expired (`drover tokens create` makes a new one)";
        assert_eq!(
            text(Status::permission_denied(own)),
            format!("the coordinator refused join_token t-1: {own}")
        );
    }
}
