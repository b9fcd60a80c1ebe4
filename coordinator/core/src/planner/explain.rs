//! Reasons as text: the only place. Used by the CLI, the dashboard, events and logs. `now` turns moments into words.

mod words;

use crate::model::{
    Action, Away, ClassOutcome, Emptying, PoolId, PoolOutcome, Reason, Resources, Stop, UnixMs,
};
use words::{
    amount, because, below, clock, failure_name, listed, mode_text, names, plural, source_name,
    span,
};

/// One reason in words a researcher understands.
#[must_use]
pub fn render(reason: &Reason, now: UnixMs) -> String {
    match reason {
        Reason::Demand {
            sources,
            units,
            minimum,
            spare,
            headroom,
        } => {
            let mut parts = Vec::new();
            if *units > 0 {
                parts.push(format!("{} for {}", plural(*units, "unit"), names(sources)));
            }
            if *minimum > 0 {
                parts.push(format!("{minimum} for the minimum"));
            }
            if *spare > 0 {
                parts.push(format!("{spare} as spare"));
            }
            if *headroom > 0 {
                parts.push(format!("{} of headroom", plural(*headroom, "unit")));
            }
            if parts.is_empty() {
                "for demand".to_owned()
            } else {
                parts.join(", ")
            }
        }
        Reason::Probe { failure } => format!("probe after {}", failure_name(*failure)),
        Reason::IdleSince { since } => format!(
            "idle since {} ({})",
            clock(*since, now),
            span(now.since(*since).0)
        ),
        Reason::Faulty { what } => format!("faulty: {what}"),
        Reason::DrainedEmpty => "drained and empty".to_owned(),
        Reason::Free => "free".to_owned(),
        Reason::Working { what } => format!("works: {}", listed(what)),
        Reason::UnderUsedOccupied { what } => format!("under-used, occupied: {}", listed(what)),
        Reason::WitnessMissing { why } => format!("counts as busy: {why}"),
        Reason::HeldBy { requests } => format!("held by {}", requests.join(", ")),
        Reason::IdleUntil { until } => format!("idle, may go at {}", clock(*until, now)),
        Reason::KeptForDemand { source } => format!("kept for {}", source_name(source)),
        Reason::KeptAsSpare => "kept as spare".to_owned(),
        Reason::AtMinimum => "at minimum".to_owned(),
        Reason::QuotaUsed { quota } => format!("removal quota of {quota} at once is used up"),
        Reason::CordonedByPerson { who } => format!("cordoned by {who}: neither used nor touched"),
        Reason::Unreachable => "unreachable: neither used nor touched".to_owned(),
        Reason::Foreign => "foreign: used, never touched".to_owned(),
        Reason::Draining { reason, who, empty } => {
            let state = if *empty { "drained" } else { "draining" };
            let whose = who
                .as_ref()
                .map_or_else(String::new, |w| format!(" for {w}"));
            format!("{state}{whose}{}", because(reason))
        }
        Reason::Coming { deadline } => format!("coming, by {}", clock(*deadline, now)),
        Reason::NotThere => "leaving, gone or off".to_owned(),
        Reason::ModeForbids { mode } => mode_text(*mode).to_owned(),
        Reason::Stopped { stop } => render_stop(stop),
        Reason::NotRemovable => "cannot be removed".to_owned(),
        Reason::AtMaximum { pool, max } => format!("{pool} is at its maximum of {max}"),
        Reason::OverBudget { what } => format!("the fleet's limit of {what} is reached"),
        Reason::OutOfCapacity {
            offering,
            failure,
            next_probe,
            message,
        } => {
            let said = if message.is_empty() {
                String::new()
            } else {
                format!(": {message}")
            };
            let until = if *next_probe > now {
                format!("until {}", clock(*next_probe, now))
            } else {
                "its probe is under way".to_owned()
            };
            format!(
                "{offering} is out of capacity, {until} ({}{said})",
                failure_name(*failure)
            )
        }
        Reason::PoolDiffers { pool, what } => format!("{pool} does not fit: {what}"),
        Reason::UnknownType {
            pool,
            instance_type,
        } => format!("{pool} skipped: unknown type {instance_type}"),
        Reason::NoPoolOffers { unit, wants } => {
            let more = if wants.is_empty() {
                String::new()
            } else {
                format!(" with {wants}")
            };
            format!("no pool offers {}{more}", amount(unit))
        }
        Reason::GangShort { min, could, place } => {
            let at = if place.is_empty() {
                "anywhere".to_owned()
            } else {
                format!("in {place}")
            };
            format!("needs {min} at once, {could} can be had {at} now")
        }
        Reason::GangNever { min, could, place } => {
            format!("needs {min} at once, at most {could} could ever be had in {place}")
        }
        Reason::KeptForGang { source, until } => format!(
            "kept for {} until {}",
            source_name(source),
            clock(*until, now)
        ),
        Reason::PoolUnread { pool, why } => {
            format!("pool {pool} cannot be read{}", because(why))
        }
        Reason::GangWaitsForGang { source } => format!(
            "waits for the gang of {}, which is first",
            source_name(source)
        ),
        Reason::UnsupportedRule { rule } => format!("has a rule that Drover does not know: {rule}"),
        Reason::BelowTarget { minimum, spare } => below(*minimum, *spare),
        Reason::Settled => "nothing to do".to_owned(),
        Reason::BadInput { what } => format!("ignored: {what}"),
        Reason::PoolStopped {
            pool,
            stop: Stop::Stale {
                may_grow: false,
                why,
            },
        } => format!("pool {pool} cannot be read{}", because(why)),
        Reason::NodesAway { pool, nodes, away } => nodes_away(pool, *nodes, away),
        Reason::UnitsComing {
            units,
            nodes,
            first,
        } => format!(
            "{} on {} {} coming{}",
            plural(*units, "unit"),
            plural(*nodes, "node"),
            if *nodes == 1 { "that is" } else { "that are" },
            expected(*first, now)
        ),
        Reason::NodesComing { nodes, first } => format!(
            "{} {} coming{}",
            plural(*nodes, "node"),
            are(*nodes),
            expected(*first, now)
        ),
        Reason::RemovalHeld { nodes, why } => format!(
            "removal of {} is held: {}",
            plural(*nodes, "node"),
            render(why, now)
        ),
        Reason::PoolStopped { pool, stop } => format!("{pool}: {}", render_stop(stop)),
        Reason::PoolMode { pool, mode } => format!("{pool}: {}", mode_text(*mode)),
        Reason::FitsNow { units, nodes } => format!(
            "{} on {} now",
            plural(*units, "unit"),
            plural(*nodes, "node")
        ),
        Reason::AskedFor { pool, nodes, ready } => {
            let when = if *ready > now {
                format!("in about {}", span(ready.0 - now.0))
            } else {
                "at any moment".to_owned()
            };
            format!("{pool} asked for {nodes}, first ready {when}")
        }
        Reason::GangHolds { units, until } => {
            format!(
                "{} held for it until {} at most",
                plural(*units, "unit"),
                clock(*until, now)
            )
        }
        Reason::HoldOver { since } => format!(
            "its hold since {} is over: the part it had is lent",
            clock(*since, now)
        ),
        Reason::WholeElsewhere { place } => format!("moves: it can be whole in {place}"),
        Reason::AsksElsewhere {
            source,
            units,
            place,
        } => format!(
            "{} of {} at once in {place}; what it has is kept until they have joined",
            plural(*units, "unit"),
            source_name(source)
        ),
        Reason::NotJoined => "launched, its agent has not enrolled".to_owned(),
        Reason::NotReady => "joined, not ready (its GPUs are not all there)".to_owned(),
        Reason::CheckDropped { invariant, why } => {
            format!("dropped by the check of {invariant}: {why}")
        }
        Reason::Unexplained => {
            "no reason known: a fault of the planner, please report the saved plan".to_owned()
        }
        Reason::More { count } => format!("and {count} more"),
        Reason::NoRoom { pool } => format!("{pool} has no room left and no more nodes to ask for"),
        Reason::Growing { nodes } => format!("asks for {}", plural(*nodes, "node")),
        Reason::Shrinking { nodes } => format!("begins to remove {}", plural(*nodes, "node")),
        Reason::NoPools => "the fleet has no pool of its own".to_owned(),
        Reason::NearRule { what } => format!("no place keeps its rules about other units: {what}"),
        Reason::HostPortTaken { port } => {
            format!("host port {port} is taken on every node that would do")
        }
        Reason::TeamBudget { team, what } => {
            format!("the limit of {what} of team {team} is reached")
        }
        Reason::DeadlineTooNear { ready, deadline } => format!(
            "must start by {}, and a new node would be ready at {}",
            clock(*deadline, now),
            clock(*ready, now)
        ),
        Reason::DeadlinePassed { deadline } => format!(
            "its deadline of {} is over: nothing is asked for",
            clock(*deadline, now)
        ),
        Reason::WaitsForEnd { node, until } => format!(
            "waits for {node}, whose work ends by {}",
            clock(*until, now)
        ),
        Reason::PatientUntil { until } => format!(
            "may wait: new nodes are asked for at {}",
            clock(*until, now)
        ),
        Reason::EffortLimit => {
            "not decided yet: the plan reached its limit of effort, the next one goes on".to_owned()
        }
        Reason::GangPart { min, got, most } => {
            format!("starts with {got} of {most} ({min} are enough), more join when there is room")
        }
        Reason::Headroom { name, units } => {
            format!("{} of headroom {name}", plural(*units, "unit"))
        }
        Reason::HeadroomShort { name, units, why } => format!(
            "headroom {name} is {} short: {}",
            plural(*units, "unit"),
            render(why, now)
        ),
        Reason::ExpiredAt { at } => {
            format!("too old since {}", clock(*at, now))
        }
        Reason::Surplus { since, spare } => format!(
            "idle since {} ({}), and the spare of {spare} is covered without it",
            clock(*since, now),
            span(now.since(*since).0)
        ),
        Reason::Replaceable { saves, by: None } => {
            format!("its work fits on nodes that have room: saves {saves}/h")
        }
        Reason::Replaceable {
            saves,
            by: Some(offering),
        } => {
            format!("its work fits on one new node of {offering}: saves {saves}/h")
        }
        Reason::DisruptionBudget { name, most, until } => {
            let until = until.map_or_else(String::new, |at| format!(" until {}", clock(at, now)));
            format!("disruption budget {name} allows {most} at once{until}")
        }
        Reason::KeptForHeadroom { name } => format!("kept for headroom {name}"),
        Reason::KeptForLikelyDemand { within } => format!(
            "kept: it is likely to be wanted again within {}, as long as a new node takes",
            span(within.0)
        ),
    }
}

