//! A content management system that behaves, and one that misbehaves.

use serde_json::json;

use super::stub::{Fault, Stub};
use super::*;

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(30);

fn record(id: &str, name: &str) -> Value {
    json!({"id": 1, "documentId": id, "name": name, "content": format!("# {name}\n"), "allowedTools": "Read, Write"})
}

#[tokio::test]
async fn records_of_both_versions_are_skills() {
    let stub = Stub::default();
    let cms = stub.start(LONG).await;
    let head = "---\nname: in-file\nallowed-tools: [Bash]\ninputs: {url: string}\n---\n\n# Body\n";
    stub.put(json!([
        record("abc", "five"),
        {"id": 7, "attributes": {"name": "four", "content": head, "metadata": {"mcpTools": {"a": ["X"]}}}},
        {"id": 8, "documentId": "whole", "skillmd": head},
        {"documentId": "empty", "name": "empty"},
        {"documentId": "../x", "name": "x", "content": "x"},
    ]));
    let five = cms.find("abc").await.unwrap().unwrap();
    assert_eq!(
        (five.name.as_str(), five.content.as_str(), five.source.word()),
        ("five", "# five\n", "strapi")
    );
    assert_eq!(five.tools.unwrap(), ["Read", "Write"]);
    let four = cms.find("7").await.unwrap().unwrap();
    assert_eq!((four.name.as_str(), four.content.as_str()), ("four", "# Body\n"));
    assert_eq!(four.tools.unwrap(), ["Bash"]);
    assert_eq!(cms.find("whole").await.unwrap().unwrap().inputs.declared.len(), 1);
    assert_eq!(cms.find("five").await.unwrap().unwrap().id, "abc", "by its name");
    assert_eq!(cms.find("none").await.unwrap(), None);
    let listed = cms.list().await.unwrap();
    assert_eq!(listed.skills.len(), 3);
    assert_eq!(listed.problems.len(), 2, "{:?}", listed.problems);
    assert!(stub.seen.lock().iter().all(|(_, token)| token.as_deref() == Some("Bearer cms-token")));
}

#[tokio::test]
async fn a_change_applies_from_the_next_run() {
    let stub = Stub::default();
    let cms = stub.start(LONG).await;
    stub.put(json!([{"documentId": "a", "name": "a", "content": "old"}]));
    assert_eq!(cms.find("a").await.unwrap().unwrap().content, "old");
    stub.put(json!([{"documentId": "a", "name": "a", "content": "new"}]));
    assert_eq!(cms.find("a").await.unwrap().unwrap().content, "new");
    stub.put(json!([]));
    assert_eq!(cms.find("a").await.unwrap(), None);
}

#[tokio::test]
async fn all_pages_are_read() {
    let stub = Stub::default();
    let cms = stub.start(LONG).await;
    let records: Vec<Value> =
        (0..250).map(|it| record(&format!("id{it}"), &format!("s{it}"))).collect();
    stub.put(json!(records));
    assert_eq!(cms.list().await.unwrap().skills.len(), 250);
}

// Seen to fail when ids are put into the address as they are, or redirects are followed.
#[tokio::test]
async fn requests_go_to_the_address_of_the_skills_only() {
    let stub = Stub::default();
    let cms = stub.start(LONG).await;
    for id in ["../users", "a/b", "..", "", "a?b=c", "a#b", "%2e%2e", "a b"] {
        assert_eq!(cms.find(id).await.unwrap(), None, "{id}");
    }
    assert!(stub.seen.lock().is_empty(), "no request was sent");
    *stub.fault.lock() = Fault::Redirects;
    assert!(matches!(cms.find("a").await, Err(SkillError::Unreachable(_))));
    assert!(!stub.seen.lock().iter().any(|(path, _)| path == "/elsewhere"));
}

// Seen to hang without the time limit, and to read 300 MB with a size limit of that much.
#[tokio::test]
async fn a_system_that_misbehaves_is_abandoned() {
    let stub = Stub::default();
    let cms = stub.start(LONG).await;
    for (fault, part) in
        [(Fault::NeverEnds, "longer than"), (Fault::Nonsense, "not JSON"), (Fault::Fails, "500")]
    {
        *stub.fault.lock() = fault;
        let error = cms.find("a").await.unwrap_err().to_string();
        assert!(error.contains(part), "{fault:?}: {error}");
    }
    // Bytes in transit when the connection is closed count too, so the bound is a few times the limit.
    let n_sent = stub.n_sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(n_sent < 4 * LONGEST, "{n_sent} bytes were sent");
    let hasty = stub.start(SHORT).await;
    *stub.fault.lock() = Fault::Silent;
    assert_eq!(hasty.find("a").await.unwrap_err(), SkillError::TooSlow(SHORT));
    let nobody = Cms::new("http://127.0.0.1:1/api/skills", None, LONG).unwrap();
    assert!(matches!(nobody.list().await, Err(SkillError::Unreachable(_))));
}

#[test]
fn only_urls_of_a_web_server_are_accepted() {
    for odd in ["", "skills", "ftp://x/skills", "file:///etc", "data:x"] {
        assert!(Cms::new(odd, None, LONG).is_err(), "{odd}");
    }
    // Mutant: `Cms::new` that takes an address that is not encrypted from anywhere.
    for open in [
        "http://cms.example",
        "http://10.0.0.7/skills",
        "http://127.0.0.1.example/",
        "http://localhost.x/",
    ] {
        let error = Cms::new(open, None, LONG).unwrap_err();
        assert!(error.contains("https"), "{open}: {error}");
    }
    for (said, meant) in [
        ("http://127.0.0.1:1337/", "http://127.0.0.1:1337/api/skills"),
        ("http://[::1]", "http://[::1]/api/skills"),
        ("http://localhost:1337", "http://localhost:1337/api/skills"),
        ("https://cms.example", "https://cms.example/api/skills"),
        ("https://cms.example/own/agents", "https://cms.example/own/agents"),
    ] {
        assert_eq!(Cms::new(said, None, LONG).unwrap().records.as_str(), meant);
    }
    let cms = Cms::new("https://cms.example/api/skills", Some("hush".to_owned()), LONG).unwrap();
    assert!(!format!("{cms:?}").contains("hush"));
}
