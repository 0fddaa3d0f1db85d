//! Here-documents: whether they end where the syntax tree ends them, and whether their contents are expanded.

use tree_sitter::Node;

use crate::word::slice;

/// Whether two here-documents start on one line, which the grammar parses wrongly.
pub(crate) fn share_a_line(root: Node<'_>) -> bool {
    let mut rows = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if node.kind() == "heredoc_redirect" {
            rows.push(node.start_position().row);
        }
        open.extend((0..node.child_count()).filter_map(|index| node.child(index)));
    }
    let n_rows = rows.len();
    rows.sort_unstable();
    rows.dedup();
    rows.len() != n_rows
}

/// Whether this is the body of a here-document with a quoted delimiter, which is not expanded.
pub(crate) fn is_literal_body(node: Node<'_>, source: &str) -> bool {
    node.kind() == "heredoc_body"
        && node.parent().and_then(|parent| part(parent, "heredoc_start")).is_some_and(|start| {
            delimiter(slice(start, source)).is_some_and(|(_, is_quoted)| is_quoted)
        })
}

/// Checks that a here-document ends where the shell ends it.
pub(crate) fn check(node: Node<'_>, source: &str) -> Result<(), String> {
    let wrong = || "the end of its here-document is unclear".to_owned();
    let start = part(node, "heredoc_start").ok_or_else(wrong)?;
    let end = part(node, "heredoc_end").ok_or_else(wrong)?;
    let (delimiter, is_quoted) = delimiter(slice(start, source)).ok_or_else(wrong)?;
    let operator = node.child(0).filter(|child| !child.is_named()).or_else(|| node.child(1));
    let strips_tabs = operator.is_some_and(|operator| operator.kind() == "<<-");
    let strip = |line: &str| {
        if strips_tabs { line.trim_start_matches('\t').to_owned() } else { line.to_owned() }
    };
    // The body starts on the line after the operator.
    let after = source.get(start.end_byte()..).unwrap_or_default();
    let first = start.end_byte() + after.find('\n').ok_or_else(wrong)? + 1;
    let body = source.get(first..).unwrap_or_default();
    let mut at = first;
    for line in body.split('\n') {
        if strip(line) == delimiter {
            let is_here =
                (at..=at + line.len()).contains(&end.end_byte()) && end.start_byte() >= at;
            return if is_here { Ok(()) } else { Err(wrong()) };
        }
        if !is_quoted && line.ends_with('\\') {
            return Err(wrong()); // the shell joins it with the next line, which may be the delimiter
        }
        at += line.len() + 1;
    }
    Err(wrong())
}

fn part<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    (0..node.child_count()).filter_map(|index| node.child(index)).find(|child| child.kind() == kind)
}

/// The delimiter without quotes, and whether it was quoted.
fn delimiter(written: &str) -> Option<(&str, bool)> {
    let quoted = |mark: char| written.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
    let (word, is_quoted) = match quoted('\'').or_else(|| quoted('"')) {
        Some(word) => (word, true),
        None => match written.strip_prefix('\\') {
            Some(word) => (word, true),
            None => (written, false),
        },
    };
    let is_plain =
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_-.!".contains(c));
    is_plain.then_some((word, is_quoted))
}
