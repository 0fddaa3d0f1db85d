//! Public types of the crates that programs use must be able to grow: a struct that programs only receive, an enum, and
//! a variant with named fields are `#[non_exhaustive]`, so that a new field or variant breaks no program.
//!
//! [`CLOSED`] has the exceptions. The rule for readers is in the documentation of `ostler-proto`.

use std::collections::BTreeSet;

use super::Finding;

/// The crates that programs use, and those whose types these show.
const CRATES: [&str; 6] =
    ["ostler", "ostler-client", "ostler-mcp", "ostler-prompt", "ostler-proto", "ostler-sdk"];

/// Types that programs write as literals, and enums that are complete: file, names (none: all of the file), reason.
const CLOSED: &[(&str, &[&str], &str)] = &[
    ("ostler/src/engine/coverage.rs", &["CallPlace"], "input of a question"),
    ("ostler/src/engine/embedded.rs", &["EmbeddedWithTrust"], "an option"),
    ("ostler/src/engine/error.rs", &["StartError::Folder"], "programs that start engines build it"),
    ("ostler-mcp/src/client/endpoint.rs", &["Program", "Remote", "Channel"], "options"),
    ("ostler-mcp/src/client/options.rs", &["Root"], "an option"),
    (
        "ostler-mcp/src/content.rs",
        &["Media", "ResourceContents", "ResourceLink"],
        "tools build them, and clients receive them",
    ),
    ("ostler-mcp/src/server/prompt.rs", &["PromptMessage"], "servers build it"),
    ("ostler-mcp/src/server/reply.rs", &["Reply"], "a value or a future: there is no third"),
    ("ostler-prompt/src/budget.rs", &["Usage"], "programs record usage of their own"),
    ("ostler-prompt/src/config.rs", &["ModelSettings"], "options"),
    ("ostler-proto/src/agent.rs", &[], "options"),
    (
        "ostler-proto/src/api/block.rs",
        &[
            "TextBlock",
            "ImageBlock",
            "DocumentBlock",
            "Base64Source",
            "UrlSource",
            "TextSource",
            "FileSource",
        ],
        "prompts are built of them",
    ),
    ("ostler-proto/src/api/block.rs", &["Content"], "a JSON string or list"),
    (
        "ostler-proto/src/control/reply.rs",
        &["McpMessageReply", "ElicitationReply", "DialogCompleted"],
        "hosts answer with them",
    ),
    ("ostler-proto/src/control/shared.rs", &["PluginConfig"], "an option"),
    ("ostler-proto/src/control/to_engine.rs", &[], "requests that hosts build"),
    ("ostler-proto/src/control/to_host.rs", &["McpMessage"], "both sides send it"),
    ("ostler-proto/src/hook/event.rs", &["HookMatcher"], "hosts register hooks with it"),
    ("ostler-proto/src/hook/output.rs", &[], "answers of hooks"),
    ("ostler-proto/src/hook/specific.rs", &[], "answers of hooks"),
    ("ostler-proto/src/launch.rs", &["Launch"], "options"),
    ("ostler-proto/src/launch/price.rs", &["ModelPrice"], "an option"),
    ("ostler-proto/src/launch/recording.rs", &["RecordingChoice"], "options"),
    ("ostler-proto/src/launch/session.rs", &["SessionChoice"], "options"),
    (
        "ostler-proto/src/mcp.rs",
        &["StdioServer", "RemoteServer", "SdkServer", "ProxyServer", "ToolPolicy"],
        "options",
    ),
    (
        "ostler-proto/src/message/other.rs",
        &["KeepAlive", "UpdateEnvironmentVariables"],
        "hosts send them",
    ),
    ("ostler-proto/src/message/user.rs", &["User", "UserContent"], "prompts"),
    ("ostler-proto/src/peer.rs", &["CallError::Closed"], "hosts answer their callers with it"),
    ("ostler-proto/src/permission.rs", &[], "answers to permission requests"),
    ("ostler-proto/src/sandbox.rs", &[], "options"),
    ("ostler-proto/src/tool/error.rs", &["Side"], "a tool has an input and an output"),
    (
        "ostler-sdk/src/error.rs",
        &["Error::Start", "Error::Exited", "Error::Lost"],
        "transports build them",
    ),
    ("ostler-sdk/src/error.rs", &["SessionError::NoSuchMessage"], "the crate `ostler` builds it"),
    ("ostler-sdk/src/options.rs", &["SystemPrompt::Preset"], "an option"),
];

