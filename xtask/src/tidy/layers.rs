//! The layers of the coordinator and its core: a file uses only lower ones.
//!
//! Called by `tidy`. Reads the paths that begin with `crate::` and `super::`
//! in product code; tests may reach across, they put things together.

use super::{Finding, Tree, tree::TextFile};

/// One top-level module of a crate and what it may use besides lower layers.
struct Layer {
    module: &'static str,
    number: u8,
    /// Modules of the same layer that it may use.
    also: &'static [&'static str],
    /// Lower modules that it may not use.
    never: &'static [&'static str],
}

const fn layer(module: &'static str, number: u8) -> Layer {
    Layer {
        module,
        number,
        also: &[],
        never: &[],
    }
}

/// The core: the model decides nothing, the rules know no planner.
const CORE: &[Layer] = &[layer("model", 0), layer("rules", 1), layer("planner", 2)];

const COORDINATOR: &[Layer] = &[
    layer("world", 3),
    layer("config", 3),
    layer("files", 3),
    // Records are what the ports store, and hold a few words of theirs.
    Layer {
        module: "records",
        number: 3,
        also: &["ports"],
        never: &[],
    },
    Layer {
        module: "ports",
        number: 3,
        also: &["records"],
        never: &[],
    },
    layer("control", 4),
    layer("adapters", 4),
    layer("serve", 5),
    layer("sim", 5),
    Layer {
        module: "cli",
        number: 5,
        // `drover simulate` asks no coordinator.
        also: &["sim"],
        never: &["control", "adapters", "ports", "records", "config", "world"],
    },
    layer("app", 6),
];

/// The coordinator's modules.
pub(super) fn coordinator(tree: &Tree) -> Vec<Finding> {
    check(tree, "coordinator/src/", COORDINATOR)
}

/// The core's modules.
pub(super) fn core(tree: &Tree) -> Vec<Finding> {
    check(tree, "coordinator/core/src/", CORE)
}

fn check(tree: &Tree, src: &str, layers: &[Layer]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some(inner) = file.path.strip_prefix(src) else {
            continue;
        };
        let module = inner
            .split('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        if matches!(module, "lib" | "main") {
            continue;
        }
        let Some(from) = layers.iter().find(|layer| layer.module == module) else {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("`{module}` has no layer: give it one in xtask/src/tidy/layers.rs and in ARCHITECTURE.md"),
            ));
            continue;
        };
        for (line, used) in used_modules(file, inner) {
            let Some(to) = layers.iter().find(|layer| layer.module == used) else {
                continue;
            };
            if !allowed(from, to) {
                findings.push(Finding::new(&file.path, line, refusal(from, to)));
            }
        }
    }
    findings
}

fn allowed(from: &Layer, to: &Layer) -> bool {
    let same = from.module == to.module || from.also.contains(&to.module);
    let lower = to.number < from.number && !from.never.contains(&to.module);
    same || lower
}

fn refusal(from: &Layer, to: &Layer) -> String {
    format!(
        "{} (layer {}) must not use {} (layer {}): put a trait in ports, or move the shared part below both",
        from.module, from.number, to.module, to.number
    )
}

/// The top-level modules of its own crate that the file's product code names, with lines.
fn used_modules(file: &TextFile, inner: &str) -> Vec<(usize, String)> {
    let code: String = file
        .code
        .lines()
        .take(file.product_lines())
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if !continues_path(&code[..at]) {
            heads(&code, at + "crate::".len(), &mut used);
        }
    }
    // `super::` reaches the crate's root after as many steps as the file lies deep.
    let depth = inner.split('/').count();
    let climb = "super::".repeat(depth);
    for (at, _) in code.match_indices(&climb) {
        if !continues_path(&code[..at]) {
            heads(&code, at + climb.len(), &mut used);
        }
    }
    used
}

/// True when the path goes on to the left, as in `drover_crate::` or `self::crate::`.
fn continues_path(before: &str) -> bool {
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$')
}

