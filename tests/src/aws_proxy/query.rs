//! What comes in: AWS's Query protocol (a form) and its JSON protocol (an action in a header).
//!
//! Used by the proxy's server and by everything that answers. It must not know what the actions mean.

use std::collections::BTreeMap;

use serde_json::Value;

/// One call.
#[derive(Clone, Debug, Default)]
pub(super) struct Query {
    pub(super) action: String,
    pub(super) region: String,
    pub(super) service: String,
    /// The form; empty for a JSON call.
    pub(super) params: BTreeMap<String, String>,
    /// Set for a JSON call.
    pub(super) json: Option<JsonCall>,
}

/// What a JSON call brings along.
#[derive(Clone, Debug)]
pub(super) struct JsonCall {
    /// The whole `x-amz-target`, for instance `AmazonSQS.ReceiveMessage`.
    pub(super) target: String,
    /// `application/x-amz-json-1.0` or `-1.1`.
    pub(super) content_type: String,
    pub(super) body: Value,
}

impl Query {
    /// Reads a call from its form and its Authorization header, whose scope names region and service.
    pub(super) fn read(authorization: &str, body: &[u8]) -> Self {
        let params: BTreeMap<_, _> = form_urlencoded::parse(body).into_owned().collect();
        let mut query = Self::scoped(authorization);
        query.action = params.get("Action").cloned().unwrap_or_default();
        query.params = params;
        query
    }

    /// Reads a JSON call.
    pub(super) fn read_json(
        authorization: &str,
        target: &str,
        content_type: &str,
        body: &[u8],
    ) -> Self {
        let mut query = Self::scoped(authorization);
        query.action = target.rsplit('.').next().unwrap_or_default().to_owned();
        query.json = Some(JsonCall {
            target: target.to_owned(),
            content_type: content_type.to_owned(),
            body: serde_json::from_slice(body).unwrap_or(Value::Null),
        });
        query
    }

    fn scoped(authorization: &str) -> Self {
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
            region: parts.next().unwrap_or("us-east-1").to_owned(),
            service: parts.next().unwrap_or_default().to_owned(),
            ..Self::default()
        }
    }

    /// A parameter, or nothing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// A number in the form.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.get(name).parse().ok()
    }

    /// A list of Auto Scaling or IAM: `Name.member.1`, `Name.member.2`, ... in order.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.numbered(&format!("{name}.member."))
    }

    /// A list of EC2: `Name.1`, `Name.2`, ... in order.
    pub(super) fn plain_list(&self, name: &str) -> Vec<String> {
        self.numbered(&format!("{name}."))
    }

    /// EC2's filters: name and values.
    pub(super) fn filters(&self) -> Vec<(String, Vec<String>)> {
        (1..=20)
            .map(|n| {
                let name = self.get(&format!("Filter.{n}.Name")).to_owned();
                (name, self.plain_list(&format!("Filter.{n}.Value")))
            })
            .filter(|(name, _)| !name.is_empty())
            .collect()
    }

    fn numbered(&self, prefix: &str) -> Vec<String> {
        let mut found: Vec<(u32, String)> = self
            .params
            .iter()
            .filter_map(|(key, value)| {
                Some((key.strip_prefix(prefix)?.parse().ok()?, value.clone()))
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// The group that the call names, or nothing.
    pub(super) fn group(&self) -> &str {
        self.get("AutoScalingGroupName")
    }

    /// Where a page begins, for lists that the proxy pages itself.
    pub(super) fn page_start(&self) -> usize {
        self.get("NextToken").parse().unwrap_or(0)
    }

    /// Whether it only reads, by its name, or is a dry run.
    pub(super) fn only_reads(&self) -> bool {
        only_reads(&self.action) || self.get("DryRun") == "true"
    }
}

/// Whether an action only reads, by its name.
pub(super) fn only_reads(action: &str) -> bool {
    ["Describe", "Get", "List", "Receive", "Simulate"]
        .iter()
        .any(|p| action.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_service_and_lists_are_read() {
        let header = "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/autoscaling/aws4_request, SignedHeaders=host";
        let query = Query::read(
            header,
            b"Action=X&A.member.2=two&A.member.1=one&A.member.10=ten&B=b%20c&Filter.1.Name=state&Filter.1.Value.1=active",
        );
        assert_eq!(
            (query.region.as_str(), query.service.as_str()),
            ("eu-west-1", "autoscaling")
        );
        assert_eq!(query.list("A"), ["one", "two", "ten"]);
        assert_eq!(query.get("B"), "b c");
        assert_eq!(
            query.filters(),
            [("state".to_owned(), vec!["active".to_owned()])]
        );
    }

    #[test]
    fn a_json_call_names_its_action_in_the_target() {
        let header = "AWS4-HMAC-SHA256 Credential=A/20260101/us-west-2/sqs/aws4_request, x";
        let query = Query::read_json(
            header,
            "AmazonSQS.ReceiveMessage",
            "application/x-amz-json-1.0",
            b"{\"QueueUrl\":\"u\"}",
        );
        assert_eq!(query.action, "ReceiveMessage");
        assert!(query.only_reads());
        assert_eq!(query.json.expect("is JSON").body["QueueUrl"], "u");
    }
}
