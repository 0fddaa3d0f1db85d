//! Tests for authors of a [`SessionStore`]: everything that the SDK relies on.
//!
//! The cases are those of the Python SDK's `run_session_store_conformance`, except for its summaries, plus retried
//! lines, concurrent appends and unusual JSON.

use std::future::Future;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{SessionKey, SessionStore, SessionStoreError, StoreFuture};

/// What was checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Methods that the store implements.
    pub methods: Vec<&'static str>,
    /// Methods that return [`SessionStoreError::Unsupported`]; they were not checked.
    pub unsupported: Vec<&'static str>,
}

/// Checks a store. `new_store` is called for every case and must return an empty one.
///
/// ```
/// use ostler_sdk::session_store::{InMemorySessionStore, contract};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let report = contract::check(|| async { InMemorySessionStore::new() }).await;
/// assert!(report.unsupported.is_empty());
/// # });
/// ```
///
/// # Panics
/// When the store violates the contract. The message names the rule.
pub async fn check<S, F>(new_store: impl Fn() -> F) -> Report
where
    S: SessionStore,
    F: Future<Output = S>,
{
    let report = methods(&new_store().await).await;
    appended_lines_are_loaded_in_order(&new_store().await).await;
    an_unknown_key_has_no_lines(&new_store().await).await;
    an_empty_append_changes_nothing(&new_store().await).await;
    any_json_comes_back_equal(&new_store().await).await;
    keys_are_kept_apart(&new_store().await).await;
    lines_without_uuid_are_never_left_out(&new_store().await).await;
    appends_at_the_same_time_lose_nothing(&new_store().await).await;
    let has = |method: &str| report.methods.contains(&method);
    if has("list_sessions") {
        sessions_are_listed_by_project(&new_store().await).await;
        an_append_makes_a_session_the_newest(&new_store().await).await;
    }
    if has("list_subkeys") {
        subkeys_are_listed_by_session(&new_store().await).await;
    }
    if has("delete") {
        a_deleted_session_is_gone(&new_store().await, &report).await;
        a_deleted_subpath_leaves_the_rest(&new_store().await, &report).await;
    }
    report
}

async fn methods(store: &impl SessionStore) -> Report {
    let mut report = Report::default();
    report.methods.extend(["append", "load"]);
    let key = key();
    let answers = [
        ("list_sessions", store.list_sessions("proj").await.map(drop)),
        ("delete", store.delete(&key).await),
        ("list_subkeys", store.list_subkeys(&key).await.map(drop)),
    ];
    for (method, answer) in answers {
        match answer {
            Ok(()) => report.methods.push(method),
            Err(SessionStoreError::Unsupported(_)) => report.unsupported.push(method),
            Err(error) => panic!("`{method}` on an empty store must not fail: {error}"),
        }
    }
    report
}

async fn appended_lines_are_loaded_in_order(store: &impl SessionStore) {
    let lines = [line("z", 1), line("a", 2), line("m", 3), line("b", 4)];
    append(store, &key(), &lines[..2]).await;
    append(store, &key(), &lines[2..3]).await;
    append(store, &key(), &lines[3..]).await;
    let loaded = load(store, &key()).await;
    assert_eq!(loaded.as_deref(), Some(&lines[..]), "lines come back in the order of the appends");
}

async fn an_unknown_key_has_no_lines(store: &impl SessionStore) {
    let nothing = "`load` of a key without lines returns None";
    assert_eq!(load(store, &key()).await, None, "{nothing}");
    append(store, &key(), &[line("x", 1)]).await;
    assert_eq!(load(store, &SessionKey::new("proj", "other")).await, None, "{nothing}");
    assert_eq!(load(store, &subagent("1")).await, None, "{nothing}");
}

async fn an_empty_append_changes_nothing(store: &impl SessionStore) {
    append(store, &key(), &[line("a", 1)]).await;
    append(store, &key(), &[]).await;
    assert_eq!(load(store, &key()).await, Some(vec![line("a", 1)]), "an empty append adds nothing");
}

