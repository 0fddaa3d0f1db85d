//! Texts that end in the middle of a possible secret. A secret is recognised by its start or by what precedes it; its
//! end shows only when a character follows that cannot be part of it.

use std::sync::LazyLock;

use regex::Regex;

/// Patterns that may continue after the end of the text. A group is the secret; without one it is the whole match.
static OPEN: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let (quote, value) = (r#"\\?["']?"#, "[A-Za-z0-9._~+/=-]");
    [
        format!(
            r"\b(?:sk-|ostler_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|npm_|eyJ){value}*$"
        ),
        format!(
            r"(?i)\b(?:authorization|x-api-key|x-auth-token){quote}\s*[:=]\s*{quote}(?:(?:bearer|basic|token)\s+)?({value}+)$"
        ),
        format!(r"(?i)\b(?:bearer|basic)\s+({value}+)$"),
        r"://[^/\s:@]+:([^/\s:@]+)$".to_owned(),
    ]
    .iter()
    .map(|pattern| Regex::new(pattern).expect("the patterns are valid"))
    .collect()
});

/// How many bytes at the end may belong to a secret.
pub(crate) fn end(text: &str) -> usize {
    let begun = OPEN.iter().filter_map(|pattern| {
        let found = pattern.captures(text)?;
        let secret = found.get(1).or_else(|| found.get(0))?;
        Some(text.len() - secret.start())
    });
    begun.max().unwrap_or(0).max(private_key(text))
}

/// A private key ends with its own footer.
fn private_key(text: &str) -> usize {
    let Some(begun) = text.rfind("-----BEGIN ") else { return 0 };
    let key = &text[begun..];
    let is_key = key.lines().next().is_some_and(|line| line.contains("PRIVATE KEY-----"));
    let is_over = key.match_indices("PRIVATE KEY-----").count() > 1;
    if is_key && !is_over { key.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::end;

    // Seen to fail without each of the patterns.
    #[test]
    fn an_unfinished_secret_at_the_end_is_recognised() {
        for (text, open) in [
            ("my key is sk-ant-abc", "sk-ant-abc"),
            ("my key is sk", ""),
            ("the risk-free", ""),
            ("Hello there, to be", ""),
            ("x ghp_0123", "ghp_0123"),
            ("x ghp_0123 y", ""),
            ("curl -H 'Authorization: Bearer abc", "abc"),
            ("curl -H \"x-api-key\": \"abc", "abc"),
            ("a bearer", ""),
            ("a bearer of", "of"),
            ("a bearer of news", ""),
            ("see https://user:pass", "pass"),
            ("see https://example.org", ""),
            ("-----BEGIN PRIVATE KEY-----\nabc\n", "-----BEGIN PRIVATE KEY-----\nabc\n"),
            ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n", ""),
            ("é", ""),
        ] {
            assert_eq!(&text[text.len() - end(text)..], open, "{text}");
        }
    }
}
