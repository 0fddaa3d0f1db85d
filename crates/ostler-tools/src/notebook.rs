//! Jupyter notebooks, rendered cell by cell.

use std::path::Path;

use ostler_engine::tool::ToolOutput;
use ostler_proto::build;
use ostler_proto::tool::{NotebookFile, ReadNotebook, ReadOutput};
use serde_json::{Value, json};

use crate::text::{self, MAX_SHOWN_BYTES};

const MAX_OUTPUT_BYTES: usize = 4_000;

/// A notebook's cells; `None` if the text is not a notebook.
pub(crate) fn show(path: &Path, text: &str) -> Option<ToolOutput> {
    let notebook: Value = serde_json::from_str(text).ok()?;
    let language = notebook["metadata"]["kernelspec"]["language"].as_str().unwrap_or("python");
    let cells: Vec<Value> = notebook["cells"]
        .as_array()?
        .iter()
        .enumerate()
        .map(|(index, cell)| simple(index, cell, language))
        .collect();
    let mut shown = String::new();
    for (index, cell) in cells.iter().enumerate() {
        let rendered = render(index, cell);
        if shown.len() + rendered.len() > MAX_SHOWN_BYTES {
            let rest = cells.len() - index;
            shown += &format!(
                "[{rest} more cells from number {} on; Bash (jq '.cells[{index}]') shows them]\n",
                index + 1
            );
            break;
        }
        shown += &rendered;
    }
    if cells.is_empty() {
        shown.push_str("[the notebook has no cells]\n");
    }
    let file = build!(NotebookFile { file_path: path.display().to_string(), cells });
    Some(ToolOutput::new(shown, ReadOutput::Notebook(build!(ReadNotebook { file }))))
}

/// A cell without metadata, and with images as text.
fn simple(index: usize, cell: &Value, language: &str) -> Value {
    let kind = cell["cell_type"].as_str().unwrap_or("raw");
    let id = cell["id"].as_str().map_or_else(|| format!("cell-{index}"), str::to_owned);
    let mut simple = json!({ "cell_id": id, "cellType": kind, "source": joined(&cell["source"]) });
    if kind == "code" {
        simple["language"] = language.into();
        simple["execution_count"] = cell["execution_count"].clone();
        let outputs = cell["outputs"].as_array().map_or(&[][..], Vec::as_slice);
        simple["outputs"] = outputs.iter().map(output).collect();
    }
    simple
}

fn output(output: &Value) -> Value {
    let kind = output["output_type"].as_str().unwrap_or("");
    let text = match kind {
        "stream" => joined(&output["text"]),
        "error" => format!("{}: {}", text_of(&output["ename"]), text_of(&output["evalue"])),
        _ => data(&output["data"]),
    };
    let shown = text::head(&text, MAX_OUTPUT_BYTES);
    let cut = if shown.len() < text.len() { "\n[output cut]" } else { "" };
    json!({ "output_type": kind, "text": format!("{shown}{cut}") })
}

fn data(data: &Value) -> String {
    if !data["text/plain"].is_null() {
        return joined(&data["text/plain"]);
    }
    let kinds: Vec<&str> =
        data.as_object().into_iter().flat_map(|data| data.keys()).map(String::as_str).collect();
    format!("[{}, not shown]", kinds.join(", "))
}

fn render(index: usize, cell: &Value) -> String {
    let (id, kind) = (text_of(&cell["cell_id"]), text_of(&cell["cellType"]));
    let mut text = format!("[cell {}, {kind}, id {id}]\n{}\n", index + 1, text_of(&cell["source"]));
    for output in cell["outputs"].as_array().into_iter().flatten() {
        text += &format!("[output]\n{}\n", text_of(&output["text"]).trim_end());
    }
    text + "\n"
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Notebooks store text as one string or as a list of lines.
pub(crate) fn joined(value: &Value) -> String {
    match value {
        Value::Array(lines) => lines.iter().map(text_of).collect(),
        other => text_of(other).to_owned(),
    }
}
