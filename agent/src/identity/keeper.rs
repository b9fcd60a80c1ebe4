//! The node's identity with what it takes to make and renew it: enrols, renews, enrols again.
//!
//! Called by `session`, which decides when to try.

use super::IdentityError;
use super::enrol::{self, CallError};
use super::keystore::{self, Identity, KeystoreError, NodeKey};
use super::proof::Proof;
use super::renew::{self, Renewal};
use super::tls::{ClientAuth, Trust};
use super::token::CaHash;
use crate::clock;
use crate::session::link::{Client, DialError, Dialler};
use crate::state::StateDir;
use drover_proto::v1::{EnrolReply, Facts};

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
