//! Rules on forms that Rust files must or must not have.
//!
//! Called by `tidy`. Words that a rule searches for are looked for in code, not
//! in comments or strings, unless the rule is about comments.

use super::{Finding, Tree, tree::TextFile};

/// Every file says first what it is for.
pub(super) fn opens_with_docs(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| {
            Finding::new(
                &file.path,
                1,
                "must open with `//!`: its purpose, who calls it, what it must not do",
            )
        })
        .collect()
}

const VAGUE_NAMES: &[&str] = &[
    "service", "utils", "util", "common", "manager", "helpers", "errors",
];

/// No `mod.rs`, no module whose name says nothing.
pub(super) fn names(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let mut parts: Vec<&str> = file.path.trim_end_matches(".rs").split('/').collect();
        let stem = parts.pop().unwrap_or_default();
        if stem == "mod" {
            let folder = parts.last().unwrap_or(&"");
            findings.push(Finding::new(
                &file.path,
                1,
                format!("no mod.rs here: name it {folder}.rs, beside the folder {folder}/"),
            ));
        }
        for name in parts
            .iter()
            .chain([&stem])
            .filter(|name| VAGUE_NAMES.contains(name))
        {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("`{name}` says nothing: name the module after what it holds"),
            ));
        }
        for (line, code) in file.code.lines().enumerate() {
            let inline = code
                .trim_start()
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            let Some(rest) = inline.strip_prefix("mod ") else {
                continue;
            };
            let name = rest.trim_end_matches([' ', '{', '}', ';']);
            if rest.contains('{') && VAGUE_NAMES.contains(&name) {
                findings.push(Finding::new(
                    &file.path,
                    line + 1,
                    format!("`{name}` says nothing: name the module after what it holds"),
                ));
            }
        }
    }
    findings
}

/// A test that is not run is no test.
pub(super) fn ignored_tests(tree: &Tree) -> Vec<Finding> {
    find_code(tree, |_, code| {
        let at = code.find("#[ignore").is_some()
            || code.contains("cfg_attr(") && has_word(code, "ignore");
        at.then(|| {
            "no ignored tests: make its peer start, or make its absence an error that says how to get it"
                .to_owned()
        })
    })
}

const UNSAFE_ALLOWED: &[&str] = &["tests/nvml-stub/", "tests/clock-shift/", "agent/nvml-raw/"];

/// Unsafe code only where a C ABI leaves no choice.
pub(super) fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    find_code(tree, |file, code| {
        let allowed = UNSAFE_ALLOWED
            .iter()
            .any(|folder| file.path.starts_with(folder));
        (!allowed && has_word(code, "unsafe")).then(|| {
            format!(
                "unsafe code only in {}: find a safe crate for it",
                UNSAFE_ALLOWED.join(" and ")
            )
        })
    })
}

/// Nothing that says "later" in the code.
pub(super) fn unfinished(tree: &Tree) -> Vec<Finding> {
    // Put together here so that this file does not find itself.
    let marks = [
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("TO", "DO:"),
    ];
    let mut findings = find_code(tree, |_, code| {
        let called = ["todo!", "unimplemented!"]
            .into_iter()
            .find(|name| code.contains(name))?;
        Some(format!(
            "`{called}` is no answer: build it, or return an error that says what is missing"
        ))
    });
    for file in &tree.files {
        if file.path == "Cargo.lock" {
            continue;
        }
        for (line, text) in file.text.lines().enumerate() {
            if let Some(mark) = marks.iter().find(|mark| text.contains(**mark)) {
                findings.push(Finding::new(
                    &file.path,
                    line + 1,
                    format!("`{mark}` in the text: do it now or file it as an issue"),
                ));
            }
        }
    }
    findings
}

/// The file whose business is waiting, and the stub whose business is hanging.
const MAY_SLEEP: &[&str] = &["tests/src/wait.rs", "tests/nvml-stub/"];
const SLEEP_REASON: &str = "// sleeps: ";

/// Tests wait on a level with a deadline; they do not guess how long a thing takes.
pub(super) fn sleeping_tests(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if MAY_SLEEP.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        let lines: Vec<&str> = file.text.lines().collect();
        let explained = |line: usize| {
            let here = lines
                .get(line - 1)
                .is_some_and(|text| text.contains(SLEEP_REASON));
            let above = line >= 2
                && lines
                    .get(line - 2)
                    .is_some_and(|text| text.contains(SLEEP_REASON));
            here || above
        };
        let whole = file.path.starts_with("tests/");
        for (line, code) in file
            .code
            .lines()
            .enumerate()
            .map(|(at, code)| (at + 1, code))
        {
            let sleeps = ["thread::sleep(", "time::sleep(", "time::sleep_until("]
                .iter()
                .any(|call| code.contains(call));
            if sleeps && (whole || line > file.product_lines()) && !explained(line) {
                findings.push(Finding::new(
                    &file.path,
                    line,
                    format!(
                        "no sleeping in tests: wait on a condition with a deadline (tests/src/wait.rs); a peer that \
                         must delay says so with `{SLEEP_REASON}why`"
                    ),
                ));
            }
        }
    }
    findings
}

