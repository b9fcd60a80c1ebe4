//! The documents in which a cloud tells what it will do to an instance, and what they say. Pure.
//!
//! Read by `watch` in rounds, judged by `notices`. One that is cut short or not understood says nothing: the next round
//! decides (AG-20).

use serde::Deserialize;

/// The documents, in the order in which they are asked for.
pub const ALL: [Kind; 4] = [
    Kind::Spot,
    Kind::Rebalance,
    Kind::Lifecycle,
    Kind::Scheduled,
];

/// One document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The spot market takes the instance back.
    Spot,
    /// The spot market may take it back soon.
    Rebalance,
    /// What its group wants it to be.
    Lifecycle,
    /// Maintenance of its host.
    Scheduled,
}

impl Kind {
    /// Below /latest/.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Spot => "meta-data/spot/instance-action",
            Self::Rebalance => "meta-data/events/recommendations/rebalance",
            Self::Lifecycle => "meta-data/autoscaling/target-lifecycle-state",
            Self::Scheduled => "meta-data/events/maintenance/scheduled",
        }
    }
}

/// Something that a document tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The spot market takes the instance back.
    Spot {
        /// terminate, stop or hibernate.
        action: String,
        /// When, milliseconds since 1970.
        at_unix_ms: u64,
    },
    /// The spot market may take it back soon.
    Rebalance {
        /// When that was recommended, as the document writes it.
        noticed: String,
    },
    /// The group ends it.
    Terminated,
    /// Maintenance.
    Scheduled(Maintenance),
}

/// Maintenance of an instance's host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// AWS's id of it.
    pub id: String,
    /// instance-reboot, system-reboot, instance-stop, instance-retirement, system-maintenance.
    pub code: String,
    /// active, completed or canceled.
    pub state: String,
    /// Not before this, milliseconds since 1970; `None` when it cannot be read.
    pub not_before_unix_ms: Option<u64>,
    /// AWS's words.
    pub description: String,
}

/// What a document says; `None` when it makes no sense, which is not the same as saying nothing.
#[must_use]
pub fn read(kind: Kind, text: &str) -> Option<Vec<Said>> {
    match kind {
        Kind::Spot => {
            let told: Action = serde_json::from_str(text).ok()?;
            let at_unix_ms = rfc3339(&told.time)?;
            Some(vec![Said::Spot {
                action: told.action,
                at_unix_ms,
            }])
        }
        Kind::Rebalance => {
            let told: Recommendation = serde_json::from_str(text).ok()?;
            rfc3339(&told.notice_time)?;
            Some(vec![Said::Rebalance {
                noticed: told.notice_time,
            }])
        }
        // A word of the warm pool, or one that is not known, never ends a node.
        Kind::Lifecycle => Some(match text.trim() {
            "Terminated" => vec![Said::Terminated],
            _ => Vec::new(),
        }),
        Kind::Scheduled => {
            let told: Vec<Event> = serde_json::from_str(text).ok()?;
            let events = told.into_iter().map(|event| {
                Said::Scheduled(Maintenance {
                    not_before_unix_ms: rfc3339(&event.not_before).or(http_date(&event.not_before)),
                    id: event.event_id,
                    code: event.code,
                    state: event.state,
                    description: event.description,
                })
            });
            Some(events.collect())
        }
    }
}

#[derive(Deserialize)]
struct Action {
    action: String,
    time: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recommendation {
    notice_time: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    event_id: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    not_before: String,
    #[serde(default)]
    description: String,
}

fn rfc3339(text: &str) -> Option<u64> {
    let at: jiff::Timestamp = text.trim().parse().ok()?;
    u64::try_from(at.as_millisecond()).ok()
}

/// `21 Jan 2019 09:00:43 GMT`, as maintenance is dated.
fn http_date(text: &str) -> Option<u64> {
    let text = text.trim().strip_suffix(" GMT")?;
    let at = jiff::civil::DateTime::strptime("%d %b %Y %H:%M:%S", text).ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(at.timestamp().as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read() {
        let spot = |action: &str| {
            Some(vec![Said::Spot {
                action: action.to_owned(),
                at_unix_ms: 1_772_359_320_000,
            }])
        };
        let maintenance = |state: &str, at: Option<u64>| {
            Some(vec![Said::Scheduled(Maintenance {
                id: "instance-event-1".to_owned(),
                code: "system-reboot".to_owned(),
                state: state.to_owned(),
                not_before_unix_ms: at,
                description: "scheduled reboot".to_owned(),
            })])
        };
        let event = |state: &str, at: &str| {
            format!(
                r#"[{{"NotBefore":"{at}","Code":"system-reboot","Description":"scheduled reboot",
                "EventId":"instance-event-1","NotAfter":"21 Jan 2019 09:17:23 GMT","State":"{state}"}}]"#
            )
        };
        let time = r#""time":"2026-03-01T10:02:00Z""#;
        for (kind, text, want) in [
            (
                Kind::Spot,
                format!(r#"{{"action":"terminate",{time}}}"#),
                spot("terminate"),
            ),
            (
                Kind::Spot,
                format!(r#"{{"action":"hibernate",{time},"more":1}}"#),
                spot("hibernate"),
            ),
            (Kind::Spot, r#"{"action":"terminate","ti"#.into(), None),
            (
                Kind::Spot,
                r#"{"action":"terminate","time":"soon"}"#.into(),
                None,
            ),
            (Kind::Spot, String::new(), None),
            (
                Kind::Rebalance,
                r#"{"noticeTime":"2026-03-01T10:00:00Z"}"#.into(),
                Some(vec![Said::Rebalance {
                    noticed: "2026-03-01T10:00:00Z".to_owned(),
                }]),
            ),
            (Kind::Rebalance, "{}".into(), None),
            (
                Kind::Lifecycle,
                "Terminated\n".into(),
                Some(vec![Said::Terminated]),
            ),
            (Kind::Lifecycle, "Warmed:Terminated".into(), Some(vec![])),
            (Kind::Lifecycle, "Warmed:Running".into(), Some(vec![])),
            (Kind::Lifecycle, "InService".into(), Some(vec![])),
            (Kind::Scheduled, "[]".into(), Some(vec![])),
            (Kind::Scheduled, "[{".into(), None),
            (
                Kind::Scheduled,
                event("active", "21 Jan 2019 09:00:43 GMT"),
                maintenance("active", Some(1_548_061_243_000)),
            ),
            (
                Kind::Scheduled,
                event("canceled", "2019-01-21T09:00:43Z"),
                maintenance("canceled", Some(1_548_061_243_000)),
            ),
            (
                Kind::Scheduled,
                event("active", "some day"),
                maintenance("active", None),
            ),
        ] {
            assert_eq!(read(kind, &text), want, "{kind:?} {text}");
        }
    }
}
