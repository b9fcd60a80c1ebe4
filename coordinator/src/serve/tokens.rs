//! Join tokens for people: create, list, revoke. Called by the admin service, which has checked the role.

use crate::adapters::ca::Ca;
use crate::adapters::tokens::{self, TokenWish, WishError};
use crate::control::journal::{Change, Journal};
use crate::ports::clock::Clock;
use crate::ports::store::{CommitError, ReadError};
use crate::records::{TokenRecord, keys};
use std::sync::Arc;

/// Why a wish about tokens was not done.
#[derive(Debug, thiserror::Error)]
pub enum TokenDeskError {
    /// The wish is wrong.
    #[error(transparent)]
    Wish(#[from] WishError),
    /// No such token.
    #[error("no token has the id {0:?}")]
    NotFound(String),
    /// The record cannot be understood.
    #[error("the record of token {0:?} cannot be understood")]
    Broken(String),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error("the store refused the change")]
    Commit(#[source] CommitError),
}

/// Makes, lists and revokes tokens.
#[derive(Clone)]
pub struct TokenDesk {
    journal: Arc<Journal>,
    ca: Arc<Ca>,
    clock: Arc<dyn Clock>,
}

impl TokenDesk {
    /// Over this journal and CA.
    #[must_use]
    pub fn new(journal: Arc<Journal>, ca: Arc<Ca>, clock: Arc<dyn Clock>) -> Self {
        Self { journal, ca, clock }
    }

    /// Makes one. The text is shown once and not kept.
    ///
    /// # Errors
    /// See [`TokenDeskError`]. Whether the pool exists is the caller's to check.
    pub async fn create(
        &self,
        wish: TokenWish,
        by: &str,
    ) -> Result<(TokenRecord, String), TokenDeskError> {
        let (record, text) = tokens::mint(wish, self.ca.sha256(), by, self.clock.wall())?;
        let pool = record.pool.as_ref().map_or("none", |pool| pool.as_str());
        let mut change = Change::new();
        change
            .put(keys::named(keys::TOKEN, record.id.as_str()), &record, None)
            .audit(
                by,
                "token.create",
                record.id.as_str(),
                format!("pool {pool}, {} uses", record.max_uses),
            );
        let done = self.journal.commit(change).await;
        done.map_err(TokenDeskError::Commit)?;
        Ok((record, text))
    }

    /// All, expired and revoked ones included; the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<TokenRecord>, TokenDeskError> {
        let entries = self.journal.store().list(keys::TOKEN).await?;
        let mut all: Vec<TokenRecord> = entries
            .iter()
            .filter_map(|entry| {
                serde_json::from_slice(&entry.value)
                    .inspect_err(|error| {
                        tracing::error!(
                            key = entry.key,
                            error = error as &dyn std::error::Error,
                            "broken record"
                        );
                    })
                    .ok()
            })
            .collect();
        all.sort_by(|a, b| (b.created, &b.id).cmp(&(a.created, &a.id)));
        Ok(all)
    }

    /// Takes one back: no new node, no repetition. Nodes that used it stay.
    ///
    /// # Errors
    /// See [`TokenDeskError`].
    pub async fn revoke(&self, id: &str, by: &str) -> Result<TokenRecord, TokenDeskError> {
        let key = keys::named(keys::TOKEN, id);
        loop {
            let Some(entry) = self.journal.store().get(&key).await? else {
                return Err(TokenDeskError::NotFound(id.to_owned()));
            };
            let mut record: TokenRecord = serde_json::from_slice(&entry.value)
                .map_err(|_| TokenDeskError::Broken(id.to_owned()))?;
            if record.revoked {
                return Ok(record);
            }
            record.revoked = true;
            let mut change = Change::new();
            change
                .put(key.clone(), &record, Some(entry.revision))
                .audit(by, "token.revoke", id, "");
            match self.journal.commit(change).await {
                Ok(_) => return Ok(record),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(TokenDeskError::Commit(error)),
            }
        }
    }
}
