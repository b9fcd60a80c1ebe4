//! Newtyped ids. They order and print as their text and are never cut up to learn something.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// From any text.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
    };
}

text_id!(
    /// One machine. Minted by the coordinator at enrolment, or `instance/<id>` and `host/<name>` for what no agent
    /// speaks for yet.
    NodeId
);
text_id!(
    /// A pool's name in the config.
    PoolId
);
text_id!(
    /// A region or a server room: nodes that share a network fate.
    SiteId
);
text_id!(
    /// `pool/instance type/zone/market`.
    OfferingId
);
text_id!(
    /// A capacity reservation or capacity block, as its provider names it.
    ReservationId
);
text_id!(
    /// A cloud instance or a static host, as its provider names it.
    InstanceId
);
text_id!(
    /// One ask for capacity.
    LaunchId
);
text_id!(
    /// One drain of one node.
    DrainId
);
text_id!(
    /// A capacity request.
    RequestName
);
text_id!(
    /// A join token (its public part).
    TokenId
);
text_id!(
    /// A gang's hold on partial capacity.
    HoldId
);
