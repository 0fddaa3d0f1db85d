//! Engines made of a few lines of shell.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ostler_sdk::{Error, Message, Options, query};
use tempfile::TempDir;

/// Far more than any step takes; only a step that hangs exceeds it.
const LIMIT: Duration = Duration::from_secs(60);

/// Reads `initialize` and answers it.
pub(crate) const INTRODUCES: &str = r#"
read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
"#;

/// Reads `initialize`, stores it in the file `introduction`, and answers it.
pub(crate) const KEEPS_INTRODUCTION: &str = r#"
read -r line
printf '%s' "$line" > introduction
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
"#;

/// Writes a result.
pub(crate) const ANSWERS: &str = r#"
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"ok","total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[],"uuid":"u","session_id":"s"}'
"#;

/// A fake engine in its own temporary folder.
pub(crate) struct Fake {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Fake {
    pub(crate) fn new(parts: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        // Another process writes the file. If this process wrote it, a child that another test starts meanwhile would
        // inherit the open file, and a file that is open for writing cannot be executed.
        let mut writer = Command::new("/bin/sh");
        writer.args(["-c", r#"printf '%s' "$1" > "$0"; chmod 755 "$0""#]).arg(&path);
        // If an engine does not start, the SDK runs it again with `--version`; by default the fake prints nothing then.
        let no_version = r#"[ "$1" = --version ] && exit"#;
        let first = parts.iter().all(|part| !part.contains("--version")).then_some(no_version);
        let script = first.iter().chain(parts).copied().collect::<Vec<_>>().join("\n");
        let written = writer.arg(format!("#!/bin/sh\n{script}\n")).status().unwrap();
        assert!(written.success());
        Self { folder, path }
    }

    pub(crate) fn options(&self) -> Options {
        Options::new().executable(&self.path).cwd(self.folder.path())
    }
}

/// Sends a prompt and returns all messages and errors up to the end of the session.
pub(crate) async fn run(options: Options) -> (Vec<Message>, Vec<Error>) {
    let mut messages = query("hello", options);
    let (mut received, mut errors) = (Vec::new(), Vec::new());
    while let Some(message) = within(messages.next()).await {
        match message {
            Ok(message) => received.push(message),
            Err(error) => errors.push(error),
        }
    }
    (received, errors)
}

/// The only error of a session with one prompt.
pub(crate) async fn error(options: Options) -> Error {
    let (_, mut errors) = run(options).await;
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

/// Waits for a future, but not longer than [`LIMIT`].
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("it does not hang")
}
