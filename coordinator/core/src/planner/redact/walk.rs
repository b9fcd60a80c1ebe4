//! Every text of a plan input, with its kind. Used by `redact`. Structs are taken apart field by field, so that a new
//! field does not compile until somebody has said whether it is a name.

mod place;
mod work;

use crate::model::{
    Asked, AskedKind, Demanded, Disruption, LaunchInFlight, Learnt, MemoryEntry, Offering,
    PlanInput, Policy, PoolInput, ReservedRoom, Resources, Stop,
};
use place::{labels, rebuilt, taints};
use std::collections::BTreeMap;

/// What a text is. A text of several kinds is called by the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Kept,
    Pool,
    Node,
    Host,
    Site,
    Zone,
    Offering,
    Instance,
    Reservation,
    Launch,
    Drain,
    Request,
    Source,
    Team,
    Namespace,
    Headroom,
    Budget,
    Person,
    Resource,
    Address,
    Key,
    Value,
    Text,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Pool => "pool",
            Self::Node => "node",
            Self::Host => "host",
            Self::Site => "site",
            Self::Zone => "zone",
            Self::Offering => "offering",
            Self::Instance => "instance",
            Self::Reservation => "reservation",
            Self::Launch => "launch",
            Self::Drain => "drain",
            Self::Request => "request",
            Self::Source => "source",
            Self::Team => "team",
            Self::Namespace => "namespace",
            Self::Headroom => "headroom",
            Self::Budget => "budget",
            Self::Person => "person",
            Self::Resource => "resource",
            Self::Address => "address",
            Self::Key => "key",
            Self::Value => "value",
            Self::Text => "text",
        }
    }
}

/// Who looks at a text, and may change it.
pub(super) type See<'f> = &'f mut dyn FnMut(Kind, &mut String);

/// All texts of an input.
pub(super) fn texts(input: &mut PlanInput, see: See<'_>) {
    let PlanInput {
        version: _,
        now: _,
        seed: _,
        pools,
        nodes,
        classes,
        launches,
        memory,
        policy,
        learnt,
    } = input;
    pools.iter_mut().for_each(|p| pool(p, see));
    nodes.iter_mut().for_each(|n| work::node(n, see));
    classes.iter_mut().for_each(|c| work::class(c, see));
    for launch in launches {
        let LaunchInFlight {
            id,
            pool,
            offering,
            count: _,
            shown: _,
            asked: _,
            deadline: _,
            reserved,
        } = launch;
        see(Kind::Launch, &mut id.0);
        see(Kind::Pool, &mut pool.0);
        see(Kind::Offering, &mut offering.0);
        for (request, _) in reserved {
            see(Kind::Request, &mut request.0);
        }
    }
    for entry in memory {
        let MemoryEntry {
            offering,
            kind: _,
            failed: _,
            next_probe: _,
            ration: _,
            message,
        } = entry;
        see(Kind::Offering, &mut offering.0);
        see(Kind::Text, message);
    }
    fleet(policy, see);
    let Learnt {
        lives: _,
        demanded,
        asked,
    } = learnt;
    let Asked {
        units: _,
        next: _,
        kinds,
        shares: _,
        residual: _,
    } = asked;
    for kind in kinds {
        let AskedKind {
            constraints,
            gpus: _,
            cpu_log2: _,
            weight: _,
            cpu: _,
            memory: _,
        } = kind;
        place::constraints(constraints, see);
    }
    *demanded = std::mem::take(demanded)
        .into_iter()
        .map(|(mut pool, mut last)| {
            let Demanded { at: _, offering } = &mut last;
            see(Kind::Pool, &mut pool.0);
            if let Some(offering) = offering {
                see(Kind::Offering, &mut offering.0);
            }
            (pool, last)
        })
        .collect();
}

fn fleet(policy: &mut Policy, see: See<'_>) {
    let Policy {
        max_cost: _,
        max_gpus: _,
        settle: _,
        consolidate: _,
        headroom,
        teams,
    } = policy;
    for room in headroom {
        see(Kind::Headroom, &mut room.name);
        amounts(&mut room.unit, see);
        place::constraints(&mut room.constraints, see);
    }
    rebuilt(teams, |team, _| see(Kind::Team, team));
}

fn pool(pool: &mut PoolInput, see: See<'_>) {
    let PoolInput {
        id,
        kind: _,
        site,
        mode: _,
        stops,
        min: _,
        floor: _,
        max: _,
        config_max: _,
        spare: _,
        idle_after: _,
        anticipate: _,
        expire_after: _,
        quota: _,
        disruption,
        rank: _,
        labels: own,
        taints: tainted,
        offerings,
        steering: _,
        removable: _,
        unmanaged: _,
        read_at: _,
    } = pool;
    see(Kind::Pool, &mut id.0);
    see(Kind::Site, &mut site.0);
    stops.iter_mut().for_each(|s| stop(s, see));
    for budget in disruption {
        let Disruption {
            most: _,
            strategies: _,
            until: _,
            name,
        } = budget;
        see(Kind::Budget, name);
    }
    labels(own, see);
    taints(tainted, see);
    for offering in offerings {
        let Offering {
            id,
            instance_type,
            zone,
            market: _,
            price: _,
            allocatable,
            gpu_model,
            boot: _,
            available: _,
            reservations,
        } = offering;
        see(Kind::Offering, &mut id.0);
        see(Kind::Kept, instance_type);
        see(Kind::Zone, zone);
        see(Kind::Kept, gpu_model);
        for ReservedRoom {
            reservation,
            nodes: _,
        } in reservations
        {
            see(Kind::Reservation, &mut reservation.0);
        }
        if let Some(size) = allocatable {
            amounts(size, see);
        }
    }
}

fn stop(stop: &mut Stop, see: See<'_>) {
    match stop {
        Stop::Frozen { by, why } | Stop::Paused { by, why } => {
            see(Kind::Person, by);
            see(Kind::Text, why);
        }
        Stop::Failed { failure: _, why }
        | Stop::Stale { may_grow: _, why }
        | Stop::NoRemoval { why }
        | Stop::NotOurs { why } => see(Kind::Text, why),
        Stop::NeverJoined { misses: _ } | Stop::SiteSilent => {}
    }
}

fn amounts(size: &mut Resources, see: See<'_>) {
    let Resources {
        cpu: _,
        memory: _,
        gpus: _,
        gpu_milli: _,
        extended,
    } = size;
    let extended: &mut BTreeMap<String, u64> = extended;
    rebuilt(extended, |name, _| {
        see(
            if place::known_resource(name) {
                Kind::Kept
            } else {
                Kind::Resource
            },
            name,
        );
    });
}
