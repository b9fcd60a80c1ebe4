//! Another config for a running coordinator: at SIGHUP the file's, and with other pools whenever other groups are found in
//! AWS. A file that does not parse or check leaves the last good one in force, and is told as event and alarm.

use super::discovery::Discovered;
use super::{actuators, not_built};
use crate::adapters::demand::requests::Requests;
use crate::config::{self, Config};
use crate::control::commands::Commands;
use crate::control::settings::{Ask, Settings};
use crate::ports::clock::Clock;
use crate::ports::store::Store;
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::time::{Instant, sleep_until};

/// What a reload is made with.
pub(super) struct Reload {
    pub(super) path: PathBuf,
    /// The file's config, without pools that were found.
    pub(super) file: Config,
    pub(super) running: Arc<Config>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) kept: actuators::Kept,
    pub(super) discovered: Discovered,
    pub(super) commands: Commands,
}

impl Reload {
    /// Takes the file anew at each signal, and looks for groups at their age, until nothing can come any more.
    pub(super) async fn run(mut self, mut hangup: Signal) {
        let mut due = Instant::now();
        let mut told: Vec<String> = Vec::new();
        loop {
            let asks = tokio::select! {
                signal = hangup.recv() => {
                    if signal.is_none() {
                        return;
                    }
                    due = Instant::now();
                    vec![self.reload().await]
                }
                () = sleep_until(due), if self.discovered.is_on() => {
                    let Some((asks, next)) = self.look(&mut told).await else {
                        return;
                    };
                    due = Instant::now() + next;
                    asks
                }
            };
            for ask in asks {
                if self.commands.ask(ask).await.is_err() {
                    return;
                }
            }
        }
    }

    async fn reload(&mut self) -> Ask {
        match self.read().await {
            Ok((file, settings)) => {
                self.file = file;
                self.running = settings.config.clone();
                Ask::Settings(Box::new(settings))
            }
            Err(error) => Ask::Refused {
                why: format!("{error:#}"),
            },
        }
    }

    /// Looks for groups; nothing when somebody else leads. The same treatment as a reload of the file.
    async fn look(&mut self, told: &mut Vec<String>) -> Option<(Vec<Ask>, Duration)> {
        let look = self.discovered.look(&self.file).await.ok()?;
        let (config, skipped) = self.discovered.merge(&self.file);
        let mut troubles = look.troubles;
        troubles.extend(skipped);
        let mut asks = Vec::new();
        if config != *self.running {
            match self.settings(config).await {
                Ok(settings) => {
                    self.running = settings.config.clone();
                    asks.push(Ask::Discovered(Box::new(settings)));
                }
                Err(error) => troubles.push(format!("{error:#}")),
            }
        }
        if troubles != *told {
            told.clone_from(&troubles);
            asks.push(Ask::Undiscovered(troubles));
        }
        Some((asks, look.next))
    }

    async fn read(&mut self) -> Result<(Config, Settings)> {
        let mut file = config::load(&self.path)?;
        if let Some(why) = not_built(&file) {
            bail!("{why}");
        }
        for warning in file.warnings() {
            tracing::warn!("{warning}");
        }
        keep_fixed(&mut file, &self.running);
        let cloud = self.kept.cloud(&file).await;
        self.discovered.ask(cloud.as_ref())?;
        let merged = self.discovered.merge(&file).0;
        let settings = self.settings(merged).await?;
        Ok((file, settings))
    }

    async fn settings(&mut self, config: Config) -> Result<Settings> {
        let config = Arc::new(config);
        let actuators = actuators::all(&config, &*self.store, &self.clock, &mut self.kept)
            .await
            .context("its pools cannot be driven")?;
        let requests = Requests::new(self.store.clone(), config.control.gang_hold);
        Ok(Settings {
            config,
            actuators,
            sources: vec![Arc::new(requests)],
        })
    }
}

/// What only a start can change stays as it runs, and is said.
fn keep_fixed(config: &mut Config, running: &Config) {
    let said = |key: &str| {
        tracing::warn!(
            key,
            "a changed key takes effect at the next start of the coordinator"
        )
    };
    if config.server != running.server {
        said("server");
        config.server = running.server.clone();
    }
    let (new, old) = (&mut config.control, &running.control);
    for (key, new, old) in [
        (
            "control.report_interval",
            &mut new.report_interval,
            old.report_interval,
        ),
        (
            "control.full_interval",
            &mut new.full_interval,
            old.full_interval,
        ),
    ] {
        if *new != old {
            said(key);
            *new = old;
        }
    }
    if new.plans_dir != old.plans_dir {
        said("control.plans_dir");
        new.plans_dir.clone_from(&old.plans_dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_start_can_change_stays_as_it_runs() {
        let parse = |text: &str| config::parse(text).expect("a sound config");
        let running = parse("[server]\nlisten = \"127.0.0.1:1\"\n[control]\ninterval = \"5s\"\n");
        let mut new = parse(
            "[server]\nlisten = \"127.0.0.1:2\"\n\
             [control]\ninterval = \"7s\"\nreport_interval = \"1s\"\nplans_dir = \"/plans\"\n",
        );
        keep_fixed(&mut new, &running);
        assert_eq!(new.server, running.server);
        assert_eq!(new.control.report_interval, running.control.report_interval);
        assert_eq!(new.control.plans_dir, None);
        assert_eq!(
            new.control.interval,
            drover_core::model::Millis::seconds(7),
            "all else is new"
        );
    }
}
