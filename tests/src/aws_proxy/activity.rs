//! Scaling activities: what the proxy keeps of them, and how they are written.
//!
//! Kept per group by everything that launches or ends. It makes no calls.

use std::collections::VecDeque;

use super::clock::{now_unix_ms, rfc3339};
use super::xml::Element;

/// Most activities that are kept of one group; the oldest go first. (AWS keeps six weeks.)
const MAX: usize = 3_000;

/// How an activity stands, in AWS's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    MidLaunch,
    MidEnd,
    Successful,
    Failed,
    Cancelled,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::MidLaunch => "MidLifecycleAction",
            Self::MidEnd => "MidTerminatingLifecycleAction",
            Self::Successful => "Successful",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }

    fn is_over(self) -> bool {
        matches!(self, Self::Successful | Self::Failed | Self::Cancelled)
    }
}

/// A scaling activity.
#[derive(Clone, Debug)]
pub(super) struct ActivityRow {
    pub(super) id: String,
    pub(super) began_unix_ms: u64,
    pub(super) ended_unix_ms: Option<u64>,
    pub(super) status: String,
    pub(super) description: String,
    pub(super) cause: String,
    pub(super) message: String,
    pub(super) details: String,
}

/// The activities of one group, newest last.
#[derive(Debug, Default)]
pub(super) struct Activities {
    rows: VecDeque<ActivityRow>,
    made: u64,
}

/// One to be kept.
pub(super) struct NewActivity<'a> {
    pub(super) status: Status,
    pub(super) description: &'a str,
    pub(super) cause: &'a str,
    pub(super) message: &'a str,
    /// Nothing: no zone is named.
    pub(super) zone: &'a str,
}

impl Activities {
    /// Keeps one and gives its id.
    pub(super) fn note(&mut self, new: &NewActivity<'_>) -> String {
        let details = if new.zone.is_empty() {
            "{}".to_owned()
        } else {
            format!("{{\"Availability Zone\":\"{}\"}}", new.zone)
        };
        let now = now_unix_ms();
        self.put(ActivityRow {
            id: String::new(),
            began_unix_ms: now,
            ended_unix_ms: new.status.is_over().then_some(now),
            status: new.status.word().to_owned(),
            description: new.description.to_owned(),
            cause: new.cause.to_owned(),
            message: new.message.to_owned(),
            details,
        })
    }

    /// Keeps one as it is, but for its id, which it gives.
    pub(super) fn put(&mut self, mut row: ActivityRow) -> String {
        self.made += 1;
        row.id = format!("{:08x}-0000-4000-8000-{:012x}", self.made, now_unix_ms());
        let id = row.id.clone();
        self.rows.push_back(row);
        if self.rows.len() > MAX {
            self.rows.pop_front();
        }
        id
    }

    /// Changes how one stands; a message of nothing leaves the old one.
    pub(super) fn turn(&mut self, id: &str, status: Status, message: &str) {
        let Some(row) = self.rows.iter_mut().rev().find(|r| r.id == id) else {
            return;
        };
        if row.ended_unix_ms.is_some() {
            return; // what is over stays as it ended
        }
        status.word().clone_into(&mut row.status);
        if status.is_over() {
            row.ended_unix_ms = Some(now_unix_ms());
        }
        if !message.is_empty() {
            message.clone_into(&mut row.message);
        }
    }

    /// Newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &ActivityRow> {
        self.rows.iter().rev()
    }

    pub(super) fn by_id(&self, id: &str) -> Option<&ActivityRow> {
        self.rows.iter().rev().find(|r| r.id == id)
    }
}

impl ActivityRow {
    /// As an element of that name.
    pub(super) fn element(&self, name: &str, group: &str) -> Element {
        let mut all = vec![
            Element::leaf("ActivityId", &self.id),
            Element::leaf("AutoScalingGroupName", group),
            Element::leaf("Description", &self.description),
            Element::leaf("Cause", &self.cause),
            Element::leaf("StartTime", rfc3339(self.began_unix_ms)),
            Element::leaf("StatusCode", &self.status),
            Element::leaf(
                "Progress",
                if self.ended_unix_ms.is_some() {
                    "100"
                } else {
                    "50"
                },
            ),
            Element::leaf("Details", &self.details),
        ];
        if let Some(ended) = self.ended_unix_ms {
            all.push(Element::leaf("EndTime", rfc3339(ended)));
        }
        if !self.message.is_empty() {
            all.push(Element::leaf("StatusMessage", &self.message));
        }
        Element::node(name, all)
    }
}
