//! Pools from AWS: which groups become one, under which name and terms, and what a region that does not answer changes.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use drover_aws::{
    AwsError, AwsSurvey, DryRun, GroupName, LifecycleHook, Permission, PolicyQuestion, QuotaFact,
    Refresh, Region, ScalingPolicy, ScheduledAction, TemplateRef, WarmPool,
};
use drover_core::model::{Mode, SiteId};

use super::*;
use crate::adapters::actuate::asg::{Discovery, Found};
use crate::config::{self, Config, PoolConfig, PoolSource};

/// Groups by region, and what each region answers instead.
#[derive(Default)]
struct Regions {
    groups: Mutex<BTreeMap<Region, Vec<Group>>>,
    fails: Mutex<BTreeMap<Region, AwsError>>,
    hangs: Mutex<Option<Region>>,
    unknown: Mutex<Vec<&'static str>>,
    asked: Mutex<Vec<String>>,
}

fn other(region: &Region) -> AwsError {
    AwsError::reported(
        Call::DescribeInstanceTypes,
        region,
        400,
        Some("ValidationError"),
        "not asked here",
    )
}

#[async_trait]
impl AwsSurvey for Regions {
    async fn groups_tagged(&self, region: &Region, key: &str) -> Result<Vec<Group>, AwsError> {
        self.asked.lock().expect("calls").push(format!("{region}"));
        let hangs = self.hangs.lock().expect("regions").as_ref() == Some(region);
        if hangs {
            std::future::pending::<()>().await;
        }
        if let Some(error) = self.fails.lock().expect("regions").get(region) {
            return Err(error.clone());
        }
        let groups = self.groups.lock().expect("groups").get(region).cloned();
        let tagged = groups.unwrap_or_default().into_iter();
        Ok(tagged
            .filter(|group| group.tags.contains_key(key))
            .collect())
    }

    async fn check_region(&self, region: &Region) -> Result<(), AwsError> {
        if self
            .unknown
            .lock()
            .expect("regions")
            .contains(&region.as_str())
        {
            return Err(AwsError::reported(
                Call::DescribeInstanceTypes,
                region,
                400,
                Some("InvalidParameterValue"),
                "no such region",
            ));
        }
        Ok(())
    }

    async fn scaling_policies(
        &self,
        r: &Region,
        _: &GroupName,
    ) -> Result<Vec<ScalingPolicy>, AwsError> {
        Err(other(r))
    }
    async fn scheduled_actions(
        &self,
        r: &Region,
        _: &GroupName,
    ) -> Result<Vec<ScheduledAction>, AwsError> {
        Err(other(r))
    }
    async fn instance_refreshes(
        &self,
        r: &Region,
        _: &GroupName,
    ) -> Result<Vec<Refresh>, AwsError> {
        Err(other(r))
    }
    async fn lifecycle_hooks(
        &self,
        r: &Region,
        _: &GroupName,
    ) -> Result<Vec<LifecycleHook>, AwsError> {
        Err(other(r))
    }
    async fn warm_pool(&self, r: &Region, _: &GroupName) -> Result<Option<WarmPool>, AwsError> {
        Err(other(r))
    }
    async fn caller(&self, r: &Region) -> Result<String, AwsError> {
        Err(other(r))
    }
    async fn dry_run_launch(&self, r: &Region, _: &TemplateRef) -> Result<DryRun, AwsError> {
        Err(other(r))
    }
    async fn simulate_policy(
        &self,
        r: &Region,
        _: &str,
        _: &PolicyQuestion,
    ) -> Result<BTreeMap<String, Permission>, AwsError> {
        Err(other(r))
    }
    async fn ec2_quotas(&self, r: &Region) -> Result<Vec<QuotaFact>, AwsError> {
        Err(other(r))
    }
}

const ROLE: &str = "arn:aws:iam::123456789012:role/drover";

fn tagged(name: &str, owner: &str, pool: Option<&str>) -> Group {
    let mut group = group(name, &["a"]);
    group.max = 7;
    group.tags = BTreeMap::from([("drover:owner".to_owned(), owner.to_owned())]);
    if let Some(pool) = pool {
        group.tags.insert("drover:pool".into(), pool.to_owned());
    }
    group
}

fn rig(groups: Vec<(Region, Vec<Group>)>) -> (Arc<Regions>, Discovery) {
    let regions = Arc::new(Regions {
        groups: Mutex::new(groups.into_iter().collect()),
        ..Regions::default()
    });
    let owner = Owner::new("store", 7).expect("an owner");
    let discovery = Discovery::new(regions.clone(), owner).with_patience(Duration::from_millis(50));
    (regions, discovery)
}

fn file(text: &str) -> Config {
    config::parse(text).expect("a sound config")
}

