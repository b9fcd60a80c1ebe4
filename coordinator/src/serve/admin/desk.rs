//! Join tokens, people's certificates and backups. Used by `serve/admin`.

use super::refusal::{identity, named, refuse, sealing, text, token};
use super::{Admin, Answer, BackupStream, given};
use crate::adapters::backup;
use crate::adapters::ca::identity::parse_role;
use crate::adapters::tokens::TokenWish;
use crate::control::commands::CommandError;
use crate::control::journal::Change;
use crate::serve::convert::records;
use drover_core::model::{Millis, PoolId};
use drover_proto::{limits, v1};
use tonic::Response;

/// Bytes of one piece of a backup.
const CHUNK: usize = 1024 * 1024;

impl Admin {
    /// Makes a join token.
    pub(super) async fn admit(
        &self,
        by: String,
        wish: v1::CreateTokenRequest,
    ) -> Answer<v1::CreateTokenReply> {
        if let Some(pool) = given(&wish.pool) {
            Self::pool(&*self.view().await?, pool)?;
        }
        let wish = TokenWish {
            pool: given(&wish.pool).map(PoolId::from),
            host: given(&wish.host).map(str::to_owned),
            max_uses: wish.max_uses,
            ttl: Millis(wish.ttl_ms),
        };
        let (record, secret) = self.tokens.create(wish, &by).await.map_err(token)?;
        let shown = Some(records::token(&record));
        Ok(Response::new(v1::CreateTokenReply {
            token: shown,
            text: secret,
        }))
    }

    /// Issues a client certificate.
    pub(super) async fn certify(
        &self,
        by: String,
        wish: v1::IssueAdminCertificateRequest,
    ) -> Answer<v1::IssueAdminCertificateReply> {
        let role = parse_role(&wish.role)
            .ok_or_else(|| named("role", "is not known; say viewer, operator or admin"))?;
        if wish.csr_der.len() > limits::CERTIFICATE_BYTES {
            return Err(named("csr_der", "is too large"));
        }
        let ttl = Millis(wish.ttl_ms);
        let issued = self
            .identities
            .issue_admin(&wish.name, role, &wish.csr_der, ttl, &by)
            .await;
        Ok(Response::new(v1::IssueAdminCertificateReply {
            certificate_pem: issued.map_err(identity)?.pem,
            ca_pem: self.identities.ca_pem().to_owned(),
        }))
    }

    /// Makes a backup.
    pub(super) async fn seal(&self, by: String, wish: v1::BackupRequest) -> Answer<BackupStream> {
        text("passphrase", &wish.passphrase, limits::TEXT_BYTES)?;
        let store = self.commands.journal().store();
        let made = backup::create(store.as_ref(), &self.state_dir, &wish.passphrase).await;
        let bytes = made.map_err(sealing)?;
        let mut change = Change::new();
        change.audit(
            &by,
            "backup.create",
            "store",
            format!("{} bytes", bytes.len()),
        );
        let written = self.commands.journal().commit(change).await;
        written.map_err(|error| refuse(CommandError::Commit(error)))?;
        let chunks: Vec<_> = bytes
            .chunks(CHUNK)
            .map(|data| {
                Ok(v1::BackupChunk {
                    data: data.to_vec(),
                })
            })
            .collect();
        Ok(Response::new(Box::pin(futures::stream::iter(chunks))))
    }
}
