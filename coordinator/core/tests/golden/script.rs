//! Runs a case file: lines that build the fleet, `plan` lines that print the plan as golden text below themselves
//! (lines that begin with `|`). `UPDATE_GOLDEN=1` writes what is printed; otherwise a difference fails the test.

use crate::fleet;
use drover_core::model::{
    Action, Budget, Busy, Bytes, Cordon, DrainInfo, FailureKind, Gang, Headroom, LaunchInFlight,
    Lifecycle, Locality, MemoryEntry, MicroUsd, MilliCpu, Millis, Mode, NodeInput, Offering,
    PlanInput, Planned, PoolKind, Quota, Requirement, Reserved, Running, Source, Stop, Target,
    UnixMs,
};
use drover_core::planner;
use drover_core::rules::lives;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

mod removal;
mod rules;

pub fn run(case: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/cases")
        .join(format!("{case}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut world = World {
        input: fleet::default_fleet(),
        last: None,
        launches: 0,
    };
    let mut out = String::new();
    for (n, line) in text.lines().enumerate() {
        if line.starts_with('|') {
            continue;
        }
        writeln!(out, "{line}").unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() || words[0].starts_with('#') {
            continue;
        }
        match world.step(&words) {
            Ok(said) => {
                for line in said.lines() {
                    writeln!(out, "| {line}").unwrap();
                }
            }
            Err(why) => panic!("{case}.txt:{}: {why}", n + 1),
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, out).unwrap();
    } else {
        assert!(
            out == text,
            "{case}: the plan differs from its golden text.\n--- wanted\n{text}\n--- got\n{out}"
        );
    }
}

struct World {
    input: PlanInput,
    last: Option<Planned>,
    launches: u32,
}

type Args<'w> = BTreeMap<&'w str, &'w str>;

fn args<'w>(words: &[&'w str]) -> Args<'w> {
    words
        .iter()
        .map(|w| w.split_once('=').unwrap_or((w, "")))
        .collect()
}

fn num<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

/// "10m", "30s", "2h".
fn span(text: &str) -> Result<Millis, String> {
    let (n, unit) = text.split_at(text.len().saturating_sub(1));
    let n: u64 = num(n)?;
    match unit {
        "s" => Ok(Millis::seconds(n)),
        "m" => Ok(Millis::minutes(n)),
        "h" => Ok(Millis::minutes(n * 60)),
        _ => Err(format!("a span needs a unit: {text}")),
    }
}

/// "20" (minutes) or "0:20".
fn moment(text: &str) -> Result<UnixMs, String> {
    let (m, s) = text.split_once(':').unwrap_or((text, "0"));
    Ok(UnixMs(
        fleet::START + num::<u64>(m)? * 60_000 + num::<u64>(s)? * 1000,
    ))
}

fn spaced(text: &str) -> String {
    text.replace('_', " ")
}

impl World {
    fn step(&mut self, words: &[&str]) -> Result<String, String> {
        let first = words.get(1).copied().unwrap_or("");
        let rest = args(words.get(2..).unwrap_or(&[]));
        match words[0] {
            "at" => self.input.now = moment(first)?,
            "pool" => self.pool(first, &rest)?,
            "nopool" => self.input.pools.retain(|p| p.id.as_str() != first),
            "node" => self.node(first, &rest)?,
            "nodes" => {
                let count: u32 = num(words.get(2).ok_or("how many")?)?;
                let rest = args(&words[3..]);
                for n in 1..=count {
                    self.node(&format!("{first}-{n}"), &rest)?;
                }
            }
            "gone" => self.input.nodes.retain(|n| n.id.as_str() != first),
            "demand" => {
                let count: u32 = num(words.get(2).ok_or("how many")?)?;
                self.demand(first, count, &args(&words[3..]))?;
            }
            "forget" => self
                .input
                .classes
                .retain(|c| source_name(&c.source) != first),
            "launch" => self.launch(first, &rest)?,
            "short" => self.short(first, &rest)?,
            "open" => self
                .input
                .memory
                .retain(|m| !m.offering.as_str().starts_with(&format!("{first}/"))),
            "policy" => {
                let rest = args(&words[1..]);
                self.input.policy.max_cost =
                    rest.get("cost").map(|v| num(v)).transpose()?.map(MicroUsd);
                self.input.policy.max_gpus = rest.get("gpus").map(|v| num(v)).transpose()?;
                self.input.policy.consolidate = rest.contains_key("consolidate");
            }
            "headroom" => {
                let count: u32 = num(words.get(2).ok_or("how many")?)?;
                self.headroom(first, count, &args(&words[3..]))?;
            }
            "team" => {
                let limit = Budget {
                    max_cost: rest.get("cost").map(|v| num(v)).transpose()?.map(MicroUsd),
                    max_gpus: rest.get("gpus").map(|v| num(v)).transpose()?,
                };
                self.input.policy.teams.insert(first.to_owned(), limit);
            }
            // Work of so many GPUs ran for these times.
            "ran" => {
                for ran in &words[2..] {
                    let (gpus, ran) = (num(first)?, span(ran)?);
                    lives::step(&mut self.input.learnt, &lives::Event::Ended { gpus, ran });
                }
            }
            "learn" => self.learn(),
            "plan" => return Ok(self.plan(&words[1..])),
            "apply" => self.apply(),
            "join" => self.join(first, &rest)?,
            other => return Err(format!("unknown line: {other}")),
        }
        Ok(String::new())
    }