fn names(found: &Found) -> Vec<(&str, String)> {
    let pools = found.pools.iter();
    pools
        .map(|pool| {
            let PoolSource::Asg(group) = &pool.source else {
                panic!("a group")
            };
            (
                pool.name.as_str(),
                format!("{} {}", group.region, group.group),
            )
        })
        .collect()
}

const TWO: &str = "[[aws.discover]]\nregions = [\"us-east-1\", \"us-west-2\"]\n";

#[tokio::test]
async fn sc_88_only_groups_with_the_tag_become_pools_in_every_region_and_account() {
    let text = format!(
        "{TWO}[[aws.discover]]\nregions = [\"us-east-1\"]\nrole_arn = \"{ROLE}\"\nmode = \"grow\"\nmax = 3\nspare = 3\n\
         site = \"lab\"\nlabels = {{ team = \"nlp\" }}\n"
    );
    let mut legacy = group("legacy", &["a"]);
    legacy.tags.clear();
    let (_, mut discovery) = rig(vec![
        (
            "us-east-1".into(),
            vec![
                tagged("p4", "unclaimed", None),
                tagged("g5", "store/3", Some("small")),
                tagged("later", "store/9", None),
                tagged("theirs", "store2/1", None),
                tagged("empty", "", None),
                legacy,
            ],
        ),
        ("us-west-2".into(), vec![tagged("p4w", "unclaimed", None)]),
        (
            Region::new("us-east-1").with_role(ROLE),
            vec![tagged("x", "unclaimed", Some("p4x"))],
        ),
    ]);
    let file = file(&text);
    assert_eq!(discovery.look(&file).await, Vec::<String>::new());
    let found = discovery.pools(&file, &[]);
    assert_eq!(
        names(&found),
        [
            ("small", "us-east-1 g5".to_owned()),
            // A later opening has it: shown as a pool that is not ours to change.
            ("later", "us-east-1 later".to_owned()),
            ("p4", "us-east-1 p4".to_owned()),
            ("p4x", "us-east-1 x".to_owned()),
            ("p4w", "us-west-2 p4w".to_owned()),
        ]
    );
    let pool = |name: &str| {
        found
            .pools
            .iter()
            .find(|p| p.name.as_str() == name)
            .expect(name)
    };
    let p4 = pool("p4");
    assert_eq!((p4.mode, p4.max, p4.min), (Mode::Observe, 7, 0));
    assert_eq!(p4.site, SiteId::from("us-east-1"));
    assert_eq!(p4.origin.to_string(), "discovered in us-east-1");
    let p4x = pool("p4x");
    assert_eq!((p4x.mode, p4x.max, p4x.spare), (Mode::Grow, 3, 3));
    assert_eq!(
        (p4x.site.as_str(), p4x.labels["team"].as_str()),
        ("lab", "nlp")
    );
    assert_eq!(
        p4x.origin.to_string(),
        "discovered in us-east-1 of account 123456789012"
    );
    let asg = AsgPool::of(p4x).expect("a group");
    assert_eq!(asg.region, Region::new("us-east-1").with_role(ROLE));
}

#[tokio::test]
async fn a_name_belongs_to_one_group_and_stays_with_it() {
    let (regions, mut discovery) = rig(vec![
        (
            "us-east-1".into(),
            vec![tagged("odd name", "unclaimed", None)],
        ),
        (
            "us-west-2".into(),
            vec![
                tagged("p4", "unclaimed", None),
                tagged("mine", "unclaimed", Some("own")),
            ],
        ),
    ]);
    let text = format!(
        "{TWO}[[pool]]\nname = \"hand\"\nkind = \"asg\"\nsite = \"s\"\nregion = \"us-west-2\"\ngroup = \"mine\"\nmax = 1\n"
    );
    let file = file(&text);
    discovery.look(&file).await;
    let first = discovery.pools(&file, &[]);
    assert_eq!(
        names(&first),
        [("p4", "us-west-2 p4".to_owned())],
        "a pool by name goes before"
    );
    assert_eq!(first.skipped.len(), 1, "{:?}", first.skipped);
    assert!(
        first.skipped[0].contains("group odd name in us-east-1 is no pool"),
        "{:?}",
        first.skipped
    );
    assert!(first.skipped[0].contains("drover:pool=NAME"));
    // Others of the same name come up, also in a region that sorts before: the first one keeps its pool.
    let east = vec![
        tagged("p4", "unclaimed", None),
        tagged("z", "unclaimed", Some("hand")),
    ];
    regions
        .groups
        .lock()
        .expect("groups")
        .insert("us-east-1".into(), east);
    discovery.look(&file).await;
    let second = discovery.pools(&file, &first.pools);
    assert_eq!(second.pools, first.pools);
    assert_eq!(second.skipped.len(), 2, "{:?}", second.skipped);
    let said = second.skipped.join("\n");
    assert!(
        said.contains("group p4 in us-east-1 is no pool: group p4 in us-west-2 is a pool p4"),
        "{said}"
    );
    assert!(said.contains("the config file has a pool hand"), "{said}");
    // It goes: the name is free.
    regions
        .groups
        .lock()
        .expect("groups")
        .remove(&"us-west-2".into());
    discovery.look(&file).await;
    let third = discovery.pools(&file, &second.pools);
    assert_eq!(names(&third), [("p4", "us-east-1 p4".to_owned())]);
}

