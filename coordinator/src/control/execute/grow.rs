//! Launches of a plan: all intents are committed with their assignments, then all are asked at once (I4).

use super::assign::{add, offered, request_of};
use crate::config::PoolSource;
use crate::control::cycle::{Control, CycleError, Round};
use crate::control::deeds::Deed;
use crate::control::events::Happening;
use crate::control::input::hosts_off;
use crate::control::launches::{Answer, order, young};
use crate::control::parts::is_same_capacity;
use crate::control::replace::rooms;
use crate::control::requests::assigned;
use crate::control::tx::Tx;
use crate::records::{AssignmentTarget, LaunchRecord, LaunchState, RequestRecord};
use drover_core::model::{
    Action, InstanceId, LaunchId, Mode, NodeId, OfferingId, PlanInput, Planned, PoolId, Reason,
    RequestName, Run, Source, Stop, Target,
};
use drover_core::planner::render;
use std::collections::{BTreeMap, BTreeSet};

/// Most nodes of one ask (LaunchInstances takes no more).
const MOST: u32 = 100;

/// Most requests that an event of an ask names.
const NAMED: usize = 64;

/// One ask to be.
struct Wish<'p> {
    pool: &'p PoolId,
    offering: &'p OfferingId,
    count: u32,
    reason: &'p Reason,
    /// Runs on the nodes of this ask: (request, n-th node of it, units).
    runs: Vec<(RequestName, u32, u32)>,
    /// Nodes whose work is to have room there.
    rooms: BTreeSet<NodeId>,
}

impl Control {
    /// Commits the intents of all launches, asks concurrently, writes the answers down.
    pub(super) async fn grow(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        planned: &Planned,
    ) -> Result<(), CycleError> {
        let mut asked: Vec<LaunchId> = Vec::new();
        let answered = self.had_their_room(round, input, planned).await?;
        for (index, action) in planned.plan.actions.iter().enumerate() {
            let Action::Launch {
                pool,
                offering,
                count,
                for_demand,
                reason,
            } = action
            else {
                continue;
            };
            let had = u32::try_from(index).is_ok_and(|index| answered.contains(&index));
            if had || !self.may_grow(round, pool) {
                continue;
            }
            if *for_demand > 0 {
                self.tell_failover(round, (pool, offering), *for_demand);
            }
            let runs: Vec<&Run> = planned
                .plan
                .runs
                .iter()
                .filter(|run| {
                    matches!(run.target, Target::New { action, would: false, .. }
                        if usize::try_from(action) == Ok(index))
                })
                .collect();
            for first in (0..*count).step_by(MOST as usize) {
                let wish = Wish {
                    pool,
                    offering,
                    count: MOST.min(count - first),
                    reason,
                    runs: within(input, &runs, first, MOST),
                    rooms: rooms(input, runs.iter().copied()),
                };
                asked.extend(self.intend(round, input, &wish).await?);
            }
        }
        self.seen.fell.clear();
        for id in asked {
            let Some(launch) = round.ledger.launches.get(&id).map(|held| &held.value) else {
                continue;
            };
            let kind = self.config.pool(&launch.pool).map(|pool| pool.kind());
            let Some(actuator) = kind.and_then(|kind| self.pools.actuator(kind)) else {
                continue;
            };
            let order = order(launch);
            self.asks.begin(id, async move {
                Answer {
                    result: actuator.launch(&order).await,
                    again: false,
                }
            });
        }
        self.take_answers(round).await
    }

    /// Freeze, mode and stops once more.
    fn may_grow(&self, round: &Round, pool: &PoolId) -> bool {
        let Some(config) = self.config.pool(pool) else {
            return false;
        };
        let stopped = self.stops(round, config).iter().any(|stop| match stop {
            Stop::NoRemoval { .. } => false,
            Stop::Stale { may_grow, .. } => !may_grow,
            _ => true,
        });
        // Raised now, what is asked for would be given back together with the old wish: in the next cycle.
        let withdrawing = self.is_at_work(&Deed::Withdraw(pool.clone()));
        self.mode(round, pool) != Mode::Observe && !stopped && !withdrawing
    }

    fn tell_failover(&self, round: &mut Round, (pool, to): (&PoolId, &OfferingId), count: u32) {
        let mut all = self.seen.fell.iter();
        let elsewhere = all.find(|(_, from, _)| !is_same_capacity(round, pool, from, to));
        if let Some((fell, from, missing)) = elsewhere {
            round.events.push(Happening::Failover {
                pool: fell.clone(),
                from: from.clone(),
                to: to.clone(),
                count: count.min(*missing),
            });
        }
    }

