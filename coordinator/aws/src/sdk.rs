//! [`AwsApi`] over the AWS SDK: clients per region, time-outs, and no retry of what changes something.
//!
//! Made by the coordinator's wiring and by the tests. It translates and bounds; it keeps no cache, counts no
//! tokens and decides nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_sdk_ec2::config::{Credentials as SdkCredentials, SharedCredentialsProvider};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use tokio::sync::OnceCell;

use crate::{
    Activities, AwsApi, AwsError, Call, Group, GroupName, Instance, InstanceId, InstanceTypeFacts,
    LaunchAsk, LaunchReply, Region, TemplateFacts, TemplateRef, Toll,
};

mod clients;
mod convert;
mod convert_ec2;
mod convert_group;
mod convert_survey;
mod events;
mod fault;
mod mend;
mod mutate;
mod offers;
mod read;
mod survey;
mod turn;

use clients::Clients;
use turn::Turn;

/// Where the calls go instead of AWS's own addresses: one address for all services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// For every region without an entry of its own.
    pub default: Option<String>,
    /// For single regions; one without a role counts for the region's roles as well.
    pub by_region: BTreeMap<Region, String>,
}

impl Endpoints {
    /// The address for `region`; `None` for AWS's own.
    fn of(&self, region: &Region) -> Option<&str> {
        self.by_region
            .get(region)
            .or_else(|| self.by_region.get(&Region::new(region.as_str())))
            .or(self.default.as_ref())
            .map(String::as_str)
    }
}

/// Where credentials come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// The SDK's default chain: environment, profile, web identity, container, instance metadata.
    #[default]
    DefaultChain,
    /// One fixed pair, for endpoints that check nothing.
    Fixed {
        /// Access key id.
        key_id: String,
        /// Secret access key.
        secret: String,
    },
}

/// How the client is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SdkSettings {
    /// Overridden addresses.
    pub endpoints: Endpoints,
    /// Credentials.
    pub credentials: Credentials,
    /// For the default chain's own calls (STS), and to ask whether another region exists.
    pub home_region: Region,
    /// How long one attempt may take. A mutation has one attempt.
    pub attempt_timeout: Duration,
    /// How often a read is tried in all.
    pub read_attempts: u32,
}

impl SdkSettings {
    /// The design's figures: 5 s an attempt, reads tried up to three times.
    pub fn new(home_region: Region) -> Self {
        Self {
            endpoints: Endpoints::default(),
            credentials: Credentials::DefaultChain,
            home_region,
            attempt_timeout: Duration::from_secs(5),
            read_attempts: 3,
        }
    }
}

/// AWS through its SDK.
pub struct SdkAws {
    shared: SdkConfig,
    settings: SdkSettings,
    toll: Option<Arc<dyn Toll>>,
    regions: Mutex<BTreeMap<Region, Arc<OnceCell<Arc<Clients>>>>>,
}

impl SdkAws {
    /// Prepares the shared parts. Asks nothing of AWS yet: wrong credentials show at the first call.
    pub async fn new(settings: SdkSettings) -> Self {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let mut loader = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http)
            .region(aws_config::Region::new(
                settings.home_region.as_str().to_owned(),
            ));
        if let Credentials::Fixed { key_id, secret } = &settings.credentials {
            let fixed = SdkCredentials::new(key_id, secret, None, None, "drover fixed");
            loader = loader.credentials_provider(SharedCredentialsProvider::new(fixed));
        }
        Self {
            shared: loader.load().await,
            settings,
            toll: None,
            regions: Mutex::new(BTreeMap::new()),
        }
    }

    /// Asks `toll` before every request but the first of each call; the first is paid for by [`crate::Budgeted`].
    #[must_use]
    pub fn with_toll(mut self, toll: Arc<dyn Toll>) -> Self {
        self.toll = Some(toll);
        self
    }

    /// The requests of one call.
    fn turn<'a>(&self, region: &'a Region, call: Call) -> Turn<'a> {
        Turn {
            toll: self.toll.clone(),
            region,
            call,
            attempts: self.settings.read_attempts.max(1),
            sent: 0,
        }
    }

    /// The clients of `region`, made at first use.
    async fn clients(&self, region: &Region) -> Arc<Clients> {
        let cell = {
            let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
            regions.entry(region.clone()).or_default().clone()
        };
        let made = cell.get_or_init(async || {
            Arc::new(Clients::make(&self.shared, &self.settings, region).await)
        });
        made.await.clone()
    }
}

#[async_trait]
impl AwsApi for SdkAws {
    async fn describe_groups(
        &self,
        region: &Region,
        names: &[GroupName],
    ) -> Result<BTreeMap<GroupName, Group>, AwsError> {
        read::groups(self, region, names).await
    }

    async fn describe_activities(
        &self,
        region: &Region,
        group: &GroupName,
        since_unix_ms: i64,
    ) -> Result<Activities, AwsError> {
        read::activities(self, region, group, since_unix_ms).await
    }

    async fn launch_instances(
        &self,
        region: &Region,
        ask: &LaunchAsk,
    ) -> Result<LaunchReply, AwsError> {
        mutate::launch(self, region, ask).await
    }

    async fn set_desired_capacity(
        &self,
        region: &Region,
        group: &GroupName,
        desired: u32,
    ) -> Result<(), AwsError> {
        mutate::desired(self, region, group, desired).await
    }

    async fn terminate_with_decrement(
        &self,
        region: &Region,
        instance: &InstanceId,
    ) -> Result<(), AwsError> {
        mutate::terminate(self, region, instance).await
    }

    async fn protect_from_scale_in(
        &self,
        region: &Region,
        group: &GroupName,
        instances: &[InstanceId],
    ) -> Result<(), AwsError> {
        mutate::protect(self, region, group, instances).await
    }

    async fn suspend_launch(&self, region: &Region, group: &GroupName) -> Result<(), AwsError> {
        mutate::suspend(self, region, group).await
    }

    async fn resume_launch(&self, region: &Region, group: &GroupName) -> Result<(), AwsError> {
        mutate::resume(self, region, group).await
    }

    async fn tag_group(
        &self,
        region: &Region,
        group: &GroupName,
        key: &str,
        value: &str,
    ) -> Result<(), AwsError> {
        mutate::tag(self, region, group, key, value).await
    }

    async fn describe_instances(
        &self,
        region: &Region,
        instances: &[InstanceId],
    ) -> Result<BTreeMap<InstanceId, Instance>, AwsError> {
        read::instances(self, region, instances).await
    }

    async fn describe_instance_types(
        &self,
        region: &Region,
        types: &[String],
    ) -> Result<BTreeMap<String, InstanceTypeFacts>, AwsError> {
        read::instance_types(self, region, types).await
    }

    async fn describe_template(
        &self,
        region: &Region,
        template: &TemplateRef,
    ) -> Result<Option<TemplateFacts>, AwsError> {
        read::template(self, region, template).await
    }
}
