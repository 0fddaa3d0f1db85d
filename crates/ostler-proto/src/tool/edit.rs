//! `Write` and `Edit`.

use ostler_proto_derive::Wire;

use crate::Extra;

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct WriteInput {
    /// The file.
    pub file_path: String,
    /// The new content.
    pub content: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file was written.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(type, file_path))]
#[non_exhaustive]
pub struct WriteOutput {
    /// Whether it is new.
    pub r#type: WriteKind,
    /// The file.
    pub file_path: String,
    /// The content now.
    pub content: String,
    /// What changed.
    pub structured_patch: Vec<PatchHunk>,
    /// The content before.
    #[wire(nullable)]
    pub original_file: Option<String>,
    /// The change as git sees it.
    pub git_diff: Option<GitDiff>,
    /// Whether the user changed the text before it was written. Newer peers only.
    pub user_modified: Option<bool>,
    /// Whether it is only staged for review. Newer peers only.
    pub staged: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Whether a written file is new.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum WriteKind {
    /// It is.
    Create,
    /// It was there before.
    Update,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A piece of text to be replaced.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct EditInput {
    /// The file.
    pub file_path: String,
    /// The current text.
    pub old_string: String,
    /// The text to put in its place.
    pub new_string: String,
    /// Whether to do so everywhere.
    pub replace_all: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file was changed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct EditOutput {
    /// The file.
    pub file_path: String,
    /// The text that was replaced.
    pub old_string: String,
    /// The text in its place.
    pub new_string: String,
    /// The content of the file before.
    #[wire(nullable)]
    pub original_file: Option<String>,
    /// What changed.
    pub structured_patch: Vec<PatchHunk>,
    /// Whether the user changed the edit before it was made.
    pub user_modified: bool,
    /// Whether it was done everywhere.
    pub replace_all: bool,
    /// The change as git sees it.
    pub git_diff: Option<GitDiff>,
    /// Whether it is only staged for review. Newer peers only.
    pub staged: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// One changed place of a file.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct PatchHunk {
    /// The first line before the change.
    pub old_start: u64,
    /// How many lines before.
    pub old_lines: u64,
    /// The first line after it.
    pub new_start: u64,
    /// How many lines after.
    pub new_lines: u64,
    /// The lines, each marked with ` `, `-` or `+`.
    pub lines: Vec<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A change as git sees it.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(filename, status))]
#[non_exhaustive]
pub struct GitDiff {
    /// The file.
    pub filename: String,
    /// Whether it is new.
    pub status: GitDiffStatus,
    /// Lines added.
    pub additions: u64,
    /// Lines removed.
    pub deletions: u64,
    /// Both together.
    pub changes: u64,
    /// The patch.
    pub patch: String,
    /// The repository. Newer peers only.
    pub repository: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What git calls a changed file.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum GitDiffStatus {
    /// It was there before.
    Modified,
    /// It is new.
    Added,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}
