//! What clouds and agents tell of nodes (spot, rebalance, maintenance, termination by the group, XID, shutdown): taken
//! durably, then acted on by level.
//!
//! Called by the cycle. A notice is settled after it is durable; what it asks for is decided anew in each cycle from its
//! record (`follow`), so that a mode, a freeze or a restart loses nothing. Instances in no pool of ours are nobody's (I5).

mod ends;
mod follow;
mod news;
mod queues;

use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::fleet::FleetNode;
use super::tx::Tx;
use crate::ports::link::AgentNotice;
use crate::records::{NoticeKind, NoticeRecord, notice_key};
use drover_core::model::{Millis, UnixMs};

pub(super) use follow::{begin, move_requests};

/// Two words on the same thing, from agent and queue, differ by so much at most.
const ALIKE: Millis = Millis::minutes(5);
/// A recommendation that comes again within this time is the same one.
const RECOMMENDED_AGAIN: Millis = Millis::minutes(10);

/// One word on one node, whoever said it.
pub(super) struct Word {
    pub(super) kind: NoticeKind,
    pub(super) event: String,
    pub(super) ends: Option<UnixMs>,
    pub(super) withdrawn: bool,
    pub(super) by: String,
    pub(super) message: String,
}

impl Control {
    /// Takes notices durably and settles them, then does what those that hold ask for.
    pub(super) async fn take_notices(&mut self, round: &mut Round) -> Result<(), CycleError> {
        let mut taken = Vec::new();
        for AgentNotice { node: id, notice } in self.link.notices() {
            let mut tx = Tx::new();
            let kind = NoticeKind::parse(&notice.kind);
            let node = round.node(&id).filter(|node| node.pool.is_some()).cloned();
            match (kind, node) {
                (Some(kind), Some(node)) => {
                    let ends = Some(notice.deadline_unix_ms).filter(|at| *at != 0);
                    let word = Word {
                        kind,
                        event: notice.subject.clone(),
                        ends: ends.map(UnixMs),
                        withdrawn: notice.withdrawn,
                        by: "agent".to_owned(),
                        message: notice.message.clone(),
                    };
                    self.hear(round, &mut tx, &node, word);
                }
                _ => tx.event(Happening::Notice {
                    node: id.clone(),
                    kind: notice.kind.clone(),
                    message: notice.message.clone(),
                }),
            }
            if tx.is_empty() || self.commit(round, tx).await?.is_some() {
                taken.push((id, notice.id));
            }
        }
        if !taken.is_empty() {
            self.link.settle_notices(&taken);
        }
        self.take_queues(round).await?;
        self.hear_ends(round).await?;
        self.rejoin(round);
        self.follow_notices(round).await
    }

    /// Adds to a change what a word makes of the notices of a node. Nothing when it is known already.
    pub(super) fn hear(&self, round: &Round, tx: &mut Tx, node: &FleetNode, word: Word) {
        let Some(pool) = node.pool.clone() else {
            return;
        };
        let subject = node
            .instance_id
            .as_ref()
            .map_or(node.id.as_str(), |instance| instance.as_str());
        let key = notice_key(subject, word.kind);
        let known = round.ledger.notices.get(&key).map(|held| &held.value);
        if word.withdrawn {
            let same = |known: &&NoticeRecord| known.event == word.event;
            if known.filter(same).is_some() {
                tx.delete_notice(&round.ledger, &key);
                tx.event(Happening::NoticeOver {
                    node: node.id.clone(),
                    kind: word.kind.word(),
                    why: word.message,
                });
            }
            return;
        }
        if known.is_some_and(|known| is_known(known, &word, round.now)) {
            return;
        }
        tx.event(Happening::Notice {
            node: node.id.clone(),
            kind: word.kind.word().to_owned(),
            message: word.message.clone(),
        });
        let record = NoticeRecord {
            kind: word.kind,
            pool,
            node: node.id.clone(),
            instance: node.instance_id.clone(),
            event: word.event,
            at: round.now,
            ends: word.ends,
            by: word.by,
            message: word.message,
            drain: known.and_then(|known| known.drain.clone()),
            room: known.map(|known| known.room.clone()).unwrap_or_default(),
        };
        tx.put_notice(&round.ledger, &key, record);
    }
}

/// What is told is what stands there already.
fn is_known(known: &NoticeRecord, word: &Word, now: UnixMs) -> bool {
    let near = |a: UnixMs, b: UnixMs| a.since(b).max(b.since(a)) <= ALIKE;
    match word.kind {
        NoticeKind::SpotInterruption => match (known.ends, word.ends) {
            (Some(a), Some(b)) => near(a, b),
            (_, None) => true,
            (None, Some(_)) => false,
        },
        NoticeKind::LifecycleTerminating => true,
        NoticeKind::Rebalance => now.since(known.at) <= RECOMMENDED_AGAIN,
        // The first that comes counts, unless it is moved.
        NoticeKind::ScheduledEvent => match (known.ends, word.ends) {
            (Some(a), Some(b)) if known.event == word.event => a == b,
            (Some(a), Some(b)) => a <= b || near(a, b),
            (_, None) => true,
            (None, Some(_)) => false,
        },
        // It may be extended.
        NoticeKind::BlockEnd => known.ends == word.ends,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Room;
    use drover_core::model::{NodeId, PoolId};

    const NOW: UnixMs = UnixMs(1_800_000_000_000);

    #[test]
    fn what_agent_and_queue_both_tell_is_one_notice() {
        use NoticeKind::{LifecycleTerminating, Rebalance, ScheduledEvent, SpotInterruption};
        let at = |seconds: u64| Some(NOW.after(Millis::seconds(seconds)));
        for (what, kind, before, after, same) in [
            (
                "spot, a second off",
                SpotInterruption,
                ("", at(120)),
                ("", at(121)),
                true,
            ),
            (
                "spot, no time",
                SpotInterruption,
                ("", at(120)),
                ("", None),
                true,
            ),
            (
                "spot, now a time",
                SpotInterruption,
                ("", None),
                ("", at(120)),
                false,
            ),
            (
                "spot, years later",
                SpotInterruption,
                ("", at(120)),
                ("", at(9_000)),
                false,
            ),
            (
                "terminated again",
                LifecycleTerminating,
                ("", None),
                ("hook", None),
                true,
            ),
            ("recommended again", Rebalance, ("", None), ("", None), true),
            (
                "maintenance, told by both",
                ScheduledEvent,
                ("e-1", at(9_000)),
                ("arn", at(9_060)),
                true,
            ),
            (
                "maintenance, moved",
                ScheduledEvent,
                ("e-1", at(9_000)),
                ("e-1", at(9_060)),
                false,
            ),
            (
                "maintenance, a sooner one",
                ScheduledEvent,
                ("e-1", at(9_000)),
                ("e-2", at(60)),
                false,
            ),
            (
                "maintenance, a later one",
                ScheduledEvent,
                ("e-1", at(60)),
                ("e-2", at(9_000)),
                true,
            ),
        ] {
            let known = NoticeRecord {
                kind,
                pool: PoolId::from("a"),
                node: NodeId::from("n"),
                instance: None,
                event: before.0.to_owned(),
                at: NOW,
                ends: before.1,
                by: "agent".to_owned(),
                message: String::new(),
                drain: None,
                room: Room::None,
            };
            let word = Word {
                kind,
                event: after.0.to_owned(),
                ends: after.1,
                withdrawn: false,
                by: "queue".to_owned(),
                message: String::new(),
            };
            assert_eq!(
                is_known(&known, &word, NOW.after(Millis::minutes(1))),
                same,
                "{what}"
            );
        }
    }
}
