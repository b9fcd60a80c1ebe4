//! Why a node, pool or request is as it is (I9), in a sentence and lines.
//!
//! Called by the admin service. Reads the snapshot, decides nothing.

mod asked;
mod once;
mod past;

use super::commands::{CommandError, Commands};
use super::events::time;
use super::journal::EVENT_TAIL;
use super::view::{
    AssignmentView, FleetView, NodeView, PoolView, RequestView, UnitState, foreign_clock, units,
};
use crate::records::{DrainStep, Then};
use drover_core::model::{Lifecycle, PoolKind, UnixMs};

/// An explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// node, pool, request.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// One sentence.
    pub summary: String,
    /// More.
    pub lines: Vec<String>,
}

impl Explanation {
    /// The same words once: what the summary says is no line, and long words of a provider are not said again.
    fn once(mut self) -> Self {
        let mut said = vec![std::mem::take(&mut self.summary)];
        said.append(&mut self.lines);
        let mut said = once::once(said);
        self.lines = said.split_off(1);
        self.summary = said.pop().unwrap_or_default();
        self
    }
}

impl Commands {
    /// Explains what a name means: a request, a pool, a node, a node that is gone, in this order. Of requests and pools it tells what was asked
    /// where and what came of it.
    ///
    /// # Errors
    /// Nothing or several nodes carry that name.
    pub async fn explain(&self, subject: &str) -> Result<Explanation, CommandError> {
        let view = self.view();
        if let Some(request) = view.request(subject) {
            let mut said = explain_request(request);
            let events = self.events(0, "", EVENT_TAIL).await;
            let own = asked::its_own(&view, request, &events);
            let acts = asked::acts(events.iter().filter(|event| own(event)));
            said.lines.extend(acts.iter().map(asked::Act::told));
            let waits = request.units_missing > 0;
            let pools = view.pools.iter().filter(|pool| {
                let name = pool.name.as_str();
                let mut of_it = acts.iter().filter(|act| act.pool == name);
                of_it.any(|act| waits || act.failed)
            });
            let told = pools.flat_map(|pool| asked::remembered(pool, view.at));
            said.lines.extend(told);
            return Ok(said.once());
        }
        if let Some(pool) = view.pool(subject) {
            let mut said = explain_pool(pool, view.at);
            let events = self.events(0, pool.name.as_str(), LOOK_BACK).await;
            let acts = asked::acts(events.iter());
            said.lines.extend(acts.iter().map(asked::Act::told));
            return Ok(said.once());
        }
        let id = match self.node_id(subject) {
            Ok(id) => id,
            Err(CommandError::NotFound { name, .. }) => {
                return match self.past_node(subject).await? {
                    Some(id) => Ok(self.explain_past(&id).await),
                    None => Err(CommandError::NotFound {
                        kind: "request, pool or node",
                        name,
                    }),
                };
            }
            Err(other) => return Err(other),
        };
        let node = view.nodes.iter().find(|node| node.id == id);
        node.map(|node| explain_node(&view, node))
            .ok_or_else(|| CommandError::NotFound {
                kind: "node",
                name: subject.to_owned(),
            })
    }
}

/// Events of a pool that are looked through for acts of asking.
const LOOK_BACK: usize = 200;

fn explain_request(request: &RequestView) -> Explanation {
    let record = &request.record;
    let word = request.shown.word();
    let mut lines = vec![format!(
        "{} of {} on ready nodes, {} coming, {} unavailable, {} without a node",
        request.units_ready,
        units(record.spec.units),
        request.units_coming,
        request.units_unavailable,
        request.units_missing
    )];
    // The first is the summary.
    lines.extend(request.reasons.iter().skip(1).cloned());
    lines.extend(places(&request.assignments));
    Explanation {
        kind: "request",
        name: record.name.0.clone(),
        summary: match request.reasons.first() {
            Some(first) => format!("{word}: {first}"),
            None => word.to_owned(),
        },
        lines,
    }
}

/// As a node that only a request keeps is worded.
const HELD: &str = "held by request ";

/// As the planner words a pool that has nothing to do.
const SETTLED: &str = "nothing to do";

/// "4 units on host-7, which is ready": one line for each node, and for each launch, however many of its nodes hold some.
fn places(assignments: &[AssignmentView]) -> Vec<String> {
    let mut told: Vec<(String, u32, String)> = Vec::new();
    for found in assignments {
        let how = match &found.state {
            UnitState::Ready if !found.kept.is_empty() => "is ready and takes no new work",
            UnitState::Ready => "is ready",
            UnitState::Coming(why) | UnitState::Unavailable(why) => why,
        };
        let mut known = told.iter_mut();
        let alike = known.find(|(place, _, said)| *place == found.node_name && said == how);
        match alike.filter(|_| found.node.is_none()) {
            Some((_, count, _)) => *count = count.saturating_add(found.units),
            None => told.push((found.node_name.clone(), found.units, how.to_owned())),
        }
    }
    let lines = told.into_iter();
    lines
        .map(|(place, count, how)| format!("{} on {place}, which {how}", units(count)))
        .collect()
}

