//! One call of a trait as the requests that it takes: pages, parts of a long list, and repetitions of what failed.
//!
//! Used by everything in `sdk` that sends. The first request was paid for by whoever made the call; each further one
//! is paid for here. The SDK itself repeats nothing, so that every request is counted.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use super::fault::{fault, incomplete};
use crate::budget::deadline_has_passed;
use crate::{AwsError, Call, FailureKind, Region, Toll};

/// Pause before the first repetition; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// A call that takes more requests than this is stopped: a list that does not end.
const MOST_REQUESTS: u32 = 1_000;

/// The requests of one call.
pub(super) struct Turn<'a> {
    pub(super) toll: Option<Arc<dyn Toll>>,
    pub(super) region: &'a Region,
    pub(super) call: Call,
    /// How often a request is tried in all.
    pub(super) attempts: u32,
    pub(super) sent: u32,
}

impl Turn<'_> {
    /// Sends a read; what may pass by itself is sent again.
    pub(super) async fn read<T, E, F>(&mut self, send: impl Fn() -> F) -> Result<T, AwsError>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    {
        let mut tries = 0;
        loop {
            match self.once(send()).await {
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    tries += 1;
                    let may_pass = matches!(
                        error.kind,
                        FailureKind::Transient
                            | FailureKind::UnparsableReply
                            | FailureKind::Throttle
                    );
                    if !may_pass || tries >= self.attempts || deadline_has_passed() {
                        return Err(error);
                    }
                    if let Some(toll) = &self.toll {
                        toll.repeats(&error);
                    }
                    tokio::time::sleep(pause(tries)).await;
                }
            }
        }
    }

    /// Sends once, whatever comes of it.
    pub(super) async fn once<T, E, F>(&mut self, request: F) -> Result<T, AwsError>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    {
        if self.sent >= MOST_REQUESTS {
            let text = format!("a list that does not end after {MOST_REQUESTS} requests");
            return Err(incomplete(self.call, self.region, text));
        }
        if let Some(toll) = self.toll.as_ref().filter(|_| self.sent > 0) {
            toll.again(self.region, self.call).await?;
        }
        self.sent += 1;
        request
            .await
            .map_err(|error| fault(self.call, self.region, error))
    }

    /// AWS's reply lacks what AWS promises.
    pub(super) fn lacks(&self, what: impl ToString) -> AwsError {
        incomplete(self.call, self.region, what.to_string())
    }
}

/// What leads to the next page; `None` after the last one. The same again would never end.
pub(super) fn next(after: Option<String>, before: Option<&String>) -> Option<String> {
    after.filter(|token| !token.is_empty() && Some(token) != before)
}

/// Does `$body` with each page of `$request`, as often as AWS names a next one.
macro_rules! each_page {
    ($turn:expr, $request:expr, $page:ident => $body:block) => {{
        let request = $request;
        let mut token: Option<String> = None;
        loop {
            let $page = $turn
                .read(|| request.clone().set_next_token(token.clone()).send())
                .await?;
            let after = $page.next_token.clone();
            $body
            token = crate::sdk::turn::next(after, token.as_ref());
            if token.is_none() {
                break;
            }
        }
    }};
}
pub(super) use each_page;

/// Between the half and the whole of the doubled pause.
fn pause(tries: u32) -> Duration {
    let whole = FIRST_PAUSE.saturating_mul(1_u32 << tries.saturating_sub(1).min(6));
    let half = whole / 2;
    let parts = u32::try_from(RandomState::new().hash_one(()) % 1_000).unwrap_or(0);
    half + half * parts / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_are_spread() {
        let mut seen = std::collections::BTreeSet::new();
        for tries in 1..=3 {
            let whole = FIRST_PAUSE * (1 << (tries - 1));
            for _ in 0..50 {
                let pause = pause(tries);
                assert!((whole / 2..=whole).contains(&pause), "{tries}: {pause:?}");
                seen.insert(pause);
            }
        }
        assert!(seen.len() > 20, "{seen:?}");
    }

    #[test]
    fn a_page_that_leads_to_itself_is_the_last() {
        let some = |t: &str| Some(t.to_owned());
        assert_eq!(next(some("b"), some("a").as_ref()), some("b"));
        assert_eq!(next(some("a"), some("a").as_ref()), None);
        assert_eq!(next(some(""), None), None);
        assert_eq!(next(None, some("a").as_ref()), None);
    }
}
