//! The join itself. See `fleet`.

use super::FleetNode;
use super::busy::{Evidence, busy};
use super::claims::{Index, claims, launched};
use super::held::reservations;
use super::marks;
use super::silent::silent;
use super::sizes::{allocatable, count, model, template, used};
use super::state::{cordon, faulty, lacks, provider, unreachable};
use super::taken::{self, Told};
use super::work::{self, Asked};
use crate::config::{Config, PoolConfig, PoolSource};
use crate::control::drains::stage;
use crate::control::ledger::Ledger;
use crate::ports::actuate::{Instance, InstanceState, PoolReading};
use crate::ports::link::AgentView;
use crate::records::NodeRecord;
use drover_core::model::{
    Busy, InstanceId, LaunchId, Lifecycle, Millis, NodeId, Offering, PoolId, PoolKind, RequestName,
    Reserved, UnixMs,
};
use drover_core::rules::lifecycle::{self, Levels};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that is joined.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// Config.
    pub config: &'a Config,
    /// Store.
    pub ledger: &'a Ledger,
    /// Agents.
    pub views: &'a BTreeMap<NodeId, Arc<AgentView>>,
    /// Last good reading of each pool.
    pub readings: &'a BTreeMap<PoolId, Arc<PoolReading>>,
    /// Now, wall clock.
    pub now: UnixMs,
    /// Now, monotonic.
    pub mono: Millis,
}

/// The fleet, by id.
#[must_use]
pub fn join(sources: &Sources<'_>) -> Vec<FleetNode> {
    let held = reservations(sources.ledger);
    let launched = launched(sources.ledger);
    let index = Index::new(sources);
    let claims = claims(sources, &index);
    let known = Known {
        told: Told::new(sources.ledger),
        index,
        claims,
        launched,
        held,
        asked: work::asked(sources.ledger),
    };
    let mut nodes = Vec::with_capacity(sources.ledger.nodes.len());
    let mut spoken_for = BTreeSet::new();
    for (id, record) in &sources.ledger.nodes {
        let record = &record.value;
        if record.revoked {
            continue;
        }
        let node = joined(sources, &known, id, record);
        if let (Some(pool), Some(instance)) = (&node.pool, &node.instance_id) {
            spoken_for.insert((pool.clone(), instance.clone()));
            let found = known.index.instances.get(&(pool, instance));
            // Kept warm: its record stays for when it serves again, and until then it is no node.
            if found.is_some_and(|found| found.state == InstanceState::Warm) {
                continue;
            }
        }
        nodes.push(node);
    }
    for pool in &sources.config.pools {
        let Some(reading) = sources.readings.get(&pool.name) else {
            continue;
        };
        for instance in &reading.instances {
            let key = (pool.name.clone(), instance.id.clone());
            let fixed = matches!(pool.source, PoolSource::Static(_));
            let gone = instance.state == InstanceState::Gone && !fixed;
            if spoken_for.contains(&key) || gone || instance.state == InstanceState::Warm {
                continue;
            }
            let mut node = silent(pool, reading, instance, &known.launched);
            node.notices = known.told.of(&node.id, node.instance_id.as_ref());
            node.taken = taken::why(&node.notices, Some(&pool.notices), sources.now);
            nodes.push(node);
        }
    }
    nodes.sort_by(|a, b| a.id.cmp(&b.id));
    nodes
}

/// What is looked up once per node.
struct Known<'a> {
    told: Told<'a>,
    index: Index<'a>,
    claims: BTreeMap<NodeId, (PoolId, InstanceId)>,
    launched: BTreeMap<InstanceId, LaunchId>,
    held: BTreeMap<NodeId, Vec<Reserved>>,
    asked: BTreeMap<RequestName, Asked>,
}

