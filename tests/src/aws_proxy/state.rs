//! What the proxy remembers of a region: tokens, wishes, activities, members on their way in and out.
//!
//! Held behind one lock per region by the server; changed by the actions. It makes no calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use super::activity::Activities;
use super::member::{Member, Phase};
use super::reply::Reply;
use super::scenario::{Ration, Scenario, concerns};
use super::views::Views;
use super::warm::WarmPool;
use super::xml::Element;

/// Most tokens that are remembered; the oldest go first.
const MAX_TOKENS: usize = 10_000;
/// Most reasons of ended instances that are remembered; the oldest go first.
const MAX_REASONS: usize = 5_000;

/// A LaunchInstances call that is remembered.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    pub(super) asked: String,
    pub(super) at: Instant,
    /// Absent while the call is at work.
    pub(super) answer: Option<Reply>,
}

/// What is remembered of one group.
#[derive(Debug, Default)]
pub(super) struct GroupState {
    /// The desired capacity that was asked for, where it is not what moto has.
    pub(super) wish: Option<u32>,
    /// When an unfilled wish is tried again.
    pub(super) retry_at: Option<Instant>,
    pub(super) activities: Activities,
    /// The last description that was given, for stale answers.
    pub(super) described: Option<(Instant, Element)>,
    /// Where hooks' messages go and what they carry, by hook.
    pub(super) hook_targets: BTreeMap<String, (String, String)>,
    /// What moto does not keep of a group, as it is described.
    pub(super) attributes: BTreeMap<String, String>,
    /// Why processes are suspended.
    pub(super) reasons: BTreeMap<String, String>,
    /// Scaling policies that were put disabled.
    pub(super) disabled_policies: BTreeSet<String>,
    /// Members that a health check has failed.
    pub(super) unhealthy: BTreeSet<String>,
    /// When their replacement is looked at again.
    pub(super) health_at: Option<Instant>,
    pub(super) warm: Option<WarmPool>,
    /// Set while the group goes away.
    pub(super) deleting: bool,
}

/// What is remembered of one region.
#[derive(Debug, Default)]
pub(super) struct RegionState {
    pub(super) groups: BTreeMap<String, GroupState>,
    pub(super) instances: BTreeMap<String, Member>,
    /// Instances that time moves on.
    pub(super) moving: BTreeSet<String>,
    pub(super) views: Views,
    tokens: BTreeMap<String, Remembered>,
    token_order: VecDeque<String>,
    /// Why instances ended in EC2, where moto says it wrong: code and words.
    reasons: VecDeque<(String, String, String)>,
}

impl RegionState {
    pub(super) fn group(&mut self, name: &str) -> &mut GroupState {
        self.groups.entry(name.to_owned()).or_default()
    }

    /// Keeps an instance, or what has become of it.
    pub(super) fn keep(&mut self, id: &str, member: Member) {
        if member.is_moving() {
            self.moving.insert(id.to_owned());
        } else {
            self.moving.remove(id);
        }
        self.instances.insert(id.to_owned(), member);
    }

    /// Forgets an instance that is gone.
    pub(super) fn forget(&mut self, id: &str) {
        self.moving.remove(id);
        if let Some(member) = self.instances.remove(id)
            && let Some(group) = self.groups.get_mut(&member.group)
        {
            group.unhealthy.remove(id);
        }
    }

    /// Members of a group that moto does not list: those that are ending, and dead ones.
    pub(super) fn apart<'a>(
        &'a self,
        group: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Member)> {
        self.instances
            .iter()
            .filter(move |(_, m)| m.group == group && m.entry.is_some())
    }

    /// How many members of a group count against its desired capacity although moto does not list them.
    pub(super) fn dead_count(&self, group: &str) -> u32 {
        let dead = self.apart(group).filter(|(_, m)| m.phase == Phase::Dead);
        u32::try_from(dead.count()).unwrap_or(u32::MAX)
    }

    pub(super) fn token(&self, token: &str) -> Option<&Remembered> {
        self.tokens.get(token)
    }

    pub(super) fn remember_token(&mut self, token: &str, row: Remembered) {
        self.tokens.insert(token.to_owned(), row);
        self.token_order.push_back(token.to_owned());
        if self.token_order.len() > MAX_TOKENS
            && let Some(oldest) = self.token_order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
    }

    /// Keeps the answer to a call, or, when there was none that launched, frees its token.
    pub(super) fn settle_token(&mut self, token: &str, answer: Option<Reply>) {
        match answer {
            Some(answer) => {
                if let Some(row) = self.tokens.get_mut(token) {
                    row.answer = Some(answer);
                }
            }
            None => {
                self.tokens.remove(token);
                self.token_order.retain(|t| t != token);
            }
        }
    }

    pub(super) fn set_reason(&mut self, id: &str, code: &str, words: &str) {
        self.reasons
            .push_back((id.to_owned(), code.to_owned(), words.to_owned()));
        if self.reasons.len() > MAX_REASONS {
            self.reasons.pop_front();
        }
    }

    pub(super) fn reason(&self, id: &str) -> Option<(&str, &str)> {
        let found = self.reasons.iter().rev().find(|(i, _, _)| i == id);
        found.map(|(_, code, words)| (code.as_str(), words.as_str()))
    }
}

/// How many of `want` may be launched there, taken off the rations; and the row that was in the way.
pub(super) fn take_ration(
    scenario: &mut Scenario,
    region: &str,
    group: &str,
    zone: &str,
    instance_type: &str,
    want: u32,
) -> (u32, Option<Ration>) {
    let matches = |r: &Ration| {
        concerns(r.region.as_ref(), region)
            && concerns(r.group.as_ref(), group)
            && concerns(r.zone.as_ref(), zone)
            && concerns(r.instance_type.as_ref(), instance_type)
    };
    let tightest = scenario
        .rations
        .iter()
        .filter(|r| matches(r))
        .min_by_key(|r| r.left)
        .cloned();
    let granted = tightest.as_ref().map_or(want, |r| r.left.min(want));
    for row in scenario.rations.iter_mut().filter(|r| matches(r)) {
        row.left = row.left.saturating_sub(granted);
    }
    (granted, tightest.filter(|_| granted < want))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_ration_counts_and_all_matching_ones_are_used_up() {
        let row = |zone: Option<&str>, left| Ration {
            zone: zone.map(str::to_owned),
            left,
            ..Ration::default()
        };
        let mut scenario = Scenario {
            rations: vec![row(None, 5), row(Some("a"), 2)],
            ..Scenario::default()
        };
        let (granted, short) = take_ration(&mut scenario, "r", "g", "a", "t", 4);
        assert_eq!((granted, short.is_some()), (2, true));
        let (granted, short) = take_ration(&mut scenario, "r", "g", "b", "t", 3);
        assert_eq!((granted, short.is_some()), (3, false));
        assert_eq!(take_ration(&mut scenario, "r", "g", "b", "t", 1).0, 0);
    }

    #[test]
    fn tokens_are_bounded_and_a_refused_one_is_free_again() {
        let mut state = RegionState::default();
        let row = || Remembered {
            asked: String::new(),
            at: Instant::now(),
            answer: None,
        };
        for n in 0..=MAX_TOKENS {
            state.remember_token(&n.to_string(), row());
        }
        assert!(state.token("0").is_none() && state.token("1").is_some());
        state.settle_token("1", None);
        assert!(state.token("1").is_none());
    }
}
