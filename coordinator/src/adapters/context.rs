//! Writes the admin context of the user who runs the coordinator, in the CLI's format: `config.toml` and
//! `contexts/NAME/{ca.pem,client.pem,client.key}`, all 0600. Called by `serve/first_admin`. Never touches a context of
//! another coordinator.

use super::ca::{PeerCertificate, sha256_hex};
use super::private_file::{self, FileError};
use drover_core::model::{Millis, UnixMs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A certificate with less than this left is made anew.
const RENEW_BEFORE: Millis = Millis(30 * 24 * 3_600_000);

/// Why a context cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// No place for it.
    #[error("neither DROVER_CONFIG_DIR nor HOME is set: name server.context_dir in the config")]
    NoPlace,
    /// The file is no TOML, or has something else where contexts are.
    #[error("{} cannot be understood ({why}): mend it or move it away", path.display())]
    Broken {
        /// File.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Where contexts are when the config names no place.
///
/// # Errors
/// Neither DROVER_CONFIG_DIR nor HOME is set.
pub fn default_directory() -> Result<PathBuf, ContextError> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    set("DROVER_CONFIG_DIR")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".config/drover")))
        .ok_or(ContextError::NoPlace)
}

/// What a context of that name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// There is none, or its files are gone.
    Nothing,
    /// Of this coordinator, with a certificate that lasts.
    Ours,
    /// Of this coordinator, with a certificate that ends soon or cannot be read.
    OursExpiring,
    /// Of another coordinator.
    Another,
}

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    /// host:port as it is dialled from this machine.
    pub address: &'a str,
    /// CA, PEM.
    pub ca_pem: &'a str,
    /// Client certificate, PEM.
    pub certificate_pem: &'a str,
    /// Its key, PEM.
    pub key_pem: &'a str,
}

/// Looks at the context of that name.
///
/// # Errors
/// The file cannot be read or understood.
pub fn examine(
    dir: &Path,
    name: &str,
    ca_sha256: &str,
    now: UnixMs,
) -> Result<Found, ContextError> {
    let file = load(dir)?;
    let Some(entry) = file.get("context").and_then(|all| all.get(name)) else {
        return Ok(Found::Nothing);
    };
    let certificate = |key: &str| {
        let path = dir.join(entry.get(key)?.as_str()?);
        CertificateDer::from_pem_file(path).ok()
    };
    Ok(match certificate("ca") {
        None => Found::Nothing,
        Some(ca) if sha256_hex(&ca) != ca_sha256 => Found::Another,
        Some(_) => match certificate("cert").map(|der| PeerCertificate::read(&der)) {
            Some(Ok(client)) if client.not_after > now.after(RENEW_BEFORE) => Found::Ours,
            _ => Found::OursExpiring,
        },
    })
}

/// Address that a context of ours names; `None` without one.
///
/// # Errors
/// The file cannot be read or understood.
pub fn address(dir: &Path, name: &str) -> Result<Option<String>, ContextError> {
    let file = load(dir)?;
    let entry = file.get("context").and_then(|all| all.get(name));
    let address = entry.and_then(|entry| entry.get("address"));
    Ok(address.and_then(Value::as_str).map(str::to_owned))
}

/// Writes or replaces the context of that name; it becomes the current one when there is none.
///
/// # Errors
/// The file cannot be read, understood or written.
pub fn write(dir: &Path, name: &str, with: Credentials<'_>) -> Result<(), ContextError> {
    let mut file = load(dir)?;
    let place = dir.join("contexts").join(name);
    private_file::directory(&place)?;
    let mut entry = Table::new();
    entry.insert("address".into(), with.address.into());
    for (key, file_name, content) in [
        ("ca", "ca.pem", with.ca_pem),
        ("cert", "client.pem", with.certificate_pem),
        ("key", "client.key", with.key_pem),
    ] {
        let path = place.join(file_name);
        private_file::replace(&path, content.as_bytes())?;
        entry.insert(key.into(), path.to_string_lossy().into_owned().into());
    }
    let broken = |why: &str| ContextError::Broken {
        path: config(dir),
        why: why.to_owned(),
    };
    file.entry("context")
        .or_insert_with(|| Value::Table(Table::new()))
        .as_table_mut()
        .ok_or_else(|| broken("context is no table"))?
        .insert(name.to_owned(), Value::Table(entry));
    file.entry("current").or_insert_with(|| name.into());
    let text = toml::to_string(&file).map_err(|error| broken(&error.to_string()))?;
    private_file::replace(&config(dir), text.as_bytes())?;
    Ok(())
}

fn config(dir: &Path) -> PathBuf {
    dir.join("config.toml")
}

fn load(dir: &Path) -> Result<Table, ContextError> {
    let path = config(dir);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Table::new()),
        Err(error) => return Err(FileError::new("read", &path)(error).into()),
    };
    text.parse()
        .map_err(|error: toml::de::Error| ContextError::Broken {
            path,
            why: error.message().to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(address: &str) -> Credentials<'_> {
        Credentials {
            address,
            ca_pem: "ca",
            certificate_pem: "cert",
            key_pem: "key",
        }
    }

    #[test]
    fn a_context_is_added_private_and_leaves_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("drover");
        write(&dir, "local", with("127.0.0.1:7443")).unwrap();
        write(&dir, "second", with("127.0.0.1:7444")).unwrap();
        let file = load(&dir).unwrap();
        assert_eq!(file["current"].as_str(), Some("local"));
        let entry = &file["context"]["second"];
        assert_eq!(entry["address"].as_str(), Some("127.0.0.1:7444"));
        let key = PathBuf::from(entry["key"].as_str().unwrap());
        assert_eq!(std::fs::read_to_string(&key).unwrap(), "key");
        for path in [key, config(&dir)] {
            assert!(!private_file::is_open_to_others(&path).unwrap());
        }
        assert_eq!(
            address(&dir, "local").unwrap().as_deref(),
            Some("127.0.0.1:7443")
        );
        assert_eq!(address(&dir, "none").unwrap(), None);
    }

    #[test]
    fn a_broken_file_is_named_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["current = ", "context = 5\n"] {
            std::fs::write(config(dir.path()), text).unwrap();
            let error = write(dir.path(), "local", with("x:1")).unwrap_err();
            assert!(error.to_string().contains("config.toml"), "{error}");
            assert_eq!(std::fs::read_to_string(config(dir.path())).unwrap(), text);
        }
    }
}
