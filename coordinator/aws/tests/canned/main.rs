//! The SDK client against AWS's own words: answers that moto and the fault proxy cannot give.

mod accounts;
mod server;
mod survey;
mod told;

use std::time::Duration;

use drover_aws::{Credentials, Region, SdkAws, SdkSettings};

use server::Canned;

const REGION: &str = "us-east-1";

fn here() -> Region {
    Region::from(REGION)
}

fn settings(url: &str) -> SdkSettings {
    let mut settings = SdkSettings::new(here());
    settings.endpoints.default = Some(url.to_owned());
    settings.credentials = Credentials::Fixed {
        key_id: "own".into(),
        secret: "y".into(),
    };
    settings.attempt_timeout = Duration::from_secs(20);
    settings
}

async fn set_up() -> (Canned, SdkAws) {
    let server = Canned::start().await;
    let aws = SdkAws::new(settings(server.url())).await;
    (server, aws)
}

/// A reply of the Query protocol.
fn reply(action: &str, result: &str) -> String {
    format!(
        "<{action}Response><{action}Result>{result}</{action}Result><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></{action}Response>"
    )
}
