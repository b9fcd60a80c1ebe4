//! How many calls go to AWS: a token bucket for each API, account and region, and counts of all of them.
//!
//! Made once by the coordinator's wiring; [`crate::Budgeted`] asks it before every call, and the SDK client before
//! every further page and repetition. It decides only when something is sent, never what.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::{Api, AwsError, Call, FailureKind, Region};

mod bucket;
mod clock;
mod deadline;
mod limits;
mod meter;
#[cfg(test)]
mod tests;

use bucket::Bucket;
pub use bucket::Limit;
pub use clock::{BudgetClock, TokioClock};
#[cfg(feature = "sdk")]
pub(crate) use deadline::has_passed as deadline_has_passed;
pub use deadline::within;
use limits::BucketName;
pub use limits::BudgetSettings;
use meter::ApiMeter;
pub use meter::{BucketFigures, CallFigures};

/// What a client asks for requests beyond the first of a call.
#[async_trait]
pub trait Toll: Send + Sync {
    /// Before one more request: a further page, a further part of a long list, or a repetition.
    ///
    /// # Errors
    /// Of the kind `Throttle` when no token comes in time: the request must not be sent.
    async fn again(&self, region: &Region, call: Call) -> Result<(), AwsError>;

    /// A request failed and is about to be repeated.
    fn repeats(&self, error: &AwsError);
}

struct State {
    settings: BudgetSettings,
    buckets: BTreeMap<(Region, BucketName), Bucket>,
    meter: ApiMeter,
}

/// The budget of all calls.
pub struct Budget {
    clock: Arc<dyn BudgetClock>,
    state: Mutex<State>,
}

impl Budget {
    /// Full buckets and no counts.
    pub fn new(settings: BudgetSettings, clock: Arc<dyn BudgetClock>) -> Self {
        Self {
            clock,
            state: Mutex::new(State {
                settings,
                buckets: BTreeMap::new(),
                meter: ApiMeter::default(),
            }),
        }
    }

    /// Other limits from now on; levels and counts stay.
    pub fn set(&self, settings: BudgetSettings) {
        let mut state = self.state();
        for ((_, name), bucket) in &mut state.buckets {
            bucket.relimit(settings.limit(*name));
        }
        state.settings = settings;
    }

    /// What was counted since the start, by region and call, and where the buckets stand.
    pub fn snapshot(&self) -> Vec<CallFigures> {
        let now = self.clock.now_ms();
        let state = &mut *self.state();
        let buckets = &mut state.buckets;
        state.meter.figures(now, |region, call| {
            let name = BucketName::of(call)?;
            let bucket = buckets.get_mut(&(region.clone(), name))?;
            Some(BucketFigures {
                name: name.to_string(),
                limit: bucket.limit(),
                milli_per_second_now: bucket.milli_per_second_now(now),
                left: bucket.left(now),
                assumed: name.is_assumed(),
            })
        })
    }

    /// Waits for a token and counts the request that is sent next.
    ///
    /// # Errors
    /// Of the kind `Throttle`, at once, when no token comes before the caller's deadline ([`within`]) or the longest
    /// wait of the settings: nothing may be sent then.
    pub(crate) async fn admit(&self, region: &Region, call: Call) -> Result<(), AwsError> {
        let Some(name) = BucketName::of(call) else {
            let now = self.clock.now_ms();
            self.state().meter.sent(region, call, 0, now);
            return Ok(());
        };
        let waited = {
            let now = self.clock.now_ms();
            let mut state = self.state();
            let longest = deadline::bounded(state.settings.longest_wait_ms(call));
            match state.bucket(region, name, now).take(now, longest) {
                Ok(wait) => wait,
                Err(wait) => {
                    state.meter.not_sent(region, call);
                    return Err(not_sent(region, call, name, wait, longest));
                }
            }
        };
        if waited > 0 {
            let mut taken = Taken {
                budget: self,
                region,
                name,
                used: false,
            };
            self.clock.wait_ms(waited).await;
            taken.used = true;
        }
        let now = self.clock.now_ms();
        self.state().meter.sent(region, call, waited, now);
        Ok(())
    }

    /// Counts how a call ended, and learns from it.
    pub(crate) fn ended(&self, error: &AwsError) {
        if error.was_held_back() {
            // Counted then.
            return;
        }
        let mut state = self.state();
        state.meter.failed(&error.region, error.call, error.kind);
        drop(state);
        if error.kind == FailureKind::Throttle {
            self.throttled(&error.region, error.call);
        }
    }

    /// AWS throttled a call.
    pub(crate) fn throttled(&self, region: &Region, call: Call) {
        let Some(name) = BucketName::of(call) else {
            return;
        };
        let now = self.clock.now_ms();
        let mut state = self.state();
        state.bucket(region, name, now).refused(now);
        // AWS does not say whether its reads and its changes share a bucket: reads make room.
        if name == BucketName::AutoScalingChanges {
            state
                .bucket(region, BucketName::AutoScalingReads, now)
                .refused(now);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn bucket(&mut self, region: &Region, name: BucketName, now_ms: u64) -> &mut Bucket {
        let limit = self.settings.limit(name);
        self.buckets
            .entry((region.clone(), name))
            .or_insert_with(|| Bucket::new(limit, now_ms))
    }
}

#[async_trait]
impl Toll for Budget {
    async fn again(&self, region: &Region, call: Call) -> Result<(), AwsError> {
        self.admit(region, call).await
    }

    fn repeats(&self, error: &AwsError) {
        self.ended(error);
        self.state().meter.repeated(&error.region, error.call);
    }
}

/// A token on which somebody waits: given back when the wait is given up.
struct Taken<'a> {
    budget: &'a Budget,
    region: &'a Region,
    name: BucketName,
    used: bool,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.used {
            let key = (self.region.clone(), self.name);
            if let Some(bucket) = self.budget.state().buckets.get_mut(&key) {
                bucket.put_back();
            }
        }
    }
}

fn not_sent(region: &Region, call: Call, name: BucketName, wait: u64, longest: u64) -> AwsError {
    let text = format!(
        "held back by Drover's own limit of calls ({name}): the next may go in {wait} ms, and this one can wait {longest} ms"
    );
    AwsError::held_back(call, region, text)
}

/// The APIs whose calls are counted and not limited.
const fn unlimited(api: Api) -> bool {
    matches!(api, Api::Sqs)
}
