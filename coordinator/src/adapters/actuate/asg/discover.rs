//! Groups that become pools because they carry the ownership tag: looked for in every region and account of the config.
//!
//! Called by `app`, which merges what is found into the config that control sees. It only reads. **Invariant:** a region
//! that does not answer keeps what was found there before; a group without the tag, or with another coordinator's, is no
//! pool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use drover_aws::{AwsError, AwsSurvey, FailureKind, Region};
use drover_core::model::{PoolId, SiteId};
use futures::future::join_all;

use super::owner::{OWNER_TAG, Owner};
use crate::config::{
    AsgPool as Source, Aws, Config, Discover, Origin, PoolConfig, PoolSource, plain,
};
use crate::records::DiscoveredGroup;

/// Tag that names the pool of a group.
pub const POOL_TAG: &str = "drover:pool";
/// Longest time for one region.
const PATIENCE: Duration = Duration::from_secs(10);
/// Groups of one region at most; more are reported and left out.
const MOST: usize = 1_000;

/// What was found so far, by region.
pub struct Discovery {
    survey: Arc<dyn AwsSurvey>,
    owner: Owner,
    found: BTreeMap<Region, Vec<DiscoveredGroup>>,
    /// Regions that AWS has been heard from.
    answered: BTreeSet<Region>,
    patience: Duration,
}

/// Pools of what was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Pools, by region and group.
    pub pools: Vec<PoolConfig>,
    /// Groups that could not become pools, and why.
    pub skipped: Vec<String>,
}

impl Discovery {
    /// Nothing found yet.
    #[must_use]
    pub fn new(survey: Arc<dyn AwsSurvey>, owner: Owner) -> Self {
        Self {
            survey,
            owner,
            found: BTreeMap::new(),
            answered: BTreeSet::new(),
            patience: PATIENCE,
        }
    }

    /// The same with another deadline for one region.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Whoever is asked from now on. What was found stays.
    pub fn ask(&mut self, survey: Arc<dyn AwsSurvey>) {
        self.survey = survey;
    }

    /// What was found in a region before this process began.
    pub fn recall(&mut self, region: Region, groups: Vec<DiscoveredGroup>) {
        self.found.insert(region, groups);
    }

    /// What was found in each region, to be recalled after a restart.
    #[must_use]
    pub fn found(&self) -> &BTreeMap<Region, Vec<DiscoveredGroup>> {
        &self.found
    }

    /// Looks in every region of the config, each for itself, and hears whether AWS knows the regions of pools by name.
    /// Answers with what could not be read.
    pub async fn look(&mut self, config: &Config) -> Vec<String> {
        let regions = places(&config.aws).map(|(region, _)| region);
        let regions: BTreeSet<Region> = regions.collect();
        let looks = regions.iter().map(|region| self.look_at(region));
        let mut troubles = Vec::new();
        let looked = join_all(looks).await;
        for (region, groups) in regions.iter().zip(looked) {
            match groups {
                Ok(mut groups) => {
                    if groups.len() > MOST {
                        let left = groups.len() - MOST;
                        troubles.push(format!("{left} of the groups in {region} are left out"));
                        groups.truncate(MOST);
                    }
                    self.answered.insert(region.clone());
                    self.found.insert(region.clone(), groups);
                }
                Err(why) => {
                    let kept = self.found.get(region).map_or(0, Vec::len);
                    troubles.push(format!(
                        "groups cannot be looked for in {region}, so {kept} that were found there before stay: {why}"
                    ));
                }
            }
        }
        troubles.extend(self.check_named(config).await);
        troubles
    }

    async fn look_at(&self, region: &Region) -> Result<Vec<DiscoveredGroup>, String> {
        let tagged = self.survey.groups_tagged(region, OWNER_TAG);
        match tokio::time::timeout(self.patience, tagged).await {
            Err(_) => Err(self.verdict(region, None).await),
            Ok(Err(error)) => Err(self.verdict(region, Some(error)).await),
            Ok(Ok(groups)) => Ok(groups
                .into_iter()
                .filter(|group| self.owner.may_hold(&group.tags))
                .map(|group| DiscoveredGroup {
                    group: group.name.as_str().to_owned(),
                    pool: group.tags.get(POOL_TAG).map(|name| name.trim().to_owned()),
                    max: group.max,
                })
                .collect()),
        }
    }

    /// What is wrong, in AWS's own words where it says that there is no such region.
    async fn verdict(&self, region: &Region, error: Option<AwsError>) -> String {
        if let Some(why) = self.unknown(region).await {
            return why;
        }
        let late = || format!("no answer within {} s", self.patience.as_secs());
        error.map_or_else(late, |error| error.to_string())
    }

    /// Why AWS knows no such region; nothing when it does, or cannot say.
    async fn unknown(&self, region: &Region) -> Option<String> {
        let check = self.survey.check_region(region);
        match tokio::time::timeout(self.patience, check).await {
            Ok(Err(error)) if error.kind == FailureKind::Config => Some(error.to_string()),
            _ => None,
        }
    }

