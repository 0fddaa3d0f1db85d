//! PDF documents as text, page by page.
//!
//! The library that reads them panics on many broken files, and calls itself without end on malicious ones. The first
//! is caught here, the second is prevented by looking at the document before (`pdf/sound.rs`).

mod sound;

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ostler_engine::tool::{ToolError, ToolOutput};
use ostler_proto::tool::{ReadOutput, ReadText, TextFile};
use pdf_extract::{Document, PlainTextOutput, output_doc_page};

use crate::read::MAX_SHOWN_BYTES;

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
    let wanted = pages.map(|pages| range(pages).ok_or_else(|| not_pages(pages))).transpose()?;
    let opened = catch_unwind(|| open(bytes)).unwrap_or_else(|_| Err("its structure".to_owned()));
    let document = opened.map_err(|what| broken(path, &what))?;
    let n_pages = document.get_pages().len() as u32;
    let (first, last) = wanted.unwrap_or(1..=n_pages.max(1)).into_inner();
    if first > n_pages {
        return Err(ToolError::Refused(format!(
            "{}: there is no page {first}, the document has {n_pages}",
            path.display()
        )));
    }
    let last = last.min(n_pages).min(first.saturating_add(MAX_PAGES - 1));
    let shown = Shown::of(&document, first..=last);
    let text = shown.text(n_pages);
    let n_lines = text.lines().count() as u64;
    let file = TextFile {
        file_path: path.display().to_string(),
        content: text.clone(),
        num_lines: n_lines,
        start_line: 1,
        total_lines: n_lines,
        ..TextFile::default()
    };
    Ok(ToolOutput::new(text, ReadOutput::Text(ReadText { file, ..ReadText::default() })))
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

fn open(bytes: &[u8]) -> Result<Document, String> {
    let mut document = Document::load_mem(bytes).map_err(|error| error.to_string())?;
    if document.is_encrypted() {
        let opened = document.decrypt("");
        opened.map_err(|_| "it is encrypted and needs a password".to_owned())?;
    }
    sound::make_sound(&mut document)?;
    Ok(document)
}

/// Pages as far as there is room for them.
struct Shown {
    first: u32,
    last: u32,
    pages: Vec<Result<String, ()>>,
}

impl Shown {
    fn of(document: &Document, wanted: RangeInclusive<u32>) -> Self {
        let first = *wanted.start();
        let mut shown = Self { first, last: first, pages: Vec::new() };
        let mut n_bytes = 0;
        for page in wanted {
            let text = catch_unwind(AssertUnwindSafe(|| page_text(document, page)));
            let text = text.unwrap_or(Err(()));
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
                Err(()) => "[this page is broken and could not be read]",
            };
            text += &format!("[page {number}]\n{content}\n\n");
        }
        if self.pages.iter().all(|page| page.as_ref().is_ok_and(|page| page.trim().is_empty())) {
            text += "[these pages hold no text; they are probably pictures, such as scans]\n";
        }
        if self.last < n_pages {
            let (first, last) = (self.last + 1, n_pages.min(self.last + MAX_PAGES));
            text += &format!(
                "[pages {} to {} of {n_pages}; go on with pages \"{first}-{last}\"]\n",
                self.first, self.last
            );
        }
        text
    }
}

fn page_text(document: &Document, page: u32) -> Result<String, ()> {
    let mut text = String::new();
    output_doc_page(document, &mut PlainTextOutput::new(&mut text), page).map_err(|_| ())?;
    Ok(text)
}

fn not_pages(pages: &str) -> ToolError {
    ToolError::Refused(format!("pages is \"{pages}\"; it must be like \"3\", \"1-5\" or \"10-\""))
}

fn broken(path: &Path, what: &str) -> ToolError {
    ToolError::Failed(format!(
        "{} is a PDF that cannot be read: {what}. Bash (pdftotext) may know better, if it is installed.",
        path.display()
    ))
}
