//! What instance types offer and what launch templates say, with the age that each may have.
//!
//! Called by `template`. Facts come from DescribeInstanceTypes and are kept for the life of the process: a type never
//! changes. Where AWS does not answer, the compiled-in list (`known`) does, and it is said. A template's version may be
//! `$Latest`, so it is asked again after [`TEMPLATE_AGE`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use drover_aws::{
    AwsApi, AwsError, FailureKind, InstanceTypeFacts, Region, TemplateFacts, TemplateRef,
};
use drover_core::model::{Bytes, MicroUsd, MilliCpu, Millis, Resources};

mod known;
mod list;

pub(super) use known::PRICED_IN;

/// How long a launch template's facts are believed.
const TEMPLATE_AGE: Millis = Millis::minutes(5);
/// How long a type is not asked for again that the region did not know.
const NOWHERE_AGE: Millis = Millis::minutes(60);
/// How long nothing is asked again that could not be read.
const FAILED_AGE: Millis = Millis::minutes(1);
/// Of a virtual machine's memory, in thousandths, what its hypervisor and its kernel keep: what Karpenter takes for types
/// that it has not seen yet (`vmMemoryOverheadPercent`, 7.5 %). A node that promises more than it has is asked for in vain.
const KEPT_PERMILLE: u64 = 75;

/// A launch template as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    /// What it says; nothing when that version does not exist.
    pub(super) facts: Option<TemplateFacts>,
    /// What it said before, when another version took its place since the start.
    pub(super) before: Option<TemplateFacts>,
    at: Millis,
}

/// What is known of a type in a region.
#[derive(Debug, Clone)]
enum Learnt {
    Facts(InstanceTypeFacts),
    /// The region does not know it; when it was asked.
    Nowhere(Millis),
    /// It could not be read; when, and why.
    Failed(Millis, String),
}

impl Learnt {
    fn holds(&self, now: Millis) -> bool {
        match self {
            Self::Facts(_) => true,
            Self::Nowhere(at) => now.minus(*at) < NOWHERE_AGE,
            Self::Failed(at, _) => now.minus(*at) < FAILED_AGE,
        }
    }
}

/// Types by name, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Types {
    /// What they offer.
    pub(super) known: Vec<InstanceTypeFacts>,
    /// Nobody knows what these offer.
    pub(super) unknown: Vec<String>,
    /// What a person should mend.
    pub(super) doubts: Vec<String>,
    /// Where facts came from the list instead of AWS.
    pub(super) remarks: Vec<String>,
}

/// Facts that were learnt.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    types: Mutex<BTreeMap<(Region, String), Learnt>>,
    templates: Mutex<BTreeMap<(Region, TemplateRef), Template>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Catalogue {
    /// The template, at most [`TEMPLATE_AGE`] old; older only while it cannot be read. `now` is monotonic.
    pub(super) async fn template(
        &self,
        api: &impl AwsApi,
        region: &Region,
        template: &TemplateRef,
        now: Millis,
    ) -> Result<Template, AwsError> {
        let key = (region.clone(), template.clone());
        let old = lock(&self.templates).get(&key).cloned();
        if let Some(old) = old.as_ref().filter(|t| now.minus(t.at) < TEMPLATE_AGE) {
            return Ok(old.clone());
        }
        let facts = match (api.describe_template(region, template).await, old.clone()) {
            (Ok(facts), _) => facts,
            (Err(error), Some(mut old)) => {
                tracing::warn!(%region, %error, "a launch template cannot be read: what it said before counts");
                let next = TEMPLATE_AGE.0.saturating_sub(FAILED_AGE.0);
                old.at = Millis(now.0.saturating_sub(next));
                lock(&self.templates).insert(key, old.clone());
                return Ok(old);
            }
            (Err(error), None) => return Err(error),
        };
        let before = old.and_then(|old| {
            let was = old.facts.clone();
            let moved = was.is_some() && facts.is_some() && was != facts;
            if moved { was } else { old.before }
        });
        let found = Template {
            facts,
            before,
            at: now,
        };
        lock(&self.templates).insert(key, found.clone());
        Ok(found)
    }

    /// What these types offer in this region. `now` is monotonic.
    pub(super) async fn types(
        &self,
        api: &impl AwsApi,
        region: &Region,
        names: &[String],
        now: Millis,
    ) -> Types {
        let missing: Vec<String> = {
            let learnt = lock(&self.types);
            let key = |name: &&String| (region.clone(), (*name).clone());
            let missing = |name: &&String| !learnt.get(&key(name)).is_some_and(|l| l.holds(now));
            names.iter().filter(missing).cloned().collect()
        };
        self.learn(api, region, &missing, now).await;
        let learnt = lock(&self.types);
        let mut types = Types::default();
        for name in names {
            match learnt.get(&(region.clone(), name.clone())) {
                Some(Learnt::Facts(facts)) => types.known.push(facts.clone()),
                Some(Learnt::Failed(_, why)) => match known::facts(name) {
                    Some(facts) => {
                        types.known.push(facts);
                        types.remarks.push(format!(
                            "what {name} offers is taken from the built-in list, since AWS did not tell: {why}"
                        ));
                    }
                    None => {
                        types.unknown.push(name.clone());
                        types
                            .doubts
                            .push(format!("what {name} offers cannot be read: {why}"));
                    }
                },
                Some(Learnt::Nowhere(_)) | None => {
                    types.unknown.push(name.clone());
                    types
                        .doubts
                        .push(format!("{region} knows no instance type {name}"));
                }
            }
        }
        types
    }

    /// Asks for all at once; where one that AWS does not know fails the whole call, for each.
    async fn learn(&self, api: &impl AwsApi, region: &Region, names: &[String], now: Millis) {
        if names.is_empty() {
            return;
        }
        let key = |name: &String| (region.clone(), name.clone());
        match api.describe_instance_types(region, names).await {
            Ok(mut found) => {
                let mut learnt = lock(&self.types);
                for name in names {
                    let facts = found.remove(name);
                    let facts = facts.map_or(Learnt::Nowhere(now), Learnt::Facts);
                    learnt.insert(key(name), facts);
                }
            }
            Err(error) if error.kind == FailureKind::Config && names.len() > 1 => {
                for name in names {
                    Box::pin(self.learn(api, region, std::slice::from_ref(name), now)).await;
                }
            }
            Err(error) => {
                let what = if error.kind == FailureKind::Config {
                    Learnt::Nowhere(now)
                } else {
                    Learnt::Failed(now, error.to_string())
                };
                let mut learnt = lock(&self.types);
                for name in names {
                    learnt.insert(key(name), what.clone());
                }
            }
        }
    }
}

