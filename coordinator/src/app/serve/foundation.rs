//! What the parts of a coordinator stand on, and the parts that are made from it.
//!
//! Called by `app::serve` once everything that can fail without harm is open.

use super::actuators;
use super::admission::PoolAdmission;
use crate::adapters::ca::Ca;
use crate::adapters::demand::requests::Requests;
use crate::adapters::link::Hub;
use crate::config::Config;
use crate::control::commands::Commands;
use crate::control::cycle::{Control, Ports};
use crate::control::journal::Journal;
use crate::control::plans::PlanFiles;
use crate::control::settings::Asks;
use crate::control::view::FleetView;
use crate::files::contexts;
use crate::ports::clock::Clock;
use crate::ports::store::Store;
use crate::serve::agents::{Agents, Intervals, Parts};
use crate::serve::first_admin::{self, FirstAdmin};
use crate::serve::identities::IdentityDesk;
use anyhow::{Context as _, Result};
use drover_core::model::Millis;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Plans that are kept when the config names no folder for them.
const PLANS: u64 = 1_000;
/// Agents are spoken to at least this often: well within the 60 s that destructive steps allow.
const HEARTBEAT: Millis = Millis::seconds(10);
/// Name of the admin context that a start writes.
const LOCAL: &str = "local";

/// What the parts are made from.
pub(super) struct Foundation {
    pub(super) config: Arc<Config>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) journal: Arc<Journal>,
    pub(super) ca: Arc<Ca>,
    pub(super) hub: Arc<Hub>,
}

impl Foundation {
    pub(super) fn identities(&self) -> IdentityDesk {
        IdentityDesk::new(
            self.journal.clone(),
            self.ca.clone(),
            self.hub.clone(),
            self.clock.clone(),
        )
    }

    /// The context of the user who runs this.
    pub(super) async fn first_admin(
        &self,
        identities: &IdentityDesk,
        listen: SocketAddr,
    ) -> Result<()> {
        let dir = match &self.config.server.context_dir {
            Some(dir) => dir.clone(),
            None => contexts::directory()?,
        };
        let address = reachable(listen).to_string();
        match first_admin::ensure(&dir, LOCAL, &address, identities, &self.ca, &*self.clock).await?
        {
            FirstAdmin::Kept(name) if name == LOCAL => {}
            FirstAdmin::Written(name) => {
                tracing::info!(dir = %dir.display(), name, "wrote the admin context")
            }
            FirstAdmin::Moved { name, from } => tracing::warn!(
                dir = %dir.display(),
                name,
                from,
                to = address,
                "the admin context pointed to another address of this coordinator: it points here now"
            ),
            FirstAdmin::Kept(name) | FirstAdmin::WrittenBeside(name) => tracing::warn!(
                dir = %dir.display(),
                name,
                "the context \"local\" belongs to another coordinator: this one's stands beside it, choose it with `drover \
                 context use {name}`"
            ),
        }
        Ok(())
    }

    pub(super) async fn control(
        &self,
        state_dir: &Path,
        kept: &mut actuators::Kept,
    ) -> Result<(Control, Commands, Asks)> {
        let ports = Ports {
            journal: self.journal.clone(),
            link: self.hub.clone(),
            actuators: actuators::all(&self.config, &*self.store, &self.clock, kept).await?,
            sources: vec![Arc::new(Requests::new(
                self.store.clone(),
                self.config.control.gang_hold,
            ))],
            clock: self.clock.clone(),
        };
        let mut control = Control::new(self.config.clone(), ports);
        let (queues, wake) = (kept.queues(), control.wake());
        queues.ring(move || {
            wake.call();
        });
        control.hear_from(Arc::new(queues));
        let (dir, keep) = match &self.config.control.plans_dir {
            Some(dir) => (dir.clone(), None),
            None => (state_dir.join("plans"), Some(PLANS)),
        };
        let files = PlanFiles::open(&dir, keep)
            .with_context(|| format!("cannot keep plans in {}", dir.display()))?;
        control.keep_plans(files);
        let (commands, asks) = control.commands();
        Ok((control, commands, asks))
    }

    pub(super) fn agents(
        &self,
        settings: watch::Receiver<Arc<Config>>,
        views: watch::Receiver<Arc<FleetView>>,
    ) -> Arc<Agents> {
        Agents::new(Parts {
            journal: self.journal.clone(),
            ca: self.ca.clone(),
            hub: self.hub.clone(),
            clock: self.clock.clone(),
            admission: Arc::new(PoolAdmission::new(settings, views)),
            intervals: Intervals {
                report: self.config.control.report_interval,
                full: self.config.control.full_interval,
                heartbeat: HEARTBEAT,
            },
        })
    }
}

/// An address at which the coordinator's own host reaches it.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
