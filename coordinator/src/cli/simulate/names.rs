//! What the runs of several configs are called, for people. Called by `play`.

use std::path::{Path, PathBuf};

/// What the runs of these configs are called: the stems of the files, and as much more of the paths as tells them apart.
pub(super) fn names(files: &[&Path]) -> Vec<String> {
    let longest = files.iter().map(|path| path.components().count()).max();
    let mut names: Vec<String> = files.iter().map(|path| ending(path, 1)).collect();
    let again = |names: &[String], at: usize| {
        names
            .iter()
            .enumerate()
            .any(|(n, name)| n != at && *name == names[at])
    };
    for parts in 2..=longest.unwrap_or(1) {
        let same: Vec<usize> = (0..names.len()).filter(|at| again(&names, *at)).collect();
        for at in same {
            names[at] = ending(files[at], parts);
        }
    }
    let same: Vec<usize> = (0..names.len()).filter(|at| again(&names, *at)).collect();
    for at in same {
        names[at] = files[at].display().to_string();
    }
    // The same file twice.
    let same: Vec<usize> = (0..names.len()).filter(|at| again(&names, *at)).collect();
    for (n, at) in same.into_iter().enumerate() {
        names[at] = format!("{} ({})", names[at], n + 1);
    }
    names
}

/// The last parts of a path, without the ending of the file's name.
fn ending(path: &Path, parts: usize) -> String {
    let path = path.with_extension("");
    let all: Vec<_> = path.components().collect();
    let some = all.iter().skip(all.len().saturating_sub(parts));
    some.collect::<PathBuf>().display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_told_apart_by_their_paths() {
        let named = |files: &[&str]| names(&files.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(named(&["now.toml", "b/maybe.toml"]), ["now", "maybe"]);
        assert_eq!(
            named(&["a/x.toml", "/b/x.toml", "c/y.toml"]),
            ["a/x", "b/x", "y"]
        );
        assert_eq!(named(&["x.toml", "b/x.toml"]), ["x", "b/x"]);
        assert_eq!(named(&["p/a/x.toml", "q/a/x.toml"]), ["p/a/x", "q/a/x"]);
        assert_eq!(named(&["x.toml", "x.cfg"]), ["x.toml", "x.cfg"]);
        assert_eq!(named(&["x.toml", "x.toml"]), ["x.toml (1)", "x.toml (2)"]);
    }
}
