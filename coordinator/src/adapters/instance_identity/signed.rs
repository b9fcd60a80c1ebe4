//! PKCS#7 SignedData with one signer: taken apart, and verified with a pinned certificate.
//!
//! Called by `instance_identity`. The signer is the pinned certificate itself: no chain, and certificates that come with
//! the signature are not looked at.

use super::ber::{self, BerError};
use crate::config::enrolment::RegionCertificate;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier, SignerInfo};
use der::asn1::{ObjectIdentifier, OctetString};
use der::{Any, Decode, Encode};
use ring::digest::{SHA256, digest};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

const ID_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const ID_SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const CONTENT_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
const MESSAGE_DIGEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
const SHA_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const SHA_256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");

/// Why a signature proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The text.
    #[error("it is not base64")]
    Base64,
    /// The bytes.
    #[error("it is not well-formed: {0}")]
    Ber(BerError),
    /// The structure.
    #[error("it is not a PKCS#7 signature with one signer: {0}")]
    Structure(&'static str),
    /// Not by the pinned certificate.
    #[error("another certificate signed it")]
    Signer,
    /// The content is not the one that was signed.
    #[error("what it holds was altered")]
    Digest,
    /// The signature does not hold.
    #[error("the signature is wrong")]
    Wrong,
}

/// A signature taken apart, not yet verified.
pub(super) struct Signed {
    content: Vec<u8>,
    /// DER of the signed attributes, which is what was signed.
    attributes: Vec<u8>,
    /// The digest among them.
    digest: Vec<u8>,
    issuer: Vec<u8>,
    serial: Vec<u8>,
    signature: Vec<u8>,
}

const fn broken(what: &'static str) -> impl Fn(der::Error) -> SignatureError {
    move |_| SignatureError::Structure(what)
}

impl Signed {
    /// Takes the text of `rsa2048` apart.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn read(text: &str) -> Result<Self, SignatureError> {
        let text: String = text.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(text).map_err(|_| SignatureError::Base64)?;
        Self::of(&ber::to_der(&bytes).map_err(SignatureError::Ber)?)
    }

    fn of(der: &[u8]) -> Result<Self, SignatureError> {
        let outer = ContentInfo::from_der(der).map_err(broken("no ContentInfo"))?;
        if outer.content_type != ID_SIGNED_DATA {
            return Err(SignatureError::Structure("no SignedData"));
        }
        let data: SignedData = outer.content.decode_as().map_err(broken("no SignedData"))?;
        if data.encap_content_info.econtent_type != ID_DATA {
            return Err(SignatureError::Structure("content of another type"));
        }
        let content = data
            .encap_content_info
            .econtent
            .ok_or(SignatureError::Structure("no content"))?;
        let content: OctetString = content.decode_as().map_err(broken("no content"))?;
        let [signer] = data.signer_infos.0.as_slice() else {
            return Err(SignatureError::Structure("not one signer"));
        };
        let (issuer, serial) = signer_of(signer)?;
        if signer.digest_alg.oid != SHA_256 {
            return Err(SignatureError::Structure("another digest than SHA-256"));
        }
        if ![RSA, SHA_256_WITH_RSA].contains(&signer.signature_algorithm.oid) {
            return Err(SignatureError::Structure("no RSA signature"));
        }
        let kind: ObjectIdentifier = attribute(signer, CONTENT_TYPE)?
            .decode_as()
            .map_err(broken("content type"))?;
        if kind != ID_DATA {
            return Err(SignatureError::Structure("content of another type"));
        }
        let said: OctetString = attribute(signer, MESSAGE_DIGEST)?
            .decode_as()
            .map_err(broken("message digest"))?;
        // Signed as the SET OF that it is, not under the tag that it travels with.
        let attributes = signer
            .signed_attrs
            .as_ref()
            .ok_or(SignatureError::Structure("no signed attributes"))?
            .to_der()
            .map_err(broken("signed attributes"))?;
        Ok(Self {
            content: content.into_bytes(),
            attributes,
            digest: said.into_bytes(),
            issuer,
            serial,
            signature: signer.signature.as_bytes().to_vec(),
        })
    }

    /// What it holds. Nobody's word before [`Self::verify`].
    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    /// The content is signed by this certificate's key.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn verify(&self, certificate: &RegionCertificate) -> Result<(), SignatureError> {
        if self.issuer != certificate.issuer || self.serial != certificate.serial {
            return Err(SignatureError::Signer);
        }
        if digest(&SHA256, &self.content).as_ref() != self.digest {
            return Err(SignatureError::Digest);
        }
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &certificate.public_key)
            .verify(&self.attributes, &self.signature)
            .map_err(|_| SignatureError::Wrong)
    }
}

fn signer_of(signer: &SignerInfo) -> Result<(Vec<u8>, Vec<u8>), SignatureError> {
    match &signer.sid {
        SignerIdentifier::IssuerAndSerialNumber(found) => {
            let issuer = found.issuer.to_der().map_err(broken("issuer"))?;
            let serial = found.serial_number.as_bytes();
            let zeros = serial.iter().take_while(|byte| **byte == 0).count();
            Ok((issuer, serial[zeros..].to_vec()))
        }
        SignerIdentifier::SubjectKeyIdentifier(_) => {
            Err(SignatureError::Structure("the signer is named otherwise"))
        }
    }
}

/// The one value of a signed attribute that is there once.
fn attribute(signer: &SignerInfo, oid: ObjectIdentifier) -> Result<&Any, SignatureError> {
    let attributes = signer.signed_attrs.iter().flat_map(|all| all.iter());
    let mut found = attributes.filter(|attribute| attribute.oid == oid);
    match (found.next().map(|one| one.values.as_slice()), found.next()) {
        (Some([value]), None) => Ok(value),
        _ => Err(SignatureError::Structure("signed attributes")),
    }
}
