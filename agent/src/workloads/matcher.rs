//! Does a rule of the configuration name this process? Pure.

use crate::collector::ProcessMatcher;

/// All parts that are given must hold; a rule without parts names nothing. `name` is asked only when it matters.
pub fn matches(
    matcher: &ProcessMatcher,
    command: &str,
    uid: u32,
    name: impl FnOnce(u32) -> String,
) -> bool {
    if matcher.executable.is_none() && matcher.command.is_none() && matcher.user.is_none() {
        return false;
    }
    let executable = matcher
        .executable
        .as_deref()
        .is_none_or(|want| file_name(command) == want);
    let part = matcher
        .command
        .as_deref()
        .is_none_or(|want| command.contains(want));
    executable
        && part
        && matcher
            .user
            .as_deref()
            .is_none_or(|want| user(want, uid, name))
}

fn user(want: &str, uid: u32, name: impl FnOnce(u32) -> String) -> bool {
    want.parse() == Ok(uid) || name(uid) == want
}

fn file_name(command: &str) -> &str {
    let first = command.split(' ').next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_given_part_must_hold() {
        let rule = |executable: &str, command: &str, user: &str| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            ProcessMatcher {
                executable: some(executable),
                command: some(command),
                user: some(user),
            }
        };
        let table = [
            (rule("python3", "", ""), true),
            (rule("python", "", ""), false),
            (rule("", "train", ""), true),
            (rule("", "", "alice"), true),
            (rule("", "", "1000"), true),
            (rule("", "", "bob"), false),
            (rule("python3", "train", "alice"), true),
            (rule("python3", "serve", "alice"), false),
            (rule("", "", ""), false),
        ];
        for (rule, want) in table {
            let found = matches(&rule, "/usr/bin/python3 train.py", 1000, |_| {
                "alice".to_owned()
            });
            assert_eq!(found, want, "{rule:?}");
        }
    }
}
