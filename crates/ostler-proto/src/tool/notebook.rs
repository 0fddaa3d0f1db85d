//! `NotebookEdit`.

use ostler_proto_derive::Wire;

use crate::Extra;

/// A change to one cell of a notebook.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct NotebookEditInput {
    /// The notebook.
    pub notebook_path: String,
    /// The cell; for a new one, the cell before it.
    pub cell_id: Option<String>,
    /// The new content of the cell.
    pub new_source: String,
    /// The new kind of the cell.
    pub cell_type: Option<CellType>,
    /// What to do; replacing if absent.
    pub edit_mode: Option<NotebookEditMode>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The kind of a notebook's cell.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum CellType {
    /// Code.
    Code,
    /// Text.
    Markdown,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// What to do with a notebook's cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum NotebookEditMode {
    /// Change its content.
    #[default]
    Replace,
    /// Add one.
    Insert,
    /// Remove it.
    Delete,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A notebook was changed.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(cell_type, edit_mode))]
#[non_exhaustive]
pub struct NotebookEditOutput {
    /// The content of the cell now.
    pub new_source: String,
    /// The content before. Newer peers only.
    pub old_source: Option<String>,
    /// The cell.
    pub cell_id: Option<String>,
    /// Its kind.
    pub cell_type: CellType,
    /// The notebook's language.
    pub language: String,
    /// What was done.
    pub edit_mode: NotebookEditMode,
    /// What went wrong.
    pub error: Option<String>,
    /// The notebook.
    pub notebook_path: String,
    /// The notebook before.
    pub original_file: String,
    /// The notebook now.
    pub updated_file: String,
    /// Unknown fields.
    pub extra: Extra,
}
