//! `Read`: files as text, pictures, notebooks and documents.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{Extra, UnknownObject};

/// Which file to read, and which part.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadInput {
    /// The file.
    pub file_path: String,
    /// The first line, from 1.
    pub offset: Option<u64>,
    /// How many lines.
    pub limit: Option<u64>,
    /// Which pages of a document, such as `1-5`.
    pub pages: Option<String>,
    /// Whether to read it even if it is very long. Newer peers only.
    pub allow_large: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What was read; the variant is the kind of file.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type")]
#[non_exhaustive]
pub enum ReadOutput {
    /// Lines of text.
    Text(ReadText),
    /// A picture.
    Image(ReadImage),
    /// A notebook.
    Notebook(ReadNotebook),
    /// A document as a whole.
    Pdf(ReadPdf),
    /// A document, page by page.
    Parts(ReadParts),
    /// Nothing new since it was last read.
    FileUnchanged(ReadUnchanged),
    /// Another kind, kept whole.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// Lines of text.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadText {
    /// The file.
    pub file: TextFile,
    /// The artifact it belongs to. Newer peers only.
    pub artifact_read: Option<ReadArtifact>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A part of a text file.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextFile {
    /// The file.
    pub file_path: String,
    /// The lines.
    pub content: String,
    /// How many they are.
    pub num_lines: u64,
    /// The number of the first.
    pub start_line: u64,
    /// How many the file has.
    pub total_lines: u64,
    /// Whether it was cut off for its length. Newer peers only.
    pub truncated_by_token_cap: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A published artifact that was read.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ReadArtifact {
    /// Its name.
    pub slug: String,
    /// Its version.
    pub ver: Option<String>,
    /// Whether it counts as read in this session.
    pub seeded: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(file))]
#[non_exhaustive]
pub struct ReadImage {
    /// The file.
    pub file: ImageFile,
    /// Unknown fields.
    pub extra: Extra,
}

/// A picture's content.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(type, base64))]
#[non_exhaustive]
pub struct ImageFile {
    /// The content, encoded.
    pub base64: String,
    /// Its format.
    pub r#type: ImageType,
    /// The file's size in bytes.
    pub original_size: u64,
    /// Its measures.
    pub dimensions: Option<ImageDimensions>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The format of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ImageType {
    /// JPEG.
    #[wire(name = "image/jpeg")]
    Jpeg,
    /// PNG.
    #[wire(name = "image/png")]
    Png,
    /// GIF.
    #[wire(name = "image/gif")]
    Gif,
    /// WebP.
    #[wire(name = "image/webp")]
    Webp,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A picture's measures in pixels, in the file and as shown to the model.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageDimensions {
    /// Its width in the file.
    pub original_width: Option<u64>,
    /// Its height in the file.
    pub original_height: Option<u64>,
    /// Its width as shown.
    pub display_width: Option<u64>,
    /// Its height as shown.
    pub display_height: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A notebook.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadNotebook {
    /// The file.
    pub file: NotebookFile,
    /// Unknown fields.
    pub extra: Extra,
}

/// A notebook's content.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct NotebookFile {
    /// The file.
    pub file_path: String,
    /// Its cells.
    pub cells: Vec<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A document as a whole.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadPdf {
    /// The file.
    pub file: PdfFile,
    /// Unknown fields.
    pub extra: Extra,
}

/// A document's content.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct PdfFile {
    /// The file.
    pub file_path: String,
    /// The content, encoded.
    pub base64: String,
    /// Its size in bytes.
    pub original_size: u64,
    /// Unknown fields.
    pub extra: Extra,
}

/// A document, page by page.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadParts {
    /// The file.
    pub file: PartsFile,
    /// The number of the first page. Newer peers only.
    pub first_page: Option<u64>,
    /// The pages. Newer peers only.
    pub pages: Option<Vec<PageImage>>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where a document's pages were put.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct PartsFile {
    /// The document.
    pub file_path: String,
    /// Its size in bytes.
    pub original_size: u64,
    /// How many pages there are.
    pub count: u64,
    /// The directory with the pages.
    pub output_dir: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A page as a picture.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(media_type, base64))]
#[non_exhaustive]
pub struct PageImage {
    /// The content, encoded.
    pub base64: String,
    /// Its format.
    pub media_type: ImageType,
    /// Why there is no picture.
    pub error: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Nothing new since the file was last read.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadUnchanged {
    /// The file.
    pub file: UnchangedFile,
    /// Unknown fields.
    pub extra: Extra,
}

/// A file that is as it was.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnchangedFile {
    /// The file.
    pub file_path: String,
    /// Unknown fields.
    pub extra: Extra,
}
