//! `Glob` and `Grep`.

use ostler_proto_derive::Wire;

use crate::{Extra, Num};

/// Files to find by name.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct GlobInput {
    /// The pattern.
    pub pattern: String,
    /// The directory to look in.
    pub path: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Files found by name.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GlobOutput {
    /// How long it took.
    pub duration_ms: Num,
    /// How many were found.
    pub num_files: u64,
    /// Their names.
    pub filenames: Vec<String>,
    /// Whether there are more.
    pub truncated: bool,
    /// How many there are in all. Newer peers only.
    pub total_matches: Option<u64>,
    /// Whether that number is exact. Newer peers only.
    pub count_is_complete: Option<bool>,
    /// Whether the search timed out. Newer peers only.
    pub timed_out: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Text to find in files.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct GrepInput {
    /// A regular expression.
    pub pattern: String,
    /// The file or directory to look in.
    pub path: Option<String>,
    /// Which files, by name.
    pub glob: Option<String>,
    /// What to report; file names if absent.
    pub output_mode: Option<GrepMode>,
    /// Lines to show before a match.
    #[wire(name = "-B")]
    pub before: Option<u64>,
    /// Lines to show after a match.
    #[wire(name = "-A")]
    pub after: Option<u64>,
    /// Lines to show on both sides.
    #[wire(name = "-C")]
    pub around: Option<u64>,
    /// The same, spelt out.
    pub context: Option<u64>,
    /// Whether to number the lines.
    #[wire(name = "-n")]
    pub line_numbers: Option<bool>,
    /// Whether case is ignored.
    #[wire(name = "-i")]
    pub ignore_case: Option<bool>,
    /// Whether to show only what matched. Newer peers only.
    #[wire(name = "-o")]
    pub only_matching: Option<bool>,
    /// Which files, by kind, such as `rust`.
    pub r#type: Option<String>,
    /// How many lines or entries to report at most.
    pub head_limit: Option<u64>,
    /// How many to leave out first.
    pub offset: Option<u64>,
    /// Whether a match may span lines.
    pub multiline: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a search reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum GrepMode {
    /// The lines.
    Content,
    /// The files' names.
    #[default]
    FilesWithMatches,
    /// How often per file.
    Count,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Text found in files.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GrepOutput {
    /// What is reported.
    pub mode: Option<GrepMode>,
    /// How many files.
    pub num_files: u64,
    /// Their names.
    pub filenames: Vec<String>,
    /// The lines, or the numbers.
    pub content: Option<String>,
    /// How many lines.
    pub num_lines: Option<u64>,
    /// How many matches.
    pub num_matches: Option<u64>,
    /// How many files there are in all. Newer peers only.
    pub total_files: Option<u64>,
    /// How many lines there are in all. Newer peers only.
    pub total_lines: Option<u64>,
    /// The limit that cut it off.
    pub applied_limit: Option<u64>,
    /// How many were left out first.
    pub applied_offset: Option<u64>,
    /// Whether the search timed out. Newer peers only.
    pub timed_out: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}
