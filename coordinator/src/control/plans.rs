//! Plan files: NNNN.input.json and NNNN.plan.json of every cycle, or the last ones.
//!
//! Called by the cycle when `app` gave it a directory. Trouble with the disk is logged and costs only the file.

use super::cycle::Control;
use drover_core::model::{PlanInput, Planned};
use drover_core::planner::to_bytes;
use std::path::{Path, PathBuf};

/// Plans kept when the config names no directory of its own.
pub const KEPT: u64 = 1_000;

/// Where plans go.
#[derive(Debug, Clone)]
pub struct PlanFiles {
    dir: PathBuf,
    keep: Option<u64>,
    next: u64,
}

fn path(dir: &Path, number: u64, what: &str) -> PathBuf {
    dir.join(format!("{number:04}.{what}.json"))
}

impl PlanFiles {
    /// Goes on after the highest number that is there. `keep`: only the last so many stay.
    ///
    /// # Errors
    /// The directory cannot be made or listed.
    pub fn open(dir: &Path, keep: Option<u64>) -> std::io::Result<Self> {
        std::fs::create_dir_all(dir)?;
        let mut last = 0;
        for entry in std::fs::read_dir(dir)? {
            let name = entry?.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.split('.').next()?.parse::<u64>().ok());
            last = last.max(number.unwrap_or(0));
        }
        Ok(Self {
            dir: dir.to_owned(),
            keep,
            next: last + 1,
        })
    }

    fn save(&mut self, input: &PlanInput, planned: &Planned) -> std::io::Result<()> {
        std::fs::write(path(&self.dir, self.next, "input"), to_bytes(input))?;
        std::fs::write(path(&self.dir, self.next, "plan"), to_bytes(planned))?;
        if let Some(old) = self.keep.and_then(|keep| self.next.checked_sub(keep)) {
            for what in ["input", "plan"] {
                // Gone already: fine.
                let _ = std::fs::remove_file(path(&self.dir, old, what));
            }
        }
        self.next += 1;
        Ok(())
    }
}

impl Control {
    /// Keeps every plan there from now on.
    pub fn keep_plans(&mut self, files: PlanFiles) {
        self.plans = Some(files);
    }

    pub(super) fn save_plan(&mut self, input: &PlanInput, planned: &Planned) {
        if let Some(files) = &mut self.plans
            && let Err(error) = files.save(input, planned)
        {
            tracing::error!(dir = %files.dir.display(), %error, "a plan could not be saved");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drover_core::model::{Learnt, PLAN_VERSION, Policy, UnixMs};
    use drover_core::planner;

    #[test]
    fn numbers_go_on_and_old_ones_go() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let input = PlanInput {
            version: PLAN_VERSION,
            now: UnixMs(1),
            seed: 0,
            pools: Vec::new(),
            nodes: Vec::new(),
            classes: Vec::new(),
            launches: Vec::new(),
            memory: Vec::new(),
            policy: Policy::default(),
            learnt: Learnt::default(),
        };
        let planned = planner::plan(&input);
        for round in 0..2 {
            let mut files = PlanFiles::open(dir.path(), Some(3)).expect("opened");
            for _ in 0..2 {
                files.save(&input, &planned).expect("saved");
            }
            assert_eq!(files.next, 3 + 2 * round);
        }
        let mut names: Vec<String> = std::fs::read_dir(dir.path())
            .expect("listed")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        assert_eq!(names.len(), 6);
        assert_eq!(names[0], "0002.input.json");
        let bytes = std::fs::read(dir.path().join("0003.input.json")).expect("read");
        let read = planner::from_input_bytes(&bytes).expect("parsed");
        assert_eq!(
            to_bytes(&planner::plan(&read)),
            std::fs::read(dir.path().join("0003.plan.json")).expect("read")
        );
    }
}
