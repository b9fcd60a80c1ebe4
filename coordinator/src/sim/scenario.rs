//! A day of a small fleet with mishaps, drawn from a seed; as a value that can be made smaller, and as the one file that
//! `drover simulate` plays.
//!
//! Made by `seeds`. Deterministic: the same seed, the same scenario.

use super::fault::{Fault, Kind};
use super::job_table::{quoted, write};
use super::trace::Job;
use crate::world::generator::Generator;
use drover_core::model::{Locality, MilliCpu, Millis, Resources};
use std::fmt::Write as _;

/// A day.
pub(super) const DAY: Millis = Millis::minutes(24 * 60);

/// One pool with its group of the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) max: u32,
    pub(super) gpus: u32,
    pub(super) price: u64,
    pub(super) spot: bool,
    pub(super) boot_ms: u64,
    pub(super) jitter_ms: u64,
    /// Minutes that a node is idle before it goes.
    pub(super) idle_minutes: u64,
    pub(super) spare: u32,
    pub(super) anticipate: bool,
    /// Lines of its offering's `trouble` table.
    pub(super) trouble: Vec<String>,
    /// Tables of shortages and of its API's trouble: (table, from, until in ms).
    pub(super) windows: Vec<(&'static str, u64, u64)>,
}

/// Everything of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) seed: u64,
    pub(super) placer: &'static str,
    pub(super) stated: bool,
    pub(super) order_delay: Millis,
    pub(super) hold: Millis,
    pub(super) max_gpus: Option<u32>,
    pub(super) regions: Vec<Region>,
    pub(super) jobs: Vec<Job>,
    pub(super) faults: Vec<Fault>,
}

/// A moment of the day.
fn moment(dice: &mut Generator) -> Millis {
    Millis::seconds(dice.below(DAY.0 / 1_000))
}

fn one_of<T: Copy>(dice: &mut Generator, all: &[T]) -> T {
    let count = u64::try_from(all.len()).unwrap_or(1);
    all[usize::try_from(dice.below(count)).unwrap_or(0)]
}

fn region(at: usize, dice: &mut Generator) -> Region {
    let spot = dice.below(4) == 0;
    let mut trouble = Vec::new();
    let mut say = |dice: &mut Generator, odds: u64, line: &dyn Fn(u64) -> String| {
        if dice.below(odds) == 0 {
            let drawn = dice.below(100);
            trouble.push(line(drawn));
        }
    };
    say(dice, 3, &|n| {
        format!("late_percent = {}\nlate_ms = {}", n, 60_000 * (1 + n))
    });
    say(dice, 4, &|n| format!("never_joins_percent = {}", n / 2));
    say(dice, 3, &|n| format!("shortage_percent = {n}"));
    say(dice, 3, &|n| format!("partial_percent = {n}"));
    if spot {
        say(dice, 2, &|n| {
            format!("interruption_ms = {}", 1_800_000 * (1 + n))
        });
    }
    let mut windows = Vec::new();
    for (odds, table) in [
        (2, "group.offering.shortage"),
        (6, "group.offering.trouble.bad_image"),
        (5, "group.api.away"),
        (5, "group.api.throttled"),
    ] {
        if dice.below(odds) == 0 {
            let from = moment(dice).0;
            windows.push((table, from, from + 60_000 * (1 + dice.below(240))));
        }
    }
    Region {
        name: format!("r{at}"),
        max: 1 + u32::try_from(dice.below(8)).unwrap_or(0),
        gpus: one_of(dice, &[1, 4, 8, 8]),
        price: 1_000_000 * (1 + dice.below(5)),
        spot,
        boot_ms: 1_000 * dice.below(600),
        jitter_ms: 1_000 * dice.below(120),
        idle_minutes: dice.below(30),
        spare: u32::from(dice.below(5) == 0),
        anticipate: dice.below(4) == 0,
        trouble,
        windows,
    }
}

fn job(at: u64, largest: u32, dice: &mut Generator) -> Job {
    let unit = Resources {
        gpus: one_of(dice, &[0, 1, 1, 2, 4, 8]).min(largest),
        cpu: MilliCpu(1_000 * (1 + dice.below(4))),
        ..Resources::default()
    };
    // Half of them short, some for most of the day.
    let minutes = match dice.below(8) {
        0..4 => 1 + dice.below(20),
        4..7 => 20 + dice.below(180),
        _ => 200 + dice.below(600),
    };
    let mut job = Job::new(
        format!("j{at}"),
        moment(dice),
        Millis::minutes(minutes),
        unit,
    );
    if dice.below(4) == 0 {
        job.units = 2 + u32::try_from(dice.below(4)).unwrap_or(0);
        job.min_units = if dice.below(3) == 0 { 1 } else { job.units };
        job.locality = one_of(
            dice,
            &[
                Locality::Any,
                Locality::Site,
                Locality::Pool,
                Locality::Zone,
            ],
        );
    }
    if dice.below(2) == 0 {
        job.checkpoint = Some(Millis::minutes(10));
    }
    job
}

