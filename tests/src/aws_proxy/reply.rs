//! What goes out: XML as each of AWS's services writes it, and JSON.
//!
//! Used by everything in the proxy that answers. It must not know what the actions mean.

use serde_json::{Value, json};

use super::query::Query;
use super::xml::Element;

/// The namespace of Auto Scaling's replies.
pub(super) const AUTOSCALING: &str = "http://autoscaling.amazonaws.com/doc/2011-01-01/";
/// The namespace of EC2's replies.
pub(super) const EC2: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";
const IAM: &str = "https://iam.amazonaws.com/doc/2010-05-08/";

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// XML that is already text.
    pub(super) fn xml(status: u16, body: String) -> Self {
        Self {
            status,
            content_type: "text/xml".to_owned(),
            body: body.into_bytes(),
        }
    }

    /// JSON, for the admin path.
    pub(super) fn json(status: u16, body: String) -> Self {
        Self {
            status,
            content_type: "application/json".to_owned(),
            body: body.into_bytes(),
        }
    }

    /// A good answer to a JSON call.
    pub(super) fn of_value(value: &Value) -> Self {
        Self {
            status: 200,
            content_type: "application/x-amz-json-1.1".to_owned(),
            body: value.to_string().into_bytes(),
        }
    }

    /// A good answer of Auto Scaling to `action`, with what its result holds.
    pub(super) fn result(action: &str, result: Vec<Element>) -> Self {
        Self::wrapped(action, result, AUTOSCALING)
    }

    /// A good answer of IAM to `action`.
    pub(super) fn iam(action: &str, result: Vec<Element>) -> Self {
        Self::wrapped(action, result, IAM)
    }

    fn wrapped(action: &str, result: Vec<Element>, namespace: &str) -> Self {
        let root = Element::node(
            &format!("{action}Response"),
            vec![
                Element::node(&format!("{action}Result"), result),
                metadata(),
            ],
        );
        Self::xml(200, root.document(namespace))
    }

    /// A good answer of Auto Scaling to `action`, which has no result.
    pub(super) fn empty(action: &str) -> Self {
        let root = Element::node(&format!("{action}Response"), vec![metadata()]);
        Self::xml(200, root.document(AUTOSCALING))
    }

    /// A good answer of Auto Scaling to `action`, whose result is empty.
    pub(super) fn empty_result(action: &str) -> Self {
        Self::result(action, vec![])
    }

    /// A good answer of EC2 to `action`.
    pub(super) fn ec2(action: &str, mut result: Vec<Element>) -> Self {
        result.insert(0, Element::leaf("requestId", "proxy"));
        let root = Element::node(&format!("{action}Response"), result);
        Self::xml(200, root.document(EC2))
    }

    /// An error as the call's service spells it.
    pub(super) fn error(query: &Query, status: u16, code: &str, message: &str) -> Self {
        if query.json.is_some() {
            let body = json!({ "__type": code, "message": message });
            return Self {
                status,
                ..Self::of_value(&body)
            };
        }
        let pair = vec![
            Element::leaf("Code", code),
            Element::leaf("Message", message),
        ];
        if query.service == "ec2" {
            let errors = Element::node("Errors", vec![Element::node("Error", pair)]);
            let root = Element::node(
                "Response",
                vec![errors, Element::leaf("RequestID", "proxy")],
            );
            return Self::xml(status, root.document(EC2));
        }
        let side = if status < 500 { "Sender" } else { "Receiver" };
        let mut error = vec![Element::leaf("Type", side)];
        error.extend(pair);
        let root = Element::node(
            "ErrorResponse",
            vec![
                Element::node("Error", error),
                Element::leaf("RequestId", "proxy"),
            ],
        );
        Self::xml(status, root.document(AUTOSCALING))
    }

    /// Auto Scaling's refusal of a call that makes no sense.
    pub(super) fn invalid(query: &Query, message: &str) -> Self {
        Self::error(query, 400, "ValidationError", message)
    }

    /// Auto Scaling's refusal of a group that is not there.
    pub(super) fn no_group(query: &Query) -> Self {
        let name = query.group();
        let text = format!("AutoScalingGroup name not found - AutoScalingGroup {name} not found");
        Self::invalid(query, &text)
    }

    /// Whether it is a good one.
    pub(super) fn is_ok(&self) -> bool {
        self.status < 300
    }

    /// The tree of a good XML answer; `None` for a bad one.
    pub(super) fn tree(&self) -> Result<Option<Element>, String> {
        if !self.is_ok() {
            return Ok(None);
        }
        Element::parse(&String::from_utf8_lossy(&self.body))
            .map(Some)
            .map_err(|e| format!("moto's answer: {e}"))
    }
}

fn metadata() -> Element {
    Element::node(
        "ResponseMetadata",
        vec![Element::leaf("RequestId", "proxy")],
    )
}
