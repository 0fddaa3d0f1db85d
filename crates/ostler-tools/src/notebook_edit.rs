//! `NotebookEdit`: changes one cell of a Jupyter notebook. The rest of the file stays unchanged to the last byte, see
//! `notebook_edit/source.rs`.

mod source;

use std::path::{Path, PathBuf};

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{CellType, NotebookEditMode, NotebookEditOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::source::Source;
use crate::blocking::blocking;
use crate::notebook::joined;
use crate::path::CallPath;
use crate::read_files::ReadFiles;
use crate::target::Target;
use crate::{file, path};

pub(crate) struct NotebookEdit {
    read_files: ReadFiles,
}

impl NotebookEdit {
    pub(crate) fn new(read_files: ReadFiles) -> Self {
        Self { read_files }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The .ipynb file.
    notebook_path: PathBuf,
    /// The cell, by the id that Read shows. To insert: the cell before; the beginning if absent.
    cell_id: Option<String>,
    /// The new source.
    #[serde(default)]
    new_source: String,
    /// To insert; as it is if absent.
    cell_type: Option<Kind>,
    /// Replace if absent.
    #[serde(default)]
    edit_mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Code,
    Markdown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

impl Tool for NotebookEdit {
    const NAME: &'static str = "NotebookEdit";
    const DESCRIPTION: &'static str =
        "Replaces, inserts or deletes a cell of a Jupyter notebook that was read with Read.";
    type Args = Args;

    fn effect(&self, cx: &ToolCx, args: &Args) -> Effect {
        Effect::Write(path::absolute(cx, &args.notebook_path))
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let (cx, read_files) = (cx.clone(), self.read_files.clone());
        blocking(move || {
            let path = CallPath::of(&cx, path::absolute(&cx, &args.notebook_path))?;
            edit(&path, args, &read_files)
        })
        .await
    }
}

fn edit(call: &CallPath, args: Args, read_files: &ReadFiles) -> Result<ToolOutput, ToolError> {
    let path = call.written.as_path();
    if path.extension().is_none_or(|extension| extension != "ipynb") {
        return Err(refused(path, "it is not an .ipynb file; use Edit"));
    }
    let target = Target::find(call.clone(), read_files)?;
    target.must_be_text()?;
    let Some(before) = target.before.clone() else { return Err(file::missing(call)) };
    let notebook = Notebook::read(&before).map_err(|why| refused(path, &why))?;
    let change = notebook.change(&args).map_err(|why| refused(path, &why))?;
    target.write(&change.after, read_files)?;

    let done = match args.edit_mode {
        Mode::Replace => "Replaced",
        Mode::Insert => "Inserted",
        Mode::Delete => "Deleted",
    };
    let text = format!("{done} cell {} in {}.", change.cell_id, path.display());
    let cell_type = match change.kind.as_str() {
        "code" => CellType::Code,
        "markdown" => CellType::Markdown,
        other => CellType::Other(other.into()),
    };
    let edit_mode = match args.edit_mode {
        Mode::Replace => NotebookEditMode::Replace,
        Mode::Insert => NotebookEditMode::Insert,
        Mode::Delete => NotebookEditMode::Delete,
    };
    let structured = build!(NotebookEditOutput {
        new_source: if args.edit_mode == Mode::Delete { String::new() } else { args.new_source },
        old_source: change.old_source,
        cell_id: Some(change.cell_id),
        language: notebook.language(),
        notebook_path: path.display().to_string(),
        original_file: before.clone(),
        updated_file: change.after,
        ..NotebookEditOutput::new(cell_type, edit_mode)
    });
    Ok(ToolOutput::new(text, structured))
}

fn refused(path: &Path, why: &str) -> ToolError {
    ToolError::Refused(format!("{}: {why}", path.display()))
}

/// A notebook as text and as JSON.
struct Notebook<'a> {
    source: Source<'a>,
    content: Value,
    cells: Vec<Map<String, Value>>,
}

/// The result of an edit.
struct Change {
    after: String,
    cell_id: String,
    kind: String,
    old_source: Option<String>,
}

impl<'a> Notebook<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let content: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        let cells = content["cells"].as_array().map(|cells| {
            cells.iter().map(|cell| cell.as_object().cloned()).collect::<Option<Vec<_>>>()
        });
        let Some(Some(cells)) = cells else { return Err("it has no list of cells".to_owned()) };
        let source = Source::of(text).filter(|source| source.n_cells() == cells.len());
        let source = source.ok_or("its cells cannot be located in the text")?;
        Ok(Self { source, content, cells })
    }

    fn language(&self) -> String {
        let metadata = &self.content["metadata"];
        let language = metadata["kernelspec"]["language"].as_str();
        language.or(metadata["language_info"]["name"].as_str()).unwrap_or("python").to_owned()
    }

    fn change(&self, args: &Args) -> Result<Change, String> {
        let index = args.cell_id.as_deref().map(|id| self.find(id)).transpose()?;
        match (args.edit_mode, index) {
            (Mode::Insert, after) => self.insert(after, args),
            (_, None) => Err("cell_id says which cell; Read shows the ids".to_owned()),
            (Mode::Replace, Some(index)) => Ok(self.replace(index, args)),
            (Mode::Delete, Some(index)) => {
                Ok(Change { after: self.source.without(index), ..self.changed(index) })
            }
        }
    }

    fn find(&self, id: &str) -> Result<usize, String> {
        let mut ids = (0..self.cells.len()).map(|index| self.id(index));
        ids.position(|known| known == id).ok_or_else(|| {
            let known: Vec<String> = (0..self.cells.len().min(20)).map(|n| self.id(n)).collect();
            format!("there is no cell {id}; there are {}", known.join(", "))
        })
    }

    /// The id that `Read` shows.
    fn id(&self, index: usize) -> String {
        let id = self.cells[index].get("id").and_then(Value::as_str);
        id.map_or_else(|| format!("cell-{index}"), str::to_owned)
    }

    /// A change of this cell, before it is made.
    fn changed(&self, index: usize) -> Change {
        let cell = &self.cells[index];
        Change {
            after: String::new(),
            cell_id: self.id(index),
            kind: cell.get("cell_type").and_then(Value::as_str).unwrap_or("raw").to_owned(),
            old_source: cell.get("source").map(joined),
        }
    }

    fn replace(&self, index: usize, args: &Args) -> Change {
        let mut change = self.changed(index);
        let mut cell = self.cells[index].clone();
        if let Some(kind) = args.cell_type {
            change.kind = kind.word().to_owned();
        }
        cell.insert("cell_type".to_owned(), json!(change.kind));
        let in_lines = cell.get("source").is_none_or(Value::is_array);
        cell.insert("source".to_owned(), written(&args.new_source, in_lines));
        if change.kind == "code" {
            // The output of the old code does not belong to the new code.
            cell.insert("outputs".to_owned(), json!([]));
            cell.insert("execution_count".to_owned(), Value::Null);
        } else {
            cell.shift_remove("outputs");
            cell.shift_remove("execution_count");
        }
        change.after = self.source.with(index, &Value::Object(cell));
        change
    }

    fn insert(&self, after: Option<usize>, args: &Args) -> Result<Change, String> {
        let kind = args.cell_type.ok_or("a new cell needs a cell_type: code or markdown")?;
        let index = after.map_or(0, |index| index + 1);
        let mut cell = Map::new();
        cell.insert("cell_type".to_owned(), json!(kind.word()));
        if kind == Kind::Code {
            cell.insert("execution_count".to_owned(), Value::Null);
        }
        let id = self.has_ids().then(|| self.fresh_id(index, &args.new_source));
        if let Some(id) = &id {
            cell.insert("id".to_owned(), json!(id));
        }
        cell.insert("metadata".to_owned(), json!({}));
        if kind == Kind::Code {
            cell.insert("outputs".to_owned(), json!([]));
        }
        let in_lines = self.cells.first().and_then(|cell| cell.get("source"));
        let in_lines = in_lines.is_none_or(Value::is_array);
        cell.insert("source".to_owned(), written(&args.new_source, in_lines));
        Ok(Change {
            after: self.source.with_new(index, &Value::Object(cell)),
            cell_id: id.unwrap_or_else(|| format!("cell-{index}")),
            kind: kind.word().to_owned(),
            old_source: None,
        })
    }

    /// Cells have ids since version 4.5 of the format; earlier versions forbid unknown fields.
    fn has_ids(&self) -> bool {
        let number = |field: &str| self.content[field].as_u64().unwrap_or(0);
        (number("nbformat"), number("nbformat_minor")) >= (4, 5)
    }

    fn fresh_id(&self, index: usize, source: &str) -> String {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let ids = (0u64..).map(|attempt| {
            let mut hasher = DefaultHasher::new();
            (self.cells.len(), index, source, attempt).hash(&mut hasher);
            format!("{:08x}", hasher.finish() >> 32)
        });
        let mut ids = ids.filter(|id| self.find(id).is_err());
        ids.next().expect("there are more ids than cells")
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

/// A cell's text, as a list of lines or as one string.
fn written(source: &str, in_lines: bool) -> Value {
    if in_lines { source.split_inclusive('\n').collect() } else { json!(source) }
}