fn fault(dice: &mut Generator) -> Fault {
    let kinds = Kind::ALL.map(|(_, kind)| kind);
    Fault {
        kind: one_of(dice, &kinds),
        at: moment(dice),
        lasts: Millis::seconds(30 + dice.below(3_600)),
        pool: String::new(),
        count: 1 + u32::try_from(dice.below(4)).unwrap_or(0),
    }
}

impl Scenario {
    /// The scenario of a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Generator::new(seed);
        let dice = &mut dice;
        let regions: Vec<Region> = (0..1 + usize::try_from(dice.below(3)).unwrap_or(0))
            .map(|at| region(at, dice))
            .collect();
        let largest = regions.iter().map(|region| region.gpus).max().unwrap_or(1);
        let mut jobs: Vec<Job> = (0..3 + dice.below(22))
            .map(|at| job(at, largest, dice))
            .collect();
        // A burst now and then: the same jobs at one moment.
        if dice.below(3) == 0 {
            let at = moment(dice);
            for job in jobs.iter_mut().take(8) {
                job.submit = at;
            }
        }
        let faults = (0..dice.below(5)).map(|_| fault(dice)).collect();
        Self {
            seed,
            placer: one_of(dice, &["planner", "planner", "kube-default"]),
            stated: dice.below(2) == 0,
            order_delay: Millis::seconds(dice.below(3) * dice.below(20)),
            hold: Millis::minutes(1 + dice.below(40)),
            max_gpus: (dice.below(5) == 0).then(|| 4 + u32::try_from(dice.below(40)).unwrap_or(0)),
            regions,
            jobs,
            faults,
        }
    }

    /// As one file.
    pub(super) fn text(&self) -> String {
        let mut out = format!(
            "# Seed {}: `drover simulate --config THIS` plays it.\n[simulate]\nseed = {}\nplacer = {:?}\ndurations = {:?}\n\
             interval = \"10m\"\nend = {}\nskip_unfit = true\norder_delay = {}\n",
            self.seed,
            self.seed,
            self.placer,
            if self.stated { "stated" } else { "unknown" },
            quoted(DAY),
            quoted(self.order_delay),
        );
        for job in &self.jobs {
            out.push_str(&write(job));
        }
        for fault in &self.faults {
            let _ = write!(
                out,
                "[[simulate.fault]]\nkind = {:?}\nat = {}\nlasts = {}\ncount = {}\n",
                fault.kind.name(),
                quoted(fault.at),
                quoted(fault.lasts),
                fault.count
            );
        }
        let _ = write!(out, "[control]\ngang_hold = {}\n", quoted(self.hold));
        if let Some(most) = self.max_gpus {
            let _ = writeln!(out, "max_gpus = {most}");
        }
        for region in &self.regions {
            region.pool(&mut out);
        }
        for region in &self.regions {
            region.group(&mut out);
        }
        out
    }
}

impl Region {
    fn pool(&self, out: &mut String) {
        let _ = write!(
            out,
            "[[pool]]\nname = {0:?}\nkind = \"sim\"\nsite = {0:?}\ngroup = {0:?}\nmode = \"full\"\nmax = {1}\n\
             idle_after = \"{2}m\"\nspare = {3}\n",
            self.name, self.max, self.idle_minutes, self.spare
        );
        if self.anticipate {
            out.push_str("anticipate = true\n");
        }
    }

    fn group(&self, out: &mut String) {
        let _ = write!(
            out,
            "[[group]]\nname = {0:?}\nregion = {0:?}\nmax = {1}\n",
            self.name, self.max
        );
        self.tables(out, |table| table.starts_with("group.api"));
        let _ = write!(
            out,
            "[[group.offering]]\ninstance_type = \"t{0}\"\nzone = \"{1}-a\"\nmarket = {2:?}\n\
             price_micro_usd_per_hour = {3}\ngpus = {0}\ngpu_model = \"v100\"\ncpus = {4}\nmemory_gib = 64\n\
             boot_ms = {5}\nboot_jitter_ms = {6}\n",
            self.gpus,
            self.name,
            if self.spot { "spot" } else { "on-demand" },
            self.price,
            self.gpus * 8,
            self.boot_ms,
            self.jitter_ms
        );
        if !self.trouble.is_empty() {
            let _ = write!(
                out,
                "[group.offering.trouble]\n{}\n",
                self.trouble.join("\n")
            );
        }
        self.tables(out, |table| table.starts_with("group.offering"));
    }

    fn tables(&self, out: &mut String, which: impl Fn(&str) -> bool) {
        for (table, from, until) in self.windows.iter().filter(|(table, ..)| which(table)) {
            let _ = write!(out, "[[{table}]]\nfrom_ms = {from}\nuntil_ms = {until}\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::config;

    #[test]
    fn every_seed_gives_a_sound_file() {
        for seed in 0..300 {
            let scenario = Scenario::new(seed);
            let text = scenario.text();
            let read = config::parse(&text).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
            assert_eq!(read.simulate.jobs, scenario.jobs, "seed {seed}");
            assert_eq!(read.simulate.faults, scenario.faults, "seed {seed}");
            assert_eq!(read.world.groups.len(), scenario.regions.len());
            assert_eq!(Scenario::new(seed), scenario);
        }
    }
}
