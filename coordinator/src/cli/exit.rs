//! Exit codes of `drover` and the one error type of the CLI. Used by every noun and by main; prints nothing itself.

use std::process::ExitCode;
use tonic::Code;

/// Shown at the end of `drover --help`.
pub const HELP: &str =
    "Exit codes: 0 done, 1 failed, 2 usage, 3 coordinator not reachable, 64 bad config.
Data goes to stdout, talk to stderr. DROVER_CONFIG_DIR, DROVER_CONTEXT and NO_COLOR are respected.";

/// How the CLI ends when it does not end well. Each text is one line that names what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// Exit 1: asked and refused, or what was waited for cannot be.
    #[error("{0}")]
    Failed(String),
    /// Exit 2: the command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Exit 3: no coordinator answers.
    #[error("{0}")]
    Unreachable(String),
    /// Exit 64: a file of ours (context, config) is bad or missing.
    #[error("{0}")]
    Config(String),
}

impl CliError {
    /// The number that the process ends with.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Config(_) => 64,
        }
    }

    /// A local file could not be read or written: failed, with the path.
    #[must_use]
    pub fn file(verb: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Failed(format!("cannot {verb} {}: {error}", path.display()))
    }
}

impl From<&CliError> for ExitCode {
    fn from(error: &CliError) -> Self {
        Self::from(error.code())
    }
}

impl From<tonic::Status> for CliError {
    fn from(status: tonic::Status) -> Self {
        let text = one_line(status.message());
        match status.code() {
            Code::Unavailable => Self::Unreachable(format!("the coordinator is not available: {text}")),
            Code::DeadlineExceeded | Code::Cancelled => Self::Unreachable(
                "the coordinator did not answer in time; allow more with --timeout".to_owned(),
            ),
            // What tonic says when the connection breaks under a call.
            Code::Unknown if std::error::Error::source(&status).is_some() => {
                Self::Unreachable(format!("the connection to the coordinator broke: {text}"))
            }
            Code::Unauthenticated => Self::Failed(format!(
                "not accepted: {text}; this context's certificate may be expired or revoked: an admin issues a new one with `drover certificates issue`"
            )),
            Code::Unimplemented => Self::Failed(
                "this coordinator does not know that verb; it may be older than this CLI (`drover version`)".to_owned(),
            ),
            _ if text.is_empty() => Self::Failed(format!("the coordinator refused: {}", status.code().description())),
            _ => Self::Failed(text),
        }
    }
}

/// Text on one line, so that an error is always one line, and a printable one.
#[must_use]
pub fn one_line(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Text that does nothing to a terminal: reasons and names come from other people. Whitespace becomes a blank, any other
/// control character, and those that turn the direction of writing, a "?".
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\t' | '\n' | '\r' => ' ',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '?',
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Status;

    #[test]
    fn what_people_wrote_does_nothing_to_a_terminal() {
        for (text, shown) in [
            ("fan\u{1b}[2Jbroken", "fan?[2Jbroken"),
            ("a\u{7}\u{9b}1m\u{7f}", "a??1m?"),
            ("two\nlines\tof it", "two lines of it"),
            ("drow\u{202e}ssap", "drow?ssap"),
            ("größer als 3 µs", "größer als 3 µs"),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(one_line(text), shown);
        }
    }

    #[test]
    fn every_status_has_its_exit_code_and_one_line() {
        for (status, code, needle) in [
            (
                Status::invalid_argument("units: 0 is too few;\n ask for at least 1"),
                1,
                "units: 0 is too few; ask",
            ),
            (
                Status::not_found("node: no node is called n1"),
                1,
                "no node is called n1",
            ),
            (
                Status::permission_denied("needs role admin"),
                1,
                "needs role admin",
            ),
            (
                Status::unauthenticated("certificate revoked"),
                1,
                "certificates issue",
            ),
            (Status::unavailable("shutting down"), 3, "shutting down"),
            (Status::deadline_exceeded(""), 3, "--timeout"),
            (Status::unimplemented(""), 1, "older"),
            (Status::internal(""), 1, "refused"),
        ] {
            let error = CliError::from(status);
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(needle), "{error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