    /// Regions of pools by name are asked for until AWS was heard from there once.
    async fn check_named(&mut self, config: &Config) -> Vec<String> {
        let named: BTreeSet<Region> = config
            .pools
            .iter()
            .filter_map(|pool| match &pool.source {
                PoolSource::Asg(group) => Some(place(&group.region, group.role_arn.as_deref())),
                PoolSource::Static(_) | PoolSource::Sim(_) => None,
            })
            .filter(|region| !self.answered.contains(region) && !self.found.contains_key(region))
            .collect();
        let checks = named.iter().map(|region| self.unknown(region));
        let mut troubles = Vec::new();
        for (region, unknown) in named.iter().zip(join_all(checks).await) {
            match unknown {
                Some(why) => troubles.push(format!("pools in {region} cannot be driven: {why}")),
                None => {
                    self.answered.insert(region.clone());
                }
            }
        }
        troubles
    }

    /// The pools of everything that was found, behind those of the file. `before` are the discovered pools in force: a
    /// name stays with the group that has it.
    #[must_use]
    pub fn pools(&self, file: &Config, before: &[PoolConfig]) -> Found {
        let mut all: Vec<(Region, &Discover, &DiscoveredGroup)> = Vec::new();
        for (region, discover) in places(&file.aws) {
            let groups = self.found.get(&region).into_iter().flatten();
            all.extend(groups.map(|group| (region.clone(), discover, group)));
        }
        let named: BTreeSet<(Region, &str)> = file
            .pools
            .iter()
            .filter_map(|pool| key(pool).map(|(key, _)| key))
            .collect();
        let held: BTreeSet<(Region, &str, &PoolId)> = before
            .iter()
            .filter_map(|pool| key(pool).map(|((region, group), name)| (region, group, name)))
            .collect();
        let mut taken: BTreeMap<PoolId, String> = file
            .pools
            .iter()
            .map(|pool| (pool.name.clone(), "the config file has".to_owned()))
            .collect();
        let mut found = Found::default();
        let mut wanted: Vec<(bool, Region, &Discover, &DiscoveredGroup, PoolId)> = Vec::new();
        for (region, discover, group) in all {
            if named.contains(&(region.clone(), group.group.as_str())) {
                // A person wrote a pool for it.
                continue;
            }
            let name = group.pool.as_deref().filter(|name| !name.is_empty());
            let name = name.unwrap_or(&group.group);
            if !plain(name) {
                found.skipped.push(format!(
                    "group {} in {region} is no pool: {name:?} is no plain name (letters, digits, dots and dashes, at most 63); \
                     tag it {POOL_TAG}=NAME",
                    group.group
                ));
                continue;
            }
            let name = PoolId::new(name);
            let new = !held.contains(&(region.clone(), group.group.as_str(), &name));
            wanted.push((new, region, discover, group, name));
        }
        wanted.sort_by(|a, b| (a.0, &a.1, &a.3.group).cmp(&(b.0, &b.1, &b.3.group)));
        for (_, region, discover, group, name) in wanted {
            if let Some(who) = taken.get(&name) {
                found.skipped.push(format!(
                    "group {} in {region} is no pool: {who} a pool {name}; tag it {POOL_TAG}=NAME with another name",
                    group.group
                ));
                continue;
            }
            taken.insert(
                name.clone(),
                format!("group {} in {region} is", group.group),
            );
            found.pools.push(pool(&region, discover, group, name));
        }
        let sorted =
            |pool: &PoolConfig| key(pool).map(|((region, group), _)| (region, group.to_owned()));
        found.pools.sort_by_key(sorted);
        found
    }
}

fn place(region: &str, role: Option<&str>) -> Region {
    let region = Region::new(region);
    match role {
        Some(role) => region.with_role(role),
        None => region,
    }
}

/// Every region and account of the config.
fn places(aws: &Aws) -> impl Iterator<Item = (Region, &Discover)> {
    aws.discover.iter().flat_map(|discover| {
        let role = discover.role_arn.as_deref();
        let regions = discover.regions.iter();
        regions.map(move |region| (place(region, role), discover))
    })
}

fn key(pool: &PoolConfig) -> Option<((Region, &str), &PoolId)> {
    let PoolSource::Asg(group) = &pool.source else {
        return None;
    };
    let region = place(&group.region, group.role_arn.as_deref());
    Some(((region, group.group.as_str()), &pool.name))
}

fn pool(region: &Region, discover: &Discover, group: &DiscoveredGroup, name: PoolId) -> PoolConfig {
    let max = discover.max.unwrap_or(group.max);
    let mut terms = discover.terms.clone();
    terms.min = terms.min.min(max);
    terms.spare = terms.spare.min(max);
    let site = discover.site.clone();
    terms.pool(
        name,
        site.unwrap_or_else(|| SiteId(region.as_str().to_owned())),
        max,
        Origin::Discovered {
            region: region.as_str().to_owned(),
            role_arn: discover.role_arn.clone(),
        },
        PoolSource::Asg(Source {
            group: group.group.clone(),
            region: region.as_str().to_owned(),
            role_arn: discover.role_arn.clone(),
            zones: Vec::new(),
            instance_types: Vec::new(),
        }),
    )
}