#[tokio::test]
async fn a_region_that_does_not_answer_keeps_its_pools_and_delays_no_other() {
    let (regions, mut discovery) = rig(vec![
        ("us-east-1".into(), vec![tagged("p4", "unclaimed", None)]),
        ("us-west-2".into(), vec![tagged("p4w", "unclaimed", None)]),
    ]);
    let file = file(TWO);
    discovery.look(&file).await;
    let before = discovery.pools(&file, &[]);
    assert_eq!(before.pools.len(), 2);
    let more = vec![
        tagged("p4", "unclaimed", None),
        tagged("p5", "unclaimed", None),
    ];
    regions
        .groups
        .lock()
        .expect("groups")
        .insert("us-east-1".into(), more);
    *regions.hangs.lock().expect("regions") = Some("us-west-2".into());
    let troubles = discovery.look(&file).await;
    assert_eq!(troubles.len(), 1, "{troubles:?}");
    assert!(
        troubles[0].contains(
            "looked for in us-west-2, so 1 that were found there before stay: no answer within"
        ),
        "{troubles:?}"
    );
    assert_eq!(discovery.pools(&file, &before.pools).pools.len(), 3);
    // Expired credentials: said in AWS's words, the same.
    *regions.hangs.lock().expect("regions") = None;
    let expired = AwsError::reported(
        Call::DescribeAutoScalingGroups,
        &"us-west-2".into(),
        400,
        Some("ExpiredToken"),
        "The security token included in the request is expired",
    );
    regions
        .fails
        .lock()
        .expect("regions")
        .insert("us-west-2".into(), expired);
    let troubles = discovery.look(&file).await;
    assert!(troubles[0].contains("security token"), "{troubles:?}");
    assert_eq!(discovery.pools(&file, &before.pools).pools.len(), 3);
    // A process that begins while it is silent goes on with what the store remembers.
    let (again, mut after) = rig(vec![]);
    *again.hangs.lock().expect("regions") = Some("us-west-2".into());
    for (region, groups) in discovery.found() {
        after.recall(region.clone(), groups.clone());
    }
    after.look(&file).await;
    assert_eq!(
        names(&after.pools(&file, &[])),
        [("p4w", "us-west-2 p4w".to_owned())]
    );
    // Nobody looks there any more: its pools go.
    let one = config::parse("[[aws.discover]]\nregions = [\"us-east-1\"]\n").expect("sound");
    assert!(after.pools(&one, &[]).pools.is_empty());
}

#[tokio::test]
async fn a_region_that_aws_does_not_know_is_said_in_its_words() {
    let (regions, mut discovery) = rig(vec![]);
    *regions.unknown.lock().expect("regions") = vec!["us-east-9", "us-west-9"];
    *regions.hangs.lock().expect("regions") = Some("us-east-9".into());
    let text = "[[aws.discover]]\nregions = [\"us-east-9\"]\n\
        [[pool]]\nname = \"a\"\nkind = \"asg\"\nsite = \"s\"\nregion = \"us-west-9\"\ngroup = \"g\"\nmax = 1\n\
        [[pool]]\nname = \"b\"\nkind = \"asg\"\nsite = \"s\"\nregion = \"us-west-2\"\ngroup = \"g\"\nmax = 1\n";
    let file = file(text);
    let troubles = discovery.look(&file).await;
    assert_eq!(troubles.len(), 2, "{troubles:?}");
    for (trouble, region) in troubles.iter().zip(["us-east-9", "us-west-9"]) {
        assert!(
            trouble.contains(region) && trouble.contains("no such region"),
            "{trouble}"
        );
    }
    assert_eq!(file.pools.len(), 2, "the others are driven");
}

#[tokio::test]
async fn a_pool_that_is_lost_is_no_longer_in_the_config_and_nothing_else_changes() {
    let (regions, mut discovery) = rig(vec![(
        "us-east-1".into(),
        vec![
            tagged("p4", "unclaimed", None),
            tagged("p5", "unclaimed", None),
        ],
    )]);
    let file = file(TWO);
    discovery.look(&file).await;
    let before: Vec<PoolConfig> = discovery.pools(&file, &[]).pools;
    let merged = file.with_discovered(before.clone());
    assert_eq!(merged.pools.len(), 2);
    assert_eq!(merged.aws, file.aws);
    {
        let mut groups = regions.groups.lock().expect("groups");
        groups.get_mut(&"us-east-1".into()).expect("it").remove(0);
    }
    discovery.look(&file).await;
    let after = discovery.pools(&file, &before).pools;
    assert_eq!(after, [before[1].clone()]);
}
