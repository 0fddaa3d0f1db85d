//! `Edit`: replaces text in a file.

use std::path::PathBuf;

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::EditOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::blocking;
use crate::path::CallPath;
use crate::read_files::ReadFiles;
use crate::target::Target;
use crate::{file, patch, path, similar, text};

pub(crate) struct Edit {
    read_files: ReadFiles,
}

impl Edit {
    pub(crate) fn new(read_files: ReadFiles) -> Self {
        Self { read_files }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The file.
    file_path: PathBuf,
    /// The text as it stands in the file, without line numbers. Empty: make a new file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence, not the only one.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const DESCRIPTION: &'static str = "Replaces a piece of text in a file that was read with Read. The old text must \
        match exactly, white space included, and occur only once unless replace_all is set.";
    type Args = Args;

    fn effect(&self, cx: &ToolCx, args: &Args) -> Effect {
        Effect::Write(path::absolute(cx, &args.file_path))
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let (cx, read_files) = (cx.clone(), self.read_files.clone());
        blocking(move || {
            let path = CallPath::of(&cx, path::absolute(&cx, &args.file_path))?;
            edit(&path, args, &read_files)
        })
        .await
    }
}

fn edit(path: &CallPath, args: Args, read_files: &ReadFiles) -> Result<ToolOutput, ToolError> {
    let Args { old_string, new_string, replace_all, .. } = args;
    if old_string == new_string {
        return Err(ToolError::Refused(
            "old_string and new_string are the same: nothing to change".to_owned(),
        ));
    }
    let target = Target::find(path.clone(), read_files)?;
    target.must_be_text()?;
    let shown = path.written.display();
    let after = match target.before.as_deref() {
        None | Some("") if old_string.is_empty() => new_string.clone(),
        None => return Err(file::missing(path)),
        Some(_) if old_string.is_empty() => {
            return Err(ToolError::Refused(format!(
                "{shown} exists: give the text to replace in old_string"
            )));
        }
        Some(before) => replaced(before, &old_string, &new_string, replace_all)
            .map_err(|why| ToolError::Refused(format!("{shown}: {why}")))?,
    };
    target.write(&after, read_files)?;

    let hunks = patch::hunks(target.before.as_deref().unwrap_or_default(), &after);
    let (added, removed) = patch::counts(&hunks);
    let verb = if target.before.is_some() { "Edited" } else { "Created" };
    let text = format!("{verb} {shown}: {added} lines added, {removed} removed.");
    let structured = build!(EditOutput {
        file_path: shown.to_string(),
        old_string,
        new_string,
        original_file: target.before,
        structured_patch: hunks,
        replace_all
    });
    Ok(ToolOutput::new(text, structured))
}

/// The text with `old` replaced, or the reason why not. Lines keep their line endings.
fn replaced(text: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    let crlf = (text::to_crlf(old), text::to_crlf(new));
    let as_written = (old.to_owned(), new.to_owned());
    let forms = if text::is_crlf(text) { [crlf, as_written] } else { [as_written, crlf] };
    let Some((old, new)) = forms.iter().find(|(old, _)| text.contains(old.as_str())) else {
        return Err(not_found(text, old));
    };
    let lines = line_numbers(text, old);
    if lines.len() > 1 && !all {
        return Err(ambiguous(&lines));
    }
    let after = text.replace(old.as_str(), new);
    if after == text {
        return Err(
            "the edit would change nothing but line ends, which are kept as they are".to_owned()
        );
    }
    Ok(after)
}

/// The line of each occurrence of `old`.
fn line_numbers(text: &str, old: &str) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let places = text.match_indices(old).map(|(index, _)| {
        line += text[at..index].matches('\n').count();
        at = index;
        line
    });
    places.collect()
}

fn ambiguous(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(usize::to_string).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    format!(
        "old_string occurs {} times, in lines {}{more}. Add surrounding text to make it unique, or set replace_all.",
        lines.len(),
        shown.join(", "),
    )
}

fn not_found(text: &str, old: &str) -> String {
    let wanted = old.lines().find(|line| !line.trim().is_empty()).unwrap_or(old);
    match similar::nearest_line(text, wanted) {
        Some((number, line)) if line.trim() == wanted.trim() => format!(
            "old_string was not found. Its first line is line {number}, so white space or a later line differs; Read it again from there."
        ),
        Some((number, line)) => format!(
            "old_string was not found. The most similar to its first line is line {number}: {}",
            text::head(line.trim_end(), 300)
        ),
        None => "old_string was not found, nor any similar line. Read the file again.".to_owned(),
    }
}
