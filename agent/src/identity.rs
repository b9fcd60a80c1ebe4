//! Who this node is: key, certificate and the pinned CA, made by enrolment and kept by renewal.
//!
//! Called by `session`, which decides when to try. Never exits the agent: a refused node says so and asks again.

pub mod enrol;
pub mod keystore;
pub mod proof;
pub mod renew;
pub mod tls;
pub mod token;

use drover_proto::v1::{EnrolReply, Facts};

use enrol::CallError;
use keystore::{Identity, KeystoreError, NodeKey};
use proof::{Proof, ProofError};
use renew::Renewal;
use tls::{ClientAuth, Trust};
use token::CaHash;

use crate::clock;
use crate::session::link::{Client, DialError, Dialler};
use crate::state::StateDir;

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

/// The node's identity with what it takes to make and renew it.
#[derive(Debug)]
pub struct Keeper {
    state: StateDir,
    dialler: Dialler,
    proof: Option<Proof>,
    key: NodeKey,
    identity: Option<Identity>,
    /// Drawn once per start, 0..1.
    jitter: f64,
    /// Coordinator's clock minus ours, once it was heard.
    offset_ms: i64,
}

impl Keeper {
    /// Loads key and identity; makes and writes the key of a new node.
    ///
    /// # Errors
    /// The keystore is damaged or not writable.
    pub fn load(
        state: StateDir,
        dialler: Dialler,
        proof: Option<Proof>,
        jitter: f64,
    ) -> Result<Self, KeystoreError> {
        let mut key = NodeKey::load_or_make(&state)?;
        let mut identity = Identity::load(&state, &key)?;
        if let (Some(known), Some(fresh)) = (&identity, &proof)
            && fresh.is_elsewhere(&known.token_id, CaHash::of(&known.ca))
        {
            tracing::warn!(
                node = known.node_id,
                proof = fresh.id(),
                "what the config proves this node with is for another coordinator: enrolling there"
            );
            keystore::forget(&state)?;
            key = NodeKey::load_or_make(&state)?;
            identity = None;
        }
        Ok(Self {
            state,
            dialler,
            proof,
            key,
            identity,
            jitter,
            offset_ms: 0,
        })
    }

    /// Node id, empty before enrolment.
    #[must_use]
    pub fn node_id(&self) -> &str {
        self.identity.as_ref().map_or("", |known| &known.node_id)
    }

    /// Takes the coordinator's clock: whether a certificate has expired is its clock's to say.
    pub fn heard_clock(&mut self, coordinator_unix_ms: u64) {
        let ours = i64::try_from(clock::unix_ms()).unwrap_or(i64::MAX);
        let theirs = i64::try_from(coordinator_unix_ms).unwrap_or(i64::MAX);
        self.offset_ms = theirs.saturating_sub(ours);
    }

    /// What the certificate needs now; `None` before enrolment.
    #[must_use]
    pub fn renewal(&self) -> Option<Renewal> {
        let now_ms = clock::unix_ms().saturating_add_signed(self.offset_ms);
        let identity = self.identity.as_ref()?;
        Some(renew::decide(identity.validity, now_ms, self.jitter))
    }

