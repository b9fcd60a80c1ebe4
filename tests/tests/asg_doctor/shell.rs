//! Does what the doctor prints for a shell: the lines of `aws` as calls through the proxy, those of `drover` as they are.
//!
//! Used by the suite beside it. It reads as much of the AWS CLI's ways as the doctor writes.

use super::{Clinic, RUNTIME};
use drover_tests::aws_proxy::Service;

/// Flags whose values are a list.
const LISTS: [&str; 3] = ["ScalingProcesses", "InstanceIds", "Tags"];

/// A line as words; what is in single quotes is one, a comment and a redirection end it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, begun) = (!quoted, true),
            ' ' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            '#' | '>' | '|' if !quoted && !begun => break,
            other => {
                word.push(other);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// `new-instances-protected` as the API spells it.
fn spelled(kebab: &str) -> String {
    kebab
        .split('-')
        .map(|part| {
            let (first, rest) = part.split_at(part.len().min(1));
            first.to_uppercase() + rest
        })
        .collect()
}

/// The form of a line of flags; the region apart.
fn form(flags: &[String]) -> (String, Vec<(String, String)>) {
    let (mut region, mut form) = (String::new(), Vec::new());
    let mut rest = flags.iter().peekable();
    while let Some(flag) = rest.next() {
        let name = flag.strip_prefix("--").expect("a flag");
        let mut values = Vec::new();
        while let Some(value) = rest.next_if(|word| !word.starts_with("--")) {
            values.push(value.clone());
        }
        let key = spelled(name);
        let pairs = |text: &str| -> Vec<(String, String)> {
            text.split(',')
                .filter_map(|pair| pair.split_once('='))
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect()
        };
        match values.as_slice() {
            _ if name == "region" => region = values.concat(),
            [] => match name.strip_prefix("no-") {
                Some(off) => form.push((spelled(off), "false".to_owned())),
                None => form.push((key, "true".to_owned())),
            },
            _ if LISTS.contains(&key.as_str()) => {
                for (n, value) in values.iter().enumerate() {
                    let row = format!("{key}.member.{}", n + 1);
                    match pairs(value) {
                        none if none.is_empty() => form.push((row, value.clone())),
                        some => {
                            form.extend(some.into_iter().map(|(k, v)| (format!("{row}.{k}"), v)))
                        }
                    }
                }
            }
            // A number that is for a person to choose.
            [value] if value == "N" => form.push((key, "1".to_owned())),
            [value] => form.push((key, value.clone())),
            more => panic!("{flag}: {more:?}"),
        }
    }
    (region, form)
}

/// Does it.
pub(super) fn run(clinic: &Clinic, line: &str) {
    let words = words(line);
    match words.first().map(String::as_str) {
        Some("aws") if words[1] == "autoscaling" => {
            let (region, form) = form(&words[3..]);
            let form: Vec<(&str, &str)> =
                form.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let action = spelled(&words[2]);
            let call = clinic
                .proxy
                .call(&region, Service::AutoScaling, &action, &form);
            RUNTIME
                .block_on(call)
                .unwrap_or_else(|e| panic!("{line}: {e}"));
        }
        Some("drover") => {
            let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let told = clinic.coordinator.cli(&args);
            assert!(told.status.success(), "{line}: {told:?}");
        }
        _ => panic!("nobody here can do {line}"),
    }
}

#[test]
fn a_line_is_read_as_a_shell_and_the_cli_read_it() {
    let line = "aws autoscaling put-x --region r-1 --no-capacity-rebalance --on --max 2 --instance-ids i-1 i-2 \
                --tags 'ResourceId=g 1,Key=a/b' # why";
    let read = words(line);
    assert_eq!(read.len(), 14, "{read:?}");
    let (region, form) = form(&read[3..]);
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    assert_eq!(region, "r-1");
    assert_eq!(
        form,
        [
            pair("CapacityRebalance", "false"),
            pair("On", "true"),
            pair("Max", "2"),
            pair("InstanceIds.member.1", "i-1"),
            pair("InstanceIds.member.2", "i-2"),
            pair("Tags.member.1.ResourceId", "g 1"),
            pair("Tags.member.1.Key", "a/b"),
        ]
    );
}
