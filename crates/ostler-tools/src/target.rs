//! The file that `Write` and `Edit` change: resolved through links, read by the session, kept in its encoding.

use std::io;

use ostler_engine::tool::ToolError;

use crate::file;
use crate::path::CallPath;
use crate::read_files::ReadFiles;
use crate::text::{self, Encoding};

/// A file to write.
pub(crate) struct Target {
    path: CallPath,
    /// Its contents, if it exists.
    pub(crate) before: Option<String>,
    encoding: Encoding,
    /// Whether `before` does not represent the file exactly.
    lossy: bool,
}

impl Target {
    /// Opens the target. An existing file must have been read and not changed since.
    pub(crate) fn find(path: CallPath, read_files: &ReadFiles) -> Result<Self, ToolError> {
        match path.real.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let encoding = Encoding::default();
                return Ok(Self { path, before: None, encoding, lossy: false });
            }
            Err(error) => return Err(file::unreadable(&path, &error)),
            Ok(_) => {}
        }
        let bytes = file::load(&path)?;
        read_files.check(&path, &bytes)?;
        let text = text::decode(&bytes).unwrap_or_else(|| text::Text {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            encoding: Encoding::default(),
            lossy: true,
        });
        Ok(Self {
            path,
            before: Some(text.text),
            // Text that could not be decoded is not written in that encoding either.
            encoding: if text.lossy { Encoding::default() } else { text.encoding },
            lossy: text.lossy,
        })
    }

    /// Refuses a file whose bytes would change by decoding and encoding it.
    pub(crate) fn must_be_text(&self) -> Result<(), ToolError> {
        if self.lossy {
            return Err(ToolError::Refused(format!(
                "{} is not valid text in a known encoding, so an edit would damage it. Change it with Bash.",
                self.path.real.as_path().display()
            )));
        }
        Ok(())
    }

    /// Writes the new text and records it as read.
    pub(crate) fn write(&self, text: &str, read_files: &ReadFiles) -> Result<(), ToolError> {
        let bytes = text::encode(text, self.encoding);
        file::replace(&self.path, &bytes)?;
        read_files.note(&self.path.real, &bytes);
        Ok(())
    }
}