fn find_code(tree: &Tree, rule: impl Fn(&TextFile, &str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (line, code) in file.code.lines().enumerate() {
            if let Some(message) = rule(file, code) {
                findings.push(Finding::new(&file.path, line + 1, message));
            }
        }
    }
    findings
}

/// True when `word` stands alone in the code: `unsafe`, but not `unsafe_code`.
fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<(String, usize)> {
        findings
            .iter()
            .map(|finding| (finding.path.clone(), finding.line))
            .collect()
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        let tree = Tree::of(&[("a.rs", "//! Good.\n"), ("b.rs", "// Bad.\nfn b() {}\n")]);
        assert_eq!(lines(&opens_with_docs(&tree)), [("b.rs".to_owned(), 1)]);
    }

    #[test]
    fn vague_names_are_found_as_file_folder_and_inline() {
        let tree = Tree::of(&[
            ("a/src/plan/mod.rs", ""),
            ("a/src/utils.rs", ""),
            ("a/src/common/x.rs", ""),
            ("a/src/b.rs", "//! x\npub mod helpers {\n}\nmod errors;\n"),
            ("a/src/service_map.rs", ""),
        ]);
        let expect = [
            ("a/src/plan/mod.rs", 1),
            ("a/src/utils.rs", 1),
            ("a/src/common/x.rs", 1),
            ("a/src/b.rs", 2),
        ];
        assert_eq!(
            lines(&names(&tree)),
            expect.map(|(path, line)| (path.to_owned(), line))
        );
    }

    #[test]
    fn ignored_tests_are_found() {
        let text = "//! #[ignore]\n#[ignore]\n#[ignore = \"x\"]\n#[cfg_attr(not(unix), ignore)]\nlet ignore = 1;\n";
        let found = ignored_tests(&Tree::of(&[("a.rs", text)]));
        assert_eq!(
            found.iter().map(|finding| finding.line).collect::<Vec<_>>(),
            [2, 3, 4]
        );
    }

    #[test]
    fn unsafe_is_found_as_a_word_in_code() {
        let text = "#![forbid(unsafe_code)]\n// unsafe\nlet x = \"unsafe\";\nunsafe { f() }\n";
        let tree = Tree::of(&[
            ("agent/src/a.rs", text),
            ("tests/nvml-stub/src/lib.rs", text),
        ]);
        assert_eq!(
            lines(&unsafe_code(&tree)),
            [("agent/src/a.rs".to_owned(), 4)]
        );
    }

    #[test]
    fn unfinished_code_is_found() {
        let text = format!(
            "//! x\ntodo!()\n// {}: later\nunimplemented!()\nfn todo() {{}}\n",
            concat!("FIX", "ME")
        );
        let mut found = lines(&unfinished(&Tree::of(&[("a.rs", &text)])));
        found.sort();
        assert_eq!(
            found,
            [
                ("a.rs".to_owned(), 2),
                ("a.rs".to_owned(), 3),
                ("a.rs".to_owned(), 4)
            ]
        );
    }

    #[test]
    fn sleeping_is_found_in_tests_only() {
        let product = "//! x\nasync fn a() { tokio::time::sleep(d).await }\n";
        let unit = format!(
            "{product}#[cfg(test)]\nmod tests {{\n    fn b() {{ std::thread::sleep(d) }}\n}}\n"
        );
        let peer = "//! x\n// sleeps: the reply is late on purpose\ntokio::time::sleep(d).await;\n\ntokio::time::sleep(d).await;\n";
        let tree = Tree::of(&[
            ("agent/src/a.rs", &unit),
            ("tests/tests/drain.rs", product),
            ("tests/src/proxy.rs", peer),
            ("tests/src/wait.rs", product),
        ]);
        let expect = [
            ("agent/src/a.rs", 5),
            ("tests/tests/drain.rs", 2),
            ("tests/src/proxy.rs", 5),
        ];
        assert_eq!(
            lines(&sleeping_tests(&tree)),
            expect.map(|(path, line)| (path.to_owned(), line))
        );
    }
}
