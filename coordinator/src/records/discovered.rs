//! Groups that discovery found, one record per region and account: after a restart their pools are there before AWS
//! answers, so that what was asked of them still counts.

use serde::{Deserialize, Serialize};

/// Key `/discovered/REGION`, or `/discovered/REGION ROLE` where a role is assumed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveredRecord {
    /// Region.
    pub region: String,
    /// ARN of the role that is assumed there.
    pub role_arn: Option<String>,
    /// Its groups with the ownership tag.
    pub groups: Vec<DiscoveredGroup>,
}

/// A group with the ownership tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveredGroup {
    /// Its name.
    pub group: String,
    /// What its tag calls the pool.
    pub pool: Option<String>,
    /// Its own maximum.
    pub max: u32,
}
