//! Fake engines: shell scripts, and one that only records how it is started.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_prompt::{Markdown, Output, Prompt};
use ostler_sdk::transport::{Link, Start, Transport};
use ostler_sdk::{Error, Options};
use tempfile::TempDir;

/// Reads `initialize` and answers it.
pub(crate) const INTRODUCES: &str = r#"
read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$id"
read -r prompt
printf '%s' "$prompt" > prompt
"#;

/// A result with some additional fields.
#[macro_export]
macro_rules! result {
    ($($fields:literal),+) => {
        concat!(
            r#"printf '%s\n' '{"type":"result","duration_ms":1,"duration_api_ms":1,"num_turns":1,"total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[],"uuid":"u","session_id":"s","#,
            $($fields,)+
            "}'; cat > /dev/null"
        )
    };
}

/// An engine in a temporary folder.
pub(crate) struct Fake {
    pub(crate) folder: TempDir,
    path: PathBuf,
}

impl Fake {
    pub(crate) fn new(parts: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        // Another process writes the file. If this process wrote it, a child that another test starts meanwhile would
        // inherit the open file, and a file that is open for writing cannot be executed.
        let mut writer = Command::new("/bin/sh");
        writer.args(["-c", r#"printf '%s' "$1" > "$0"; chmod 755 "$0""#]).arg(&path);
        let written = writer.arg(format!("#!/bin/sh\n{}\n", parts.join("\n"))).status().unwrap();
        assert!(written.success());
        Self { folder, path }
    }

    pub(crate) fn options(&self) -> Options {
        Options::new().executable(&self.path).cwd(self.folder.path())
    }
}

/// Records how it is started, and starts nothing.
#[derive(Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<Option<Start>>>);

impl Noted {
    pub(crate) fn start(&self) -> Start {
        self.0.lock().unwrap().clone().expect("it was started")
    }
}

impl Transport for Noted {
    fn start(&self, start: Start) -> BoxFuture<'static, Result<Link, Error>> {
        *self.0.lock().unwrap() = Some(start);
        async { Err(Error::NoEngine("this engine only records its start".to_owned())) }.boxed()
    }
}

/// A prompt with a text, and an answer of some type.
pub(crate) fn prompt<T: Output>(text: &str) -> Prompt<T> {
    Prompt::builder("test", "prompt").section(Markdown::new("Task", "task", text)).build().unwrap()
}
