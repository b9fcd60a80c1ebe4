//! What the runner asks, through the CLI as a user would. Called by `story` and `screen`.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The CLI with the demo's own context.
#[derive(Clone)]
pub struct Admin {
    /// `drover`.
    pub drover: PathBuf,
    /// Its config folder.
    pub contexts: PathBuf,
    /// Address of the cloud.
    pub cloud: String,
}

impl Admin {
    /// Runs a verb and gives what it printed as JSON.
    pub fn ask(&self, args: &[&str]) -> Result<Value> {
        let output = Command::new(&self.drover)
            .args(args)
            .args(["-o", "json"])
            .env("DROVER_CONFIG_DIR", &self.contexts)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.drover.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "drover {} failed ({}): {}",
                args.join(" "),
                output.status,
                said.trim()
            );
        }
        if output.stdout.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("drover {} printed something else than JSON", args.join(" ")))
    }

    /// What the cloud itself has counted.
    pub fn ledger(&self) -> Result<Value> {
        self.ask(&["sim-cloud", "ledger", "--cloud", &self.cloud])
    }
}

/// Asks `look` every 100 ms until it gives something.
///
/// # Errors
/// The deadline passed: says what was waited for and the last error.
pub fn wait_for<T>(
    what: &str,
    within: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + within;
    loop {
        let last = match look() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        if Instant::now() >= end {
            let why = last.map(|e| format!(": {e:#}")).unwrap_or_default();
            bail!("waited {} s in vain for {what}{why}", within.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A text field, empty when absent.
pub fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A number field, 0 when absent: for the runner's own comparisons only.
pub fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}