    /// Enrols a new node, renews an expired certificate; otherwise does nothing.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub async fn ensure(&mut self, facts: impl FnOnce() -> Facts) -> Result<(), IdentityError> {
        match self.renewal() {
            None => self.enrol(facts()).await,
            Some(Renewal::Expired) => self.renew_expired().await,
            Some(Renewal::TooOld) => self.again(facts(), IdentityError::TooOld).await,
            Some(Renewal::In(_) | Renewal::Now) => Ok(()),
        }
    }

    /// Connects with the identity.
    ///
    /// # Errors
    /// Not enrolled, or no connection.
    pub async fn dial(&self) -> Result<Client, IdentityError> {
        let identity = self.identity.as_ref().ok_or(IdentityError::NoToken)?;
        let auth = ClientAuth {
            certificate: identity.certificate.clone(),
            key: self.key.private_der(),
        };
        let trust = Trust::Pinned(identity.ca.clone());
        self.dialler
            .dial(trust, Some(auth))
            .await
            .map_err(|error: DialError| IdentityError::Call {
                verb: "connect",
                source: error.into(),
            })
    }

    /// Renews over a connection that carries the valid certificate.
    ///
    /// # Errors
    /// See [`IdentityError`].
    pub async fn renew(&mut self, client: &mut Client) -> Result<(), IdentityError> {
        let pem = enrol::renew(client, &self.key)
            .await
            .map_err(|source| IdentityError::Call {
                verb: "renew the certificate",
                source,
            })?;
        self.take(pem)
    }

    /// The coordinator refused the session. Perhaps it holds the certificate for expired although our clock does
    /// not; perhaps the node was revoked and a new token lies ready.
    ///
    /// # Errors
    /// Nothing helped.
    pub async fn refused(&mut self, message: String, facts: Facts) -> Result<(), IdentityError> {
        match self.renew_expired().await {
            Err(IdentityError::Call {
                source: CallError::Refused(why),
                ..
            }) => {
                tracing::debug!(why = why.message, "renewal refused too");
                self.again(facts, IdentityError::IdentityRefused(message))
                    .await
            }
            other => other,
        }
    }

    async fn renew_expired(&mut self) -> Result<(), IdentityError> {
        let identity = self.identity.as_ref().ok_or(IdentityError::NoToken)?;
        let pem = enrol::renew_expired(&self.dialler, identity, &self.key)
            .await
            .map_err(|source| IdentityError::Call {
                verb: "renew the expired certificate",
                source,
            })?;
        self.take(pem)
    }

    fn take(&mut self, pem: String) -> Result<(), IdentityError> {
        let Some(identity) = &self.identity else {
            return Ok(());
        };
        let renewed = identity.renewed(&self.state, &self.key, pem)?;
        tracing::info!(node = renewed.node_id, "certificate renewed");
        self.identity = Some(renewed);
        Ok(())
    }

    /// Enrols anew if the config holds a token that was not used before, or if the instance proves itself: then with the
    /// key that it has, until the coordinator asks for another one. Else the trouble stays.
    async fn again(&mut self, facts: Facts, trouble: IdentityError) -> Result<(), IdentityError> {
        let used = self.identity.as_ref().map(|known| known.token_id.as_str());
        match &self.proof {
            Some(Proof::Token(token)) if Some(token.id()) != used => {
                tracing::warn!(%trouble, "enrolling again with the new join_token");
                self.forget()?;
                self.enrol(facts).await
            }
            Some(Proof::Instance(_)) => {
                tracing::warn!(%trouble, "enrolling again with the instance's identity document");
                self.enrol(facts).await
            }
            Some(Proof::Token(_)) | None => Err(trouble),
        }
    }

    /// Goes on with another key and without a certificate.
    fn forget(&mut self) -> Result<(), IdentityError> {
        keystore::forget(&self.state).map_err(KeystoreError::from)?;
        self.identity = None;
        self.key = NodeKey::load_or_make(&self.state)?;
        Ok(())
    }

    async fn enrol(&mut self, facts: Facts) -> Result<(), IdentityError> {
        let mut reply = self.ask(facts.clone()).await?;
        if reply.new_key_needed {
            tracing::warn!(
                "the coordinator took the key of this node back: enrolling with a new one"
            );
            self.forget()?;
            reply = self.ask(facts).await?;
        }
        if reply.new_key_needed {
            return Err(IdentityError::Call {
                verb: "enrol",
                source: CallError::Broken("the coordinator asks for a new key again".into()),
            });
        }
        let proof = self.proof.as_ref().ok_or(IdentityError::NoToken)?;
        let identity = Identity::adopt(&self.state, &self.key, reply, proof)?;
        tracing::info!(
            node = identity.node_id,
            pool = identity.pool,
            proof = proof.id(),
            "enrolled"
        );
        self.identity = Some(identity);
        Ok(())
    }

    async fn ask(&self, facts: Facts) -> Result<EnrolReply, IdentityError> {
        let proof = self.proof.as_ref().ok_or(IdentityError::NoToken)?;
        let shown = proof.show().await?;
        enrol::enrol(&self.dialler, proof.ca(), shown, &self.key, facts)
            .await
            .map_err(|source| match source {
                CallError::Refused(refusal) => IdentityError::ProofRefused {
                    proof: proof.name(),
                    new_token_helps: refusal.is_of_credentials && matches!(proof, Proof::Token(_)),
                    message: refusal.message,
                },
                source => IdentityError::Call {
                    verb: "enrol",
                    source,
                },
            })
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
