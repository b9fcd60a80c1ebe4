//! From the text of a message to what it says of instances. Pure.
//!
//! Called by `sqs`. Wire types end here. A text that is not understood is an answer like any other: it is kept in words and
//! never stops what comes after it.

use crate::ports::notices::CloudWord;
use crate::records::HookOn;
use drover_core::model::{InstanceId, UnixMs};
use serde::Deserialize;
use serde_json::Value;

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Of these instances; none of it may concern us.
    Told(Vec<Told>),
    /// Nothing that anybody has to know (a test of a hook).
    Nothing,
    /// It is not understood, and why.
    Unknown(String),
}

/// What a message says of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Which.
    pub instance: InstanceId,
    /// What.
    pub word: CloudWord,
    /// In words.
    pub message: String,
    /// When it was said.
    pub at: Option<UnixMs>,
    /// Region that it is about, where the message says so: its queue may lie in another.
    pub region: Option<String>,
}

/// Reads a message: an EventBridge event, a lifecycle hook's own notification, or either in an envelope of SNS.
#[must_use]
pub fn parse(body: &str) -> Parsed {
    let Ok(value) = serde_json::from_str::<Value>(body) else {
        return Parsed::Unknown("it is no JSON".to_owned());
    };
    if let (Some("Notification"), Some(inner)) = (text(&value, "Type"), text(&value, "Message")) {
        return match serde_json::from_str::<Value>(inner) {
            Ok(inner) => parse_value(&inner),
            Err(_) => Parsed::Unknown("its SNS envelope holds no JSON".to_owned()),
        };
    }
    parse_value(&value)
}

fn parse_value(value: &Value) -> Parsed {
    let found = match text(value, "detail-type") {
        Some(kind) => event(kind, value),
        None if text(value, "Event") == Some("autoscaling:TEST_NOTIFICATION") => {
            return Parsed::Nothing;
        }
        None if value.get("LifecycleTransition").is_some() => {
            let at = text(value, "Time").and_then(time);
            hook(value, at).map(|told| vec![told])
        }
        None => Err("it is neither an event nor a lifecycle hook's notification".to_owned()),
    };
    let here = |told: Vec<Told>| {
        let region = text(value, "region").filter(|region| !region.is_empty());
        let of = |told| Told {
            region: region.map(str::to_owned),
            ..told
        };
        Parsed::Told(told.into_iter().map(of).collect())
    };
    found.map_or_else(Parsed::Unknown, here)
}

fn event(kind: &str, value: &Value) -> Result<Vec<Told>, String> {
    let at = text(value, "time").and_then(time);
    let detail = value
        .get("detail")
        .ok_or_else(|| format!("{kind:?} has no detail"))?;
    let of = |word: CloudWord, message: String| -> Result<Vec<Told>, String> {
        let id =
            text(detail, "instance-id").ok_or_else(|| format!("{kind:?} names no instance"))?;
        Ok(vec![Told {
            instance: InstanceId::from(id),
            word,
            message,
            at,
            region: None,
        }])
    };
    match kind {
        "EC2 Spot Instance Interruption Warning" => {
            let action = text(detail, "instance-action").unwrap_or("end");
            let message = format!("the spot market will {action} it");
            of(CloudWord::Spot { ends: None }, message)
        }
        "EC2 Instance Rebalance Recommendation" => {
            let message = "it has a raised risk of spot interruption".to_owned();
            of(CloudWord::Rebalance, message)
        }
        "EC2 Instance State-change Notification" => {
            let state = text(detail, "state").unwrap_or_default().to_owned();
            let message = format!("its state is {state}");
            of(CloudWord::State { state }, message)
        }
        "EC2 Instance-terminate Lifecycle Action" | "EC2 Instance-launch Lifecycle Action" => {
            hook(detail, at).map(|told| vec![told])
        }
        "AWS Health Event" => health(detail, at),
        other => Err(format!("{other:?} is no kind of event that is known")),
    }
}

