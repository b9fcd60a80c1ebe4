//! How a pool keeps idle nodes for demand that is likely, as plain data. Decides nothing.

use super::quantities::Millis;
use serde::{Deserialize, Serialize};

/// Idle nodes are kept, and one is asked for, for demand that is likely. Lengthens the pool's idle time, never shortens it.
///
/// The times of `default` were measured on the Philly traces with boots of five minutes: less cost and less waiting than
/// an idle time of 30 minutes for all, on each of the three clusters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anticipate {
    /// How long a node is kept after its last work, by how long that ran: the first that is longer counts. Who stops
    /// after a minute often comes again; who ran for a day does not. No more idle nodes are held so than nodes of the
    /// pool work.
    pub holds: Vec<Hold>,
    /// So long after demand that took an idle or a new node, the pool keeps `spare` idle nodes and asks for what is missing.
    pub spare_for: Millis,
    /// How many.
    pub spare: u32,
}

/// After work that ran shorter than this, the node is kept for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Ran shorter than this.
    pub ran_under: Millis,
    /// Kept for so long after it ended.
    pub keep: Millis,
}

impl Default for Anticipate {
    fn default() -> Self {
        let hold = |ran_under, keep| Hold {
            ran_under: Millis::minutes(ran_under),
            keep: Millis::minutes(keep),
        };
        Self {
            holds: vec![hold(10, 120), hold(240, 30)],
            spare_for: Millis::minutes(15),
            spare: 1,
        }
    }
}
