//! The words of every reason, as a researcher reads them: whole sentences, right numbers, no names of types.

use crate::fleet::{START, size};
use drover_core::model::{
    Away, Class, FailureKind, Locality, MicroUsd, Millis, Mode, Reason, Resources, Source, Stop,
    UnixMs,
};
use drover_core::planner::render;
use std::collections::BTreeSet;

const NOW: UnixMs = UnixMs(START + 14 * 3_600_000);

/// Minutes from now.
fn at(minutes: u64) -> UnixMs {
    NOW.after(Millis::minutes(minutes))
}

fn ago(minutes: u64) -> UnixMs {
    UnixMs(NOW.0 - minutes * 60_000)
}

fn text(what: &str) -> String {
    what.to_owned()
}

fn job() -> Source {
    Source::Request("job-7".into())
}

fn needs(unit: Resources, change: impl FnOnce(&mut Class)) -> Reason {
    let mut class = crate::fleet::class("c", 4, unit);
    change(&mut class);
    Reason::needs(&class)
}

fn gang(class: &mut Class, min: u32, locality: Locality) {
    class.gang = Some(drover_core::model::Gang {
        min,
        assigned: 0,
        locality,
        hold: Millis::minutes(20),
        holding_since: None,
    });
}

fn out(failure: FailureKind, next_probe: UnixMs, message: &str) -> Reason {
    Reason::OutOfCapacity {
        offering: "p3-usw2".into(),
        failure,
        next_probe,
        message: text(message),
    }
}

fn demand(units: u32, minimum: u32, spare: u32, headroom: u32) -> Reason {
    Reason::Demand {
        sources: vec![job(), Source::Scheduler(text("slurm"))],
        units,
        minimum,
        spare,
        headroom,
    }
}

