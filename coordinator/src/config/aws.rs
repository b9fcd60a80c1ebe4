//! The `[aws]` table: where the API is, and where groups are looked for.
//!
//! Called by `config`. Reads and checks; what is found there is merged by [`Config::with_discovered`].
//!
//! [`Config::with_discovered`]: super::Config::with_discovered

use super::pools::{PoolTerms, terms};
use super::{AwsBudget, DAY, SECOND, budget, millis, regions, url};
use drover_config::Section;
use drover_core::model::{Millis, SiteId};
use std::collections::BTreeMap;

/// The AWS API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aws {
    /// Instead of the public endpoints.
    pub endpoint: Option<String>,
    /// How much is asked.
    pub budget: AwsBudget,
    /// Where groups with the ownership tag become pools.
    pub discover: Vec<Discover>,
    /// How old what was found there may become.
    pub discover_every: Millis,
    /// Queues in which AWS tells what it will do to instances.
    pub queues: Vec<Queue>,
}

/// A queue of SQS that EventBridge or lifecycle hooks write to, and that nobody else reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Region.
    pub region: String,
    /// URL.
    pub url: String,
    /// Role that is assumed to read it; absent: the credentials' own account.
    pub role_arn: Option<String>,
}

impl Default for Aws {
    fn default() -> Self {
        Self {
            endpoint: None,
            budget: AwsBudget::default(),
            discover: Vec::new(),
            discover_every: Millis::minutes(5),
            queues: Vec::new(),
        }
    }
}

/// Regions of one account where groups are looked for, and what holds for pools found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discover {
    /// The regions.
    pub regions: Vec<String>,
    /// Role that is assumed there; absent: the credentials' own account.
    pub role_arn: Option<String>,
    /// Site of the pools; absent: the region's name.
    pub site: Option<SiteId>,
    /// Most nodes of each; absent: the group's own maximum.
    pub max: Option<u32>,
    /// The rest.
    pub terms: PoolTerms,
}

pub(super) fn read(section: &Section<'_>) -> Aws {
    let default = Aws::default();
    let endpoint = section.parsed("endpoint", "http://127.0.0.1:5000", url);
    let budget = budget::read(section);
    let every = section.duration("discover_every", SECOND..=DAY, "5m");
    let mut seen = BTreeMap::new();
    let discover = section
        .sections("discover")
        .into_iter()
        .filter_map(|table| {
            let found = discover(&table, &mut seen);
            table.finish();
            found
        })
        .collect();
    let mut urls = BTreeMap::new();
    let queues = section
        .sections("queue")
        .into_iter()
        .filter_map(|table| {
            let found = queue(&table, &mut urls);
            table.finish();
            found
        })
        .collect();
    section.finish();
    Aws {
        queues,
        endpoint,
        budget,
        discover,
        discover_every: every.map_or(default.discover_every, millis),
    }
}

/// An optional role.
pub(super) fn role(section: &Section<'_>) -> Option<String> {
    section.parsed(
        "role_arn",
        "arn:aws:iam::123456789012:role/drover",
        regions::role_arn,
    )
}

fn queue(section: &Section<'_>, seen: &mut BTreeMap<String, ()>) -> Option<Queue> {
    let example = "https://sqs.us-west-2.amazonaws.com/123456789012/drover";
    for (key, example) in [("region", "us-west-2"), ("url", example)] {
        section.require(key, &format!("write {key} = \"{example}\""));
    }
    let region = section.parsed("region", "us-west-2", regions::region);
    let found = section.parsed("url", example, url);
    let role_arn = role(section);
    let found = found?;
    if seen.insert(found.clone(), ()).is_some() {
        let message = format!("{found:?} is the queue of an earlier table");
        section.report(section.offset(), "url", &message, "name each queue once");
    }
    Some(Queue {
        region: region?,
        url: found,
        role_arn,
    })
}

fn discover(
    section: &Section<'_>,
    seen: &mut BTreeMap<(String, Option<String>), ()>,
) -> Option<Discover> {
    let fix = "write regions = [\"us-east-1\", \"us-west-2\"]";
    section.require("regions", fix);
    let named = section.texts("regions", fix);
    if named.as_ref().is_some_and(Vec::is_empty) {
        section.report(section.offset(), "regions", "is an empty list", fix);
    }
    let role_arn = role(section);
    let mut regions = Vec::new();
    for at in named.into_iter().flatten() {
        match regions::region(&at.value) {
            Ok(region) => {
                if seen
                    .insert((region.clone(), role_arn.clone()), ())
                    .is_some()
                {
                    let message = format!("names {region} again for the same account");
                    section.report(at.offset, "regions", &message, "name each region once");
                } else {
                    regions.push(region);
                }
            }
            // An empty text was reported already.
            Err(_) if at.value.trim().is_empty() => {}
            Err(message) => {
                let fix = regions::advice(&at.value);
                section.report(at.offset, "regions", &message, &fix);
            }
        }
    }
    let site = section.text("site", "write site = \"us-east-1\" or leave it out");
    let min = section.count("min", 0..=100_000);
    let max = section.count("max", 0..=100_000);
    if let (Some(min), Some(max)) = (&min, &max)
        && min.value > max.value
    {
        let message = format!("is {}, above max {}", min.value, max.value);
        section.report(min.offset, "min", &message, "set min to at most max");
    }
    let max = max.map(|at| at.value);
    let terms = terms(section, min.map_or(0, |at| at.value), max);
    (!regions.is_empty()).then_some(Discover {
        regions,
        role_arn,
        site: site.map(|at| SiteId(at.value)),
        max,
        terms,
    })
}
