//! Who may do what: roles of people, and what each verb needs. Called by the service's gate and by the CLI's reference.

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

/// What a person can ask of the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Any look: nodes, pools, requests, demand, plans, reasons, events.
    Look,
    /// Cordon, uncordon, drain or cancel the drain of a node.
    ChangeNode,
    /// Create, extend, cancel a request.
    ChangeRequest,
    /// Pause or resume a pool.
    PausePool,
    /// Judge a group with the coordinator's credentials.
    Survey,
    /// Freeze a pool or the fleet: stopping is easy.
    Freeze,
    /// Thaw: starting again is not.
    Thaw,
    /// Change a pool's mode or limits.
    ChangePool,
    /// Let an act beyond the breaker go on.
    Approve,
    /// Tokens: make, list, revoke.
    Tokens,
    /// Certificates of people and nodes.
    Certificates,
    /// Make a backup.
    Backup,
    /// Read the audit log.
    Audit,
}

impl Role {
    /// All, from the least.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// As people write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl Verb {
    /// All, by the role that they need.
    pub const ALL: [Self; 13] = [
        Self::Look,
        Self::ChangeNode,
        Self::ChangeRequest,
        Self::PausePool,
        Self::Survey,
        Self::Freeze,
        Self::Thaw,
        Self::ChangePool,
        Self::Approve,
        Self::Tokens,
        Self::Certificates,
        Self::Backup,
        Self::Audit,
    ];

    /// What it is, for people.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::Look => {
                "look at the fleet: status, nodes, pools, requests, demand, plans, reasons, events"
            }
            Self::ChangeNode => "cordon, uncordon, drain a node, cancel its drain",
            Self::ChangeRequest => "create, extend, cancel a request",
            Self::PausePool => "pause and resume a pool",
            Self::Survey => "judge an Auto Scaling group (`pools doctor`)",
            Self::Freeze => "freeze a pool or the fleet",
            Self::Thaw => "thaw what is frozen",
            Self::ChangePool => "change a pool's mode and limits, mend and adopt groups",
            Self::Approve => "approve an act that waits for a person",
            Self::Tokens => "make, list and revoke join tokens",
            Self::Certificates => {
                "issue certificates of people, revoke those of nodes, readmit nodes"
            }
            Self::Backup => "make a backup",
            Self::Audit => "read the audit log",
        }
    }

    /// The least role that may.
    #[must_use]
    pub const fn needs(self) -> Role {
        match self {
            Self::Look => Role::Viewer,
            Self::ChangeNode
            | Self::ChangeRequest
            | Self::PausePool
            | Self::Survey
            | Self::Freeze => Role::Operator,
            Self::Thaw
            | Self::ChangePool
            | Self::Approve
            | Self::Tokens
            | Self::Certificates
            | Self::Backup
            | Self::Audit => Role::Admin,
        }
    }
}

impl Role {
    /// May someone with this role do that?
    #[must_use]
    pub fn may(self, verb: Verb) -> bool {
        self >= verb.needs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_what_the_one_before_may() {
        for (verb, viewer, operator) in [
            (Verb::Look, true, true),
            (Verb::ChangeNode, false, true),
            (Verb::ChangeRequest, false, true),
            (Verb::PausePool, false, true),
            (Verb::Survey, false, true),
            (Verb::Freeze, false, true),
            (Verb::Thaw, false, false),
            (Verb::ChangePool, false, false),
            (Verb::Approve, false, false),
            (Verb::Tokens, false, false),
            (Verb::Certificates, false, false),
            (Verb::Backup, false, false),
            (Verb::Audit, false, false),
        ] {
            assert!(Verb::ALL.contains(&verb), "{verb:?}");
            assert_eq!(Role::Viewer.may(verb), viewer, "{verb:?}");
            assert_eq!(Role::Operator.may(verb), operator, "{verb:?}");
            assert!(Role::Admin.may(verb), "{verb:?}");
        }
    }
}
