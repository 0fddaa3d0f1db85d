//! PDF documents in a build without the feature `pdf`: recognised, and refused with the reason.

use std::path::Path;

use ostler_engine::tool::{ToolError, ToolOutput};

/// Does nothing: this build does not read documents in a separate process.
pub fn run_if_called() {}

pub(crate) fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

pub(crate) fn show(path: &Path, _: &[u8], _: Option<&str>) -> Result<ToolOutput, ToolError> {
    Err(ToolError::Refused(format!(
        "{} is a PDF document, and this program was built without support for them (feature `pdf`)",
        path.display()
    )))
}
