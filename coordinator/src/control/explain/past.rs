//! Nodes that are gone: what events still tell of them, by host name and instance id too.
//!
//! Called by `explain`, and by commands that name the subject of events. Reads the events that are kept, decides nothing.

use super::Explanation;
use crate::control::commands::{CommandError, Commands};
use crate::control::events::time;
use crate::control::journal::EVENT_TAIL;
use std::collections::BTreeSet;

/// Events that are told of a node that is gone.
const TOLD: usize = 40;

impl Commands {
    /// The id of the one node that events call so, though no view knows it any more.
    ///
    /// # Errors
    /// Several nodes were called so.
    pub(in crate::control) async fn past_node(
        &self,
        name: &str,
    ) -> Result<Option<String>, CommandError> {
        let events = self.events(0, "", EVENT_TAIL).await;
        let called = events.iter().filter(|event| {
            let named = || event.names.iter().any(|one| one == name);
            event.kind == "node" && (event.subject == name || named())
        });
        let ids: BTreeSet<&String> = called.map(|event| &event.subject).collect();
        let mut ids = ids.into_iter();
        match (ids.next(), ids.next()) {
            (None, _) => Ok(None),
            (Some(id), None) => Ok(Some(id.clone())),
            (Some(first), Some(second)) => Err(CommandError::Ambiguous {
                name: name.to_owned(),
                ids: [first, second].into_iter().chain(ids).cloned().collect(),
            }),
        }
    }

    /// What is known of a node that is gone.
    pub(super) async fn explain_past(&self, id: &str) -> Explanation {
        let events = self.events(0, id, TOLD).await;
        let lines = events
            .iter()
            .map(|event| format!("{} {}", time(event.at), event.message));
        let ended = events.iter().rev().find(|event| {
            let what = event.what.as_str();
            matches!(what, "gone" | "vanished")
        });
        Explanation {
            kind: "node",
            name: id.to_owned(),
            summary: match ended {
                Some(event) => format!("is gone since {}: {}", time(event.at), event.message),
                None => "is no node any more".to_owned(),
            },
            lines: lines.collect(),
        }
    }
}
