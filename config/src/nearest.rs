//! The known key that somebody meant who wrote an unknown one. Pure.
//!
//! Called by `tables` for keys, and by whoever knows which values there are.

/// The known key at an edit distance of at most 2.
#[must_use]
pub fn nearest<'k>(text: &str, known: &[&'k str]) -> Option<&'k str> {
    let (distance, key) = known
        .iter()
        .map(|key| (edits(text.as_bytes(), key.as_bytes()), *key))
        .min()?;
    (distance <= 2).then_some(key)
}

/// Levenshtein's distance, one row at a time.
fn edits(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
