//! Who may join the port under test: what its admission says, and what a test changes of that. A part of `rig`.

use super::super::{Admission, KnownPool};
use crate::config::enrolment::InstanceIdentity;
use crate::records::NodeRecord;
use drover_core::model::PoolId;
use drover_proto::v1;
use std::sync::Mutex;

/// Who may join here.
#[derive(Default)]
pub(crate) struct Hosts {
    /// Pools of a cloud, with what their provider says.
    pub(crate) clouds: Mutex<Vec<KnownPool>>,
    /// Whose documents are believed.
    pub(crate) pinned: Mutex<Option<InstanceIdentity>>,
}

impl Admission for Hosts {
    fn instance_identity(&self) -> Option<InstanceIdentity> {
        self.pinned.lock().unwrap().clone()
    }

    fn pools(&self) -> Vec<KnownPool> {
        self.clouds.lock().unwrap().clone()
    }

    fn admit(&self, facts: &v1::Facts, pool: Option<&PoolId>) -> Result<Option<PoolId>, String> {
        if pool.is_some_and(|pool| pool.as_str() == "rack") && facts.hostname != "titan-01" {
            return Err(format!("pool rack does not list host {:?}", facts.hostname));
        }
        Ok(pool.cloned())
    }

    fn keeps(&self, node: &NodeRecord) -> Result<(), String> {
        if node.pool == Some(PoolId::from("closed")) {
            return Err("pool closed is no longer in the config".into());
        }
        Ok(())
    }
}
