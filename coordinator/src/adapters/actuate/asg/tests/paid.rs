//! Capacity that is paid for already: reservations, capacity blocks, warm pools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use drover_aws::{
    AwsError, AwsOffers, AwsSurvey, DryRun, GroupName, LifecycleHook, Permission, PolicyQuestion,
    QuotaFact, Refresh, Region, Reservation, ReservationId, ReservationKind, ReservationUse,
    ScalingPolicy, ScheduledAction, SpotPrice, TemplateFacts, TemplateRef, WarmPool,
};
use drover_core::model::{Market, MicroUsd, Offering, Steering};

use super::fake::{Fake, group, member};
use super::*;
use crate::ports::actuate::InstanceState as Seen;

const P4D: &str = "p4d.24xlarge";
const HOUR_MS: u64 = 3_600_000;

/// What was paid for.
#[derive(Default)]
struct Paid {
    reservations: Mutex<Vec<Reservation>>,
    warm: Mutex<Option<WarmPool>>,
    denied: bool,
}

fn denied() -> AwsError {
    error(
        Call::DescribeCapacityReservations,
        403,
        "UnauthorizedOperation",
        "You are not authorized to perform this operation.",
    )
}

#[async_trait]
impl AwsOffers for Paid {
    async fn spot_prices(&self, _: &Region, _: &[String]) -> Result<Vec<SpotPrice>, AwsError> {
        Ok(vec![])
    }

