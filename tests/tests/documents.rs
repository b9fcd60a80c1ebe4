//! The commands that the documents show exist, with their flags, in the programs as built.
//!
//! Run by `cargo xtask test`, which names the programs. Runs only `--help`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One shown command: where it stands, its words, without the prompt.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    line: usize,
    words: Vec<String>,
}

/// Commands of `drover` and `drover-agent` in code blocks, fenced or indented. A backslash carries on to the next line;
/// what stands behind a pipe, `&`, `>` or `#` is the shell's.
fn shown(text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let mut fenced = false;
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if !fenced && !line.starts_with("    ") {
            goes_on = false;
            continue;
        }
        let code = line
            .trim()
            .trim_start_matches("$ ")
            .trim_start_matches("sudo ");
        let words: Vec<String> = code
            .split_whitespace()
            .take_while(|word| !word.starts_with(['|', '&', '>', '<', '#', ';', '\\']))
            .map(str::to_owned)
            .collect();
        let program = words.first().and_then(|word| word.rsplit('/').next());
        if goes_on {
            if let Some(last) = found.last_mut() {
                last.words.extend(words);
            }
        } else if matches!(program, Some("drover" | "drover-agent")) {
            found.push(Shown {
                line: at + 1,
                words,
            });
        } else {
            continue;
        }
        goes_on = code.ends_with('\\');
    }
    found
}

/// What is wrong with a shown command, if anything.
fn fault(shown: &Shown, program: &Path) -> Option<String> {
    let plain: Vec<&String> = shown.words[1..]
        .iter()
        .take_while(|word| !word.starts_with('-'))
        .collect();
    let output = match Command::new(program).args(&plain).arg("--help").output() {
        Ok(output) => output,
        Err(error) => return Some(format!("{} cannot be started: {error}", program.display())),
    };
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        return Some(format!("`{}` does not exist: {why}", shown.words.join(" ")));
    }
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let known: Vec<&str> = help
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '[' | ']' | '<' | '`'))
        .collect();
    shown.words[1..]
        .iter()
        .filter(|word| word.starts_with("--"))
        .map(|word| word.split('=').next().unwrap_or_default())
        .find(|flag| *flag != "--" && !known.contains(flag))
        .map(|flag| format!("`{}` has no flag {flag}", shown.words.join(" ")))
}

fn program(variable: &str) -> PathBuf {
    std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} is not set: run the tests with `cargo xtask test`"))
        .into()
}

/// The documents that describe the present, by their path from the root.
fn documents(root: &Path) -> Vec<String> {
    let mut found = vec!["README.md".to_owned(), "ARCHITECTURE.md".to_owned()];
    let docs = std::fs::read_dir(root.join("docs"))
        .into_iter()
        .flatten()
        .flatten();
    found.extend(docs.map(|entry| format!("docs/{}", entry.file_name().to_string_lossy())));
    found.retain(|name| name.ends_with(".md"));
    found
}

#[test]
fn the_commands_of_the_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests lie below the root");
    let mut faults = Vec::new();
    for name in documents(root) {
        let Ok(text) = std::fs::read_to_string(root.join(&name)) else {
            continue;
        };
        for command in shown(&text) {
            let variable = if command.words[0].ends_with("drover-agent") {
                "DROVER_AGENT_BIN"
            } else {
                "DROVER_BIN"
            };
            if let Some(fault) = fault(&command, &program(variable)) {
                faults.push(format!("{name}:{}: {fault}", command.line));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn shown_commands_are_found_as_people_write_them() {
    let text = "Run drover serve.\n```sh\n$ drover nodes list -o json | jq .\nsudo target/debug/drover-agent run \\\n  --config a.toml &\n\
                cargo build\n```\n    drover tokens create --uses 2 # two\ndrover prose\n";
    let found: Vec<(usize, String)> = shown(text)
        .into_iter()
        .map(|it| (it.line, it.words.join(" ")))
        .collect();
    let expect = [
        (3, "drover nodes list -o json"),
        (4, "target/debug/drover-agent run --config a.toml"),
        (8, "drover tokens create --uses 2"),
    ];
    assert_eq!(found, expect.map(|(line, words)| (line, words.to_owned())));
}

#[test]
fn a_command_or_flag_that_does_not_exist_is_a_fault() {
    let shown = |words: &str| Shown {
        line: 1,
        words: words.split(' ').map(str::to_owned).collect(),
    };
    let agent = program("DROVER_AGENT_BIN");
    assert_eq!(fault(&shown("drover-agent gpu-probe"), &agent), None);
    assert!(
        fault(&shown("drover-agent frobnicate"), &agent)
            .is_some_and(|it| it.contains("does not exist"))
    );
    assert!(
        fault(&shown("drover-agent gpu-probe --frob"), &agent)
            .is_some_and(|it| it.contains("no flag --frob"))
    );
}
