//! Address templates such as `note://{year}/{+path}`: the part of RFC 6570 that MCP servers use.
//!
//! `{name}` matches one segment (no `/`), `{+name}` anything.

use std::collections::BTreeMap;

/// The values of the placeholders in an address, or `None` if it does not match.
pub(super) fn matches(template: &str, uri: &str) -> Option<BTreeMap<String, String>> {
    let Some(open) = template.find('{') else {
        return (template == uri).then(BTreeMap::new);
    };
    let close = open + template[open..].find('}')?;
    let rest = uri.strip_prefix(&template[..open])?;
    let (name, after) = (&template[open + 1..close], &template[close + 1..]);
    let (name, whole) = match name.strip_prefix('+') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let ends = rest.char_indices().map(|(at, _)| at).skip(1).chain([rest.len()]);
    // The shortest value with which the rest matches; quadratic at worst, and addresses are short.
    for end in ends.filter(|end| *end > 0) {
        if !whole && rest[..end].contains('/') {
            break;
        }
        if let Some(mut values) = matches(after, &rest[end..]) {
            values.insert(name.to_owned(), percent_decoded(&rest[..end]));
            return Some(values);
        }
    }
    None
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, uri: &str, expected: Option<&[(&str, &str)]>) {
        let expected = expected.map(|values| {
            values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        });
        assert_eq!(matches(template, uri), expected, "{template} on {uri}");
    }

    #[test]
    fn placeholders_match_a_segment_or_anything() {
        check("note://all", "note://all", Some(&[]));
        check("note://all", "note://alle", None);
        check("note://{id}", "note://7", Some(&[("id", "7")]));
        check("note://{id}", "note://7/8", None);
        check("note://{id}", "note://", None);
        check("note://{+path}", "note://a/b/c", Some(&[("path", "a/b/c")]));
        check("db://{table}/{id}.json", "db://t/5.x.json", Some(&[("table", "t"), ("id", "5.x")]));
        check("note://{id}", "note://a%20b%2Fc%", Some(&[("id", "a b/c%")]));
        check("note://{id}", "note://é日", Some(&[("id", "é日")]));
        check("note://{broken", "note://x", None);
    }
}
