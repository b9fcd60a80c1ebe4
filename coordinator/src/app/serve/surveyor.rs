//! Who judges groups: AWS as the config names it, made when somebody first asks. A coordinator without a pool of AWS asks
//! AWS nothing until then.

use super::actuators::Kept;
use crate::config::Config;
use crate::ports::store::Store;
use crate::ports::survey::GroupSurvey;
use anyhow::Result;
use std::sync::Arc;

#[cfg(feature = "aws")]
mod lazy {
    use crate::adapters::actuate::asg::{Doctor, Owner};
    use crate::app::serve::aws::{self, Sdk};
    use crate::ports::survey::{GroupRef, GroupSurvey, MendError, Survey, SurveyAsk};
    use async_trait::async_trait;
    use drover_aws::{Budget, Region};
    use std::sync::Arc;
    use tokio::sync::OnceCell;

    /// A doctor from its first patient on.
    pub(super) struct Lazy {
        pub(super) endpoint: Option<String>,
        pub(super) owner: Owner,
        /// Shared with all other calls of this coordinator.
        pub(super) budget: Arc<Budget>,
        pub(super) made: OnceCell<Doctor<Sdk>>,
    }

    impl Lazy {
        async fn doctor(&self, of: &GroupRef) -> &Doctor<Sdk> {
            let make = async || {
                let home = Region::new(of.region.clone());
                let api = aws::sdk(home, self.endpoint.clone(), &self.budget).await;
                Doctor::new(api, self.owner.clone())
            };
            self.made.get_or_init(make).await
        }
    }

    #[async_trait]
    impl GroupSurvey for Lazy {
        async fn survey(&self, of: &GroupRef, ask: &SurveyAsk) -> Survey {
            self.doctor(of).await.survey(of, ask).await
        }

        async fn mend(&self, of: &GroupRef) -> Result<Vec<String>, MendError> {
            self.doctor(of).await.mend(of).await
        }
    }
}

/// Nobody in a build without the feature `aws`.
///
/// # Errors
/// The store's id cannot be an owner.
#[cfg(feature = "aws")]
pub(super) fn surveyor(
    config: &Config,
    store: &dyn Store,
    kept: &Kept,
) -> Result<Option<Arc<dyn GroupSurvey>>> {
    let owner = crate::adapters::actuate::asg::Owner::new(store.store_id(), store.fence().0)?;
    Ok(Some(Arc::new(lazy::Lazy {
        endpoint: config.aws.endpoint.clone(),
        owner,
        budget: kept.budget(),
        made: tokio::sync::OnceCell::new(),
    })))
}

/// Nobody in a build without the feature `aws`.
///
/// # Errors
/// None.
#[cfg(not(feature = "aws"))]
pub(super) fn surveyor(
    _: &Config,
    _: &dyn Store,
    _: &Kept,
) -> Result<Option<Arc<dyn GroupSurvey>>> {
    Ok(None)
}
