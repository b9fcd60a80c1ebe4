//! What a group launches: types, market, image; from its launch template or its mixed instances policy, never from its
//! nodes.
//!
//! Called by `observe`. **Invariant:** what a node says of itself never changes what the group is planned with: a node
//! that is not ready would teach that the group has no GPUs.

use std::collections::BTreeSet;

use drover_aws::{
    AwsApi, AwsError, Group, GroupTemplate, InstanceTypeFacts, Market, Region, ReservationUse,
    TemplateFacts, TemplateRef,
};
use drover_core::model::Millis;

use super::AsgPool;
use super::catalogue::{self, Catalogue, Template};

/// What a group launches, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GroupFacts {
    /// The types that are planned with, the smallest first.
    pub(super) types: Vec<InstanceTypeFacts>,
    /// Types of the group that nobody knows anything of.
    pub(super) unknown: Vec<String>,
    /// How its launches use capacity reservations.
    pub(super) reservations: ReservationUse,
    /// How it pays; a group that mixes both is planned at on-demand.
    pub(super) spot: bool,
    /// The template, its version and its image, as they are in force; empty when they are not known.
    pub(super) made_from: String,
    /// What could not be learnt or should be mended, for a person.
    pub(super) doubts: Vec<String>,
    /// What is worth knowing.
    pub(super) remarks: Vec<String>,
}

/// What `pool`'s group launches. `now` is monotonic.
pub(super) async fn facts(
    catalogue: &Catalogue,
    api: &impl AwsApi,
    pool: &AsgPool,
    group: &Group,
    now: Millis,
) -> Result<GroupFacts, AwsError> {
    let region = &pool.region;
    let mut facts = GroupFacts::default();
    let mut names: Vec<String> = Vec::new();
    let mut by_requirements = false;
    let template = match &group.template {
        GroupTemplate::Template(template) => Some(template),
        GroupTemplate::Mixed(policy) => {
            let overrides = policy.overrides.iter();
            names.extend(overrides.filter_map(|o| o.instance_type.clone()));
            by_requirements = policy.overrides.iter().any(|o| o.by_requirements);
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
        let found = catalogue.template(api, region, template, now).await?;
        tell(&mut facts, template, &found);
        if let Some(found) = &found.facts {
            facts.reservations = found.reservations.clone();
        }
        if let Some(found) = found.facts
            && names.is_empty()
            && !by_requirements
        {
            names.extend(found.instance_type);
            facts.spot |= found.market == Market::Spot;
        }
    }
    // A launch configuration is not read; AWS's own word on a member's type tells.
    if names.is_empty() && !by_requirements {
        let members = group.members.iter();
        let told = members.filter_map(|m| m.instance_type.clone());
        names.extend(told.filter(|t| !t.is_empty()).take(1));
    }
    let names = chosen(&mut facts, pool, names, by_requirements, region);
    let types = catalogue.types(api, region, &names, now).await;
    facts.types = types.known;
    facts.types.sort_by_key(catalogue::size);
    facts.unknown = types.unknown;
    facts.doubts.extend(types.doubts);
    facts.remarks.extend(types.remarks);
    if facts.types.is_empty() && facts.doubts.is_empty() {
        facts
            .doubts
            .push("the group's launch template names no instance type".to_owned());
    }
    Ok(facts)
}

/// What a person is told of the template.
fn tell(facts: &mut GroupFacts, asked: &TemplateRef, found: &Template) {
    let name = asked
        .name
        .as_deref()
        .or(asked.id.as_deref())
        .unwrap_or("without a name");
    let version = asked.version.as_deref().unwrap_or_default();
    let Some(now) = &found.facts else {
        let which = match version {
            "" => "has no default version".to_owned(),
            version => format!("has no version {version}"),
        };
        let hint = "give the group a version that there is";
        facts
            .doubts
            .push(format!("the launch template {name} {which}: {hint}"));
        return;
    };
    let number = now
        .version
        .map_or_else(|| "of unknown number".to_owned(), |n| n.to_string());
    let which = match version {
        "" => format!("version {number}, its default, since the group names none"),
        "$Latest" => format!("version {number}, its latest"),
        "$Default" => format!("version {number}, its default"),
        _ => format!("version {number}"),
    };
    let image = now
        .image
        .as_ref()
        .map_or_else(String::new, |image| format!(", image {image}"));
    if now.version.is_some() {
        facts.made_from = format!("{name} version {number}{image}");
    }
    facts
        .remarks
        .push(format!("launches from template {name}, {which}{image}"));
    if let Some(before) = &found.before
        && before.version != now.version
    {
        facts.doubts.push(moved(name, before, now));
    }
}

/// Nodes that are there may differ from those to come.
fn moved(name: &str, before: &TemplateFacts, now: &TemplateFacts) -> String {
    let number = |facts: &TemplateFacts| {
        facts
            .version
            .map_or_else(|| "unknown".to_owned(), |n| n.to_string())
    };
    let mut changes = Vec::new();
    let mut change = |what: &str, before: Option<&str>, now: Option<&str>| {
        if before != now {
            let word = |text: Option<&str>| text.unwrap_or("none").to_owned();
            changes.push(format!("{what} {} instead of {}", word(now), word(before)));
        }
    };
    change(
        "type",
        before.instance_type.as_deref(),
        now.instance_type.as_deref(),
    );
    change("image", before.image.as_deref(), now.image.as_deref());
    let changes = if changes.is_empty() {
        String::new()
    } else {
        format!(": {}", changes.join(", "))
    };
    format!(
        "launch template {name} went from version {} to {}{changes}; nodes that run keep what they were started from",
        number(before),
        number(now)
    )
}

/// The types that are planned with: the group's, or those of them that the pool names.
fn chosen(
    facts: &mut GroupFacts,
    pool: &AsgPool,
    mut names: Vec<String>,
    by_requirements: bool,
    region: &Region,
) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    if by_requirements {
        if pool.instance_types.is_empty() {
            facts.doubts.push(
                "the group chooses types by requirements: name those to plan with in the pool's instance_types"
                    .to_owned(),
            );
        } else {
            facts.remarks.push(
                "the group chooses types by requirements: it is planned with the pool's instance_types, and AWS may launch \
                 others"
                    .to_owned(),
            );
            names.clone_from(&pool.instance_types);
        }
        return names;
    }
    if pool.instance_types.is_empty() || names.is_empty() {
        return names;
    }
    let (wished, left): (Vec<_>, Vec<_>) = names
        .into_iter()
        .partition(|name| pool.instance_types.contains(name));
    let here: BTreeSet<&String> = wished.iter().collect();
    let strangers: Vec<&str> = pool
        .instance_types
        .iter()
        .filter(|name| !here.contains(name))
        .map(String::as_str)
        .collect();
    if !strangers.is_empty() {
        let what = strangers.join(", ");
        facts.doubts.push(format!(
            "instance_types names {what}, which the group in {region} does not launch"
        ));
    }
    if !left.is_empty() {
        let what = left.join(", ");
        facts.doubts.push(format!(
            "the group may launch {what} as well, which instance_types leaves out: nobody but AWS chooses among its types, so \
             take them out of the group"
        ));
    }
    wished
}
