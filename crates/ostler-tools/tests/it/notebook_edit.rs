//! Notebooks: one cell changes, the rest stays unchanged to the byte.

use ostler_engine::tool::Effect;
use serde_json::{Value, json};

use crate::session::Session;

/// As Jupyter writes it, with unknown fields and a number in an odd spelling.
pub(crate) const JUPYTER: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "m1",
   "metadata": {},
   "source": [
    "# Title\n",
    "words"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 4,
   "id": "c1",
   "metadata": {
    "x": 1.50e1
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n"
     ]
    }
   ],
   "source": "print(1)"
  }
 ],
 "metadata": {
  "kernelspec": {
   "language": "julia"
  },
  "odd": 1.0E2
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

async fn with(notebook: &str) -> Session {
    let session = Session::new();
    session.file("a.ipynb", notebook);
    session.text("Read", json!({ "file_path": "a.ipynb" })).await;
    session
}

fn edit(mode: &str, cell: Option<&str>, source: &str, kind: Option<&str>) -> Value {
    let mut input = json!({ "notebook_path": "a.ipynb", "new_source": source, "edit_mode": mode });
    if let Some(cell) = cell {
        input["cell_id"] = json!(cell);
    }
    if let Some(kind) = kind {
        input["cell_type"] = json!(kind);
    }
    input
}

#[tokio::test]
async fn replacing_a_cell_keeps_its_layout_and_the_rest_of_the_file() {
    let session = with(JUPYTER).await;
    session.text("NotebookEdit", edit("replace", Some("m1"), "# New\nx\n", None)).await;
    let expected = JUPYTER
        .replace("    \"# Title\\n\",\n    \"words\"\n", "    \"# New\\n\",\n    \"x\\n\"\n");
    assert_eq!(session.content("a.ipynb"), expected);
}

#[tokio::test]
async fn replacing_code_removes_its_old_output() {
    let session = with(JUPYTER).await;
    let input = edit("replace", Some("c1"), "print(2)", None);
    let mut structured = session.structured("NotebookEdit", input).await;
    let content = session.content("a.ipynb");
    assert_eq!(structured["original_file"], JUPYTER);
    assert_eq!(structured["updated_file"], content);
    for field in ["original_file", "updated_file"] {
        structured.as_object_mut().unwrap().remove(field);
    }
    let path = session.path("a.ipynb");
    assert_eq!(
        structured,
        json!({ "new_source": "print(2)", "old_source": "print(1)", "cell_id": "c1", "cell_type": "code",
            "language": "julia", "edit_mode": "replace", "notebook_path": path })
    );
    let cell = &serde_json::from_str::<Value>(&content).unwrap()["cells"][1];
    assert_eq!(
        *cell,
        json!({ "cell_type": "code", "execution_count": null, "id": "c1", "metadata": { "x": 15.0 },
            "outputs": [], "source": "print(2)" })
    );
    assert!(content.contains("\"odd\": 1.0E2") && content.contains("   \"outputs\": [],\n"));
}

#[tokio::test]
async fn a_cell_can_change_its_type() {
    let session = with(JUPYTER).await;
    session.text("NotebookEdit", edit("replace", Some("c1"), "words", Some("markdown"))).await;
    session.text("NotebookEdit", edit("replace", Some("m1"), "1+1", Some("code"))).await;
    let content: Value = serde_json::from_str(&session.content("a.ipynb")).unwrap();
    assert_eq!(
        content["cells"],
        json!([
            { "cell_type": "code", "id": "m1", "metadata": {}, "source": ["1+1"], "outputs": [],
                "execution_count": null },
            { "cell_type": "markdown", "id": "c1", "metadata": { "x": 15.0 }, "source": "words" },
        ])
    );
}

#[tokio::test]
async fn cells_are_inserted_at_their_place_in_the_layout_of_the_file() {
    for (notebook, first, last) in [
        (JUPYTER.to_owned(), "m1", "c1"),
        (JUPYTER.replace('\n', "\r\n").replace("\\r\\n", "\\n"), "m1", "c1"),
        (JUPYTER.replace("\n ", "\n    "), "m1", "c1"),
        (json_of(JUPYTER).to_string(), "m1", "c1"),
        (json_of(JUPYTER).to_string().replace("\":", "\": ").replace(",\"", ", \""), "m1", "c1"),
    ] {
        let session = with(&notebook).await;
        session.text("NotebookEdit", edit("insert", None, "a\nb", Some("markdown"))).await;
        session.text("NotebookEdit", edit("insert", Some(last), "x = 1", Some("code"))).await;
        let content = session.content("a.ipynb");
        let cells = json_of(&content)["cells"].as_array().unwrap().clone();
        assert_eq!(cells.len(), 4);
        assert_eq!((&cells[1]["id"], &cells[2]["id"]), (&json!(first), &json!(last)));
        assert_eq!(cells[0]["source"], json!(["a\n", "b"]));
        assert_eq!(cells[3]["cell_type"], "code");
        assert_eq!(cells[3]["id"].as_str().unwrap().len(), 8);
        // Without them the file is as before.
        for cell in [&cells[0], &cells[3]] {
            let id = cell["id"].as_str().unwrap();
            session.text("NotebookEdit", edit("delete", Some(id), "", None)).await;
        }
        assert_eq!(session.content("a.ipynb"), notebook);
        // The inserted cells are laid out like the others.
        let lines = |text: &str| text.matches('\n').count();
        assert_eq!(lines(&notebook) > 0, lines(&content) > lines(&notebook) + 2);
        assert_eq!(notebook.contains("\r\n"), content.contains("\r\n"));
        assert_eq!(
            content.replace("\r\n", "").contains('\n'),
            notebook.contains('\n') && !notebook.contains('\r')
        );
    }
}

#[tokio::test]
async fn all_cells_can_be_deleted_and_new_ones_inserted() {
    let session = with(JUPYTER).await;
    session.text("NotebookEdit", edit("delete", Some("m1"), "", None)).await;
    let text = session.text("NotebookEdit", edit("delete", Some("c1"), "", None)).await;
    assert!(text.starts_with("Deleted cell c1 in "), "{text}");
    assert!(session.content("a.ipynb").starts_with("{\n \"cells\": [],\n \"metadata\""));
    session.text("NotebookEdit", edit("insert", None, "x", Some("code"))).await;
    let content = session.content("a.ipynb");
    assert!(
        content.starts_with("{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n"),
        "{content}"
    );
    assert!(content.contains("\n  }\n ],\n \"metadata\""), "{content}");
}

#[tokio::test]
async fn old_notebooks_have_no_ids_and_get_none() {
    let session = with(
        r#"{"cells": [{"cell_type": "raw", "source": "a"}], "nbformat": 4, "nbformat_minor": 4}"#,
    )
    .await;
    let structured =
        session.structured("NotebookEdit", edit("insert", Some("cell-0"), "b", Some("code"))).await;
    assert_eq!(structured["cell_id"], "cell-1");
    let structured =
        session.structured("NotebookEdit", edit("replace", Some("cell-0"), "c", None)).await;
    assert_eq!(structured["cell_type"], "raw");
    assert_eq!(
        session.content("a.ipynb"),
        concat!(
            r#"{"cells": [{"cell_type": "raw", "source": "c"}, {"cell_type": "code", "execution_count": null, "#,
            r#""metadata": {}, "outputs": [], "source": "b"}], "nbformat": 4, "nbformat_minor": 4}"#
        )
    );
}

#[tokio::test]
async fn an_impossible_edit_is_refused_with_a_reason() {
    let session = with(JUPYTER).await;
    for (input, why) in [
        (edit("replace", Some("nope"), "x", None), "there is no cell nope; there are m1, c1"),
        (edit("replace", None, "x", None), "cell_id says which cell"),
        (edit("delete", None, "", None), "cell_id says which cell"),
        (edit("insert", Some("m1"), "x", None), "needs a cell_type"),
        (json!({ "notebook_path": "gone.ipynb", "cell_id": "x" }), "does not exist"),
        (json!({ "notebook_path": "a.txt", "cell_id": "x" }), "use Edit"),
    ] {
        let error = session.error("NotebookEdit", input.clone()).await;
        assert!(error.contains(why), "{input}: {error}");
    }
    assert_eq!(session.content("a.ipynb"), JUPYTER);
    for (notebook, why) in [
        ("not json", "not valid JSON"),
        ("[]", "no list of cells"),
        ("{}", "no list of cells"),
        (r#"{"cells": {}}"#, "no list of cells"),
        (r#"{"cells": [1]}"#, "no list of cells"),
        (r#"{"worksheets": []}"#, "no list of cells"),
    ] {
        let session = with(notebook).await;
        let error = session.error("NotebookEdit", edit("replace", Some("x"), "", None)).await;
        assert!(error.contains(why), "{notebook}: {error}");
    }
}

#[tokio::test]
async fn a_notebook_must_be_read_before_an_edit_and_again_after_another_program_changes_it() {
    let session = Session::new();
    session.file("a.ipynb", JUPYTER);
    let input = edit("replace", Some("m1"), "x", None);
    assert!(session.error("NotebookEdit", input.clone()).await.contains("Read it first"));
    session.text("Read", json!({ "file_path": "a.ipynb" })).await;
    session.text("NotebookEdit", input.clone()).await;
    session.text("NotebookEdit", edit("replace", Some("m1"), "y", None)).await;
    session.file("a.ipynb", format!("{JUPYTER}\n"));
    assert!(session.error("NotebookEdit", input).await.contains("Read it again"));
}

#[tokio::test]
async fn cells_are_found_after_misleading_text() {
    let notebook = r#"{"a": {"cells": [1, "]"]}, "b": "\"cells\": [{}]", "cells": [ {"source": "}],{\"", "id": "x"} , {"id":"y"} ] , "c": null}"#;
    let session = with(notebook).await;
    session.text("NotebookEdit", edit("delete", Some("x"), "", None)).await;
    assert_eq!(
        session.content("a.ipynb"),
        r#"{"a": {"cells": [1, "]"]}, "b": "\"cells\": [{}]", "cells": [ {"id":"y"} ] , "c": null}"#
    );
}

#[test]
fn the_effect_is_writing_the_notebook() {
    let session = Session::new();
    let effect = session.effect("NotebookEdit", edit("delete", Some("x"), "", None));
    assert_eq!(effect, Effect::Write(session.path("a.ipynb")));
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
