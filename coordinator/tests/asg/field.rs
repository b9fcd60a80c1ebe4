//! A field for the asg adapter: groups in moto behind the fault proxy, and adapters that meet them over the SDK.
//!
//! Shared by the `asg_*` suites; no suite of its own. Every suite uses all of it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use drover::adapters::actuate::asg::{AsgActuator, AsgPool, Owner};
use drover::ports::actuate::{Actuator, LaunchOrder, PoolReading};
use drover::ports::clock::Clock;
use drover_aws::{Credentials, SdkAws, SdkSettings};
use drover_core::model::{LaunchId, Millis, OfferingId, PoolId, UnixMs};
use drover_tests::aws_proxy::{AwsProxy, Scenario};
use drover_tests::moto::{Moto, NewGroup};

/// The true clocks.
struct SystemClock(Instant);

impl Clock for SystemClock {
    fn wall(&self) -> UnixMs {
        wall()
    }
    fn mono(&self) -> Millis {
        Millis(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

fn wall() -> UnixMs {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    UnixMs(u64::try_from(since.as_millis()).expect("fits"))
}

/// Groups, each the only one of a pool of its name.
pub struct Field {
    pub proxy: AwsProxy,
    pools: Vec<AsgPool>,
}

/// An order for `count` nodes of the pool whose only type is the one of its group.
pub fn order(pool: &str, zone: &str, token: &str, count: u32) -> LaunchOrder {
    let instance_type = if pool.contains("p4") {
        "p4d.24xlarge"
    } else {
        "g5.xlarge"
    };
    LaunchOrder {
        id: LaunchId::new(token),
        token: format!("{pool}-{token}"),
        pool: PoolId::new(pool),
        offering: OfferingId::new(format!("{pool}/{instance_type}/{zone}/on-demand")),
        count,
        asked: wall(),
        hosts: vec![],
    }
}

impl Field {
    /// Makes the groups, owned by the store `store-1`.
    pub async fn new(groups: &[(&str, NewGroup)], scenario: Scenario) -> Self {
        let tagged: Vec<_> = groups
            .iter()
            .map(|(r, g)| (*r, g.clone().tag("drover:owner", "store-1/5")))
            .collect();
        Self::untagged(&tagged, scenario).await
    }

    /// Makes the groups as they are.
    pub async fn untagged(groups: &[(&str, NewGroup)], scenario: Scenario) -> Self {
        let moto = Moto::shared().await;
        let mut pools = Vec::new();
        for (region, group) in groups {
            moto.create_group(region, group).await;
            pools.push(AsgPool {
                pool: PoolId::new(group.name.clone()),
                region: (*region).into(),
                group: group.name.as_str().into(),
                prices: Default::default(),
                zones: Vec::new(),
                instance_types: Vec::new(),
            });
        }
        let proxy = AwsProxy::start(moto.url(), scenario)
            .await
            .expect("a proxy");
        Self { proxy, pools }
    }

    /// The pools in the order of the groups.
    pub fn pools(&self) -> Vec<PoolId> {
        self.pools.iter().map(|p| p.pool.clone()).collect()
    }

    /// The present.
    pub fn now(&self) -> UnixMs {
        wall()
    }

    /// A process that starts anew, on the store `store-1`.
    pub async fn adapter(&self) -> AsgActuator<SdkAws> {
        self.adapter_of(Owner::new("store-1", 5).expect("an owner"))
            .await
    }

    /// A process of another owner.
    pub async fn adapter_of(&self, owner: Owner) -> AsgActuator<SdkAws> {
        let mut settings = SdkSettings::new("us-east-1".into());
        settings.endpoints.default = Some(self.proxy.url());
        settings.credentials = Credentials::Fixed {
            key_id: "x".into(),
            secret: "y".into(),
        };
        // moto on a busy machine is slower than AWS.
        settings.attempt_timeout = Duration::from_secs(15);
        let api = SdkAws::new(settings).await;
        let clock = Arc::new(SystemClock(Instant::now()));
        AsgActuator::new(api, owner, self.pools.clone(), clock)
            .with_pause(Duration::from_millis(10))
            .with_read_deadline(Duration::from_secs(20))
    }

    /// A reading of every pool.
    pub async fn read(&self, asg: &AsgActuator<SdkAws>) -> Vec<PoolReading> {
        let read = asg.read(&self.pools()).await;
        read.into_iter()
            .map(|(id, r)| r.unwrap_or_else(|e| panic!("{id}: {e}")))
            .collect()
    }
}
