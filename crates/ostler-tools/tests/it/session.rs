//! A folder, a set of tools, and helpers to call them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::tool::{AnyTool, Effect, Prepared, ToolCx, ToolError, ToolOutput};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Session {
    folder: TempDir,
    /// Shared by the calls of a session.
    shared: ToolCx,
    tools: Vec<Arc<dyn AnyTool>>,
}

impl Session {
    pub(crate) fn new() -> Self {
        let mut tools = ostler_tools::session_tools();
        tools.extend(ostler_tools::task_tools());
        Self { folder: TempDir::new().unwrap(), shared: ToolCx::default(), tools }
    }

    /// The real path of the folder.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn cx(&self) -> ToolCx {
        ToolCx { cwd: self.root(), ..self.shared.clone() }
    }

    /// Writes a file that no tool has read.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn prepare(&self, tool: &str, input: &Value) -> Result<Prepared, String> {
        let tool =
            self.tools.iter().find(|it| it.spec().name == tool).expect("a tool of that name");
        Arc::clone(tool).prepare(&self.cx(), input)
    }

    pub(crate) fn effect(&self, tool: &str, input: Value) -> Effect {
        self.prepare(tool, &input).unwrap().effect
    }

    pub(crate) async fn run(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let prepared = self.prepare(tool, &input).unwrap();
        (prepared.run)(self.cx()).await
    }

    /// The text for the model of a successful call.
    pub(crate) async fn text(&self, tool: &str, input: Value) -> String {
        self.run(tool, input).await.unwrap().content.text()
    }

    /// The structured output of a successful call.
    pub(crate) async fn structured(&self, tool: &str, input: Value) -> Value {
        self.run(tool, input).await.unwrap().structured.unwrap()
    }

    /// The text for the model of a failed call.
    pub(crate) async fn error(&self, tool: &str, input: Value) -> String {
        self.run(tool, input).await.unwrap_err().to_string()
    }
}

/// Makes a named pipe.
pub(crate) fn make_pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}
