//! A join token's text: `drover-join-v1.<token id>.<secret>.<SHA-256 of the CA's DER, hex>`.
//!
//! Called by the config (to check it) and by enrolment. Debug never shows the secret.

use std::fmt;
use std::str::FromStr;

use drover_proto::limits;

/// SHA-256 of a CA certificate's DER.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CaHash(pub [u8; 32]);

impl CaHash {
    /// The hash of a certificate in DER.
    #[must_use]
    pub fn of(der: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl fmt::Display for CaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for CaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CaHash({self})")
    }
}

/// A join token as given to an operator.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    text: String,
    id: String,
    ca: CaHash,
}

impl JoinToken {
    /// The whole text, secret included: goes only into `Enrol`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The token's id: may be logged.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The CA that the coordinator must prove.
    #[must_use]
    pub fn ca(&self) -> CaHash {
        self.ca
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({})", self.id)
    }
}

/// Why a text is no join token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Another shape.
    #[error("is no join token: it begins with drover-join-v1. and has four parts between dots")]
    Shape,
    /// Another version.
    #[error("is a join token of another version than drover-join-v1")]
    Version,
    /// Cut off or mistyped at its end.
    #[error("ends in something that is not 64 hex digits: it was cut off or changed")]
    CaHash,
}

impl FromStr for JoinToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let parts: Vec<&str> = text.split('.').collect();
        let [prefix, id, secret, hash] = parts.as_slice() else {
            return Err(TokenError::Shape);
        };
        if *prefix != limits::TOKEN_PREFIX {
            return Err(if prefix.starts_with("drover-join-") {
                TokenError::Version
            } else {
                TokenError::Shape
            });
        }
        if id.is_empty() || secret.is_empty() || text.len() > limits::TEXT_BYTES {
            return Err(TokenError::Shape);
        }
        let mut ca = [0; 32];
        hex::decode_to_slice(hash, &mut ca).map_err(|_| TokenError::CaHash)?;
        Ok(Self {
            text: text.to_owned(),
            id: (*id).to_owned(),
            ca: CaHash(ca),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_token_and_names_what_is_wrong() {
        let hash = "ab".repeat(32);
        let good = format!("drover-join-v1.t1.s3cret.{hash}\n");
        let token: JoinToken = good.parse().unwrap();
        assert_eq!(token.id(), "t1");
        assert_eq!(token.ca(), CaHash([0xab; 32]));
        assert!(!format!("{token:?}").contains("s3cret"));
        for (text, error) in [
            (String::new(), TokenError::Shape),
            (format!("drover-join-v1.t1.{hash}"), TokenError::Shape),
            (format!("drover-join-v1..x.{hash}"), TokenError::Shape),
            (format!("other.t1.x.{hash}"), TokenError::Shape),
            (format!("drover-join-v2.t1.x.{hash}"), TokenError::Version),
            ("drover-join-v1.t1.x.abab".to_owned(), TokenError::CaHash),
        ] {
            assert_eq!(text.parse::<JoinToken>(), Err(error), "{text}");
        }
    }
}
