//! The fleet's own certificate authority: P-256, its key a 0600 file beside the store, which keeps the fingerprint.
//! Opened by `app`, asked by `serve` for every certificate. Keeps no list of what it issued: that is in the records.
//!
//! **Invariant:** a store that knows a CA is never served with another key: a missing or different one refuses to start.
//! And a key that the store does not know starts no new fleet: the store was lost. The first start keeps its key under
//! another name until the record is written, so that a crash between the two is told from a lost store.

pub mod csr;
pub mod identity;
pub mod issue;

use crate::files::private::{self, FileError};
use crate::ports::clock::Clock;
use crate::ports::store::{CommitError, Guard, Op, ReadError, Store};
use crate::records::{CaRecord, keys};
use drover_core::model::{Millis, UnixMs};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};

pub use csr::{Csr, CsrError};
pub use identity::{PeerCertificate, Subject};
pub use issue::{IssueError, Issued};

/// Name of the key's file in the state directory.
pub const KEY_FILE: &str = "ca.key";
/// Its name during the first start, until the store knows the CA.
const NEW_KEY_FILE: &str = "ca.key.new";
/// Certificates begin this long before they are issued, so that clocks may differ.
pub const BACKDATE: Millis = Millis(24 * 3_600_000);
/// Life of the CA's own certificate: 20 years.
const CA_LIFE: Millis = Millis(20 * 365 * 24 * 3_600_000);

/// Why there is no CA to work with.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// The key is gone.
    #[error(
        "the CA key {} is missing, and the store knows the CA {sha256}: put the file back, or restore it together with \
         the store (`drover restore BACKUP`). To begin anew instead, move the whole state directory away: then every \
         agent has to enrol again",
        path.display()
    )]
    KeyMissing {
        /// File.
        path: PathBuf,
        /// Fingerprint in the store.
        sha256: String,
    },
    /// Another key lies there.
    #[error(
        "the CA key {} does not belong to the store, which knows the CA {sha256}: key and store are of two different \
         coordinators. Put the right key back, or restore both (`drover restore BACKUP`)",
        path.display()
    )]
    KeyDiffers {
        /// File.
        path: PathBuf,
        /// Fingerprint in the store.
        sha256: String,
    },
    /// A key without the store that knows it.
    #[error(
        "the CA key {} is here, but the store beside it does not know its CA: the store was lost or emptied. Restore a \
         backup into an empty state directory (`drover restore BACKUP`), or, to start a new fleet, move {} away: then \
         every agent has to enrol again",
        path.display(), path.display()
    )]
    StoreLost {
        /// File.
        path: PathBuf,
    },
    /// The key can be read by others.
    #[error("the CA key {} can be read by other users: `chmod 600 {}`", path.display(), path.display())]
    KeyOpen {
        /// File.
        path: PathBuf,
    },
    /// The key is no key.
    #[error("the CA key {} is not a P-256 key in PKCS#8 PEM: put the right file back, or restore it (`drover restore BACKUP`)", path.display())]
    KeyBroken {
        /// File.
        path: PathBuf,
    },
    /// A record of the store is broken.
    #[error(
        "the CA record in the store cannot be understood: restore a backup (`drover restore BACKUP`)"
    )]
    Record,
    /// The key cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The certificate could not be made.
    #[error("cannot make the CA certificate")]
    Certificate(#[source] rcgen::Error),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error("cannot record the CA")]
    Commit(#[source] CommitError),
}

/// A CA that can issue.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    record: CaRecord,
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ca")
            .field("sha256", &self.record.sha256)
            .finish_non_exhaustive()
    }
}

