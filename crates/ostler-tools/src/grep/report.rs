//! The result of a search, as lines for the model and as the published output.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use ostler_engine::tool::ToolOutput;
use ostler_proto::build;
use ostler_proto::tool::{GrepMode, GrepOutput};

use super::{Args, Mode};
use crate::{path, text, walk};

const DEFAULT_LIMIT: usize = 250;
const MAX_LIMIT: usize = 10_000;
const MAX_LINE_BYTES: usize = 500;
const MAX_SHOWN_BYTES: usize = 40_000;

/// Everything found so far.
pub(super) struct Report<'a> {
    cwd: &'a Path,
    mode: Mode,
    numbered: bool,
    /// The lines of a single file do not repeat its name.
    is_one_file: bool,
    has_context: bool,
    offset: usize,
    limit: usize,
    /// Lines of content, or counts with names.
    lines: Vec<String>,
    files: Vec<(Option<SystemTime>, PathBuf)>,
    n_matches: u64,
    n_failed: usize,
    /// Files that a permission rule protects.
    n_guarded: usize,
    gave_up: bool,
}

impl<'a> Report<'a> {
    pub(super) fn new(cwd: &'a Path, args: &Args, is_one_file: bool) -> Self {
        Self {
            cwd,
            mode: args.output_mode,
            numbered: args.line_numbers.unwrap_or(true),
            is_one_file,
            has_context: [args.after, args.before, args.around]
                .into_iter()
                .flatten()
                .any(|lines| lines > 0),
            offset: args.offset as usize,
            limit: args
                .head_limit
                .map_or(DEFAULT_LIMIT, |limit| limit as usize)
                .clamp(1, MAX_LIMIT),
            lines: Vec::new(),
            files: Vec::new(),
            n_matches: 0,
            n_failed: 0,
            n_guarded: 0,
            gave_up: false,
        }
    }

    /// An empty result for one file.
    pub(super) fn file(&self, path: &Path) -> Hits {
        let name = if self.is_one_file { String::new() } else { path::short(self.cwd, path) };
        let wanted = (self.offset + self.limit + 1).saturating_sub(self.lines.len());
        Hits {
            name,
            numbered: self.numbered,
            mode: self.mode,
            wanted,
            lines: Vec::new(),
            n_matches: 0,
        }
    }

    pub(super) fn add(&mut self, path: &Path, hits: Hits, searched: bool) {
        self.n_failed += usize::from(!searched);
        self.n_matches += hits.n_matches;
        if hits.n_matches == 0 {
            return;
        }
        if self.mode == Mode::Content && !self.lines.is_empty() && self.has_context {
            self.lines.push("--".to_owned());
        }
        self.lines.extend(hits.lines);
        if self.mode == Mode::Count {
            self.lines.push(format!("{}:{}", path::short(self.cwd, path), hits.n_matches));
        }
        let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        self.files.push((changed, path.to_owned()));
    }

    /// Whether more lines would be cut off.
    pub(super) fn is_full(&self) -> bool {
        self.mode == Mode::Content && self.lines.len() > self.offset + self.limit
    }

    pub(super) fn leave_out(&mut self) {
        self.n_guarded += 1;
    }

    pub(super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    pub(super) fn output(mut self) -> ToolOutput {
        if self.mode == Mode::FilesWithMatches {
            self.files
                .sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
            self.lines = self.files.iter().map(|(_, path)| path::short(self.cwd, path)).collect();
        }
        let n_lines = self.lines.len();
        let (shown, cut) = self.window();
        let mut text = match shown.len() {
            0 if n_lines > 0 => format!("Nothing after the first {n_lines} entries.\n"),
            0 => "No matches found.\n".to_owned(),
            _ => shown.join("\n") + "\n",
        };
        if cut {
            let at_least = if self.mode == Mode::Content { "" } else { &format!(" of {n_lines}") };
            let next = self.offset + shown.len();
            text += &format!(
                "[{}{at_least} shown; there are more: narrow the search or continue with offset {next}]\n",
                shown.len()
            );
        }
        if self.gave_up {
            text += "[the search took too long and was given up; narrow the path]\n";
        }
        if self.n_failed > 0 {
            text += &format!("[{} files could not be searched]\n", self.n_failed);
        }
        text += &walk::guarded_note(self.n_guarded);
        let structured = self.structured(shown, cut);
        ToolOutput::new(text, structured)
    }

    /// The entries to show, and whether more follow.
    fn window(&self) -> (Vec<String>, bool) {
        let mut n_bytes = 0;
        let rest = self.lines.iter().skip(self.offset);
        let shown: Vec<String> = rest
            .take(self.limit)
            .take_while(|line| {
                n_bytes += line.len();
                n_bytes <= MAX_SHOWN_BYTES
            })
            .cloned()
            .collect();
        let cut = self.offset + shown.len() < self.lines.len();
        (shown, cut)
    }

    fn structured(&self, shown: Vec<String>, cut: bool) -> GrepOutput {
        let n_shown = shown.len() as u64;
        let mut output = build!(GrepOutput {
            num_files: self.files.len() as u64,
            applied_limit: cut.then_some(n_shown),
            applied_offset: (self.offset > 0).then_some(self.offset as u64),
            timed_out: self.gave_up.then_some(true)
        });
        match self.mode {
            Mode::Content => {
                output.mode = Some(GrepMode::Content);
                output.content = Some(shown.join("\n"));
                output.num_lines = Some(n_shown);
            }
            Mode::FilesWithMatches => {
                output.mode = Some(GrepMode::FilesWithMatches);
                output.total_files = cut.then_some(output.num_files);
                output.num_files = n_shown;
                output.filenames = shown;
            }
            Mode::Count => {
                output.mode = Some(GrepMode::Count);
                output.content = Some(shown.join("\n"));
                output.num_matches = Some(self.n_matches);
            }
        }
        output
    }
}

/// The matches in one file.
pub(super) struct Hits {
    name: String,
    numbered: bool,
    mode: Mode,
    /// How many more lines fit.
    wanted: usize,
    lines: Vec<String>,
    n_matches: u64,
}

impl Hits {
    fn push(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        for (index, line) in
            bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n').enumerate()
        {
            let mut text = String::new();
            if !self.name.is_empty() {
                text += &format!("{}{mark}", self.name);
            }
            if let Some(number) = number.filter(|_| self.numbered) {
                text += &format!("{}{mark}", number + index as u64);
            }
            let line =
                String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
            let shown = text::head(&line, MAX_LINE_BYTES);
            text += shown;
            if shown.len() < line.len() {
                text += " [cut]";
            }
            self.lines.push(text);
        }
    }

    /// Whether nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.n_matches == 0
    }

    /// How many lines are kept.
    pub(super) fn n_lines(&self) -> usize {
        self.lines.len()
    }

    fn has_room(&self) -> bool {
        self.lines.len() < self.wanted
    }
}

impl Sink for Hits {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.n_matches += 1;
        if self.mode == Mode::Content {
            self.push(found.line_number(), ':', found.bytes());
        }
        Ok(self.has_room())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push(context.line_number(), '-', context.bytes());
        Ok(self.has_room())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lines.push("--".to_owned());
        Ok(true)
    }
}
