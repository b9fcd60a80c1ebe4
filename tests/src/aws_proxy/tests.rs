//! The proxy against a real moto.

use super::*;
use crate::moto::{Moto, NewGroup};

mod answers;

const EAST: &str = "us-east-1";

async fn proxy(scenario: Scenario) -> AwsProxy {
    AwsProxy::start(Moto::shared().await.url(), scenario)
        .await
        .expect("a proxy")
}

/// A group of one zone, and a proxy in front of it.
async fn field(name: &str, scenario: Scenario) -> AwsProxy {
    field_of(NewGroup::new(name, "g5.xlarge", &["us-east-1a"]), scenario).await
}

async fn field_of(group: NewGroup, scenario: Scenario) -> AwsProxy {
    Moto::shared().await.create_group(EAST, &group).await;
    proxy(scenario).await
}

fn tree(text: &str) -> xml::Element {
    xml::Element::parse(text).expect("an XML answer")
}

/// All texts of the elements of that name, at any depth.
fn texts(text: &str, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    tree(text).each_mut(name, &mut |e| found.push(e.text.clone()));
    found
}
