//! Long words of a provider are said once: where an explanation comes to them again it says "as above".
//!
//! Called by `explain`. Pure.

/// Words of so many bytes are not said twice.
const LONG: usize = 48;

/// The same lines, with long words that an earlier line has said replaced.
pub(super) fn once(lines: Vec<String>) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut shown: Vec<String> = Vec::new();
    for line in lines {
        let short = shortened(&line, &said);
        said.push(line);
        if !shown.contains(&short) {
            shown.push(short);
        }
    }
    shown
}

/// From the first point on from which everything was said before.
fn shortened(line: &str, said: &[String]) -> String {
    let points = [": ", " ("].into_iter().flat_map(|mark| {
        let ends = line.match_indices(mark);
        ends.map(move |(at, _)| at + mark.len())
    });
    let mut points: Vec<usize> = points.collect();
    points.sort_unstable();
    // What it is about stays; so does what failed, in a line that tells when.
    let dated = line.starts_with(|first: char| first.is_ascii_digit());
    let kept = usize::from(dated || points.len() > 1);
    for at in points.into_iter().skip(kept) {
        let (before, rest) = line.split_at(at);
        let (rest, close) = match rest.strip_suffix(')') {
            // Opened before these words, or by them.
            Some(inner) if before.matches('(').count() > before.matches(')').count() => {
                (inner, ")")
            }
            _ => (rest, ""),
        };
        if rest.len() >= LONG && said.iter().any(|line| line.contains(rest)) {
            return format!("{before}as above{close}");
        }
    }
    line.to_owned()
}
