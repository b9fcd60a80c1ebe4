//! Counts of calls to a cloud's API, to the wire. Used by `serve/admin`.

use crate::ports::calls::{CallBucket, CallCount};
use drover_proto::v1;

/// A count.
#[must_use]
pub fn calls(count: CallCount) -> v1::ApiCalls {
    let failed = count.failed.into_iter();
    v1::ApiCalls {
        region: count.region,
        role: count.role.unwrap_or_default(),
        api: count.api,
        call: count.call,
        sent: count.sent,
        failed: failed
            .map(|(kind, count)| v1::FailedApiCalls { kind, count })
            .collect(),
        throttled: count.throttled,
        not_sent: count.not_sent,
        waited_ms: count.waited_ms,
        repetitions: count.repetitions,
        last_minute: count.last_minute,
        bucket: count.bucket.map(bucket),
    }
}

fn bucket(bucket: CallBucket) -> v1::ApiBucket {
    v1::ApiBucket {
        name: bucket.name,
        burst: bucket.burst,
        per_minute: bucket.per_minute,
        per_minute_now: bucket.per_minute_now,
        left: bucket.left,
        assumed: bucket.assumed,
    }
}
