//! Rules about labels in kubectl's selector language, with alternatives and numbers: `disk=nvme|ssd,gen>4,!slow`,
//! `zone in (a,b)`. Read from the command line and shown as they are written. Pure; used by `requests`.

use drover_proto::v1;

const FIX: &str = "write key=value, key=a|b, key!=value, key in (a,b), key notin (a,b), key>7, key<7, key or !key";

/// All rules of a selector, separated by commas.
///
/// # Errors
/// The first one that is none.
pub fn parse(text: &str) -> Result<Vec<v1::LabelRule>, String> {
    let mut rules = Vec::new();
    let mut depth = 0_u32;
    let mut part = String::new();
    for c in text.chars().chain([',']) {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| format!("{text:?} closes a list that is not open; {FIX}"))?;
            }
            ',' if depth == 0 => {
                rules.push(one(part.trim())?);
                part.clear();
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    if depth > 0 {
        return Err(format!("{text:?} does not close its list; {FIX}"));
    }
    Ok(rules)
}

fn one(text: &str) -> Result<v1::LabelRule, String> {
    let bad = || format!("{text:?} is no rule about a label; {FIX}");
    let rule = |key: &str, op: &str, values: Vec<String>| {
        let key = key.trim();
        let plain = !key.is_empty()
            && key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        plain
            .then(|| v1::LabelRule {
                key: key.to_owned(),
                op: op.to_owned(),
                values,
            })
            .ok_or_else(bad)
    };
    let list = |values: &str, separator: char| -> Vec<String> {
        let values = values.split(separator);
        values.map(|value| value.trim().to_owned()).collect()
    };
    if let Some(key) = text.strip_prefix('!') {
        return rule(key, "absent", Vec::new());
    }
    if let Some(head) = text.strip_suffix(')') {
        let (head, values) = head.split_once('(').ok_or_else(bad)?;
        let (key, word) = head
            .trim()
            .rsplit_once(char::is_whitespace)
            .ok_or_else(bad)?;
        let op = match word {
            "in" => "in",
            "notin" => "not_in",
            _ => return Err(bad()),
        };
        return rule(key, op, list(values, ','));
    }
    let Some(at) = text.find(['=', '!', '<', '>']) else {
        return rule(text, "exists", Vec::new());
    };
    let (key, rest) = text.split_at(at);
    let number = |value: &str| {
        let value = value.trim();
        match value.parse::<i64>() {
            Ok(_) => Ok(vec![value.to_owned()]),
            Err(_) => Err(format!(
                "{text:?} compares with {value:?}, which is no whole number"
            )),
        }
    };
    if let Some(values) = rest.strip_prefix("!=") {
        rule(key, "not_in", list(values, '|'))
    } else if let Some(values) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
        rule(key, "in", list(values, '|'))
    } else if let Some(value) = rest.strip_prefix('>') {
        rule(key, "above", number(value)?)
    } else if let Some(value) = rest.strip_prefix('<') {
        rule(key, "below", number(value)?)
    } else {
        Err(bad())
    }
}

/// A rule as it is written.
#[must_use]
pub fn shown(rule: &v1::LabelRule) -> String {
    let key = &rule.key;
    let any = rule.values.join("|");
    match rule.op.as_str() {
        "in" => format!("{key}={any}"),
        "not_in" => format!("{key}!={any}"),
        "exists" => key.clone(),
        "absent" => format!("!{key}"),
        "above" => format!("{key}>{any}"),
        "below" => format!("{key}<{any}"),
        other => format!("{key} {other} {any}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selector_language_is_kubectls_and_more() {
        for (text, rules) in [
            ("disk=ssd", &["disk=ssd"][..]),
            ("disk==ssd", &["disk=ssd"]),
            ("disk=nvme|ssd,!slow", &["disk=nvme|ssd", "!slow"]),
            ("disk in (nvme, ssd),gen>4", &["disk=nvme|ssd", "gen>4"]),
            ("disk notin (hdd)", &["disk!=hdd"]),
            ("disk!=hdd|tape", &["disk!=hdd|tape"]),
            ("gen<7", &["gen<7"]),
            ("gen > -1", &["gen>-1"]),
            ("example.org/fast", &["example.org/fast"]),
            ("empty=", &["empty="]),
        ] {
            let found: Vec<String> = parse(text).expect(text).iter().map(shown).collect();
            assert_eq!(found, rules, "{text}");
            // What is shown can be written.
            let again: Vec<String> = parse(&found.join(","))
                .expect(text)
                .iter()
                .map(shown)
                .collect();
            assert_eq!(again, rules, "{text}");
        }
    }

    #[test]
    fn what_is_no_rule_says_how_one_is_written() {
        for (text, needle) in [
            ("", "key=value"),
            ("=x", "key=value"),
            ("a b", "key=value"),
            ("a=b,", "key=value"),
            ("!", "key=value"),
            ("a among (b)", "key=value"),
            ("a in b)", "not open"),
            ("a in (b", "close its list"),
            ("gen>four", "no whole number"),
            ("gen!4", "key=value"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(needle), "{text}: {error}");
        }
    }
}