fn explain_pool(pool: &PoolView, now: UnixMs) -> Explanation {
    let mode = super::events::mode_word(pool.mode);
    let agentless = pool.unmanaged.saturating_sub(pool.missed);
    let agentless = (agentless > 0).then(|| {
        let noun = if agentless == 1 {
            "instance"
        } else {
            "instances"
        };
        format!("{agentless} {noun} without an agent")
    });
    let noun = if pool.nodes == 1 { "node" } else { "nodes" };
    let besides = agentless
        .as_ref()
        .map_or_else(String::new, |told| format!(" and {told}"));
    let mut lines = vec![format!(
        "mode {mode}; {} {noun} ({} ready, {} idle, {} draining, {} unreachable){besides}, {} coming, {} to {} allowed{}",
        pool.nodes,
        pool.ready,
        pool.idle,
        pool.draining,
        pool.unreachable,
        pool.coming,
        pool.min,
        pool.max,
        pool.config_max.map_or_else(String::new, |most| format!(
            " (the group's own maximum, below the {most} of its config)"
        ))
    )];
    let steered = pool.offerings.iter().any(|(of, _)| !of.zone.is_empty());
    if pool.kind == Some(PoolKind::Asg) && steered {
        lines.push("asks by LaunchInstances, in a zone that Drover chooses".to_owned());
    }
    let stops = || pool.stopped.iter().chain(&pool.paused);
    let frozen = pool
        .frozen
        .iter()
        .map(|freeze| match freeze.reason.as_str() {
            "" => format!("frozen by {}", freeze.by),
            why => format!("frozen by {}: {why}", freeze.by),
        });
    let mut frozen: Vec<String> = frozen.collect();
    lines.append(&mut frozen.clone());
    lines.extend(stops().cloned());
    let unread = pool
        .read_error
        .as_ref()
        .map(|error| format!("cannot be read: {error}"));
    // The hold says the same in fewer words.
    let holds = pool.holds.iter().filter(|hold| {
        let same = hold.starts_with("could not be read");
        unread.is_none() || !same
    });
    let holds: Vec<&String> = holds.collect();
    lines.extend(unread.clone());
    lines.extend(holds.iter().copied().cloned());
    lines.extend(pool.reasons.iter().cloned());
    lines.extend(asked::remembered(pool, now));
    lines.extend(pool.remarks.iter().cloned());
    // The worst first: without a reading nothing else is sure.
    frozen.extend(stops().chain(&unread).cloned());
    frozen.extend(pool.reasons.iter().chain(holds).cloned());
    let summary = frozen.into_iter().next();
    let summary = summary.filter(|said| said != SETTLED).or(agentless);
    Explanation {
        kind: "pool",
        name: pool.name.0.clone(),
        summary: summary.unwrap_or_else(|| SETTLED.to_owned()),
        lines,
    }
}

/// What becomes of units that cannot be used on a node, or what a person can do for them.
fn moves_on(node: &NodeView, state: &UnitState) -> Option<String> {
    let UnitState::Unavailable(_) = state else {
        return None;
    };
    let name = &node.name;
    match &node.drain {
        Some(drain) if drain.then == Then::Leave => Some(
            "they stay while work of the request may run here: placed anew once the node is drained"
                .to_owned(),
        ),
        Some(_) => None,
        None if node.lifecycle == Lifecycle::Joined => {
            Some("they are placed anew if it is not ready in its time".to_owned())
        }
        None if node.faulty.is_some() || node.unreachable => Some(format!(
            "they stay since work of the request may still run here: `drover nodes drain {name} --then terminate` places them anew"
        )),
        None => None,
    }
}

fn explain_node(view: &FleetView, node: &NodeView) -> Explanation {
    let mut lines = Vec::new();
    let mut summary = node.reason.clone();
    if let Some(drain) = &node.drain {
        let status = node
            .agent
            .as_ref()
            .and_then(|agent| agent.order_status.as_ref())
            .filter(|status| status.drain_id == drain.id.as_str());
        let blockers: Vec<String> = status
            .map(|status| {
                status
                    .blockers
                    .iter()
                    .map(|found| found.message.clone())
                    .collect()
            })
            .unwrap_or_default();
        let policy = super::events::policy_word(drain.policy);
        lines.push(format!(
            "{} drains it since {} (policy {policy}): {}",
            drain.by,
            time(drain.since),
            drain.reason
        ));
        summary = match (drain.step, blockers.first()) {
            (DrainStep::Drained, _) if node.reason.starts_with("drained; ") => node.reason.clone(),
            (DrainStep::Drained, _) => "drained: empty, confirmed".to_owned(),
            (DrainStep::Leaving, _) => "leaves".to_owned(),
            (_, Some(first)) => format!("draining, waits: {first}"),
            (DrainStep::Requested, None) => "draining: the agent has not confirmed yet".to_owned(),
            (DrainStep::Running, None) => "draining".to_owned(),
        };
        lines.extend(blockers);
    }
    if let Some((by, why)) = &node.cordon {
        lines.push(format!("cordoned by {by}: {why}"));
    }
    if let Some(what) = &node.faulty {
        lines.push(format!("faulty: {what}"));
    }
    if node.unreachable {
        lines.push("its agent is silent: neither supply nor removed".to_owned());
    }
    lines.extend(node.agent.as_deref().and_then(foreign_clock));
    // What a request holds is told below; the node may be empty all the same.
    let works = node.busy.iter().filter(|what| !what.starts_with(HELD));
    lines.extend(works.map(|what| format!("busy: {what}")));
    for held in &node.assignments {
        lines.push(format!(
            "holds {} of request {}",
            units(held.units),
            held.request
        ));
        lines.extend(moves_on(node, &held.state));
    }
    if let Some(since) = node.idle_since {
        lines.push(format!("idle since {}", time(since)));
    }
    if let Some(pool) = node.pool.as_ref().and_then(|pool| view.pool(pool.as_str())) {
        let stops = pool.stopped.iter().chain(&pool.paused).chain(&pool.holds);
        lines.extend(stops.map(|stop| format!("pool {}: {stop}", pool.name)));
    }
    Explanation {
        kind: "node",
        name: node.name.clone(),
        summary,
        lines,
    }
    .once()
}
