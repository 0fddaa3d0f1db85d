//! Removes the parts of a text that differ in every run: dates, durations, ids, ports, names of temporary files. Pure.
//!
//! Requests are compared in this form. Ids and the like are also remembered, in their order: if two texts are equal
//! without them, the first id of one corresponds to the first of the other.

use std::sync::LazyLock;

use fancy_regex::Regex;
use serde_json::{Map, Value};

/// A text or value without the parts that change from run to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NormalizedValue {
    pub(crate) value: Value,
    /// The removed ids, addresses and temporary files, in their order.
    pub(crate) names: Vec<String>,
}

/// Removes the parts that change from run to run from every text in a value.
pub(crate) fn normal(value: &Value) -> NormalizedValue {
    let mut names = Vec::new();
    let value = walk(value, &mut names);
    NormalizedValue { value, names }
}

fn walk(value: &Value, names: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => Value::String(without(text, names)),
        Value::Array(items) => items.iter().map(|item| walk(item, names)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.clone(), walk(field, names)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// One group for each kind of part; the order matters where one could be part of another.
static CHANGING: LazyLock<Regex> = LazyLock::new(|| {
    let month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}";
    let clock = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?";
    let date = [
        format!(r"\b\d{{4}}-\d\d-\d\d(?:[T ]{clock}(?:Z|[+-]\d\d:?\d\d)?)?"),
        format!(
            r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}},? +)?{month} +\d{{1,2}}(?:,? +\d{{4}}\b)?(?:,? +{clock}(?: +[A-Z]{{3,4}})?(?: +\d{{4}}\b)?)?"
        ),
        format!(r"\b\d{{1,2}} {month} \d{{4}}(?: {clock}(?: [A-Z]{{3,4}})?)?"),
        r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b".to_owned(),
        // Seconds, milli-, micro- and nanoseconds since 1970.
        r"\b1\d{9}(?:\.\d+|\d{3}|\d{6}|\d{9})?\b".to_owned(),
    ];
    let id = [
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        r"\b(?:srvtoolu|toolu|msg|req)_[A-Za-z0-9_]{6,}",
        r"\b[0-9a-f]{7,64}\b",
    ];
    let part = r#"[^\s/"'`<>|:;,()\[\]{}\\]+"#;
    let file = format!(r"(?:<ostler:tmp>|(?<![\w.-])/(?:var/)?tmp)/{part}");
    let address = r"\b(?:127\.0\.0\.1|0\.0\.0\.0|localhost):\d{2,5}\b|\[::1?\]:\d{2,5}\b";
    let span = r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?)\b";
    let pattern = format!(
        "(?P<date>{})|(?P<file>{file})|(?P<id>{})|(?P<address>{address})|(?P<span>{span})",
        date.join("|"),
        id.join("|"),
    );
    Regex::new(&pattern).expect("our own pattern is a pattern")
});

fn without(text: &str, names: &mut Vec<String>) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut done = 0;
    // A pattern that gives up on a text leaves the rest as it is, on both sides.
    for found in CHANGING.captures_iter(text).map_while(Result::ok) {
        let kind = ["date", "file", "id", "address", "span"]
            .into_iter()
            .find_map(|kind| Some((kind, found.name(kind)?)));
        let Some((kind, place)) = kind else { continue };
        let (from, to) = (place.start(), place.end());
        let what = place.as_str();
        if kind == "id" && !is_id(what) {
            continue;
        }
        if matches!(kind, "file" | "id" | "address") {
            names.push(what.to_owned());
        }
        normal.push_str(&text[done..from]);
        normal.push_str(&format!("<{kind}>"));
        done = to;
    }
    normal.push_str(&text[done..]);
    normal
}

/// Plain numbers and words such as `defaced` are not ids.
fn is_id(what: &str) -> bool {
    let has_digit = what.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = what.bytes().any(|byte| byte.is_ascii_alphabetic());
    (has_digit && has_letter) || what.len() >= 32
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: &str, expected_names: &[&str]) {
        let NormalizedValue { value, names } = normal(&json!([text]));
        assert_eq!(
            (value, names.as_slice()),
            (
                json!([expected]),
                &expected_names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..]
            )
        );
    }

    #[test]
    fn times_are_removed_in_every_format() {
        for text in [
            "2026-11-16",
            "2026-11-16T03:04:05.678Z",
            "2026-11-16 03:04:05+01:00",
            "Mon Nov 16 02:55:13 UTC 2026",
            "Mon, Nov 16, 2026",
            "Nov 16 02:55",
            "November 16, 2026",
            "16 Nov 2026 02:55:13 GMT",
            "02:55:13.5",
            "1763261713",
            "1763261713123",
        ] {
            check(&format!("at {text}."), "at <date>.", &[]);
        }
        check("finished in 0.03s, 12 ms", "finished in <span>, <span>", &[]);
    }

    #[test]
    fn ids_files_and_addresses_are_removed_and_remembered() {
        let uuid = "0b2c3d4e-0000-4000-8000-1234567890ab";
        check(&format!("({uuid})"), "(<id>)", &[uuid]);
        check(
            "task b12ab34cd, call toolu_01AbCd",
            "task <id>, call <id>",
            &["b12ab34cd", "toolu_01AbCd"],
        );
        check("[main 1a2b3c4] fix", "[main <id>] fix", &["1a2b3c4"]);
        check("<ostler:tmp>/ostler-12/b.output", "<file>/b.output", &["<ostler:tmp>/ostler-12"]);
        check("`/tmp/tmp.Xy`", "`<file>`", &["/tmp/tmp.Xy"]);
        check("http://127.0.0.1:43211/x", "http://<address>/x", &["127.0.0.1:43211"]);
    }

    #[test]
    fn other_numbers_and_paths_stay() {
        for text in [
            "version 1.2.3 of 12345678 things",
            "defaced facade",
            "src/tmp/x and /srv/tmp/y",
            "example.com:8080",
            "in 3 steps, see page 12:30",
            "port 43211, 0.5 of it",
        ] {
            check(text, text, &[]);
        }
    }
}
