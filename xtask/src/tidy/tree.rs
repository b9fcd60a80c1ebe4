//! The clone's text as the tidy rules see it: paths, lines, code without comments and strings.
//!
//! Called by every rule. Reading from disk happens only in [`Tree::read`];
//! the rules' own tests make trees from plain text.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::mask::mask;
use crate::command;

/// All text files of the clone: tracked ones and new ones that git does not ignore.
pub(crate) struct Tree {
    /// By path.
    pub(crate) files: Vec<TextFile>,
}

/// One text file.
pub(crate) struct TextFile {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// For Rust: the text with comments and string contents blanked, same lines. Else empty.
    pub(crate) code: String,
}

impl Tree {
    /// Reads the clone at `root`; files that are not UTF-8 are no text and left out.
    ///
    /// # Errors
    /// When git cannot list the files or one cannot be read.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let list = command::stdout(Command::new("git").current_dir(root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let mut files = Vec::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            let full = root.join(path);
            if !full.is_file() {
                continue; // deleted but not yet committed
            }
            let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile::new(path, &text));
            }
        }
        Ok(Self { files })
    }

    /// A tree of plain text, for the rules' tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self {
            files: files
                .iter()
                .map(|(path, text)| TextFile::new(path, text))
                .collect(),
        }
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// One file by its path.
    pub(crate) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl TextFile {
    fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") {
            mask(text)
        } else {
            String::new()
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    /// How many lines are product code: those before the inline test module; none in a file of tests.
    pub(crate) fn product_lines(&self) -> usize {
        if self.is_all_tests() {
            return 0;
        }
        let lines: Vec<&str> = self.code.lines().collect();
        let test_module = (0..lines.len()).find(|&at| {
            lines[at].trim_end() == "#[cfg(test)]"
                && lines[at + 1..]
                    .iter()
                    .find(|line| !line.trim_start().starts_with("#["))
                    .is_some_and(|line| line.starts_with("mod ") && line.trim_end().ends_with('{'))
        });
        test_module.unwrap_or(lines.len())
    }

    /// A file that holds only tests: an integration test, or a test module in a file of its own.
    pub(crate) fn is_all_tests(&self) -> bool {
        let stem = self
            .path
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        self.path.starts_with("tests/tests/")
            || self.path.contains("/tests/") && !self.path.starts_with("tests/")
            || stem == "tests"
            || stem.ends_with("_tests")
    }

    /// Lines of code with their numbers from 1, product code only.
    pub(crate) fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .lines()
            .take(self.product_lines())
            .enumerate()
            .map(|(at, line)| (at + 1, line))
    }
}

#[cfg(test)]
mod tests {
    use super::TextFile;

    #[test]
    fn product_code_ends_at_the_inline_test_module() {
        let text =
            "#[cfg(test)]\nmod fixtures;\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let file = TextFile::new("agent/src/a.rs", text);
        assert_eq!(file.product_lines(), 3);
        assert_eq!(
            TextFile::new("agent/src/a/tests.rs", text).product_lines(),
            0
        );
        assert_eq!(
            TextFile::new("tests/tests/drain.rs", text).product_lines(),
            0
        );
        assert_eq!(
            TextFile::new("tests/src/proxy.rs", "fn a() {}\n").product_lines(),
            1
        );
    }
}
