//! Renewal: a fresh certificate for a valid one, or for one that expired at most 90 days ago with a signature by its key
//! over a nonce of ours. The nonce needs no memory: it is a time and a MAC under a key of this process.

use super::enrol::{counts, fit, node_key, parse_csr, revoked};
use super::{ATTEMPTS, Agents, commit_failed, read_failed, too_contended};
use crate::adapters::ca::{PeerCertificate, Subject};
use crate::ports::store::{CommitError, Guard, Op};
use crate::records::{NodeRecord, keys};
use crate::serve::auth::Caller;
use crate::serve::convert::limits as check;
use drover_core::model::{Millis, NodeId, UnixMs};
use drover_proto::{limits, v1};
use ring::{digest, hmac};
use tonic::Status;

/// How long after its end a certificate can be renewed.
pub const EXPIRED_MOST: Millis = Millis(90 * 24 * 3_600_000);
/// How long a nonce counts.
const NONCE_LIFE: Millis = Millis(60_000);

/// Nonces of this process.
pub(super) struct Nonces(hmac::Key);

impl Nonces {
    pub(super) fn new() -> Self {
        Self(hmac::Key::new(
            hmac::HMAC_SHA256,
            &rand::random::<[u8; 32]>(),
        ))
    }

    fn bound(at: UnixMs, certificate: &[u8]) -> Vec<u8> {
        let certificate = digest::digest(&digest::SHA256, certificate);
        [&at.0.to_be_bytes()[..], certificate.as_ref()].concat()
    }

    /// A nonce for the holder of this certificate.
    pub(super) fn make(&self, now: UnixMs, certificate: &[u8]) -> Vec<u8> {
        let mac = hmac::sign(&self.0, &Self::bound(now, certificate));
        [&now.0.to_be_bytes()[..], mac.as_ref()].concat()
    }

    /// Ours, for this certificate, and not older than a minute.
    pub(super) fn holds(&self, nonce: &[u8], now: UnixMs, certificate: &[u8]) -> bool {
        let Some((at, mac)) = nonce.split_first_chunk::<8>() else {
            return false;
        };
        let at = UnixMs(u64::from_be_bytes(*at));
        hmac::verify(&self.0, &Self::bound(at, certificate), mac).is_ok()
            && at <= now
            && now.since(at) <= NONCE_LIFE
    }
}

impl Agents {
    pub(super) async fn renew(
        &self,
        caller: Option<Caller>,
        request: v1::RenewRequest,
    ) -> Result<v1::RenewReply, Status> {
        let csr = parse_csr(&request.csr_der)?;
        let proven = match caller {
            Some(caller) => caller.certificate.as_ref().clone(),
            None => match self.prove(&request).await? {
                Proof::Certificate(certificate) => *certificate,
                Proof::Sign(nonce) => {
                    return Ok(v1::RenewReply {
                        certificate_pem: String::new(),
                        nonce,
                    });
                }
            },
        };
        let Subject::Node(id) = &proven.subject else {
            return Err(Status::permission_denied("only nodes renew"));
        };
        let now = self.parts.clock.wall();
        let issued = self.issue(&csr, id, now)?;
        self.record(id, &proven, &issued.serial, issued.not_after)
            .await?;
        fail::fail_point!("renew.committed");
        tracing::info!(node = %id, serial = issued.serial, "renewed");
        Ok(v1::RenewReply {
            certificate_pem: issued.pem,
            nonce: Vec::new(),
        })
    }