impl Ca {
    /// Opens the CA of this store; makes one at the first start.
    ///
    /// # Errors
    /// See [`CaError`]: each says what to do.
    pub async fn open(
        state_dir: &Path,
        store: &dyn Store,
        clock: &dyn Clock,
    ) -> Result<Self, CaError> {
        let path = state_dir.join(KEY_FILE);
        let new_path = state_dir.join(NEW_KEY_FILE);
        let Some(entry) = store.get(keys::CA).await? else {
            if path.exists() {
                return Err(CaError::StoreLost { path });
            }
            // A new key without a record: the first start ended between the two. Nothing was issued by it yet.
            let key = match read_key(&new_path)? {
                Some(key) => key,
                None => make_key(&new_path)?,
            };
            fail::fail_point!("ca.key_written");
            let record = certify(&key, store.store_id(), clock.wall())?;
            let value = serde_json::to_vec(&record).map_err(|_| CaError::Record)?;
            store
                .commit(
                    store.fence(),
                    &[Guard::Absent(keys::CA.to_owned())],
                    &[Op::Put(keys::CA.to_owned(), value)],
                )
                .await
                .map_err(CaError::Commit)?;
            fail::fail_point!("ca.recorded");
            private::rename(&new_path, &path)?;
            tracing::info!(sha256 = record.sha256, key = %path.display(), "made the CA");
            return Self::assemble(key, record, path);
        };
        let record: CaRecord = serde_json::from_slice(&entry.value).map_err(|_| CaError::Record)?;
        if let Some(key) = read_key(&path)? {
            return Self::assemble(key, record, path);
        }
        // The first start ended after the record, before its key got its name.
        let Some(key) = read_key(&new_path)? else {
            return Err(CaError::KeyMissing {
                path,
                sha256: record.sha256,
            });
        };
        let ca = Self::assemble(key, record, new_path.clone())?;
        private::rename(&new_path, &path)?;
        Ok(ca)
    }

    fn assemble(key: KeyPair, record: CaRecord, path: PathBuf) -> Result<Self, CaError> {
        let certificate = CertificateDer::from_pem_slice(record.certificate_pem.as_bytes())
            .map_err(|_| CaError::Record)?;
        if sha256_hex(&certificate) != record.sha256 {
            return Err(CaError::Record);
        }
        let (_, parsed) =
            x509_parser::parse_x509_certificate(&certificate).map_err(|_| CaError::Record)?;
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            return Err(CaError::KeyDiffers {
                path,
                sha256: record.sha256,
            });
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(CaError::Certificate)?;
        Ok(Self {
            issuer,
            certificate,
            record,
        })
    }

    /// SHA-256 of the certificate (DER), hex: what join tokens carry.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.record.sha256
    }

    /// Certificate, PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.record.certificate_pem
    }

    /// Certificate, DER.
    #[must_use]
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.certificate
    }
}

fn read_key(path: &Path) -> Result<Option<KeyPair>, CaError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            return Err(CaError::KeyBroken {
                path: path.to_owned(),
            });
        }
        Err(error) => return Err(FileError::new("read", path)(error).into()),
    };
    if private::is_open_to_others(path).map_err(FileError::new("read", path))? {
        return Err(CaError::KeyOpen {
            path: path.to_owned(),
        });
    }
    match KeyPair::from_pem_and_sign_algo(&text, &PKCS_ECDSA_P256_SHA256) {
        Ok(key) => Ok(Some(key)),
        Err(_) => Err(CaError::KeyBroken {
            path: path.to_owned(),
        }),
    }
}

fn make_key(path: &Path) -> Result<KeyPair, CaError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(CaError::Certificate)?;
    private::replace(path, key.serialize_pem().as_bytes())?;
    Ok(key)
}

fn certify(key: &KeyPair, store_id: &str, now: UnixMs) -> Result<CaRecord, CaError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, format!("Drover CA {store_id}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(random_serial());
    params.not_before = issue::date(now.minus(UnixMs(BACKDATE.0)));
    params.not_after = issue::date(now.after(CA_LIFE));
    let certificate = params.self_signed(key).map_err(CaError::Certificate)?;
    Ok(CaRecord {
        sha256: sha256_hex(certificate.der()),
        certificate_pem: certificate.pem(),
    })
}

/// 127 random bits, positive and never shorter.
fn random_serial() -> SerialNumber {
    let mut bytes = rand::random::<[u8; 16]>();
    bytes[0] = bytes[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&bytes)
}

/// SHA-256, hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(ring::digest::digest(&ring::digest::SHA256, bytes))
}

#[cfg(test)]
mod tests;
