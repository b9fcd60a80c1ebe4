//! AWS's Query protocol: a form comes in, XML goes out.
//!
//! Used by the proxy's server and by everything that answers. It must not know what the actions mean.

use std::collections::BTreeMap;

use super::xml::Element;

/// The namespace of Auto Scaling's replies.
pub(super) const AUTOSCALING: &str = "http://autoscaling.amazonaws.com/doc/2011-01-01/";
/// The namespace of EC2's replies.
pub(super) const EC2: &str = "http://ec2.amazonaws.com/doc/2016-11-15/";

/// One call.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    pub(super) action: String,
    pub(super) region: String,
    pub(super) service: String,
    pub(super) params: BTreeMap<String, String>,
}

impl Query {
    /// Reads a call from its form and its Authorization header, whose scope names region and service.
    pub(super) fn read(authorization: &str, body: &[u8]) -> Self {
        let params: BTreeMap<_, _> = form_urlencoded::parse(body).into_owned().collect();
        let scope = authorization
            .split("Credential=")
            .nth(1)
            .unwrap_or_default();
        let mut parts = scope
            .split(',')
            .next()
            .unwrap_or_default()
            .split('/')
            .skip(2);
        Self {
            action: params.get("Action").cloned().unwrap_or_default(),
            region: parts.next().unwrap_or("us-east-1").to_owned(),
            service: parts.next().unwrap_or_default().to_owned(),
            params,
        }
    }

    /// A parameter, or nothing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// A list: `Name.member.1`, `Name.member.2`, ... in order.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let prefix = format!("{name}.member.");
        let mut found: Vec<(u32, String)> = self
            .params
            .iter()
            .filter_map(|(key, value)| {
                Some((key.strip_prefix(&prefix)?.parse().ok()?, value.clone()))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// The group that the call names, or nothing.
    pub(super) fn group(&self) -> &str {
        self.get("AutoScalingGroupName")
    }

    /// Whether it belongs to Auto Scaling.
    pub(super) fn is_autoscaling(&self) -> bool {
        self.service == "autoscaling"
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// XML that is already text.
    pub(super) fn xml(status: u16, body: String) -> Self {
        Self {
            status,
            content_type: "text/xml",
            body: body.into_bytes(),
        }
    }

    /// JSON, for the admin path.
    pub(super) fn json(status: u16, body: String) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: body.into_bytes(),
        }
    }

    /// A good answer of Auto Scaling to `action`, with what its result holds.
    pub(super) fn result(action: &str, result: Vec<Element>) -> Self {
        let metadata = Element::node(
            "ResponseMetadata",
            vec![Element::leaf("RequestId", "proxy")],
        );
        let root = Element::node(
            &format!("{action}Response"),
            vec![Element::node(&format!("{action}Result"), result), metadata],
        );
        Self::xml(200, root.document(AUTOSCALING))
    }

    /// A good answer of Auto Scaling to `action`, which has no result.
    pub(super) fn empty(action: &str) -> Self {
        let metadata = Element::node(
            "ResponseMetadata",
            vec![Element::leaf("RequestId", "proxy")],
        );
        Self::xml(
            200,
            Element::node(&format!("{action}Response"), vec![metadata]).document(AUTOSCALING),
        )
    }

    /// An error as `service` spells it.
    pub(super) fn error(query: &Query, status: u16, code: &str, message: &str) -> Self {
        let pair = vec![
            Element::leaf("Code", code),
            Element::leaf("Message", message),
        ];
        if query.is_autoscaling() {
            let mut error = vec![Element::leaf(
                "Type",
                if status < 500 { "Sender" } else { "Receiver" },
            )];
            error.extend(pair);
            let root = Element::node(
                "ErrorResponse",
                vec![
                    Element::node("Error", error),
                    Element::leaf("RequestId", "proxy"),
                ],
            );
            Self::xml(status, root.document(AUTOSCALING))
        } else {
            let errors = Element::node("Errors", vec![Element::node("Error", pair)]);
            let root = Element::node(
                "Response",
                vec![errors, Element::leaf("RequestID", "proxy")],
            );
            Self::xml(status, root.document(EC2))
        }
    }

    /// Auto Scaling's refusal of a call that makes no sense.
    pub(super) fn invalid(query: &Query, message: &str) -> Self {
        Self::error(query, 400, "ValidationError", message)
    }

    /// Whether it is a good one.
    pub(super) fn is_ok(&self) -> bool {
        self.status < 300
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_service_and_lists_are_read() {
        let header = "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/autoscaling/aws4_request, SignedHeaders=host";
        let query = Query::read(
            header,
            b"Action=X&A.member.2=two&A.member.1=one&A.member.10=ten&B=b%20c",
        );
        assert_eq!(
            (query.region.as_str(), query.service.as_str()),
            ("eu-west-1", "autoscaling")
        );
        assert_eq!(query.list("A"), ["one", "two", "ten"]);
        assert_eq!(query.get("B"), "b c");
    }
}
