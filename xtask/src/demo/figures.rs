//! The demo's figures and when they mean failure. Pure.

use serde_json::{Value, json};
use std::fmt;

/// Counted by the runner and the cloud process, not by the coordinator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// GPUs that the users asked for.
    pub gpus_requested: u32,
    /// GPUs on which a user's job ran to its end.
    pub gpus_served: u32,
    /// Most machines alive at once: rack and cloud.
    pub peak_nodes: u32,
    /// Regions in which the cloud ever ran an instance.
    pub regions: Vec<String>,
    /// Times that another region granted instances after one was short.
    pub failovers: u32,
    /// Jobs that did not end by themselves, by their exits and by the cloud's count.
    pub jobs_killed: u32,
    /// Instances alive at the end, and machines whose agent died on its own.
    pub nodes_leaked: u32,
    /// Hosts of the rack that still stand at the end, of how many.
    pub rack: (u32, u32),
    /// Removals that waited for the operator's approval.
    pub approvals: u32,
    /// What the instances cost, millionths of a USD.
    pub cost_micro_usd: u64,
    /// From the first request to the last instance's end, milliseconds.
    pub milliseconds: u64,
}

impl Figures {
    /// Every reason to call the demo failed.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        if self.gpus_served != self.gpus_requested {
            failures.push(format!(
                "{} of {} GPUs were served",
                self.gpus_served, self.gpus_requested
            ));
        }
        if self.jobs_killed > 0 {
            failures.push(format!("{} jobs were killed", self.jobs_killed));
        }
        if self.nodes_leaked > 0 {
            failures.push(format!("{} nodes leaked", self.nodes_leaked));
        }
        if self.rack.0 != self.rack.1 {
            failures.push(format!(
                "{} of {} hosts of the rack are left",
                self.rack.0, self.rack.1
            ));
        }
        if self.regions.len() < 2 || self.failovers == 0 {
            failures.push("the load never failed over to another region".to_owned());
        }
        failures
    }

    /// One object with stable names.
    pub fn to_json(&self) -> Value {
        json!({
            "gpus_requested": self.gpus_requested,
            "gpus_served": self.gpus_served,
            "peak_nodes": self.peak_nodes,
            "regions_used": self.regions.len(),
            "regions": self.regions,
            "failovers": self.failovers,
            "jobs_killed": self.jobs_killed,
            "nodes_leaked": self.nodes_leaked,
            "rack_hosts_left": self.rack.0,
            "approvals": self.approvals,
            "cost_micro_usd": self.cost_micro_usd,
            "seconds": self.milliseconds as f64 / 1000.0,
        })
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "GPUs requested   {}", self.gpus_requested)?;
        writeln!(f, "GPUs served      {}", self.gpus_served)?;
        writeln!(f, "most nodes       {}", self.peak_nodes)?;
        writeln!(
            f,
            "regions used     {} ({})",
            self.regions.len(),
            self.regions.join(", ")
        )?;
        writeln!(f, "failovers        {}", self.failovers)?;
        writeln!(f, "jobs killed      {}", self.jobs_killed)?;
        writeln!(f, "nodes leaked     {}", self.nodes_leaked)?;
        writeln!(f, "rack hosts left  {} of {}", self.rack.0, self.rack.1)?;
        writeln!(f, "approvals given  {}", self.approvals)?;
        writeln!(
            f,
            "seconds          {:.1}",
            self.milliseconds as f64 / 1000.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    fn good() -> Figures {
        Figures {
            gpus_requested: 1661,
            gpus_served: 1661,
            regions: vec!["a".into(), "b".into()],
            failovers: 1,
            rack: (15, 15),
            ..Figures::default()
        }
    }

    #[test]
    fn each_figure_can_fail_by_itself() {
        assert!(good().failures().is_empty());
        let bad = [
            Figures {
                gpus_served: 1660,
                ..good()
            },
            Figures {
                jobs_killed: 1,
                ..good()
            },
            Figures {
                nodes_leaked: 1,
                ..good()
            },
            Figures {
                rack: (14, 15),
                ..good()
            },
            Figures {
                failovers: 0,
                ..good()
            },
            Figures {
                regions: vec!["a".into()],
                ..good()
            },
        ];
        for figures in bad {
            assert_eq!(figures.failures().len(), 1, "{figures:?}");
        }
    }
}
