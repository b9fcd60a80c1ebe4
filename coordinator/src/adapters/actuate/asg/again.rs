//! When and how often one call that asks for capacity is repeated.
//!
//! Called by `launch` and `desired`. Whether a repetition is safe is theirs to know: a token, or an absolute target.

use std::time::Duration;

use drover_aws::{AwsApi, AwsError, FailureKind as AwsKind};

use super::{AsgActuator, AsgPool};

/// How often one ask is repeated with the same token before its outcome counts as unknown.
pub(super) const ATTEMPTS: u32 = 4;
/// The pause before the first repetition.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

impl<A: AwsApi> AsgActuator<A> {
    /// Before the next repetition: longer each time.
    pub(super) async fn wait(&self, attempt: u32) {
        tokio::time::sleep(self.pause.saturating_mul(1 << attempt.min(4))).await;
    }
}

/// Whether the same call may go better in a moment.
pub(super) fn passes(error: &AwsError) -> bool {
    let kinds = [
        AwsKind::IdempotentInProgress,
        AwsKind::Contention,
        AwsKind::Transient,
        AwsKind::UnparsableReply,
    ];
    kinds.contains(&error.kind)
}

/// What a crash or a lost reply looks like, for fail points.
#[cfg_attr(
    not(feature = "failpoints"),
    expect(dead_code, reason = "only fail points lose replies")
)]
pub(super) fn lost(pool: &AsgPool, call: drover_aws::Call) -> AwsError {
    AwsError::unreported(
        call,
        &pool.region,
        AwsKind::Transient,
        "a fail point".to_owned(),
        true,
    )
}