fn are(n: u32) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

fn expected(first: Option<UnixMs>, now: UnixMs) -> String {
    first.map_or_else(String::new, |at| {
        format!(", first expected by {}", clock(at, now))
    })
}

/// "1 node of rack is cordoned by admin/root".
fn nodes_away(pool: &PoolId, n: u32, away: &Away) -> String {
    let is = are(n);
    let have = if n == 1 { "has" } else { "have" };
    let (what, state) = match away {
        Away::Cordoned { who } => ("node", format!("{is} cordoned by {who}")),
        Away::Unreachable => ("node", format!("{is} unreachable")),
        Away::Faulty => ("node", format!("{is} faulty")),
        Away::Draining { who: None } => ("node", format!("{is} draining or drained")),
        Away::Draining { who: Some(who) } => {
            ("node", format!("{is} draining or drained for {who}"))
        }
        Away::Off => ("host", format!("{is} off")),
        Away::NotJoined => ("host", format!("{have} not joined")),
    };
    format!("{} of {pool} {state}", plural(n, what))
}

/// What stops a pool.
#[must_use]
pub fn render_stop(stop: &Stop) -> String {
    match stop {
        Stop::Frozen { by, why } => format!("frozen by {by}{}", because(why)),
        Stop::Paused { by, why } => format!("paused by {by}{}", because(why)),
        Stop::NeverJoined { misses } => {
            format!("stopped: {misses} launches in a row never joined")
        }
        Stop::Failed { failure, why } => {
            format!("stopped: {}{}", failure_name(*failure), because(why))
        }
        Stop::SiteSilent => {
            "its whole site is silent: nothing is bought and nothing removed".to_owned()
        }
        Stop::Stale {
            may_grow: true,
            why,
        } => format!("no removal on old data{}", because(why)),
        Stop::Stale {
            may_grow: false,
            why,
        } => format!("could not be read{}", because(why)),
        Stop::NoRemoval { why } => format!("no removal{}", because(why)),
        Stop::NotOurs { why } => format!("not ours{}", because(why)),
    }
}

