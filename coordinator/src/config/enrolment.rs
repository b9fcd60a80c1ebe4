//! `[enrolment]`: what hosts may prove themselves with beside join tokens. Reads the certificates that the file names;
//! whether a proof holds is `adapters::instance_identity`'s to say.

use super::{DAY, SECOND, millis};
use drover_config::{At, Section};
use drover_core::model::{Millis, UnixMs};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Longest certificate file.
const FILE_BYTES: u64 = 64 * 1024;
/// How long after its launch an instance may enrol.
const WITHIN: Millis = Millis::minutes(15);
/// Where AWS publishes its certificates.
const PUBLISHED: &str = "AWS publishes it as the RSA-2048 certificate of the region, in the EC2 user guide under \"instance identity documents\"";

/// What hosts may prove themselves with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enrolment {
    /// EC2 instance identity documents; absent: they are refused.
    pub instance_identity: Option<InstanceIdentity>,
}

/// Whose instance identity documents are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceIdentity {
    /// Accounts, 12 digits each.
    pub accounts: BTreeSet<String>,
    /// The signer of each region.
    pub certificates: BTreeMap<String, RegionCertificate>,
    /// How long after its launch an instance may enrol.
    pub within: Millis,
}

/// The certificate that signs the documents of one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionCertificate {
    /// Its issuer's name, DER.
    pub issuer: Vec<u8>,
    /// Its serial number without leading zeros.
    pub serial: Vec<u8>,
    /// Its RSA key, DER of RSAPublicKey.
    pub public_key: Vec<u8>,
    /// Valid from.
    pub not_before: UnixMs,
    /// Valid until.
    pub not_after: UnixMs,
}

impl RegionCertificate {
    /// Reads a PEM file's text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(pem: &str) -> Result<Self, String> {
        use x509_parser::public_key::PublicKey;
        let (rest, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes())
            .map_err(|_| "holds no certificate in PEM".to_owned())?;
        if x509_parser::pem::Pem::iter_from_buffer(rest)
            .next()
            .is_some()
        {
            return Err("holds several certificates".to_owned());
        }
        let read = block
            .parse_x509()
            .map_err(|_| "holds no certificate in PEM".to_owned())?;
        let key = read.public_key();
        match key.parsed() {
            Ok(PublicKey::RSA(rsa)) if rsa.key_size() >= 2_048 => {}
            Ok(PublicKey::RSA(rsa)) => {
                let bits = rsa.key_size();
                return Err(format!(
                    "holds an RSA key of {bits} bits: the RSA-2048 certificate is needed"
                ));
            }
            _ => return Err("holds no RSA key: the RSA-2048 certificate is needed".to_owned()),
        }
        let serial = read.tbs_certificate.raw_serial();
        let zeros = serial.iter().take_while(|byte| **byte == 0).count();
        let ms = |time: x509_parser::time::ASN1Time| {
            UnixMs(
                u64::try_from(time.timestamp())
                    .unwrap_or(0)
                    .saturating_mul(1_000),
            )
        };
        Ok(Self {
            issuer: read.issuer().as_raw().to_vec(),
            serial: serial[zeros..].to_vec(),
            public_key: key.subject_public_key.data.to_vec(),
            not_before: ms(read.validity().not_before),
            not_after: ms(read.validity().not_after),
        })
    }
}

pub(super) fn read(section: &Section<'_>) -> Enrolment {
    let there = section.has("instance_identity");
    let inner = section.section("instance_identity");
    let found = there.then(|| instance_identity(&inner));
    inner.finish();
    section.finish();
    Enrolment {
        instance_identity: found,
    }
}

fn instance_identity(section: &Section<'_>) -> InstanceIdentity {
    let fix = "write accounts = [\"123456789012\"]";
    let mut accounts = BTreeSet::new();
    for at in section.texts("accounts", fix).into_iter().flatten() {
        if at.value.len() == 12 && at.value.bytes().all(|byte| byte.is_ascii_digit()) {
            accounts.insert(at.value);
        } else {
            let message = format!("{:?} is no account of 12 digits", at.value);
            section.report(at.offset, "accounts", &message, fix);
        }
    }
    if accounts.is_empty() && !section.blames("enrolment.instance_identity.accounts") {
        let message = "names no account: nobody could enrol";
        section.report(section.offset(), "accounts", message, fix);
    }
    let fix = "write certificates = [\"/etc/drover/aws-certs/us-east-1.pem\"]";
    let mut certificates: BTreeMap<String, RegionCertificate> = BTreeMap::new();
    for at in section.texts("certificates", fix).into_iter().flatten() {
        match certificate(&at, &certificates) {
            Ok((region, certificate)) => {
                certificates.insert(region, certificate);
            }
            Err((message, fix)) => section.report(at.offset, "certificates", &message, &fix),
        }
    }
    if certificates.is_empty() && !section.blames("enrolment.instance_identity.certificates") {
        let message = "names no certificate: nobody could enrol";
        section.report(section.offset(), "certificates", message, fix);
    }
    InstanceIdentity {
        accounts,
        certificates,
        within: section
            .duration("within", SECOND * 60..=DAY / 24, "15m")
            .map_or(WITHIN, millis),
    }
}

/// A file named after its region.
fn certificate(
    at: &At<String>,
    known: &BTreeMap<String, RegionCertificate>,
) -> Result<(String, RegionCertificate), (String, String)> {
    let path = Path::new(&at.value);
    let wrong =
        |message: String, fix: &str| Err((format!("{}: {message}", at.value), fix.to_owned()));
    let region = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !path.is_absolute() || !region.contains('-') || !region.bytes().all(plain) {
        let message = "is no absolute path of a file that is named after its region";
        return wrong(
            message.to_owned(),
            "write /etc/drover/aws-certs/us-east-1.pem",
        );
    }
    if known.contains_key(region) {
        let message = format!("is a second certificate of region {region}");
        return wrong(message, "keep one of the two");
    }
    let text = match text(path) {
        Ok(text) => text,
        Err(error) => return wrong(format!("cannot be read ({error})"), PUBLISHED),
    };
    let found = match RegionCertificate::parse(&text) {
        Ok(found) => found,
        Err(why) => return wrong(why, PUBLISHED),
    };
    let same = known
        .iter()
        .find(|(_, other)| other.public_key == found.public_key);
    if let Some((other, _)) = same {
        let message = format!("is the certificate of region {other} as well");
        return wrong(
            message,
            "each region has a certificate of its own: replace the wrong one",
        );
    }
    Ok((region.to_owned(), found))
}

fn text(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
