//! Which host may join which pool: the config's word.

use crate::config::enrolment::InstanceIdentity;
use crate::config::{Config, PoolSource};
use crate::control::view::FleetView;
use crate::serve::agents::{Admission, KnownPool};
use drover_core::model::{InstanceId, PoolId};
use drover_proto::v1;
use std::sync::Arc;
use tokio::sync::watch;

/// By the pools of the config.
pub(super) struct PoolAdmission {
    settings: watch::Receiver<Arc<Config>>,
    views: watch::Receiver<Arc<FleetView>>,
}

impl PoolAdmission {
    pub(super) const fn new(
        settings: watch::Receiver<Arc<Config>>,
        views: watch::Receiver<Arc<FleetView>>,
    ) -> Self {
        Self { settings, views }
    }
}

impl Admission for PoolAdmission {
    /// The token's pool stands in the node's record. A host that nobody expected there (not in the list, no instance id)
    /// is no error: control counts it as supply in no pool until list or metadata say otherwise.
    fn admit(&self, facts: &v1::Facts, pool: Option<&PoolId>) -> Result<Option<PoolId>, String> {
        let Some(name) = pool else { return Ok(None) };
        let config = self.settings.borrow().clone();
        let pool = config.pool(name).ok_or_else(|| {
            format!("pool {name} of the join token is not in the coordinator's config")
        })?;
        let host = &facts.hostname;
        let surprise = match &pool.source {
            PoolSource::Static(listed)
                if !listed.hosts.iter().any(|known| known.as_str() == host) =>
            {
                Some("it is not in the pool's `hosts`")
            }
            PoolSource::Asg(_) | PoolSource::Sim(_) if facts.instance_id.is_none() => {
                Some("it knows no instance id, see [metadata] of its config")
            }
            PoolSource::Static(_) | PoolSource::Asg(_) | PoolSource::Sim(_) => None,
        };
        if let Some(why) = surprise {
            tracing::warn!(%host, pool = %name, why, "a host that nobody expected: supply in no pool");
        }
        Ok(Some(name.clone()))
    }

    fn instance_identity(&self) -> Option<InstanceIdentity> {
        self.settings.borrow().enrolment.instance_identity.clone()
    }

    /// Pools of clouds; a group of the simulated one has no region that its documents could be held against.
    fn pools(&self) -> Vec<KnownPool> {
        let config = self.settings.borrow().clone();
        let view = self.views.borrow().clone();
        let known = |region: Option<String>, name: &PoolId| KnownPool {
            name: name.clone(),
            region,
            reading: view.readings.get(name).cloned(),
        };
        config
            .pools
            .iter()
            .filter_map(|pool| match &pool.source {
                PoolSource::Static(_) => None,
                PoolSource::Asg(asg) => Some(known(Some(asg.region.clone()), &pool.name)),
                PoolSource::Sim(_) => Some(known(None, &pool.name)),
            })
            .collect()
    }

    /// In a static pool hosts are named by their name, in a cloud by their instance alone.
    fn instance(&self, facts: &v1::Facts, pool: Option<&PoolId>) -> Option<InstanceId> {
        let config = self.settings.borrow().clone();
        let source = pool
            .and_then(|pool| config.pool(pool))
            .map(|pool| &pool.source);
        match source {
            Some(PoolSource::Static(_)) => Some(InstanceId::from(facts.hostname.as_str())),
            _ => facts.instance_id.as_deref().map(InstanceId::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(
        hostname: &str,
        instance: Option<&str>,
        pool: Option<&str>,
    ) -> Result<Option<PoolId>, String> {
        let text = "[[pool]]\nname = \"rack\"\nkind = \"static\"\nsite = \"office\"\nhosts = [\"a\"]\ngpus = 4\n\
                    gpu_model = \"titan-x\"\ncpus = 12\nmemory = \"64GiB\"\n\
                    [[pool]]\nname = \"cloud\"\nkind = \"sim\"\nsite = \"west\"\ngroup = \"g\"\nmax = 10\n\
                    [sim]\ncloud = \"http://127.0.0.1:7900\"\n";
        let config = Arc::new(crate::config::parse(text).expect("a sound config"));
        let facts = v1::Facts {
            hostname: hostname.to_owned(),
            instance_id: instance.map(str::to_owned),
            ..v1::Facts::default()
        };
        let views = watch::channel(Arc::new(FleetView::default())).1;
        PoolAdmission::new(watch::channel(config).1, views)
            .admit(&facts, pool.map(PoolId::from).as_ref())
    }

    #[test]
    fn hosts_join_the_pool_of_their_token_if_they_belong_there() {
        assert_eq!(admit("a", None, Some("rack")), Ok(Some("rack".into())));
        assert_eq!(
            admit("a", Some("i-1"), Some("cloud")),
            Ok(Some("cloud".into()))
        );
        assert_eq!(admit("a", None, None), Ok(None));
        for (host, pool) in [("b", "rack"), ("a", "cloud")] {
            assert_eq!(
                admit(host, None, Some(pool)),
                Ok(Some(pool.into())),
                "never an error"
            );
        }
        assert!(
            admit("a", None, Some("attic"))
                .expect_err("no such pool")
                .contains("attic")
        );
    }
}
