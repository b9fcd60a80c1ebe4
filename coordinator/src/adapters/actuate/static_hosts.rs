//! Named physical hosts, with power commands where there are some.
//!
//! The list is the provider: a host in it exists. Whether it is on is what its agent says, which is control's to judge.

use crate::config::{PoolConfig, PoolSource, StaticPool};
use crate::ports::actuate::{
    ActuateError, Actuator, Instance, InstanceState, LaunchOrder, LaunchOutcome, PoolReading,
    ProviderFailure, Trace, Way,
};
use async_trait::async_trait;
use drover_core::model::{
    FailureKind, InstanceId, Market, MicroUsd, Millis, Offering, OfferingId, PoolId, PoolKind,
    Steering, UnixMs,
};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// From power-on to ready, as long as nothing has been learnt.
const BOOT: Millis = Millis::minutes(5);
/// What is kept of a command's output, bytes.
const OUTPUT: u64 = 2_048;

/// Every static pool of the config.
pub struct StaticHosts {
    pools: BTreeMap<PoolId, StaticPool>,
    now: Box<dyn Fn() -> UnixMs + Send + Sync>,
}

/// Id of the one offering of a static pool.
#[must_use]
pub fn offering_id(pool: &PoolId) -> OfferingId {
    OfferingId::new(format!("{pool}/host//owned"))
}

impl StaticHosts {
    /// For the static pools among these.
    pub fn new(pools: &[PoolConfig], now: impl Fn() -> UnixMs + Send + Sync + 'static) -> Self {
        let pools = pools.iter().filter_map(|pool| match &pool.source {
            PoolSource::Static(hosts) => Some((pool.name.clone(), hosts.clone())),
            _ => None,
        });
        Self {
            pools: pools.collect(),
            now: Box::new(now),
        }
    }

    fn pool(&self, pool: &PoolId) -> Result<&StaticPool, ActuateError> {
        self.pools.get(pool).ok_or_else(|| ActuateError {
            kind: FailureKind::Config,
            code: String::new(),
            message: format!("{pool} is not a static pool of the config"),
        })
    }

    fn reading(&self, pool: &PoolId, hosts: &StaticPool) -> PoolReading {
        let offering = offering_id(pool);
        let instance = |host: &InstanceId| Instance {
            id: host.clone(),
            state: InstanceState::Running,
            offering: Some(offering.clone()),
            zone: String::new(),
            instance_type: String::new(),
            protected: None,
            launched: None,
            ends: None,
        };
        PoolReading {
            instances: hosts.hosts.iter().map(instance).collect(),
            offerings: vec![Offering {
                id: offering.clone(),
                instance_type: "host".to_owned(),
                zone: String::new(),
                market: Market::Owned,
                price: MicroUsd::ZERO,
                allocatable: Some(hosts.allocatable.clone()),
                gpu_model: hosts.gpu_model.clone(),
                boot: BOOT,
                // Without a power-on command no host can be had; which are off is control's to count.
                available: hosts.power.on.is_none().then_some(0),
                reservations: Vec::new(),
            }],
            steering: Steering::Host,
            removable: hosts.power.off.is_some(),
            ..PoolReading::empty((self.now)())
        }
    }
}

#[async_trait]
impl Actuator for StaticHosts {
    fn kind(&self) -> PoolKind {
        PoolKind::Static
    }

    async fn read(&self, pools: &[PoolId]) -> Vec<(PoolId, Result<PoolReading, ActuateError>)> {
        let read = |pool: &PoolId| self.pool(pool).map(|hosts| self.reading(pool, hosts));
        pools
            .iter()
            .map(|pool| (pool.clone(), read(pool)))
            .collect()
    }

    async fn launch(&self, order: &LaunchOrder) -> Result<LaunchOutcome, ActuateError> {
        let pool = self.pool(&order.pool)?;
        let Some(command) = &pool.power.on else {
            return Err(ActuateError {
                kind: FailureKind::Config,
                code: String::new(),
                message: format!(
                    "pool {} has no power_on command: its hosts are switched on by hand",
                    order.pool
                ),
            });
        };
        let mut running = tokio::task::JoinSet::new();
        for host in order.hosts.iter().filter(|host| pool.hosts.contains(host)) {
            let (command, host, timeout) = (command.clone(), host.clone(), pool.power.timeout);
            running.spawn(async move { (host.clone(), power(&command, &host, timeout).await) });
        }
        let mut outcome = LaunchOutcome {
            way: Way::PowerOn,
            instances: Vec::new(),
            granted: 0,
            failures: Vec::new(),
            raised: None,
        };
        while let Some(ended) = running.join_next().await {
            match ended {
                Ok((host, Ok(()))) => outcome.instances.push(host),
                Ok((host, Err(message))) => outcome.failures.push(ProviderFailure {
                    id: format!("{}/{host}", order.token),
                    offering: Some(order.offering.clone()),
                    kind: FailureKind::Transient,
                    message,
                    at: (self.now)(),
                    trace: Trace::Absent,
                }),
                Err(error) => tracing::error!(%error, "a power-on task died"),
            }
        }
        outcome.instances.sort();
        outcome.granted = u32::try_from(outcome.instances.len()).unwrap_or(u32::MAX);
        Ok(outcome)
    }

