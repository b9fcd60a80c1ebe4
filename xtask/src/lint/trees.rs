//! The lint step that reads dependency trees: one TLS provider, a core without I/O.
//!
//! Called by `lint`. Reads what cargo says; builds nothing.

use anyhow::Result;

use crate::{command, workspace::FEATURES};

/// Crates that bring a second TLS provider.
const SECOND_PROVIDERS: &[&str] = &["aws-lc-sys", "aws-lc-rs", "openssl-sys", "native-tls"];

/// What the core must not depend on: I/O, the outside systems, chance and clocks.
const NOT_IN_CORE: &[&str] = &[
    "tokio",
    "async-std",
    "smol",
    "mio",
    "tonic",
    "prost",
    "hyper",
    "axum",
    "kube",
    "kube-client",
    "k8s-openapi",
    "drover-aws",
    "drover-proto",
    "rusqlite",
    "rand",
    "rand_core",
    "fastrand",
    "getrandom",
    "chrono",
    "time",
    "jiff",
    "nix",
    "rustix",
    "sysinfo",
    "tracing",
    "fail",
];
const NOT_IN_CORE_PREFIXES: &[&str] = &["aws-", "tokio-", "rustls"];

/// Nothing in the workspace may depend on a second TLS provider.
///
/// # Errors
/// When cargo cannot be run.
pub(super) fn one_tls_provider() -> Result<Vec<String>> {
    let tree = command::stdout(command::cargo().args([
        "tree",
        "--workspace",
        "--locked",
        "--features",
        FEATURES,
        "--target",
        "all",
        "--edges",
        "normal,build,dev",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]))?;
    let found = names(&tree)
        .filter(|name| SECOND_PROVIDERS.contains(name))
        .collect::<std::collections::BTreeSet<_>>();
    Ok(found
        .into_iter()
        .map(|name| {
            format!(
                "Cargo.lock: {name} brings a second TLS provider; `cargo tree -i {name}` says who asks for it, \
                 turn that feature off and use ring"
            )
        })
        .collect())
}

/// The core crate decides with plain values only.
///
/// # Errors
/// When cargo cannot be run.
pub(super) fn pure_core() -> Result<Vec<String>> {
    let tree = command::stdout(command::cargo().args([
        "tree",
        "--package",
        "drover-core",
        "--locked",
        "--edges",
        "normal",
        "--target",
        "all",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]))?;
    Ok(impure(&tree))
}

fn impure(tree: &str) -> Vec<String> {
    names(tree)
        .filter(|name| {
            NOT_IN_CORE.contains(name) || NOT_IN_CORE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .map(|name| {
            format!(
                "coordinator/core/Cargo.toml: drover-core depends on {name}; the core takes time, chance and \
                 the outside world as values, so move that code behind a port"
            )
        })
        .collect()
}

/// Package names of `cargo tree --prefix none --format {p}`.
fn names(tree: &str) -> impl Iterator<Item = &str> {
    tree.lines()
        .filter_map(|line| line.split_whitespace().next())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_clock_in_the_core_is_found() {
        let tree = "drover-core v0.1.0 (/x/coordinator/core)\nserde v1.0.0\njiff v0.2.24\njiff v0.2.24 (*)\n";
        let found = super::impure(tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("depends on jiff"), "{found:?}");
        assert!(super::impure("drover-core v0.1.0\nserde v1.0.0\nthiserror v2.0.0\n").is_empty());
    }

    #[test]
    fn a_crate_of_a_family_is_found() {
        assert_eq!(
            super::impure("drover-core v0.1.0\naws-sdk-ec2 v1.274.0\n").len(),
            1
        );
    }
}
