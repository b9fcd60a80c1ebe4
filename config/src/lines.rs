//! Lines of a TOML text: of a byte, and of a key whose value was judged only after the text was read.
//!
//! Called by `section` for every problem, and by whoever looks at what a config names. Pure.

use toml::de::DeTable;

/// The line of a byte, from 1.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    let upto = &text.as_bytes()[..at.min(text.len())];
    1 + upto.iter().filter(|byte| **byte == b'\n').count()
}

/// The line where a key stands (`["hooks", "dir"]`), or the innermost of its tables that is there; the first where none is.
#[must_use]
pub fn line_of(text: &str, path: &[&str]) -> usize {
    let Ok(root) = DeTable::parse(text) else {
        return 1;
    };
    let mut at = 0;
    let mut within = Some(root.get_ref());
    for name in path {
        let found = within.and_then(|within| {
            within
                .iter()
                .find(|(known, _)| known.get_ref().as_ref() == *name)
        });
        if let Some((known, _)) = found {
            at = known.span().start;
        }
        within = found.and_then(|(_, value)| value.get_ref().as_table());
    }
    line_at(text, at)
}
