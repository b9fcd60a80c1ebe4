//! What a simulated cloud is made of, as read from TOML.

use super::trouble::{ApiSpec, TroubleSpec};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A cloud.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldSpec {
    /// Its groups.
    #[serde(default, rename = "group")]
    pub groups: Vec<GroupSpec>,
}

/// A group of like instances in one region.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Unique name.
    pub name: String,
    /// Region.
    pub region: String,
    /// Most instances.
    pub max: u32,
    /// Owner tag; empty: not managed by anybody.
    #[serde(default = "owned")]
    pub owner: String,
    /// Values for `{var.NAME}` in what its instances are started with.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// Trouble of its API.
    #[serde(default)]
    pub api: ApiSpec,
    /// What can be launched.
    #[serde(rename = "offering")]
    pub offerings: Vec<OfferingSpec>,
}

fn owned() -> String {
    "drover".to_owned()
}

/// How an instance is paid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarketSpec {
    /// On demand.
    #[default]
    OnDemand,
    /// Spot.
    Spot,
}

impl MarketSpec {
    /// `on-demand` or `spot`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Spot => "spot",
        }
    }
}

/// One type in one zone and market.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferingSpec {
    /// EC2 type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Market.
    #[serde(default)]
    pub market: MarketSpec,
    /// Price in millionths of a USD per hour.
    pub price_micro_usd_per_hour: u64,
    /// GPUs.
    #[serde(default)]
    pub gpus: u32,
    /// Their model.
    #[serde(default)]
    pub gpu_model: String,
    /// Logical CPUs.
    pub cpus: u32,
    /// Memory, GiB.
    pub memory_gib: u32,
    /// Milliseconds from launch to running.
    pub boot_ms: u64,
    /// At most so much is added, drawn from the seed.
    #[serde(default)]
    pub boot_jitter_ms: u64,
    /// Instances that can exist at once before the zone is short; absent: no end.
    #[serde(default)]
    pub capacity: Option<u32>,
    /// Times of shortage.
    #[serde(default, rename = "shortage")]
    pub shortages: Vec<WindowSpec>,
    /// What goes wrong by chance.
    #[serde(default)]
    pub trouble: TroubleSpec,
}

impl OfferingSpec {
    /// Logical CPUs in thousandths.
    #[must_use]
    pub fn milli_cpus(&self) -> u64 {
        u64::from(self.cpus) * 1_000
    }

    /// Memory in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.memory_gib) << 30
    }
}

/// A window, in milliseconds since the cloud began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// From then on.
    pub from_ms: u64,
    /// Before this.
    pub until_ms: u64,
}

/// What is wrong with a spec: the field and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SpecError {
    /// Path of the field.
    pub field: String,
    /// What is wrong and how it is mended.
    pub problem: String,
}

impl WorldSpec {
    /// Every error there is; empty when the spec is sound.
    #[must_use]
    pub fn errors(&self) -> Vec<SpecError> {
        let mut errors = Vec::new();
        let mut names = BTreeSet::new();
        let mut say = |field: String, problem: &str| {
            errors.push(SpecError {
                field,
                problem: problem.to_owned(),
            })
        };
        for (g, group) in self.groups.iter().enumerate() {
            if group.name.is_empty() {
                say(
                    format!("group[{g}].name"),
                    "is empty: give the group a name",
                );
            }
            if !names.insert(&group.name) {
                say(
                    format!("group[{g}].name"),
                    "is used twice: rename one of the groups",
                );
            }
            if group.offerings.is_empty() {
                say(
                    format!("group[{g}].offering"),
                    "is missing: a group needs at least one offering",
                );
            }
            for (list, windows) in [
                ("away", &group.api.away),
                ("throttled", &group.api.throttled),
            ] {
                for (w, window) in windows.iter().enumerate() {
                    if window.until_ms <= window.from_ms {
                        say(
                            format!("group[{g}].api.{list}[{w}].until_ms"),
                            "is not after from_ms: swap them",
                        );
                    }
                }
            }
            let mut seen = BTreeSet::new();
            for (o, offering) in group.offerings.iter().enumerate() {
                let at = format!("group[{g}].offering[{o}]");
                if !seen.insert((&offering.instance_type, &offering.zone, offering.market)) {
                    say(
                        at.clone(),
                        "repeats type, zone and market of another offering: merge them",
                    );
                }
                if offering.cpus == 0 {
                    say(
                        format!("{at}.cpus"),
                        "is 0: an instance has at least one CPU",
                    );
                }
                if offering.gpus > 0 && offering.gpu_model.is_empty() {
                    say(
                        format!("{at}.gpu_model"),
                        "is empty although gpus is not 0: name the model",
                    );
                }
                let trouble = &offering.trouble;
                for (key, percent) in [
                    ("late_percent", trouble.late_percent),
                    ("never_joins_percent", trouble.never_joins_percent),
                    ("shortage_percent", trouble.shortage_percent),
                    ("partial_percent", trouble.partial_percent),
                ] {
                    if percent > 100 {
                        say(
                            format!("{at}.trouble.{key}"),
                            "is above 100: write a share of 100",
                        );
                    }
                }
                if trouble.interruption_ms.is_some() && offering.market != MarketSpec::Spot {
                    say(
                        format!("{at}.trouble.interruption_ms"),
                        "is set although only spot instances are taken back: write market = \"spot\"",
                    );
                }
                for (list, windows) in [
                    ("shortage", &offering.shortages),
                    ("trouble.bad_image", &trouble.bad_image),
                ] {
                    for (w, window) in windows.iter().enumerate() {
                        if window.until_ms <= window.from_ms {
                            say(
                                format!("{at}.{list}[{w}].until_ms"),
                                "is not after from_ms: swap them",
                            );
                        }
                    }
                }
            }
        }
        errors
    }
}
