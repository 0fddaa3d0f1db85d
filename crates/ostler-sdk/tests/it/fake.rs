//! Engines made of a few lines of shell.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ostler_sdk::{Error, Message, Options, query};
use tempfile::TempDir;

/// Nothing here takes that long, unless it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// Reads `initialize` and answers it.
pub(crate) const INTRODUCES: &str = r#"
read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
"#;

/// The same, and keeps what the host said.
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

/// An engine in a folder of its own.
pub(crate) struct Fake {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Fake {
    pub(crate) fn new(parts: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        // By another process: a test that starts something while this one writes would keep the file open for writing,
        // and such a file cannot be executed.
        let mut writer = Command::new("/bin/sh");
        writer.args(["-c", r#"printf '%s' "$1" > "$0"; chmod 755 "$0""#]).arg(&path);
        // An engine that does not start is asked for its version, from the folder of this program.
        let is_asked = r#"[ "$1" = --version ] && exit"#;
        let asked = parts.iter().all(|part| !part.contains("--version")).then_some(is_asked);
        let script = asked.iter().chain(parts).copied().collect::<Vec<_>>().join("\n");
        let written = writer.arg(format!("#!/bin/sh\n{script}\n")).status().unwrap();
        assert!(written.success());
        Self { folder, path }
    }

    pub(crate) fn options(&self) -> Options {
        Options::new().executable(&self.path).cwd(self.folder.path())
    }
}

/// Gives a prompt and returns what came, up to the end.
pub(crate) async fn run(options: Options) -> (Vec<Message>, Vec<Error>) {
    let mut messages = query("hello", options);
    let (mut heard, mut errors) = (Vec::new(), Vec::new());
    while let Some(message) = within(messages.next()).await {
        match message {
            Ok(message) => heard.push(message),
            Err(error) => errors.push(error),
        }
    }
    (heard, errors)
}

/// The one error that a prompt ends with.
pub(crate) async fn error(options: Options) -> Error {
    let (_, mut errors) = run(options).await;
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

/// Waits, but not for ever.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("it does not hang")
}
