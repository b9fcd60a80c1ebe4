//! Who may do what: roles of people.

use serde::{Deserialize, Serialize};

/// Role of a person or script; each may do all that the one before may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees everything.
    Viewer,
    /// Cordons, drains, requests, pauses, freezes.
    Operator,
    /// Everything.
    Admin,
}
