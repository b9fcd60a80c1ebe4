//! `drover explain`: finds what a name means and gathers what the view says of it, in words that others have chosen
//! (I9). Used by `serve/admin`; pure.

use crate::control::view::{FleetView, NodeView, PoolView, RequestView};
use crate::serve::convert::nodes::lifecycle;
use drover_core::model::UnixMs;
use drover_proto::v1;
use tonic::Status;

/// What a name means.
enum Found<'a> {
    Node(&'a NodeView),
    Pool(&'a PoolView),
    Request(&'a RequestView),
}

impl Found<'_> {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Node(_) => "node",
            Self::Pool(_) => "pool",
            Self::Request(_) => "request",
        }
    }
}

/// Why `subject` is as it is. `node/NAME`, `pool/NAME` and `request/NAME` tell apart what shares a name.
///
/// # Errors
/// Nothing, or several things, bear that name.
pub fn explain(view: &FleetView, subject: &str, now: UnixMs) -> Result<v1::ExplainReply, Status> {
    let all = find(view, subject);
    let kinds: Vec<&str> = all.iter().map(Found::kind).collect();
    match all.as_slice() {
        [] => Err(Status::not_found(format!(
            "no node, pool or request is named {subject:?}; `drover nodes list`, `pools list` and `requests list --all` name them"
        ))),
        [Found::Node(it)] => Ok(node(it, now)),
        [Found::Pool(it)] => Ok(pool(it)),
        [Found::Request(it)] => Ok(request(it)),
        [Found::Node(first), Found::Node(second), ..] => Err(Status::failed_precondition(format!(
            "several nodes are named {subject:?}; say an id: {}, {}",
            first.id, second.id
        ))),
        _ => Err(Status::failed_precondition(format!(
            "{subject:?} is a {}; say {}/{subject}",
            kinds.join(" and a "),
            kinds.join(&format!("/{subject} or "))
        ))),
    }
}

fn find<'a>(view: &'a FleetView, subject: &str) -> Vec<Found<'a>> {
    // Ids of nodes without an agent contain a slash themselves: the whole text comes first.
    let nodes = |name: &str| {
        view.named(name)
            .into_iter()
            .map(Found::Node)
            .collect::<Vec<_>>()
    };
    let pools = |name: &str| {
        view.pool(name)
            .map(Found::Pool)
            .into_iter()
            .collect::<Vec<_>>()
    };
    let requests = |name: &str| {
        view.request(name)
            .map(Found::Request)
            .into_iter()
            .collect::<Vec<_>>()
    };
    let whole: Vec<_> = nodes(subject)
        .into_iter()
        .chain(pools(subject))
        .chain(requests(subject))
        .collect();
    if !whole.is_empty() {
        return whole;
    }
    match subject.split_once('/') {
        Some(("node", name)) => nodes(name),
        Some(("pool", name)) => pools(name),
        Some(("request", name)) => requests(name),
        _ => whole,
    }
}

fn reply(kind: &str, name: &str, summary: String, lines: Vec<String>) -> v1::ExplainReply {
    v1::ExplainReply {
        kind: kind.to_owned(),
        name: name.to_owned(),
        summary,
        lines,
    }
}

fn node(node: &NodeView, now: UnixMs) -> v1::ExplainReply {
    let mut lines = Vec::new();
    if let Some((who, why)) = &node.cordon {
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {why}")
        };
        lines.push(format!("takes no new work, by {who}{why}"));
    }
    if let Some(faulty) = &node.faulty {
        lines.push(format!("faulty: {faulty}"));
    }
    if let Some(drain) = &node.drain {
        lines.push(format!("drain ordered by {}: {}", drain.by, drain.reason));
        let status = node
            .agent
            .as_ref()
            .and_then(|agent| agent.order_status.as_ref())
            .filter(|status| status.drain_id == drain.id.0);
        match status {
            Some(status) => {
                let (left, all) = (status.workloads_now, status.workloads_at_start);
                lines.push(format!("{left} of {all} workloads left"));
                lines.extend(
                    status
                        .blockers
                        .iter()
                        .map(|b| format!("waits for {}", b.message)),
                );
                if !status.refused.is_empty() {
                    lines.push(format!("the agent refused the order: {}", status.refused));
                }
            }
            None => lines.push("the agent has not said a word on it yet".to_owned()),
        }
    }
    lines.extend(node.busy.iter().map(|busy| format!("busy: {busy}")));
    lines.extend(node.assignments.iter().map(|a| {
        format!(
            "held by request {}: {} units, {} GPUs",
            a.request, a.units, a.gpus
        )
    }));
    if let Some(agent) = &node.agent {
        lines.extend(
            agent
                .conditions
                .iter()
                .map(|c| format!("{}: {}", c.kind, c.message)),
        );
    }
    if node.unreachable
        && let Some(seen) = node.last_seen
    {
        lines.push(format!(
            "its agent has been silent for {} s",
            now.since(seen).0 / 1_000
        ));
    }
    let state = lifecycle(node.lifecycle);
    let summary = if node.reason.is_empty() {
        state.to_owned()
    } else {
        format!("{state}: {}", node.reason)
    };
    reply("node", &node.name, summary, lines)
}

