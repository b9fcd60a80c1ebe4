//! What is amiss on the stage now: silent agents, cordons of people, a source in trouble, a wall clock that is ahead.
//!
//! Set by `engine::mishaps`, asked by the ports.

use super::Stage;
use crate::sim::fault::Kind;
use drover_core::model::{Millis, UnixMs};
use std::collections::{BTreeMap, BTreeSet};

/// All of it.
#[derive(Debug, Default)]
pub(in crate::sim) struct Mishaps {
    /// Nodes whose agents are silent, and until when.
    pub(in crate::sim) silent: BTreeMap<usize, UnixMs>,
    /// Nodes that a person has cordoned.
    pub(in crate::sim) cordoned: BTreeSet<usize>,
    /// Trouble of the source.
    pub(in crate::sim) source: Option<Kind>,
    /// So much is the wall clock ahead of the stage.
    pub(in crate::sim) ahead: Millis,
}

impl Stage {
    /// What the coordinator's wall clock shows.
    pub(in crate::sim) fn wall(&self) -> UnixMs {
        self.now.after(self.mishaps.ahead)
    }

    /// Nobody hears its agent.
    pub(in crate::sim) fn is_silent(&self, node: usize) -> bool {
        let until = self.mishaps.silent.get(&node);
        until.is_some_and(|until| self.now < *until)
    }
}
