//! `ostler backup`, `ostler check` and `ostler restore`, while a server runs.

use ostler_testkit::{Script, reply, when};
use serde_json::json;

use crate::serve_options::Served;

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_is_backed_up_checked_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, other, file) = (path("data"), path("other"), path("copy.db"));
    let script = || Script::new().rule(when(), reply().text("the-answer-is-12"));
    let served = Served::scripted(script(), &["--data", &data]).await;
    let session = served.ask("/sessions", Some(json!({}))).await;
    let session = session["id"].as_str().unwrap();
    let run = served.ask(&format!("/sessions/{session}/runs"), Some(json!({"prompt": "hi"}))).await;
    let run = format!("/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(served.settled(&run, "state").await, "completed");

    let ostler = &served.ostler;
    let made = ostler.run(&["backup", &file, "--data", &data]);
    assert!(made.code == Some(0), "{made:?}");
    let again = ostler.run(&["backup", &file, "--data", &data]);
    assert!(again.code == Some(1) && again.stderr.contains("another name"), "{again:?}");
    for place in [&["check", "--data", &data][..], &["check", &file]] {
        let sound = ostler.run(place);
        assert!(sound.code == Some(0) && sound.stdout.contains("no damage found"), "{sound:?}");
    }
    let used = ostler.run(&["restore", &file, "--data", &data, "--force"]);
    assert!(used.code == Some(1) && used.stderr.contains("cannot open the store"), "{used:?}");

    let restored = ostler.run(&["restore", &file, "--data", &other]);
    assert!(restored.code == Some(0), "{restored:?}");
    let refused = ostler.run(&["restore", &file, "--data", &other]);
    assert!(refused.code == Some(1) && refused.stderr.contains("--force"), "{refused:?}");
    let replaced = ostler.run(&["restore", &file, "--data", &other, "--force"]);
    assert!(
        replaced.code == Some(0) && replaced.stdout.contains("before-restore-1.db"),
        "{replaced:?}"
    );
    let second = Served::scripted(script(), &["--data", &other]).await;
    assert_eq!(second.ask(&run, None).await["outcome"]["result"], "the-answer-is-12");

    let mut bytes = std::fs::read(&file).unwrap();
    let places: Vec<usize> =
        (0..bytes.len() - 16).filter(|at| &bytes[*at..*at + 16] == b"the-answer-is-12").collect();
    for at in places {
        bytes[at] = b'T';
    }
    std::fs::write(&file, bytes).unwrap();
    let damaged = ostler.run(&["check", &file]);
    assert!(damaged.code == Some(1) && damaged.stderr.contains("is damaged"), "{damaged:?}");
    let kept = ostler.run(&["restore", &file, "--data", &path("third")]);
    assert!(kept.code == Some(1) && kept.stderr.contains("the backup is damaged"), "{kept:?}");
}
