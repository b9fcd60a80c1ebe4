//! Which of what the cloud's documents say is news. Pure.
//!
//! Called by `notices`, which keeps the book on disk. A document stays where it is for as long as it holds, so what was
//! told is known by what it says and never by when it was seen (AG-21).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::imds::documents::{self, Kind, Maintenance, Said};
use crate::session::outbox::Notice;

/// Ids kept of what is not said any more.
const KEPT: usize = 256;

/// What was told, for ever as far as it fits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Book {
    /// Id of each notice, with when it was first seen.
    told: BTreeMap<String, u64>,
}

/// A spot notice that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// Id of its notice.
    pub id: String,
    /// When the instance ends, milliseconds since 1970.
    pub at_unix_ms: u64,
}

/// What follows from the documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// News.
    pub notices: Vec<Notice>,
    /// The spot notice that holds now, news or not.
    pub spot: Option<Spot>,
}

impl Book {
    /// Judges the documents of an instance. Those that make no sense say nothing.
    pub fn judge(
        &mut self,
        instance: &str,
        documents: &BTreeMap<Kind, String>,
        now_unix_ms: u64,
    ) -> Told {
        let mut told = Told::default();
        let mut holds = BTreeSet::new();
        for (kind, text) in documents.iter().filter(|(_, text)| !text.is_empty()) {
            let Some(said) = documents::read(*kind, text) else {
                tracing::debug!(path = kind.path(), "metadata not understood: not acted on");
                continue;
            };
            for said in said {
                let Some(notice) = self.notice(instance, &said, now_unix_ms) else {
                    continue;
                };
                if let Said::Spot { at_unix_ms, .. } = said {
                    told.spot = Some(Spot {
                        id: notice.id.clone(),
                        at_unix_ms,
                    });
                }
                holds.insert(notice.id.clone());
                if !self.told.contains_key(&notice.id) {
                    self.told.insert(notice.id.clone(), now_unix_ms);
                    told.notices.push(notice);
                }
            }
        }
        self.forget(&holds);
        told
    }

    fn notice(&self, instance: &str, said: &Said, now_unix_ms: u64) -> Option<Notice> {
        let new = |kind: &str, what: &str, message: String| Notice {
            id: format!("{kind}/{instance}/{what}"),
            kind: kind.to_owned(),
            at_unix_ms: now_unix_ms,
            deadline_unix_ms: None,
            subject: instance.to_owned(),
            message,
            withdrawn: false,
        };
        match said {
            Said::Spot { action, at_unix_ms } => {
                let at = clock::text(*at_unix_ms);
                let message = format!("the spot market will {action} {instance} at {at}");
                Some(Notice {
                    deadline_unix_ms: Some(*at_unix_ms),
                    ..new("spot_interruption", &at, message)
                })
            }
            Said::Rebalance { noticed } => {
                let message =
                    format!("{instance} has a raised risk of spot interruption since {noticed}");
                Some(new("rebalance", noticed, message))
            }
            Said::Terminated => {
                let message = format!("its Auto Scaling group terminates {instance}");
                Some(new("lifecycle_terminating", "Terminated", message))
            }
            Said::Scheduled(event) => self.maintenance(instance, event, now_unix_ms),
        }
    }

    /// Maintenance that is over is told only if it was told before it was.
    fn maintenance(&self, instance: &str, event: &Maintenance, now_unix_ms: u64) -> Option<Notice> {
        let prefix = format!("scheduled_event/{instance}/{}/", event.id);
        let active = event.state == "active";
        let known = |(id, _): (&String, &u64)| id.starts_with(&prefix);
        if !active && !self.told.iter().any(known) {
            return None;
        }
        let at = event.not_before_unix_ms.map(clock::text);
        let when = at.clone().unwrap_or_else(|| "a time not told".to_owned());
        let what = if active {
            when.clone()
        } else {
            event.state.clone()
        };
        let says = if active {
            format!("{} of {instance} not before {when}", event.code)
        } else {
            format!("{} of {instance} is {}", event.code, event.state)
        };
        let message = match event.description.as_str() {
            "" => says,
            words => format!("{says}: {words}"),
        };
        Some(Notice {
            id: format!("{prefix}{what}"),
            kind: "scheduled_event".to_owned(),
            at_unix_ms: now_unix_ms,
            deadline_unix_ms: event.not_before_unix_ms.filter(|_| active),
            subject: event.id.clone(),
            message,
            withdrawn: !active,
        })
    }

    fn forget(&mut self, holds: &BTreeSet<String>) {
        while self.told.len() > KEPT.max(holds.len()) {
            let gone = self.told.iter().filter(|(id, _)| !holds.contains(*id));
            let Some(oldest) = gone.min_by_key(|(_, at)| **at).map(|(id, _)| id.clone()) else {
                return;
            };
            self.told.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
