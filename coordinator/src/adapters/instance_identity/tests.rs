//! Documents signed by keys of the tests, right and wrong.

use super::*;
use crate::config::enrolment::RegionCertificate;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drover_core::model::Millis;
use drover_tests::identity_document::{Form, Identity, Signer};
use proptest::prelude::*;
use std::sync::LazyLock;

/// 2026-11-30T08:00:00Z.
const NOW: UnixMs = UnixMs(1_796_025_600_000);

static EAST: LazyLock<Signer> = LazyLock::new(Signer::first);
static WEST: LazyLock<Signer> = LazyLock::new(Signer::second);

fn identity() -> Identity {
    Identity {
        instance: "i-0123456789abcdef0".into(),
        account: "123456789012".into(),
        region: "us-east-1".into(),
        zone: "us-east-1b".into(),
        instance_type: "g5.xlarge".into(),
        image: "ami-0aabbccdd".into(),
        pending: "2026-11-30T07:55:00Z".into(),
    }
}

fn pinned() -> InstanceIdentity {
    let read = |signer: &Signer| RegionCertificate::parse(signer.certificate_pem()).unwrap();
    InstanceIdentity {
        accounts: ["123456789012".to_owned()].into(),
        certificates: [
            ("us-east-1".to_owned(), read(&EAST)),
            ("us-west-2".to_owned(), read(&WEST)),
        ]
        .into(),
        within: Millis::minutes(15),
    }
}

fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[test]
fn a_document_signed_for_its_region_says_who_it_is() {
    let text = identity().document();
    let want = Document {
        instance: "i-0123456789abcdef0".into(),
        account: "123456789012".into(),
        region: "us-east-1".into(),
        zone: "us-east-1b".into(),
        instance_type: "g5.xlarge".into(),
        image: "ami-0aabbccdd".into(),
        pending: UnixMs(NOW.0 - 300_000),
    };
    let der = encoded(&EAST.signed(text.as_bytes(), text.as_bytes(), Form::Der));
    let lines = EAST.sign(&text);
    assert!(lines.starts_with("MIAG"), "as EC2 gives it: {lines}");
    for signature in [lines, der] {
        assert_eq!(verify(&pinned(), &text, &signature, NOW), Ok(want.clone()));
        let lined = format!("{text}\n");
        assert_eq!(verify(&pinned(), &lined, &signature, NOW), Ok(want.clone()));
    }
}

