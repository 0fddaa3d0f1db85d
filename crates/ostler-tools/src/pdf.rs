//! PDF documents as text, page by page.
//!
//! The PDF library panics on many broken files, and recurses without end on malicious ones. The panic is caught here;
//! the recursion is prevented by checking the document first (`pdf/sanitize.rs`). Streams are decompressed within
//! limits (`pdf/bounded.rs`), and everything runs in a separate process if the program allows it (`pdf/child.rs`).

mod bounded;
pub(crate) mod child;
mod sanitize;

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ostler_engine::tool::{ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{ReadOutput, ReadText, TextFile};
use pdf_extract::{Document, ObjectId, PlainTextOutput, output_doc_page};
use serde::{Deserialize, Serialize};

use crate::text::MAX_SHOWN_BYTES;

/// The most pages of one call.
const MAX_PAGES: u32 = 20;

pub(crate) fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// Some pages of a document.
pub(crate) fn show(
    path: &Path,
    bytes: &[u8],
    pages: Option<&str>,
) -> Result<ToolOutput, ToolError> {
    let text = child::read(bytes, pages).map_err(|problem| match problem {
        ExtractError::Refused(why) => ToolError::Refused(why),
        ExtractError::NoPage(why) => ToolError::Refused(format!("{}: {why}", path.display())),
        ExtractError::Broken(what) => broken(path, &what),
    })?;
    let n_lines = text.lines().count() as u64;
    let file = build!(TextFile {
        file_path: path.display().to_string(),
        content: text.clone(),
        num_lines: n_lines,
        start_line: 1,
        total_lines: n_lines
    });
    Ok(ToolOutput::new(text, ReadOutput::Text(build!(ReadText { file }))))
}

/// Why there is no text.
#[derive(Debug, Deserialize, Serialize)]
enum ExtractError {
    /// The arguments are invalid.
    Refused(String),
    /// The page does not exist.
    NoPage(String),
    /// The document cannot be read.
    Broken(String),
}

/// The text of some pages.
fn extract(bytes: &[u8], pages: Option<&str>) -> Result<String, ExtractError> {
    let wanted = pages.map(|pages| range(pages).ok_or_else(|| not_pages(pages))).transpose()?;
    let opened = catch_unwind(|| open(bytes)).unwrap_or_else(|_| Err("its structure".to_owned()));
    let opened = opened.map_err(ExtractError::Broken)?;
    let n_pages = opened.document.get_pages().len() as u32;
    let (first, last) = wanted.unwrap_or(1..=n_pages.max(1)).into_inner();
    if first > n_pages {
        let why = format!("page {first} does not exist, the document has {n_pages}");
        return Err(ExtractError::NoPage(why));
    }
    let last = last.min(n_pages).min(first.saturating_add(MAX_PAGES - 1));
    Ok(ShownPages::of(&opened, first..=last).text(n_pages))
}

/// `3`, `1-5` or `10-`.
fn range(pages: &str) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0);
    let (first, last) = match pages.split_once('-') {
        None => (number(pages)?, number(pages)?),
        Some((first, last)) if last.trim().is_empty() => (number(first)?, u32::MAX),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    (first <= last).then_some(first..=last)
}

fn open(bytes: &[u8]) -> Result<OpenedDocument, String> {
    let mut document = bounded::load(bytes)?;
    if document.is_encrypted() {
        let opened = document.decrypt("");
        opened.map_err(|_| "it is encrypted and needs a password".to_owned())?;
    }
    let emptied = bounded::limit_streams(&mut document);
    sanitize::sanitize(&mut document)?;
    Ok(OpenedDocument { document, emptied })
}

/// A document that is safe to read.
struct OpenedDocument {
    document: Document,
    /// Streams that were too large and have been emptied.
    emptied: HashSet<ObjectId>,
}

/// Stands for a page that cannot be read.
const BROKEN_PAGE: &str = "[this page is broken and could not be read]";
/// Stands for a page that would take too much memory.
const LARGE_PAGE: &str = "[this page is too large to be read here: its content has more than 8 MiB. \
    Bash (pdftotext) may be able to, if it is installed]";

/// As many pages as fit.
struct ShownPages {
    first: u32,
    last: u32,
    pages: Vec<Result<String, &'static str>>,
}

impl ShownPages {
    fn of(opened: &OpenedDocument, wanted: RangeInclusive<u32>) -> Self {
        let first = *wanted.start();
        let mut shown = Self { first, last: first, pages: Vec::new() };
        let mut n_bytes = 0;
        for page in wanted {
            let text = catch_unwind(AssertUnwindSafe(|| page_text(opened, page)));
            let text = text.unwrap_or(Err(BROKEN_PAGE));
            n_bytes += text.as_ref().map_or(0, String::len);
            if n_bytes > MAX_SHOWN_BYTES && page > first {
                break;
            }
            shown.pages.push(text);
            shown.last = page;
        }
        shown
    }

    fn text(&self, n_pages: u32) -> String {
        let mut text = String::new();
        for (number, page) in (self.first..).zip(&self.pages) {
            let content = match page {
                Ok(page) if page.trim().is_empty() => "[no text]",
                Ok(page) => crate::text::head(page.trim_matches('\n'), MAX_SHOWN_BYTES),
                Err(why) => why,
            };
            text += &format!("[page {number}]\n{content}\n\n");
        }
        if self.pages.iter().all(|page| page.as_ref().is_ok_and(|page| page.trim().is_empty())) {
            text += "[these pages hold no text; they are probably pictures, such as scans]\n";
        }
        if self.last < n_pages {
            let (first, last) = (self.last + 1, n_pages.min(self.last + MAX_PAGES));
            text += &format!(
                "[pages {} to {} of {n_pages}; continue with pages \"{first}-{last}\"]\n",
                self.first, self.last
            );
        }
        text
    }
}

fn page_text(opened: &OpenedDocument, page: u32) -> Result<String, &'static str> {
    let OpenedDocument { document, emptied } = opened;
    let id = document.get_pages().get(&page).copied().ok_or(BROKEN_PAGE)?;
    if !bounded::is_page_within_limit(document, emptied, id) {
        return Err(LARGE_PAGE);
    }
    let mut text = String::new();
    let read = output_doc_page(document, &mut PlainTextOutput::new(&mut text), page);
    read.map_err(|_| BROKEN_PAGE)?;
    Ok(text)
}

fn not_pages(pages: &str) -> ExtractError {
    ExtractError::Refused(format!(
        "pages is \"{pages}\"; it must be like \"3\", \"1-5\" or \"10-\""
    ))
}

fn broken(path: &Path, what: &str) -> ToolError {
    ToolError::Failed(format!(
        "{} is a PDF that cannot be read: {what}. Bash (pdftotext) may be able to read it, if it is installed.",
        path.display()
    ))
}
