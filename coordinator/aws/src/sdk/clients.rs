//! The SDK's clients of one region: their time-outs, their addresses and the role they assume.
//!
//! Made by `sdk` at the first call for a region. It sends nothing itself: a role is assumed at the first call.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::sts::AssumeRoleProvider;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_ec2::config::SharedCredentialsProvider;

use super::SdkSettings;
use crate::Region;

/// What CloudTrail shows for calls with an assumed role.
const SESSION_NAME: &str = "drover";

/// The clients of one region. None of them repeats anything.
pub(super) struct Clients {
    pub(super) autoscaling: aws_sdk_autoscaling::Client,
    pub(super) ec2: aws_sdk_ec2::Client,
    pub(super) sqs: aws_sdk_sqs::Client,
    pub(super) sts: aws_sdk_sts::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) quotas: aws_sdk_servicequotas::Client,
    /// How long one attempt may take.
    pub(super) attempt: Duration,
}

impl Clients {
    pub(super) async fn make(shared: &SdkConfig, settings: &SdkSettings, region: &Region) -> Self {
        let attempt = settings.attempt_timeout;
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(attempt)
            .operation_timeout(attempt)
            .build();
        let mut base = shared
            .to_builder()
            .region(aws_config::Region::new(region.as_str().to_owned()))
            .timeout_config(timeouts)
            .retry_config(RetryConfig::disabled());
        base.set_endpoint_url(settings.endpoints.of(region).map(str::to_owned));
        let mut config = base.build();
        if let Some(role) = region.role() {
            // With the shared credentials, in this region: another region's trouble with STS is not this one's.
            let assumed = AssumeRoleProvider::builder(role)
                .session_name(SESSION_NAME)
                .configure(&config)
                .build()
                .await;
            config = config
                .into_builder()
                .credentials_provider(SharedCredentialsProvider::new(assumed))
                .build();
        }
        Self {
            autoscaling: aws_sdk_autoscaling::Client::new(&config),
            ec2: aws_sdk_ec2::Client::new(&config),
            sqs: aws_sdk_sqs::Client::new(&config),
            sts: aws_sdk_sts::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
            quotas: aws_sdk_servicequotas::Client::new(&config),
            attempt,
        }
    }
}
