//! Mishaps of a simulation (DESIGN 9): `[[simulate.fault]]`. What the cloud itself does wrong stands in its groups' `trouble`
//! and `api` tables.
//!
//! Read by `config`, made by `seeds`, played by `engine::mishaps`. Data only.

use crate::config;
use drover_config::Section;
use drover_core::model::Millis;
use std::time::Duration;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Every agent of a site falls silent, and comes back.
    SiteSilent,
    /// Some agents fall silent, and come back.
    NodesSilent,
    /// Some machines die with what runs on them.
    NodesLost,
    /// A person cordons some nodes, and uncordons them later.
    Cordon,
    /// The source of demand cannot be read.
    SourceFails,
    /// It says that nothing waits and nothing runs.
    SourceEmpty,
    /// It says what it said before.
    SourceStale,
    /// The wall clock jumps ahead, and back at the end.
    ClockJump,
    /// The coordinator dies after one of its next durable writes, and starts again.
    Crash,
    /// The store is lost and comes back as it was at the beginning of the mishap, frozen, until a person thaws it.
    Restore,
    /// A second coordinator opens the store; the first one goes on until it notices.
    SecondCoordinator,
    /// Somebody else starts instances in a group.
    ForeignLaunch,
}

impl Kind {
    /// As files name them.
    pub const ALL: [(&'static str, Self); 12] = [
        ("site-silent", Self::SiteSilent),
        ("nodes-silent", Self::NodesSilent),
        ("nodes-lost", Self::NodesLost),
        ("cordon", Self::Cordon),
        ("source-fails", Self::SourceFails),
        ("source-empty", Self::SourceEmpty),
        ("source-stale", Self::SourceStale),
        ("clock-jump", Self::ClockJump),
        ("crash", Self::Crash),
        ("restore", Self::Restore),
        ("second-coordinator", Self::SecondCoordinator),
        ("foreign-launch", Self::ForeignLaunch),
    ];

    /// As files name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }
}

/// One mishap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: Kind,
    /// When it begins, since the start.
    pub at: Millis,
    /// How long it lasts.
    pub lasts: Millis,
    /// The pool whose site, nodes or group it is about; empty: any.
    pub pool: String,
    /// Nodes, instances, or (a crash) durable writes until then.
    pub count: u32,
}

const YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Reads one `[[simulate.fault]]`.
pub(super) fn read(section: &Section<'_>, pools: &[&str]) -> Option<Fault> {
    let kind = section.choice("kind", &Kind::ALL);
    let at = section.duration("at", Duration::ZERO..=YEARS, "2h");
    let lasts = section.duration("lasts", Duration::ZERO..=YEARS, "10m");
    let pool = section.loose_text("pool", "write pool = \"NAME\" of one of this file's pools");
    let count = section.count("count", 1..=10_000);
    if kind.is_none() && !section.blames(&section.key("kind")) {
        let names = Kind::ALL.map(|(name, _)| name).join(", ");
        section.report(
            section.offset(),
            "kind",
            "is missing",
            &format!("write one of {names}"),
        );
    }
    if at.is_none() && !section.blames(&section.key("at")) {
        section.report(section.offset(), "at", "is missing", "write at = \"2h\"");
    }
    let pool = pool.unwrap_or_default();
    if !pool.is_empty() && !pools.contains(&pool.as_str()) {
        let fix = format!("write one of {}", pools.join(", "));
        let message = format!("names {pool:?}, which is no pool of this file");
        section.report(section.offset(), "pool", &message, &fix);
    }
    section.finish();
    Some(Fault {
        kind: kind?.value,
        at: config::millis(at?),
        lasts: lasts.map_or(Millis::minutes(10), config::millis),
        pool,
        count: count.map_or(1, |at| at.value),
    })
}
