//! The SDK's clients of one region: their time-outs, their retries, their addresses and the role they assume.
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

/// The clients of one region.
pub(super) struct Clients {
    /// Never retries.
    pub(super) mutate: aws_sdk_autoscaling::Client,
    /// May retry.
    pub(super) read: aws_sdk_autoscaling::Client,
    /// May retry; nothing is changed through EC2.
    pub(super) ec2: aws_sdk_ec2::Client,
    /// May retry: to receive or to delete twice does no harm.
    pub(super) sqs: aws_sdk_sqs::Client,
    /// May retry.
    pub(super) sts: aws_sdk_sts::Client,
    /// May retry; only asked what is permitted.
    pub(super) iam: aws_sdk_iam::Client,
    /// May retry.
    pub(super) quotas: aws_sdk_servicequotas::Client,
    /// How long one attempt may take.
    pub(super) attempt: Duration,
}

impl Clients {
    pub(super) async fn make(shared: &SdkConfig, settings: &SdkSettings, region: &Region) -> Self {
        let attempt = settings.attempt_timeout;
        let often = TimeoutConfig::builder()
            .connect_timeout(attempt)
            .operation_attempt_timeout(attempt)
            .build();
        let once = TimeoutConfig::builder()
            .connect_timeout(attempt)
            .operation_timeout(attempt)
            .build();
        let mut base = shared
            .to_builder()
            .region(aws_config::Region::new(region.as_str().to_owned()))
            .timeout_config(often)
            .retry_config(RetryConfig::standard().with_max_attempts(settings.read_attempts.max(1)));
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
        let mutate = aws_sdk_autoscaling::config::Builder::from(&config)
            .timeout_config(once)
            .retry_config(RetryConfig::disabled());
        Self {
            mutate: aws_sdk_autoscaling::Client::from_conf(mutate.build()),
            read: aws_sdk_autoscaling::Client::new(&config),
            ec2: aws_sdk_ec2::Client::new(&config),
            sqs: aws_sdk_sqs::Client::new(&config),
            sts: aws_sdk_sts::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
            quotas: aws_sdk_servicequotas::Client::new(&config),
            attempt,
        }
    }
}