    /// Switching on what is on changes nothing, so the ask is repeated.
    async fn settle(
        &self,
        order: &LaunchOrder,
        _: &[InstanceId],
        _: UnixMs,
    ) -> Result<LaunchOutcome, ActuateError> {
        self.launch(order).await
    }

    async fn leave(&self, pool: &PoolId, instance: &InstanceId) -> Result<(), ActuateError> {
        let hosts = self.pool(pool)?;
        let refused = |kind, message| {
            Err(ActuateError {
                kind,
                code: String::new(),
                message,
            })
        };
        if !hosts.hosts.contains(instance) {
            return refused(
                FailureKind::Config,
                format!("{instance} is not a host of pool {pool}"),
            );
        }
        let Some(command) = &hosts.power.off else {
            return refused(
                FailureKind::Config,
                format!("pool {pool} has no power_off command"),
            );
        };
        match power(command, instance, hosts.power.timeout).await {
            Ok(()) => Ok(()),
            Err(message) => refused(FailureKind::Transient, message),
        }
    }
}

/// Runs a power command for a host; the error says what it printed.
async fn power(command: &[String], host: &InstanceId, timeout: Millis) -> Result<(), String> {
    let shown = command.join(" ");
    let Some((program, arguments)) = command.split_first() else {
        return Err("the power command is empty: name a program".to_owned());
    };
    let started = Command::new(program)
        .args(arguments)
        .env("DROVER_HOST", host.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = started.map_err(|error| format!("{shown} for {host}: {error}"))?;
    let mut errors = child.stderr.take().map(|stderr| stderr.take(OUTPUT));
    let run = async {
        let mut said = String::new();
        if let Some(errors) = &mut errors {
            // What is not text is not shown; the exit code decides.
            let _ = errors.read_to_string(&mut said).await;
        }
        (child.wait().await, said)
    };
    match tokio::time::timeout(Duration::from_millis(timeout.0), run).await {
        Ok((Ok(status), _)) if status.success() => Ok(()),
        Ok((Ok(status), said)) => Err(format!("{shown} for {host}: {status} {}", said.trim())),
        Ok((Err(error), _)) => Err(format!("{shown} for {host}: {error}")),
        Err(_) => Err(format!(
            "{shown} for {host}: no end within {} s",
            timeout.0 / 1_000
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn hosts(power: &str) -> StaticHosts {
        let text = format!(
            "[[pool]]\nname = \"rack\"\nkind = \"static\"\nsite = \"office\"\nhosts = [\"a\", \"b\"]\ngpus = 4\n\
             gpu_model = \"titan-x\"\ncpus = 12\nmemory = \"64GiB\"\n{power}"
        );
        StaticHosts::new(&config::parse(&text).expect("a sound config").pools, || {
            UnixMs(7)
        })
    }

    fn order(hosts: &[&str]) -> LaunchOrder {
        let pool = PoolId::from("rack");
        LaunchOrder {
            id: "l-1".into(),
            token: "t".into(),
            offering: offering_id(&pool),
            pool,
            count: 2,
            asked: UnixMs(1),
            hosts: hosts.iter().map(|h| InstanceId::from(*h)).collect(),
        }
    }

    #[tokio::test]
    async fn without_commands_hosts_stay_on() {
        let actuator = hosts("");
        let read = actuator.read(&["rack".into()]).await;
        let reading = read[0].1.as_ref().expect("the list is always there");
        assert_eq!(reading.instances.len(), 2);
        assert!(!reading.removable);
        assert_eq!(reading.offerings[0].available, Some(0));
        let refused = actuator
            .leave(&"rack".into(), &"a".into())
            .await
            .expect_err("there is no command");
        assert_eq!(refused.kind, FailureKind::Config);
    }

    #[tokio::test]
    async fn power_commands_get_the_host_and_their_failure_is_told() {
        let actuator = hosts(
            "power_on = [\"sh\", \"-c\", \"test $DROVER_HOST = a || { echo no such outlet >&2; exit 3; }\"]\n\
             power_off = [\"sh\", \"-c\", \"sleep 60\"]\npower_timeout = \"1s\"\n",
        );
        let outcome = actuator
            .launch(&order(&["a", "b", "stranger"]))
            .await
            .expect("it is asked");
        assert_eq!(outcome.instances, [InstanceId::from("a")]);
        assert_eq!(outcome.failures.len(), 1);
        assert!(
            outcome.failures[0].message.contains("no such outlet"),
            "{:?}",
            outcome.failures
        );
        let late = actuator
            .leave(&"rack".into(), &"a".into())
            .await
            .expect_err("it takes too long");
        assert!(late.message.contains("no end within 1 s"), "{late}");
        let stranger = actuator
            .leave(&"rack".into(), &"stranger".into())
            .await
            .expect_err("not ours");
        assert!(stranger.message.contains("not a host"), "{stranger}");
    }
}
