//! Tests of whom the agent believes.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

const DAY: i64 = 86_400;
/// 2026-01-01, any fixed moment.
const NOW: i64 = 1_767_225_600;

struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn der(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    fn leaf(&self, name: &str, from: i64, until: i64) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let start = rcgen::date_time_ymd(2026, 1, 1) - std::time::Duration::ZERO;
        let shift = |seconds: i64| {
            let amount = std::time::Duration::from_secs(seconds.unsigned_abs());
            if seconds < 0 {
                start - amount
            } else {
                start + amount
            }
        };
        params.not_before = shift(from);
        params.not_after = shift(until);
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.0).unwrap().der().clone()
    }
}

fn verify(
    trust: Trust,
    leaf: &CertificateDer<'_>,
    chain: &[CertificateDer<'_>],
) -> Result<(), String> {
    let verifier = Verifier {
        trust,
        provider: Arc::new(rustls::crypto::ring::default_provider()),
    };
    let name = ServerName::try_from("coordinator.drover.internal").unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW.unsigned_abs()));
    verifier
        .verify_server_cert(leaf, chain, &name, &[], now)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

#[test]
fn the_token_hash_or_the_pinned_ca_decide() {
    let (ca, other) = (Ca::new(), Ca::new());
    let name = "coordinator.drover.internal";
    let leaf = ca.leaf(name, -DAY, DAY);
    let hash = Trust::Hash(CaHash::of(&ca.der()));
    let pinned = Trust::Pinned(ca.der());
    assert_eq!(verify(hash.clone(), &leaf, &[ca.der()]), Ok(()));
    assert_eq!(verify(pinned.clone(), &leaf, &[]), Ok(()));
    // The right CA shown beside a leaf that it did not sign.
    let forged = other.leaf(name, -DAY, DAY);
    for trust in [&hash, &pinned] {
        assert!(verify(trust.clone(), &forged, &[other.der(), ca.der()]).is_err());
        assert!(verify(trust.clone(), &forged, &[other.der()]).is_err());
        let elsewhere = ca.leaf("elsewhere.example", -DAY, DAY);
        assert!(verify(trust.clone(), &elsewhere, &[ca.der()]).is_err());
    }
    let told = verify(hash, &leaf, &[]).expect_err("nothing shown has the hash");
    assert!(told.contains("check ca_sha256"), "{told}");
}

#[test]
fn times_have_a_day_of_tolerance() {
    let ca = Ca::new();
    let check = |from, until| {
        let leaf = ca.leaf("coordinator.drover.internal", from, until);
        verify(Trust::Pinned(ca.der()), &leaf, &[]).is_ok()
    };
    assert!(check(-10 * DAY, 60));
    assert!(check(-10 * DAY, -DAY + 60), "expired less than a day ago");
    assert!(!check(-10 * DAY, -DAY - 60), "expired more than a day ago");
    assert!(check(DAY - 60, 10 * DAY), "valid in less than a day");
    assert!(!check(DAY + 60, 10 * DAY), "valid in more than a day");
}
