//! What a claim to an instance is, by what is known of those before it. Called by `instances`. Pure.

use crate::records::ClaimRecord;
use drover_core::model::UnixMs;

/// What a claim to an instance is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nobody used its document before.
    First,
    /// By the key that used it before: a reply was lost.
    Again,
    /// A person has readmitted it, and this is another key.
    Anew,
    /// A person has readmitted it, and this is a key that was taken back.
    NeedsNewKey,
    /// By a key that was taken back, too late.
    Barred,
    /// By another key.
    Second,
}

pub(super) fn judge(record: Option<&ClaimRecord>, key_sha256: &str, now: UnixMs) -> Claim {
    let Some(record) = record else {
        return Claim::First;
    };
    let barred = record.barred.iter().any(|key| key == key_sha256);
    match record.reopened_until {
        Some(until) if now < until && barred => Claim::NeedsNewKey,
        Some(until) if now < until => Claim::Anew,
        _ if barred => Claim::Barred,
        // A reopening that nobody used leaves no key that counts.
        Some(_) => Claim::Second,
        None if record.key_sha256 == key_sha256 => Claim::Again,
        None => Claim::Second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_and_everything_that_may_come_after_it() {
        let first = ClaimRecord {
            instance: "i-1".into(),
            node: "n-1".into(),
            key_sha256: "a".into(),
            at: UnixMs(1_000),
            disputed: None,
            reopened_until: None,
            barred: Vec::new(),
        };
        let reopened = ClaimRecord {
            reopened_until: Some(UnixMs(5_000)),
            barred: vec!["a".into()],
            ..first.clone()
        };
        let again = ClaimRecord {
            key_sha256: "b".into(),
            barred: vec!["a".into()],
            ..first.clone()
        };
        for (what, record, key, now, want) in [
            ("first", None, "a", 1_000, Claim::First),
            ("repeated", Some(&first), "a", 2_000, Claim::Again),
            ("another key", Some(&first), "b", 2_000, Claim::Second),
            (
                "readmitted, old key",
                Some(&reopened),
                "a",
                4_999,
                Claim::NeedsNewKey,
            ),
            (
                "readmitted, new key",
                Some(&reopened),
                "b",
                4_999,
                Claim::Anew,
            ),
            (
                "readmitted, too late",
                Some(&reopened),
                "b",
                5_000,
                Claim::Second,
            ),
            ("taken back", Some(&reopened), "a", 5_000, Claim::Barred),
            ("enrolled anew", Some(&again), "b", 6_000, Claim::Again),
            ("the key before", Some(&again), "a", 6_000, Claim::Barred),
            ("a third key", Some(&again), "c", 6_000, Claim::Second),
        ] {
            assert_eq!(judge(record, key, UnixMs(now)), want, "{what}");
        }
    }
}
