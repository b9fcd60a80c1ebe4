//! The fault proxy as a program: `aws-proxy --moto URL [--listen ADDRESS] [--scenario FILE]`.
//!
//! Used by hand and by tests that run the coordinator as a process. It prints its address and serves until it
//! is ended.

use anyhow::{Context as _, bail};
use drover_tests::aws_proxy::{AwsProxy, Scenario};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (mut moto, mut listen, mut scenario) =
        (None, "127.0.0.1:0".to_owned(), Scenario::default());
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        let value = args
            .next()
            .with_context(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--moto" => moto = Some(value),
            "--listen" => listen = value,
            "--scenario" => {
                let text = std::fs::read_to_string(&value)
                    .with_context(|| format!("cannot read {value}"))?;
                scenario = serde_json::from_str(&text)
                    .with_context(|| format!("{value} is no scenario"))?;
            }
            _ => bail!(
                "unknown option {flag}; there are --moto URL, --listen ADDRESS, --scenario FILE"
            ),
        }
    }
    let moto = moto.context("--moto URL is missing: where does moto_server serve?")?;
    let proxy = AwsProxy::start_on(&listen, &moto, scenario)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    println!("{}", proxy.url());
    proxy.wait().await;
    Ok(())
}
