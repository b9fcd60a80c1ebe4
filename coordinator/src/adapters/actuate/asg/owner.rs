//! Whose a group is: the tag `drover:owner`, and the tag `drover:freeze`.
//!
//! Called before every mutation and at every reading. Pure. The owner's value is `STORE_ID/FENCE`: the store's id
//! tells coordinators apart, the fence tells an old copy of a store from the living one. A group that a person offers
//! carries [`UNCLAIMED`]; the first coordinator that changes something claims it.

use std::collections::BTreeMap;

/// Key of the owner tag.
pub const OWNER_TAG: &str = "drover:owner";
/// Key of the tag that stops everything for a group, without our store.
pub const FREEZE_TAG: &str = "drover:freeze";
/// Value of the owner tag on a group that is free to be claimed.
pub const UNCLAIMED: &str = "unclaimed";

/// This coordinator, as groups name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    store_id: String,
    fence: u64,
}

/// Why there is no owner: every group without a tag would be ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store's id {0:?} is empty or has a slash: it cannot be an owner")]
pub struct BadOwner(String);

/// How a group stands to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// Ours, and the tag says so.
    Ours,
    /// Ours by an older fence, or free: the tag is to be written before anything else.
    Open,
}

impl Owner {
    /// From the store's id and the fence of its present opening.
    ///
    /// # Errors
    /// When the id is empty or has a slash.
    pub fn new(store_id: &str, fence: u64) -> Result<Self, BadOwner> {
        if store_id.trim().is_empty() || store_id.contains('/') {
            return Err(BadOwner(store_id.to_owned()));
        }
        Ok(Self {
            store_id: store_id.to_owned(),
            fence,
        })
    }

    /// What our groups' tag says.
    pub(super) fn tag(&self) -> String {
        format!("{}/{}", self.store_id, self.fence)
    }

    /// Whether a group with these tags may become a pool here: offered to anyone, or ours by whatever opening.
    pub(super) fn may_hold(&self, tags: &BTreeMap<String, String>) -> bool {
        let value = tags.get(OWNER_TAG).map(|v| v.trim()).unwrap_or_default();
        let store = value.split_once('/').map_or(value, |(store, _)| store);
        value == UNCLAIMED || store == self.store_id
    }

    /// Whether a group with these tags is ours; else why not.
    pub(super) fn judge(&self, tags: &BTreeMap<String, String>) -> Result<Claim, String> {
        let hint = format!("tag it {OWNER_TAG}={UNCLAIMED} to give it to this coordinator");
        let Some(value) = tags
            .get(OWNER_TAG)
            .map(|v| v.trim())
            .filter(|v| !v.is_empty())
        else {
            return Err(format!("the group has no tag {OWNER_TAG}; {hint}"));
        };
        if value == UNCLAIMED {
            return Ok(Claim::Open);
        }
        let (store, fence) = value.split_once('/').unwrap_or((value, "0"));
        if store != self.store_id {
            return Err(format!(
                "the group belongs to another coordinator ({OWNER_TAG}={value}, this one is {}); once that one is gone, {hint}",
                self.store_id
            ));
        }
        match fence.parse::<u64>() {
            Ok(fence) if fence == self.fence => Ok(Claim::Ours),
            Ok(fence) if fence < self.fence => Ok(Claim::Open),
            Ok(_) => Err(format!(
                "a later opening of this store has the group ({OWNER_TAG}={value}, this one is {}): this coordinator runs \
                 on an old copy; if the other is gone for good, {hint}",
                self.tag()
            )),
            Err(_) => Err(format!(
                "the tag {OWNER_TAG}={value} cannot be read; {hint}"
            )),
        }
    }

