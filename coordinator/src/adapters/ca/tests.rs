//! Tests of the CA: first start, keys that are missing or wrong, what certificates say and prove. Changes nothing outside
//! a temporary directory.

use super::super::clock::ManualClock;
use super::super::store::memory::{Disk, MemoryStore};
use super::*;
use drover_core::model::NodeId;
use drover_core::rules::access::Role;
use std::sync::Arc;

const NOW: UnixMs = UnixMs(1_800_000_000_000);
const DAY: u64 = 24 * 3_600_000;

struct Place {
    dir: tempfile::TempDir,
    disk: Disk,
    clock: ManualClock,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            disk: Disk::default(),
            clock: ManualClock::at(NOW),
        }
    }

    async fn open(&self) -> Result<Ca, CaError> {
        let store = MemoryStore::open(&self.disk);
        Ca::open(self.dir.path(), &store, &self.clock).await
    }

    fn key(&self) -> PathBuf {
        self.dir.path().join(KEY_FILE)
    }
}

fn csr() -> (KeyPair, Csr) {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let der = CertificateParams::default()
        .serialize_request(&key)
        .unwrap();
    let csr = Csr::parse(der.der()).unwrap();
    (key, csr)
}

fn verify(ca: &Ca, der: &CertificateDer<'_>, at: UnixMs, usage: webpki::KeyUsage) -> bool {
    let anchor = webpki::anchor_from_trusted_cert(ca.der()).unwrap();
    let time =
        rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_millis(at.0));
    webpki::EndEntityCert::try_from(der)
        .unwrap()
        .verify_for_usage(
            &[webpki::ring::ECDSA_P256_SHA256],
            &[anchor],
            &[],
            time,
            usage,
            None,
            None,
        )
        .is_ok()
}

#[tokio::test]
async fn is_made_once_and_found_again() {
    let place = Place::new();
    let first = place.open().await.unwrap();
    assert!(!private::is_open_to_others(&place.key()).unwrap());
    assert_eq!(first.sha256(), sha256_hex(first.der()));
    let again = place.open().await.unwrap();
    assert_eq!(first.sha256(), again.sha256());
    assert_eq!(first.pem(), again.pem());
    assert!(!format!("{again:?}").contains("PRIVATE"));
}

#[tokio::test]
async fn a_first_start_that_ended_after_the_key_or_after_the_record_goes_on_with_it() {
    let place = Place::new();
    let new = place.dir.path().join(NEW_KEY_FILE);
    let key = make_key(&new).unwrap();
    let ca = place.open().await.unwrap();
    assert_eq!(ca.issuer.key().public_key_raw(), key.public_key_raw());
    assert!(place.key().exists() && !new.exists());
    // As it stands when the start ends between the record and the key's name.
    std::fs::rename(place.key(), &new).unwrap();
    let again = place.open().await.unwrap();
    assert_eq!(again.sha256(), ca.sha256());
    assert!(place.key().exists() && !new.exists());
    assert!(!private::is_open_to_others(&place.key()).unwrap());
}

