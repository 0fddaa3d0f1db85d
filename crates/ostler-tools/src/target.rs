//! The file that `Write` and `Edit` change: found through links, known to the session, kept in its encoding.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use ostler_engine::tool::ToolError;

use crate::file;
use crate::seen::Seen;
use crate::text::{self, Encoding};

/// A file to be written.
pub(crate) struct Target {
    /// The file itself, not the link that led to it.
    path: PathBuf,
    metadata: Option<Metadata>,
    /// What it holds, if it is there.
    pub(crate) before: Option<String>,
    encoding: Encoding,
    /// Whether `before` is not the file to the last byte.
    lossy: bool,
}

impl Target {
    /// Looks at what is there. A file that is there must have been read and not have changed since.
    pub(crate) fn find(path: &Path, seen: &Seen) -> Result<Self, ToolError> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let encoding = Encoding::default();
                return Ok(Self {
                    path: path.to_owned(),
                    metadata: None,
                    before: None,
                    encoding,
                    lossy: false,
                });
            }
            Err(error) => return Err(file::unreadable(path, &error)),
            Ok(_) => {}
        }
        let real = path.canonicalize().map_err(|error| {
            ToolError::Refused(format!("{} is a link that leads nowhere: {error}", path.display()))
        })?;
        let loaded = file::load(&real)?;
        seen.check(path, &loaded.bytes)?;
        let text = text::decode(&loaded.bytes).unwrap_or_else(|| text::Text {
            text: String::from_utf8_lossy(&loaded.bytes).into_owned(),
            encoding: Encoding::default(),
            lossy: true,
        });
        Ok(Self {
            path: real,
            metadata: Some(loaded.metadata),
            before: Some(text.text),
            // Text that could not be read in its encoding is not written in it either.
            encoding: if text.lossy { Encoding::default() } else { text.encoding },
            lossy: text.lossy,
        })
    }

    /// Refuses a file whose bytes would not survive being read as text and written back.
    pub(crate) fn must_be_text(&self) -> Result<(), ToolError> {
        if self.lossy {
            return Err(ToolError::Refused(format!(
                "{} is not valid text in a known encoding, so an edit would damage it. Change it with Bash.",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Writes the new text and remembers it as known.
    pub(crate) fn write(&self, text: &str, seen: &Seen) -> Result<(), ToolError> {
        let bytes = text::encode(text, self.encoding);
        file::replace(&self.path, &bytes, self.metadata.as_ref())?;
        seen.note(&self.path, &bytes);
        Ok(())
    }
}
