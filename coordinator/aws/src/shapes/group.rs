//! An Auto Scaling group as AWS describes it, and the few questions that follow from its shape alone.
//!
//! Filled by `sdk/convert_group`, read by the `asg` adapter and `pools doctor`. It decides nothing.

use std::collections::BTreeMap;

use crate::{GroupName, InstanceId};

/// A launch template as a group names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateRef {
    /// Its id.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its version: a number, `$Latest` or `$Default`; absent means the default.
    pub version: Option<String>,
}

/// One instance type that a mixed group may launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The type; absent where the override names requirements instead.
    pub instance_type: Option<String>,
    /// How much of the desired capacity one such instance counts for.
    pub weight: Option<String>,
    /// Whether types are chosen by requirements.
    pub by_requirements: bool,
}

/// How a mixed group chooses types and markets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedPolicy {
    /// The template that the overrides change.
    pub template: Option<TemplateRef>,
    /// The types, in order of preference.
    pub overrides: Vec<Override>,
    /// How many on-demand instances come first; AWS's default is 0.
    pub on_demand_base: Option<u32>,
    /// Share of on-demand above the base, percent; AWS's default is 100.
    pub on_demand_percent_above_base: Option<u32>,
}

/// What a group launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupTemplate {
    /// A launch template: what LaunchInstances needs.
    Template(TemplateRef),
    /// A mixed instances policy.
    Mixed(MixedPolicy),
    /// A launch configuration, AWS's older form.
    Configuration(String),
    /// AWS named none.
    Missing,
}

/// Where a member of a group stands in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// On its way in (`Pending`, `Pending:Wait`, `Pending:Proceed`).
    Pending,
    /// In service.
    InService,
    /// Out of service by a person, still a member (`EnteringStandby`, `Standby`).
    Standby,
    /// On its way out by detaching.
    Detaching,
    /// On its way out (`Terminating` with its waits, `Terminated`).
    Terminating,
    /// In the warm pool; AWS's word.
    Warmed(String),
    /// A word this release does not know or that concerns repairs in place.
    Other(String),
}

impl MemberState {
    /// Reads AWS's spelling.
    pub fn parse(text: &str) -> Self {
        match text {
            "Pending" | "Pending:Wait" | "Pending:Proceed" => Self::Pending,
            "InService" => Self::InService,
            "EnteringStandby" | "Standby" => Self::Standby,
            "Detaching" | "Detached" => Self::Detaching,
            "Terminated" => Self::Terminating,
            t if t.starts_with("Terminating") => Self::Terminating,
            t if t.starts_with("Warmed") => Self::Warmed(t.to_owned()),
            other => Self::Other(other.to_owned()),
        }
    }
}

/// One member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its instance id.
    pub id: InstanceId,
    /// Its type, where AWS says it.
    pub instance_type: Option<String>,
    /// Its zone, where AWS says it.
    pub zone: Option<String>,
    /// Where it stands.
    pub state: MemberState,
    /// Whether the group holds it for healthy; `None` when AWS says nothing.
    pub healthy: Option<bool>,
    /// Whether scale-in may not choose it.
    pub protected: bool,
    /// How much of the desired capacity it counts for, where the group weighs.
    pub weight: Option<String>,
    /// The template it was started from.
    pub template: Option<TemplateRef>,
}

impl Member {
    /// Whether it counts against the desired capacity: everything but leaving, detached, standby and warm.
    pub fn is_live(&self) -> bool {
        matches!(
            self.state,
            MemberState::Pending | MemberState::InService | MemberState::Other(_)
        )
    }
}

/// One Auto Scaling group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: GroupName,
    /// Fewest members that AWS keeps.
    pub min: u32,
    /// Most members that may be asked for.
    pub max: u32,
    /// How many AWS tries to have.
    pub desired: u32,
    /// Its zones.
    pub zones: Vec<String>,
    /// Its subnets.
    pub subnets: Vec<String>,
    /// What it launches.
    pub template: GroupTemplate,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// Suspended processes and why, in AWS's words.
    pub suspended: BTreeMap<String, String>,
    /// Whether new members start protected from scale-in.
    pub protects_new: bool,
    /// Set while the group is being deleted.
    pub status: Option<String>,
    /// `EC2`, `ELB` or more.
    pub health_check: Option<String>,
    /// Seconds after coming into service before a member's health is looked at.
    pub health_check_grace_seconds: Option<u32>,
    /// Seconds after which a member is replaced by AWS whatever it does.
    pub max_lifetime_seconds: Option<u32>,
    /// Whether AWS replaces spot members ahead of an interruption.
    pub capacity_rebalance: Option<bool>,
    /// Instances in its warm pool; `None` when it has no warm pool or AWS does not say.
    pub warm_pool_size: Option<u32>,
    /// Its members.
    pub members: Vec<Member>,
}

