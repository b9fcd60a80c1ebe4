//! What a group's instance type offers and costs.
//!
//! Called by `reading`. Facts come from DescribeInstanceTypes and are kept for the life of the process: a type never
//! changes. A template's version may be `$Latest`, so it is asked again after [`TEMPLATE_AGE`]. Prices come from the
//! pool's config, else from a compiled-in list of on-demand prices (us-east-1, AWS's public price list).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use drover_aws::{
    AwsApi, AwsError, Group, GroupTemplate, InstanceTypeFacts, Market, Region, TemplateFacts,
    TemplateRef,
};
use drover_core::model::{Bytes, MicroUsd, MilliCpu, Millis, Resources};

/// How long a launch template's facts are believed.
const TEMPLATE_AGE: Millis = Millis::minutes(5);
const PRICES: &str = include_str!("prices.txt");

/// What a group launches, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GroupFacts {
    /// The types, the one to plan with first: the smallest.
    pub(super) types: Vec<InstanceTypeFacts>,
    /// How it pays; a mixed group is planned at on-demand.
    pub(super) spot: bool,
    /// What could not be learnt, for a person.
    pub(super) doubts: Vec<String>,
}

type Templates = BTreeMap<(Region, TemplateRef), (Millis, Option<TemplateFacts>)>;

/// Facts that were learnt.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    types: Mutex<BTreeMap<(Region, String), InstanceTypeFacts>>,
    templates: Mutex<Templates>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Catalogue {
    /// What `group` launches. `now` is monotonic.
    pub(super) async fn facts(
        &self,
        api: &impl AwsApi,
        region: &Region,
        group: &Group,
        now: Millis,
    ) -> Result<GroupFacts, AwsError> {
        let mut facts = GroupFacts::default();
        let mut names: Vec<String> = Vec::new();
        let template = match &group.template {
            GroupTemplate::Template(template) => Some(template),
            GroupTemplate::Mixed(policy) => {
                names.extend(
                    policy
                        .overrides
                        .iter()
                        .filter_map(|o| o.instance_type.clone()),
                );
                if policy.overrides.iter().any(|o| o.by_requirements) {
                    facts
                        .doubts
                        .push("the group chooses types by requirements: name the types".to_owned());
                }
                facts.spot = policy.on_demand_percent_above_base == Some(0)
                    && policy.on_demand_base.unwrap_or(0) == 0;
                policy.template.as_ref()
            }
            GroupTemplate::Configuration(name) => {
                facts.doubts.push(format!(
                    "the group uses the launch configuration {name}: give it a launch template"
                ));
                None
            }
            GroupTemplate::Missing => {
                facts
                    .doubts
                    .push("the group names no launch template".to_owned());
                None
            }
        };
        if let Some(template) = template {
            match self.template(api, region, template, now).await? {
                Some(found) => {
                    if names.is_empty() {
                        names.extend(found.instance_type);
                        facts.spot |= found.market == Market::Spot;
                    }
                }
                None => facts
                    .doubts
                    .push("the group's launch template version does not exist".to_owned()),
            }
        }
        // Without a template that tells, what runs tells; a member is never asked for what it offers.
        if names.is_empty() {
            names.extend(
                group
                    .members
                    .iter()
                    .filter_map(|m| m.instance_type.clone())
                    .filter(|t| !t.is_empty())
                    .take(1),
            );
        }
        names.sort_unstable();
        names.dedup();
        for name in &names {
            match self.instance_type(api, region, name).await? {
                Some(found) => facts.types.push(found),
                None => facts
                    .doubts
                    .push(format!("{region} knows no instance type {name}")),
            }
        }
        facts.types.sort_by_key(size);
        if facts.types.is_empty() && facts.doubts.is_empty() {
            facts
                .doubts
                .push("the group's launch template names no instance type".to_owned());
        }
        Ok(facts)
    }

    async fn template(
        &self,
        api: &impl AwsApi,
        region: &Region,
        template: &TemplateRef,
        now: Millis,
    ) -> Result<Option<TemplateFacts>, AwsError> {
        let key = (region.clone(), template.clone());
        let known = lock(&self.templates)
            .get(&key)
            .filter(|(at, _)| now.minus(*at) < TEMPLATE_AGE)
            .cloned();
        if let Some((_, found)) = known {
            return Ok(found);
        }
        let found = api.describe_template(region, template).await?;
        lock(&self.templates).insert(key, (now, found.clone()));
        Ok(found)
    }

    async fn instance_type(
        &self,
        api: &impl AwsApi,
        region: &Region,
        name: &str,
    ) -> Result<Option<InstanceTypeFacts>, AwsError> {
        let key = (region.clone(), name.to_owned());
        if let Some(known) = lock(&self.types).get(&key).cloned() {
            return Ok(Some(known));
        }
        let found = match api
            .describe_instance_types(region, &[name.to_owned()])
            .await
        {
            Ok(found) => found.into_values().next(),
            Err(error) if error.kind == drover_aws::FailureKind::Config => None,
            Err(error) => return Err(error),
        };
        if let Some(found) = &found {
            lock(&self.types).insert(key, found.clone());
        }
        Ok(found)
    }
}

fn gpus(facts: &InstanceTypeFacts) -> u32 {
    facts.gpus.iter().map(|g| g.count).sum()
}

fn size(facts: &InstanceTypeFacts) -> (u32, Option<u64>, Option<u32>, String) {
    (
        gpus(facts),
        facts.memory_mib,
        facts.vcpus,
        facts.name.clone(),
    )
}

/// What a node of that type offers; nothing when AWS did not say all of it.
pub(super) fn resources(facts: &InstanceTypeFacts) -> Option<Resources> {
    Some(Resources {
        gpu_milli: 0,
        cpu: MilliCpu(u64::from(facts.vcpus?).saturating_mul(1000)),
        memory: Bytes(facts.memory_mib?.saturating_mul(1024 * 1024)),
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

/// USD per hour of a type: the config's figure, else the list's.
pub(super) fn price(
    configured: &BTreeMap<String, MicroUsd>,
    instance_type: &str,
) -> Option<MicroUsd> {
    configured.get(instance_type).copied().or_else(|| {
        let text = PRICES
            .lines()
            .find_map(|line| line.strip_prefix(instance_type)?.strip_prefix(' '))?;
        micro_usd(text)
    })
}

/// `14.4` as millionths.
fn micro_usd(text: &str) -> Option<MicroUsd> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = format!("{part:0<6}");
    let micro: u64 = part.get(..6)?.parse().ok()?;
    Some(MicroUsd(
        whole
            .parse::<u64>()
            .ok()?
            .checked_mul(1_000_000)?
            .checked_add(micro)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_price_list_is_a_price() {
        for line in PRICES.lines() {
            let (name, _) = line.split_once(' ').expect("a type and a price");
            let found = price(&BTreeMap::new(), name).expect(line);
            assert!(found > MicroUsd(0), "{line}");
        }
        assert_eq!(micro_usd("14.4"), Some(MicroUsd(14_400_000)));
        assert_eq!(micro_usd("3"), Some(MicroUsd(3_000_000)));
        assert_eq!(
            price(&BTreeMap::new(), "x9.huge"),
            None,
            "an unknown price is not zero"
        );
        let own = BTreeMap::from([("g5.xlarge".to_owned(), MicroUsd(1))]);
        assert_eq!(price(&own, "g5.xlarge"), Some(MicroUsd(1)));
    }
}
