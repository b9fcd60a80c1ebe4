//! Learning from the fleet's own work: how long it ran (seen when work that was on a node is gone), when demand took an
//! idle or a new node (said by the plan), and what units with GPUs ask for (`arrivals`). What comes of it is in the
//! planner's input.
//!
//! Called by the cycle around planning. What was learnt is durable, one record of at most some hundred kilobytes that is
//! written every ten minutes; what ran where, and how long the last work of an idle node ran, is rebuilt: a restart
//! forgets the latter, which costs at most a boot. Decides nothing.

use super::cycle::{Control, CycleError, Round};
use crate::ports::store::{CommitError, Guard, Op};
use crate::records::keys;
use drover_core::model::{
    Busy, Learnt, Millis, NodeId, NodeInput, PlanInput, Planned, Running, UnixMs,
};
use drover_core::rules::learn;
use drover_core::rules::lives::{self, Event};
use std::collections::{BTreeMap, BTreeSet};

/// What was learnt is written this often.
const WRITE: Millis = Millis::minutes(10);
/// A record may not be larger (see `ports::store`).
const MOST: usize = 256 << 10;

/// Units of one node by the GPUs of each and their start: how many.
type Work = BTreeMap<(u32, UnixMs), u32>;

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Learning {
    /// Absent: the record was not read yet.
    learnt: Option<Learnt>,
    /// What ran where at the last look.
    work: BTreeMap<NodeId, Work>,
    /// How long the work ran that ended last.
    ran: BTreeMap<NodeId, Millis>,
    /// Something was learnt since it was written.
    changed: bool,
    /// When it was written or read, monotonic.
    written: Millis,
}

/// Work of which the start is known.
fn work_of(workloads: &[Running]) -> Work {
    let mut work = Work::new();
    for running in workloads {
        if let Some(started) = running.started {
            let gpus = running.unit.gpus.max(u32::from(running.unit.gpu_milli > 0));
            let count = work.entry((gpus, started)).or_default();
            *count = count.saturating_add(running.count);
        }
    }
    work
}

/// Starts that agents tell are whole minutes and may waver by one.
fn neighbours(started: UnixMs) -> impl Iterator<Item = UnixMs> {
    let minute = Millis::minutes(1).0;
    let whole = started.0.is_multiple_of(minute);
    let both = [started.0.checked_sub(minute), started.0.checked_add(minute)];
    both.into_iter()
        .flatten()
        .filter(move |_| whole)
        .map(UnixMs)
}

/// What ran before and does not any more, in order of start: the GPUs of a unit, and how long it ran.
fn ended(before: &Work, after: &Work, now: UnixMs) -> Vec<(u32, Millis)> {
    let surplus = |of: &Work, over: &Work| -> Work {
        let more = of.iter().filter_map(|(key, count)| {
            let n = count.saturating_sub(over.get(key).copied().unwrap_or(0));
            (n > 0).then_some((*key, n))
        });
        more.collect()
    };
    let (left, mut came) = (surplus(before, after), surplus(after, before));
    let mut gone: Vec<(UnixMs, u32, u32)> = Vec::new();
    for ((gpus, started), mut count) in left {
        for other in neighbours(started) {
            if let Some(same) = came.get_mut(&(gpus, other)) {
                let n = count.min(*same);
                (count, *same) = (count - n, *same - n);
            }
        }
        gone.push((started, gpus, count));
    }
    gone.sort_unstable();
    gone.into_iter()
        .flat_map(|(started, gpus, count)| {
            std::iter::repeat_n((gpus, now.since(started)), count as usize)
        })
        .collect()
}

/// All that is said of its work is said now, and work that is gone ended by itself.
fn is_told(node: &NodeInput) -> bool {
    !matches!(node.busy, Busy::Unknown { .. }) && !node.unreachable && node.drain.is_none()
}

