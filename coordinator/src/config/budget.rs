//! How much may be asked of AWS: the keys of `[aws]` that say so. Called by `config/aws`.

use super::values;
use drover_config::Section;

/// Most calls a second, and at once, that can be meant.
const MOST: u32 = 1_000;

/// How many calls may go to AWS, for each region and account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwsBudget {
    /// Auto Scaling's describes, each second.
    pub autoscaling_calls_per_second: u32,
    /// Auto Scaling's describes, at once.
    pub autoscaling_burst: u32,
    /// Auto Scaling's changes, each second.
    pub autoscaling_changes_per_second: u32,
    /// Auto Scaling's changes, at once.
    pub autoscaling_changes_burst: u32,
    /// Share of EC2's published limits, percent.
    pub ec2_share_percent: u32,
}

impl Default for AwsBudget {
    fn default() -> Self {
        Self {
            autoscaling_calls_per_second: 10,
            autoscaling_burst: 40,
            autoscaling_changes_per_second: 5,
            autoscaling_changes_burst: 20,
            ec2_share_percent: 50,
        }
    }
}

pub(super) fn read(section: &Section<'_>) -> AwsBudget {
    let usual = AwsBudget::default();
    let count = |key, usual| section.count(key, 1..=MOST).map_or(usual, |at| at.value);
    let share = section.parsed("ec2_share", "50%", |text| match values::percent(text)? {
        0 => Err("leaves EC2 unasked".to_owned()),
        percent => Ok(percent),
    });
    AwsBudget {
        autoscaling_calls_per_second: count(
            "autoscaling_calls_per_second",
            usual.autoscaling_calls_per_second,
        ),
        autoscaling_burst: count("autoscaling_burst", usual.autoscaling_burst),
        autoscaling_changes_per_second: count(
            "autoscaling_changes_per_second",
            usual.autoscaling_changes_per_second,
        ),
        autoscaling_changes_burst: count(
            "autoscaling_changes_burst",
            usual.autoscaling_changes_burst,
        ),
        ec2_share_percent: share.unwrap_or(usual.ec2_share_percent),
    }
}

#[cfg(test)]
mod tests {
    use super::AwsBudget;
    use crate::config::{Problem, parse};

    const HEAD: &str = "[server]\nlisten = \"127.0.0.1:1\"\n[aws]\n";

    #[test]
    fn what_is_not_said_is_the_default() {
        let config = parse(&format!(
            "{HEAD}autoscaling_calls_per_second = 3\nec2_share = \"10%\"\n"
        ))
        .expect("is sound");
        let expect = AwsBudget {
            autoscaling_calls_per_second: 3,
            ec2_share_percent: 10,
            ..AwsBudget::default()
        };
        assert_eq!(config.aws.budget, expect);
    }

    #[test]
    fn a_budget_of_nothing_is_refused_with_its_line() {
        let wrong = "autoscaling_burst = 0\nautoscaling_changes_per_second = 5000\nec2_share = \"0%\"\nautoscaling_bursts = 1\n";
        let problems: Vec<Problem> = parse(&format!("{HEAD}{wrong}")).expect_err("four faults");
        let lines: Vec<_> = problems.iter().map(|p| p.line).collect();
        assert_eq!(lines, [4, 5, 6, 7], "{problems:?}");
    }
}
