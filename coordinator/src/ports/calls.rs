//! What was asked of a cloud's API, in numbers. Asked by `serve/admin` for `drover api-calls`; implemented by the `asg`
//! adapter over its budget. It only tells.

use std::collections::BTreeMap;

/// Counts of calls.
pub trait CallCounts: Send + Sync {
    /// All calls since the start, by region and call.
    fn calls(&self) -> Vec<CallCount>;
}

/// One call in one region and account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCount {
    /// Region, as AWS spells it.
    pub region: String,
    /// ARN of the role with which it is asked; absent: the coordinator's own credentials.
    pub role: Option<String>,
    /// The API's name, for instance `autoscaling`.
    pub api: String,
    /// The call, as AWS spells it.
    pub call: String,
    /// Requests that were sent: further pages and repetitions are requests too.
    pub sent: u64,
    /// Those that failed, by kind in words.
    pub failed: BTreeMap<String, u64>,
    /// Those that AWS throttled; among the failed as well.
    pub throttled: u64,
    /// Requests that were held back, because no token came in time.
    pub not_sent: u64,
    /// How long requests waited for a token, milliseconds, all together.
    pub waited_ms: u64,
    /// Requests that were sent because the one before failed.
    pub repetitions: u64,
    /// Requests of the last minute.
    pub last_minute: u64,
    /// Its bucket; absent where nothing is limited.
    pub bucket: Option<CallBucket>,
}

/// The token bucket of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBucket {
    /// Its name: calls with the same name in a region share it.
    pub name: String,
    /// Calls that may go at once when it is full.
    pub burst: u32,
    /// The refill, calls each minute.
    pub per_minute: u64,
    /// The refill now; less after AWS throttled.
    pub per_minute_now: u64,
    /// Calls that may go at once now.
    pub left: u32,
    /// Whether the limit comes from the config, because AWS publishes none.
    pub assumed: bool,
}
