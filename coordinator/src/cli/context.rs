//! Which context is used: which coordinator is spoken to, and as whom. The file itself is `files::contexts`. Connects to
//! nothing.

use super::exit::CliError;
use crate::files::contexts::{self, ContextsError};
use crate::files::private::FileError;
use std::path::Path;

pub use contexts::{Contexts, FILE, Profile};

impl From<ContextsError> for CliError {
    fn from(error: ContextsError) -> Self {
        match error {
            ContextsError::NoPlace | ContextsError::Broken { .. } => {
                Self::Config(error.to_string())
            }
            ContextsError::File(error) => Self::from(error),
        }
    }
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        let text = format!("{error}: {}", error.source);
        // What cannot be read is a config that is bad; what cannot be written is a deed that failed.
        if error.verb == "read" {
            Self::Config(text)
        } else {
            Self::Failed(text)
        }
    }
}

/// The context to use: by name, or the current one, or the only one.
///
/// # Errors
/// Config error that says how a context is made.
pub fn choose(dir: &Path, name: Option<&str>) -> Result<(String, Profile), CliError> {
    let contexts = contexts::load(dir)?;
    let only = || {
        contexts
            .context
            .keys()
            .next()
            .filter(|_| contexts.context.len() == 1)
    };
    let Some(name) = name
        .or(contexts.current.as_deref())
        .or_else(|| only().map(String::as_str))
    else {
        let why = if contexts.context.is_empty() {
            "there is no context in"
        } else {
            "no context is current in"
        };
        return Err(CliError::Config(format!(
            "{why} {}: `drover serve` writes one for the user who starts it; from elsewhere, take a certificate of `drover certificates issue` with `drover context add`, then `drover context use NAME`",
            dir.join(FILE).display()
        )));
    };
    let Some(profile) = contexts.context.get(name) else {
        let known: Vec<_> = contexts.context.keys().map(String::as_str).collect();
        return Err(CliError::Config(format!(
            "no context {name:?} in {}; there is: {}",
            dir.join(FILE).display(),
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        )));
    };
    Ok((name.to_owned(), profile.clone().below(dir)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(address: &str) -> Profile {
        Profile {
            address: address.to_owned(),
            ca: "ca.crt".into(),
            cert: "/abs/me.crt".into(),
            key: "me.key".into(),
        }
    }

    #[test]
    fn the_current_one_is_used_or_the_one_that_is_named() {
        let dir = tempfile::tempdir().expect("directory");
        let dir = dir.path();
        contexts::save(dir, "local", &profile("127.0.0.1:7443")).expect("save");
        contexts::save(dir, "far", &profile("far:7443")).expect("save");
        let (name, found) = choose(dir, None).expect("choose");
        assert_eq!(name, "local");
        assert_eq!(found.ca, dir.join("ca.crt"));
        assert_eq!(found.cert, Path::new("/abs/me.crt"));
        assert_eq!(choose(dir, Some("far")).expect("far").1.address, "far:7443");
    }

    #[test]
    fn a_missing_context_says_how_one_is_made() {
        let dir = tempfile::tempdir().expect("directory");
        let error = choose(dir.path(), None).expect_err("none");
        assert_eq!(error.code(), 64);
        assert!(error.to_string().contains("drover serve"), "{error}");
        contexts::save(dir.path(), "a", &profile("x:1")).expect("save");
        let error = choose(dir.path(), Some("b")).expect_err("b");
        assert!(error.to_string().contains("there is: a"), "{error}");
    }

    #[test]
    fn a_bad_file_is_bad_config() {
        let dir = tempfile::tempdir().expect("directory");
        std::fs::write(dir.path().join(FILE), "colour = true\n").expect("written");
        let error = choose(dir.path(), None).expect_err("broken");
        assert_eq!(error.code(), 64);
        assert!(error.to_string().contains("config.toml:1: "), "{error}");
    }
}
