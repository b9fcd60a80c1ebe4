//! Instance identity documents as EC2's metadata service gives them, signed by keys of the tests: what a region's own
//! certificate signs there, one of these signs here.
//!
//! Used by tests of enrolment and by the metadata service of our own. The keys are in the repository and protect nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber};
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

const FIRST: &str = include_str!("identity_document/first.pem");
const SECOND: &str = include_str!("identity_document/second.pem");

/// What a document says.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Instance id, as i-0123456789abcdef0.
    pub instance: String,
    /// Account, 12 digits.
    pub account: String,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Type.
    pub instance_type: String,
    /// Image.
    pub image: String,
    /// When it was launched, RFC 3339, UTC.
    pub pending: String,
}

impl Identity {
    /// The text of `dynamic/instance-identity/document`.
    #[must_use]
    pub fn document(&self) -> String {
        format!(
            "{{\n  \"accountId\" : \"{}\",\n  \"architecture\" : \"x86_64\",\n  \"availabilityZone\" : \"{}\",\n  \
             \"billingProducts\" : null,\n  \"devpayProductCodes\" : null,\n  \"marketplaceProductCodes\" : null,\n  \
             \"imageId\" : \"{}\",\n  \"instanceId\" : \"{}\",\n  \"instanceType\" : \"{}\",\n  \"kernelId\" : null,\n  \
             \"pendingTime\" : \"{}\",\n  \"privateIp\" : \"10.0.0.7\",\n  \"ramdiskId\" : null,\n  \
             \"region\" : \"{}\",\n  \"version\" : \"2017-09-30\"\n}}",
            self.account,
            self.zone,
            self.image,
            self.instance,
            self.instance_type,
            self.pending,
            self.region
        )
    }
}

/// How the signature is put into bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As EC2 does: BER with indefinite lengths, and the document in pieces.
    Ber,
    /// DER.
    Der,
}

/// A region's signer: a key with its certificate.
pub struct Signer {
    key: RsaKeyPair,
    certificate_pem: String,
    issuer: Vec<u8>,
    serial: Vec<u8>,
}

impl Signer {
    /// The first of two.
    #[must_use]
    pub fn first() -> Self {
        Self::new(
            FIRST,
            &[0x00, 0xb1, 0x69, 0xcc, 0x40, 0x15, 0x59, 0xa4, 0x19],
        )
    }

    /// The second of two, of another region.
    #[must_use]
    pub fn second() -> Self {
        Self::new(SECOND, &[0x46, 0x52, 0x2d, 0x0c])
    }

    fn new(key_pem: &str, serial: &[u8]) -> Self {
        let der = PrivatePkcs8KeyDer::from_pem_slice(key_pem.as_bytes()).expect("a key");
        let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).expect("an RSA key");
        let pair = KeyPair::from_pkcs8_pem_and_sign_algo(key_pem, &rcgen::PKCS_RSA_SHA256);
        let mut params = CertificateParams::default();
        params.serial_number = Some(SerialNumber::from_slice(serial));
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in [
            (DnType::CountryName, "US"),
            (DnType::StateOrProvinceName, "Washington State"),
            (DnType::LocalityName, "Seattle"),
            (DnType::OrganizationName, "Tests of Drover"),
        ] {
            params.distinguished_name.push(kind, value);
        }
        let certificate = params
            .self_signed(&pair.expect("an RSA key"))
            .expect("a certificate");
        let (_, read) =
            x509_parser::parse_x509_certificate(certificate.der()).expect("a certificate");
        Self {
            key,
            certificate_pem: certificate.pem(),
            issuer: read.issuer().as_raw().to_vec(),
            serial: read.tbs_certificate.raw_serial().to_vec(),
        }
    }

    /// The certificate that a coordinator is given.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The text of `dynamic/instance-identity/rsa2048`: base64 in lines, without armour.
    #[must_use]
    pub fn sign(&self, document: &str) -> String {
        let text =
            STANDARD.encode(self.signed(document.as_bytes(), document.as_bytes(), Form::Ber));
        let lines: Vec<&str> = text
            .as_bytes()
            .chunks(64)
            .map(|line| std::str::from_utf8(line).expect("base64 is ASCII"))
            .collect();
        lines.join("\n")
    }

    /// SignedData whose digest and signature are of `signed` and whose content is `content`.
    #[must_use]
    pub fn signed(&self, signed: &[u8], content: &[u8], form: Form) -> Vec<u8> {
        let indefinite = |tag: u8, parts: &[Vec<u8>]| match form {
            Form::Ber => [vec![tag, 0x80], parts.concat(), vec![0, 0]].concat(),
            Form::Der => tlv(tag, &parts.concat()),
        };
        let sha256 = || tlv(0x30, &[oid(SHA256_OID), vec![0x05, 0x00]].concat());
        let attribute =
            |name: &[u8], value: Vec<u8>| tlv(0x30, &[oid(name), tlv(0x31, &value)].concat());
        let hash = digest(&SHA256, signed);
        let attributes = [
            attribute(CONTENT_TYPE, oid(DATA)),
            attribute(SIGNING_TIME, tlv(0x17, b"261130080000Z")),
            attribute(MESSAGE_DIGEST, tlv(0x04, hash.as_ref())),
        ]
        .concat();
        let mut signature = vec![0; self.key.public().modulus_len()];
        let random = SystemRandom::new();
        self.key
            .sign(
                &RSA_PKCS1_SHA256,
                &random,
                &tlv(0x31, &attributes),
                &mut signature,
            )
            .expect("it signs");
        let signer = [
            vec![0x02, 0x01, 0x01],
            tlv(
                0x30,
                &[self.issuer.clone(), tlv(0x02, &self.serial)].concat(),
            ),
            sha256(),
            tlv(0xa0, &attributes),
            tlv(0x30, &[oid(RSA), vec![0x05, 0x00]].concat()),
            tlv(0x04, &signature),
        ];
        let octets = match form {
            Form::Ber => {
                let (a, b) = content.split_at(content.len() / 2);
                indefinite(0x24, &[tlv(0x04, a), tlv(0x04, b)])
            }
            Form::Der => tlv(0x04, content),
        };
        let data = [
            vec![0x02, 0x01, 0x01],
            tlv(0x31, &sha256()),
            indefinite(0x30, &[oid(DATA), indefinite(0xa0, &[octets])]),
            tlv(0x31, &tlv(0x30, &signer.concat())),
        ];
        let data = indefinite(0xa0, &[indefinite(0x30, &data)]);
        indefinite(0x30, &[oid(SIGNED_DATA), data])
    }
}

const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];
const SIGNING_TIME: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x05];
const SHA256_OID: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

fn oid(value: &[u8]) -> Vec<u8> {
    tlv(0x06, value)
}

fn tlv(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(value.len()).expect("a small thing");
    let mut out = vec![tag];
    match length {
        0..=0x7f => out.push(value.len() as u8),
        _ => {
            let bytes: Vec<u8> = length
                .to_be_bytes()
                .into_iter()
                .skip_while(|byte| *byte == 0)
                .collect();
            out.push(0x80 | bytes.len() as u8);
            out.extend(bytes);
        }
    }
    out.extend_from_slice(value);
    out
}
