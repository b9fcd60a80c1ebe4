//! How many nodes of a pool may go now: the removal quota and the disruption budgets in force, the least of all. Called
//! by `shrink` for each node that nothing else keeps. A budget for some strategies counts every node on its way out,
//! whatever took it: what is asked of people's nerves is the sum.

use super::super::state::Work;
use crate::model::{Disruption, Quota, Reason, UnixMs};
use std::collections::BTreeSet;

/// Most nodes of a pool of this size from draining to leaving at once.
fn quota_of(quota: Quota, nodes: u32) -> u32 {
    match quota {
        Quota::Count(n) => n,
        Quota::Percent(percent) => {
            let share = u64::from(nodes)
                .saturating_mul(u64::from(percent))
                .div_ceil(100);
            u32::try_from(share).unwrap_or(u32::MAX)
        }
    }
}

/// What the limits of one pool still allow.
pub(super) struct Room {
    /// On their way out, this plan's included.
    out: u32,
    quota: u32,
    budgets: Vec<Budget>,
}

struct Budget {
    most: u32,
    strategies: BTreeSet<String>,
    name: String,
    until: Option<UnixMs>,
}

impl Room {
    /// `taken_back`: nodes on their way out that this plan takes back.
    pub fn of(work: &Work<'_>, p: usize, taken_back: u32) -> Self {
        let (pool, count) = (&work.input.pools[p], work.counts[p]);
        let in_force = |d: &&Disruption| d.until.is_none_or(|until| until > work.input.now);
        let budgets = pool.disruption.iter().filter(in_force);
        Self {
            out: count.removing.saturating_sub(taken_back),
            quota: quota_of(pool.quota, count.nodes),
            budgets: budgets
                .map(|d| Budget {
                    most: quota_of(d.most, count.nodes),
                    strategies: d.strategies.clone(),
                    name: d.name.clone(),
                    until: d.until,
                })
                .collect(),
        }
    }

    /// What keeps a strategy from taking one more; none: it may.
    pub fn exhausted(&self, strategy: &str) -> Option<Reason> {
        let tightest = self
            .budgets
            .iter()
            .filter(|b| b.strategies.is_empty() || b.strategies.contains(strategy))
            .min_by_key(|b| b.most)
            .filter(|b| b.most < self.quota);
        match tightest {
            Some(b) if self.out >= b.most => Some(Reason::DisruptionBudget {
                name: b.name.clone(),
                most: b.most,
                until: b.until,
            }),
            None if self.out >= self.quota => Some(Reason::QuotaUsed { quota: self.quota }),
            _ => None,
        }
    }

    /// One more goes.
    pub fn take(&mut self) {
        self.out += 1;
    }
}