    async fn intend(
        &mut self,
        round: &mut Round,
        input: &PlanInput,
        wish: &Wish<'_>,
    ) -> Result<Option<LaunchId>, CycleError> {
        let config = self.config.clone();
        let Some(pool) = config.pool(wish.pool) else {
            return Ok(None);
        };
        let id = fresh_id("launch", self.chance.next());
        let hosts: Vec<InstanceId> = match &pool.source {
            PoolSource::Static(_) => {
                let most = usize::try_from(wish.count).unwrap_or(usize::MAX);
                hosts_off(round, pool).into_iter().take(most).collect()
            }
            PoolSource::Asg(_) | PoolSource::Sim(_) => Vec::new(),
        };
        let count = match &pool.source {
            PoolSource::Static(_) => u32::try_from(hosts.len()).unwrap_or(0),
            PoolSource::Asg(_) | PoolSource::Sim(_) => wish.count,
        };
        if count == 0 {
            return Ok(None);
        }
        let reason = render(wish.reason, round.now);
        let launch = LaunchRecord {
            id: id.clone(),
            token: format!("{:016x}{:016x}", self.chance.next(), self.chance.next()),
            pool: wish.pool.clone(),
            offering: wish.offering.clone(),
            count,
            granted: None,
            way: None,
            shown: 0,
            instances: Vec::new(),
            appeared: 0,
            ambiguous: false,
            raised: None,
            before: match &pool.source {
                PoolSource::Static(_) => Vec::new(),
                PoolSource::Asg(_) | PoolSource::Sim(_) => young(round, wish.pool),
            },
            joined: Vec::new(),
            hosts,
            state: LaunchState::Intended,
            asked: round.now,
            deadline: round.now.after(pool.deadline_of(kind_of(input, wish))),
            probe: matches!(wish.reason, Reason::Probe { .. }),
            reason: reason.clone(),
            fence: self.journal.store().fence().0,
        };
        let whole = offered(input, &launch);
        let mut tx = Tx::new();
        tx.event(Happening::LaunchAsked {
            pool: wish.pool.clone(),
            offering: wish.offering.clone(),
            launch: id.clone(),
            count,
            reason: reason.clone(),
            requests: asked_for(wish),
        });
        tx.audit(
            "pool.launch",
            wish.pool.as_str(),
            format!("{count} of {}: {reason}", wish.offering),
        );
        tx.put_launch(&round.ledger, &id, launch);
        self.note_rooms(round, &mut tx, &wish.rooms, &id);
        let mut touched: BTreeMap<&RequestName, RequestRecord> = BTreeMap::new();
        for (name, place, units) in &wish.runs {
            let Some(held) = round.ledger.requests.get(name) else {
                continue;
            };
            let target = AssignmentTarget::Launch(id.clone(), *place);
            let request = touched.entry(name).or_insert_with(|| held.value.clone());
            if *place < count {
                add(request, target, *units, &whole);
            }
        }
        for (name, request) in touched {
            // What does not fit into this commit waits for the next plan, which finds the nodes coming.
            if tx.room() > 1 && assigned(&request) <= request.spec.units {
                tx.put_request(&round.ledger, name, request);
            }
        }
        if self.commit(round, tx).await?.is_none() {
            return Ok(None);
        }
        fail::fail_point!("launch.intended");
        Ok(Some(id))
    }
}

/// Requests that an ask is for; absent where that is not known.
fn asked_for(wish: &Wish<'_>) -> Option<Vec<RequestName>> {
    let mut names: BTreeSet<&RequestName> = wish.runs.iter().map(|(name, ..)| name).collect();
    if let Reason::Demand { sources, .. } = wish.reason {
        names.extend(sources.iter().filter_map(|source| match source {
            Source::Request(name) => Some(name),
            _ => None,
        }));
    }
    // The probe of a gang has no units of it.
    let known = !names.is_empty() || !matches!(wish.reason, Reason::Probe { .. });
    (known && names.len() <= NAMED).then(|| names.into_iter().cloned().collect())
}

/// The instance type that is asked for; empty when it is not known.
fn kind_of<'i>(input: &'i PlanInput, wish: &Wish<'_>) -> &'i str {
    let pool = input.pools.iter().find(|pool| pool.id == *wish.pool);
    pool.and_then(|pool| pool.offerings.iter().find(|of| of.id == *wish.offering))
        .map_or("", |offering| &offering.instance_type)
}

/// Runs of requests on the nodes `first..first + most` of an action, counted from `first`.
fn within(input: &PlanInput, runs: &[&Run], first: u32, most: u32) -> Vec<(RequestName, u32, u32)> {
    runs.iter()
        .filter_map(|run| {
            let Target::New { node, .. } = run.target else {
                return None;
            };
            let place = node.checked_sub(first).filter(|place| *place < most)?;
            Some((request_of(input, run)?.clone(), place, run.count))
        })
        .collect()
}

/// A name that was never used: for launches.
fn fresh_id(kind: &str, draw: u64) -> LaunchId {
    LaunchId(format!("{kind}-{draw:016x}"))
}
