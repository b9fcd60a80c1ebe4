//! AWS for those who need it: one client for the whole process, made when it is first needed and kept over reloads.
//!
//! Called by `actuators`, `discovery` and `surveyor`. The one place that names the SDK.

use crate::config::{Config, PoolSource};
use drover_aws::{AwsApi, AwsEvents, AwsOffers, AwsSurvey, Budget, Region};
use std::sync::Arc;

/// AWS, by what is asked of it.
#[derive(Clone)]
pub(super) struct Cloud {
    /// Groups and their instances.
    pub(super) api: Arc<dyn AwsApi>,
    /// What is looked at beside them.
    pub(super) survey: Arc<dyn AwsSurvey>,
    /// Prices and zones.
    pub(super) offers: Arc<dyn AwsOffers>,
    /// What it tells by itself, and answers to hooks.
    pub(super) events: Arc<dyn AwsEvents>,
}

/// The client, and the endpoint that it was made for.
#[derive(Default)]
pub(super) struct Client(Option<(Option<String>, Cloud)>);

impl Client {
    /// AWS, where the config needs it and this program was built with it.
    pub(super) async fn of(&mut self, config: &Config, budget: &Arc<Budget>) -> Option<Cloud> {
        let home = home(config)?;
        let endpoint = &config.aws.endpoint;
        if let Some((made_for, cloud)) = &self.0
            && made_for == endpoint
        {
            return Some(cloud.clone());
        }
        let cloud = make(home, endpoint.clone(), budget).await?;
        self.0 = Some((endpoint.clone(), cloud.clone()));
        Some(cloud)
    }
}

/// The first region that the config names.
fn home(config: &Config) -> Option<Region> {
    let named = config.pools.iter().find_map(|pool| match &pool.source {
        PoolSource::Asg(group) => Some(&group.region),
        PoolSource::Static(_) | PoolSource::Sim(_) => None,
    });
    let looked = || config.aws.discover.first()?.regions.first();
    named
        .or_else(looked)
        .map(|region| Region::new(region.as_str()))
}

/// The client itself.
#[cfg(feature = "aws")]
pub(super) type Sdk = drover_aws::Budgeted<drover_aws::SdkAws>;

/// A client of its own, for who needs all of it.
#[cfg(feature = "aws")]
pub(super) async fn sdk(home: Region, endpoint: Option<String>, budget: &Arc<Budget>) -> Sdk {
    use drover_aws::{Budgeted, Endpoints, SdkAws, SdkSettings};
    let mut settings = SdkSettings::new(home);
    settings.endpoints = Endpoints {
        default: endpoint,
        ..Endpoints::default()
    };
    let sdk = SdkAws::new(settings).await.with_toll(budget.clone());
    Budgeted::new(sdk, budget.clone())
}

#[cfg(feature = "aws")]
async fn make(home: Region, endpoint: Option<String>, budget: &Arc<Budget>) -> Option<Cloud> {
    let aws = Arc::new(sdk(home, endpoint, budget).await);
    Some(Cloud {
        api: aws.clone(),
        survey: aws.clone(),
        offers: aws.clone(),
        events: aws,
    })
}

#[cfg(not(feature = "aws"))]
async fn make(_: Region, _: Option<String>, _: &Arc<Budget>) -> Option<Cloud> {
    None
}
