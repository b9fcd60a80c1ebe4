//! What is free on a machine and what takes it, GPU by GPU.
//!
//! Called by the stage, which starts and ends jobs, and by the placers, which count. **Invariant:** what is put somewhere
//! had room there.

use super::{Node, Work};
use drover_core::model::{Resources, UnixMs};

impl Node {
    /// What is free now, whole GPUs only.
    pub(in crate::sim) fn free(&self) -> Resources {
        let whole = self.gpus.iter().filter(|free| **free == 1_000).count();
        Resources {
            gpus: u32::try_from(whole).unwrap_or(u32::MAX),
            ..self.free.clone()
        }
    }

    /// How many units have room now.
    pub(in crate::sim) fn room(&self, unit: &Resources, whole_node: bool) -> u32 {
        if whole_node {
            return u32::from(self.work.is_empty() && unit.fits(&self.allocatable));
        }
        if unit.gpu_milli == 0 {
            return unit.times(&self.free());
        }
        let rest = Resources {
            gpu_milli: 0,
            ..unit.clone()
        };
        let shares: u32 = self.gpus.iter().map(|free| free / unit.gpu_milli).sum();
        shares.min(rest.times(&self.free))
    }

    /// Sets room aside, for counting only.
    pub(in crate::sim) fn promise(&mut self, unit: &Resources, count: u32) {
        self.put(
            usize::MAX,
            (unit, false),
            count,
            "",
            (UnixMs(0), None, false),
        );
    }

    /// Puts units here that have room.
    pub(in crate::sim::stage) fn put(
        &mut self,
        job: usize,
        (asked, whole_node): (&Resources, bool),
        count: u32,
        team: &str,
        (started, ends, movable): (UnixMs, Option<UnixMs>, bool),
    ) {
        let unit = if whole_node {
            self.allocatable.clone()
        } else {
            asked.clone()
        };
        let mut gpus = Vec::new();
        for _ in 0..count {
            if unit.gpu_milli > 0 {
                let fitting = self.gpus.iter().enumerate();
                let best = fitting
                    .filter(|(_, free)| **free >= unit.gpu_milli)
                    .min_by_key(|(at, free)| (**free, *at))
                    .map(|(at, _)| at);
                if let Some(at) = best {
                    self.gpus[at] -= unit.gpu_milli;
                    gpus.push((at, unit.gpu_milli));
                }
            }
            let mut wanted = unit.gpus;
            for (at, free) in self.gpus.iter_mut().enumerate() {
                if wanted > 0 && *free == 1_000 {
                    *free = 0;
                    gpus.push((at, 1_000));
                    wanted -= 1;
                }
            }
        }
        self.free = self.free.minus(&flat(&unit).scaled(count));
        self.work.push(Work {
            job,
            count,
            unit,
            asked: asked.clone(),
            team: team.to_owned(),
            started,
            ends,
            movable,
            gpus,
        });
        self.changed();
    }

    /// Takes everything of a job away.
    pub(in crate::sim::stage) fn remove(&mut self, job: usize) {
        let (gone, stays) = std::mem::take(&mut self.work)
            .into_iter()
            .partition(|work| work.job == job);
        self.work = stays;
        let gone: Vec<Work> = gone;
        for work in gone {
            self.free = self.free.plus(&flat(&work.unit).scaled(work.count));
            for (at, share) in work.gpus {
                self.gpus[at] += share;
            }
        }
        self.changed();
    }

    /// What is in use, as it was asked for.
    pub(in crate::sim::stage) fn used(&self) -> Resources {
        let mut sum = Resources::default();
        for work in &self.work {
            sum = sum.plus(&work.asked.scaled(work.count));
        }
        sum
    }
}

/// Without GPUs, which are counted one by one.
fn flat(unit: &Resources) -> Resources {
    Resources {
        gpus: 0,
        gpu_milli: 0,
        ..unit.clone()
    }
}
