//! Join tokens: made, read and judged. Pure; `serve/tokens` and `serve/agents` read and commit the records.
//!
//! Text: `drover-join-v1.<id>.<secret>.<SHA-256 of the CA, hex>`. Only the secret's hash is kept. A use is (token, hash
//! of the key in the request), so that a lost reply can be repeated.

use super::ca::sha256_hex;
use crate::records::TokenRecord;
use drover_core::model::{Millis, NodeId, PoolId, TokenId, UnixMs};
use drover_proto::limits;

/// Life of a token when none is named.
pub const DEFAULT_TTL: Millis = Millis(3_600_000);
/// Longest life.
pub const TTL_MOST: Millis = Millis(366 * 24 * 3_600_000);
/// Most uses: their list has to fit into one record.
pub const USES_MOST: u32 = 2_000;

/// What a new token is to admit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenWish {
    /// Pool of its nodes; absent: none.
    pub pool: Option<PoolId>,
    /// Only this host name.
    pub host: Option<String>,
    /// Most different keys; 0: 1.
    pub max_uses: u32,
    /// Life; zero: [`DEFAULT_TTL`].
    pub ttl: Millis,
}

/// Why a token cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WishError {
    /// Too many uses.
    #[error("max_uses: {0}; at most {USES_MOST} are possible, make several tokens")]
    Uses(u32),
    /// Lives too long.
    #[error("ttl: at most 366 days are possible")]
    Ttl,
    /// Not a host name.
    #[error("host: {0:?} is not a host name")]
    Host(String),
}

/// Makes a token: the record to keep and the text to show once.
///
/// # Errors
/// See [`WishError`].
pub fn mint(
    wish: TokenWish,
    ca_sha256: &str,
    by: &str,
    now: UnixMs,
) -> Result<(TokenRecord, String), WishError> {
    if wish.max_uses > USES_MOST {
        return Err(WishError::Uses(wish.max_uses));
    }
    if wish.ttl > TTL_MOST {
        return Err(WishError::Ttl);
    }
    if let Some(host) = &wish.host
        && (host.is_empty() || host.len() > 253 || host.contains(char::is_whitespace))
    {
        return Err(WishError::Host(host.clone()));
    }
    let id = hex::encode(rand::random::<[u8; 6]>());
    let secret = hex::encode(rand::random::<[u8; 32]>());
    let ttl = if wish.ttl == Millis::ZERO {
        DEFAULT_TTL
    } else {
        wish.ttl
    };
    let record = TokenRecord {
        id: TokenId::new(&id),
        secret_sha256: sha256_hex(secret.as_bytes()),
        pool: wish.pool,
        host: wish.host,
        max_uses: wish.max_uses.max(1),
        uses: Vec::new(),
        created: now,
        expires: now.after(ttl),
        by: by.to_owned(),
        revoked: false,
    };
    let text = format!("{}.{id}.{secret}.{ca_sha256}", limits::TOKEN_PREFIX);
    Ok((record, text))
}

/// Why a token does not admit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Another shape.
    #[error(
        "this is no join token: it was cut off or changed (`drover tokens create` makes a new one)"
    )]
    Malformed,
    /// For another coordinator.
    #[error("this join token is of another coordinator")]
    OtherCa,
    /// No such token, or a wrong secret: not told apart.
    #[error("this join token is not known here")]
    Unknown,
    /// Taken back.
    #[error("this join token was revoked")]
    Revoked,
    /// Too late.
    #[error("this join token has expired (`drover tokens create` makes a new one)")]
    Expired,
    /// Used by as many keys as it may be.
    #[error("this join token was used {0} times, which is all it allows")]
    Exhausted(u32),
    /// For another host.
    #[error("this join token is for host {wanted:?}, and this host says that it is {is:?}")]
    OtherHost {
        /// Named by the token.
        wanted: String,
        /// Of the facts.
        is: String,
    },
}

/// A token's text, taken apart. Has no Debug: it holds the secret.
pub struct Presented {
    /// Public part.
    pub id: TokenId,
    secret_sha256: String,
}

impl Presented {
    /// Takes a text apart.
    ///
    /// # Errors
    /// Malformed, or of another coordinator.
    pub fn parse(text: &str, ca_sha256: &str) -> Result<Self, TokenError> {
        let mut parts = text.trim().split('.');
        let (Some(limits::TOKEN_PREFIX), Some(id), Some(secret), Some(ca), None) = (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
        ) else {
            return Err(TokenError::Malformed);
        };
        let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let sound = !id.is_empty() && id.len() <= 64 && !secret.is_empty() && ca.len() == 64;
        if !sound || ![id, secret, ca].into_iter().all(is_hex) {
            return Err(TokenError::Malformed);
        }
        if !ca.eq_ignore_ascii_case(ca_sha256) {
            return Err(TokenError::OtherCa);
        }
        Ok(Self {
            id: TokenId::new(id),
            secret_sha256: sha256_hex(secret.as_bytes()),
        })
    }

    /// Judges a use by this key from this host.
    ///
    /// # Errors
    /// See [`TokenError`].
    pub fn judge(
        &self,
        record: Option<&TokenRecord>,
        key_sha256: &str,
        host: &str,
        now: UnixMs,
    ) -> Result<Use, TokenError> {
        // Hashes are compared, so the time it takes tells nothing about the secret.
        let record = record
            .filter(|record| record.secret_sha256 == self.secret_sha256)
            .ok_or(TokenError::Unknown)?;
        if record.revoked {
            return Err(TokenError::Revoked);
        }
        if now >= record.expires {
            return Err(TokenError::Expired);
        }
        if let Some(wanted) = &record.host
            && !wanted.eq_ignore_ascii_case(host)
        {
            return Err(TokenError::OtherHost {
                wanted: wanted.clone(),
                is: host.to_owned(),
            });
        }
        if let Some((_, node)) = record.uses.iter().find(|(key, _)| key == key_sha256) {
            return Ok(Use::Again(node.clone()));
        }
        if record.uses.len() >= usize::try_from(record.max_uses).unwrap_or(usize::MAX) {
            return Err(TokenError::Exhausted(record.max_uses));
        }
        Ok(Use::First)
    }
}

/// What a use is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// By a new key: a node is minted.
    First,
    /// By a key that used it before: the same node.
    Again(NodeId),
}

#[cfg(test)]
mod tests;
