//! Issuing: the coordinator's own, nodes' and people's certificates. Called by `serve` and `app`, which have decided
//! that the subject may have one.

use super::identity::{Subject, is_name};
use super::{BACKDATE, Ca, Csr, random_serial};
use drover_core::model::{Millis, NodeId, UnixMs};
use drover_core::rules::access::Role;
use drover_proto::limits;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::time::Duration;

/// Life of a node's certificate; renewed at two thirds.
pub const NODE_LIFE: Millis = Millis(24 * 3_600_000);
/// Life of the coordinator's own certificate; made anew at two thirds.
pub const SERVER_LIFE: Millis = Millis(90 * 24 * 3_600_000);
/// Life of a person's certificate when none is named.
pub const ADMIN_LIFE: Millis = Millis(90 * 24 * 3_600_000);
/// Longest life of a person's certificate.
pub const ADMIN_LIFE_MOST: Millis = Millis(366 * 24 * 3_600_000);

/// Why none was issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A name that cannot be in a certificate.
    #[error("{0:?} cannot be in a certificate")]
    Name(String),
    /// Too long a life.
    #[error("a certificate may live 366 days at most")]
    Life,
    /// The library refused.
    #[error("cannot issue the certificate")]
    Certificate(#[source] rcgen::Error),
}

/// A certificate just issued.
#[derive(Debug, Clone)]
pub struct Issued {
    /// Leaf, PEM.
    pub pem: String,
    /// Leaf, DER.
    pub der: CertificateDer<'static>,
    /// Serial, hex.
    pub serial: String,
    /// Until when it is valid.
    pub not_after: UnixMs,
}

/// The coordinator's certificate with its key, which lives in memory only.
#[derive(Debug)]
pub struct ServerIdentity {
    /// Leaf, then the CA: a first contact knows only the CA's hash.
    pub chain: Vec<CertificateDer<'static>>,
    /// Key.
    pub key: PrivateKeyDer<'static>,
    /// Make a new one from then on.
    pub renew_at: UnixMs,
}

pub(super) fn date(at: UnixMs) -> time::OffsetDateTime {
    rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(at.0 / 1_000)
}

impl Ca {
    /// A node's certificate for the key of `csr`: clients only, SAN `drover://node/ID`.
    ///
    /// # Errors
    /// The library refused.
    pub fn issue_node(&self, csr: &Csr, node: &NodeId, now: UnixMs) -> Result<Issued, IssueError> {
        self.issue_client(csr, &Subject::Node(node.clone()), NODE_LIFE, now)
    }

    /// A person's certificate for the key of `csr`: clients only, SAN `drover://admin/ROLE/NAME`.
    ///
    /// # Errors
    /// A name with other characters than letters, digits and `._-@`, or too long a life.
    pub fn issue_admin(
        &self,
        csr: &Csr,
        role: Role,
        name: &str,
        life: Millis,
        now: UnixMs,
    ) -> Result<Issued, IssueError> {
        if life > ADMIN_LIFE_MOST {
            return Err(IssueError::Life);
        }
        let subject = Subject::Admin {
            role,
            name: name.to_owned(),
        };
        self.issue_client(csr, &subject, life, now)
    }

    fn issue_client(
        &self,
        csr: &Csr,
        subject: &Subject,
        life: Millis,
        now: UnixMs,
    ) -> Result<Issued, IssueError> {
        let (Subject::Node(NodeId(name)) | Subject::Admin { name, .. }) = subject;
        if !is_name(name) {
            return Err(IssueError::Name(name.clone()));
        }
        let uri = subject.uri();
        let san = uri.clone().try_into().map_err(|_| IssueError::Name(uri))?;
        let mut params = base(&subject.to_string(), life, now);
        params.subject_alt_names = vec![SanType::URI(san)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let serial = random_serial();
        params.serial_number = Some(serial.clone());
        let certificate = params
            .signed_by(&csr.key, &self.issuer)
            .map_err(IssueError::Certificate)?;
        Ok(Issued {
            pem: certificate.pem(),
            der: certificate.der().clone(),
            serial: hex::encode(serial.to_bytes()),
            not_after: UnixMs(now.after(life).0 / 1_000 * 1_000),
        })
    }

    /// The coordinator's certificate: servers only, for the fixed name and `names` (host names or addresses).
    ///
    /// # Errors
    /// A name that cannot be in a certificate.
    pub fn issue_server(
        &self,
        names: &[String],
        now: UnixMs,
    ) -> Result<ServerIdentity, IssueError> {
        let key =
            KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(IssueError::Certificate)?;
        let mut params = base("coordinator", SERVER_LIFE, now);
        let mut all = vec![limits::COORDINATOR_NAME.to_owned()];
        for name in names {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        for name in all {
            let one =
                CertificateParams::new(vec![name.clone()]).map_err(|_| IssueError::Name(name))?;
            params.subject_alt_names.extend(one.subject_alt_names);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.serial_number = Some(random_serial());
        let certificate = params
            .signed_by(&key, &self.issuer)
            .map_err(IssueError::Certificate)?;
        Ok(ServerIdentity {
            chain: vec![certificate.der().clone(), self.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            renew_at: now.after(Millis(SERVER_LIFE.0 * 2 / 3)),
        })
    }
}

fn base(common_name: &str, life: Millis, now: UnixMs) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params.not_before = date(now.minus(UnixMs(BACKDATE.0)));
    params.not_after = date(now.after(life));
    params
}