    /// Why a group with these tags is driven by another coordinator on this very store; nothing when it is not. `copied`:
    /// our store is a copy of the one that it was made in.
    pub(super) fn shared(&self, tags: &BTreeMap<String, String>, copied: bool) -> Option<String> {
        let value = tags.get(OWNER_TAG)?.trim();
        let (store, fence) = value.split_once('/').unwrap_or((value, "0"));
        if store != self.store_id {
            return None;
        }
        let later = fence.parse::<u64>().is_ok_and(|fence| fence > self.fence);
        match (copied, later) {
            (true, _) => Some(format!(
                "this store is a copy of the one that drives the group ({OWNER_TAG}={value})"
            )),
            (false, true) => Some(format!(
                "a later opening of this store drives the group ({OWNER_TAG}={value}, this one is {}): this coordinator \
                 runs on an old copy",
                self.tag()
            )),
            (false, false) => None,
        }
    }
}

/// What the freeze tag says, where there is one: the reason that its value gives.
pub(super) fn frozen(tags: &BTreeMap<String, String>) -> Option<String> {
    tags.get(FREEZE_TAG).map(|why| match why.trim() {
        "" => "no reason given".to_owned(),
        why => why.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(OWNER_TAG.to_owned(), value.to_owned())])
    }

    #[test]
    fn sc_88_no_tag_no_management() {
        let us = Owner::new("s1", 5).expect("an owner");
        let table = [
            ("s1/5", Some(Claim::Ours)),
            ("s1/4", Some(Claim::Open)),
            ("s1", Some(Claim::Open)),
            ("unclaimed", Some(Claim::Open)),
            ("s1/6", None),
            ("s2/5", None),
            ("s11/5", None),
            ("s1/five", None),
            ("", None),
            ("  ", None),
        ];
        for (value, expect) in table {
            let judged = us.judge(&tags(value));
            assert_eq!(judged.clone().ok(), expect, "{value:?}: {judged:?}");
        }
        // What may be found is offered or ours, be it by a later opening: then the pool says why it is not driven.
        for (value, found) in [
            ("unclaimed", true),
            ("s1/4", true),
            ("s1/6", true),
            ("s11/5", false),
            ("s2/5", false),
            ("", false),
        ] {
            assert_eq!(us.may_hold(&tags(value)), found, "{value:?}");
        }
        assert!(!us.may_hold(&BTreeMap::new()));
        let why = us.judge(&BTreeMap::new()).expect_err("no tag");
        assert!(why.contains("no tag drover:owner"), "{why}");
        assert!(Owner::new("", 1).is_err() && Owner::new(" ", 1).is_err());
    }

    #[test]
    fn sc_89_a_copy_of_the_store_drives_nothing_that_the_first_one_drives() {
        let us = Owner::new("s1", 5).expect("an owner");
        let table = [
            ("s1/5", false, None),
            ("s1/4", false, None),
            ("s1/4", true, Some("is a copy")),
            ("s1/5", true, Some("is a copy")),
            ("s1/6", false, Some("old copy")),
            ("unclaimed", true, None),
            // Somebody else's group: refused for itself, and no reason not to start.
            ("s2/9", true, None),
            ("s2/9", false, None),
        ];
        for (value, copied, expect) in table {
            let found = us.shared(&tags(value), copied);
            assert_eq!(
                found.is_some(),
                expect.is_some(),
                "{value} {copied}: {found:?}"
            );
            if let (Some(found), Some(expect)) = (found, expect) {
                assert!(found.contains(expect), "{found}");
            }
        }
        assert_eq!(us.shared(&BTreeMap::new(), true), None);
    }

    #[test]
    fn the_freeze_tag_counts_with_and_without_a_reason() {
        let frozen_by =
            |value: &str| frozen(&BTreeMap::from([(FREEZE_TAG.to_owned(), value.to_owned())]));
        assert_eq!(frozen_by("audit"), Some("audit".to_owned()));
        assert_eq!(frozen_by(""), Some("no reason given".to_owned()));
        assert_eq!(frozen(&BTreeMap::new()), None);
    }
}
