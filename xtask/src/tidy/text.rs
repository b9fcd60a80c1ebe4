//! Rules on every text file: nothing of one developer's machine, no registry's host.
//!
//! Called by `tidy`. What is searched for is put together from pieces, so that
//! this file does not find itself.

use super::{Finding, Tree};

const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/Use", "rs/"),
];

const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("maven", ".org"),
];

/// Absolute paths that exist on one machine only.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    find(tree, |line| {
        let path = MACHINE_PATHS
            .iter()
            .find(|path| starts_a_path(line, path))?;
        Some(format!(
            "`{path}` is a path of one machine: derive it, or use one that every host has"
        ))
    })
}

/// Package registries are their clients' business; a mirror must do as well.
pub(super) fn registry_hosts(tree: &Tree) -> Vec<Finding> {
    find(tree, |line| {
        let host = REGISTRY_HOSTS.iter().find(|host| line.contains(**host))?;
        Some(format!(
            "names the package registry {host}: name the package, the client knows its registry"
        ))
    })
}

fn find(tree: &Tree, rule: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| !file.path.ends_with("Cargo.lock"))
    {
        for (at, line) in file.text.lines().enumerate() {
            if let Some(message) = rule(line) {
                findings.push(Finding::new(&file.path, at + 1, message));
            }
        }
    }
    findings
}

/// True when the path begins there, and is not the tail of a longer one (`src/work/`).
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at].ends_with(|c: char| {
            c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '$' | '~' | '*')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_machine_are_found() {
        let text = format!(
            "a = \"{0}x\"\nb = \"src{0}x\"\nc = \"/var/lib/drover\"\n{1}.ssh\n",
            MACHINE_PATHS[0], MACHINE_PATHS[1]
        );
        let found = machine_paths(&Tree::of(&[("a.toml", &text), ("Cargo.lock", &text)]));
        assert_eq!(
            found.iter().map(|finding| finding.line).collect::<Vec<_>>(),
            [1, 4]
        );
    }

    #[test]
    fn registry_hosts_are_found() {
        let text = format!(
            "pip install -i https://{}/simple moto\npip install moto\n",
            REGISTRY_HOSTS[1]
        );
        assert_eq!(registry_hosts(&Tree::of(&[("a.sh", &text)])).len(), 1);
    }
}