    /// Writes serial and end of the new certificate into the node's record, if it may have one.
    async fn record(
        &self,
        id: &NodeId,
        proven: &PeerCertificate,
        serial: &str,
        not_after: UnixMs,
    ) -> Result<(), Status> {
        let expired = self.parts.clock.wall() >= proven.not_after;
        for _ in 0..ATTEMPTS {
            let Some(held) = self.read::<NodeRecord>(&node_key(id)).await? else {
                return Err(Status::not_found(
                    "this node is not known here: it must enrol again",
                ));
            };
            let mut node = held.value;
            fit(&node)?;
            counts(&node, proven)?;
            if expired {
                let kept = self.parts.admission.keeps(&node);
                kept.map_err(Status::failed_precondition)?;
            }
            node.serial = serial.to_owned();
            node.not_after = not_after;
            let value = serde_json::to_vec(&node)
                .map_err(|error| commit_failed(&CommitError::Backend(Box::new(error))))?;
            let store = self.store();
            let key = node_key(id);
            let guards = [Guard::Unchanged(key.clone(), held.revision)];
            match store
                .commit(store.fence(), &guards, &[Op::Put(key, value)])
                .await
            {
                Ok(_) => return Ok(()),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(commit_failed(&error)),
            }
        }
        Err(too_contended())
    }

    /// Who asks, without a client certificate.
    async fn prove(&self, request: &v1::RenewRequest) -> Result<Proof, Status> {
        let der = &request.expired_certificate_der;
        check::blob("expired_certificate_der", der, limits::CERTIFICATE_BYTES)?;
        check::blob("nonce", &request.nonce, limits::NAME_BYTES)?;
        check::blob("signature", &request.signature, limits::NAME_BYTES)?;
        if der.is_empty() {
            return Err(Status::unauthenticated(
                "renewal needs a valid client certificate, or an expired one with a signature",
            ));
        }
        let now = self.parts.clock.wall();
        if request.nonce.is_empty() {
            return Ok(Proof::Sign(self.nonces.make(now, der)));
        }
        if !self.nonces.holds(&request.nonce, now, der) {
            return Err(Status::aborted(
                "the nonce is stale or not ours: ask for a new one",
            ));
        }
        let csr_sha256 = digest::digest(&digest::SHA256, &request.csr_der);
        let message = [
            limits::RENEW_CONTEXT,
            request.nonce.as_slice(),
            csr_sha256.as_ref(),
        ]
        .concat();
        let certificate = self
            .parts
            .ca
            .verify_at_any_time(der, &message, &request.signature)
            .map_err(|error| {
                Status::unauthenticated(format!("expired_certificate_der: {error}"))
            })?;
        if now.since(certificate.not_after) > EXPIRED_MOST {
            return Err(Status::permission_denied(
                "the certificate expired more than 90 days ago: the node must enrol again",
            ));
        }
        let key = keys::named(keys::REVOKED, &certificate.serial);
        let found = self.store().get(&key).await.map_err(|e| read_failed(&e))?;
        if found.is_some() {
            return Err(revoked());
        }
        Ok(Proof::Certificate(Box::new(certificate)))
    }
}

enum Proof {
    /// Proven.
    Certificate(Box<PeerCertificate>),
    /// This nonce is to be signed first.
    Sign(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_counts_for_a_minute_one_certificate_and_one_process() {
        let nonces = Nonces::new();
        let now = UnixMs(1_000_000);
        let nonce = nonces.make(now, b"cert");
        let mut forged = nonce.clone();
        forged[7] ^= 1;
        for (what, nonce, at, certificate, good) in [
            ("fresh", &nonce, now.0, &b"cert"[..], true),
            ("a minute", &nonce, now.0 + 60_000, b"cert", true),
            ("stale", &nonce, now.0 + 60_001, b"cert", false),
            ("from the future", &nonce, now.0 - 1, b"cert", false),
            ("other certificate", &nonce, now.0, b"other", false),
            ("other time", &forged, now.0, b"cert", false),
            ("short", &nonce[..7].to_vec(), now.0, b"cert", false),
            ("empty", &Vec::new(), now.0, b"cert", false),
        ] {
            assert_eq!(nonces.holds(nonce, UnixMs(at), certificate), good, "{what}");
        }
        assert!(
            !Nonces::new().holds(&nonce, now, b"cert"),
            "another process"
        );
    }
}