async fn any_json_comes_back_equal(store: &impl SessionStore) {
    let odd = json!({
        "type": "x", "uuid": "odd", "null": null, "empty": {}, "list": [[], [1, "2", null, {"a": true}]],
        "text": "line\nbreak \u{1f600} \"quoted\" \\ 日本語", "big": 9_007_199_254_740_991_i64, "negative": -1, "fraction": 0.1,
        "long": "x".repeat(100_000),
    });
    append(store, &key(), std::slice::from_ref(&odd)).await;
    assert_eq!(load(store, &key()).await, Some(vec![odd]), "lines come back as equal JSON");
}

async fn keys_are_kept_apart(store: &impl SessionStore) {
    let keys = [
        key(),
        SessionKey::new("proj", "sess2"),
        SessionKey::new("proj2", "sess"),
        subagent("1"),
        subagent("2"),
        SessionKey::new("proj", "sess2").with_subpath("subagents/agent-1"),
    ];
    for (n, key) in (0..).zip(&keys) {
        append(store, key, &[line("same uuid", n)]).await;
    }
    for (n, key) in (0..).zip(&keys) {
        let loaded = load(store, key).await;
        assert_eq!(loaded, Some(vec![line("same uuid", n)]), "{key:?} has its own line only");
    }
}

async fn lines_without_uuid_are_never_left_out(store: &impl SessionStore) {
    let title = json!({"type": "custom-title", "customTitle": "A"});
    append(store, &key(), &[title.clone(), title.clone()]).await;
    append(store, &key(), std::slice::from_ref(&title)).await;
    let loaded = load(store, &key()).await.unwrap_or_default();
    assert_eq!(loaded.len(), 3, "equal lines without a uuid are all kept");
}

async fn appends_at_the_same_time_lose_nothing(store: &impl SessionStore) {
    let keys: Vec<_> = (0..8).map(|n| SessionKey::new("proj", format!("sess{n}"))).collect();
    let appends = keys.iter().map(|key| async move {
        for n in 0..10 {
            append(store, key, &[line(&format!("u{n}"), n)]).await;
        }
    });
    futures::future::join_all(appends).await;
    for key in &keys {
        let loaded = load(store, key).await.unwrap_or_default();
        let numbers: Vec<_> = loaded.iter().filter_map(|line| line["n"].as_i64()).collect();
        assert!(
            numbers.into_iter().eq(0..10),
            "{key:?}: appends to other sessions do not interfere"
        );
    }
}

async fn sessions_are_listed_by_project(store: &impl SessionStore) {
    for key in [
        SessionKey::new("proj", "a"),
        SessionKey::new("proj", "b"),
        SessionKey::new("proj", "b").with_subpath("subagents/agent-1"),
        SessionKey::new("proj", "only-a-subagent").with_subpath("subagents/agent-1"),
        SessionKey::new("other", "c"),
    ] {
        append(store, &key, &[line("x", 1)]).await;
    }
    let ids = session_ids(store, "proj").await;
    assert_eq!(
        ids,
        ["a", "b"],
        "`list_sessions` names conversations of the project, not subagents"
    );
    assert_eq!(session_ids(store, "other").await, ["c"]);
    assert!(
        session_ids(store, "never used").await.is_empty(),
        "an unknown project has no sessions"
    );
    let sessions = expect(store.list_sessions("proj")).await;
    let a_day = Duration::from_secs(24 * 3600);
    for session in sessions {
        let now = SystemTime::now();
        let is_now = session.modified > now - a_day && session.modified < now + a_day;
        assert!(is_now, "`modified` is the time of the last append: {session:?}");
    }
}