    async fn zones_of(
        &self,
        _: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, AwsError> {
        let zones = || ["a", "b"].map(str::to_owned).into();
        Ok(types.iter().map(|t| (t.clone(), zones())).collect())
    }

    async fn reservations(
        &self,
        _: &Region,
        _: &[ReservationId],
    ) -> Result<Vec<Reservation>, AwsError> {
        if self.denied {
            return Err(denied());
        }
        Ok(self.reservations.lock().expect("reservations").clone())
    }
}

#[async_trait]
impl AwsSurvey for Paid {
    async fn groups_tagged(&self, _: &Region, _: &str) -> Result<Vec<Group>, AwsError> {
        Ok(vec![])
    }
    async fn scaling_policies(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<ScalingPolicy>, AwsError> {
        Ok(vec![])
    }
    async fn scheduled_actions(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<ScheduledAction>, AwsError> {
        Ok(vec![])
    }
    async fn instance_refreshes(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<Refresh>, AwsError> {
        Ok(vec![])
    }
    async fn lifecycle_hooks(
        &self,
        _: &Region,
        _: &GroupName,
    ) -> Result<Vec<LifecycleHook>, AwsError> {
        Ok(vec![])
    }
    async fn warm_pool(&self, _: &Region, _: &GroupName) -> Result<Option<WarmPool>, AwsError> {
        Ok(self.warm.lock().expect("warm").clone())
    }
    async fn caller(&self, _: &Region) -> Result<String, AwsError> {
        Err(denied())
    }
    async fn dry_run_launch(&self, _: &Region, _: &TemplateRef) -> Result<DryRun, AwsError> {
        Ok(DryRun::Allowed)
    }
    async fn simulate_policy(
        &self,
        _: &Region,
        _: &str,
        _: &PolicyQuestion,
    ) -> Result<BTreeMap<String, Permission>, AwsError> {
        Err(denied())
    }
    async fn ec2_quotas(&self, _: &Region) -> Result<Vec<QuotaFact>, AwsError> {
        Ok(vec![])
    }
    async fn check_region(&self, _: &Region) -> Result<(), AwsError> {
        Ok(())
    }
}

struct Rig {
    fake: Fake,
    paid: Arc<Paid>,
    clock: Arc<TestClock>,
    adapter: AsgActuator<Fake>,
}

impl Rig {
    fn new(group: Group, paid: Paid) -> Self {
        let fake = Fake::of(vec![group]);
        let (paid, clock) = (Arc::new(paid), Arc::new(TestClock::default()));
        let owner = Owner::new("store", 7).expect("an owner");
        let adapter = AsgActuator::new(fake.clone(), owner, [pool("p4", "r1")], clock.clone())
            .with_offers(paid.clone())
            .with_survey(paid.clone())
            .with_pause(Duration::ZERO);
        Self {
            fake,
            paid,
            clock,
            adapter,
        }
    }

    async fn read(&self) -> PoolReading {
        read(&self.adapter).await
    }

    fn wall(&self) -> UnixMs {
        self.clock.wall()
    }

    fn template(&self, reservations: ReservationUse) {
        self.fake.world().template = Some(Some(TemplateFacts {
            id: Some("lt-1".into()),
            version: Some(1),
            instance_type: Some(P4D.to_owned()),
            image: None,
            market: drover_aws::Market::OnDemand,
            reservations,
        }));
    }
}

fn reservation(id: &str, zone: &str, available: u32) -> Reservation {
    Reservation {
        id: id.into(),
        kind: ReservationKind::OnDemand,
        instance_type: P4D.to_owned(),
        zone: zone.to_owned(),
        active: true,
        state: "active".to_owned(),
        total: 4,
        available,
        targeted: false,
        start_unix_ms: None,
        end_unix_ms: None,
    }
}

fn shown(offerings: &[Offering]) -> Vec<(&str, &str, Market, bool, Option<u32>)> {
    let each = offerings.iter();
    each.map(|o| {
        (
            o.id.as_str(),
            o.zone.as_str(),
            o.market,
            o.price == MicroUsd::ZERO,
            o.available,
        )
    })
    .collect()
}

fn said(reading: &PoolReading, what: &str) {
    assert!(
        reading.remarks.iter().any(|r| r.contains(what)),
        "{what:?} in {:#?}",
        reading.remarks
    );
}

#[tokio::test]
async fn i12_an_open_reservation_costs_nothing_while_it_has_room() {
    let paid = Paid::default();
    *paid.reservations.lock().expect("reservations") = vec![
        reservation("cr-1", "a", 3),
        reservation("cr-2", "a", 1),
        Reservation {
            targeted: true,
            ..reservation("cr-3", "b", 4)
        },
        Reservation {
            instance_type: "g5.xlarge".to_owned(),
            ..reservation("cr-4", "a", 4)
        },
    ];
    let rig = Rig::new(group("p4", &["a", "b"]), paid);
    let reading = rig.read().await;
    assert_eq!(
        shown(&reading.offerings),
        [
            (
                "p4/p4d.24xlarge/a/reserved",
                "a",
                Market::Reserved,
                true,
                Some(4)
            ),
            (
                "p4/p4d.24xlarge/a/on-demand",
                "a",
                Market::OnDemand,
                false,
                None
            ),
            (
                "p4/p4d.24xlarge/b/on-demand",
                "b",
                Market::OnDemand,
                false,
                None
            ),
        ]
    );
    let named = reading.offerings[0].reservations.iter();
    assert_eq!(
        named
            .map(|r| (r.reservation.as_str(), r.nodes))
            .collect::<Vec<_>>(),
        [("cr-1", 3), ("cr-2", 1)],
        "who else uses them shares their room"
    );
    said(
        &reading,
        "reservation cr-1 of p4d.24xlarge in a: 3 of 4 free",
    );

    // It is asked for in its zone, like any other.
    let mut order = order(2, "a", "t-1");
    order.offering = reading.offerings[0].id.clone();
    let outcome = rig.adapter.launch(&order).await.expect("launches");
    assert_eq!(outcome.granted, 2);
    // What that took is not offered once more, though the last answer is young.
    rig.paid.reservations.lock().expect("reservations")[0].available = 1;
    assert_eq!(rig.read().await.offerings[0].available, Some(2));
    let id = drover_aws::InstanceId::new(outcome.instances[0].as_str());
    {
        let mut world = rig.fake.world();
        world.instances.get_mut(&id).expect("there").reservation = Some("cr-1".into());
    }
    rig.clock.0.fetch_add(2 * 60_000, Ordering::SeqCst);
    let reading = rig.read().await;
    let offering = |id: &InstanceId| {
        let found = reading.instances.iter().find(|i| i.id == *id);
        found.and_then(|i| i.offering.clone())
    };
    assert_eq!(
        offering(&outcome.instances[0]),
        Some("p4/p4d.24xlarge/a/reserved".into()),
        "who runs in a reservation costs nothing more"
    );
    assert_eq!(
        offering(&outcome.instances[1]),
        Some("p4/p4d.24xlarge/a/on-demand".into())
    );
}

#[tokio::test]
async fn a_capacity_block_is_all_there_is_and_ends_half_an_hour_before_its_end() {
    let rig = Rig::new(group("p4", &["a"]), Paid::default());
    rig.template(ReservationUse::Only("cr-b".into()));
    let end = rig.wall().0 + 10 * HOUR_MS;
    let block = Reservation {
        kind: ReservationKind::CapacityBlock,
        targeted: true,
        end_unix_ms: Some(i64::try_from(end).expect("a time")),
        ..reservation("cr-b", "a", 2)
    };
    *rig.paid.reservations.lock().expect("reservations") = vec![block.clone()];
    {
        let mut world = rig.fake.world();
        let mut inside = member("i-1", MemberState::InService, true);
        inside.zone = Some("a".into());
        let group = world.groups.values_mut().next().expect("the group");
        group.members.push(inside);
        group.desired = 1;
        let instance = drover_aws::Instance {
            id: "i-1".into(),
            instance_type: Some(P4D.to_owned()),
            state: drover_aws::InstanceState::Running,
            state_reason: None,
            zone: Some("a".into()),
            market: drover_aws::Market::CapacityBlock,
            launched_unix_ms: Some(0),
            private_ip: None,
            image: None,
            reservation: Some("cr-b".into()),
            tags: BTreeMap::new(),
        };
        world.instances.insert("i-1".into(), instance);
    }
    let reading = rig.read().await;
    assert_eq!(
        shown(&reading.offerings),
        [
            (
                "p4/p4d.24xlarge/a/reserved",
                "a",
                Market::Reserved,
                true,
                Some(2)
            ),
            (
                "p4/p4d.24xlarge/a/on-demand",
                "a",
                Market::OnDemand,
                false,
                Some(0)
            ),
        ]
    );
    assert_eq!(
        reading.instances[0].ends,
        Some(UnixMs(end - HOUR_MS / 2)),
        "AWS begins to end them 30 min before"
    );
    said(
        &reading,
        "capacity block cr-b of p4d.24xlarge in a: 2 of 4 free (active), until ",
    );
    assert!(reading.stops.is_empty(), "{:?}", reading.stops);

    // Too little is left for anything to be begun there.
    rig.clock.0.fetch_add(9 * HOUR_MS, Ordering::SeqCst);
    let reading = rig.read().await;
    assert_eq!(reading.offerings[0].available, Some(0));

    // Not begun, or not there.
    *rig.paid.reservations.lock().expect("reservations") = vec![Reservation {
        active: false,
        state: "scheduled".to_owned(),
        ..block
    }];
    rig.clock.0.fetch_add(2 * 60_000, Ordering::SeqCst);
    assert_eq!(rig.read().await.offerings[0].available, Some(0));
    rig.paid.reservations.lock().expect("reservations").clear();
    rig.clock.0.fetch_add(2 * 60_000, Ordering::SeqCst);
    let reading = rig.read().await;
    assert!(reading.offerings.iter().all(|o| o.available == Some(0)));
    said(
        &reading,
        "names the reservation cr-b, which AWS does not show",
    );
}

#[tokio::test]
async fn reservations_that_cannot_be_read_are_not_counted_on_and_hold_nothing_up() {
    let paid = Paid {
        denied: true,
        ..Paid::default()
    };
    let rig = Rig::new(group("p4", &["a"]), paid);
    let reading = rig.read().await;
    assert_eq!(reading.offerings.len(), 1);
    assert_eq!(reading.offerings[0].available, None);
    said(&reading, "capacity reservations cannot be read");
}

fn warm(members: &[(&str, &str)]) -> WarmPool {
    WarmPool {
        min: 0,
        max_prepared: None,
        state: "Stopped".to_owned(),
        reuses: false,
        status: None,
        members: members
            .iter()
            .map(|(id, state)| member(id, MemberState::Warmed((*state).to_owned()), false))
            .collect(),
    }
}

#[tokio::test]
async fn a_warm_pool_is_taken_first_and_its_instances_count_for_nothing() {
    let mut own = group("p4", &["a", "b"]);
    own.warm_pool_size = Some(2);
    let rig = Rig::new(own, Paid::default());
    *rig.paid.warm.lock().expect("warm") = Some(warm(&[
        ("i-w1", "Warmed:Stopped"),
        ("i-w2", "Warmed:Pending"),
    ]));
    let reading = rig.read().await;
    assert_eq!(reading.steering, Steering::Group);
    assert_eq!(reading.offerings.len(), 1);
    assert!(
        reading.offerings[0].boot < Millis::minutes(3),
        "it comes sooner"
    );
    let states: Vec<_> = reading.instances.iter().map(|i| i.state).collect();
    assert_eq!(states, [Seen::Warm, Seen::Warm]);
    assert_eq!(reading.unfilled, 0);
    said(&reading, "warm pool: 1 pending, 1 stopped");
    said(
        &reading,
        "less the desired capacity, so each removal refills it",
    );
    said(&reading, "hold no capacity");

    let mut order = order(1, "a", "t-1");
    order.offering = reading.offerings[0].id.clone();
    let outcome = rig.adapter.launch(&order).await.expect("asks");
    assert_eq!(outcome.way, Way::SetDesiredCapacity);

    // Empty, it is no reason to give up the choice of a zone.
    {
        let mut world = rig.fake.world();
        let group = world.groups.values_mut().next().expect("the group");
        group.warm_pool_size = Some(0);
    }
    assert_eq!(rig.read().await.steering, Steering::Zone);
}