    /// Learns what the last plan says of demand.
    fn learn(&mut self) {
        let pools = self.last.iter().flat_map(|planned| &planned.report.pools);
        for outcome in pools {
            if let Some(demanded) = &outcome.demanded {
                let (pool, demanded) = (outcome.pool.clone(), demanded.clone());
                let event = lives::Event::Demanded { pool, demanded };
                lives::step(&mut self.input.learnt, &event);
            }
        }
    }

    fn pool(&mut self, name: &str, rest: &Args<'_>) -> Result<(), String> {
        if !self.input.pools.iter().any(|p| p.id.as_str() == name) {
            let like = rest.get("like").ok_or("a new pool needs like=")?;
            let rank = u32::try_from(self.input.pools.len()).unwrap();
            let old = self
                .input
                .pools
                .iter()
                .find(|p| p.id.as_str() == *like)
                .ok_or("like what")?;
            let mut new = old.clone();
            new.id = name.into();
            new.rank = rank;
            for o in &mut new.offerings {
                let tail =
                    o.id.as_str()
                        .split_once('/')
                        .map_or("", |(_, t)| t)
                        .to_owned();
                o.id = format!("{name}/{tail}").as_str().into();
            }
            self.input.pools.push(new);
        }
        let pool = self
            .input
            .pools
            .iter_mut()
            .find(|p| p.id.as_str() == name)
            .unwrap();
        for (key, value) in rest {
            match *key {
                "like" => {}
                "min" => pool.min = num(value)?,
                "max" => pool.max = num(value)?,
                "config_max" => pool.config_max = Some(num(value)?),
                "spare" => pool.spare = num(value)?,
                "unmanaged" => pool.unmanaged = num(value)?,
                "removable" => pool.removable = *value == "yes",
                "quota" => pool.quota = Quota::Count(num(value)?),
                "mode" => {
                    pool.mode = match *value {
                        "observe" => Mode::Observe,
                        "grow" => Mode::Grow,
                        _ => Mode::Full,
                    }
                }
                "stop" => {
                    let why = || "by hand".to_owned();
                    pool.stops = match *value {
                        "none" => Vec::new(),
                        "frozen" => vec![Stop::Frozen {
                            by: "ann".to_owned(),
                            why: why(),
                        }],
                        "paused" => vec![Stop::Paused {
                            by: "ann".to_owned(),
                            why: why(),
                        }],
                        "never-joined" => vec![Stop::NeverJoined { misses: 10 }],
                        "silent" => vec![Stop::SiteSilent],
                        text if text.starts_with("stale:") => vec![Stop::Stale {
                            may_grow: false,
                            why: spaced(&text["stale:".len()..]),
                        }],
                        text if text.starts_with("old:") => vec![Stop::Stale {
                            may_grow: true,
                            why: spaced(&text["old:".len()..]),
                        }],
                        text => vec![Stop::NoRemoval { why: spaced(text) }],
                    }
                }
                "type" => {
                    for o in &mut pool.offerings {
                        o.instance_type = (*value).to_owned();
                    }
                }
                "price" => pool.offerings[0].price = MicroUsd(num(value)?),
                "unknown" => pool.offerings[0].allocatable = None,
                "nothing" => pool.offerings.clear(),
                "static" => pool.kind = PoolKind::Static,
                "available" => pool.offerings[0].available = Some(num(value)?),
                "zones" => {
                    let first = pool.offerings[0].clone();
                    pool.offerings = value
                        .split('+')
                        .map(|zone| Offering {
                            id: format!("{name}/{}/{zone}/on_demand", first.instance_type)
                                .as_str()
                                .into(),
                            zone: zone.to_owned(),
                            ..first.clone()
                        })
                        .collect();
                }
                key => match key.split_once('.') {
                    Some(("label", k)) => {
                        drop(pool.labels.insert(k.to_owned(), (*value).to_owned()))
                    }
                    Some(("taint", k)) => {
                        drop(pool.taints.insert(k.to_owned(), (*value).to_owned()))
                    }
                    Some(("size", what)) => {
                        let size = pool.offerings[0]
                            .allocatable
                            .as_mut()
                            .ok_or("unknown type")?;
                        amount(size, what, value)?;
                    }
                    _ if removal::pool_key(pool, key, value)? => {}
                    _ => return Err(format!("unknown key {key}")),
                },
            }
        }
        Ok(())
    }