/// Checks all Rust files, which are given with their paths.
pub(super) fn check(sources: &[(String, String)]) -> Vec<Finding> {
    check_with(sources, CLOSED)
}

fn check_with(sources: &[(String, String)], closed: &[(&str, &[&str], &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for (path, text) in sources {
        let Some(file) = path.strip_prefix("crates/").filter(|file| is_checked(file)) else {
            continue;
        };
        for item in items(text) {
            let allowed = |(of, names, _): &(&str, &[&str], &str)| {
                *of == file && (names.is_empty() || names.contains(&item.name.as_str()))
            };
            let problem = match closed.iter().position(allowed) {
                _ if item.can_grow && item.can_be_built => continue,
                Some(entry) if !item.can_grow => {
                    needed.insert((entry, item.name));
                    continue;
                }
                _ if item.can_grow => {
                    "cannot be built in tests of programs: derive Default, or add #[wire(new(…))]"
                }
                _ => {
                    "is not #[non_exhaustive]; if programs build it, enter it into CLOSED (xtask/src/tidy/growth.rs)"
                }
            };
            findings.push(Finding::new(path, item.line, format!("{} {problem}", item.name)));
        }
    }
    findings.extend(stale(closed, &needed));
    findings
}

/// Entries that allow nothing.
fn stale(closed: &[(&str, &[&str], &str)], needed: &BTreeSet<(usize, String)>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (entry, (file, names, _)) in closed.iter().enumerate() {
        let needed = || needed.iter().filter(|(of, _)| *of == entry).map(|(_, name)| name);
        let stale = names.iter().copied().filter(|name| !needed().any(|needed| needed == name));
        let whole = (names.is_empty() && needed().next().is_none()).then_some("all types");
        for name in stale.chain(whole) {
            let message = format!("{name} of {file} does not need its entry in CLOSED: remove it");
            findings.push(Finding::new("xtask/src/tidy/growth.rs", 1, message));
        }
    }
    findings
}

fn is_checked(file: &str) -> bool {
    let (name, rest) = file.split_once('/').unwrap_or_default();
    CRATES.contains(&name) && rest.starts_with("src/") && !rest.ends_with("tests.rs")
}

/// A struct with public fields, an enum, or a variant with named fields.
#[derive(Debug)]
struct Item {
    /// Of a variant with that of its enum: `Error::Start`.
    name: String,
    line: usize,
    can_grow: bool,
    /// Only types of the protocol have to be.
    can_be_built: bool,
}

/// The types of a file that programs may see. Relies on the standard format.
fn items(text: &str) -> Vec<Item> {
    // Tests may be inside the file.
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let mut items = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let declared = line.trim_start();
        let indent = &line[..line.len() - declared.len()];
        let (is_enum, rest) = match declared.strip_prefix("pub struct ") {
            Some(rest) => (false, rest),
            None => match declared.strip_prefix("pub enum ") {
                Some(rest) => (true, rest),
                None => continue,
            },
        };
        let name = name_of(rest);
        // The body of a macro, a struct with private fields only, or one without a body.
        if name.is_empty() || !line.ends_with('{') {
            continue;
        }
        let end = format!("{indent}}}");
        let body = lines[index + 1..].iter().take_while(|line| **line != end);
        let body: Vec<&str> = body.map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
        let has_fields = body.iter().any(|line| line.starts_with("    pub "));
        // A macro adds the common fields of hook inputs.
        let is_seen = is_enum || has_fields || !indent.is_empty();
        if is_seen {
            let attributes = attributes(&lines, index);
            let is_wire = attributes.contains("Wire") && !is_enum;
            let can_be_built = attributes.contains("Default") || attributes.contains("new(");
            items.push(Item {
                name: name.to_owned(),
                line: index + 1,
                can_grow: attributes.contains("non_exhaustive"),
                can_be_built: !is_wire || can_be_built,
            });
        }
        if is_enum {
            items.extend(variants(name, &body, index + 2));
        }
    }
    items
}

/// The variants with named fields of an enum whose body begins at that line.
fn variants(name: &str, body: &[&str], first: usize) -> Vec<Item> {
    let named = body.iter().enumerate().filter_map(|(index, line)| {
        let line = line.strip_prefix("    ").filter(|line| line.ends_with('{'))?;
        let variant = name_of(line);
        (line.starts_with(char::is_uppercase)).then(|| Item {
            name: format!("{name}::{variant}"),
            line: first + index,
            can_grow: attributes(body, index).contains("non_exhaustive"),
            can_be_built: true,
        })
    });
    named.collect()
}

/// The name at the beginning; empty if there is none.
fn name_of(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// The attributes above a line.
fn attributes(lines: &[&str], index: usize) -> String {
    let above = lines[..index].iter().rev().map(|line| line.trim());
    let above = above.take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';', ',']));
    above.filter(|line| !line.starts_with("//")).collect()
}

