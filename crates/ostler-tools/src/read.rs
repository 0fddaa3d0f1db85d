//! `Read`: shows a file. Text is numbered and shown in windows; images, notebooks and PDFs have their own files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_files::RealPath;
use ostler_proto::build;
use ostler_proto::tool::{ReadOutput, ReadText, TextFile};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::path::CallPath;
use crate::read_files::ReadFiles;
use crate::text::{self, Encoding, MAX_SHOWN_BYTES, Text};
use crate::{file, notebook, path, pdf, picture};

pub(crate) struct Read {
    read_files: ReadFiles,
}

impl Read {
    pub(crate) fn new(read_files: ReadFiles) -> Self {
        Self { read_files }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The file.
    file_path: PathBuf,
    /// First line to show, from 1.
    offset: Option<u64>,
    /// How many lines to show.
    limit: Option<u64>,
    /// Which pages of a PDF, like `1-5`; at most 20 at once.
    pages: Option<String>,
}

const MAX_LINES: usize = 2_000;
const MAX_LINE_BYTES: usize = 2_000;
/// Some documents take very long to parse.
const PATIENCE: Duration = Duration::from_secs(60);

impl Tool for Read {
    const NAME: &'static str = "Read";
    const DESCRIPTION: &'static str = "Shows a file: text with line numbers (2000 lines by default), \
        pictures (png, jpeg, gif, webp), notebooks cell by cell, the text of PDFs. Not for folders.";
    type Args = Args;

    fn effect(&self, cx: &ToolCx, args: &Args) -> Effect {
        Effect::Read(path::absolute(cx, &args.file_path))
    }

    fn note_read(&self, path: &RealPath) {
        let path = CallPath { written: path.as_path().to_owned(), real: path.clone() };
        // A file that cannot be read was not shown either.
        if let Ok(bytes) = file::load(&path) {
            self.read_files.note(&path.real, &bytes);
        }
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let path = path::absolute(cx, &args.file_path);
        let (cx, read_files) = (cx.clone(), self.read_files.clone());
        let shown = path.display().to_string();
        let reading = blocking(move || read(&CallPath::of(&cx, path)?, &args, &read_files));
        tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| {
            let seconds = PATIENCE.as_secs();
            Err(ToolError::Failed(format!("reading {shown} took longer than {seconds} s")))
        })
    }
}

fn read(path: &CallPath, args: &Args, read_files: &ReadFiles) -> Result<ToolOutput, ToolError> {
    let bytes = file::load(path)?;
    let output = show(&path.written, args, &bytes)?;
    read_files.note(&path.real, &bytes);
    Ok(output)
}

fn show(path: &Path, args: &Args, bytes: &[u8]) -> Result<ToolOutput, ToolError> {
    if let Some(format) = picture::format(bytes) {
        return picture::show(path, bytes, format);
    }
    if pdf::is_pdf(bytes) {
        return pdf::show(path, bytes, args.pages.as_deref());
    }
    if args.pages.is_some() {
        return Err(ToolError::Refused(format!(
            "{} is not a PDF: use offset and limit instead of pages",
            path.display()
        )));
    }
    let Some(text) = text::decode(bytes) else { return Err(binary(path, bytes)) };
    if path.extension().is_some_and(|extension| extension == "ipynb")
        && let Some(output) = notebook::show(path, &text.text)
    {
        return Ok(output);
    }
    let first = args.offset.unwrap_or(1).max(1);
    let window = Window::of(&text.text, saturate(first), args.limit.map_or(MAX_LINES, saturate))
        .map_err(|why| ToolError::Refused(format!("{}: {why}", path.display())))?;
    let file = build!(TextFile {
        file_path: path.display().to_string(),
        num_lines: window.lines.len() as u64,
        start_line: first,
        total_lines: window.total as u64,
        content: window.lines.join("\n")
    });
    let structured = ReadOutput::Text(build!(ReadText { file }));
    Ok(ToolOutput::new(window.numbered() + &encoding_note(&text), structured))
}

/// The lines that are shown.
struct Window<'a> {
    first: usize,
    lines: Vec<&'a str>,
    total: usize,
    /// How many lines are truncated.
    n_cut: usize,
    /// Whether fewer lines are shown than requested.
    is_short: bool,
}

impl<'a> Window<'a> {
    fn of(text: &'a str, first: usize, limit: usize) -> Result<Self, String> {
        let total = text.lines().count();
        if first > total && first > 1 {
            return Err(format!("line {first} does not exist, the file has {total}"));
        }
        let mut window = Self { first, lines: Vec::new(), total, n_cut: 0, is_short: false };
        let mut n_bytes = 0;
        for line in text.lines().skip(first - 1).take(limit.max(1)) {
            let shown = text::head(line, MAX_LINE_BYTES);
            n_bytes += shown.len();
            if n_bytes > MAX_SHOWN_BYTES {
                window.is_short = true;
                break;
            }
            window.n_cut += usize::from(shown.len() < line.len());
            window.lines.push(shown);
        }
        Ok(window)
    }

    fn numbered(&self) -> String {
        if self.total == 0 {
            return "[the file is empty]\n".to_owned();
        }
        let mut text = String::new();
        for (index, line) in self.lines.iter().enumerate() {
            text += &format!("{}\t{line}\n", self.first + index);
        }
        let end = self.first + self.lines.len() - 1;
        if self.n_cut > 0 {
            text += &format!(
                "[{} lines are cut after {MAX_LINE_BYTES} bytes; Grep or Bash (cut -c) shows the rest]\n",
                self.n_cut
            );
        }
        if end < self.total {
            let why = if self.is_short { ", as much as fits" } else { "" };
            text += &format!(
                "[lines {} to {end} of {}{why}; continue with offset {}]\n",
                self.first,
                self.total,
                end + 1
            );
        }
        text
    }
}

fn encoding_note(text: &Text) -> String {
    let encoding = match text.encoding {
        Encoding::Utf8 | Encoding::Utf8WithMark => "UTF-8",
        Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
    };
    match (text.lossy, text.encoding) {
        (true, _) => format!("[not valid {encoding}: some characters are shown as \u{FFFD}]\n"),
        (false, Encoding::Utf16Le | Encoding::Utf16Be) => format!("[the file is {encoding}]\n"),
        (false, _) => String::new(),
    }
}

fn binary(path: &Path, bytes: &[u8]) -> ToolError {
    ToolError::Refused(format!(
        "{} ({} bytes) is not a text file; look at it with Bash (file, xxd, strings).",
        path.display(),
        bytes.len()
    ))
}

fn saturate(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
