//! The proxy against a real moto.

use super::*;
use crate::moto::{Moto, NewGroup};
use crate::wait;
use serde_json::{Value, json};
use std::time::Duration;

mod acts;
mod answers;
mod growth;
mod hooks;
mod warm;

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

const SOON: Duration = Duration::from_secs(30);

fn from(scenario: Value) -> Scenario {
    serde_json::from_value(scenario).expect("a scenario")
}

impl AwsProxy {
    async fn asg(&self, action: &str, form: &[(&str, &str)]) -> Result<String, String> {
        self.call(EAST, Service::AutoScaling, action, form).await
    }

    /// LaunchInstances: ids and error codes.
    async fn launch(&self, group: &str, count: u32, token: &str) -> (Vec<String>, Vec<String>) {
        let count = count.to_string();
        let form = [
            ("AutoScalingGroupName", group),
            ("RequestedCapacity", count.as_str()),
            ("AvailabilityZones.member.1", "us-east-1a"),
            ("ClientToken", token),
        ];
        let text = self.asg("LaunchInstances", &form).await.expect("answers");
        let mut ids = Vec::new();
        tree(&text).each_mut("InstanceIds", &mut |e| {
            ids.extend(e.children.iter().map(|c| c.text.clone()));
        });
        (ids, texts(&text, "ErrorCode"))
    }

    async fn set_desired(&self, group: &str, desired: u32) -> Result<String, String> {
        let desired = desired.to_string();
        let form = [
            ("AutoScalingGroupName", group),
            ("DesiredCapacity", desired.as_str()),
        ];
        self.asg("SetDesiredCapacity", &form).await
    }

    async fn terminate(&self, id: &str, decrement: bool) -> Result<String, String> {
        let decrement = decrement.to_string();
        let form = [
            ("InstanceId", id),
            ("ShouldDecrementDesiredCapacity", decrement.as_str()),
        ];
        self.asg("TerminateInstanceInAutoScalingGroup", &form).await
    }

    async fn group(&self, group: &str) -> Option<xml::Element> {
        let form = [("AutoScalingGroupNames.member.1", group)];
        let text = self.asg("DescribeAutoScalingGroups", &form).await;
        let tree = tree(&text.expect("answers"));
        let result = tree.child("DescribeAutoScalingGroupsResult")?;
        result.child("AutoScalingGroups")?.children.first().cloned()
    }

    /// Members of a group: id, state, zone.
    async fn members(&self, group: &str) -> Vec<(String, String, String)> {
        let group = self.group(group).await.expect("is there");
        let list = group.child("Instances").expect("a list");
        let text = |m: &xml::Element, key: &str| m.text_of(key).to_owned();
        list.children
            .iter()
            .map(|m| {
                let zone = text(m, "AvailabilityZone");
                (text(m, "InstanceId"), text(m, "LifecycleState"), zone)
            })
            .collect()
    }

    async fn state_of(&self, group: &str, id: &str) -> Option<String> {
        let members = self.members(group).await;
        members.into_iter().find(|(i, _, _)| i == id).map(|m| m.1)
    }

    async fn desired(&self, group: &str) -> String {
        let group = self.group(group).await.expect("is there");
        group.text_of("DesiredCapacity").to_owned()
    }

    /// EC2's word for an instance.
    async fn in_ec2(&self, id: &str) -> String {
        let form = [("InstanceId.1", id)];
        let text = self.call(EAST, Service::Ec2, "DescribeInstances", &form);
        let text = text.await.expect("answers");
        let mut name = String::new();
        tree(&text).each_mut("instanceState", &mut |s| {
            s.text_of("name").clone_into(&mut name)
        });
        name
    }

    /// Activities, newest first: status, description, message.
    async fn activities(&self, group: &str) -> Vec<(String, String, String)> {
        let form = [("AutoScalingGroupName", group), ("MaxRecords", "100")];
        let text = self.asg("DescribeScalingActivities", &form).await;
        let mut rows = Vec::new();
        tree(&text.expect("answers")).each_mut("Activities", &mut |list| {
            for row in &list.children {
                let text = |key: &str| row.text_of(key).to_owned();
                rows.push((
                    text("StatusCode"),
                    text("Description"),
                    text("StatusMessage"),
                ));
            }
        });
        rows
    }

    /// Takes all messages off a queue, as JSON.
    async fn messages(&self, url: &str) -> Vec<Value> {
        let body = json!({"QueueUrl": url, "MaxNumberOfMessages": 10});
        let mut all = Vec::new();
        loop {
            let got = self
                .call_json(EAST, "sqs", "AmazonSQS.ReceiveMessage", &body)
                .await
                .expect("answers");
            let Some(messages) = got["Messages"]
                .as_array()
                .filter(|m| !m.is_empty())
                .cloned()
            else {
                return all;
            };
            for message in messages {
                let body = message["Body"].as_str().expect("a body");
                all.push(serde_json::from_str(body).expect("is JSON"));
                let gone = json!({"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]});
                self.call_json(EAST, "sqs", "AmazonSQS.DeleteMessage", &gone)
                    .await
                    .expect("is deleted");
            }
        }
    }

    fn at_peace(&self) {
        assert_eq!(self.ledger().troubles, Vec::<String>::new());
    }
}
