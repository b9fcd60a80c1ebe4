//! Fields that answers show in place of what is: what moto does not keep, or lets nobody set.
//!
//! Called by the server with every answer. It changes what is shown, never what is.

use serde_json::{Map, Value};

use super::query::Query;
use super::reply::{AUTOSCALING, EC2, Reply};
use super::scenario::{OverlayRow, concerns};
use super::server::Proxy;
use super::xml::Element;

/// Lays the scenario's rows for this action over a good XML answer.
pub(super) fn lay(proxy: &Proxy, query: &Query, reply: Reply) -> Result<Reply, String> {
    let rows: Vec<OverlayRow> = {
        let scenario = proxy.scenario();
        let of = |row: &&OverlayRow| {
            row.action == query.action && concerns(row.region.as_ref(), &query.region)
        };
        scenario.overlays.iter().filter(of).cloned().collect()
    };
    if rows.is_empty() || query.json.is_some() {
        return Ok(reply);
    }
    let Some(mut tree) = reply.tree()? else {
        return Ok(reply);
    };
    let (namespace, entry) = match query.service.as_str() {
        "ec2" => (EC2, "item"),
        _ => (AUTOSCALING, "member"),
    };
    for row in &rows {
        tree.every_mut(&mut |element| {
            let is = |(name, text): (&String, &String)| {
                element.child(name).is_some_and(|child| child.text == *text)
            };
            if row.of.iter().all(is) && !row.of.is_empty() {
                merge(element, &row.set, entry);
            }
        });
    }
    Ok(Reply::xml(200, tree.document(namespace)))
}

fn merge(element: &mut Element, patch: &Map<String, Value>, entry: &str) {
    for (name, value) in patch {
        if value.is_null() {
            element.children.retain(|child| child.name != *name);
            continue;
        }
        if element.child(name).is_none() {
            element.children.push(Element::leaf(name, ""));
        }
        if let Some(child) = element.child_mut(name) {
            show(child, value, entry);
        }
    }
}

fn show(element: &mut Element, value: &Value, entry: &str) {
    match value {
        Value::Object(patch) => {
            element.text.clear();
            merge(element, patch, entry);
        }
        Value::Array(values) => {
            let made = values.iter().map(|value| {
                let mut one = Element::leaf(entry, "");
                show(&mut one, value, entry);
                one
            });
            *element = Element::node(&element.name, made.collect());
        }
        Value::String(text) => *element = Element::leaf(&element.name, text.as_str()),
        other => *element = Element::leaf(&element.name, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_sets_adds_goes_into_replaces_and_takes_out() {
        let text = "<g><Name>a</Name><T><Id>1</Id><Version>2</Version></T><L><member>x</member></L><Gone/></g>";
        let mut group = Element::parse(text).expect("parses");
        let patch = serde_json::json!({
            "Name": "b", "T": {"Version": null, "More": 7}, "L": ["y", {"K": "z"}], "Gone": null, "New": {"In": true},
        });
        merge(&mut group, patch.as_object().expect("an object"), "member");
        assert_eq!(
            group.document("n"),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<g xmlns=\"n\"><Name>b</Name><T><Id>1</Id><More>7</More></T>\
             <L><member>y</member><member><K>z</K></member></L><New><In>true</In></New></g>"
        );
    }
}