#[tokio::test]
async fn a_key_whose_store_was_lost_starts_no_new_fleet() {
    let mut place = Place::new();
    place.open().await.unwrap();
    let key = std::fs::read(place.key()).unwrap();
    place.disk = Disk::default();
    for _ in 0..2 {
        let error = place.open().await.unwrap_err();
        assert!(matches!(error, CaError::StoreLost { .. }), "{error}");
        for part in ["ca.key", "drover restore", "move"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let store = MemoryStore::open(&place.disk);
        assert!(store.get(keys::CA).await.unwrap().is_none());
        assert_eq!(std::fs::read(place.key()).unwrap(), key);
    }
    std::fs::remove_file(place.key()).unwrap();
    place.open().await.unwrap();
}

#[tokio::test]
async fn a_missing_different_open_or_broken_key_refuses_to_start_and_says_what_to_do() {
    let place = Place::new();
    let ca = place.open().await.unwrap();
    let good = std::fs::read(place.key()).unwrap();

    std::fs::remove_file(place.key()).unwrap();
    let missing = place.open().await.unwrap_err();
    assert!(matches!(missing, CaError::KeyMissing { .. }));
    let text = missing.to_string();
    for part in ["ca.key", ca.sha256(), "drover restore"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!place.key().exists(), "no new key was made");

    make_key(&place.key()).unwrap();
    let differs = place.open().await.unwrap_err();
    assert!(matches!(differs, CaError::KeyDiffers { .. }));
    assert!(differs.to_string().contains("drover restore"));

    std::fs::write(place.key(), "-----BEGIN NOTHING-----").unwrap();
    assert!(matches!(
        place.open().await.unwrap_err(),
        CaError::KeyBroken { .. }
    ));
    std::fs::write(place.key(), [0xff, 0xfe]).unwrap();
    assert!(matches!(
        place.open().await.unwrap_err(),
        CaError::KeyBroken { .. }
    ));

    private::replace(&place.key(), &good).unwrap();
    place.open().await.unwrap();
    std::fs::set_permissions(
        place.key(),
        std::os::unix::fs::PermissionsExt::from_mode(0o640),
    )
    .unwrap();
    let open = place.open().await.unwrap_err();
    assert!(open.to_string().contains("chmod 600"), "{open}");
}

#[tokio::test]
async fn node_and_admin_certificates_are_for_clients_and_carry_their_name() {
    let ca = place_ca().await;
    let (_, csr) = csr();
    let node = ca.issue_node(&csr, &NodeId::from("n-1"), NOW).unwrap();
    let read = PeerCertificate::read(&node.der).unwrap();
    assert_eq!(read.subject, Subject::Node(NodeId::from("n-1")));
    assert_eq!(read.serial, node.serial);
    assert_eq!(read.not_after, node.not_after);
    assert_eq!(read.not_after, NOW.after(issue::NODE_LIFE));
    assert_eq!(read.key_sha256, csr.key_sha256());
    let another = ca.issue_node(&csr, &NodeId::from("n-1"), NOW).unwrap();
    assert_ne!(another.serial, node.serial, "serials are random");

    let usable = |at: u64, usage| verify(&ca, &node.der, UnixMs(at), usage);
    let client = webpki::KeyUsage::client_auth;
    for (at, good) in [
        (NOW.0 - DAY + 2_000, true),
        (NOW.0 - DAY - 2_000, false),
        (NOW.0 + DAY - 2_000, true),
        (NOW.0 + DAY + 2_000, false),
    ] {
        assert_eq!(usable(at, client()), good, "{at}");
    }
    assert!(!usable(NOW.0, webpki::KeyUsage::server_auth()));

    let admin = ca
        .issue_admin(&csr, Role::Operator, "ada@example", issue::ADMIN_LIFE, NOW)
        .unwrap();
    let read = PeerCertificate::read(&admin.der).unwrap();
    let Subject::Admin { role, name } = read.subject else {
        panic!("{read:?}");
    };
    assert_eq!((role, name.as_str()), (Role::Operator, "ada@example"));
    for name in ["", "a/b", "a b", "ü", &"x".repeat(65)] {
        let refused = ca.issue_admin(&csr, Role::Admin, name, issue::ADMIN_LIFE, NOW);
        assert!(matches!(refused, Err(IssueError::Name(_))), "{name}");
    }
    let long = ca.issue_admin(&csr, Role::Admin, "a", Millis(400 * DAY), NOW);
    assert!(matches!(long, Err(IssueError::Life)));
}

#[tokio::test]
async fn the_coordinators_certificate_is_for_servers_and_its_names() {
    let ca = place_ca().await;
    let names = ["localhost".to_owned(), "10.0.0.7".to_owned()];
    let server = ca.issue_server(&names, NOW).unwrap();
    assert_eq!(
        server.chain.len(),
        2,
        "the CA comes along for a first contact"
    );
    let leaf = &server.chain[0];
    assert!(verify(&ca, leaf, NOW, webpki::KeyUsage::server_auth()));
    assert!(!verify(&ca, leaf, NOW, webpki::KeyUsage::client_auth()));
    let parsed = webpki::EndEntityCert::try_from(leaf).unwrap();
    for name in [limits_name(), "localhost", "10.0.0.7"] {
        let name = rustls::pki_types::ServerName::try_from(name).unwrap();
        parsed.verify_is_valid_for_subject_name(&name).unwrap();
    }
    assert!(server.renew_at > NOW && server.renew_at < NOW.after(issue::SERVER_LIFE));
    assert!(matches!(
        ca.issue_server(&["bad\u{e9}name".to_owned()], NOW),
        Err(IssueError::Name(_))
    ));
}

fn limits_name() -> &'static str {
    drover_proto::limits::COORDINATOR_NAME
}

async fn place_ca() -> Arc<Ca> {
    Arc::new(Place::new().open().await.unwrap())
}

#[test]
fn requests_without_proof_or_with_another_key_are_refused() {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let good = CertificateParams::default()
        .serialize_request(&key)
        .unwrap();
    let good = good.der().to_vec();
    let mut forged = good.clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut longer = good.clone();
    longer.push(0);
    let p384 = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let p384 = CertificateParams::default()
        .serialize_request(&p384)
        .unwrap();
    let ed = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let ed = CertificateParams::default().serialize_request(&ed).unwrap();
    for (name, der, expect) in [
        ("empty", Vec::new(), CsrError::Malformed),
        ("text", b"hello".to_vec(), CsrError::Malformed),
        ("longer", longer, CsrError::Malformed),
        ("forged", forged, CsrError::Signature),
        ("p384", p384.der().to_vec(), CsrError::Key),
        ("ed25519", ed.der().to_vec(), CsrError::Key),
    ] {
        assert_eq!(Csr::parse(&der).unwrap_err(), expect, "{name}");
    }
    Csr::parse(&good).unwrap();
}

#[tokio::test]
async fn an_expired_certificate_proves_itself_by_a_signature() {
    let ca = place_ca().await;
    let other = place_ca().await;
    let (key, csr) = csr();
    let node = ca.issue_node(&csr, &NodeId::from("n-1"), NOW).unwrap();
    let foreign = other.issue_node(&csr, &NodeId::from("n-1"), NOW).unwrap();
    let server = ca.issue_server(&[], NOW).unwrap();
    let sign = |message: &[u8]| rcgen::SigningKey::sign(&key, message).unwrap();

    let read = ca
        .verify_at_any_time(&node.der, b"message", &sign(b"message"))
        .unwrap();
    assert_eq!(read.subject, Subject::Node(NodeId::from("n-1")));
    use identity::CertificateError::{Foreign, Malformed, Nameless, Signature};
    for (der, signature, expect) in [
        (node.der.to_vec(), sign(b"another"), Signature),
        (node.der.to_vec(), Vec::new(), Signature),
        (foreign.der.to_vec(), sign(b"message"), Foreign),
        (server.chain[0].to_vec(), sign(b"message"), Nameless),
        (ca.der().to_vec(), sign(b"message"), Nameless),
        (b"junk".to_vec(), sign(b"message"), Malformed),
    ] {
        let refused = ca.verify_at_any_time(&der, b"message", &signature);
        assert_eq!(refused.unwrap_err(), expect);
    }
}