fn pool(pool: &PoolView) -> v1::ExplainReply {
    let mut lines: Vec<String> = pool
        .stopped
        .iter()
        .map(|why| format!("stopped: {why}"))
        .collect();
    if let Some(frozen) = &pool.frozen {
        lines.push(format!("frozen by {}: {}", frozen.by, frozen.reason));
    }
    if let Some(error) = &pool.read_error {
        lines.push(format!("not read: {error}"));
    }
    if pool.orphaned {
        lines.push("no longer in the config file: reported, never drained".to_owned());
    }
    lines.extend(pool.reasons.iter().cloned());
    for (offering, memory) in &pool.offerings {
        if let Some(memory) = memory {
            let kind = crate::control::events::failure_word(memory.kind);
            let probe = crate::control::events::time(memory.next_probe);
            lines.push(format!(
                "{} failed ({kind}): {}; probed again at {probe}",
                offering.id, memory.message
            ));
        }
    }
    lines.extend(pool.launches.iter().map(|launch| {
        format!(
            "{} asked of {}: {}",
            launch.count, launch.offering, launch.reason
        )
    }));
    let mode = crate::control::events::mode_word(pool.mode);
    let summary = format!(
        "mode {mode}, {} of {} nodes ready, {} coming, {} draining, limits {} to {}",
        pool.ready, pool.nodes, pool.coming, pool.draining, pool.min, pool.max
    );
    reply("pool", pool.name.as_str(), summary, lines)
}