/// The first name of the path at `at`, or of each path in a braced list there.
fn heads(code: &str, at: usize, used: &mut Vec<(usize, String)>) {
    let mut take = |start: usize| {
        let name: String = code[start..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if !name.is_empty() {
            used.push((code[..start].matches('\n').count() + 1, name));
        }
    };
    if !code[at..].starts_with('{') {
        take(at);
        return;
    }
    let mut depth = 0;
    let mut expects_name = false;
    for (offset, c) in code[at..].char_indices() {
        match c {
            '{' => {
                depth += 1;
                expects_name = depth == 1;
            }
            '}' if depth == 1 => return,
            '}' => depth -= 1,
            ',' => expects_name = depth == 1,
            c if c.is_whitespace() => {}
            _ if expects_name => {
                take(at + offset);
                expects_name = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, text: &str) -> Vec<usize> {
        coordinator(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn higher_layers_are_refused() {
        for (path, text, expect) in [
            (
                "coordinator/src/records.rs",
                "use crate::control::x;\n",
                vec![1],
            ),
            (
                "coordinator/src/world.rs",
                "use crate::ports::Clock;\n",
                vec![1],
            ),
            (
                "coordinator/src/control/cycle.rs",
                "use crate::ports::Store;\nuse crate::records::Row;\n",
                vec![],
            ),
            (
                "coordinator/src/control/cycle.rs",
                "use crate::adapters::store;\n",
                vec![1],
            ),
            (
                "coordinator/src/control.rs",
                "use crate::{\n    ports::{Clock, adapters},\n    serve,\n};\n",
                vec![3],
            ),
            (
                "coordinator/src/adapters/link.rs",
                "fn a() { crate::control::run() }\n",
                vec![1],
            ),
            (
                "coordinator/src/adapters/link.rs",
                "use crate::adapters::ca;\n",
                vec![],
            ),
            (
                "coordinator/src/ports.rs",
                "use crate::records::Row;\n",
                vec![],
            ),
            (
                "coordinator/src/records.rs",
                "use crate::ports::Store;\n",
                vec![],
            ),
            (
                "coordinator/src/cli/nodes.rs",
                "use crate::control::x;\nuse crate::cli::out;\n",
                vec![1],
            ),
            (
                "coordinator/src/cli/nodes.rs",
                "use drover_proto::v1;\nuse drover_core::planner;\n",
                vec![],
            ),
            (
                "coordinator/src/serve/grpc.rs",
                "use super::super::app::x;\n",
                vec![1],
            ),
            (
                "coordinator/src/serve.rs",
                "use super::control::x;\nuse super::cli::x;\n",
                vec![2],
            ),
            (
                "coordinator/src/app.rs",
                "use crate::{adapters, cli, control, serve};\n",
                vec![],
            ),
            ("coordinator/src/main.rs", "use crate::app::x;\n", vec![]),
        ] {
            assert_eq!(breaches(path, text), expect, "{path}: {text}");
        }
    }

    #[test]
    fn comments_strings_and_tests_do_not_count() {
        let text = "//! crate::app\nlet x = \"crate::app\";\n#[cfg(test)]\nmod tests {\n    use crate::app;\n}\n";
        assert!(breaches("coordinator/src/control.rs", text).is_empty());
    }

    #[test]
    fn a_module_without_a_layer_is_found() {
        assert_eq!(breaches("coordinator/src/stuff/x.rs", "//! x\n"), [1]);
    }

    #[test]
    fn the_model_knows_no_planner() {
        let tree = Tree::of(&[
            (
                "coordinator/core/src/model/node.rs",
                "use crate::planner::plan;\n",
            ),
            (
                "coordinator/core/src/planner/grow.rs",
                "use crate::{model::Node, rules};\n",
            ),
        ]);
        assert_eq!(core(&tree).len(), 1);
    }
}