async fn an_append_makes_a_session_the_newest(store: &impl SessionStore) {
    let [a, b] = ["a", "b"].map(|id| SessionKey::new("proj", id));
    for (n, key) in [&a, &b, &a].into_iter().enumerate() {
        append(store, key, &[line(&format!("u{n}"), 0)]).await;
        // Clocks of file systems and databases may tick in milliseconds.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let sessions = expect(store.list_sessions("proj")).await;
    let newest = sessions.iter().max_by_key(|session| session.modified);
    let newest = newest.map(|session| session.session_id.as_str());
    assert_eq!(newest, Some("a"), "every append updates `modified`");
}

async fn subkeys_are_listed_by_session(store: &impl SessionStore) {
    append(store, &key(), &[line("m", 1)]).await;
    assert!(subkeys(store, &key()).await.is_empty(), "the conversation itself is not a subkey");
    append(store, &subagent("1"), &[line("s", 1)]).await;
    append(store, &subagent("2"), &[line("s", 1)]).await;
    let other = SessionKey::new("proj", "sess2");
    append(store, &other.clone().with_subpath("subagents/agent-x"), &[line("s", 1)]).await;
    assert_eq!(subkeys(store, &key()).await, ["subagents/agent-1", "subagents/agent-2"]);
    assert_eq!(subkeys(store, &other).await, ["subagents/agent-x"]);
    assert!(subkeys(store, &SessionKey::new("proj", "never used")).await.is_empty());
}

async fn a_deleted_session_is_gone(store: &impl SessionStore, report: &Report) {
    expect(store.delete(&key())).await;
    let others = [SessionKey::new("proj", "sess2"), SessionKey::new("proj2", "sess")];
    for key in [key(), subagent("1"), subagent("2")].iter().chain(&others) {
        append(store, key, &[line("x", 1)]).await;
    }
    expect(store.delete(&key())).await;
    for key in [key(), subagent("1"), subagent("2")] {
        assert_eq!(load(store, &key).await, None, "`delete` also deletes the subagents: {key:?}");
    }
    for key in &others {
        assert!(load(store, key).await.is_some(), "`delete` keeps other sessions: {key:?}");
    }
    if report.methods.contains(&"list_sessions") {
        assert_eq!(session_ids(store, "proj").await, ["sess2"], "a deleted session is not listed");
    }
    if report.methods.contains(&"list_subkeys") {
        assert!(subkeys(store, &key()).await.is_empty(), "a deleted session has no subkeys");
    }
    append(store, &key(), &[line("x", 2)]).await;
    let again = load(store, &key()).await;
    assert_eq!(again, Some(vec![line("x", 2)]), "a deleted key can be used again");
}

async fn a_deleted_subpath_leaves_the_rest(store: &impl SessionStore, report: &Report) {
    for key in [key(), subagent("1"), subagent("2")] {
        append(store, &key, &[line("x", 1)]).await;
    }
    expect(store.delete(&subagent("1"))).await;
    assert_eq!(load(store, &subagent("1")).await, None);
    for key in [key(), subagent("2")] {
        assert!(
            load(store, &key).await.is_some(),
            "`delete` of a subpath deletes only that: {key:?}"
        );
    }
    if report.methods.contains(&"list_subkeys") {
        assert_eq!(subkeys(store, &key()).await, ["subagents/agent-2"]);
    }
}

fn key() -> SessionKey {
    SessionKey::new("proj", "sess")
}

fn subagent(id: &str) -> SessionKey {
    key().with_subpath(format!("subagents/agent-{id}"))
}

fn line(uuid: &str, n: i64) -> Value {
    json!({"type": "x", "uuid": uuid, "n": n})
}

async fn append(store: &impl SessionStore, key: &SessionKey, lines: &[Value]) {
    expect(store.append(key, lines)).await;
}

async fn load(store: &impl SessionStore, key: &SessionKey) -> Option<Vec<Value>> {
    expect(store.load(key)).await
}

async fn session_ids(store: &impl SessionStore, project_key: &str) -> Vec<String> {
    let sessions = expect(store.list_sessions(project_key)).await;
    let mut ids: Vec<_> = sessions.into_iter().map(|session| session.session_id).collect();
    ids.sort();
    ids
}

async fn subkeys(store: &impl SessionStore, key: &SessionKey) -> Vec<String> {
    let mut subkeys = expect(store.list_subkeys(key)).await;
    subkeys.sort();
    subkeys
}

async fn expect<T>(answer: StoreFuture<'_, T>) -> T {
    match answer.await {
        Ok(value) => value,
        Err(error) => panic!("the store failed: {error}"),
    }
}
