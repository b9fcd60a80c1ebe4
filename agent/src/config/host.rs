//! What a config that reads well finds on this host: hooks that others could change, a state directory open to others.
//!
//! Called by `check-config`, which refuses, and by `run`, which warns of hooks. Looks only, changes nothing.

use std::path::Path;

use drover_config::{Problem, line_of};

use super::{Config, ExecutorKind};
use crate::drain;
use crate::state::{self, Openness};

/// What the look brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    /// What keeps the agent from running or draining.
    pub problems: Vec<Problem>,
    /// What the agent will change at its start.
    pub notes: Vec<String>,
}

/// Looks at what the config names. `text` is the config's, to tell lines.
#[must_use]
pub fn look(config: &Config, text: &str) -> Look {
    let mut look = Look::default();
    match state::openness(&config.state_dir) {
        Openness::Closed => {}
        Openness::Ours { mode } => look.notes.push(format!(
            "state_dir {} is open to others (mode {mode:04o}): the agent makes it 0700 when it starts",
            config.state_dir.display()
        )),
        Openness::Refused(why) => look.problems.push(Problem {
            line: line_of(text, &["state_dir"]),
            key: "state_dir".to_owned(),
            message: format!("{} {why}", config.state_dir.display()),
            fix: "name a directory of its own, or chown it to root and chmod 0700".to_owned(),
        }),
    }
    if let Err(why) = hooks(config) {
        look.problems.push(Problem {
            line: line_of(text, &["hooks", "dir"]),
            key: "hooks.dir".to_owned(),
            message: why,
            fix: "chown root and chmod go-w, or drains will be blocked".to_owned(),
        });
    }
    look.problems.sort_by_key(|problem| problem.line);
    look
}

/// Whether the hooks can be run, if any are to be.
///
/// # Errors
/// Which path is wrong, and why.
pub fn hooks(config: &Config) -> Result<(), String> {
    if !config.drain.executors.contains(&ExecutorKind::Hooks) {
        return Ok(());
    }
    drain::check_hooks(Path::new(&config.hooks.dir))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn hooks_and_state_that_others_could_change_are_told_with_their_lines() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["hooks", "state"] {
            fs::create_dir(at(name)).unwrap();
        }
        let mode = |name: &str, mode| {
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        };
        let text = format!(
            "coordinator = \"https://x:1\"\nstate_dir = {:?}\n[drain]\nexecutors = [\"processes\", \"hooks\"]\n\
             [hooks]\ndir = {:?}\n",
            at("state"),
            at("hooks")
        );
        let look = || look(&crate::config::parse(&text).unwrap(), &text);
        mode("hooks", 0o755);
        mode("state", 0o700);
        assert_eq!(look(), Look::default());
        // Empty, so nobody else's: the agent closes it.
        mode("state", 0o755);
        assert!(look().problems.is_empty());
        assert!(
            look().notes[0].contains("mode 0755"),
            "{look:?}",
            look = look()
        );
        fs::write(at("state/theirs"), "").unwrap();
        mode("hooks", 0o777);
        let found: Vec<(usize, String)> = look()
            .problems
            .into_iter()
            .map(|problem| (problem.line, problem.key))
            .collect();
        let named = |line, key: &str| (line, key.to_owned());
        assert_eq!(found, [named(2, "state_dir"), named(6, "hooks.dir")]);
        // A file that others may write to, in a directory that they may not.
        mode("hooks", 0o755);
        fs::write(at("hooks/10-x"), "#!/bin/sh\n").unwrap();
        mode("hooks/10-x", 0o777);
        let problem = look().problems.pop().unwrap();
        assert!(problem.message.contains("10-x is writable"), "{problem:?}");
        // Hooks that nobody runs do not matter.
        let text = text.replace(", \"hooks\"]", "]");
        assert_eq!(hooks(&crate::config::parse(&text).unwrap()), Ok(()));
    }
}
