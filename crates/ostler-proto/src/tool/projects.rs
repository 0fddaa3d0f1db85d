//! `Projects`: the documents and memory of a project that the vendor stores. Newer peers only.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{Extra, UnknownObject};

/// What to do with the project.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, new(method))]
#[non_exhaustive]
pub struct ProjectsInput {
    /// What to do.
    pub method: ProjectsMethod,
    /// The document.
    pub path: Option<String>,
    /// The new content.
    pub content: Option<String>,
    /// The file to take that from.
    pub local_path: Option<String>,
    /// Whether to show it to the user.
    pub present_to_user: Option<bool>,
    /// What to look for.
    pub query: Option<String>,
    /// How many hits.
    pub n: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What to do with a project.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ProjectsMethod {
    /// Describe it.
    ProjectInfo,
    /// Read a document.
    ProjectRead,
    /// Search the documents.
    ProjectSearch,
    /// Write a document.
    ProjectWrite,
    /// Delete a document.
    ProjectDelete,
    /// List its memory.
    ProjectMemoryList,
    /// Read from its memory.
    ProjectMemoryRead,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// The result.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "method")]
#[non_exhaustive]
pub enum ProjectsOutput {
    /// A description.
    ProjectInfo(ProjectInfo),
    /// A document.
    ProjectRead(ProjectRead),
    /// Hits.
    ProjectSearch(ProjectSearch),
    /// A document was written.
    ProjectWrite(ProjectWrite),
    /// A document was deleted.
    ProjectDelete(ProjectDelete),
    /// The memory's files.
    ProjectMemoryList(ProjectMemoryList),
    /// A file of the memory.
    ProjectMemoryRead(ProjectMemoryRead),
    /// Another kind, kept whole.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// A project.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectInfo {
    /// A notice.
    pub notice: Option<String>,
    /// A file with the same, if it is long.
    pub local_file: Option<String>,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Instructions for the model.
    pub instructions: String,
    /// Its documents.
    pub docs: Vec<ProjectDoc>,
    /// Its other files.
    pub files: Option<Vec<ProjectFile>>,
    /// Where its documents come from.
    pub sync_sources: Option<Vec<ProjectSyncSource>>,
    /// How much it holds.
    pub knowledge: ProjectKnowledge,
    /// Unknown fields.
    pub extra: Extra,
}

/// A document of a project.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectDoc {
    /// Its path.
    pub path: String,
    /// When it was made.
    #[wire(nullable)]
    pub created_at: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file of a project.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectFile {
    /// Its path.
    pub path: String,
    /// Its kind.
    pub file_kind: String,
    /// When it was made.
    #[wire(nullable)]
    pub created_at: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where documents come from.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectSyncSource {
    /// The kind of source.
    #[wire(nullable)]
    pub r#type: Option<String>,
    /// Its settings.
    pub config: Value,
    /// Unknown fields.
    pub extra: Extra,
}

/// How much a project holds.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectKnowledge {
    /// At present.
    pub knowledge_size: u64,
    /// At most.
    pub max_knowledge_size: u64,
    /// Unknown fields.
    pub extra: Extra,
}

/// A document.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectRead {
    /// A notice.
    pub notice: Option<String>,
    /// Its path.
    pub path: String,
    /// Its kind.
    pub file_kind: Option<String>,
    /// Its content.
    pub content: Option<String>,
    /// The file it was put into.
    pub local_file: Option<String>,
    /// When it was made.
    #[wire(nullable)]
    pub created_at: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What was found in a project.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectSearch {
    /// A notice.
    pub notice: Option<String>,
    /// Whether the search went by meaning.
    pub rag: bool,
    /// The places.
    pub hits: Option<Vec<ProjectHit>>,
    /// The documents.
    pub docs: Option<Vec<String>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A place in a document.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectHit {
    /// The document's name.
    pub name: Option<String>,
    /// The document.
    pub doc_uuid: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// Whether there is a picture.
    pub image_attached: Option<bool>,
    /// The page.
    pub page: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A document was written.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectWrite {
    /// A notice.
    pub notice: Option<String>,
    /// Its path.
    pub path: String,
    /// The document.
    pub doc_uuid: String,
    /// Whether it was there before.
    pub replaced: bool,
    /// Whether it is shown to the user.
    pub present_to_user: Option<bool>,
    /// The file it was taken from.
    pub local_path: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A document was deleted.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectDelete {
    /// A notice.
    pub notice: Option<String>,
    /// Its path.
    pub path: String,
    /// Whether it was.
    pub deleted: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// The files of a project's memory.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectMemoryList {
    /// A notice.
    pub notice: Option<String>,
    /// The files.
    pub files: Vec<ProjectMemoryFile>,
    /// Whether there are more.
    pub truncated: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file of a project's memory.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectMemoryFile {
    /// Its path.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// When it last changed.
    #[wire(nullable)]
    pub updated_at: Option<String>,
    /// Whether it is longer than shown.
    pub truncated: bool,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file read from a project's memory.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ProjectMemoryRead {
    /// A notice.
    pub notice: Option<String>,
    /// Its path.
    pub path: String,
    /// Its content.
    pub content: Option<String>,
    /// The file it was put into.
    pub local_file: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// When it last changed.
    #[wire(nullable)]
    pub updated_at: Option<String>,
    /// Whether it is longer than shown.
    pub truncated: bool,
    /// Unknown fields.
    pub extra: Extra,
}