fn gpus(facts: &InstanceTypeFacts) -> u32 {
    facts.gpus.iter().map(|g| g.count).sum()
}

/// The order in which types are preferred for planning: the smallest first.
pub(super) fn size(facts: &InstanceTypeFacts) -> (u32, Option<u64>, Option<u32>, String) {
    (
        gpus(facts),
        facts.memory_mib,
        facts.vcpus,
        facts.name.clone(),
    )
}

/// What a node of that type offers to work; nothing when AWS did not say all of it.
pub(super) fn resources(facts: &InstanceTypeFacts) -> Option<Resources> {
    let memory = facts.memory_mib?.saturating_mul(1024 * 1024);
    let kept = if facts.bare_metal == Some(true) {
        0
    } else {
        memory / 1_000 * KEPT_PERMILLE
    };
    Some(Resources {
        gpu_milli: 0,
        cpu: MilliCpu(u64::from(facts.vcpus?).saturating_mul(1000)),
        memory: Bytes(memory.saturating_sub(kept)),
        gpus: gpus(facts),
        ..Resources::default()
    })
}

/// The GPU model as requests name it: lower case, with dashes.
pub(super) fn gpu_model(facts: &InstanceTypeFacts) -> String {
    facts
        .gpus
        .first()
        .map(|g| g.model.trim().to_lowercase().replace(' ', "-"))
        .unwrap_or_default()
}

/// USD per hour on demand: the config's figure, else the list's, which holds in [`PRICED_IN`].
pub(super) fn price(
    configured: &BTreeMap<String, MicroUsd>,
    instance_type: &str,
) -> Option<MicroUsd> {
    let configured = configured.get(instance_type).copied();
    configured.or_else(|| known::price(instance_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_prices_before_the_list() {
        assert_eq!(
            price(&BTreeMap::new(), "g5.xlarge"),
            Some(MicroUsd(1_006_000))
        );
        let own = BTreeMap::from([("g5.xlarge".to_owned(), MicroUsd(1))]);
        assert_eq!(price(&own, "g5.xlarge"), Some(MicroUsd(1)));
        assert_eq!(price(&own, "x9.huge"), None, "an unknown price is not zero");
    }

    #[test]
    fn a_virtual_machine_promises_less_memory_than_its_type() {
        let facts = known::facts("g5.xlarge").expect("known");
        let offers = resources(&facts).expect("all is said");
        assert_eq!((offers.gpus, offers.cpu.0), (1, 4_000));
        assert!(offers.memory < Bytes(16 << 30) && offers.memory > Bytes(14 << 30));
        let metal = known::facts("c5.metal").expect("known");
        let all = metal.memory_mib.expect("said") << 20;
        assert_eq!(resources(&metal).map(|r| r.memory), Some(Bytes(all)));
        let odd = InstanceTypeFacts {
            memory_mib: None,
            ..facts
        };
        assert_eq!(resources(&odd), None, "what was not said is not zero");
    }
}