/// What a class needs, what was tried, what comes next.
fn of_demand() -> Vec<(Reason, &'static str)> {
    vec![
        (needs(size(0, 0, 8), |_| {}), "needs 8 GPUs on one node"),
        (needs(size(1, 0, 1), |_| {}), "needs 1 GPU, 1 CPU"),
        (
            needs(size(0, 0, 0), |c| c.whole_node = true),
            "needs a whole node",
        ),
        (
            needs(size(0, 0, 8), |c| gang(c, 4, Locality::Zone)),
            "needs 4 times 8 GPUs at once in one zone",
        ),
        (
            needs(size(0, 0, 1), |c| gang(c, 2, Locality::Any)),
            "needs 2 to 4 times 1 GPU at once",
        ),
        (
            needs(
                Resources {
                    gpu_milli: 500,
                    ..Resources::default()
                },
                |_| {},
            ),
            "needs 0.5 of a GPU",
        ),
        (Reason::NoPools, "the fleet has no pool of its own"),
        (
            Reason::FitsNow { units: 1, nodes: 1 },
            "1 unit on 1 node now",
        ),
        (
            Reason::AskedFor {
                pool: "p3-use1".into(),
                nodes: 2,
                ready: at(4),
            },
            "p3-use1 asked for 2, first ready in about 4 min",
        ),
        (
            Reason::AskedFor {
                pool: "p3-use1".into(),
                nodes: 2,
                ready: ago(1),
            },
            "p3-use1 asked for 2, first ready at any moment",
        ),
        (
            Reason::UnitsComing {
                units: 1,
                nodes: 1,
                first: Some(at(4)),
            },
            "1 unit on 1 node that is coming, first expected by 14:04:00 UTC",
        ),
        (
            out(FailureKind::Shortage, at(5), ""),
            "p3-usw2 is out of capacity until 14:05:00 UTC (shortage)",
        ),
        (
            out(FailureKind::Quota, at(60), "limit of 96"),
            "p3-usw2 is at a limit of the account until 15:00:00 UTC (quota: limit of 96)",
        ),
        (
            out(FailureKind::Shortage, ago(1), ""),
            "p3-usw2 is out of capacity, its probe is under way (shortage)",
        ),
        (
            Reason::AtMaximum {
                pool: "p4".into(),
                max: 20,
                config: None,
            },
            "p4 is at its maximum of 20",
        ),
        (
            Reason::AtMaximum {
                pool: "p4".into(),
                max: 0,
                config: Some(10),
            },
            "p4 is at the maximum of 0 of its group, below the 10 of its config: raise the group's",
        ),
        (
            Reason::OverBudget {
                what: text("USD/h"),
            },
            "the fleet's limit of USD/h is reached",
        ),
        (
            Reason::TeamBudget {
                team: text("vision"),
                what: text("GPUs"),
            },
            "the limit of GPUs of team vision is reached",
        ),
        (
            Reason::PoolDiffers {
                pool: "g5".into(),
                what: text("wants gpu=h100, has a10g"),
            },
            "g5 does not fit: wants gpu=h100, has a10g",
        ),
        (
            Reason::PoolTooSmall {
                pool: "g5".into(),
                wanted: size(0, 32, 8),
                has: size(0, 16, 0),
            },
            "g5 is too small: 8 GPUs wanted, a node has none, 32 GiB wanted, a node has 16 GiB",
        ),
        (
            Reason::UnknownType {
                pool: "new".into(),
                instance_type: text("x9.large"),
            },
            "new skipped: unknown type x9.large",
        ),
        (
            Reason::NoPoolOffers {
                unit: size(0, 0, 1),
                wants: text("gpu=h100"),
            },
            "no pool offers 1 GPU with gpu=h100",
        ),
        (
            Reason::NoRoom {
                pool: "desk".into(),
            },
            "desk has no room left and no more nodes to ask for",
        ),
        (
            Reason::NodesAway {
                pool: "desk".into(),
                nodes: 1,
                away: Away::Cordoned { who: text("ann") },
            },
            "1 node of desk is cordoned by ann",
        ),
        (
            Reason::NodesAway {
                pool: "desk".into(),
                nodes: 2,
                away: Away::NotJoined,
            },
            "2 hosts of desk have not joined",
        ),
        (
            Reason::PoolStopped {
                pool: "g5".into(),
                stop: Stop::NeverJoined { misses: 3 },
            },
            "g5: stopped: 3 launches in a row never joined or were never ready",
        ),
        (
            Reason::PoolMode {
                pool: "g5".into(),
                mode: Mode::Observe,
            },
            "g5: in mode observe: planned, not done",
        ),
        (
            Reason::PoolUnread {
                pool: "g5".into(),
                why: text("throttled"),
            },
            "pool g5 cannot be read: throttled",
        ),
        (
            Reason::NearRule {
                what: text("no unit with app=db in its zone"),
            },
            "its rules about other units allow no more: no unit with app=db in its zone",
        ),
        (
            Reason::Undecided,
            "not looked at yet: the plan reached its limit of work, the next one goes on",
        ),
        (
            Reason::HostPortTaken { port: 80 },
            "host port 80 is taken on every node that would do",
        ),
        (
            Reason::DeadlineTooNear {
                ready: at(4),
                deadline: at(2),
            },
            "must start by 14:02:00 UTC, and a new node would be ready at 14:04:00 UTC",
        ),
        (
            Reason::DeadlinePassed { deadline: ago(60) },
            "its deadline of 13:00:00 UTC is over: nothing is asked for",
        ),
        (
            Reason::WaitsForEnd {
                node: "p4-3".into(),
                until: at(25),
            },
            "waits for p4-3, whose work ends by 14:25:00 UTC",
        ),
        (
            Reason::PatientUntil { until: at(70) },
            "may wait: new nodes are asked for at 15:10:00 UTC",
        ),
        (
            Reason::EffortLimit,
            "not decided yet: the plan reached its limit of effort, the next one goes on",
        ),
        (
            Reason::UnsupportedRule {
                rule: text("gres/foo"),
            },
            "has a rule that Drover does not know: gres/foo",
        ),
        (
            Reason::CheckDropped {
                invariant: text("I3 never_beyond_limits"),
                why: text("g5 is full"),
            },
            "dropped by the check of I3 never_beyond_limits: g5 is full",
        ),
        (Reason::More { count: 3 }, "and 3 more"),
        (Reason::Settled, "nothing to do"),
        (
            Reason::Unexplained,
            "no reason known: a fault of the planner, please report the saved plan",
        ),
        (
            Reason::BadInput {
                what: text("two pools are named g5"),
            },
            "ignored: two pools are named g5",
        ),
    ]
}

