//! The acts: one GPU, a gang of 60, then 1,600 in the cloud, and back to an empty cloud.

use super::Sabotage;
use super::admin::{number, text, wait_for};
use super::figures::Figures;
use super::jobs::Jobs;
use super::scene::{INSTANCE_GPUS, RACK};
use super::screen::Screen;
use super::stage::Stage;
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What one act asks for.
struct Act {
    name: &'static str,
    ask: &'static [&'static str],
    /// Told to the audience.
    tale: &'static str,
    gpus: u32,
    /// How long one of its jobs runs, seconds.
    seconds: u32,
    /// GPUs of one job.
    job_gpus: u32,
    within: Duration,
}

const ACTS: [Act; 3] = [
    Act {
        name: "first",
        ask: &["--gpus", "1", "--gpu-model", "titan-x", "--for", "8h"],
        tale: "a researcher asks for 1 Titan X",
        gpus: 1,
        seconds: 2,
        job_gpus: 1,
        within: Duration::from_secs(30),
    },
    Act {
        name: "gang",
        ask: &[
            "--gpus",
            "60",
            "--gpu-model",
            "titan-x",
            "--for",
            "8h",
            "--gang",
            "--min",
            "60",
            "--locality",
            "site",
        ],
        tale: "then for 60 of them, all at once, in one place",
        gpus: 60,
        seconds: 4,
        job_gpus: 1,
        within: Duration::from_secs(60),
    },
    Act {
        name: "wave",
        ask: &[
            "--gpus",
            "1600",
            "--gpus-per-unit",
            "16",
            "--gpu-model",
            "k80",
            "--for",
            "8h",
        ],
        tale: "then for 1,600 GPUs, in 100 units of 16",
        gpus: 1600,
        seconds: 6,
        job_gpus: INSTANCE_GPUS,
        within: Duration::from_secs(150),
    },
];

/// Plays all acts and counts.
pub fn play(stage: &mut Stage, screen: &Screen, sabotage: Option<Sabotage>) -> Result<Figures> {
    let began = Instant::now();
    let mut jobs = Jobs::default();
    let mut figures = Figures::default();
    screen.tell("the rack is ready: 15 hosts with 4 Titan X each");
    for act in &ACTS {
        figures.gpus_requested += act.gpus;
        screen.tell(act.tale);
        act.play(stage, screen, &mut jobs, sabotage)?;
    }
    screen.tell("all work has ended; the cloud empties");
    if sabotage == Some(Sabotage::Leak) {
        cordon_one(stage)?;
    }
    // A deadline that passes is a leak, which the figures show: no reason to stop here.
    let emptied = wait_for("the cloud to be empty", Duration::from_secs(60), || {
        screen.look(&stage.admin);
        figures.approvals += stage.approve()?;
        let ledger = stage.admin.ledger()?;
        let held = u64::from(sabotage == Some(Sabotage::Leak));
        Ok((number(&ledger, "running") <= held).then_some(()))
    });
    if let Err(error) = emptied {
        screen.tell(&format!("{error:#}"));
    }
    figures.milliseconds = u64::try_from(began.elapsed().as_millis())?;
    count(stage, &jobs, &mut figures)?;
    Ok(figures)
}

impl Act {
    fn play(
        &self,
        stage: &Stage,
        screen: &Screen,
        jobs: &mut Jobs,
        sabotage: Option<Sabotage>,
    ) -> Result<()> {
        let mut ask = vec!["requests", "create", "--name", self.name];
        ask.extend(self.ask);
        stage.admin.ask(&ask)?;
        let mut started: BTreeMap<String, u32> = BTreeMap::new();
        let mut sabotaged = sabotage != Some(Sabotage::KillJob) || self.name != "wave";
        let result = wait_for(
            "the act to be served and its jobs to end",
            self.within,
            || {
                screen.look(&stage.admin);
                let request = stage.admin.ask(&["requests", "show", self.name])?;
                let served = self.start_jobs(stage, &request, &mut started, jobs)?;
                if !sabotaged && jobs.kill_one() {
                    sabotaged = true;
                    screen.tell("sabotage: the runner kills a job");
                }
                let running = jobs.look()?;
                Ok((served == self.gpus && running == 0).then_some(()))
            },
        );
        match result {
            Ok(()) => screen.tell(&format!("{} GPUs served, their jobs have ended", self.gpus)),
            Err(error) => screen.tell(&format!("{error:#}")),
        }
        stage.admin.ask(&["requests", "cancel", self.name])?;
        Ok(())
    }

    /// Starts the jobs of assignments that are ready and have none. Returns GPUs for which a job was started so far.
    ///
    /// A gang starts whole or not at all.
    fn start_jobs(
        &self,
        stage: &Stage,
        request: &Value,
        started: &mut BTreeMap<String, u32>,
        jobs: &mut Jobs,
    ) -> Result<u32> {
        let gang = request
            .get("gang")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        let ready = number(request, "units_ready");
        let assignments = request
            .get("assignments")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !gang || ready == number(request, "units") {
            for assignment in assignments
                .iter()
                .filter(|a| a.get("ready") == Some(&Value::Bool(true)))
            {
                let (folder, gpus) = stage.jobs_of(assignment)?;
                let wanted = u32::try_from(number(assignment, "gpus"))?;
                let begun = started
                    .entry(text(assignment, "node").to_owned())
                    .or_default();
                while *begun + self.job_gpus <= wanted {
                    jobs.start(&folder, self.job_gpus, gpus, self.seconds)?;
                    *begun += self.job_gpus;
                }
            }
        }
        Ok(started.values().sum())
    }
}

/// A person's cordon on an instance: Drover will not touch it, so it stays.
fn cordon_one(stage: &Stage) -> Result<()> {
    let nodes = stage.admin.ask(&["nodes", "list"])?;
    let instance = nodes
        .as_array()
        .into_iter()
        .flatten()
        .find(|n| text(n, "pool").starts_with("p2-"));
    if let Some(node) = instance {
        stage
            .admin
            .ask(&["nodes", "cordon", text(node, "id"), "--reason", "sabotage"])?;
    }
    Ok(())
}

fn count(stage: &mut Stage, jobs: &Jobs, figures: &mut Figures) -> Result<()> {
    let ledger = stage.admin.ledger()?;
    let of = |field| u32::try_from(number(&ledger, field)).unwrap_or(u32::MAX);
    figures.gpus_served = jobs.gpus_served;
    figures.jobs_killed = jobs.killed.max(of("killed_jobs"));
    figures.nodes_leaked = of("running") + of("died");
    figures.failovers = of("failovers");
    figures.rack = (stage.rack_alive(), RACK.0);
    figures.peak_nodes = of("peak_running") + RACK.0;
    figures.cost_micro_usd = number(&ledger, "cost_micro_usd");
    let regions = ledger
        .get("regions_used")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    figures.regions = regions
        .iter()
        .filter_map(|r| r.as_str().map(str::to_owned))
        .collect();
    Ok(())
}
