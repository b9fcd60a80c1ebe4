//! Contexts: which coordinator is spoken to, and as whom. `~/.config/drover/config.toml` (DROVER_CONFIG_DIR overrides
//! the directory); `drover serve` writes one on its first start through [`save`]. Connects to nothing.

use super::exit::CliError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Name of the file in the directory.
pub const FILE: &str = "config.toml";

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// Name of the context that is used without `--context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// All, by name.
    #[serde(default)]
    pub context: BTreeMap<String, Profile>,
}

/// One context. Relative paths are below the directory of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// host:port of the coordinator.
    pub address: String,
    /// The coordinator's CA certificate, PEM.
    pub ca: PathBuf,
    /// Client certificate, PEM.
    pub cert: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
}

/// Directory of the contexts.
///
/// # Errors
/// Config error when neither DROVER_CONFIG_DIR nor HOME is set.
pub fn directory() -> Result<PathBuf, CliError> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    if let Some(dir) = set("DROVER_CONFIG_DIR") {
        return Ok(dir.into());
    }
    match set("HOME") {
        Some(home) => Ok(PathBuf::from(home).join(".config/drover")),
        None => Err(CliError::Config(
            "neither DROVER_CONFIG_DIR nor HOME is set: no place to look for contexts".to_owned(),
        )),
    }
}

/// All contexts of a directory; none when the file does not exist.
///
/// # Errors
/// Config error with file and line.
pub fn load(dir: &Path) -> Result<Contexts, CliError> {
    let path = dir.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text, &path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Contexts::default()),
        Err(error) => Err(CliError::Config(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

fn parse(text: &str, path: &Path) -> Result<Contexts, CliError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text[..start].matches('\n').count() + 1;
        CliError::Config(format!(
            "{}:{line}: {}; a context has address, ca, cert and key",
            path.display(),
            super::exit::one_line(error.message())
        ))
    })
}

/// The context to use: by name, or the current one, or the only one.
///
/// # Errors
/// Config error that says how a context is made.
pub fn choose(dir: &Path, name: Option<&str>) -> Result<(String, Profile), CliError> {
    let contexts = load(dir)?;
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

impl Profile {
    fn below(self, dir: &Path) -> Self {
        Self {
            address: self.address,
            ca: dir.join(self.ca),
            cert: dir.join(self.cert),
            key: dir.join(self.key),
        }
    }
}

/// Adds or replaces one context. It becomes the current one when `current` says so or when there was none. Other
/// contexts stay. The directory is 0700, the file 0600, replaced atomically.
///
/// # Errors
/// The file cannot be read or written.
pub fn save(dir: &Path, name: &str, profile: &Profile, current: bool) -> Result<(), CliError> {
    let mut contexts = load(dir)?;
    contexts.context.insert(name.to_owned(), profile.clone());
    if current || contexts.current.is_none() {
        contexts.current = Some(name.to_owned());
    }
    store(dir, &contexts)
}

/// Writes all contexts.
///
/// # Errors
/// The file cannot be written.
pub fn store(dir: &Path, contexts: &Contexts) -> Result<(), CliError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let text = toml::to_string(contexts)
        .map_err(|error| CliError::Failed(format!("cannot write contexts: {error}")))?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| CliError::file("create", dir, &error))?;
    write_private(&dir.join(FILE), text.as_bytes())
}

/// Writes a file that only its owner may read: beside it first, then moved over it.
///
/// # Errors
/// The file cannot be written.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let fail = |error: std::io::Error| CliError::file("write", path, &error);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(name);
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // Nothing useful can be done when this fails as well; the first error is the one to tell.
        drop(std::fs::remove_file(&beside));
    }
    written.map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn profile(address: &str) -> Profile {
        Profile {
            address: address.to_owned(),
            ca: "ca.crt".into(),
            cert: "/abs/me.crt".into(),
            key: "me.key".into(),
        }
    }

    #[test]
    fn a_saved_context_is_current_private_and_keeps_the_others() {
        let dir = tempfile::tempdir().expect("directory");
        let dir = dir.path().join("drover");
        save(&dir, "local", &profile("127.0.0.1:7443"), false).expect("save");
        save(&dir, "far", &profile("far:7443"), false).expect("save");
        let (name, found) = choose(&dir, None).expect("choose");
        assert_eq!(name, "local");
        assert_eq!(found.ca, dir.join("ca.crt"));
        assert_eq!(found.cert, Path::new("/abs/me.crt"));
        assert_eq!(
            choose(&dir, Some("far")).expect("far").1.address,
            "far:7443"
        );
        let mode = std::fs::metadata(dir.join(FILE))
            .expect("file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_missing_context_says_how_one_is_made() {
        let dir = tempfile::tempdir().expect("directory");
        let error = choose(dir.path(), None).expect_err("none");
        assert_eq!(error.code(), 64);
        assert!(error.to_string().contains("drover serve"), "{error}");
        save(dir.path(), "a", &profile("x:1"), true).expect("save");
        let error = choose(dir.path(), Some("b")).expect_err("b");
        assert!(error.to_string().contains("there is: a"), "{error}");
    }

    #[test]
    fn bad_files_are_told_with_their_line() {
        for (text, line, needle) in [
            ("current = \"a\"\ncolour = true\n", 2, "colour"),
            ("[context.a]\naddress = \"x:1\"\nca = 5\n", 3, "string"),
            ("[context.a]\naddress = \"x:1\"\n", 1, "missing field"),
            ("current = \n", 1, ""),
        ] {
            let error = parse(text, Path::new("/c.toml"))
                .expect_err(text)
                .to_string();
            assert!(error.starts_with(&format!("/c.toml:{line}: ")), "{error}");
            assert!(error.contains(needle), "{error}");
        }
    }
}