    fn node(&mut self, name: &str, rest: &Args<'_>) -> Result<(), String> {
        if !self.input.nodes.iter().any(|n| n.id.as_str() == name) {
            let new = fleet::node(&self.input, name, rest.get("pool").copied().unwrap_or(""));
            self.input.nodes.push(new);
            self.input.nodes.sort_by(|a, b| a.id.cmp(&b.id));
        }
        let now = self.input.now;
        let node = self
            .input
            .nodes
            .iter_mut()
            .find(|n| n.id.as_str() == name)
            .unwrap();
        let says_used = rest.keys().any(|k| k.starts_with("used."));
        if says_used {
            node.used = drover_core::model::Resources::default();
        }
        for (key, value) in rest {
            match *key {
                "pool" => {}
                "idle" => {
                    node.busy = Busy::Idle {
                        since: UnixMs(now.0 - span(value)?.0),
                    };
                    node.used = drover_core::model::Resources::default();
                }
                "busy" | "movable" => {
                    node.busy = Busy::Working {
                        what: vec![spaced(value)],
                        movable: *key == "movable",
                    };
                    if node.used.is_zero() && !says_used {
                        node.used = node.allocatable.clone();
                    }
                }
                "unknown" => node.busy = Busy::Unknown { why: spaced(value) },
                "silent" => node.unreachable = *value != "no",
                "faulty" => node.faulty = (*value != "no").then(|| spaced(value)),
                "cordon" => {
                    node.cordon = match *value {
                        "own" => Some(Cordon::Drover),
                        "person" => Some(Cordon::Person {
                            who: "ann".to_owned(),
                            why: "looks at it".to_owned(),
                        }),
                        _ => None,
                    }
                }
                "drain" => {
                    node.drain = (*value != "none").then(|| DrainInfo {
                        moving: false,
                        id: format!("d-{name}").as_str().into(),
                        own_idle: *value == "own",
                        since: now,
                        reason: if *value == "own" {
                            "idle".to_owned()
                        } else {
                            "by ann".to_owned()
                        },
                    });
                    if node.drain.is_some() {
                        node.lifecycle = Lifecycle::Draining;
                        node.cordon.get_or_insert(Cordon::Drover);
                    }
                }
                "life" => {
                    node.lifecycle = match *value {
                        "joined" => Lifecycle::Joined,
                        "ready" => Lifecycle::Ready,
                        "draining" => Lifecycle::Draining,
                        "drained" => Lifecycle::Drained,
                        "leaving" => Lifecycle::Leaving,
                        "off" => Lifecycle::Off,
                        other => return Err(format!("unknown state {other}")),
                    }
                }
                "reserved" => {
                    let (request, units) = value.split_once(':').ok_or("reserved=request:gpus")?;
                    let units = num(units)?;
                    let amount = fleet::size(0, 0, units);
                    node.reserved.push(Reserved {
                        request: request.into(),
                        units,
                        amount,
                        team: String::new(),
                        ends: None,
                    });
                }
                "works" => {
                    let work = works(value)?;
                    node.used = node.used.plus(&work.unit.scaled(work.count));
                    node.busy = Busy::Working {
                        what: vec!["job".to_owned()],
                        movable: false,
                    };
                    node.workloads.push(work);
                }
                key if rules::node(node, key, value)? => {}
                key => match key.split_once('.') {
                    Some(("label", k)) => {
                        drop(node.labels.insert(k.to_owned(), (*value).to_owned()))
                    }
                    Some(("used", what)) => amount(&mut node.used, what, value)?,
                    Some(("size", what)) => amount(&mut node.allocatable, what, value)?,
                    _ if removal::node_key(node, now, key, value)? => {}
                    _ => return Err(format!("unknown key {key}")),
                },
            }
        }
        Ok(())
    }

