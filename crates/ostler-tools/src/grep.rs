//! `Grep`: finds text in files, with ripgrep's engine. `grep/report.rs` renders the result.

mod folder;
mod report;

use std::path::{Path, PathBuf};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use self::folder::Folder;
use self::report::Report;
use crate::blocking::blocking;
use crate::path::{self, CallPath};
use crate::walk::{self, Stop};

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Regular expression (Rust syntax).
    pattern: String,
    /// File or folder; the working directory if absent.
    path: Option<PathBuf>,
    /// Only files with such names, like `*.{ts,tsx}`.
    glob: Option<String>,
    /// Only files of this kind, like `rust`, `py`, `js`.
    r#type: Option<String>,
    /// What to report; file names if absent.
    #[serde(default)]
    output_mode: Mode,
    /// Ignore case.
    #[serde(rename = "-i", default)]
    ignore_case: bool,
    /// Number the lines (content); yes if absent.
    #[serde(rename = "-n")]
    line_numbers: Option<bool>,
    /// Lines to show after a match (content).
    #[serde(rename = "-A")]
    after: Option<u16>,
    /// Lines to show before a match (content).
    #[serde(rename = "-B")]
    before: Option<u16>,
    /// Lines to show on both sides (content).
    #[serde(rename = "-C", alias = "context")]
    around: Option<u16>,
    /// At most so many lines or entries; 250 if absent.
    head_limit: Option<u32>,
    /// Leave out so many first.
    #[serde(default)]
    offset: u32,
    /// Let a match span lines, and `.` match line ends.
    #[serde(default)]
    multiline: bool,
}

/// What to report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

/// A searcher keeps a line, or a whole file in multiline mode, in memory; larger ones are skipped.
const MAX_HEAP: usize = 64 * 1024 * 1024;

/// The memory limit of a pattern: nested repetitions of a few characters would take a gigabyte, and minutes.
const MAX_PATTERN: usize = 10 * 1024 * 1024;

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const DESCRIPTION: &'static str = "Searches file contents. Reports file names (the last changed first), or the \
        lines (content), or counts. Leaves out binary files and what git ignores.";
    type Args = Args;

    fn effect(&self, cx: &ToolCx, args: &Args) -> Effect {
        Effect::Read(root(cx, args))
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let root = root(cx, &args);
        let dropped = cx.cancelled.child_token();
        let stop = Stop::new(dropped.clone());
        let _guard = dropped.drop_guard();
        let cx = cx.clone();
        blocking(move || search(&cx, root, &args, &stop)).await
    }
}

fn root(cx: &ToolCx, args: &Args) -> PathBuf {
    path::absolute(cx, args.path.as_deref().unwrap_or(Path::new("")))
}

fn search(cx: &ToolCx, root: PathBuf, args: &Args, stop: &Stop) -> Result<ToolOutput, ToolError> {
    let matcher = matcher(args)?;
    let root = &CallPath::of(cx, root)?;
    let found = walk::must_exist(root)?;
    if found.is_dir() {
        return folder::search(&Folder { cx, root, args, stop, matcher: &matcher });
    }
    let path = root.written.as_path();
    if !found.is_file() {
        return Err(ToolError::Refused(format!(
            "{} is neither a file nor a folder.",
            path.display()
        )));
    }
    let mut report = Report::new(&cx.cwd, args, true);
    let (hits, is_ok) = folder::hits_in(&mut searcher(args), &matcher, (path, root), &report);
    report.add(path, hits, is_ok);
    Ok(report.output())
}

fn matcher(args: &Args) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder.size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
    builder.case_insensitive(args.ignore_case).multi_line(true);
    if args.multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.crlf(true);
    }
    builder.build(&args.pattern).map_err(|error| {
        let hint = if args.pattern.contains("\\n") && !args.multiline {
            "; set multiline to match across lines"
        } else {
            ""
        };
        ToolError::Refused(format!("the pattern is not valid: {error}{hint}"))
    })
}

fn searcher(args: &Args) -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_HEAP))
        .multi_line(args.multiline);
    if !args.multiline {
        builder.line_terminator(LineTerminator::crlf());
    }
    match args.output_mode {
        Mode::Content => {
            let around = args.around.unwrap_or(0);
            builder.before_context(args.before.unwrap_or(around).into());
            builder.after_context(args.after.unwrap_or(around).into());
        }
        Mode::FilesWithMatches => {
            builder.max_matches(Some(1));
        }
        Mode::Count => {}
    }
    builder.build()
}

fn walk(root: &Path, args: &Args) -> Result<WalkBuilder, ToolError> {
    let mut walk: WalkBuilder = walk::below(root);
    if let Some(glob) = &args.glob {
        let overrides = OverrideBuilder::new(root).add(glob).and_then(|builder| builder.build());
        walk.overrides(
            overrides.map_err(|error| ToolError::Refused(format!("glob is not valid: {error}")))?,
        );
    }
    if let Some(kind) = &args.r#type {
        let types = TypesBuilder::new().add_defaults().select(kind).build();
        walk.types(
            types.map_err(|error| {
                ToolError::Refused(format!("{error}; use glob instead of type"))
            })?,
        );
    }
    Ok(walk)
}
