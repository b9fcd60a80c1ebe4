//! Adoptions: for a time what Drover would have done to a pool is kept beside what happened to it.
//!
//! Called by the cycle before anything is done, and once its view is published. Only looks: a pool in `observe` is planned for as any other, and what
//! the plan would do is counted here. Written once a minute at most; a crash costs that minute, and time in which nobody
//! looked is not counted.

mod tally;

use super::commands::group_of;
use super::cycle::{Control, CycleError, Round};
use super::events::Happening;
use super::tx::Tx;
use super::view::{FleetView, NodeView};
use crate::ports::store::Revision;
use crate::records::AdoptionRecord;
use drover_core::model::{Action, Lifecycle, Millis, Mode, NodeId, Planned, PoolId};
use drover_core::planner::render_action;
use std::collections::BTreeMap;
use tally::{Before, Look, Removal};

/// Records are written this often.
const WRITE_EVERY: Millis = Millis::minutes(1);
/// A longer time between two looks is not counted: nobody knows what was in it.
const BLIND: Millis = Millis::minutes(2);

/// What the cycle holds of one adoption.
#[derive(Debug)]
pub(super) struct Watch {
    record: AdoptionRecord,
    revision: Revision,
    before: Before,
    /// Last look, monotonic.
    looked: Millis,
    /// Last written, monotonic.
    written: Millis,
}

impl Control {
    /// Takes one look at every pool that is being adopted.
    pub(super) async fn watch_adoptions(
        &mut self,
        round: &mut Round,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        let open: Vec<(PoolId, Revision, AdoptionRecord)> = round
            .ledger
            .adoptions
            .iter()
            .filter(|(_, held)| held.value.left.is_none() && !held.value.is_complete())
            .map(|(pool, held)| (pool.clone(), held.revision, held.value.clone()))
            .collect();
        let watches = &mut self.seen.adoptions;
        watches.retain(|pool, watch| {
            let held = open.iter().find(|(id, ..)| id == pool);
            held.is_some_and(|(_, revision, _)| *revision == watch.revision)
        });
        if open.is_empty() {
            return Ok(());
        }
        let view = self.views.borrow().clone();
        let mono = round.mono;
        let mut due = Vec::new();
        for (pool, revision, record) in open {
            let Some(look) = look(&view, planned, round, &pool) else {
                // What is not read is not watched.
                self.seen.adoptions.remove(&pool);
                continue;
            };
            let watch = self.seen.adoptions.entry(pool.clone()).or_insert(Watch {
                record,
                revision,
                before: Before::default(),
                looked: mono,
                written: mono,
            });
            let passed = mono.minus(std::mem::replace(&mut watch.looked, mono));
            let passed = if passed > BLIND { Millis::ZERO } else { passed };
            tally::add(&mut watch.record, &mut watch.before, look, passed);
            if mono.minus(watch.written) >= WRITE_EVERY || watch.record.is_complete() {
                due.push(pool);
            }
        }
        for pool in due {
            self.write_adoption(round, pool).await?;
        }
        Ok(())
    }

    /// A group that was adopted before it was a pool may have become one under another name: it is in `observe` before
    /// anything is done to it.
    pub(super) async fn rename_adoptions(&self, round: &mut Round) -> Result<(), CycleError> {
        let mut moves = Vec::new();
        for (id, held) in &round.ledger.adoptions {
            if self.config.pool(id).is_some() {
                continue;
            }
            let record = &held.value;
            let now = self.config.pools.iter().find(|pool| {
                group_of(pool).is_some_and(|group| {
                    group.group == record.group
                        && group.region == record.region
                        && group.role == record.role
                })
            });
            if let Some(pool) = now
                && !round.ledger.adoptions.contains_key(&pool.name)
            {
                moves.push((id.clone(), pool.name.clone(), record.clone()));
            }
        }
        for (from, to, record) in moves {
            let mut tx = Tx::new();
            let mut settings = round.ledger.pool(&to).0;
            if record.left.is_none() {
                settings.mode = Some(Mode::Observe);
                tx.put_pool(&round.ledger, &to, settings);
            }
            tx.delete_adoption(&round.ledger, &from);
            tx.put_adoption(&round.ledger, &to, record);
            self.commit(round, tx).await?;
        }
        Ok(())
    }

    async fn write_adoption(&mut self, round: &mut Round, pool: PoolId) -> Result<(), CycleError> {
        let Some(watch) = self.seen.adoptions.get_mut(&pool) else {
            return Ok(());
        };
        watch.written = round.mono;
        let record = watch.record.clone();
        let mut tx = Tx::new();
        if record.is_complete() {
            tx.event(Happening::PoolWatched {
                pool: pool.clone(),
                span: record.span,
            });
        }
        tx.put_adoption(&round.ledger, &pool, record);
        match self.commit(round, tx).await? {
            Some(revision) => {
                if let Some(watch) = self.seen.adoptions.get_mut(&pool) {
                    watch.revision = revision;
                }
            }
            // Somebody changed it meanwhile, or it could not be written: begun from what the store says.
            None => {
                self.seen.adoptions.remove(&pool);
            }
        }
        Ok(())
    }
}

/// What there is of a pool now; nothing when it is not in `observe`, not in the config, or not read.
fn look(view: &FleetView, planned: &Planned, round: &Round, pool: &PoolId) -> Option<Look> {
    let shown = view.pool(pool.as_str())?;
    let fresh = shown.read_error.is_none() && round.readings.contains_key(pool);
    if shown.mode != Mode::Observe || shown.kind.is_none() || !fresh {
        return None;
    }
    let there = |node: &&NodeView| {
        node.pool.as_ref() == Some(pool)
            && node.instance.is_some()
            && !matches!(node.lifecycle, Lifecycle::Gone | Lifecycle::Off)
    };
    let mut nodes: BTreeMap<&NodeId, &NodeView> = BTreeMap::new();
    for node in view.nodes.iter().filter(there) {
        nodes.insert(&node.id, node);
    }
    let mut look = Look {
        now: round.now,
        members: nodes
            .values()
            .filter_map(|node| node.instance.clone())
            .collect(),
        ..Look::default()
    };
    for node in nodes.values() {
        look.blind += u32::from(node.joined.is_none());
        if node.idle_since.is_some() {
            look.idle += 1;
            look.idle_gpus += u64::from(node.gpus.unwrap_or(0));
            look.idle_price = look.idle_price.plus(node.price.unwrap_or_default());
        }
    }
    for action in &planned.plan.would {
        match action {
            Action::Launch {
                pool: of, count, ..
            } if of == pool => {
                look.ask += count;
                look.asks.push(render_action(action, round.now));
            }
            Action::Drain { node, .. } | Action::Leave { node, .. } => {
                if let Some(found) = nodes.get(node) {
                    let removal = Removal {
                        gpus: found.gpus.unwrap_or(0),
                        price: found.price.unwrap_or_default(),
                        what: render_action(action, round.now),
                    };
                    look.removals.insert(node.clone(), removal);
                }
            }
            _ => {}
        }
    }
    Some(look)
}