    fn demand(&mut self, name: &str, count: u32, rest: &Args<'_>) -> Result<(), String> {
        if !self
            .input
            .classes
            .iter()
            .any(|c| source_name(&c.source) == name)
        {
            let mut new = fleet::class(name, count, fleet::size(0, 0, 0));
            new.submitted = self.input.now;
            self.input.classes.push(new);
        }
        let class = self
            .input
            .classes
            .iter_mut()
            .find(|c| source_name(&c.source) == name)
            .unwrap();
        class.count = count;
        for (key, value) in rest {
            match *key {
                "gpus" | "cpu" | "mcpu" | "gib" => amount(&mut class.unit, key, value)?,
                "request" => class.source = Source::Request(name.into()),
                "whole" => class.whole_node = true,
                "model" => class.constraints.gpu_model = (*value).to_owned(),
                "pools" => class.constraints.pools = value.split('+').map(Into::into).collect(),
                "each" => class.constraints.max_per_node = num(value)?,
                "rule" => class.constraints.unsupported.push(spaced(value)),
                "priority" => class.priority = num(value)?,
                "submitted" => class.submitted = moment(value)?,
                "team" => class.team = (*value).to_owned(),
                "runs" => class.run_time = Some(span(value)?),
                "wait" => class.max_wait = Some(span(value)?),
                "by" => class.deadline = Some(moment(value)?),
                "gang" => {
                    let min = num(value)?;
                    let hold = Millis::minutes(20);
                    class.gang = Some(Gang {
                        min,
                        assigned: 0,
                        locality: Locality::Any,
                        hold,
                        holding_since: None,
                    });
                }
                "locality" | "hold" | "assigned" | "holding" => {}
                key if rules::demand(class, key, value)? => {}
                key => match key.split_once('.') {
                    Some(("label", k)) => class.constraints.requirements.push(Requirement {
                        op: drover_core::model::Operator::In,
                        key: k.to_owned(),
                        any_of: value.split('+').map(str::to_owned).collect(),
                    }),
                    Some(("tol", k)) => {
                        let values = value
                            .split('+')
                            .filter(|v| !v.is_empty())
                            .map(str::to_owned)
                            .collect();
                        class.constraints.tolerations.insert(k.to_owned(), values);
                    }
                    _ => return Err(format!("unknown key {key}")),
                },
            }
        }
        if let Some(gang) = &mut class.gang {
            for (key, value) in rest {
                match *key {
                    "locality" => {
                        gang.locality = match *value {
                            "node" => Locality::Node,
                            "pool" => Locality::Pool,
                            "zone" => Locality::Zone,
                            "site" => Locality::Site,
                            _ => Locality::Any,
                        }
                    }
                    "hold" => gang.hold = span(value)?,
                    "assigned" => gang.assigned = num(value)?,
                    "holding" => gang.holding_since = Some(moment(value)?),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn headroom(&mut self, name: &str, count: u32, rest: &Args<'_>) -> Result<(), String> {
        let like = fleet::class(name, count, fleet::size(0, 0, 0));
        let mut headroom = Headroom {
            name: name.to_owned(),
            unit: like.unit,
            constraints: like.constraints,
            count,
        };
        for (key, value) in rest {
            match *key {
                "model" => headroom.constraints.gpu_model = (*value).to_owned(),
                "pools" => headroom.constraints.pools = value.split('+').map(Into::into).collect(),
                key => amount(&mut headroom.unit, key, value)?,
            }
        }
        let all = &mut self.input.policy.headroom;
        all.retain(|h| h.name != name);
        if count > 0 {
            all.push(headroom);
        }
        Ok(())
    }

    fn launch(&mut self, id: &str, rest: &Args<'_>) -> Result<(), String> {
        let pool = rest.get("pool").ok_or("which pool")?;
        let pool = self
            .input
            .pools
            .iter()
            .find(|p| p.id.as_str() == *pool)
            .ok_or("no such pool")?;
        let asked = rest
            .get("asked")
            .map_or(Ok(self.input.now), |t| moment(t))?;
        self.input.launches.retain(|l| l.id.as_str() != id);
        self.input.launches.push(LaunchInFlight {
            id: id.into(),
            pool: pool.id.clone(),
            offering: pool.offerings[0].id.clone(),
            count: num(rest.get("count").ok_or("count=")?)?,
            shown: 0,
            asked,
            deadline: asked.after(Millis::minutes(15)),
            reserved: Vec::new(),
        });
        Ok(())
    }

    fn short(&mut self, name: &str, rest: &Args<'_>) -> Result<(), String> {
        let mut found = false;
        for offering in self.input.pools.iter().flat_map(|p| &p.offerings) {
            let id = offering.id.as_str();
            if !(id.starts_with(&format!("{name}/")) || id == name) {
                continue;
            }
            found = true;
            self.input.memory.retain(|m| m.offering != offering.id);
            self.input.memory.push(MemoryEntry {
                offering: offering.id.clone(),
                kind: match rest.get("kind") {
                    Some(&"quota") => FailureKind::Quota,
                    _ => FailureKind::Shortage,
                },
                // Before whatever is asked now.
                failed: UnixMs(self.input.now.0.saturating_sub(1)),
                next_probe: moment(rest.get("until").ok_or("until=")?)?,
                ration: rest.get("ration").map_or(Ok(1), |n| num(n))?,
                message: rest.get("says").map_or_else(String::new, |t| spaced(t)),
            });
        }
        if found {
            Ok(())
        } else {
            Err(format!("no offering of {name}"))
        }
    }

    /// What the world does with the last plan when all goes well: launches are asked, drains begin and end at once.
    fn apply(&mut self) {
        let Some(planned) = self.last.take() else {
            return;
        };
        let now = self.input.now;
        for (index, action) in planned.plan.actions.iter().enumerate() {
            match action {
                Action::Uncordon { node, .. } => {
                    let node = self.input.nodes.iter_mut().find(|n| n.id == *node).unwrap();
                    (node.cordon, node.drain, node.lifecycle) = (None, None, Lifecycle::Ready);
                }
                Action::Release { request, .. } => {
                    for node in &mut self.input.nodes {
                        node.reserved.retain(|r| r.request != *request);
                    }
                    for class in &mut self.input.classes {
                        if let (true, Some(gang)) = (
                            class.source == Source::Request(request.clone()),
                            &mut class.gang,
                        ) {
                            class.count += gang.assigned;
                            gang.assigned = 0;
                        }
                    }
                }
                Action::Launch {
                    pool,
                    offering,
                    count,
                    ..
                } => {
                    self.launches += 1;
                    let mut reserved: BTreeMap<_, u32> = BTreeMap::new();
                    for run in &planned.plan.runs {
                        let ours = matches!(run.target, Target::New { action, would: false, .. } if action as usize == index);
                        if let (true, Source::Request(name)) =
                            (ours, &self.input.classes[run.class as usize].source)
                        {
                            *reserved.entry(name.clone()).or_default() += run.count;
                        }
                    }
                    self.input.launches.push(LaunchInFlight {
                        id: format!("l{}", self.launches).as_str().into(),
                        pool: pool.clone(),
                        offering: offering.clone(),
                        count: *count,
                        shown: 0,
                        asked: now,
                        deadline: now.after(Millis::minutes(15)),
                        reserved: reserved.into_iter().collect(),
                    });
                }
                Action::Drain { node, reason, .. } => {
                    let node = self.input.nodes.iter_mut().find(|n| n.id == *node).unwrap();
                    node.lifecycle = Lifecycle::Drained;
                    node.cordon = Some(Cordon::Drover);
                    node.drain = Some(DrainInfo {
                        moving: false,
                        id: format!("d-{}", node.id).as_str().into(),
                        own_idle: true,
                        since: now,
                        reason: planner::render(reason, now),
                    });
                }
                Action::Leave { node, .. } => self.input.nodes.retain(|n| n.id != *node),
            }
        }
    }

    /// Nodes of a launch join: ready and idle.
    fn join(&mut self, id: &str, rest: &Args<'_>) -> Result<(), String> {
        let at = self
            .input
            .launches
            .iter()
            .position(|l| l.id.as_str() == id)
            .ok_or("no such launch")?;
        let launch = self.input.launches[at].clone();
        let count = rest.get("count").map_or(Ok(launch.count), |n| num(n))?;
        for n in 1..=count {
            let mut node: NodeInput =
                fleet::node(&self.input, &format!("{id}-{n}"), launch.pool.as_str());
            node.offering = Some(launch.offering.clone());
            let offerings = self.input.pools.iter().flat_map(|p| &p.offerings);
            let given = { offerings }.find(|o| o.id == launch.offering);
            node.zone = given.map(|o| o.zone.clone()).unwrap_or_default();
            self.input.nodes.push(node);
        }
        self.input.nodes.sort_by(|a, b| a.id.cmp(&b.id));
        let left = launch.count - count;
        let held = &mut self.input.launches[at].reserved;
        held.iter_mut()
            .for_each(|(_, units)| *units = *units * left / launch.count.max(1));
        self.input.launches[at].count -= count;
        if self.input.launches[at].count == 0 || rest.contains_key("last") {
            self.input.launches.remove(at);
        }
        Ok(())
    }

    fn plan(&mut self, what: &[&str]) -> String {
        let input = &self.input;
        let planned = planner::plan(input);
        assert_eq!(
            planner::to_bytes(&planned),
            planner::to_bytes(&planner::plan(input)),
            "same input, same plan"
        );
        let replayed =
            planner::from_input_bytes(&planner::to_bytes(input)).expect("own input reads back");
        assert_eq!(
            planner::plan(&replayed),
            planned,
            "a saved input gives the same plan"
        );
        assert!(
            planned.report.dropped.is_empty(),
            "dropped: {:?}",
            planned.report.dropped
        );
        crate::redact::same_plan(input);
        let mut out = String::new();
        if planned.plan.actions.is_empty() {
            out.push_str("plan 0\n");
        }
        for action in &planned.plan.actions {
            writeln!(out, "{}", planner::render_action(action, input.now)).unwrap();
        }
        for action in &planned.plan.would {
            writeln!(out, "would {}", planner::render_action(action, input.now)).unwrap();
        }
        for (class, outcome) in input.classes.iter().zip(&planned.report.classes) {
            let said = planner::class_summary(class, outcome, input.now);
            writeln!(out, "{}: {said}", source_name(&class.source)).unwrap();
        }
        if what.contains(&"runs") {
            for run in &planned.plan.runs {
                let class = &input.classes[run.class as usize];
                let place = match &run.target {
                    Target::Node(node) => node.to_string(),
                    Target::Coming(launch, n) => format!("node {n} of launch {launch}"),
                    Target::New { action, node, .. } => format!("new node {node} of act {action}"),
                };
                writeln!(
                    out,
                    "{} {} on {place}",
                    run.count,
                    source_name(&class.source)
                )
                .unwrap();
            }
        }
        if what.contains(&"pools") {
            for pool in &planned.report.pools {
                let said = planner::pool_summary(pool, input.now);
                if said != "nothing to do" {
                    writeln!(out, "pool {}: {said}", pool.pool).unwrap();
                }
            }
        }
        if what.contains(&"nodes") {
            for node in &planned.report.nodes {
                writeln!(
                    out,
                    "node {}: {}",
                    node.node,
                    planner::render(&node.reason, input.now)
                )
                .unwrap();
            }
        }
        self.last = Some(planned);
        out
    }
}

/// "2:1:vision:25": two units of one GPU, of a team (or -), that end at a moment (or -).
fn works(text: &str) -> Result<Running, String> {
    let parts: Vec<&str> = text.splitn(4, ':').collect();
    let [count, gpus, team, ends] = parts[..] else {
        return Err(format!("works=COUNT:GPUS:TEAM:ENDS, not {text}"));
    };
    let said = |text: &str| (text != "-").then(|| text.to_owned());
    Ok(Running {
        count: num(count)?,
        unit: fleet::size(0, 0, num(gpus)?),
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: said(team).unwrap_or_default(),
        host_ports: std::collections::BTreeSet::new(),
        anti_affinity: Vec::new(),
        started: None,
        ends: said(ends).map(|at| moment(&at)).transpose()?,
        movable: false,
    })
}

fn amount(size: &mut drover_core::model::Resources, what: &str, value: &str) -> Result<(), String> {
    match what {
        "gpus" => size.gpus = num(value)?,
        "cpu" => size.cpu = MilliCpu(num::<u64>(value)? * 1000),
        "mcpu" => size.cpu = MilliCpu(num(value)?),
        "gib" => size.memory = Bytes(num::<u64>(value)? << 30),
        other => match other.strip_prefix("x:") {
            Some(name) => drop(size.extended.insert(name.to_owned(), num(value)?)),
            None => return Err(format!("unknown amount {other}")),
        },
    }
    Ok(())
}

fn source_name(source: &Source) -> &str {
    match source {
        Source::Request(name) => name.as_str(),
        Source::Scheduler(name) => name,
    }
}
