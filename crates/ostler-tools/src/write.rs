//! `Write`: creates or replaces a whole file.

use std::path::PathBuf;

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{WriteKind, WriteOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::path::CallPath;
use crate::read_files::ReadFiles;
use crate::target::Target;
use crate::{patch, path, text};

pub(crate) struct Write {
    read_files: ReadFiles,
}

impl Write {
    pub(crate) fn new(read_files: ReadFiles) -> Self {
        Self { read_files }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The file; missing folders are made.
    file_path: PathBuf,
    /// The whole content.
    content: String,
}

impl Tool for Write {
    const NAME: &'static str = "Write";
    const DESCRIPTION: &'static str = "Creates a file, or replaces all of its content. A file that is there must \
        have been read with Read first. To change parts of a file, use Edit.";
    type Args = Args;

    fn effect(&self, cx: &ToolCx, args: &Args) -> Effect {
        Effect::Write(path::absolute(cx, &args.file_path))
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let (cx, read_files) = (cx.clone(), self.read_files.clone());
        blocking(move || {
            let path = CallPath::of(&cx, path::absolute(&cx, &args.file_path))?;
            write(path, args.content, &read_files)
        })
        .await
    }
}

fn write(path: CallPath, content: String, read_files: &ReadFiles) -> Result<ToolOutput, ToolError> {
    let target = Target::find(path.clone(), read_files)?;
    let path = path.written;
    // The model sees lines without their endings, so it cannot know that they were CR LF.
    let keep_crlf =
        target.before.as_deref().is_some_and(text::is_crlf) && !content.contains("\r\n");
    let content = if keep_crlf { text::to_crlf(&content) } else { content };
    target.write(&content, read_files)?;

    let before = target.before;
    let hunks = before.as_deref().map_or_else(Vec::new, |before| patch::hunks(before, &content));
    let text = if before.is_some() {
        let (added, removed) = patch::counts(&hunks);
        format!("Replaced {}: {added} lines added, {removed} removed.", path.display())
    } else {
        format!("Created {} with {} lines.", path.display(), content.lines().count())
    };
    let kind = if before.is_some() { WriteKind::Update } else { WriteKind::Create };
    let structured = build!(WriteOutput {
        content,
        structured_patch: hunks,
        original_file: before,
        user_modified: Some(false),
        ..WriteOutput::new(kind, path.display().to_string())
    });
    Ok(ToolOutput::new(text, structured))
}