fn of_gangs() -> Vec<(Reason, &'static str)> {
    vec![
        (
            Reason::GangShort {
                min: 4,
                could: 3,
                place: text("zone us-east-1a of us-east-1"),
            },
            "needs 4 at once, 3 can be had in zone us-east-1a of us-east-1 now",
        ),
        (
            Reason::GangNever {
                min: 9,
                could: 8,
                place: text("pool p4"),
            },
            "needs 9 at once, at most 8 could ever be had in pool p4",
        ),
        (
            Reason::GangWaitsForGang { source: job() },
            "waits for the gang of request job-7, which is first",
        ),
        (
            Reason::GangHolds {
                units: 1,
                until: at(20),
            },
            "1 unit held for it until 14:20:00 UTC at most",
        ),
        (
            Reason::HoldOver { since: ago(20) },
            "its hold since 13:40:00 UTC is over: the part it had is lent",
        ),
        (
            Reason::WholeElsewhere {
                place: text("site us-west-2"),
            },
            "moves: it can be whole in site us-west-2",
        ),
        (
            Reason::AsksElsewhere {
                source: job(),
                units: 4,
                place: text("pool p4w"),
            },
            "4 units of request job-7 at once in pool p4w; what it has is kept until they have joined",
        ),
        (
            Reason::GangPart {
                min: 4,
                got: 6,
                most: 8,
            },
            "starts with 6 of 8 (4 are enough), more join when there is room",
        ),
        (
            Reason::KeptForGang {
                source: job(),
                until: at(20),
            },
            "kept for request job-7 until 14:20:00 UTC",
        ),
    ]
}

fn of_nodes() -> Vec<(Reason, &'static str)> {
    vec![
        (demand(1, 0, 0, 0), "1 unit for request job-7, slurm"),
        (
            demand(2, 1, 2, 3),
            "2 units for request job-7, slurm, 1 for the minimum, 2 as spare, 3 units of headroom",
        ),
        (demand(0, 0, 0, 0), "for demand"),
        (
            Reason::Probe {
                failure: FailureKind::Shortage,
            },
            "probe after shortage",
        ),
        (
            Reason::IdleSince { since: ago(10) },
            "idle since 13:50:00 UTC (10 min)",
        ),
        (
            Reason::IdleUntil { until: at(3) },
            "idle, may go at 14:03:00 UTC",
        ),
        (
            Reason::Surplus {
                since: ago(30),
                spare: 1,
            },
            "idle since 13:30:00 UTC (30 min), and the spare of 1 is covered without it",
        ),
        (
            Reason::ExpiredAt { at: ago(5) },
            "too old since 13:55:00 UTC",
        ),
        (
            Reason::Replaceable {
                saves: MicroUsd(10_960_000),
                by: None,
            },
            "its work fits on nodes that have room: saves 10.96 USD/h",
        ),
        (
            Reason::Replaceable {
                saves: MicroUsd(500_000),
                by: Some("g5/g5.xlarge/a/spot".into()),
            },
            "its work fits on one new node of g5/g5.xlarge/a/spot: saves 0.50 USD/h",
        ),
        (
            Reason::Faulty {
                what: text("7 of 8 GPUs"),
            },
            "faulty: 7 of 8 GPUs",
        ),
        (Reason::DrainedEmpty, "drained and empty"),
        (Reason::Free, "free"),
        (
            Reason::Working {
                what: vec![text("job 12")],
            },
            "works: job 12",
        ),
        (
            Reason::UnderUsedOccupied {
                what: vec![text("job 12"), text("tmux of ann")],
            },
            "under-used, occupied: job 12, tmux of ann",
        ),
        (
            Reason::WitnessMissing {
                why: text("slurm is stale"),
            },
            "counts as busy: slurm is stale",
        ),
        (
            Reason::HeldBy {
                requests: vec![text("job-7")],
            },
            "held by job-7",
        ),
        (
            Reason::KeptForDemand { source: job() },
            "kept for request job-7",
        ),
        (Reason::KeptAsSpare, "kept as spare"),
        (
            Reason::KeptForHeadroom {
                name: text("quick starts"),
            },
            "kept for headroom quick starts",
        ),
        (
            Reason::KeptForLikelyDemand {
                within: Millis::minutes(5),
            },
            "kept: it is likely to be wanted again within 5 min, as long as a new node takes",
        ),
        (Reason::AtMinimum, "at minimum"),
        (
            Reason::QuotaUsed { quota: 2 },
            "removal quota of 2 at once is used up",
        ),
        (
            Reason::DisruptionBudget {
                name: text("days"),
                most: 0,
                until: Some(at(180)),
            },
            "disruption budget days allows 0 at once until 17:00:00 UTC",
        ),
        (
            Reason::CordonedByPerson { who: text("ann") },
            "cordoned by ann: neither used nor touched",
        ),
        (Reason::Unreachable, "unreachable: neither used nor touched"),
        (Reason::Foreign, "foreign: used, never touched"),
        (
            Reason::Draining {
                reason: text("idle"),
                who: None,
                empty: false,
            },
            "draining: idle",
        ),
        (
            Reason::Draining {
                reason: text("new driver"),
                who: Some(text("ann")),
                empty: true,
            },
            "drained for ann: new driver",
        ),
        (
            Reason::Coming { deadline: at(15) },
            "coming, by 14:15:00 UTC",
        ),
        (Reason::NotThere, "leaving, gone or off"),
        (
            Reason::NotRemovable,
            "stays: its pool has no way to remove nodes",
        ),
        (Reason::NotJoined, "launched, its agent has not enrolled"),
        (
            Reason::NotReady,
            "joined, not ready (its GPUs are not all there)",
        ),
    ]
}

