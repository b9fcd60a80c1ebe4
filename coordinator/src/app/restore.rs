//! `drover restore`: fills an empty state directory from a backup, on the coordinator's host, while none runs. Called by
//! `main`; what it starts with is frozen until `drover thaw`.

use crate::adapters::backup;
use crate::adapters::clock::SystemClock;
use crate::cli::backup::{RestoreArgs, passphrase};
use crate::cli::exit::CliError;
use crate::cli::output::say;
use crate::ports::clock::Clock as _;
use std::process::ExitCode;

/// Restores.
#[must_use]
pub fn run(args: &RestoreArgs) -> ExitCode {
    crate::cli::block_on(async {
        let passphrase = passphrase(&args.passphrase)?;
        backup::restore(&args.file, &args.state_dir, &passphrase, SystemClock.wall())
            .await
            .map_err(|error| CliError::Failed(chain(&error)))?;
        say(&format!(
            "{} is filled from {}; it starts frozen: look at `drover status`, then `drover thaw`",
            args.state_dir.display(),
            args.file.display()
        ));
        say(
            "an Auto Scaling group that this coordinator has claimed since the backup still carries the later claim, and is \
             refused (`drover explain POOL` says so): once no other coordinator of this store runs, tag it \
             drover:owner=unclaimed",
        );
        Ok(())
    })
}

/// An error with its causes on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
