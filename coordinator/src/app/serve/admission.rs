//! Which host may join which pool: the config's word.

use crate::config::{Config, PoolSource};
use crate::serve::agents::Admission;
use drover_core::model::PoolId;
use drover_proto::v1;
use std::sync::Arc;

/// By the pools of the config.
pub(super) struct PoolAdmission {
    config: Arc<Config>,
}

impl PoolAdmission {
    pub(super) const fn new(config: Arc<Config>) -> Self {
        Self { config }
    }
}

impl Admission for PoolAdmission {
    /// A token without a pool gives supply in no pool; its launch, if there is one, is found by control.
    fn admit(&self, facts: &v1::Facts, pool: Option<&PoolId>) -> Result<Option<PoolId>, String> {
        let Some(name) = pool else { return Ok(None) };
        let pool = self.config.pool(name).ok_or_else(|| {
            format!("pool {name} of the join token is not in the coordinator's config")
        })?;
        match &pool.source {
            PoolSource::Static(hosts)
                if !hosts
                    .hosts
                    .iter()
                    .any(|host| host.as_str() == facts.hostname) =>
            {
                Err(format!(
                    "host {} is not in the list of pool {name}: add it to `hosts`, or use a token of another pool",
                    facts.hostname
                ))
            }
            PoolSource::Static(_) => Ok(Some(name.clone())),
            PoolSource::Asg(_) | PoolSource::Sim(_) if facts.instance_id.is_none() => Err(format!(
                "host {} knows no instance id, and pool {name} is made of instances: see [metadata] of its config",
                facts.hostname
            )),
            PoolSource::Asg(_) | PoolSource::Sim(_) => Ok(Some(name.clone())),
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
        PoolAdmission::new(config).admit(&facts, pool.map(PoolId::from).as_ref())
    }

    #[test]
    fn hosts_join_the_pool_of_their_token_if_they_belong_there() {
        assert_eq!(admit("a", None, Some("rack")), Ok(Some("rack".into())));
        assert_eq!(
            admit("a", Some("i-1"), Some("cloud")),
            Ok(Some("cloud".into()))
        );
        assert_eq!(admit("a", None, None), Ok(None));
        assert!(
            admit("b", None, Some("rack"))
                .expect_err("not in the list")
                .contains("`hosts`")
        );
        assert!(
            admit("a", None, Some("attic"))
                .expect_err("no such pool")
                .contains("attic")
        );
        assert!(
            admit("a", None, Some("cloud"))
                .expect_err("no instance")
                .contains("[metadata]")
        );
    }
}
