//! Every reason in words. Used by `explain`, which is the one place that words anything.

use super::stops::{nodes_away, render_stop};
use super::words::{
    amount, are, because, below, clock, failed, failure_name, lacks, listed, mode_text, names,
    needs, plural, source_name, span,
};
use crate::model::{Reason, Stop, UnixMs};

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
        Reason::NotRemovable => "stays: its pool has no way to remove nodes".to_owned(),
        Reason::AtMaximum {
            pool,
            max,
            config: None,
        } => format!("{pool} is at its maximum of {max}"),
        Reason::AtMaximum {
            pool,
            max,
            config: Some(most),
        } => {
            format!(
                "{pool} is at the maximum of {max} of its group, below the {most} of its config: raise the group's"
            )
        }
        Reason::OverBudget { what } => format!("the fleet's limit of {what} is reached"),
        Reason::OutOfCapacity {
            offering,
            failure,
            next_probe,
            message,
        } => {
            let until = if *next_probe > now {
                format!(" until {}", clock(*next_probe, now))
            } else {
                ", its probe is under way".to_owned()
            };
            let (what, kind) = failed(*failure);
            format!("{offering} {what}{until} ({kind}{})", because(message))
        }
        Reason::PoolDiffers { pool, what } => format!("{pool} does not fit: {what}"),
        Reason::PoolTooSmall { pool, wanted, has } => {
            format!("{pool} is too small: {}", lacks(wanted, has))
        }
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
        Reason::Needs {
            unit,
            whole_node,
            gang,
            locality,
        } => needs(unit, *whole_node, *gang, *locality),
        Reason::NoPools => "the fleet has no pool of its own".to_owned(),
        Reason::Undecided => {
            "not looked at yet: the plan reached its limit of work, the next one goes on".to_owned()
        }
        Reason::NearRule { what } => format!("its rules about other units allow no more: {what}"),
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
            let enough = are(*min);
            format!(
                "starts with {got} of {most} ({min} {enough} enough), more join when there is room"
            )
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

fn expected(first: Option<UnixMs>, now: UnixMs) -> String {
    first.map_or_else(String::new, |at| {
        format!(", first expected by {}", clock(at, now))
    })
}
