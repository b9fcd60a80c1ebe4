//! What holds for a pool whatever drives it and wherever it came from.
//!
//! Called for `[[pool]]` and for `[[aws.discover]]`, so that both know the same keys.

use super::{Origin, PoolConfig, PoolSource, taint};
use crate::config::disruption::{self, DisruptionBudget};
use crate::config::notices::{self, NoticePolicy};
use crate::config::values::Amounts as _;
use crate::config::{DAY, SECOND, millis, values};
use drover_config::{Section, any_text};
use drover_core::model::{MicroUsd, Millis, Mode, PoolId, Quota, SiteId};
use std::collections::BTreeMap;
use std::time::Duration;

/// See [`PoolConfig`] for the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of PoolConfig")]
pub struct PoolTerms {
    pub mode: Mode,
    pub min: u32,
    pub spare: u32,
    pub idle_after: Millis,
    pub anticipate: bool,
    pub idle_gpu_below: Option<u32>,
    pub expire_after: Option<Millis>,
    pub provision_deadline: Option<Millis>,
    pub quota: Quota,
    pub disruption: Vec<DisruptionBudget>,
    pub grace: Millis,
    pub notices: NoticePolicy,
    pub labels: BTreeMap<String, String>,
    pub taints: BTreeMap<String, String>,
    pub prices: BTreeMap<String, MicroUsd>,
}

impl PoolTerms {
    /// A pool under these terms.
    #[must_use]
    pub fn pool(
        self,
        name: PoolId,
        site: SiteId,
        max: u32,
        origin: Origin,
        source: PoolSource,
    ) -> PoolConfig {
        PoolConfig {
            name,
            site,
            origin,
            mode: self.mode,
            min: self.min,
            max,
            spare: self.spare,
            idle_after: self.idle_after,
            anticipate: self.anticipate,
            idle_gpu_below: self.idle_gpu_below,
            expire_after: self.expire_after,
            provision_deadline: self.provision_deadline,
            quota: self.quota,
            disruption: self.disruption,
            grace: self.grace,
            notices: self.notices,
            labels: self.labels,
            taints: self.taints,
            prices: self.prices,
            source,
        }
    }
}

/// Reads every key of them. `max` only bounds `spare`.
pub(in crate::config) fn terms(section: &Section<'_>, min: u32, max: Option<u32>) -> PoolTerms {
    let modes = [
        ("observe", Mode::Observe),
        ("grow", Mode::Grow),
        ("full", Mode::Full),
    ];
    let span = |key: &'static str, least: Duration, or: Millis, example: &str| {
        section
            .duration(key, least..=DAY * 30, example)
            .map_or(or, millis)
    };
    let texts = "write { key = \"value\" }";
    let mode = section.choice("mode", &modes);
    let spare = section.count("spare", 0..=100_000);
    if let (Some(at), Some(max)) = (&spare, max.filter(|max| *max > 0))
        && at.value > max
    {
        let message = format!("is {}, above max {max}", at.value);
        section.report(at.offset, "spare", &message, "set spare to at most max");
    }
    let idle_after = span("idle_after", Duration::ZERO, Millis::minutes(10), "10m");
    let anticipate = section.flag("anticipate");
    let provision_deadline = section
        .duration("provision_deadline", SECOND..=DAY * 30, "15m")
        .map(millis);
    let idle_gpu_below = section.parsed("idle_gpu_below", "5%", |text| {
        let percent = values::percent(text)?;
        if percent == 0 {
            return Err(format!("{text:?} is never undershot"));
        }
        Ok(percent)
    });
    let expire_after = section
        .duration("expire_after", SECOND * 60..=DAY * 366, "30d")
        .map(millis);
    let quota = section.quota("removal_quota");
    let disruption = disruption::read(section.sections("disruption"));
    let grace = span("grace", Duration::ZERO, Millis::seconds(30), "30s");
    let notices = notices::read(&section.section("notices"));
    let labels = section.map("labels", texts, any_text);
    let taints = section.map("taints", taint::FIX, taint::read);
    let prices = section.map("prices", "write { \"p2.16xlarge\" = 14.4 }", values::usd);
    PoolTerms {
        mode: mode.map_or(Mode::Observe, |at| at.value),
        min,
        spare: spare.map_or(0, |at| at.value),
        idle_after,
        anticipate: anticipate.unwrap_or(false),
        idle_gpu_below,
        expire_after,
        provision_deadline,
        quota: quota.unwrap_or(Quota::Percent(10)),
        disruption,
        grace,
        notices,
        labels,
        taints: taints
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect(),
        prices: prices
            .into_iter()
            .map(|(kind, price)| (kind, MicroUsd(price)))
            .collect(),
    }
}
