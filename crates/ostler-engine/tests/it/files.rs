//! Files that the host asks for.

use std::time::Duration;

use ostler_engine::permission::Policy;
use ostler_proto::control::{AskEngine, ReadFile};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::Script;

use crate::host::TestHost;

// Mutant: the file is opened before anybody asks what it is, which waits for a writer.
#[tokio::test]
async fn a_pipe_or_a_device_is_not_read_and_blocks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    assert!(std::process::Command::new("mkfifo").arg(cwd.join("pipe")).status().unwrap().success());
    std::fs::write(cwd.join("file"), "text").unwrap();
    let policy = Policy::new(cwd.clone(), PermissionMode::Default);
    let mut host = TestHost::with(Script::new(), |options| {
        options.policy = policy;
        options.cwd = cwd;
    })
    .await;
    for (path, expected) in [("pipe", "not a file"), ("file", "text")] {
        let read = ReadFile { path: path.into(), ..ReadFile::default() };
        host.ask(path, AskEngine::ReadFile(read)).await;
        let answer = tokio::time::timeout(Duration::from_secs(30), host.until("control_response"));
        let answer = format!("{:?}", answer.await.expect("an answer"));
        assert!(answer.contains(expected), "{path}: {answer}");
    }
}
