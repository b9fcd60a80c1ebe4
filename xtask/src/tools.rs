//! Which programs a machine must have, and how to get a missing one.
//!
//! Called by `test` before anything is built, so that a missing tool costs a
//! second and not ten minutes. It installs nothing.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// A program that must answer, and the way to get it.
struct Tool {
    what: &'static str,
    argv: &'static [&'static str],
    why: &'static str,
    get: &'static str,
}

const NEEDED: &[Tool] = &[
    Tool {
        what: "a C compiler",
        argv: &["cc", "--version"],
        why: "SQLite and ring are built from source",
        get: "apt-get install gcc libc6-dev, or your system's C compiler as `cc`",
    },
    Tool {
        what: "Python 3.10 or later",
        argv: &[
            "python3",
            "-c",
            "import sys; sys.exit(sys.version_info < (3, 10))",
        ],
        why: "moto, the AWS peer, runs on it",
        get: "apt-get install python3",
    },
    Tool {
        what: "Python's venv with pip",
        argv: &["python3", "-c", "import ensurepip, venv"],
        why: "moto is installed in an environment of its own",
        get: "apt-get install python3-venv",
    },
    Tool {
        what: "git",
        argv: &["git", "--version"],
        why: "the tidy tests read the list of tracked files",
        get: "apt-get install git",
    },
];

/// Checks every needed program and names all that are missing at once.
///
/// # Errors
/// One error that lists each missing program, why it is needed and how to get it.
pub(crate) fn check() -> Result<()> {
    let missing: Vec<&Tool> = NEEDED.iter().filter(|tool| !answers(tool.argv)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut text = String::from("this machine lacks what the tests need:");
    for tool in missing {
        text.push_str(&format!(
            "\n  {} ({}). Get it: {}",
            tool.what, tool.why, tool.get
        ));
    }
    bail!(text)
}

/// True when the program can be started and exits with 0.
pub(crate) fn answers(argv: &[&str]) -> bool {
    Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_answers_only_when_it_exits_with_0() {
        assert!(super::answers(&["true"]));
        assert!(!super::answers(&["false"]));
        assert!(!super::answers(&["no-such-program-anywhere"]));
    }
}
