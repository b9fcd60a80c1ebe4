//! The admin context of the user who runs the coordinator: an entry in the file of contexts, and
//! `contexts/NAME/{ca.pem,client.pem,client.key}`, all 0600. Called by `serve/first_admin`. Never touches a context of
//! another coordinator.

use super::ca::{PeerCertificate, sha256_hex};
use crate::files::contexts::{self, ContextsError, Profile};
use crate::files::private;
use drover_core::model::{Millis, UnixMs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;

/// A certificate with less than this left is made anew.
const RENEW_BEFORE: Millis = Millis(30 * 24 * 3_600_000);

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
) -> Result<Found, ContextsError> {
    let mut all = contexts::load(dir)?;
    let Some(entry) = all.context.remove(name).map(|entry| entry.below(dir)) else {
        return Ok(Found::Nothing);
    };
    let certificate = |path: &Path| CertificateDer::from_pem_file(path).ok();
    Ok(match certificate(&entry.ca) {
        None => Found::Nothing,
        Some(ca) if sha256_hex(&ca) != ca_sha256 => Found::Another,
        Some(_) => match certificate(&entry.cert).map(|der| PeerCertificate::read(&der)) {
            Some(Ok(client)) if client.not_after > now.after(RENEW_BEFORE) => Found::Ours,
            _ => Found::OursExpiring,
        },
    })
}

/// Address that a context of ours names; `None` without one.
///
/// # Errors
/// The file cannot be read or understood.
pub fn address(dir: &Path, name: &str) -> Result<Option<String>, ContextsError> {
    let mut all = contexts::load(dir)?;
    Ok(all.context.remove(name).map(|entry| entry.address))
}

/// Writes or replaces the context of that name; it becomes the current one when there is none.
///
/// # Errors
/// The file cannot be read, understood or written.
pub fn write(dir: &Path, name: &str, with: Credentials<'_>) -> Result<(), ContextsError> {
    // One that cannot be understood is kept, and nothing is written beside it.
    contexts::load(dir)?;
    let place = dir.join("contexts").join(name);
    private::directory(&place)?;
    let file = |name: &str, content: &str| {
        let path = place.join(name);
        private::replace(&path, content.as_bytes()).map(|()| path)
    };
    let profile = Profile {
        address: with.address.to_owned(),
        ca: file("ca.pem", with.ca_pem)?,
        cert: file("client.pem", with.certificate_pem)?,
        key: file("client.key", with.key_pem)?,
    };
    contexts::save(dir, name, &profile)
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
        let all = contexts::load(&dir).unwrap();
        assert_eq!(all.current.as_deref(), Some("local"));
        let entry = &all.context["second"];
        assert_eq!(entry.address, "127.0.0.1:7444");
        assert_eq!(std::fs::read_to_string(&entry.key).unwrap(), "key");
        for path in [entry.key.clone(), dir.join(contexts::FILE)] {
            assert!(!private::is_open_to_others(&path).unwrap());
        }
        assert_eq!(
            address(&dir, "local").unwrap().as_deref(),
            Some("127.0.0.1:7443")
        );
        assert_eq!(address(&dir, "none").unwrap(), None);
    }
}