#[test]
fn what_does_not_hold_is_refused_with_its_cause() {
    use ProofError as Proof;
    let good = identity().document();
    let signature = EAST.sign(&good);
    let other = Identity {
        instance: "i-0fffffffffffffff0".into(),
        ..identity()
    };
    let forged = other.document();
    let abroad = Identity {
        region: "eu-west-1".into(),
        zone: "eu-west-1a".into(),
        ..identity()
    };
    let stranger = Identity {
        account: "999999999999".into(),
        ..identity()
    };
    let nobody = good.replace("i-0123456789abcdef0", "x");
    let west = Identity {
        region: "us-west-2".into(),
        zone: "us-west-2a".into(),
        ..identity()
    };
    // The signature value is what comes last.
    let mut bent = EAST.signed(good.as_bytes(), good.as_bytes(), Form::Der);
    *bent.last_mut().unwrap() ^= 1;
    let altered = encoded(&EAST.signed(good.as_bytes(), forged.as_bytes(), Form::Ber));
    let sign = |identity: &Identity| {
        let text = identity.document();
        let signature = EAST.sign(&text);
        (text, signature)
    };
    let signer = |why| Err(Proof::Signature(why));
    type Case<'a> = (&'a str, (String, String), Result<Document, Proof>);
    let cases: Vec<Case<'_>> = vec![
        (
            "signature bent",
            (good.clone(), encoded(&bent)),
            signer(SignatureError::Wrong),
        ),
        (
            "content altered",
            (forged.clone(), altered),
            signer(SignatureError::Digest),
        ),
        (
            "document altered beside the signature",
            (forged, signature.clone()),
            Err(Proof::OtherDocument),
        ),
        (
            "signed by another region",
            (good.clone(), WEST.sign(&good)),
            signer(SignatureError::Signer),
        ),
        (
            "says another region than its signer's",
            sign(&west),
            signer(SignatureError::Signer),
        ),
        (
            "region without a certificate",
            sign(&abroad),
            Err(Proof::Region("eu-west-1".into())),
        ),
        (
            "another account",
            sign(&stranger),
            Err(Proof::Account("999999999999".into())),
        ),
        (
            "no instance id",
            (nobody.clone(), EAST.sign(&nobody)),
            Err(Proof::Document(DocumentError::Field("instanceId"))),
        ),
        (
            "document too large",
            ("x".repeat(4_097), signature.clone()),
            Err(Proof::TooLarge),
        ),
        (
            "signature too large",
            (good.clone(), "x".repeat(8_193)),
            Err(Proof::TooLarge),
        ),
        (
            "not base64",
            (good.clone(), "*".into()),
            signer(SignatureError::Base64),
        ),
        (
            "garbage",
            (good.clone(), encoded(b"\x30\x03\x02\x01\x01")),
            signer(SignatureError::Structure("no ContentInfo")),
        ),
        (
            "cut off",
            (good.clone(), encoded(&bent[..bent.len() - 9])),
            signer(SignatureError::Ber(BerError::CutOff)),
        ),
        (
            "empty",
            (String::new(), String::new()),
            signer(SignatureError::Ber(BerError::CutOff)),
        ),
    ];
    for (what, (document, signature), want) in cases {
        let got = verify(&pinned(), &document, &signature, NOW);
        assert_eq!(got, want, "{what}");
    }
    let no_json = EAST.sign("hello");
    let error = verify(&pinned(), "hello", &no_json, NOW).unwrap_err();
    assert!(
        matches!(error, Proof::Document(DocumentError::Json(_))),
        "{error}"
    );
    let mut old = pinned();
    for certificate in old.certificates.values_mut() {
        certificate.not_after = NOW;
    }
    assert_eq!(
        verify(&old, &good, &signature, NOW),
        Err(Proof::Expired("us-east-1".into()))
    );
}

#[test]
fn a_key_that_is_not_pinned_signs_nothing_even_under_the_pinned_name() {
    // The name and number of the pinned certificate, the key of another.
    let mut pinned = pinned();
    let west = pinned.certificates["us-west-2"].public_key.clone();
    pinned.certificates.get_mut("us-east-1").unwrap().public_key = west;
    let text = identity().document();
    assert_eq!(
        verify(&pinned, &text, &EAST.sign(&text), NOW),
        Err(ProofError::Signature(SignatureError::Wrong))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let refused = verify(&pinned(), "x", &encoded(&bytes), NOW).is_err();
        prop_assert!(refused);
    }

    #[test]
    fn any_text_is_refused_without_a_panic(document in ".{0,200}", signature in ".{0,200}") {
        prop_assert!(verify(&pinned(), &document, &signature, NOW).is_err());
    }

    /// A good signature with some bytes changed: never a panic, and never another instance.
    #[test]
    fn a_bent_signature_proves_nothing_else(
        der in any::<bool>(),
        bends in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        shorten in any::<bool>(),
    ) {
        let text = identity().document();
        let form = if der { Form::Der } else { Form::Ber };
        let mut bytes = EAST.signed(text.as_bytes(), text.as_bytes(), form);
        for (at, value) in bends {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if shorten {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(found) = verify(&pinned(), &text, &encoded(&bytes), NOW) {
            prop_assert_eq!(found.instance.as_str(), "i-0123456789abcdef0");
        }
    }

    #[test]
    fn ber_of_anything_is_der_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(der) = ber::to_der(&bytes) {
            prop_assert_eq!(ber::to_der(&der), Ok(der.clone()));
        }
    }
}
