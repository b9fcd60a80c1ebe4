//! A config that is pushed into a running coordinator. Made by `app`, which has checked it; taken between two cycles.
//!
//! What it changes is told. **Invariant:** nothing is drained because a pool left the file or its maximum was lowered:
//! the first is orphaned and reported, the second stops growth.

use super::cycle::{Control, CycleError, Rehearsal};
use super::events::Happening;
use crate::config::Config;
use crate::ports::actuate::Actuator;
use crate::ports::demand::DemandSource;
use crate::ports::store::CommitError;
use drover_core::model::PoolId;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// What a running cycle is asked for, between two cycles.
pub enum Ask {
    /// A plan of now that changes nothing.
    Rehearsal(oneshot::Sender<Rehearsal>),
    /// Another config from now on.
    Settings(Box<Settings>),
    /// The same config with other pools found in AWS.
    Discovered(Box<Settings>),
    /// What discovery could not read or had to leave out; empty: nothing.
    Undiscovered(Vec<String>),
    /// A config was refused: told, and the last good one stays.
    Refused {
        /// Everything that is wrong with it.
        why: String,
    },
}

/// Where asks come out, for [`super::run::run`].
pub type Asks = mpsc::Receiver<Ask>;

/// A config with what it needs.
pub struct Settings {
    /// Checked.
    pub config: Arc<Config>,
    /// One per kind of its pools.
    pub actuators: Vec<Arc<dyn Actuator>>,
    /// Demand.
    pub sources: Vec<Arc<dyn DemandSource>>,
}

impl Control {
    /// The config in force, for whoever must follow it.
    #[must_use]
    pub fn settings(&self) -> watch::Receiver<Arc<Config>> {
        self.settings.subscribe()
    }

    /// Does what was asked.
    ///
    /// # Errors
    /// Somebody else leads.
    pub async fn answer(&mut self, ask: Ask) -> Result<(), CycleError> {
        match ask {
            Ask::Rehearsal(answer) => {
                // Nobody waits any more: fine.
                let _ = answer.send(self.rehearse().await);
                Ok(())
            }
            Ask::Settings(settings) => {
                self.seen.refused_config = None;
                let (gained, lost) = self.reconfigure(*settings);
                self.tell(Happening::ConfigTaken { gained, lost }).await
            }
            Ask::Discovered(settings) => {
                let (gained, lost) = self.reconfigure(*settings);
                // A group whose maximum was changed is no news.
                if gained.is_empty() && lost.is_empty() {
                    return Ok(());
                }
                self.tell(Happening::PoolsDiscovered { gained, lost }).await
            }
            Ask::Undiscovered(troubles) => {
                let before = std::mem::replace(&mut self.seen.undiscovered, troubles.clone());
                for what in troubles {
                    if !before.contains(&what) {
                        self.tell(Happening::DiscoveryTrouble { what }).await?;
                    }
                }
                Ok(())
            }
            Ask::Refused { why } => {
                self.seen.refused_config = Some(why.clone());
                self.tell(Happening::ConfigRefused { why }).await
            }
        }
    }

    /// Goes on with another config; says which pools it gains and loses. What is known of pools, agents and clocks stays.
    fn reconfigure(&mut self, settings: Settings) -> (String, String) {
        let names = |config: &Config| {
            config
                .pools
                .iter()
                .map(|pool| pool.name.clone())
                .collect::<BTreeSet<_>>()
        };
        let (before, after) = (names(&self.config), names(&settings.config));
        let list = |pools: &mut dyn Iterator<Item = &PoolId>| {
            pools.map(PoolId::as_str).collect::<Vec<_>>().join(", ")
        };
        let gained = list(&mut after.difference(&before));
        let lost = list(&mut before.difference(&after));
        self.config = settings.config.clone();
        self.sources = settings.sources;
        self.pools.replace(settings.actuators);
        self.settings.send_replace(settings.config);
        (gained, lost)
    }

    async fn tell(&self, what: Happening) -> Result<(), CycleError> {
        match self.journal.tell(vec![what]).await {
            Err(error @ CommitError::Fenced { .. }) => Err(CycleError::Fenced(error)),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "an event was not kept"
                );
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}
