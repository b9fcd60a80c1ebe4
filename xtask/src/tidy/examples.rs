//! The rule on example configurations: every key says what it is, there or in a document.
//!
//! Called by `tidy`. That the examples are accepted by the programs themselves
//! is tested in tests/.

use super::{Finding, Tree};

/// Keys of example configurations that nothing explains: no comment beside the key or
/// above its block (lines without a blank one between), none at an earlier use in the same
/// file, no `key` in a document.
pub(super) fn keys_documented(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_example(&file.path)) {
        let mut explained = Vec::new();
        let mut above = false;
        for (at, line) in file.text.lines().enumerate() {
            let text = line.trim();
            // A commented-out setting is an example of its key, and needs a comment as well.
            let setting = text.strip_prefix('#').unwrap_or(text).trim_start();
            match key(setting) {
                Some(key) => {
                    let beside = setting.contains(" # ");
                    if above || beside || in_a_document(tree, key) {
                        explained.push(key.to_owned());
                    } else if !explained.iter().any(|known| known == key) {
                        findings.push(Finding::new(
                            &file.path,
                            at + 1,
                            format!("`{key}` has no comment: say above it what it is, its unit and its default"),
                        ));
                    }
                }
                None if text.starts_with('#') => above = true,
                None if text.starts_with('[') => {}
                None => above = false,
            }
        }
    }
    findings
}

/// True when a document names the key the way documents do: `key`.
fn in_a_document(tree: &Tree, key: &str) -> bool {
    let quoted = format!("`{key}`");
    tree.files.iter().any(|file| {
        file.path.ends_with(".md")
            && !file.path.starts_with("designs/")
            && file.text.contains(&quoted)
    })
}

fn is_example(path: &str) -> bool {
    path.ends_with(".toml") && (path.contains("example") || path.starts_with("deploy/"))
}

/// The key of `key = value`; none for prose, tables and the inside of a value.
fn key(text: &str) -> Option<&str> {
    let (key, value) = text.split_once('=')?;
    let key = key.trim_end();
    let word = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let starts_value = value.trim_start().starts_with(|c: char| {
        matches!(c, '"' | '\'' | '[' | '{' | '-') || c.is_ascii_digit() || c == 't' || c == 'f'
    });
    (word && starts_value).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_key_is_found_once_per_unexplained_use() {
        let text = "# Where the agent keeps its key.\nstate_dir = \"/var/lib/drover\"\n\nlisten = \"x\"\n\
                    [pool]\nmin = 1 # nodes\n# The most nodes.\n#max = 4\n#also = 4\n\n#hidden = 5\n[[pool]]\nmin = 2\n";
        let found = keys_documented(&Tree::of(&[
            ("examples/agent.toml", text),
            ("Cargo.toml", text),
        ]));
        let documented = Tree::of(&[
            ("examples/agent.toml", text),
            ("README.md", "`listen` and `hidden`"),
        ]);
        assert!(keys_documented(&documented).is_empty());
        let found: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(found, [4, 11]);
    }
}
