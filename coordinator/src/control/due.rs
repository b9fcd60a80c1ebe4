//! When something is due of itself: idle times that end, deadlines, probes, holds. Between these moments, and without news
//! from outside, another cycle would decide the same.
//!
//! Asked by the simulator, which jumps there. The loop of `run` has its interval and needs none of it. A moment too early
//! costs a cycle, a moment that is missed costs the caller's longest interval.

use super::cycle::Control;
use super::fleet::expires;
use crate::records::HookState;
use drover_core::model::{Busy, Millis, Reason, UnixMs};
use drover_core::rules::breaker::{APPROVAL_LIFE, FLEET_WINDOW, POOL_WINDOW};
use drover_core::rules::lives::held_until;

/// A source in doubt is believed again after this; see `guard`.
const CONFIRM: Millis = Millis(60_000);
/// A termination is called again after this; see `drains::leave`.
const CALL_AGAIN: Millis = Millis(20_000);
/// A drain is given up so long after its deadline; see `drains`.
const PATIENCE: Millis = Millis(60_001);

impl Control {
    /// The next such moment after `now`, by the last cycle.
    #[must_use]
    pub fn next_due(&self, now: UnixMs) -> Option<UnixMs> {
        let mono = self.clock.mono();
        // Monotonic moments on the wall clock.
        let on_wall = |at: Millis| UnixMs(now.0.saturating_add(at.0.saturating_sub(mono.0)));
        let mut due: Option<UnixMs> = None;
        let mut at = |moment: UnixMs| {
            if moment > now {
                due = Some(due.map_or(moment, |known: UnixMs| known.min(moment)));
            }
        };
        let ledger = &self.last_ledger;
        for (node, held) in &ledger.idle {
            let pool = ledger
                .nodes
                .get(node)
                .and_then(|node| node.value.pool.as_ref());
            if let Some(pool) = pool.and_then(|pool| self.config.pool(pool)) {
                at(held.value.since.after(pool.idle_after));
            }
        }
        for held in ledger.launches.values() {
            let launch = &held.value;
            at(launch.deadline);
            // Reaped at twice the deadline.
            at(launch.deadline.after(launch.deadline.since(launch.asked)));
        }
        for held in ledger.memory.values() {
            at(held.value.entry.next_probe);
        }
        let mut waits = false;
        for held in ledger.drains.values() {
            if let Some(deadline) = held.value.deadline {
                at(deadline.after(PATIENCE));
            }
            waits = true;
        }
        for held in ledger.notices.values() {
            let notice = &held.value;
            if let Some(pool) = self.config.pool(&notice.pool) {
                expires(notice, &pool.notices).into_iter().for_each(&mut at);
                let lead = pool.notices.maintenance_lead;
                let near = notice
                    .ends
                    .map(|ends| UnixMs(ends.0.saturating_sub(lead.0)));
                near.into_iter().for_each(&mut at);
            }
        }
        for held in ledger.hooks.values() {
            let hook = &held.value;
            hook.deadline.into_iter().for_each(&mut at);
            let half = hook.timeout.map(|timeout| Millis(timeout.0 / 2));
            if let Some(half) = half.filter(|_| hook.state == HookState::Waits) {
                at(hook.beat.unwrap_or(hook.since).after(half));
            }
        }
        for held in ledger.approvals.values() {
            if let Some((_, given)) = &held.value.approved {
                at(given.after(APPROVAL_LIFE));
            }
        }
        if let (true, Some(acts)) = (waits, &ledger.breaker) {
            for (done, _) in &acts.value.acts {
                at(done.after(POOL_WINDOW));
                at(done.after(FLEET_WINDOW));
            }
        }
        for held in ledger.requests.values() {
            let request = &held.value;
            if let (Some(served), Some(span)) = (request.served, request.spec.duration) {
                at(served.after(span));
            }
        }
        for (_, since) in self.seen.doubtful.values() {
            at(on_wall(since.plus(CONFIRM)));
        }
        if let Some(until) = self.seen.clocks.frozen_until {
            at(on_wall(until));
        }
        for (_, _, until) in self.seen.held_growth.values() {
            at(on_wall(*until));
        }
        for retry in self.seen.retry.values() {
            at(on_wall(*retry));
        }
        for called in self.seen.leave_called.values() {
            at(on_wall(called.plus(CALL_AGAIN)));
        }
        if let Some(next) = self.pools.next_read(mono) {
            at(on_wall(next));
        }
        if let Some(plan) = &self.views.borrow().plan {
            plan_dues(plan, &mut at);
        }
        due
    }
}

/// Moments that the last plan names, and those that its demand waits for.
fn plan_dues(
    plan: &(drover_core::model::PlanInput, drover_core::model::Planned),
    at: &mut impl FnMut(UnixMs),
) {
    let (input, planned) = plan;
    for class in &input.classes {
        if let Some(wait) = class.max_wait {
            at(class.submitted.after(wait));
        }
        if let Some(deadline) = class.deadline {
            at(deadline);
        }
        if let Some(gang) = &class.gang
            && let Some(since) = gang.holding_since
        {
            at(since.after(gang.hold));
        }
    }
    for pool in &input.pools {
        for limit in &pool.disruption {
            if let Some(until) = limit.until {
                at(until);
            }
        }
        if let Some(anticipate) = &pool.anticipate {
            if let Some(last) = input.learnt.demanded.get(&pool.id) {
                at(last.at.after(anticipate.spare_for));
            }
            let nodes = input.nodes.iter();
            for node in nodes.filter(|node| node.pool.as_ref() == Some(&pool.id)) {
                if let Busy::Idle { since } = node.busy
                    && let Some(until) = held_until(anticipate, since, node.last_ran)
                {
                    at(until);
                }
            }
        }
        if let Some(age) = pool.expire_after {
            let nodes = input.nodes.iter();
            for node in nodes.filter(|node| node.pool.as_ref() == Some(&pool.id)) {
                if let Some(launched) = node.launched {
                    at(launched.after(age));
                }
            }
        }
    }
    let classes = planned
        .report
        .classes
        .iter()
        .flat_map(|class| &class.reasons);
    let pools = planned.report.pools.iter().flat_map(|pool| &pool.reasons);
    let nodes = planned.report.nodes.iter().map(|node| &node.reason);
    for reason in classes.chain(pools).chain(nodes) {
        match reason {
            Reason::IdleUntil { until }
            | Reason::GangHolds { until, .. }
            | Reason::KeptForGang { until, .. }
            | Reason::OutOfCapacity {
                next_probe: until, ..
            } => at(*until),
            _ => {}
        }
    }
}