impl Learning {
    fn look(&mut self, nodes: &[NodeInput], now: UnixMs) {
        let there: BTreeSet<&NodeId> = nodes.iter().map(|node| &node.id).collect();
        self.work.retain(|id, _| there.contains(id));
        self.ran.retain(|id, _| there.contains(id));
        for node in nodes.iter().filter(|node| is_told(node)) {
            let work = work_of(&node.workloads);
            let before = self.work.get(&node.id);
            for (gpus, ran) in before.map_or_else(Vec::new, |before| ended(before, &work, now)) {
                if let Some(learnt) = &mut self.learnt {
                    lives::step(learnt, &Event::Ended { gpus, ran });
                    self.changed = true;
                }
                self.ran.insert(node.id.clone(), ran);
            }
            self.work.insert(node.id.clone(), work);
        }
    }
}

impl Control {
    /// Looks what has ended, and tells the planner what was learnt.
    pub(super) async fn recall_learnt(&mut self, round: &Round, input: &mut PlanInput) {
        if self.learning.learnt.is_none() {
            match self.journal.store().get(keys::LEARNT).await {
                Ok(entry) => {
                    let read = entry.map(|entry| serde_json::from_slice(&entry.value));
                    let read = read.transpose().unwrap_or_else(|error| {
                        tracing::warn!(key = keys::LEARNT, %error, "what was learnt cannot be understood: begun anew");
                        None
                    });
                    self.learning.learnt = Some(read.unwrap_or_default());
                    self.learning.written = round.mono;
                }
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "what was learnt cannot be read"
                ),
            }
        }
        // A source that could not be read, or shrank, may have lost work that still runs.
        if self.seen.doubtful.is_empty() {
            self.learning.look(&input.nodes, round.now);
        }
        for node in &mut input.nodes {
            if matches!(node.busy, Busy::Idle { .. }) {
                node.last_ran = self.learning.ran.get(&node.id).copied();
            }
        }
        if let Some(learnt) = &mut self.learning.learnt {
            let came = std::mem::take(&mut self.seen.arrivals.came);
            self.learning.changed |= !came.is_empty();
            learn::step(&mut learnt.asked, came.iter().map(|(class, n)| (class, *n)));
            input.learnt.asked.clone_from(&learnt.asked);
            input.learnt.lives.clone_from(&learnt.lives);
            input.learnt.demanded.clone_from(&learnt.demanded);
        }
    }

    /// Remembers the demand that took an idle or a new node.
    pub(super) fn note_demand(&mut self, planned: &Planned) {
        let Some(learnt) = &mut self.learning.learnt else {
            return;
        };
        let config = &self.config;
        lives::forget(learnt, |pool| config.pool(pool).is_some());
        for outcome in &planned.report.pools {
            let Some(demanded) = &outcome.demanded else {
                continue;
            };
            let known = learnt.demanded.get(&outcome.pool);
            if known.is_none_or(|known| known.at < demanded.at) {
                let (pool, demanded) = (outcome.pool.clone(), demanded.clone());
                lives::step(learnt, &Event::Demanded { pool, demanded });
                self.learning.changed = true;
            }
        }
    }

    /// Writes what was learnt, now and then.
    pub(super) async fn keep_learnt(&mut self, round: &Round) -> Result<(), CycleError> {
        let due = round.mono.0.saturating_sub(self.learning.written.0) >= WRITE.0;
        let (true, true, Some(learnt)) = (due, self.learning.changed, &self.learning.learnt) else {
            return Ok(());
        };
        let Ok(value) = serde_json::to_vec(learnt) else {
            return Ok(());
        };
        self.learning.written = round.mono;
        if value.len() > MOST {
            tracing::warn!(
                bytes = value.len(),
                "what was learnt is too much to be kept"
            );
            return Ok(());
        }
        let store = self.journal.store().clone();
        let none: [Guard; 0] = [];
        let op = Op::Put(keys::LEARNT.to_owned(), value);
        match store.commit(store.fence(), &none, &[op]).await {
            Ok(_) => self.learning.changed = false,
            Err(error @ CommitError::Fenced { .. }) => return Err(CycleError::Fenced(error)),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "what was learnt was not written"
            ),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(units: &[(u32, u64, u32)]) -> Work {
        let each = units.iter().map(|(gpus, at, n)| ((*gpus, UnixMs(*at)), *n));
        each.collect()
    }

    #[test]
    fn what_is_gone_has_ended() {
        let before = work(&[(1, 200, 3), (2, 100, 1), (8, 50, 1)]);
        let table = [
            (work(&[(1, 200, 3), (2, 100, 1), (8, 50, 1)]), vec![]),
            // One of three alike, and one that came anew.
            (
                work(&[(1, 200, 2), (2, 100, 1), (8, 50, 1), (4, 900, 1)]),
                vec![(1, 800)],
            ),
            // In order of start.
            (
                work(&[(8, 50, 1)]),
                vec![(2, 900), (1, 800), (1, 800), (1, 800)],
            ),
            // The same amount, started again.
            (
                work(&[(1, 200, 3), (2, 100, 1), (8, 990, 1)]),
                vec![(8, 950)],
            ),
        ];
        for (after, want) in table {
            let got = ended(&before, &after, UnixMs(1_000));
            let got: Vec<(u32, u64)> = got.into_iter().map(|(gpus, ran)| (gpus, ran.0)).collect();
            assert_eq!(got, want, "{after:?}");
        }
    }

    #[test]
    fn a_start_that_wavers_by_a_minute_is_the_same_start() {
        let table = [
            (120_000, 180_000, false),
            (120_000, 60_000, false),
            (120_000, 240_000, true),
            (120_000, 120_001, true),
            (120_500, 180_500, true),
        ];
        for (before, after, ends) in table {
            let got = ended(
                &work(&[(1, before, 1)]),
                &work(&[(1, after, 1)]),
                UnixMs(900_000),
            );
            assert_eq!(!got.is_empty(), ends, "{before} {after}");
        }
        // Of two one is the same, the other has ended.
        let got = ended(
            &work(&[(1, 60_000, 2)]),
            &work(&[(1, 120_000, 1)]),
            UnixMs(900_000),
        );
        assert_eq!(got, [(1, Millis(840_000))]);
    }

    fn node(busy: Busy, started: &[u64]) -> NodeInput {
        let running = |at: &u64| serde_json::json!({"count": 1, "unit": {"gpus": 2}, "started": at, "movable": false});
        let mut node: NodeInput = serde_json::from_value(serde_json::json!({
            "id": "n", "name": "n", "lifecycle": "ready", "allocatable": {"gpus": 8}, "used": {},
            "busy": {"state": "unknown", "why": ""}, "price": 1,
            "workloads": started.iter().map(running).collect::<Vec<_>>(),
        }))
        .expect("a node");
        node.busy = busy;
        node
    }

    fn working() -> Busy {
        Busy::Working {
            what: Vec::new(),
            movable: false,
        }
    }

    #[test]
    fn a_node_without_answers_teaches_nothing_until_it_answers() {
        let mut learning = Learning {
            learnt: Some(Learnt::default()),
            ..Learning::default()
        };
        let idle = Busy::Idle {
            since: UnixMs(70_000),
        };
        let doubt = Busy::Unknown {
            why: "stale".to_owned(),
        };
        learning.look(&[node(working(), &[1_000])], UnixMs(50_000));
        learning.look(&[node(doubt, &[])], UnixMs(60_000));
        assert!(!learning.changed && learning.ran.is_empty());
        learning.look(&[node(idle.clone(), &[])], UnixMs(71_000));
        let ran = learning.ran.get(&NodeId::from("n")).copied();
        assert_eq!(ran, Some(Millis(70_000)));
        let lives = &learning.learnt.as_ref().expect("learnt").lives;
        assert_eq!(lives[&2].last_s, [70]);
        // Once; and a node that is gone has not ended its work by itself.
        learning.look(&[node(idle, &[])], UnixMs(90_000));
        learning.look(&[node(working(), &[91_000])], UnixMs(92_000));
        learning.look(&[], UnixMs(99_000));
        learning.look(&[node(working(), &[])], UnixMs(100_000));
        let lives = &learning.learnt.as_ref().expect("learnt").lives;
        assert_eq!(lives[&2].last_s, [70]);
    }
}
