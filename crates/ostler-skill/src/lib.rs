//! Files with a YAML head between two lines of `---` and a text body for the model.
//!
//! Skills, commands, agents and styles are such files. The engine reads them for sessions and the server for tasks;
//! neither depends on the other, so the format is here. Each decides for itself which files it opens.
#![warn(missing_docs)]

use std::io::{BufRead as _, BufReader, Read};

use serde_json::{Map, Value};

/// The size limit of a head, in bytes.
const LONGEST_HEAD: u64 = 64 * 1024;
/// The size limit of a file, in bytes.
const LONGEST_FILE: u64 = 1024 * 1024;
const FENCE: &str = "---";

/// A parsed file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The fields of the head.
    pub head: Head,
    /// The text for the model.
    pub body: String,
}

/// The fields of a head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head(pub Map<String, Value>);

impl Head {
    /// A field with one value; numbers and booleans are converted to text.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
            // YAML reads `[file]`, which people write as an argument hint, as a list.
            Value::Array(list) => Some(format!("[{}]", plain(list).join(", "))),
            _ => None,
        }
    }

    /// A field with several values: a list, or a string with commas.
    pub fn list(&self, name: &str) -> Option<Vec<String>> {
        let list = match self.0.get(name)? {
            Value::Array(list) => plain(list),
            Value::String(text) => split(text),
            _ => return None,
        };
        Some(list)
    }

    /// A boolean field.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.0.get(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }
}

fn plain(list: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    list.iter().map(text).collect()
}

/// Splits a list at commas that are not inside parentheses: `Bash(a, b), Read`.
pub fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Reads only the head of an open file.
///
/// # Errors
/// A message, if the file cannot be read or the head is invalid.
pub fn head(file: impl Read) -> Result<Head, String> {
    let mut lines = BufReader::new(file.take(LONGEST_HEAD));
    let mut line = || -> Result<String, String> {
        let mut bytes = Vec::new();
        lines.read_until(b'\n', &mut bytes).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    if line()?.trim_start_matches('\u{feff}').trim_end() != FENCE {
        return Ok(Head::default());
    }
    let mut text = String::new();
    loop {
        let next = line()?;
        if next.is_empty() {
            return Err(format!(
                "the head that starts with {FENCE} has no end; close it with a line of {FENCE}"
            ));
        }
        if next.trim_end() == FENCE {
            return parse(&text);
        }
        text.push_str(&next);
    }
}

/// Reads a whole open file.
///
/// # Errors
/// A message, if the file cannot be read, is too long, or its head is invalid.
pub fn read(file: impl Read) -> Result<Document, String> {
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(|it| it.to_string())?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(format!("it is longer than {LONGEST_FILE} bytes"));
    }
    document(&String::from_utf8_lossy(&bytes))
}

/// Parses a text.
///
/// # Errors
/// A message, if the head has no end or is invalid.
pub fn document(text: &str) -> Result<Document, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some(FENCE) {
        return Ok(Document { head: Head::default(), body: text.to_owned() });
    }
    let mut head = String::new();
    for line in lines.by_ref() {
        if line.trim_end() == FENCE {
            return Ok(Document { head: parse(&head)?, body: lines.collect() });
        }
        head.push_str(line);
    }
    Err(format!("the head that starts with {FENCE} has no end; close it with a line of {FENCE}"))
}

fn parse(text: &str) -> Result<Head, String> {
    if text.trim().is_empty() {
        return Ok(Head::default());
    }
    // A head needs no anchors and aliases, and they can be used to exhaust memory.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_aliases: 16, max_events: 10_000 },
    };
    match serde_saphyr::from_str_with_options::<Option<Map<String, Value>>>(text, options) {
        Ok(map) => Ok(Head(map.unwrap_or_default())),
        // People write `description: Use when: x`, which is not valid YAML.
        Err(error) => by_lines(text).ok_or_else(|| {
            let error = error.to_string();
            format!("its head is not YAML: {}", error.lines().next().unwrap_or_default())
        }),
    }
}

/// Reads a head whose lines are all `name: value`.
fn by_lines(text: &str) -> Option<Head> {
    let mut map = Map::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (name, value) = line.split_once(':')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let value = match value.trim() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            value => Value::String(unquoted(value).to_owned()),
        };
        map.insert(name.to_owned(), value);
    }
    Some(Head(map))
}

fn unquoted(text: &str) -> &str {
    let within = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn head_of(text: &str) -> Head {
        document(&format!("---\n{text}\n---\nbody\n")).unwrap().head
    }

    #[test]
    fn a_file_without_a_head_is_all_body() {
        let plain = document("# Title\n---\nno head").unwrap();
        assert_eq!((plain.head, plain.body.as_str()), (Head::default(), "# Title\n---\nno head"));
        let empty = document("---\r\n---\r\nrest").unwrap();
        assert_eq!((empty.head, empty.body.as_str()), (Head::default(), "rest"));
    }

    #[test]
    fn fields_are_read_in_the_ways_people_write_them() {
        let head = head_of("name: a\ntools: Bash(git log, git diff), Read\nn: 3\non: 'true'");
        assert_eq!(head.text("name").as_deref(), Some("a"));
        assert_eq!(head.list("tools").unwrap(), ["Bash(git log, git diff)", "Read"]);
        assert_eq!(head.text("n").as_deref(), Some("3"));
        assert_eq!(head.flag("on"), Some(true));
        let head = head_of("tools:\n  - Read\n  - Grep\nargument-hint: [file]");
        assert_eq!(head.list("tools").unwrap(), ["Read", "Grep"]);
        assert_eq!(head.text("argument-hint").as_deref(), Some("[file]"));
    }

    #[test]
    fn a_colon_in_a_value_is_accepted_and_invalid_yaml_is_not() {
        let head = head_of("description: Use when: x\nname: \"b\"");
        assert_eq!(head.text("description").as_deref(), Some("Use when: x"));
        assert_eq!(head.text("name").as_deref(), Some("b"));
        let error = document("---\n- a\n  b: [\n---\n").unwrap_err();
        assert!(error.contains("not YAML"), "{error}");
        assert!(document("---\nname: a\n").unwrap_err().contains("has no end"));
    }

    #[test]
    fn nested_yaml_aliases_do_not_exhaust_memory() {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (this, last) in ["b", "c", "d", "e", "f", "g", "h", "i"].iter().zip("abcdefgh".chars())
        {
            text.push_str(&format!(
                "{this}: &{this} [{}]\n",
                vec![format!("*{last}"); 10].join(", ")
            ));
        }
        // Falls back to reading line by line.
        let head = head_of(text.trim_end());
        assert_eq!(head.text("b").unwrap(), format!("&b [{}]", ["*a"; 10].join(", ")));
    }

    #[test]
    fn nested_values_are_preserved() {
        let head = head_of("mcpServers:\n  - known\n  - own: {command: x}");
        assert_eq!(head.0["mcpServers"], json!(["known", {"own": {"command": "x"}}]));
    }

    #[test]
    fn the_head_of_a_long_file_is_read_without_the_rest() {
        let long = format!("---\nname: x\n---\n{}", "y".repeat(2_000_000));
        assert_eq!(head(long.as_bytes()).unwrap().text("name").as_deref(), Some("x"));
        assert!(read(long.as_bytes()).unwrap_err().contains("longer than"));
    }
}
