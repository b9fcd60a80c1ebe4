//! The rule on a file's length: about 250 lines of product code, never more than 500.
//!
//! Called by `tidy`.

use super::{Finding, Tree};

const LIMIT: usize = 500;
const AIM: usize = 250;

/// Files over the limit.
pub(super) fn too_long(tree: &Tree) -> Vec<Finding> {
    lengths(tree)
        .filter(|(_, lines)| *lines > LIMIT)
        .map(|(path, lines)| {
            let message = format!(
                "{lines} lines of product code, at most {LIMIT}: find the seam and move one concern to a file of its own"
            );
            Finding::new(path, LIMIT + 1, message)
        })
        .collect()
}

/// Files over the aim, longest first, as notes.
pub(super) fn long(tree: &Tree) -> Vec<String> {
    let mut long: Vec<_> = lengths(tree).filter(|(_, lines)| *lines > AIM).collect();
    long.sort_by_key(|&(_, lines)| std::cmp::Reverse(lines));
    long.into_iter()
        .map(|(path, lines)| format!("{path}: {lines} lines of product code, aim at {AIM}"))
        .collect()
}

fn lengths(tree: &Tree) -> impl Iterator<Item = (&str, usize)> {
    tree.rust()
        .map(|file| (file.path.as_str(), file.product_lines()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    // x\n".repeat(600)
        );
        let fits = format!("{}{tests}", "fn a() {}\n".repeat(500));
        let over = format!("{}{tests}", "fn a() {}\n".repeat(501));
        let tree = Tree::of(&[("a/src/fits.rs", &fits), ("a/src/over.rs", &over)]);
        let found = too_long(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "a/src/over.rs");
        assert_eq!(long(&tree).len(), 2);
        assert!(long(&tree)[0].starts_with("a/src/over.rs: 501 lines"));
    }
}
