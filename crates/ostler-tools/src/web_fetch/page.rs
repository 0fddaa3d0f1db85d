//! Converts a page to text for the model: HTML becomes Markdown, other text stays unchanged.

use std::rc::Rc;

use encoding_rs::{Encoding, UTF_8};
use htmd::{HtmlToMarkdown, Node};
use markup5ever_rcdom::NodeData;
use ostler_engine::tool::ToolError;
use reqwest::Url;

use super::complexity;

/// The `Accept` header.
pub(super) const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1";

/// Tags whose content is left out.
const SKIPPED: &[&str] =
    &["head", "script", "style", "noscript", "svg", "nav", "footer", "iframe", "template"];

/// How deep tags may be nested. The converter recurses for each level, and the stack is limited.
const MAX_DEPTH: usize = 120;
/// The cost of a level that indents its lines.
const INDENT_DEPTH: usize = 4;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Html,
    Text,
    /// The server does not say.
    Unknown,
}

/// Refuses a page that is not text, before it is read.
pub(super) fn must_be_readable(url: &Url, content_type: &str) -> Result<(), ToolError> {
    if kind(content_type).is_some() {
        return Ok(());
    }
    let name = essence(content_type);
    Err(ToolError::Refused(format!(
        "{url} is {name}, not text. Download it with Bash (curl -o) to look at it."
    )))
}

/// The page as text.
pub(super) fn text(content_type: &str, bytes: &[u8]) -> Result<String, ToolError> {
    let kind = kind(content_type);
    if kind == Some(Kind::Unknown) && bytes.contains(&0) {
        return Err(ToolError::Refused("the page is not text, and does not say what".to_owned()));
    }
    let text = decode(content_type, bytes);
    let is_html = match kind {
        Some(Kind::Html) => true,
        Some(Kind::Unknown) => looks_like_html(&text),
        Some(Kind::Text) | None => false,
    };
    if is_html { markdown(&text) } else { Ok(text) }
}

fn kind(content_type: &str) -> Option<Kind> {
    let name = essence(content_type);
    match name.as_str() {
        "" => Some(Kind::Unknown),
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-ndjson"
        | "application/x-sh"
        | "application/sql"
        | "application/graphql" => Some(Kind::Text),
        _ if name.starts_with("text/") || name.ends_with("+json") || name.ends_with("+xml") => {
            Some(Kind::Text).filter(|_| !name.starts_with("image/"))
        }
        _ => None,
    }
}

/// `text/html` of `text/html; charset=utf-8`.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_lowercase()
}

fn looks_like_html(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(15).collect::<String>().to_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Decodes bytes in the encoding of the byte order mark, the server or the page itself.
fn decode(content_type: &str, bytes: &[u8]) -> String {
    let named = charset(content_type);
    let named = named.or_else(|| {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).to_lowercase();
        start.split("<meta").skip(1).find_map(|tag| charset(tag.split('>').next()?))
    });
    // A byte order mark wins.
    let (text, ..) = named.unwrap_or(UTF_8).decode(bytes);
    text.into_owned()
}

/// The encoding after `charset=`.
fn charset(text: &str) -> Option<&'static Encoding> {
    let (_, rest) = text.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'', ' ']);
    let label = rest.split(['"', '\'', ';', ' ', '/', '>']).next()?;
    Encoding::for_label(label.as_bytes())
}

fn markdown(html: &str) -> Result<String, ToolError> {
    if let Err(text) = complexity::check_complexity(html) {
        return Ok(text + "\n\n[the page's structure is too complex; this is its bare text]");
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    let cannot = |error| ToolError::Failed(format!("the page's HTML cannot be read: {error}"));
    let tree = converter.html_to_tree(html).map_err(cannot)?;
    let was_cut = cut_depth(&tree);
    let mut text = converter.tree_to_markdown(&tree);
    if was_cut {
        text += "\n\n[parts that are nested too deeply are left out]";
    }
    Ok(text)
}

/// Removes what is nested too deeply; returns whether there was any.
fn cut_depth(tree: &Rc<Node>) -> bool {
    let mut was_cut = false;
    let mut open = vec![(Rc::clone(tree), 0)];
    while let Some((node, depth)) = open.pop() {
        let mut children = node.children.borrow_mut();
        if depth >= MAX_DEPTH && !children.is_empty() {
            children.clear();
            was_cut = true;
        }
        open.extend(children.iter().map(|child| (Rc::clone(child), depth + cost(child))));
    }
    was_cut
}

fn cost(node: &Node) -> usize {
    let NodeData::Element { name, .. } = &node.data else { return 1 };
    match &*name.local {
        "blockquote" | "li" | "ol" | "ul" => INDENT_DEPTH,
        _ => 1,
    }
}
