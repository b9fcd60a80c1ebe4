//! The fault proxy as a program: `aws-proxy --moto URL [--listen ADDRESS] [--scenario FILE] [--metadata ADDRESS]
//! [--metadata-type TYPE]`.
//!
//! Used by hand and by tests that run the coordinator as a process. It prints its address (and that of the metadata
//! service, where one is asked for) and serves until it is ended.

use anyhow::{Context as _, bail};
use drover_tests::aws_proxy::{AwsProxy, Scenario};
use drover_tests::imds::Metadata;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (mut moto, mut listen, mut scenario) =
        (None, "127.0.0.1:0".to_owned(), Scenario::default());
    let (mut metadata, mut metadata_type) = (None, "g5.xlarge".to_owned());
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args
            .next()
            .with_context(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--moto" => moto = Some(value),
            "--listen" => listen = value,
            "--metadata" => metadata = Some(value),
            "--metadata-type" => metadata_type = value,
            "--scenario" => {
                let text = std::fs::read_to_string(&value)
                    .with_context(|| format!("cannot read {value}"))?;
                scenario = serde_json::from_str(&text)
                    .with_context(|| format!("{value} is no scenario"))?;
            }
            _ => bail!(
                "unknown option {flag}; there are --moto URL, --listen ADDRESS, --scenario FILE, --metadata ADDRESS, \
                 --metadata-type TYPE"
            ),
        }
    }
    let moto = moto.context("--moto URL is missing: where does moto_server serve?")?;
    let proxy = AwsProxy::start_on(&listen, &moto, scenario)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    println!("{}", proxy.url());
    let service = match metadata {
        Some(address) => Some(
            Metadata::start_on(&address, &metadata_type)
                .await
                .with_context(|| format!("cannot listen on {address}"))?,
        ),
        None => None,
    };
    if let Some(service) = &service {
        println!("http://{}", service.address());
    }
    proxy.wait().await;
    Ok(())
}