impl Group {
    /// Members that count against the desired capacity.
    pub fn live_count(&self) -> u32 {
        u32::try_from(self.members.iter().filter(|m| m.is_live()).count()).unwrap_or(u32::MAX)
    }

    /// Capacity that was asked for and is no member yet: `max(0, desired - live)`.
    pub fn coming(&self) -> u32 {
        self.desired.saturating_sub(self.live_count())
    }

    /// Whether one instance may count for more than one: then desired is no number of instances.
    pub fn is_weighted(&self) -> bool {
        let by_policy = match &self.template {
            GroupTemplate::Mixed(policy) => policy.overrides.iter().any(|o| o.weight.is_some()),
            _ => false,
        };
        by_policy || self.members.iter().any(|m| m.weight.is_some())
    }

    /// Whether it mixes on-demand and spot; LaunchInstances refuses such groups.
    pub fn mixes_markets(&self) -> bool {
        let GroupTemplate::Mixed(policy) = &self.template else {
            return false;
        };
        let base = policy.on_demand_base.unwrap_or(0);
        match policy.on_demand_percent_above_base.unwrap_or(100) {
            100.. => false,
            0 => base > 0,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(base: Option<u32>, percent: Option<u32>, weight: Option<&str>) -> Group {
        Group {
            name: "g".into(),
            min: 0,
            max: 10,
            desired: 3,
            zones: vec![],
            subnets: vec![],
            template: GroupTemplate::Mixed(MixedPolicy {
                template: None,
                overrides: vec![Override {
                    instance_type: Some("p4d.24xlarge".into()),
                    weight: weight.map(str::to_owned),
                    by_requirements: false,
                }],
                on_demand_base: base,
                on_demand_percent_above_base: percent,
            }),
            tags: BTreeMap::new(),
            suspended: BTreeMap::new(),
            protects_new: true,
            status: None,
            health_check: None,
            health_check_grace_seconds: None,
            max_lifetime_seconds: None,
            capacity_rebalance: None,
            warm_pool_size: None,
            members: vec![],
        }
    }

    #[test]
    fn markets_are_mixed_only_where_both_can_occur() {
        let table = [
            (None, None, false),
            (Some(2), Some(100), false),
            (None, Some(0), false),
            (Some(1), Some(0), true),
            (None, Some(50), true),
        ];
        for (base, percent, expect) in table {
            assert_eq!(
                mixed(base, percent, None).mixes_markets(),
                expect,
                "{base:?} {percent:?}"
            );
        }
    }

    #[test]
    fn a_weight_anywhere_makes_a_group_weighted() {
        assert!(!mixed(None, None, None).is_weighted());
        assert!(mixed(None, None, Some("8")).is_weighted());
    }

    #[test]
    fn only_pending_and_serving_members_count_as_live() {
        let table = [
            ("Pending", true),
            ("Pending:Wait", true),
            ("InService", true),
            ("Quarantined", true),
            ("Standby", false),
            ("Detaching", false),
            ("Terminating:Wait", false),
            ("Terminating", false),
            ("Terminated", false),
            ("Warmed:Stopped", false),
        ];
        for (word, live) in table {
            let member = Member {
                id: "i-1".into(),
                instance_type: None,
                zone: None,
                state: MemberState::parse(word),
                healthy: None,
                protected: true,
                weight: None,
                template: None,
            };
            assert_eq!(member.is_live(), live, "{word}");
        }
    }

    #[test]
    fn coming_is_never_negative() {
        let mut group = mixed(None, None, None);
        assert_eq!(group.coming(), 3);
        group.desired = 0;
        assert_eq!(group.coming(), 0);
    }
}
