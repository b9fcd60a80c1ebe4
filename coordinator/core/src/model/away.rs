//! Why nodes that a pool has serve nobody: part of reasons. Data only.

use serde::{Deserialize, Serialize};

/// Why a node that a pool has serves nobody.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", deny_unknown_fields)]
pub enum Away {
    /// Cordoned by a person.
    Cordoned {
        /// Who.
        who: String,
    },
    /// Its agent is silent.
    Unreachable,
    /// Faulty.
    Faulty,
    /// Draining or drained, not by Drover's idle time.
    Draining {
        /// The person who wants it; absent: Drover itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        who: Option<String>,
    },
    /// A host without power that Drover cannot start.
    Off,
    /// A host of the list whose agent has never joined.
    NotJoined,
}