fn of_pools() -> Vec<(Reason, &'static str)> {
    vec![
        (
            Reason::ModeForbids { mode: Mode::Grow },
            "in mode grow: never removes",
        ),
        (
            Reason::Stopped {
                stop: Stop::Frozen {
                    by: text("ann"),
                    why: text("exam"),
                },
            },
            "frozen by ann: exam",
        ),
        (
            Reason::BelowTarget {
                minimum: 2,
                spare: 1,
            },
            "2 below minimum, 1 short of its spare",
        ),
        (Reason::Growing { nodes: 1 }, "asks for 1 node"),
        (Reason::Shrinking { nodes: 2 }, "begins to remove 2 nodes"),
        (
            Reason::NodesComing {
                nodes: 1,
                first: None,
            },
            "1 node is coming",
        ),
        (
            Reason::RemovalHeld {
                nodes: 2,
                why: Box::new(Reason::AtMinimum),
            },
            "removal of 2 nodes is held: at minimum",
        ),
        (
            Reason::Headroom {
                name: text("quick starts"),
                units: 1,
            },
            "1 unit of headroom quick starts",
        ),
        (
            Reason::HeadroomShort {
                name: text("quick starts"),
                units: 2,
                why: Box::new(Reason::AtMaximum {
                    pool: "g5".into(),
                    max: 4,
                    config: None,
                }),
            },
            "headroom quick starts is 2 units short: g5 is at its maximum of 4",
        ),
    ]
}

#[test]
fn every_reason_in_words() {
    let all: Vec<_> = [of_demand(), of_gangs(), of_nodes(), of_pools()].concat();
    let mut said: BTreeSet<String> = BTreeSet::new();
    for (reason, wanted) in &all {
        assert_eq!(render(reason, NOW), *wanted);
        let value = serde_json::to_value(reason).unwrap();
        said.insert(value["is"].as_str().unwrap().to_owned());
        let read: Reason = serde_json::from_value(value).unwrap();
        assert_eq!(read, *reason, "a plan file keeps it");
    }
    // serde names all there are.
    let refused = serde_json::from_str::<Reason>(r#"{"is": "?"}"#).unwrap_err();
    let refused = refused.to_string();
    let (_, known) = refused.split_once("expected one of").unwrap();
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    assert!(known.len() > 75, "{known:?}");
    let missing: Vec<_> = known.iter().filter(|tag| !said.contains(**tag)).collect();
    assert!(missing.is_empty(), "no words are tested for {missing:?}");
}

#[test]
fn sc_55_one_line_that_a_researcher_understands() {
    let class = crate::fleet::class("job-7", 1, size(0, 0, 8));
    let outcome = drover_core::model::ClassOutcome {
        source: class.source.clone(),
        fitted: 0,
        coming: 0,
        grown: 2,
        unplaced: 1,
        reasons: vec![
            Reason::needs(&class),
            out(FailureKind::Shortage, at(5), ""),
            Reason::AskedFor {
                pool: "p3-use1".into(),
                nodes: 2,
                ready: at(4),
            },
        ],
        impossible: false,
        held: 0,
    };
    assert_eq!(
        drover_core::planner::class_summary(&class, &outcome, NOW),
        "needs 8 GPUs on one node; 2 of 3 placed; p3-usw2 is out of capacity until 14:05:00 UTC (shortage); \
         p3-use1 asked for 2, first ready in about 4 min"
    );
}
