//! AWS within a budget: every call waits for its token, is counted, and what AWS refuses is learnt from.
//!
//! Put around [`crate::SdkAws`] by the coordinator's wiring, and around fakes by tests. It changes no answer, keeps
//! none, and repeats nothing.

use std::sync::Arc;

use crate::{AwsError, Budget, Call, Region};

mod api;
mod survey;
mod told;

/// `A` within a budget. Several may share one budget.
pub struct Budgeted<A> {
    inner: A,
    budget: Arc<Budget>,
}

impl<A> Budgeted<A> {
    /// Puts `inner` within `budget`.
    pub fn new(inner: A, budget: Arc<Budget>) -> Self {
        Self { inner, budget }
    }

    /// The budget, for its figures.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    #[cfg(test)]
    pub(crate) fn inner_for_test(&self) -> &A {
        &self.inner
    }

    /// Waits for a token, makes the call, counts how it ended.
    async fn pay<T>(
        &self,
        region: &Region,
        call: Call,
        work: impl Future<Output = Result<T, AwsError>> + Send,
    ) -> Result<T, AwsError> {
        self.budget.admit(region, call).await?;
        let done = work.await;
        if let Err(error) = &done {
            self.budget.ended(error);
        }
        done
    }
}
