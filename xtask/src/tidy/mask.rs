//! Blanks comments and string contents in Rust text, so that rules see code only.
//!
//! Called by `tree`. Not a parser: it knows the token forms that can hide
//! other text (comments, strings, characters) and nothing else. Lines and
//! columns stay where they are.

/// The text with the contents of comments, strings and characters replaced by spaces.
pub(super) fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = hidden_end(&chars, at);
        if end > at {
            for &c in &chars[at..end] {
                out.push(if c == '\n' { '\n' } else { ' ' });
            }
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// The end of the comment, string or character that begins at `at`; `at` itself when none does.
fn hidden_end(chars: &[char], at: usize) -> usize {
    let next = |by: usize| chars.get(at + by).copied();
    match chars[at] {
        '/' if next(1) == Some('/') => chars[at..]
            .iter()
            .position(|&c| c == '\n')
            .map_or(chars.len(), |len| at + len),
        '/' if next(1) == Some('*') => block_comment_end(chars, at),
        '"' => quoted_end(chars, at + 1, '"'),
        'r' | 'b' | 'c' if !follows_word(chars, at) => prefixed_end(chars, at),
        // A character, not a lifetime: 'x' or '\...'.
        '\'' if next(1) == Some('\\') || next(2) == Some('\'') => quoted_end(chars, at + 1, '\''),
        _ => at,
    }
}

fn follows_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

/// Strings with a prefix: r"", r#""#, b"", br"", c"", b''.
fn prefixed_end(chars: &[char], at: usize) -> usize {
    let mut open = at + 1;
    let mut raw = chars[at] == 'r';
    if !raw && chars.get(open) == Some(&'r') {
        raw = true;
        open += 1;
    }
    if !raw {
        return match chars.get(open) {
            Some('"') => quoted_end(chars, open + 1, '"'),
            Some('\'') if chars[at] == 'b' => quoted_end(chars, open + 1, '\''),
            _ => at,
        };
    }
    let hashes = chars[open.min(chars.len())..]
        .iter()
        .take_while(|&&c| c == '#')
        .count();
    if chars.get(open + hashes) != Some(&'"') {
        return at;
    }
    let body = open + hashes + 1;
    (body..chars.len())
        .find(|&quote| {
            chars[quote] == '"'
                && chars[quote + 1..].iter().take_while(|&&c| c == '#').count() >= hashes
        })
        .map_or(chars.len(), |quote| quote + 1 + hashes)
}

fn quoted_end(chars: &[char], mut at: usize, quote: char) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn block_comment_end(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn only_code_is_left() {
        for (text, expect) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x \" y", z)"#, "f(        , z)"),
            (r##"f(r#"a " b"#, c)"##, "f(          , c)"),
            (r#"f(b"ab", c"d", br"e")"#, "f(     ,     ,      )"),
            (
                "fn f<'a>(x: &'a str) -> char { 'y' }",
                "fn f<'a>(x: &'a str) -> char {     }",
            ),
            (r"['\'', '\n', '\u{1F}'] x", "[    ,     ,         ] x"),
            ("r#type + brr", "r#type + brr"),
        ] {
            assert_eq!(mask(text).trim_end(), expect.trim_end(), "{text}");
        }
    }

    #[test]
    fn lines_stay_where_they_are() {
        let text = "a \"x\ny\" b\n/* c\nd */ e\n";
        assert_eq!(mask(text).lines().count(), text.lines().count());
        assert_eq!(mask(text).lines().nth(3).unwrap().trim(), "e");
    }
}
