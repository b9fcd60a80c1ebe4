//! Keys of case files about what goes and why: ages, disruption budgets, work that can move. Used by `script`.

use super::{moment, num, spaced, span};
use drover_core::model::{
    Anticipate, Disruption, NodeInput, PoolInput, Quota, Resources, Running, UnixMs,
};

/// Keys of a `pool` line; true when it was one.
pub fn pool_key(pool: &mut PoolInput, key: &str, value: &str) -> Result<bool, String> {
    match key {
        "idle" => pool.idle_after = span(value)?,
        "expire" => pool.expire_after = Some(span(value)?),
        "anticipate" => pool.anticipate = (value == "yes").then(Anticipate::default),
        "percent" => pool.quota = Quota::Percent(num(value)?),
        // budget=NAME:MOST[:MINUTE or -[:strategy+strategy]]
        "budget" if value == "none" => pool.disruption.clear(),
        "budget" => {
            let mut parts = value.split(':');
            let name = spaced(parts.next().unwrap_or_default());
            let most = match parts.next().ok_or("budget=name:most")?.strip_suffix('%') {
                Some(percent) => Quota::Percent(num(percent)?),
                None => Quota::Count(num(value.split(':').nth(1).unwrap_or_default())?),
            };
            let until = parts.next().filter(|t| *t != "-").map(moment).transpose()?;
            let strategies = parts.next().into_iter().flat_map(|t| t.split('+'));
            pool.disruption.push(Disruption {
                most,
                strategies: strategies.map(str::to_owned).collect(),
                until,
                name,
            });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Keys of a `node` line; true when it was one.
pub fn node_key(node: &mut NodeInput, now: UnixMs, key: &str, value: &str) -> Result<bool, String> {
    match key {
        "ran" => node.last_ran = Some(span(value)?),
        "age" => node.launched = Some(UnixMs(now.0 - span(value)?.0)),
        "price" => node.price = drover_core::model::MicroUsd(num(value)?),
        // work=COUNTxGPUS[:SPAN since its start[:stays]]: work that says that it can move.
        "work" => {
            let mut parts = value.split(':');
            let (count, gpus) = parts
                .next()
                .and_then(|t| t.split_once('x'))
                .ok_or("work=countxgpus")?;
            let started = parts.next().map(span).transpose()?;
            node.workloads.push(Running {
                count: num(count)?,
                unit: Resources {
                    gpus: num(gpus)?,
                    ..Resources::default()
                },
                labels: std::collections::BTreeMap::new(),
                namespace: String::new(),
                team: String::new(),
                host_ports: std::collections::BTreeSet::new(),
                anti_affinity: Vec::new(),
                started: started.map(|ago| UnixMs(now.0 - ago.0)),
                ends: None,
                movable: parts.next() != Some("stays"),
            });
        }
        _ => return Ok(false),
    }
    Ok(true)
}
