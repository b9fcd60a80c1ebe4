//! The file of contexts, `config.toml` in ~/.config/drover (DROVER_CONFIG_DIR overrides the directory): which coordinator
//! is spoken to, and as whom. The one place that reads and writes it.
//!
//! Called by the CLI (`drover context`) and, for the first admin, by `adapters::context`. Connects to nothing.

use super::private::{self, FileError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the file in the directory.
pub const FILE: &str = "config.toml";

/// Why contexts cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ContextsError {
    /// No place for them.
    #[error("neither DROVER_CONFIG_DIR nor HOME is set: no place to look for contexts")]
    NoPlace,
    /// The file says something else.
    #[error("{}:{line}: {why}; a context has address, ca, cert and key", path.display())]
    Broken {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

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

impl Profile {
    /// With paths that no longer depend on the directory of the file.
    #[must_use]
    pub fn below(self, dir: &Path) -> Self {
        Self {
            address: self.address,
            ca: dir.join(self.ca),
            cert: dir.join(self.cert),
            key: dir.join(self.key),
        }
    }
}

/// Directory of the contexts of whoever runs this.
///
/// # Errors
/// Neither DROVER_CONFIG_DIR nor HOME is set.
pub fn directory() -> Result<PathBuf, ContextsError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("DROVER_CONFIG_DIR")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".config/drover")))
        .ok_or(ContextsError::NoPlace)
}

/// All contexts of a directory; none when the file does not exist.
///
/// # Errors
/// The file cannot be read, or says something else: with file and line.
pub fn load(dir: &Path) -> Result<Contexts, ContextsError> {
    let path = dir.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text, &path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Contexts::default()),
        Err(error) => Err(FileError::new("read", &path)(error).into()),
    }
}

fn parse(text: &str, path: &Path) -> Result<Contexts, ContextsError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let lines = error.message().lines().map(str::trim);
        ContextsError::Broken {
            path: path.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            why: lines.collect::<Vec<_>>().join(" "),
        }
    })
}

/// Adds or replaces one context. It becomes the current one when there was none. Other contexts stay.
///
/// # Errors
/// The file cannot be read, understood or written.
pub fn save(dir: &Path, name: &str, profile: &Profile) -> Result<(), ContextsError> {
    let mut contexts = load(dir)?;
    contexts.context.insert(name.to_owned(), profile.clone());
    contexts.current.get_or_insert_with(|| name.to_owned());
    store(dir, &contexts)
}

/// Writes all contexts. The directory is 0700 if it is new, the file 0600, replaced atomically.
///
/// # Errors
/// The file cannot be written.
pub fn store(dir: &Path, contexts: &Contexts) -> Result<(), ContextsError> {
    let path = dir.join(FILE);
    let text = toml::to_string(contexts)
        .map_err(|error| FileError::new("write", &path)(std::io::Error::other(error)))?;
    private::directory(dir)?;
    private::replace(&path, text.as_bytes())?;
    Ok(())
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
    fn a_saved_context_is_current_private_and_keeps_the_others() {
        let dir = tempfile::tempdir().expect("directory");
        let dir = dir.path().join("drover");
        save(&dir, "local", &profile("127.0.0.1:7443")).expect("save");
        save(&dir, "far", &profile("far:7443")).expect("save");
        let all = load(&dir).expect("load");
        assert_eq!(all.current.as_deref(), Some("local"));
        let found = all.context["local"].clone().below(&dir);
        assert_eq!(found.ca, dir.join("ca.crt"));
        assert_eq!(found.cert, Path::new("/abs/me.crt"));
        assert_eq!(all.context["far"].address, "far:7443");
        assert!(!private::is_open_to_others(&dir.join(FILE)).expect("file"));
    }

    #[test]
    fn bad_files_are_told_with_their_line_and_kept() {
        for (text, line, needle) in [
            ("current = \"a\"\ncolour = true\n", 2, "colour"),
            ("[context.a]\naddress = \"x:1\"\nca = 5\n", 3, "string"),
            ("[context.a]\naddress = \"x:1\"\n", 1, "missing field"),
            ("context = 5\n", 1, "map"),
            ("current = \n", 1, ""),
        ] {
            let error = parse(text, Path::new("/c.toml"))
                .expect_err(text)
                .to_string();
            assert!(error.starts_with(&format!("/c.toml:{line}: ")), "{error}");
            assert!(error.contains(needle), "{error}");
            let dir = tempfile::tempdir().expect("directory");
            let path = dir.path().join(FILE);
            std::fs::write(&path, text).expect("written");
            save(dir.path(), "b", &profile("y:1")).expect_err(text);
            assert_eq!(std::fs::read_to_string(&path).expect("read"), text);
        }
    }
}
