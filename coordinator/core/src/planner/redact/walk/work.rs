//! The texts of nodes, of what runs there, and of what waits. Used by `walk`.

use super::place::{self, labels, taints};
use super::{Kind, See, amounts};
use crate::model::{Busy, Class, Cordon, DrainInfo, Gang, NodeInput, Reserved, Running, Source};

pub(super) fn node(node: &mut NodeInput, see: See<'_>) {
    let NodeInput {
        id,
        name,
        pool,
        site,
        zone,
        instance,
        offering,
        lifecycle: _,
        cordon,
        unreachable: _,
        faulty,
        allocatable,
        used,
        gpu_shares: _,
        workloads,
        reserved,
        gpu_model,
        labels: own,
        taints: tainted,
        busy,
        drain,
        price: _,
        launched: _,
        last_ran: _,
    } = node;
    see(Kind::Node, &mut id.0);
    see(Kind::Host, name);
    if let Some(pool) = pool {
        see(Kind::Pool, &mut pool.0);
    }
    if let Some(site) = site {
        see(Kind::Site, &mut site.0);
    }
    see(Kind::Zone, zone);
    if let Some(instance) = instance {
        see(Kind::Instance, &mut instance.0);
    }
    if let Some(offering) = offering {
        see(Kind::Offering, &mut offering.0);
    }
    if let Some(Cordon::Person { who, why }) = cordon {
        see(Kind::Person, who);
        see(Kind::Text, why);
    }
    if let Some(what) = faulty {
        see(Kind::Text, what);
    }
    amounts(allocatable, see);
    amounts(used, see);
    workloads.iter_mut().for_each(|w| running(w, see));
    for held in reserved {
        let Reserved {
            request,
            units: _,
            amount,
            team,
            ends: _,
        } = held;
        see(Kind::Request, &mut request.0);
        see(Kind::Team, team);
        amounts(amount, see);
    }
    see(Kind::Kept, gpu_model);
    labels(own, see);
    taints(tainted, see);
    match busy {
        Busy::Idle { since: _ } => {}
        Busy::Working { what, movable: _ } => what.iter_mut().for_each(|w| see(Kind::Text, w)),
        Busy::Unknown { why } => see(Kind::Text, why),
    }
    if let Some(drain) = drain {
        let DrainInfo {
            id,
            own_idle: _,
            moving: _,
            since: _,
            reason,
        } = drain;
        see(Kind::Drain, &mut id.0);
        see(Kind::Text, reason);
    }
}

fn running(running: &mut Running, see: See<'_>) {
    let Running {
        count: _,
        unit,
        labels: own,
        namespace,
        team,
        host_ports,
        anti_affinity,
        started: _,
        ends: _,
        movable: _,
    } = running;
    amounts(unit, see);
    labels(own, see);
    see(Kind::Namespace, namespace);
    see(Kind::Team, team);
    place::ports(host_ports, see);
    anti_affinity.iter_mut().for_each(|n| place::near(n, see));
}

pub(super) fn class(class: &mut Class, see: See<'_>) {
    let Class {
        source,
        unit,
        whole_node: _,
        count: _,
        constraints,
        gang,
        priority: _,
        submitted: _,
        labels: own,
        namespace,
        team,
        run_time: _,
        max_wait: _,
        deadline: _,
    } = class;
    match source {
        Source::Request(name) => see(Kind::Request, &mut name.0),
        Source::Scheduler(name) => see(Kind::Source, name),
    }
    amounts(unit, see);
    place::constraints(constraints, see);
    if let Some(gang) = gang {
        let Gang {
            min: _,
            assigned: _,
            locality: _,
            hold: _,
            holding_since: _,
        } = gang;
    }
    labels(own, see);
    see(Kind::Namespace, namespace);
    see(Kind::Team, team);
}