#[cfg(test)]
mod tests {
    use super::check_with;

    const FILE: &str = "ostler-sdk/src/a.rs";

    fn found(text: &str, closed: &[(&str, &[&str], &str)]) -> Vec<String> {
        let sources = [(format!("crates/{FILE}"), text.to_owned())];
        let findings = check_with(&sources, closed).into_iter();
        findings.map(|it| format!("{}: {}", it.line, it.message)).collect()
    }

    fn lines(text: &str, closed: &[(&str, &[&str], &str)]) -> Vec<usize> {
        let line = |found: &String| found.split(':').next().and_then(|line| line.parse().ok());
        found(text, closed).iter().filter_map(line).collect()
    }

    #[test]
    fn a_struct_that_cannot_grow_is_reported() {
        for (text, at) in [
            ("pub struct A {\n    pub a: u8,\n}\n", vec![1]),
            ("/// A.\n#[derive(Debug)]\npub struct A<T> {\n    pub a: T,\n}\n", vec![3]),
            ("with_base! {\n    /// A.\n    pub struct A {\n    }\n}\n", vec![3]),
            ("#[non_exhaustive]\n#[derive(Debug)]\npub struct A {\n    pub a: u8,\n}\n", vec![]),
            ("pub struct A {\n    a: u8,\n    pub(crate) b: u8,\n}\n", vec![]),
            ("pub struct A(pub u8);\npub(crate) struct B {\n    pub b: u8,\n}\n", vec![]),
            ("#[cfg(test)]\nmod tests;\n\npub struct A {\n    pub a: u8,\n}\n", vec![4]),
            ("pub struct $name {\n    pub b: u8,\n}\n", vec![]),
            (
                "#[cfg(test)]\nmod tests {\n    pub struct A {\n        pub a: u8,\n    }\n}\n",
                vec![],
            ),
        ] {
            assert_eq!(lines(text, &[]), at, "{text}");
        }
    }

    #[test]
    fn an_enum_and_a_variant_that_cannot_grow_are_reported() {
        for (text, at) in [
            ("pub enum A {\n    B,\n}\n", vec![1]),
            ("#[non_exhaustive]\npub enum A {\n    B { c: u8 },\n}\n", vec![]),
            (
                "#[non_exhaustive]\npub enum A {\n    B,\n    C {\n        d: u8,\n    },\n}\n",
                vec![4],
            ),
            (
                "#[non_exhaustive]\npub enum A {\n    #[error(\"c\")]\n    #[non_exhaustive]\n    C {\n        d: u8,\n    },\n}\n",
                vec![],
            ),
        ] {
            assert_eq!(lines(text, &[]), at, "{text}");
        }
    }

    #[test]
    fn a_message_needs_a_way_to_be_built() {
        let text = |more: &str| {
            format!(
                "#[derive({more}Wire)]\n#[non_exhaustive]\npub struct A {{\n    pub a: E,\n}}\n"
            )
        };
        assert_eq!(lines(&text(""), &[]), [3]);
        assert_eq!(lines(&text("Default, "), &[]), [0; 0]);
        let new = text("").replace("#[non", "#[wire(new(a))]\n#[non");
        assert_eq!(lines(&new, &[]), [0; 0]);
    }

    #[test]
    fn an_entry_allows_a_type_as_long_as_it_is_needed() {
        let (open, closed) = ("#[non_exhaustive]\npub enum A {\n}\n", "pub enum A {\n}\n");
        for names in [&["A"][..], &[]] {
            let entries = [(FILE, names, "built")];
            assert_eq!(found(closed, &entries), [""; 0]);
            assert_eq!(found(open, &entries).len(), 1, "{names:?}");
        }
        assert_eq!(found(closed, &[(FILE, &["A", "B"], "built")]).len(), 1);
        assert_eq!(found(closed, &[("ostler-sdk/src/b.rs", &["A"], "built")]).len(), 2);
    }
}