fn joined(sources: &Sources<'_>, told: &Known<'_>, id: &NodeId, record: &NodeRecord) -> FleetNode {
    let view = sources.views.get(id).cloned();
    let claim = told.claims.get(id).cloned();
    let pool = claim
        .as_ref()
        .map(|(pool, _)| pool)
        .or(record.pool.as_ref())
        .and_then(|pool| sources.config.pool(pool))
        // A host that the list does not name is in no pool.
        .filter(|pool| !matches!(pool.source, PoolSource::Static(_)) || claim.is_some());
    let reading = pool.and_then(|pool| sources.readings.get(&pool.name));
    let instance = claim
        .as_ref()
        .and_then(|(pool, id)| told.index.instances.get(&(pool, id)))
        .map(|instance| (*instance).clone());
    let instance_id = claim.map(|(_, instance)| instance);
    let launch = record
        .launch
        .clone()
        .or_else(|| told.launched.get(instance_id.as_ref()?).cloned());
    let offering = offering_of(sources.ledger, reading, instance.as_ref(), launch.as_ref());
    let order = sources.ledger.orders.get(id).map(|held| held.value.clone());
    let drain = sources.ledger.drains.get(id).map(|held| held.value.clone());
    let facts = view.as_ref().map(|view| view.facts.clone());
    let known = facts.as_deref();
    let fallback = offering
        .and_then(|offering| offering.allocatable.clone())
        .or_else(|| pool.and_then(template));
    let allocatable = allocatable(known, view.as_deref(), fallback.as_ref());
    let expected = fallback.as_ref().map_or(0, |amount| amount.gpus);
    let unreachable =
        record.quarantined.is_some() || (!record.off && unreachable(sources, view.as_deref()));
    let reserved = told.held.get(id).cloned().unwrap_or_default();
    let idle_since = sources.ledger.idle.get(id).map(|held| held.value.since);
    let since = idle_since.unwrap_or(sources.now);
    let busy = match &view {
        _ if record.quarantined.is_some() => Busy::Unknown {
            why: "it is in quarantine: nothing of it is believed".to_owned(),
        },
        Some(view) => busy(
            view,
            Evidence::of(sources.config, pool, sources.mono),
            sources.now,
            since,
        ),
        None => Busy::Unknown {
            why: "its agent has not been heard since the start".to_owned(),
        },
    };
    let kind = instance.as_ref().map_or("", |found| &found.instance_type);
    let faulty = faulty(sources, record, pool, view.as_deref(), expected, kind);
    let listed = view.as_ref().is_some_and(|view| view.workloads.is_some());
    let complete = known.is_some_and(|facts| count(facts.gpus.len()) >= expected);
    let kind = pool.map(PoolConfig::kind);
    let notices = told.told.of(id, instance_id.as_ref());
    let taken = taken::why(&notices, pool.map(|pool| &pool.notices), sources.now);
    let lifecycle = lifecycle::of(Levels {
        joined: true,
        drain: drain.as_ref().map(|drain| stage(drain.step)),
        provider: instance.as_ref().map(|instance| provider(instance.state)),
        physical: kind == Some(PoolKind::Static),
        off: record.off && !view.as_ref().is_some_and(|view| view.connected),
        complete: record.ready_at.is_some() || (listed && complete && faulty.is_none()),
    });
    FleetNode {
        id: id.clone(),
        name: known
            .map(|facts| facts.hostname.clone())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| record.name.clone()),
        pool: pool.map(|pool| pool.name.clone()),
        site: pool.map(|pool| pool.site.clone()),
        cordon: cordon(order.as_ref(), drain.as_ref(), view.as_deref()),
        unreachable,
        lacks: (lifecycle == Lifecycle::Joined)
            .then(|| lacks(view.as_deref(), expected))
            .flatten(),
        faulty,
        used: used(view.as_deref(), &reserved, &allocatable),
        gpu_shares: work::shares(&reserved),
        workloads: work::running(view.as_deref(), &reserved, &told.asked),
        launched: instance
            .as_ref()
            .and_then(|instance| instance.launched)
            // Not older than that at least; a host is as old as it likes.
            .or_else(|| (kind != Some(PoolKind::Static)).then_some(record.joined)),
        gpu_model: model(known, offering, pool),
        instance_type: instance
            .as_ref()
            .map(|instance| instance.instance_type.clone())
            .filter(|kind| !kind.is_empty())
            .or_else(|| known.and_then(|facts| facts.instance_type.clone()))
            .unwrap_or_default(),
        zone: instance
            .as_ref()
            .map(|instance| instance.zone.clone())
            .filter(|zone| !zone.is_empty())
            .or_else(|| known.and_then(|facts| facts.zone.clone()))
            .unwrap_or_default(),
        price: offering.map(|offering| offering.price),
        offering: offering.map(|offering| offering.id.clone()),
        labels: pool
            .map(|pool| marks::labels(pool, reading.map(Arc::as_ref)))
            .unwrap_or_default(),
        taints: pool
            .map(|pool| marks::taints(pool, reading.map(Arc::as_ref)))
            .unwrap_or_default(),
        record: Some(record.clone()),
        order,
        drain,
        agent: view,
        instance_id,
        instance,
        launch,
        lifecycle,
        notices,
        taken,
        allocatable,
        reserved,
        busy,
        idle_since,
    }
}

fn offering_of<'a>(
    ledger: &Ledger,
    reading: Option<&'a Arc<PoolReading>>,
    instance: Option<&Instance>,
    launch: Option<&LaunchId>,
) -> Option<&'a Offering> {
    let reading = reading?;
    let id = instance
        .and_then(|instance| instance.offering.clone())
        .or_else(|| Some(ledger.launches.get(launch?)?.value.offering.clone()));
    match id {
        Some(id) => reading.offerings.iter().find(|found| found.id == id),
        // One offering only: it can be no other.
        None if reading.offerings.len() == 1 => reading.offerings.first(),
        None => None,
    }
}