fn hook(detail: &Value, at: Option<UnixMs>) -> Result<Told, String> {
    let need =
        |key: &str| text(detail, key).ok_or_else(|| format!("a lifecycle action without {key}"));
    let on = match need("LifecycleTransition")? {
        "autoscaling:EC2_INSTANCE_TERMINATING" => HookOn::Terminating,
        "autoscaling:EC2_INSTANCE_LAUNCHING" => HookOn::Launching,
        other => {
            return Err(format!(
                "{other:?} is no lifecycle transition that is known"
            ));
        }
    };
    let name = need("LifecycleHookName")?;
    Ok(Told {
        instance: InstanceId::from(need("EC2InstanceId")?),
        message: format!("it waits in its group's hook {name}"),
        word: CloudWord::Hook {
            group: need("AutoScalingGroupName")?.to_owned(),
            hook: name.to_owned(),
            on,
        },
        at,
        region: None,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Health {
    event_arn: String,
    service: String,
    event_type_code: String,
    event_type_category: String,
    start_time: String,
    status_code: String,
    affected_entities: Vec<Entity>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entity {
    entity_value: String,
}

/// Scheduled changes of EC2 instances; whatever else AWS is well or ill with concerns no node.
fn health(detail: &Value, at: Option<UnixMs>) -> Result<Vec<Told>, String> {
    let told: Health = serde_json::from_value(detail.clone())
        .map_err(|error| format!("an AWS Health event that cannot be read: {error}"))?;
    if told.service != "EC2" || told.event_type_category != "scheduledChange" {
        return Ok(Vec::new());
    }
    let withdrawn = told.status_code == "closed";
    let begins = health_time(&told.start_time);
    let instances = told
        .affected_entities
        .iter()
        .filter(|entity| entity.entity_value.starts_with("i-"));
    Ok(instances
        .map(|entity| Told {
            instance: InstanceId::from(entity.entity_value.as_str()),
            word: CloudWord::Maintenance {
                event: told.event_arn.clone(),
                begins,
                withdrawn,
            },
            message: format!("{} ({})", told.event_type_code, told.start_time),
            at,
            region: None,
        })
        .collect())
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn time(text: &str) -> Option<UnixMs> {
    let at: jiff::Timestamp = text.trim().parse().ok()?;
    u64::try_from(at.as_millisecond()).ok().map(UnixMs)
}

/// `Sat, 05 Jun 2019 15:10:09 GMT`, as Health dates; the day of the week is often wrong in it and means nothing.
fn health_time(text: &str) -> Option<UnixMs> {
    let bare = text.split_once(", ").map_or(text, |(_, rest)| rest);
    let bare = bare.trim().strip_suffix(" GMT")?;
    let at = jiff::civil::DateTime::strptime("%d %b %Y %H:%M:%S", bare).ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(at.timestamp().as_millisecond())
        .ok()
        .map(UnixMs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, detail: &str) -> String {
        format!(
            r#"{{"version":"0","id":"e","detail-type":"{kind}","source":"aws.x","account":"1","time":"2026-03-01T10:00:00Z","region":"eu-west-1","resources":[],"detail":{detail}}}"#
        )
    }

    fn one(body: &str) -> Told {
        let Parsed::Told(mut told) = parse(body) else {
            panic!("understood: {:?}", parse(body))
        };
        assert_eq!(told.len(), 1);
        told.remove(0)
    }

    const AT: Option<UnixMs> = Some(UnixMs(1_772_359_200_000));

    fn action(transition: &str) -> String {
        format!(
            r#"{{"LifecycleActionToken":"t","AutoScalingGroupName":"asg-1","LifecycleHookName":"out","EC2InstanceId":"i-1","LifecycleTransition":"autoscaling:{transition}","Origin":"AutoScalingGroup","Destination":"EC2"}}"#
        )
    }

    #[test]
    fn events_of_ec2_are_read() {
        let spot = event(
            "EC2 Spot Instance Interruption Warning",
            r#"{"instance-id":"i-1","instance-action":"terminate"}"#,
        );
        let told = one(&spot);
        assert_eq!((told.instance.as_str(), told.at), ("i-1", AT));
        assert_eq!(told.word, CloudWord::Spot { ends: None });
        assert_eq!(told.region.as_deref(), Some("eu-west-1"));
        let rebalance = event(
            "EC2 Instance Rebalance Recommendation",
            r#"{"instance-id":"i-1"}"#,
        );
        assert_eq!(one(&rebalance).word, CloudWord::Rebalance);
        let state = event(
            "EC2 Instance State-change Notification",
            r#"{"instance-id":"i-1","state":"stopping"}"#,
        );
        let state_word = CloudWord::State {
            state: "stopping".to_owned(),
        };
        assert_eq!(one(&state).word, state_word);
    }

    #[test]
    fn lifecycle_actions_are_read_from_events_hooks_and_envelopes() {
        let word = |on| CloudWord::Hook {
            group: "asg-1".to_owned(),
            hook: "out".to_owned(),
            on,
        };
        let out = action("EC2_INSTANCE_TERMINATING");
        let by_event = one(&event("EC2 Instance-terminate Lifecycle Action", &out));
        assert_eq!(by_event.word, word(HookOn::Terminating));
        assert_eq!(by_event.region.as_deref(), Some("eu-west-1"));
        let by_hook = one(&out);
        assert_eq!(by_hook.word, word(HookOn::Terminating));
        assert_eq!(by_hook.region, None, "its queue lies where it is");
        let envelope = serde_json::json!({"Type": "Notification", "Message": out});
        assert_eq!(one(&envelope.to_string()).word, word(HookOn::Terminating));
        let up = action("EC2_INSTANCE_LAUNCHING");
        let by_event = one(&event("EC2 Instance-launch Lifecycle Action", &up));
        assert_eq!(by_event.word, word(HookOn::Launching));
        let test = r#"{"AccountId":"1","RequestId":"r","AutoScalingGroupName":"asg-1","Event":"autoscaling:TEST_NOTIFICATION"}"#;
        assert_eq!(parse(test), Parsed::Nothing);
    }

    #[test]
    fn maintenance_is_read_for_each_instance() {
        let detail = |service: &str, category: &str, status: &str| {
            format!(
                r#"{{"eventArn":"arn:e","service":"{service}","eventTypeCode":"AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED","eventTypeCategory":"{category}","startTime":"Sat, 21 Mar 2026 10:00:00 GMT","statusCode":"{status}","affectedEntities":[{{"entityValue":"i-1"}},{{"entityValue":"vol-1"}},{{"entityValue":"i-2"}}]}}"#
            )
        };
        let told = |detail: &str| match parse(&event("AWS Health Event", detail)) {
            Parsed::Told(told) => told,
            other => panic!("understood: {other:?}"),
        };
        let upcoming = told(&detail("EC2", "scheduledChange", "upcoming"));
        let ids: Vec<&str> = upcoming.iter().map(|t| t.instance.as_str()).collect();
        assert_eq!(ids, ["i-1", "i-2"]);
        let word = |withdrawn| CloudWord::Maintenance {
            event: "arn:e".to_owned(),
            begins: Some(UnixMs(1_774_087_200_000)),
            withdrawn,
        };
        assert_eq!(upcoming[0].word, word(false));
        assert_eq!(
            told(&detail("EC2", "scheduledChange", "closed"))[1].word,
            word(true)
        );
        assert_eq!(told(&detail("RDS", "scheduledChange", "open")), []);
        assert_eq!(told(&detail("EC2", "issue", "open")), []);
    }

    #[test]
    fn what_is_not_understood_says_why() {
        for (body, why) in [
            ("", "no JSON"),
            ("{\"half\":", "no JSON"),
            ("[]", "neither"),
            ("{}", "neither"),
            (&event("EC2 AMI State Change", "{}"), "no kind of event"),
            (
                &event("EC2 Spot Instance Interruption Warning", "{}"),
                "names no instance",
            ),
            (
                &event("AWS Health Event", r#"{"service":7}"#),
                "cannot be read",
            ),
            (
                r#"{"LifecycleTransition":"autoscaling:EC2_INSTANCE_TERMINATING"}"#,
                "without LifecycleHookName",
            ),
            (r#"{"Type":"Notification","Message":"hello"}"#, "envelope"),
        ] {
            match parse(body) {
                Parsed::Unknown(said) => assert!(said.contains(why), "{body}: {said}"),
                other => panic!("not understood: {other:?}"),
            }
        }
    }
}
