//! The admin context of the user who runs `drover serve`: made at the first start, renewed when it ends soon. Called by
//! `app` before the port opens. A context of another coordinator is never overwritten.

use super::identities::{IdentityDesk, IdentityError};
use crate::adapters::ca::Ca;
use crate::adapters::context::{self, Credentials, Found};
use crate::files::contexts::ContextsError;
use crate::ports::clock::Clock;
use drover_core::model::Millis;
use drover_core::rules::access::Role;
use std::path::Path;

/// Life of the certificate: `serve` renews it at a start within its last 30 days.
const LIFE: Millis = Millis(365 * 24 * 3_600_000);

/// Why there is no admin context.
#[derive(Debug, thiserror::Error)]
pub enum FirstAdminError {
    /// Files.
    #[error(transparent)]
    Context(#[from] ContextsError),
    /// Certificate.
    #[error("cannot issue the admin certificate")]
    Identity(#[from] IdentityError),
    /// Key.
    #[error("cannot make the admin key")]
    Key(#[source] rcgen::Error),
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstAdmin {
    /// A context of this coordinator was there already.
    Kept(String),
    /// Written under this name.
    Written(String),
    /// It named another address of this coordinator, and names this one now.
    Moved {
        /// Context.
        name: String,
        /// host:port that it named.
        from: String,
    },
    /// Written under this name, since the wanted one belongs to another coordinator: `--context NAME` chooses it.
    WrittenBeside(String),
}

/// Sees that the user has a context `name` for this coordinator at `address` (host:port).
///
/// # Errors
/// See [`FirstAdminError`].
pub async fn ensure(
    dir: &Path,
    name: &str,
    address: &str,
    desk: &IdentityDesk,
    ca: &Ca,
    clock: &dyn Clock,
) -> Result<FirstAdmin, FirstAdminError> {
    let now = clock.wall();
    let beside = format!("{name}-{}", &ca.sha256()[..8]);
    let mut chosen = name;
    let mut found = context::examine(dir, name, ca.sha256(), now)?;
    if found == Found::Another {
        chosen = &beside;
        found = context::examine(dir, chosen, ca.sha256(), now)?;
    }
    let from = context::address(dir, chosen)?.filter(|known| known != address);
    if found == Found::Ours && from.is_none() {
        return Ok(FirstAdmin::Kept(chosen.to_owned()));
    }
    let ours = matches!(found, Found::Ours | Found::OursExpiring);
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)
        .map_err(FirstAdminError::Key)?;
    let csr = rcgen::CertificateParams::default()
        .serialize_request(&key)
        .map_err(FirstAdminError::Key)?;
    let issued = desk
        .issue_admin(&user_name(), Role::Admin, csr.der(), LIFE, "drover")
        .await?;
    let key_pem = key.serialize_pem();
    let with = Credentials {
        address,
        ca_pem: ca.pem(),
        certificate_pem: &issued.pem,
        key_pem: &key_pem,
    };
    context::write(dir, chosen, with)?;
    Ok(if let Some(from) = from.filter(|_| ours) {
        FirstAdmin::Moved {
            name: chosen.to_owned(),
            from,
        }
    } else if chosen == name {
        FirstAdmin::Written(chosen.to_owned())
    } else {
        FirstAdmin::WrittenBeside(chosen.to_owned())
    })
}

/// The user who runs this, as a certificate can name it.
fn user_name() -> String {
    nix::unistd::User::from_uid(nix::unistd::getuid())
        .ok()
        .flatten()
        .map(|user| user.name)
        .filter(|name| crate::adapters::ca::identity::is_name(name))
        .unwrap_or_else(|| "admin".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::agents::rig::Rig;
    use super::*;

    #[tokio::test]
    async fn is_written_once_renewed_in_time_and_never_over_another_coordinators() {
        let rig = Rig::new().await;
        let other = Rig::new().await;
        let dir = tempfile::tempdir().unwrap();
        let address = "127.0.0.1:7443";
        let run = async |rig: &Rig, address: &str| {
            let desk = rig.desk();
            ensure(dir.path(), "local", address, &desk, &rig.ca, &*rig.clock)
                .await
                .unwrap()
        };
        let local = || "local".to_owned();
        assert_eq!(run(&rig, address).await, FirstAdmin::Written(local()));
        assert_eq!(run(&rig, address).await, FirstAdmin::Kept(local()));
        let moved = FirstAdmin::Moved {
            name: local(),
            from: address.to_owned(),
        };
        assert_eq!(run(&rig, "127.0.0.1:1").await, moved);
        rig.clock.advance(Millis(340 * 24 * 3_600_000));
        assert_eq!(run(&rig, "127.0.0.1:1").await, FirstAdmin::Written(local()));

        let FirstAdmin::WrittenBeside(name) = run(&other, address).await else {
            panic!("it was written over");
        };
        assert_eq!(run(&other, address).await, FirstAdmin::Kept(name));
        assert_eq!(run(&rig, "127.0.0.1:1").await, FirstAdmin::Kept(local()));
    }
}