/// One action with its reason.
#[must_use]
pub fn render_action(action: &Action, now: UnixMs) -> String {
    match action {
        Action::Uncordon { node, reason } => format!("uncordon {node}: {}", render(reason, now)),
        Action::Launch {
            pool,
            offering,
            count,
            reason,
            ..
        } => {
            format!(
                "launch {count} in {pool} ({offering}): {}",
                render(reason, now)
            )
        }
        Action::Release { request, reason } => {
            format!("release {request}: {}", render(reason, now))
        }
        Action::Drain { node, reason, how } => {
            let also = match how {
                Emptying::Wait => "",
                Emptying::Evict => " and move its work",
            };
            format!("drain {node}{also}: {}", render(reason, now))
        }
        Action::Leave { node, reason } => format!("remove {node}: {}", render(reason, now)),
    }
}

/// A class on one line: "needs 8 GPUs; 2 of 3 placed; p3-usw2 is out of capacity until 14:05:00 UTC".
#[must_use]
pub fn class_summary(unit: &Resources, outcome: &ClassOutcome, now: UnixMs) -> String {
    let placed = outcome.fitted + outcome.coming + outcome.grown;
    let total = placed + outcome.unplaced;
    let mut parts = vec![format!("needs {}", amount(unit))];
    if total > 0 {
        parts.push(format!("{placed} of {total} placed"));
    }
    if outcome.impossible {
        parts.push("can never be served as it is".to_owned());
    }
    parts.extend(outcome.reasons.iter().map(|r| render(r, now)));
    parts.join("; ")
}

/// A pool on one line.
#[must_use]
pub fn pool_summary(outcome: &PoolOutcome, now: UnixMs) -> String {
    let all: Vec<String> = outcome.reasons.iter().map(|r| render(r, now)).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FailureKind;

    #[test]
    fn a_shortage_in_words_a_researcher_understands() {
        let reason = Reason::OutOfCapacity {
            offering: "p3-usw2".into(),
            failure: FailureKind::Shortage,
            next_probe: UnixMs(1_764_425_100_000),
            message: "no sufficient capacity".to_owned(),
        };
        assert_eq!(
            render(&reason, UnixMs(1_764_425_000_000)),
            "p3-usw2 is out of capacity, until 14:05:00 UTC (shortage: no sufficient capacity)"
        );
    }
}
