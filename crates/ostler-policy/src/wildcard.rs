//! Text patterns in which `*` stands for any text.

/// Whether the whole text matches a pattern in which `*` matches anything, also nothing.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some((_, after)) = left.split_once(piece) else { return false };
        left = after;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_matches_anything() {
        for (pattern, text, expected) in [
            ("a/*", "a/b/c", true),
            ("a/*", "a/", true),
            ("*.b/*", "a.b/x", true),
            ("*.b/*", "a.c/x", false),
            ("a", "a/", false),
            ("*", "anything", true),
            ("*a*a", "a", false),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
