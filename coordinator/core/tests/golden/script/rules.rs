//! Words of a script for rules about places and neighbours. Whom: `key:value` or `*` (everybody); where: `host`, `zone`
//! or a label. `near=app:web@zone`, `away=app:web@host`, `spread=app:web@zone@SKEW[@FEWEST DOMAINS]`, `soft=` the same as
//! a wish, `wish=app:web@host@WEIGHT`, `port=80`, `is.app=web`, `ns=team`, `share=MILLI`, `not.k=v has.k lacks.k above.k=5
//! below.k=5`, `any=k:v|k:v`, `prefer.k=v@WEIGHT`.

use drover_core::model::{
    Class, HostPort, Near, NodeInput, Operator, Preferred, PreferredNear, Requirement, Running,
    Selector, Spread,
};
use std::collections::{BTreeMap, BTreeSet};

fn num<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

fn topology(text: &str) -> String {
    match text {
        "host" => "kubernetes.io/hostname".to_owned(),
        "zone" => "topology.kubernetes.io/zone".to_owned(),
        other => other.to_owned(),
    }
}

fn requirement(key: &str, op: Operator, values: &str) -> Requirement {
    let values = values.split('+').filter(|v| !v.is_empty());
    Requirement {
        key: key.to_owned(),
        op,
        any_of: values.map(str::to_owned).collect(),
    }
}

fn whom(text: &str) -> Selector {
    let pair = text.split_once(':');
    Selector {
        requirements: pair
            .map(|(k, v)| requirement(k, Operator::In, v))
            .into_iter()
            .collect(),
        namespaces: BTreeSet::new(),
        everywhere: false,
    }
}

/// `WHOM@WHERE[@a[@b]]`.
fn near(text: &str) -> Result<(Near, Vec<&str>), String> {
    let mut parts = text.split('@');
    let select = whom(parts.next().unwrap_or_default());
    let at = parts.next().ok_or_else(|| format!("WHOM@WHERE: {text}"))?;
    let near = Near {
        topology: topology(at),
        select,
    };
    Ok((near, parts.collect()))
}

fn spread(text: &str, hard: bool) -> Result<Spread, String> {
    let (Near { topology, select }, rest) = near(text)?;
    Ok(Spread {
        topology,
        select,
        max_skew: rest.first().map_or(Ok(1), |n| num(n))?,
        min_domains: rest.get(1).map_or(Ok(0), |n| num(n))?,
        hard,
    })
}

fn port(text: &str) -> Result<HostPort, String> {
    Ok(HostPort {
        port: num(text)?,
        protocol: "TCP".to_owned(),
        address: String::new(),
    })
}

/// A word of a `demand` line; false when it is not one of these.
pub fn demand(class: &mut Class, key: &str, value: &str) -> Result<bool, String> {
    let c = &mut class.constraints;
    match key {
        "ns" => class.namespace = value.to_owned(),
        "share" => class.unit.gpu_milli = num(value)?,
        "port" => drop(c.host_ports.insert(port(value)?)),
        "near" => c.affinity.push(near(value)?.0),
        "away" => c.anti_affinity.push(near(value)?.0),
        "spread" => c.spread.push(spread(value, true)?),
        "soft" => c.spread.push(spread(value, false)?),
        "wish" => {
            let (near, rest) = near(value)?;
            let weight = num(rest.first().ok_or("wish needs a weight")?)?;
            c.preferred_near.push(PreferredNear { weight, near });
        }
        "any" => {
            for term in value.split('|') {
                let (k, v) = term.split_once(':').ok_or("any=k:v|k:v")?;
                c.any_of.push(vec![requirement(k, Operator::In, v)]);
            }
        }
        _ => {
            let Some((word, k)) = key.split_once('.') else {
                return Ok(false);
            };
            let op = match word {
                "is" => {
                    class.labels.insert(k.to_owned(), value.to_owned());
                    return Ok(true);
                }
                "x" => {
                    class.unit.extended.insert(k.to_owned(), num(value)?);
                    return Ok(true);
                }
                "prefer" => {
                    let (v, weight) = value.split_once('@').ok_or("prefer.k=v@WEIGHT")?;
                    c.preferred.push(Preferred {
                        weight: num(weight)?,
                        requirements: vec![requirement(k, Operator::In, v)],
                    });
                    return Ok(true);
                }
                "not" => Operator::NotIn,
                "has" => Operator::Exists,
                "lacks" => Operator::Absent,
                "above" => Operator::Above,
                "below" => Operator::Below,
                _ => return Ok(false),
            };
            c.requirements.push(requirement(k, op, value));
        }
    }
    Ok(true)
}

/// A word of a `node` line: `runs=app:web*2` and what those keep away or take (`keeps=app:web@host`, `takes=80`),
/// `shares=200+500`.
pub fn node(node: &mut NodeInput, key: &str, value: &str) -> Result<bool, String> {
    match key {
        "runs" => {
            let (labels, count) = value.split_once('*').unwrap_or((value, "1"));
            let pairs = labels.split('+').filter_map(|l| l.split_once(':'));
            node.workloads.push(Running {
                count: num(count)?,
                labels: pairs
                    .map(|(k, v)| (k.to_owned(), v.to_owned()))
                    .collect::<BTreeMap<_, _>>(),
                ..running()
            });
        }
        "keeps" => node.workloads.push(Running {
            anti_affinity: vec![near(value)?.0],
            ..running()
        }),
        "takes" => node.workloads.push(Running {
            host_ports: BTreeSet::from([port(value)?]),
            ..running()
        }),
        "shares" => {
            let all = value.split('+').map(num);
            node.gpu_shares = all.collect::<Result<_, _>>()?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn running() -> Running {
    Running {
        count: 1,
        unit: drover_core::model::Resources::default(),
        labels: BTreeMap::new(),
        namespace: String::new(),
        team: String::new(),
        host_ports: BTreeSet::new(),
        anti_affinity: Vec::new(),
        started: None,
        ends: None,
        movable: false,
    }
}
