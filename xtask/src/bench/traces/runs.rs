//! Runs of `drover simulate` and the scores that they print.
//!
//! Called by `bench traces`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::{command, workspace};

/// The program, the traces, and a folder for configs that are made here.
pub(super) struct Simulator {
    program: PathBuf,
    traces: PathBuf,
    made: PathBuf,
}

/// The scores of one call, ours first.
pub(super) struct Played(Vec<Score>);

/// One score.
pub(super) struct Score(Value);

impl Simulator {
    /// # Errors
    /// When the folder for configs cannot be made.
    pub(super) fn new(program: PathBuf, traces: PathBuf) -> Result<Self> {
        let made = workspace::target_dir().join("bench-traces");
        std::fs::create_dir_all(&made)
            .with_context(|| format!("cannot make {}", made.display()))?;
        Ok(Self {
            program,
            traces,
            made,
        })
    }

    /// Plays a trace on a config of `examples/simulate`, policies for comparison beside it.
    ///
    /// # Errors
    /// When the run breaks off or prints no score.
    pub(super) fn play(&self, trace: &str, config: &str, policies: &[&str]) -> Result<Played> {
        self.play_with(trace, &example(config), policies)
    }

    /// The same with any config.
    ///
    /// # Errors
    /// As [`Self::play`].
    pub(super) fn play_with(
        &self,
        trace: &str,
        config: &Path,
        policies: &[&str],
    ) -> Result<Played> {
        let shown = config.file_name().unwrap_or_default().to_string_lossy();
        eprintln!("bench: drover simulate {trace} --config {shown}");
        let mut program = Command::new(&self.program);
        program
            .args(["-o", "json", "simulate"])
            .arg(self.traces.join(trace))
            .arg("--config")
            .arg(config);
        for policy in policies {
            program.args(["--policy", policy]);
        }
        Played::read(&command::stdout(&mut program)?)
    }

    /// Plays a day for each of so many seeds. A day that violates something is a figure, not a failure.
    ///
    /// # Errors
    /// When it prints no result.
    pub(super) fn days(&self, days: u32) -> Result<Score> {
        eprintln!("bench: drover simulate seeds --days {days}");
        let output = Command::new(&self.program)
            .args(["-o", "json", "simulate", "seeds", "--days"])
            .arg(days.to_string())
            .output()
            .context("cannot start drover")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let value = serde_json::from_str(&text).with_context(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            format!("no result of the days: {}", said.trim())
        })?;
        Ok(Score(value))
    }

    /// A config of `examples/simulate` with another value for one key of text.
    ///
    /// # Errors
    /// When the config has no such key, or the copy cannot be written.
    pub(super) fn config_with(&self, config: &str, key: &str, value: &str) -> Result<PathBuf> {
        let path = example(config);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let copy = self.made.join(format!("{key}-{value}-{config}"));
        std::fs::write(&copy, with(&text, key, value)?)
            .with_context(|| format!("cannot write {}", copy.display()))?;
        Ok(copy)
    }
}

fn example(config: &str) -> PathBuf {
    workspace::root().join("examples/simulate").join(config)
}

/// The text with another value for the one line that sets a key.
fn with(text: &str, key: &str, value: &str) -> Result<String> {
    let mut found = 0;
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let sets = line
                .split_once('=')
                .is_some_and(|(name, _)| name.trim() == key);
            if sets {
                found += 1;
                format!("{key} = \"{value}\"")
            } else {
                line.to_owned()
            }
        })
        .collect();
    if found != 1 {
        bail!("{found} lines set {key}, one is wanted");
    }
    Ok(lines.join("\n") + "\n")
}

impl Played {
    fn read(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).context("the score is no JSON")?;
        let scores = match value.get("policies").and_then(Value::as_array) {
            Some(several) => several.clone(),
            None => vec![value],
        };
        Ok(Self(scores.into_iter().map(Score).collect()))
    }

    /// Ours.
    ///
    /// # Errors
    /// When nothing was printed.
    pub(super) fn first(&self) -> Result<&Score> {
        self.0.first().context("no score was printed")
    }

    /// Those of the policies for comparison, in the order asked for.
    pub(super) fn others(&self) -> impl Iterator<Item = &Score> {
        self.0.iter().skip(1)
    }
}

impl Score {
    /// # Errors
    /// When the score has no such figure.
    pub(super) fn number(&self, key: &str) -> Result<f64> {
        let value = self.0.get(key).and_then(Value::as_f64);
        value.with_context(|| format!("the score has no {key}"))
    }

    /// # Errors
    /// When the score has no such figure.
    pub(super) fn part(&self, key: &str, part: &str) -> Result<f64> {
        let value = self.0.get(key).and_then(|parts| parts.get(part));
        let value = value.and_then(Value::as_f64);
        value.with_context(|| format!("the score has no {key}.{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_changed_and_only_one() {
        let text = "[simulate]\n# durations\ndurations = \"unknown\"\nplacer = \"planner\"\n";
        let changed = with(text, "durations", "stated").unwrap();
        assert!(changed.contains("durations = \"stated\"\nplacer"));
        assert!(with(text, "seed", "1").is_err());
        assert!(with(&text.repeat(2), "durations", "stated").is_err());
    }

    #[test]
    fn one_score_and_several_are_read() {
        let one = Played::read(r#"{"jobs":3,"waste_node_hours":{"idle":1.5}}"#).unwrap();
        let score = one.first().unwrap();
        assert_eq!(score.number("jobs").unwrap(), 3.0);
        assert_eq!(score.part("waste_node_hours", "idle").unwrap(), 1.5);
        assert!(score.number("cost").is_err());
        let several = Played::read(r#"{"policies":[{"jobs":1},{"jobs":2}]}"#).unwrap();
        assert_eq!(several.others().count(), 1);
        assert!(Played::read("no").is_err());
    }
}
