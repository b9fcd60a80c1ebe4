//! What a cloud told of a node, and whether that keeps work off it.
//!
//! Called by the join. Pure: a notice that has expired is none, whether or not its record is still there.

use crate::config::{NoticePolicy, OnMaintenance, OnRebalance};
use crate::control::events::time;
use crate::control::ledger::Ledger;
use crate::records::{NoticeKind, NoticeRecord};
use drover_core::model::{InstanceId, Millis, NodeId, UnixMs};
use std::collections::BTreeMap;

/// An instance that is still there so long after its spot market should have taken it is one like any other.
pub(in crate::control) const SPOT_STALE: Millis = Millis::minutes(30);
/// Maintenance is over so long after it began, unless it is told otherwise.
pub(in crate::control) const MAINTENANCE_STALE: Millis = Millis::minutes(12 * 60);

/// Why a node must not get work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// In words.
    pub why: String,
    /// Its cloud ends it and nobody can change that; else it may, and the node goes once empty.
    pub doomed: bool,
}

/// Notices by whom they are about.
pub(super) struct Told<'a> {
    instances: BTreeMap<&'a InstanceId, Vec<&'a NoticeRecord>>,
    nodes: BTreeMap<&'a NodeId, Vec<&'a NoticeRecord>>,
}

impl<'a> Told<'a> {
    pub(super) fn new(ledger: &'a Ledger) -> Self {
        let mut told = Self {
            instances: BTreeMap::new(),
            nodes: BTreeMap::new(),
        };
        for held in ledger.notices.values() {
            let record = &held.value;
            match &record.instance {
                Some(instance) => told.instances.entry(instance).or_default().push(record),
                None => told.nodes.entry(&record.node).or_default().push(record),
            }
        }
        told
    }

    /// Of a node, by kind.
    pub(super) fn of(&self, node: &NodeId, instance: Option<&InstanceId>) -> Vec<NoticeRecord> {
        let by_instance = instance.and_then(|instance| self.instances.get(instance));
        let mut found: Vec<NoticeRecord> = by_instance
            .into_iter()
            .chain(self.nodes.get(node))
            .flatten()
            .map(|record| (*record).clone())
            .collect();
        found.sort_by_key(|record| record.kind);
        found
    }
}

/// When a notice stops counting; `None`: it does not by itself.
pub(in crate::control) fn expires(record: &NoticeRecord, policy: &NoticePolicy) -> Option<UnixMs> {
    match record.kind {
        NoticeKind::SpotInterruption => Some(record.ends.unwrap_or(record.at).after(SPOT_STALE)),
        NoticeKind::LifecycleTerminating => None,
        NoticeKind::Rebalance => Some(record.at.after(policy.rebalance_expires)),
        NoticeKind::ScheduledEvent | NoticeKind::BlockEnd => {
            Some(record.ends.unwrap_or(record.at).after(MAINTENANCE_STALE))
        }
    }
}

/// Why the node must not get work.
pub(super) fn why(
    notices: &[NoticeRecord],
    policy: Option<&NoticePolicy>,
    now: UnixMs,
) -> Option<Taken> {
    let policy = policy?;
    let holds = |record: &&NoticeRecord| expires(record, policy).is_none_or(|at| now < at);
    notices.iter().filter(holds).find_map(|record| {
        let at =
            |ends: Option<UnixMs>| ends.map_or_else(String::new, |at| format!(" at {}", time(at)));
        let taken = |doomed, why: String| Some(Taken { why, doomed });
        match record.kind {
            NoticeKind::SpotInterruption => {
                taken(true, format!("spot interruption{}", at(record.ends)))
            }
            NoticeKind::LifecycleTerminating => taken(true, "its group terminates it".to_owned()),
            NoticeKind::Rebalance if policy.rebalance == OnRebalance::Ignore => None,
            NoticeKind::Rebalance => {
                let ends = time(record.at.after(policy.rebalance_expires));
                taken(
                    false,
                    format!("rebalance recommendation, counts until {ends}"),
                )
            }
            NoticeKind::ScheduledEvent => {
                let near = now.after(policy.maintenance_lead) >= record.ends?;
                if !near || policy.maintenance != OnMaintenance::Drain {
                    return None;
                }
                taken(false, format!("maintenance of its host{}", at(record.ends)))
            }
            NoticeKind::BlockEnd => {
                let (lead, ends) = (policy.block_lead, record.ends?);
                if now.after(lead).after(lead) < ends {
                    return None;
                }
                let why = format!("AWS ends its capacity block's nodes{}", at(record.ends));
                taken(now.after(lead) >= ends, why)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Room;
    use drover_core::model::PoolId;

    const NOW: UnixMs = UnixMs(1_800_000_000_000);

    fn record(kind: NoticeKind, ends: Option<Millis>) -> NoticeRecord {
        NoticeRecord {
            kind,
            pool: PoolId::from("a"),
            node: NodeId::from("n-1"),
            instance: None,
            event: String::new(),
            at: NOW,
            ends: ends.map(|span| NOW.after(span)),
            by: "agent".to_owned(),
            message: String::new(),
            drain: None,
            room: Room::None,
        }
    }

    #[test]
    fn notices_keep_work_off_by_policy_and_expire() {
        use NoticeKind::{LifecycleTerminating, Rebalance, ScheduledEvent, SpotInterruption};
        let quiet = NoticePolicy {
            rebalance: OnRebalance::Ignore,
            ..NoticePolicy::default()
        };
        let usual = NoticePolicy::default();
        let drains = NoticePolicy {
            maintenance: OnMaintenance::Drain,
            ..NoticePolicy::default()
        };
        let days = |days: u64| Some(Millis::minutes(60 * 24 * days));
        let minutes = |minutes: u64| Some(Millis::minutes(minutes));
        for (what, kind, ends, policy, later, taken) in [
            ("spot", SpotInterruption, minutes(2), &quiet, 1, true),
            (
                "spot, just over",
                SpotInterruption,
                minutes(2),
                &quiet,
                3,
                true,
            ),
            (
                "spot, long over",
                SpotInterruption,
                minutes(2),
                &quiet,
                33,
                false,
            ),
            ("group", LifecycleTerminating, None, &quiet, 60 * 40, true),
            ("rebalance, ignored", Rebalance, None, &quiet, 1, false),
            ("rebalance", Rebalance, None, &usual, 1, true),
            ("rebalance, expired", Rebalance, None, &usual, 30, false),
            (
                "maintenance, shown",
                ScheduledEvent,
                minutes(60),
                &usual,
                1,
                false,
            ),
            (
                "maintenance, far",
                ScheduledEvent,
                days(3),
                &drains,
                1,
                false,
            ),
            (
                "maintenance, near",
                ScheduledEvent,
                days(3),
                &drains,
                60 * 49,
                true,
            ),
            (
                "maintenance, over",
                ScheduledEvent,
                minutes(1),
                &drains,
                60 * 13,
                false,
            ),
            (
                "maintenance, no time told",
                ScheduledEvent,
                None,
                &drains,
                1,
                false,
            ),
        ] {
            let now = NOW.after(Millis::minutes(later));
            let found = why(&[record(kind, ends)], Some(policy), now);
            assert_eq!(found.is_some(), taken, "{what}: {found:?}");
        }
        assert_eq!(
            why(&[record(SpotInterruption, None)], None, NOW),
            None,
            "in no pool"
        );
    }
}
