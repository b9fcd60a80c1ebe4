//! What was asked of AWS, from the very counters that `drover api-calls` shows. Written by `metrics`.

use super::Snapshot;
use super::family::{Family, Labels, Sheet, float, seconds};
use crate::ports::calls::{CallBucket, CallCount};
use std::collections::BTreeMap;
use std::fmt;

const SENT: Family = Family::counter(
    "aws_requests",
    "Requests sent to AWS, further pages and repetitions included",
);
const FAILED: Family = Family::counter(
    "aws_request_failures",
    "Requests to AWS that failed, by kind; they are among those sent",
);
const HELD_BACK: Family = Family::counter(
    "aws_requests_held_back",
    "Requests that were not sent, because the budget had no token in time",
);
const REPEATED: Family = Family::counter(
    "aws_request_repetitions",
    "Requests sent because the one before failed; they are among those sent",
);
const WAITED: Family = Family::counter(
    "aws_budget_wait",
    "Time that requests waited for a token of the budget",
)
.seconds();
const LEFT: Family = Family::gauge("aws_budget_tokens", "Requests that may go at once now");
const BURST: Family = Family::gauge(
    "aws_budget_burst_tokens",
    "Requests that may go at once when the bucket is full",
);
const REFILL: Family = Family::gauge(
    "aws_budget_tokens_per_second",
    "Refill of the bucket now; less than its limit after AWS throttled",
);
const LIMIT: Family = Family::gauge(
    "aws_budget_limit_tokens_per_second",
    "Refill of the bucket that the config and AWS's published limits allow",
);

pub(super) fn write(sheet: &mut Sheet<'_>, page: &Snapshot) -> fmt::Result {
    let calls = &page.calls;
    let each = |of: fn(&CallCount) -> u64| calls.iter().map(move |call| (labels(call), of(call)));
    sheet.counters(&SENT, each(|call| call.sent))?;
    let failed = calls.iter().flat_map(|call| {
        let [region, role, api, name] = labels(call);
        let kinds = call.failed.iter();
        kinds.map(move |(kind, count)| {
            let reason = ("reason", kind.as_str());
            ([region, role, api, name, reason], *count)
        })
    });
    sheet.counters(&FAILED, failed)?;
    sheet.counters(&HELD_BACK, each(|call| call.not_sent))?;
    sheet.counters(&REPEATED, each(|call| call.repetitions))?;
    let waited = calls
        .iter()
        .map(|call| (labels(call), seconds(call.waited_ms)));
    sheet.counters(&WAITED, waited)?;
    buckets(sheet, calls)
}

/// Calls share buckets: each bucket once.
fn buckets(sheet: &mut Sheet<'_>, calls: &[CallCount]) -> fmt::Result {
    let mut found: BTreeMap<(&str, &str, &str), &CallBucket> = BTreeMap::new();
    for call in calls {
        if let Some(bucket) = &call.bucket {
            found.insert((&call.region, role(call), &bucket.name), bucket);
        }
    }
    let each = |of: fn(&CallBucket) -> f64| {
        let all = found.iter();
        all.map(move |((region, role, name), bucket)| {
            let labels = [("region", *region), ("role", *role), ("bucket", *name)];
            (labels, of(bucket))
        })
    };
    sheet.gauges(&LEFT, each(|bucket| float(u64::from(bucket.left))))?;
    sheet.gauges(&BURST, each(|bucket| float(u64::from(bucket.burst))))?;
    sheet.gauges(&REFILL, each(|bucket| float(bucket.per_minute_now) / 60.0))?;
    sheet.gauges(&LIMIT, each(|bucket| float(bucket.per_minute) / 60.0))
}

fn labels(call: &CallCount) -> Labels<'_, 4> {
    [
        ("region", &call.region),
        ("role", role(call)),
        ("api", &call.api),
        ("call", &call.call),
    ]
}

/// Empty: the coordinator's own credentials.
fn role(call: &CallCount) -> &str {
    call.role.as_deref().unwrap_or_default()
}