fn request(request: &RequestView) -> v1::ExplainReply {
    let mut lines = request.reasons.clone();
    lines.extend(request.assignments.iter().map(|a| {
        let how = if a.ready { "ready" } else { "not ready yet" };
        format!("{} units on {}, {how}", a.units, a.node_name)
    }));
    let summary = format!(
        "{}: {} of {} units on ready nodes, {} coming, {} without",
        request.shown.word(),
        request.units_ready,
        request.record.spec.units,
        request.units_coming,
        request.units_missing
    );
    reply("request", request.record.name.as_str(), summary, lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::view::RequestShown;
    use crate::ports::link::AgentView;
    use crate::records::{
        DrainPolicy, DrainRecord, DrainStep, RequestRecord, RequestSpec, RequestState, Then,
    };
    use drover_core::model::{Lifecycle, Locality, Millis, Mode, NodeId, Resources};
    use std::sync::Arc;

    fn a_node(id: &str, name: &str) -> NodeView {
        NodeView {
            id: id.into(),
            name: name.to_owned(),
            pool: None,
            site: None,
            lifecycle: Lifecycle::Draining,
            cordon: None,
            unreachable: false,
            foreign: false,
            faulty: None,
            reason: "draining".to_owned(),
            agent: None,
            instance: None,
            instance_type: String::new(),
            zone: String::new(),
            price: None,
            joined: None,
            last_seen: None,
            idle_since: None,
            busy: Vec::new(),
            drain: None,
            assignments: Vec::new(),
            gpus: None,
            gpus_free: None,
            gpu_model: String::new(),
            desired: None,
            labels: Default::default(),
        }
    }

    fn a_pool(name: &str) -> PoolView {
        PoolView {
            name: name.into(),
            kind: None,
            site: None,
            mode: Mode::Full,
            min: 0,
            max: 9,
            spare: 0,
            nodes: 0,
            ready: 0,
            idle: 0,
            draining: 0,
            coming: 0,
            unreachable: 0,
            unmanaged: 0,
            stopped: vec!["paused by admin/ada".to_owned()],
            frozen: None,
            read_error: None,
            offerings: Vec::new(),
            reasons: Vec::new(),
            orphaned: false,
            misses: 0,
            launches: Vec::new(),
        }
    }

    fn a_request(name: &str) -> RequestView {
        RequestView {
            record: RequestRecord {
                name: name.into(),
                spec: RequestSpec {
                    units: 4,
                    unit: Resources {
                        gpus: 1,
                        ..Resources::default()
                    },
                    whole_nodes: false,
                    gpu_model: "p9".to_owned(),
                    duration: None,
                    gang_min: None,
                    locality: Locality::Any,
                    priority: 0,
                    pools: Vec::new(),
                    labels: Default::default(),
                    hold: None,
                },
                owner: "admin/ada".to_owned(),
                submitted: UnixMs(0),
                state: RequestState::Pending,
                served: None,
                ends: None,
                assignments: Vec::new(),
                holding_since: None,
                closed: None,
            },
            shown: RequestShown::Impossible,
            assignments: Vec::new(),
            units_ready: 0,
            units_coming: 0,
            units_missing: 4,
            reasons: vec!["no pool offers a GPU like p9".to_owned()],
        }
    }

    fn draining() -> NodeView {
        let node = NodeId::from("n1");
        let status = v1::OrderStatus {
            drain_id: "d1".to_owned(),
            blockers: vec![v1::Blocker {
                message: "process 4711 (alice) python train.py holds 2 GPUs".to_owned(),
                ..Default::default()
            }],
            workloads_at_start: 2,
            workloads_now: 1,
            ..Default::default()
        };
        NodeView {
            agent: Some(Arc::new(AgentView {
                node: node.clone(),
                connected: true,
                last_seen: UnixMs(0),
                last_seen_mono: 0,
                facts: Arc::default(),
                telemetry: None,
                workloads: None,
                workloads_at: UnixMs(0),
                conditions: Vec::new(),
                actual: None,
                order_status: Some(status),
                observed: None,
                highest_epoch: 0,
                clock_offset_ms: 0,
            })),
            drain: Some(DrainRecord {
                id: "d1".into(),
                node,
                policy: DrainPolicy::Wait,
                by: "admin/ada".to_owned(),
                reason: "new fan".to_owned(),
                own_idle: false,
                since: UnixMs(0),
                deadline: None,
                grace: Millis(0),
                then: Then::Cordoned,
                step: DrainStep::Running,
                before: None,
            }),
            ..a_node("n1", "titan-01")
        }
    }

    fn fleet() -> FleetView {
        FleetView {
            nodes: vec![
                draining(),
                a_node("n2", "web"),
                a_node("n3", "twin"),
                a_node("n4", "twin"),
            ],
            pools: vec![a_pool("rack"), a_pool("web")],
            requests: vec![a_request("job-7"), a_request("rack")],
            ..FleetView::default()
        }
    }

    #[test]
    fn a_drain_says_whom_it_waits_for() {
        let said = explain(&fleet(), "titan-01", UnixMs(0)).expect("explained");
        assert_eq!(
            (said.kind.as_str(), said.name.as_str()),
            ("node", "titan-01")
        );
        let all = said.lines.join("\n");
        for needle in [
            "drain ordered by admin/ada: new fan",
            "1 of 2 workloads left",
            "waits for process 4711 (alice) python train.py holds 2 GPUs",
        ] {
            assert!(all.contains(needle), "{needle}: {all}");
        }
        // Another drain's word does not count.
        let mut fleet = fleet();
        if let Some(drain) = &mut fleet.nodes[0].drain {
            drain.id = "d2".into();
        }
        let all = explain(&fleet, "n1", UnixMs(0))
            .expect("explained")
            .lines
            .join("\n");
        assert!(
            all.contains("not said a word") && !all.contains("4711"),
            "{all}"
        );
    }

    #[test]
    fn an_impossible_request_says_why() {
        let said = explain(&fleet(), "job-7", UnixMs(0)).expect("explained");
        assert!(
            said.summary.starts_with("impossible: 0 of 4 units"),
            "{}",
            said.summary
        );
        assert_eq!(said.lines, ["no pool offers a GPU like p9"]);
    }

    #[test]
    fn shared_names_are_told_apart() {
        let fleet = fleet();
        let kind = |subject: &str| explain(&fleet, subject, UnixMs(0)).map(|said| said.kind);
        for (subject, needle) in [
            ("nobody", "no node, pool or request"),
            ("twin", "n3, n4"),
            ("web", "say node/web or pool/web"),
            ("rack", "pool/rack or request/rack"),
            ("node/job-7", "no node"),
        ] {
            let error = kind(subject).expect_err(subject);
            assert!(error.message().contains(needle), "{subject}: {error}");
        }
        for (subject, want) in [
            ("node/web", "node"),
            ("pool/web", "pool"),
            ("request/rack", "request"),
            ("n4", "node"),
        ] {
            assert_eq!(kind(subject).expect(subject), want, "{subject}");
        }
    }
}
