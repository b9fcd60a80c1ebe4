//! The ask that SetDesiredCapacity cannot carry: a tag on the group itself.
//!
//! SetDesiredCapacity has no token, so a repetition could ask twice. Before the call the tag `drover:ask` is written
//! with the ask's token, the capacity it started from and the one it wants. The target is absolute: whoever finds the
//! tag after a crash may set it again. Read and written by `grow` and `settle`. Pure.

use std::collections::BTreeMap;

/// Key of the tag.
pub(super) const ASK_TAG: &str = "drover:ask";

/// The last ask that was made, or was about to be made, by SetDesiredCapacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    /// Token of the launch.
    pub(super) token: String,
    /// Capacity that was wanted before.
    pub(super) base: u32,
    /// Capacity that is wanted.
    pub(super) target: u32,
}

impl Ask {
    /// The tag's value.
    pub(super) fn tag(&self) -> String {
        format!("{} {} {}", self.token, self.base, self.target)
    }

    /// Reads a group's tag; nothing when there is none or it cannot be read (then it was not written by us).
    pub(super) fn read(tags: &BTreeMap<String, String>) -> Option<Self> {
        let mut words = tags.get(ASK_TAG)?.split(' ');
        let ask = Self {
            token: words.next()?.to_owned(),
            base: words.next()?.parse().ok()?,
            target: words.next()?.parse().ok()?,
        };
        (words.next().is_none() && ask.target >= ask.base).then_some(ask)
    }

    /// How many nodes it asked for.
    pub(super) fn count(&self) -> u32 {
        self.target - self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let ask = Ask {
            token: "t-1".into(),
            base: 3,
            target: 7,
        };
        let read =
            |value: &str| Ask::read(&BTreeMap::from([(ASK_TAG.to_owned(), value.to_owned())]));
        assert_eq!(read(&ask.tag()), Some(ask));
        for bad in ["", "t", "t 1", "t 1 x", "t 5 1", "t 1 2 3"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert_eq!(Ask::read(&BTreeMap::new()), None);
    }
}
