//! What an activity says of the ask that it belongs to: the instance that its description names, else the sizes in its
//! cause.
//!
//! Called by `members` for failed activities. Pure. AWS's causes read, one sentence after the other: `At TIME a user request
//! explicitly set group desired capacity changing the desired capacity from 0 to 3.  At TIME an instance was started in
//! response to a difference between desired and actual capacity, increasing the capacity from 0 to 3.` A launch that is
//! tried again has the last one only.

use drover_core::model::InstanceId;

use crate::adapters::actuate::asg::withdraw::instance_in;
use crate::ports::actuate::{Raise, Trace};

const CHANGED: &str = "changing the desired capacity from ";
const STARTED: &str = "increasing the capacity from ";

pub(super) fn trace(description: &str, cause: &str) -> Trace {
    if let Some(id) = instance_in(description) {
        return Trace::Instance(InstanceId::new(id));
    }
    let started = spans(cause, STARTED).last();
    started.map_or(Trace::Absent, |size| Trace::Size {
        there: size.from,
        wanted: size.to,
        changes: spans(cause, CHANGED).collect(),
    })
}

/// Every `from X to Y` behind these words.
fn spans<'t>(text: &'t str, words: &'t str) -> impl Iterator<Item = Raise> + 't {
    text.split(words).skip(1).filter_map(|rest| {
        let (from, rest) = rest.split_once(" to ")?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let to = &rest[..end.unwrap_or(rest.len())];
        Some(Raise {
            from: from.parse().ok()?,
            to: to.parse().ok()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "Launching a new EC2 instance.  Status Reason: none";

    fn size(there: u32, wanted: u32, changes: &[(u32, u32)]) -> Trace {
        let changes = changes.iter().map(|&(from, to)| Raise { from, to });
        Trace::Size {
            there,
            wanted,
            changes: changes.collect(),
        }
    }

    #[test]
    fn sizes_are_read_from_causes_as_aws_words_them() {
        let started = "At 2026-11-30T12:00:10Z an instance was started in response to a difference between desired and \
                       actual capacity, increasing the capacity from 1 to 3.";
        let asked = "At 2026-11-30T12:00:01Z a user request explicitly set group desired capacity changing the desired \
                     capacity from 1 to 3.";
        let limits = "At 2026-11-30T12:00:01Z a user request update of AutoScalingGroup constraints to min: 0, max: 5, \
                      desired: 3 changing the desired capacity from 0 to 3.";
        let alarm = "At 2026-11-30T12:00:05Z a monitor alarm busy in state ALARM triggered policy more changing the \
                     desired capacity from 3 to 10.";
        for (cause, expected) in [
            (started.to_owned(), size(1, 3, &[])),
            (format!("{asked}  {started}"), size(1, 3, &[(1, 3)])),
            (format!("{limits}  {started}"), size(1, 3, &[(0, 3)])),
            (
                format!("{asked}  {alarm}  {started}"),
                size(1, 3, &[(1, 3), (3, 10)]),
            ),
            (asked.to_owned(), Trace::Absent),
            (String::new(), Trace::Absent),
            (
                format!("{STARTED}one to 3. {STARTED}4294967296 to 3."),
                Trace::Absent,
            ),
        ] {
            assert_eq!(trace(PLAIN, &cause), expected, "{cause}");
        }
    }

    #[test]
    fn an_instance_that_is_named_says_more_than_sizes() {
        let named = "Launching a new EC2 instance: i-0123.  Status Reason: it failed its checks";
        assert_eq!(
            trace(named, &format!("{STARTED}0 to 3.")),
            Trace::Instance(InstanceId::new("i-0123"))
        );
    }
}
