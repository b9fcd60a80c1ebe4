//! What a group is planned with: its template, its types, where they exist, what they cost; bad input of each.

use std::collections::BTreeSet;
use std::sync::Mutex;

use async_trait::async_trait;
use drover_aws::{
    AwsError, AwsOffers, InstanceTypeFacts, Market as AwsMarket, Reservation, ReservationId,
    SpotPrice, TemplateFacts, TemplateRef,
};
use drover_core::model::{Market, MicroUsd, Offering};

use super::fake::a100s;
use super::*;
use crate::ports::actuate::NO_SUCH_GROUP;

/// What AWS offers, and how often it was asked.
#[derive(Default)]
struct Offers {
    /// Type, zone, millionths of a USD per hour.
    spot: Mutex<Vec<(&'static str, &'static str, u64)>>,
    /// Empty: every type in a, b and c.
    zones: Vec<(&'static str, &'static [&'static str])>,
    fails: std::sync::atomic::AtomicBool,
    asked: Mutex<Vec<String>>,
}

impl Offers {
    fn enter(&self, what: &str, types: &[String]) -> Result<(), AwsError> {
        let mut asked = self.asked.lock().expect("the calls");
        asked.push(format!("{what} {}", types.join(",")));
        if self.fails.load(Ordering::SeqCst) {
            return Err(error(
                Call::DescribeInstanceTypes,
                503,
                "RequestLimitExceeded",
                "slow down",
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl AwsOffers for Offers {
    async fn spot_prices(
        &self,
        _: &drover_aws::Region,
        types: &[String],
    ) -> Result<Vec<SpotPrice>, AwsError> {
        self.enter("spot", types)?;
        let all = self.spot.lock().expect("prices").clone();
        let price = |(kind, zone, micro): &(&str, &str, u64)| SpotPrice {
            instance_type: (*kind).to_owned(),
            zone: (*zone).to_owned(),
            micro_usd_per_hour: *micro,
            since_unix_ms: None,
        };
        let here = all
            .iter()
            .filter(|(kind, ..)| types.iter().any(|t| t == kind));
        Ok(here.map(price).collect())
    }

    async fn zones_of(
        &self,
        _: &drover_aws::Region,
        types: &[String],
    ) -> Result<std::collections::BTreeMap<String, BTreeSet<String>>, AwsError> {
        self.enter("zones", types)?;
        let own = |zones: &[&str]| zones.iter().map(|z| (*z).to_owned()).collect();
        if self.zones.is_empty() {
            let everywhere = types.iter();
            return Ok(everywhere
                .map(|kind| (kind.clone(), own(&["a", "b", "c"])))
                .collect());
        }
        let here = self.zones.iter();
        Ok(here
            .map(|(kind, zones)| ((*kind).to_owned(), own(zones)))
            .collect())
    }

    async fn reservations(
        &self,
        _: &drover_aws::Region,
        _: &[ReservationId],
    ) -> Result<Vec<Reservation>, AwsError> {
        Ok(vec![])
    }
}

const P4D: &str = "p4d.24xlarge";
const P4DE: &str = "p4de.24xlarge";

fn mixed(zones: &[&str], types: &[&str], on_demand: u32) -> Group {
    let mut group = spread(group("p4", zones), on_demand, None);
    if let GroupTemplate::Mixed(policy) = &mut group.template {
        policy.overrides = types
            .iter()
            .map(|name| Override {
                instance_type: Some((*name).to_owned()),
                weight: None,
                by_requirements: false,
            })
            .collect();
    }
    group
}

fn bigger(name: &str) -> InstanceTypeFacts {
    let mut facts = a100s(name);
    facts.gpus[0].count = 16;
    facts
}

struct Rig {
    fake: Fake,
    offers: Arc<Offers>,
    clock: Arc<TestClock>,
    adapter: AsgActuator<Fake>,
}

impl Rig {
    fn new(group: Group, offers: Offers, change: impl FnOnce(&mut AsgPool)) -> Self {
        let fake = Fake::of(vec![group]);
        let (offers, clock) = (Arc::new(offers), Arc::new(TestClock::default()));
        let mut pool = pool("p4", "r1");
        change(&mut pool);
        let owner = Owner::new("store", 7).expect("an owner");
        let adapter = AsgActuator::new(fake.clone(), owner, [pool], clock.clone())
            .with_offers(offers.clone());
        Self {
            fake,
            offers,
            clock,
            adapter,
        }
    }

    async fn read(&self) -> PoolReading {
        read(&self.adapter).await
    }

    fn pass(&self, minutes: u64) {
        self.clock.0.fetch_add(minutes * 60_000, Ordering::SeqCst);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.offers.asked.lock().expect("the calls"))
    }
}

fn said(list: &[String], what: &str) {
    assert!(
        list.iter().any(|w| w.contains(what)),
        "{what:?} in {list:#?}"
    );
}

fn silent(list: &[String], what: &str) {
    assert!(
        !list.iter().any(|w| w.contains(what)),
        "{what:?} in {list:#?}"
    );
}

fn shown(offerings: &[Offering]) -> Vec<(&str, &str, u64, Option<u32>)> {
    let each = offerings.iter();
    each.map(|o| {
        (
            o.instance_type.as_str(),
            o.zone.as_str(),
            o.price.0,
            o.available,
        )
    })
    .collect()
}

fn template(version: i64, instance_type: &str, image: &str) -> TemplateFacts {
    TemplateFacts {
        id: Some("lt-1".into()),
        version: Some(version),
        instance_type: Some(instance_type.to_owned()),
        image: Some(image.to_owned()),
        market: AwsMarket::OnDemand,
        reservations: drover_aws::ReservationUse::Open,
    }
}

#[tokio::test]
async fn a_spot_group_costs_what_each_zone_asks_for_and_the_price_is_asked_for_again() {
    let offers = Offers {
        spot: Mutex::new(vec![(P4D, "a", 9_000_000), (P4D, "b", 7_000_000)]),
        zones: vec![(P4D, &["a", "b", "c"])],
        ..Offers::default()
    };
    let rig = Rig::new(mixed(&["a", "b", "c"], &[P4D], 0), offers, |_| ());
    let reading = rig.read().await;
    assert_eq!(
        shown(&reading.offerings),
        [
            (P4D, "a", 9_000_000, None),
            (P4D, "b", 7_000_000, None),
            (P4D, "c", 0, Some(0)),
        ],
        "a price that is missing is not zero: nothing is asked there"
    );
    assert!(reading.offerings.iter().all(|o| o.market == Market::Spot));
    said(
        &reading.warnings,
        "no spot price is known for p4d.24xlarge in c",
    );
    said(&reading.remarks, "asked for every 10 min");
    assert!(reading.stops.is_empty(), "{:?}", reading.stops);
    assert_eq!(rig.asked(), ["zones p4d.24xlarge", "spot p4d.24xlarge"]);
    rig.pass(9);
    rig.read().await;
    assert!(rig.asked().is_empty(), "the age is stated");
    rig.offers
        .spot
        .lock()
        .expect("prices")
        .push((P4D, "c", 5_000_000));
    rig.pass(1);
    assert_eq!(rig.read().await.offerings[2].price, MicroUsd(5_000_000));
    assert_eq!(rig.asked(), ["spot p4d.24xlarge"]);
    // AWS falls silent: the last price counts for an hour, then none is known.
    rig.offers.fails.store(true, Ordering::SeqCst);
    rig.pass(20);
    let old = rig.read().await;
    assert_eq!(old.offerings[2].available, None);
    said(&old.remarks, "spot prices cannot be read");
    rig.read().await;
    assert_eq!(
        rig.asked(),
        ["spot p4d.24xlarge"],
        "not again within a minute"
    );
    rig.pass(41);
    let none = rig.read().await;
    assert!(none.offerings.iter().all(|o| o.available == Some(0)));
    let Some(Stop::Failed { why, .. }) = none.stops.first() else {
        panic!("{:?}", none.stops)
    };
    assert!(why.contains("no spot price is known"), "{why}");
}

#[tokio::test]
async fn the_config_prices_spot_before_aws() {
    let rig = Rig::new(mixed(&["a"], &[P4D], 0), Offers::default(), |pool| {
        pool.prices.insert(P4D.to_owned(), MicroUsd(3));
    });
    rig.offers.fails.store(true, Ordering::SeqCst);
    let reading = rig.read().await;
    assert_eq!(shown(&reading.offerings), [(P4D, "a", 3, None)]);
    said(&reading.remarks, "each is taken for a zone of theirs");
}

#[tokio::test]
async fn a_zone_without_the_type_is_no_offering() {
    let offers = Offers {
        zones: vec![(P4D, &["b"]), (P4DE, &["b", "c"])],
        ..Offers::default()
    };
    let rig = Rig::new(mixed(&["a", "b", "c"], &[P4D, P4DE], 100), offers, |_| ());
    rig.fake.world().types = [
        (P4D.to_owned(), a100s(P4D)),
        (P4DE.to_owned(), bigger(P4DE)),
    ]
    .into();
    let reading = rig.read().await;
    // The smallest of those that exist in a zone, at the price of the dearest of them.
    assert_eq!(
        shown(&reading.offerings),
        [(P4D, "b", 27_447_050, None), (P4DE, "c", 27_447_050, None)]
    );
    said(
        &reading.remarks,
        "a is not asked: p4d.24xlarge, p4de.24xlarge does not exist there",
    );
    assert!(reading.stops.is_empty());
    let gpus: Vec<_> = reading
        .offerings
        .iter()
        .map(|o| o.allocatable.as_ref().map(|a| a.gpus))
        .collect();
    assert_eq!(gpus, [Some(8), Some(16)]);
    let nowhere = Offers {
        zones: vec![(P4D, &["z"])],
        ..Offers::default()
    };
    let rig = Rig::new(mixed(&["a"], &[P4D], 100), nowhere, |_| ());
    let reading = rig.read().await;
    assert!(reading.offerings.is_empty());
    assert!(matches!(reading.stops.first(), Some(Stop::Failed { .. })));
}

#[tokio::test]
async fn zones_are_asked_in_the_order_of_the_pool_and_no_others() {
    let mut p4 = group("p4", &["a", "b", "c"]);
    p4.members = vec![member("i-1", MemberState::InService, true)];
    let liked = |pool: &mut AsgPool| pool.zones = vec!["c".into(), "b".into(), "x".into()];
    let rig = Rig::new(p4.clone(), Offers::default(), liked);
    let reading = rig.read().await;
    let zones: Vec<_> = reading
        .offerings
        .iter()
        .map(|o| (o.zone.as_str(), o.available))
        .collect();
    assert_eq!(
        zones,
        [("c", None), ("b", None), ("a", Some(0))],
        "a node in a has a price, and nothing more is asked there"
    );
    assert_eq!(
        reading.instances[0]
            .offering
            .as_ref()
            .map(OfferingId::as_str),
        Some("p4/p4d.24xlarge/a/on-demand")
    );
    said(
        &reading.warnings,
        "zones names x, where the group has no subnet",
    );
    // A group that cannot be asked by zone: AWS chooses, and it is said.
    let rig = Rig::new(spread(p4, 50, None), Offers::default(), liked);
    let reading = rig.read().await;
    assert_eq!(reading.offerings.len(), 1);
    said(&reading.warnings, "the pool's zones do not hold here");
}

#[tokio::test]
async fn instance_types_choose_what_is_planned_with_and_say_what_aws_may_do() {
    let only = |pool: &mut AsgPool| pool.instance_types = vec![P4DE.into(), "g5.xlarge".into()];
    let rig = Rig::new(mixed(&["a"], &[P4D, P4DE], 100), Offers::default(), only);
    let reading = rig.read().await;
    assert_eq!(shown(&reading.offerings), [(P4DE, "a", 27_447_050, None)]);
    said(&reading.warnings, "names g5.xlarge, which the group");
    said(&reading.warnings, "may launch p4d.24xlarge as well");
    // Types by requirements: only the pool's list tells what to plan with.
    let mut any = mixed(&["a"], &[P4D], 100);
    if let GroupTemplate::Mixed(policy) = &mut any.template {
        policy.overrides[0].instance_type = None;
        policy.overrides[0].by_requirements = true;
    }
    let rig = Rig::new(any.clone(), Offers::default(), only);
    assert_eq!(rig.read().await.offerings.len(), 1);
    let rig = Rig::new(any, Offers::default(), |_| ());
    let reading = rig.read().await;
    assert!(reading.offerings.is_empty());
    said(&reading.warnings, "instance_types");
}

#[tokio::test]
async fn sc_69_an_unknown_type_is_skipped_and_the_rest_is_planned_with() {
    let rig = Rig::new(mixed(&["a"], &["x9.huge"], 100), Offers::default(), |_| ());
    rig.fake.world().types = [(P4D.to_owned(), a100s(P4D))].into();
    let reading = rig.read().await;
    // The planner says "unknown type" of an offering without sizes.
    assert_eq!(reading.offerings.len(), 1);
    assert_eq!(reading.offerings[0].instance_type, "x9.huge");
    assert_eq!(reading.offerings[0].allocatable, None);
    said(&reading.warnings, "r1 knows no instance type x9.huge");
    let calls = |rig: &Rig| {
        let world = rig.fake.world();
        let types = world
            .calls
            .iter()
            .filter(|c| c.starts_with("describe types"));
        types.cloned().collect::<Vec<_>>()
    };
    rig.read().await;
    assert_eq!(
        calls(&rig),
        ["describe types x9.huge"],
        "not asked at each reading"
    );
    // Beside types that are known it can never be launched here.
    let rig = Rig::new(
        mixed(&["a"], &["x9.huge", P4D], 100),
        Offers::default(),
        |_| (),
    );
    rig.fake.world().types = [(P4D.to_owned(), a100s(P4D))].into();
    let reading = rig.read().await;
    assert_eq!(shown(&reading.offerings), [(P4D, "a", 21_957_642, None)]);
    assert_eq!(
        calls(&rig),
        [
            "describe types p4d.24xlarge,x9.huge",
            "describe types p4d.24xlarge",
            "describe types x9.huge",
        ]
    );
}

#[tokio::test]
async fn sc_06_the_list_tells_what_a_type_offers_while_aws_does_not_and_no_node_ever_does() {
    let mut p4 = mixed(&["a"], &["g5.xlarge"], 100);
    p4.members = vec![member("i-1", MemberState::InService, true)];
    let rig = Rig::new(p4, Offers::default(), |_| ());
    let denied = error(
        Call::DescribeInstanceTypes,
        403,
        "UnauthorizedOperation",
        "no",
    );
    rig.fake
        .fail(Call::DescribeInstanceTypes, vec![Some(denied)]);
    let reading = rig.read().await;
    let offer = &reading.offerings[0];
    assert_eq!(offer.allocatable.as_ref().map(|a| a.gpus), Some(1));
    assert_eq!(offer.gpu_model, "a10g");
    said(
        &reading.remarks,
        "from the built-in list, since AWS did not tell",
    );
    // Empty again, and AWS answers: the same.
    rig.fake
        .world()
        .groups
        .values_mut()
        .for_each(|g| g.members.clear());
    rig.fake.world().types = [("g5.xlarge".to_owned(), {
        let mut facts = a100s("g5.xlarge");
        facts.gpus[0].count = 1;
        facts
    })]
    .into();
    rig.pass(1);
    let reading = rig.read().await;
    assert_eq!(
        reading.offerings[0].allocatable.as_ref().map(|a| a.gpus),
        Some(1)
    );
    silent(&reading.remarks, "built-in list");
    // Neither AWS nor the list: nothing is asked.
    let rig = Rig::new(mixed(&["a"], &["x9.huge"], 100), Offers::default(), |_| ());
    let slow = error(
        Call::DescribeInstanceTypes,
        503,
        "RequestLimitExceeded",
        "slow down",
    );
    rig.fake.fail(Call::DescribeInstanceTypes, vec![Some(slow)]);
    let reading = rig.read().await;
    assert_eq!(reading.offerings[0].allocatable, None);
    said(&reading.warnings, "x9.huge offers cannot be read");
}

#[tokio::test]
async fn a_type_without_a_price_is_shown_and_not_asked_for() {
    let rig = Rig::new(mixed(&["a"], &["x9.huge"], 100), Offers::default(), |_| ());
    let reading = rig.read().await;
    assert_eq!(reading.offerings[0].available, Some(0));
    said(&reading.warnings, "no price is known for x9.huge");
    assert!(matches!(
        reading.stops.first(),
        Some(Stop::Failed {
            failure: FailureKind::Config,
            ..
        })
    ));
}

#[tokio::test]
async fn prices_of_another_region_are_said_to_be_so() {
    let rig = Rig::new(mixed(&["a"], &[P4D], 100), Offers::default(), |_| ());
    said(
        &rig.read().await.remarks,
        "on-demand prices of us-east-1, since none of r1 are known",
    );
}

#[tokio::test]
async fn a_template_without_a_version_and_one_that_moves_are_said() {
    let rig = Rig::new(group("p4", &["a"]), Offers::default(), |_| ());
    rig.fake.world().template = Some(Some(template(3, P4D, "ami-1")));
    let reading = rig.read().await;
    said(
        &reading.remarks,
        "launches from template lt-1, version 3, its default, since the group names none, image ami-1",
    );
    silent(&reading.warnings, "launch template");
    rig.fake.world().template = Some(Some(template(4, P4DE, "ami-2")));
    rig.pass(4);
    silent(&rig.read().await.warnings, "went from version");
    rig.pass(1);
    let reading = rig.read().await;
    said(
        &reading.warnings,
        "went from version 3 to 4: type p4de.24xlarge instead of p4d.24xlarge, image ami-2 instead of ami-1",
    );
    assert_eq!(reading.offerings[0].instance_type, P4DE);
    // It cannot be read: what it said counts.
    rig.pass(6);
    let slow = error(
        Call::DescribeLaunchTemplateVersions,
        503,
        "RequestLimitExceeded",
        "slow",
    );
    rig.fake
        .fail(Call::DescribeLaunchTemplateVersions, vec![Some(slow)]);
    assert_eq!(rig.read().await.offerings[0].instance_type, P4DE);
    // It is gone.
    rig.fake.world().template = Some(None);
    rig.pass(6);
    let reading = rig.read().await;
    said(
        &reading.warnings,
        "launch template lt-1 has no default version",
    );
    assert!(reading.offerings.is_empty());
}

#[tokio::test]
async fn a_version_that_is_named_is_named() {
    for (version, words) in [
        ("$Latest", "version 3, its latest"),
        ("3", "version 3, image"),
    ] {
        let mut p4 = group("p4", &["a"]);
        p4.template = GroupTemplate::Template(TemplateRef {
            id: Some("lt-1".into()),
            name: Some("drover".into()),
            version: Some(version.to_owned()),
        });
        let rig = Rig::new(p4, Offers::default(), |_| ());
        rig.fake.world().template = Some(Some(template(3, P4D, "ami-1")));
        said(&rig.read().await.remarks, words);
        let gone = Rig::new(
            rig.fake.world().groups[&drover_aws::GroupName::from("p4")].clone(),
            Offers::default(),
            |_| (),
        );
        gone.fake.world().template = Some(None);
        said(
            &gone.read().await.warnings,
            &format!("drover has no version {version}"),
        );
    }
}

#[tokio::test]
async fn labels_and_taints_of_a_reading_are_those_of_the_groups_tags() {
    let mut p4 = group("p4", &["a"]);
    p4.tags.insert("drover:label/team".into(), "vision".into());
    p4.tags
        .insert("drover:taint/team".into(), "vision:NoSchedule".into());
    p4.tags.insert("drover:taint/odd".into(), "vision".into());
    let reading = Rig::new(p4, Offers::default(), |_| ()).read().await;
    assert_eq!(reading.labels["team"], "vision");
    assert_eq!(reading.taints["team"], "vision");
    said(&reading.warnings, "drover:taint/odd=vision is no taint");
}

#[tokio::test]
async fn a_group_deleted_under_our_feet_is_one_pools_trouble() {
    let fake = Fake::of(vec![group("p4", &["a"]), group("p5", &["a"])]);
    let owner = Owner::new("store", 7).expect("an owner");
    let pools = [pool("p4", "r1"), pool("p5", "r1")];
    let adapter = AsgActuator::new(fake.clone(), owner, pools, Arc::new(TestClock::default()));
    let both = [PoolId::new("p4"), PoolId::new("p5")];
    assert!(adapter.read(&both).await.iter().all(|(_, r)| r.is_ok()));
    fake.world()
        .groups
        .remove(&drover_aws::GroupName::from("p4"));
    let read = adapter.read(&both).await;
    let gone = read[0].1.as_ref().expect_err("is gone");
    assert_eq!(gone.kind, FailureKind::Config);
    assert_eq!(gone.code, NO_SUCH_GROUP);
    assert!(
        gone.message.contains("there is no group p4 in r1"),
        "{gone}"
    );
    assert!(read[1].1.is_ok());
    let refused = adapter
        .launch(&order(1, "a", "t"))
        .await
        .expect_err("is gone");
    assert!(refused.message.contains("no group p4"), "{refused}");
    assert!(fake.mutations().is_empty());
}

#[tokio::test]
async fn what_a_group_launches_from_changes_with_its_template_and_with_its_subnets_alone() {
    let rig = Rig::new(group("p4", &["a", "b"]), Offers::default(), |_| ());
    let at = |version| template(version, P4D, &format!("ami-{version}"));
    let set = |facts| rig.fake.world().template = Some(Some(facts));
    let change = |change: &dyn Fn(&mut Group)| {
        let mut world = rig.fake.world();
        change(world.groups.values_mut().next().expect("a group"));
    };
    set(at(1));
    let first = rig.read().await.recipe;
    assert_eq!(first.template, "lt-1 version 1, image ami-1");
    rig.pass(6);
    change(&|group| drop(group.tags.insert("a".into(), "b".into())));
    assert_eq!(rig.read().await.recipe, first);
    change(&|group| group.subnets = vec!["subnet-9".into()]);
    let moved = rig.read().await.recipe;
    assert_eq!(moved.template, first.template);
    assert_ne!(moved.group, first.group);
    set(at(2));
    rig.pass(6);
    let new = rig.read().await.recipe;
    assert_eq!(new.template, "lt-1 version 2, image ami-2");
    assert_eq!(new.group, moved.group);
}

#[tokio::test]
async fn a_group_that_is_offered_is_no_warning_and_one_claimed_before_is_nothing() {
    let mut p4 = group("p4", &["a"]);
    for (owner, says) in [("unclaimed", true), ("store/3", false), ("store/7", false)] {
        p4.tags.insert("drover:owner".into(), owner.into());
        let reading = Rig::new(p4.clone(), Offers::default(), |_| ()).read().await;
        silent(&reading.warnings, "claimed");
        let told = reading
            .remarks
            .iter()
            .any(|r| r.contains("not claimed yet"));
        assert_eq!(told, says, "{owner}: {:?}", reading.remarks);
    }
}
