//! Sessions in a store: what is stored, when, and how a session is resumed from the store.

mod folder;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use ostler_sdk::proto::message::System;
use ostler_sdk::session_store::{
    SessionKey, SessionStoreError, SessionStoreOptions, StoreFlush, StoreFuture, StoredSession,
    contract, project_key,
};
use ostler_sdk::{Client, Error, ErrorKind, InMemorySessionStore, Message, Options, SessionStore};
use serde_json::{Value, json};

use self::folder::FolderStore;
use crate::fake::{ANSWERS, Fake, INTRODUCES, run, within};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";
const OTHER: &str = "660e8400-e29b-41d4-a716-446655440000";
const SUBAGENT: &str = "770e8400-e29b-41d4-a716-446655440000";

/// Stores its arguments and a copy of its configuration folder.
const KEEPS_CONFIG: &str = r#"
printf '%s\n' "$@" > args
printf '%s' "$CLAUDE_CONFIG_DIR" > config_dir
[ -d "$CLAUDE_CONFIG_DIR" ] && cp -R "$CLAUDE_CONFIG_DIR" config
"#;

/// Sends one line of the transcript, with this uuid, to the host.
fn mirrors(uuid: &str) -> String {
    let file = format!("/somewhere/projects/-srv-app/{ID}.jsonl");
    let frame = json!({"type": "transcript_mirror", "filePath": file, "entries": [line(uuid)]});
    format!("printf '%s\\n' '{frame}'\n")
}

fn line(uuid: &str) -> Value {
    json!({"type": "user", "uuid": uuid, "parentUuid": null, "sessionId": ID})
}

fn key() -> SessionKey {
    SessionKey::new("-srv-app", ID)
}

/// An engine that writes one line of the transcript in each of two turns, and one at the end.
fn two_turns() -> Fake {
    let turn = |uuid: &str| format!("read -r line\n{}{ANSWERS}", mirrors(uuid));
    Fake::new(&[INTRODUCES, &turn("u1"), &turn("u2"), &mirrors("u3"), "read -r line; exit 0"])
}

fn uuids(entries: &[Value]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry["uuid"].as_str()).collect()
}

#[tokio::test]
async fn the_store_in_memory_fulfils_the_contract() {
    let report = contract::check(|| async { InMemorySessionStore::new() }).await;
    assert_eq!(report.unsupported, [""; 0]);
}

#[tokio::test]
async fn a_store_in_a_folder_fulfils_the_contract() {
    let report = contract::check(|| async { FolderStore::new() }).await;
    assert_eq!(report.methods, ["append", "load", "list_sessions", "delete", "list_subkeys"]);
}

/// A store with the required methods only, which may also return lines in the wrong order.
struct Broken {
    inner: InMemorySessionStore,
    forgets_order: bool,
}

impl SessionStore for Broken {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> StoreFuture<'a, ()> {
        self.inner.append(key, entries)
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>> {
        async {
            let mut entries = self.inner.load(key).await?;
            if self.forgets_order {
                entries.iter_mut().for_each(|entries| entries.sort_by_key(Value::to_string));
            }
            Ok(entries)
        }
        .boxed()
    }
}

#[tokio::test]
async fn the_contract_skips_methods_that_a_store_does_not_have() {
    let minimal = || async { Broken { inner: InMemorySessionStore::new(), forgets_order: false } };
    let report = contract::check(minimal).await;
    assert_eq!(report.unsupported, ["list_sessions", "delete", "list_subkeys"]);
}

#[tokio::test]
#[should_panic(expected = "lines come back in the order of the appends")]
async fn the_contract_fails_for_a_store_that_loses_the_order() {
    contract::check(|| async {
        Broken { inner: InMemorySessionStore::new(), forgets_order: true }
    })
    .await;
}

#[tokio::test]
async fn lines_are_stored_before_the_result_can_be_read() {
    let fake = two_turns();
    let store = Arc::new(InMemorySessionStore::new());
    let options = fake.options().session_store(Arc::clone(&store));
    let mut client = Client::connect(options).await.unwrap();
    for expected in [&["u1"][..], &["u1", "u2"]] {
        within(client.prompt("hello")).await.unwrap();
        assert_eq!(uuids(&store.entries(&key())), expected);
    }
    client.close().await.unwrap();
    assert_eq!(
        uuids(&store.entries(&key())),
        ["u1", "u2", "u3"],
        "also the line after the last turn"
    );
}

#[tokio::test]
async fn lines_for_the_store_are_not_messages_for_the_host() {
    let fake = Fake::new(&[INTRODUCES, "read -r line", &mirrors("u1"), ANSWERS]);
    for with_store in [true, false] {
        let mut options = fake.options();
        if with_store {
            options = options.session_store(InMemorySessionStore::new());
        }
        let (messages, errors) = run(options).await;
        assert!(errors.is_empty(), "{errors:?}");
        let others = messages.iter().filter(|it| matches!(it, Message::Other(_))).count();
        assert_eq!(others, usize::from(!with_store));
    }
}

/// A store whose appends fail in some way.
struct Unreliable {
    inner: Arc<InMemorySessionStore>,
    /// The faults of the first appends, in order. All later appends succeed.
    faults: Mutex<Vec<Fault>>,
    n_appends: AtomicUsize,
}

#[derive(Clone, Copy)]
enum Fault {
    Fails,
    Panics,
    Hangs,
}

impl Unreliable {
    fn new(faults: &[Fault]) -> Arc<Self> {
        let faults = faults.iter().rev().copied().collect();
        Arc::new(Self {
            inner: Arc::default(),
            faults: Mutex::new(faults),
            n_appends: AtomicUsize::new(0),
        })
    }
}

impl SessionStore for Unreliable {
    fn append<'a>(&'a self, key: &'a SessionKey, entries: &'a [Value]) -> StoreFuture<'a, ()> {
        self.n_appends.fetch_add(1, Ordering::Relaxed);
        let fault = self.faults.lock().unwrap().pop();
        match fault {
            None => self.inner.append(key, entries),
            Some(Fault::Fails) => {
                std::future::ready(Err(SessionStoreError::failed("the database is away"))).boxed()
            }
            Some(Fault::Panics) => panic!("a bug of the store"),
            Some(Fault::Hangs) => std::future::pending().boxed(),
        }
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>> {
        self.inner.load(key)
    }
}

/// Runs two turns with a store. Returns the reported errors of each turn, the uuids in the store at the end, and the
/// number of appends before that.
async fn two_turns_with(faults: &[Fault]) -> ([Vec<String>; 2], Vec<String>, usize) {
    let fake = two_turns();
    let store = Unreliable::new(faults);
    let mut stored = SessionStoreOptions::new(Arc::clone(&store));
    stored.append_timeout = Duration::from_millis(100);
    let mut client = Client::connect(fake.options().session_store(stored)).await.unwrap();
    let mut reported = [Vec::new(), Vec::new()];
    for reported in &mut reported {
        client.send("hello").await.unwrap();
        let mut turn = client.turn();
        while let Some(message) = within(turn.next()).await {
            if let Message::System(System::MirrorError(error)) = message.unwrap() {
                assert_eq!(error.key.session_id.as_str(), ID);
                assert_eq!(error.key.project_key, "-srv-app");
                reported.push(error.error);
            }
        }
    }
    let n_appends = store.n_appends.load(Ordering::Relaxed);
    client.close().await.unwrap();
    let entries = store.inner.entries(&key());
    (reported, uuids(&entries).into_iter().map(str::to_owned).collect(), n_appends)
}

#[tokio::test]
async fn an_append_that_fails_twice_is_retried_and_not_reported() {
    let (reported, stored, n_appends) = two_turns_with(&[Fault::Fails, Fault::Panics]).await;
    assert_eq!(reported, [const { Vec::<String>::new() }; 2]);
    assert_eq!(stored, ["u1", "u2", "u3"]);
    assert_eq!(n_appends, 4, "three for the first turn, one for the second");
}

#[tokio::test]
async fn an_append_that_fails_three_times_is_reported_and_tried_again_in_order() {
    let (reported, stored, n_appends) = two_turns_with(&[Fault::Fails; 3]).await;
    assert_eq!(reported, [vec!["the database is away".to_owned()], Vec::new()]);
    assert_eq!(stored, ["u1", "u2", "u3"], "no line is missing or out of order");
    assert_eq!(n_appends, 4);
}

#[tokio::test]
async fn an_append_that_takes_too_long_is_reported_and_not_repeated_at_once() {
    let (reported, stored, n_appends) = two_turns_with(&[Fault::Hangs]).await;
    let [first, second] = reported;
    assert_eq!(first.len(), 1);
    assert!(first[0].contains("did not answer within 0.1 s"), "{first:?}");
    assert_eq!(second, [""; 0]);
    assert_eq!(stored, ["u1", "u2", "u3"]);
    assert_eq!(n_appends, 2);
}

#[tokio::test]
async fn with_eager_flushes_lines_are_stored_during_the_turn() {
    let engine = [INTRODUCES, "read -r line", &mirrors("u1"), "read -r line", ANSWERS];
    let fake = Fake::new(&engine);
    let store = Arc::new(InMemorySessionStore::new());
    let stored = SessionStoreOptions::new(Arc::clone(&store)).flush(StoreFlush::Eager);
    let client = Client::connect(fake.options().session_store(stored)).await.unwrap();
    client.send("hello").await.unwrap();
    let is_stored = async {
        while store.entries(&key()).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within(is_stored).await;
    client.send("there").await.unwrap();
    client.close().await.unwrap();
}

#[tokio::test]
async fn the_project_key_of_the_options_replaces_that_of_the_folder() {
    let fake = Fake::new(&[KEEPS_CONFIG, INTRODUCES, "read -r line", &mirrors("u2"), ANSWERS]);
    let store = Arc::new(InMemorySessionStore::new());
    let tenant = SessionKey::new("tenant-1", ID);
    store.append(&tenant, &[line("u1")]).await.unwrap();
    let stored = SessionStoreOptions::new(Arc::clone(&store)).project("tenant-1");
    let (_, errors) = run(fake.options().session_store(stored).resume(ID)).await;
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(uuids(&store.entries(&tenant)), ["u1", "u2"]);
    let folder = fake.folder.path().join("config/projects").join(project_key(fake.folder.path()));
    assert!(folder.join(format!("{ID}.jsonl")).exists(), "the engine looks there");
}

/// Starts an engine that resumes a session. Returns the engine and its arguments.
async fn resumed(
    store: impl SessionStore,
    choose: impl FnOnce(Options) -> Options,
) -> (Fake, Vec<String>) {
    let fake = Fake::new(&[KEEPS_CONFIG, INTRODUCES, "read -r line", ANSWERS]);
    let (_, errors) = run(choose(fake.options().session_store(store))).await;
    assert!(errors.is_empty(), "{errors:?}");
    let args = std::fs::read_to_string(fake.folder.path().join("args")).unwrap();
    (fake, args.lines().map(str::to_owned).collect())
}

/// A store with the same sessions for every project.
struct Filled(InMemorySessionStore);

impl Filled {
    async fn new() -> Self {
        let store = InMemorySessionStore::new();
        let agent = SessionKey::new("p", ID).with_subpath("subagents/agent-1");
        let about = json!({"type": "agent_metadata", "agentType": "Explore"});
        let unsafe_key = SessionKey::new("p", ID).with_subpath("../../escaped");
        let sidechain = json!({"type": "user", "uuid": "s1", "isSidechain": true});
        for (key, lines) in [
            (SessionKey::new("p", OTHER), vec![line("o1")]),
            (SessionKey::new("p", ID), vec![line("u1"), line("u2"), line("u1")]),
            (agent, vec![about, json!({"type": "user", "uuid": "a1"})]),
            (unsafe_key, vec![line("x")]),
            (SessionKey::new("p", SUBAGENT), vec![sidechain]),
            (SessionKey::new("p", "not-a-uuid"), vec![line("n")]),
        ] {
            store.append(&key, &lines).await.unwrap();
        }
        Self(store)
    }
}

fn in_p(key: &SessionKey) -> SessionKey {
    let mut key = key.clone();
    key.project_key = "p".to_owned();
    key
}

/// Treats every project as `p`.
impl SessionStore for Filled {
    fn append<'a>(&'a self, _: &'a SessionKey, _: &'a [Value]) -> StoreFuture<'a, ()> {
        std::future::ready(Ok(())).boxed()
    }

    fn load<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>> {
        let key = in_p(key);
        async move { self.0.load(&key).await }.boxed()
    }

    fn list_sessions<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Vec<StoredSession>> {
        self.0.list_sessions("p")
    }

    fn list_subkeys<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<String>> {
        let key = in_p(key);
        async move { self.0.list_subkeys(&key).await }.boxed()
    }
}

#[tokio::test]
async fn a_resumed_session_is_in_the_configuration_folder_while_the_engine_runs() {
    let (fake, args) = resumed(Filled::new().await, |options| options.resume(ID)).await;
    assert!(args.contains(&format!("--resume={ID}")), "{args:?}");
    assert!(args.iter().any(|arg| arg == "--session-mirror"), "{args:?}");
    let project = fake.folder.path().join("config/projects").join(project_key(fake.folder.path()));
    let read = |name: &str| std::fs::read_to_string(project.join(name)).unwrap();
    let expected = format!("{}\n{}\n", line("u1"), line("u2"));
    assert_eq!(
        read(&format!("{ID}.jsonl")),
        expected,
        "a line that was stored twice is there once"
    );
    let agent = format!("{ID}/subagents/agent-1");
    assert_eq!(read(&format!("{agent}.jsonl")), "{\"type\":\"user\",\"uuid\":\"a1\"}\n");
    assert_eq!(read(&format!("{agent}.meta.json")), r#"{"agentType":"Explore"}"#);
    let config = std::fs::read_to_string(fake.folder.path().join("config_dir")).unwrap();
    assert!(!PathBuf::from(config).exists(), "the folder is removed at the end");
    assert!(!fake.folder.path().join("config/escaped.jsonl").exists());
}

#[tokio::test]
async fn continue_newest_resumes_the_newest_session_that_is_not_of_a_subagent() {
    let (_, args) = resumed(Filled::new().await, |options| options.continue_newest().fork()).await;
    assert!(args.contains(&format!("--resume={ID}")), "{args:?}");
    assert!(!args.iter().any(|arg| arg == "--continue"), "{args:?}");
    assert!(args.iter().any(|arg| arg == "--fork-session"), "{args:?}");
}

#[tokio::test]
async fn the_engine_looks_for_a_session_that_the_store_does_not_have() {
    for id in ["880e8400-e29b-41d4-a716-446655440000", "A title"] {
        let (fake, args) = resumed(Filled::new().await, |options| options.resume(id)).await;
        assert!(args.contains(&format!("--resume={id}")), "{args:?}");
        assert!(!fake.folder.path().join("config").exists());
    }
    let (_, args) = resumed(InMemorySessionStore::new(), |options| options.continue_newest()).await;
    assert!(args.iter().any(|arg| arg == "--continue"), "{args:?}");
}

#[tokio::test]
async fn without_resuming_the_engine_keeps_its_configuration_folder() {
    let (fake, args) = resumed(Filled::new().await, |options| options).await;
    assert!(args.iter().any(|arg| arg == "--session-mirror"), "{args:?}");
    assert!(!fake.folder.path().join("config").exists());
}

/// If the store lacks lines, the temporary folder has the only copy of the transcript.
#[tokio::test]
async fn a_resumed_transcript_stays_if_the_store_lacks_a_line_of_it() {
    let fake = Fake::new(&[KEEPS_CONFIG, INTRODUCES, "read -r line", &mirrors("u2"), ANSWERS]);
    let store = Unreliable::new(&[Fault::Fails; 9]);
    let project = project_key(fake.folder.path());
    store.inner.append(&SessionKey::new(project, ID), &[line("u1")]).await.unwrap();
    let (messages, errors) = run(fake.options().session_store(store).resume(ID)).await;
    assert!(errors.is_empty(), "{errors:?}");
    let reason = messages.iter().find_map(|message| match message {
        Message::System(System::MirrorError(error)) => Some(error.error.clone()),
        _ => None,
    });
    let config = std::fs::read_to_string(fake.folder.path().join("config_dir")).unwrap();
    let folder = PathBuf::from(config);
    let reason = reason.unwrap();
    assert!(reason.contains(&folder.join("projects").display().to_string()), "{reason}");
    // The task that stores ends a little after the session.
    let is_left = async {
        while std::fs::read_dir(&folder).unwrap().count() > 1 {
            tokio::task::yield_now().await;
        }
    };
    within(is_left).await;
    assert!(folder.join("projects").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

/// A store that cannot be read.
struct Unreadable;

impl SessionStore for Unreadable {
    fn append<'a>(&'a self, _: &'a SessionKey, _: &'a [Value]) -> StoreFuture<'a, ()> {
        std::future::ready(Ok(())).boxed()
    }

    fn load<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Option<Vec<Value>>> {
        std::future::ready(Err(std::io::Error::other("no connection").into())).boxed()
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_an_error_before_the_engine_starts() {
    let fake = Fake::new(&["touch started"]);
    let options = || fake.options().session_store(Unreadable);
    for (options, text) in [
        (options().resume(ID), "`load` failed: no connection"),
        (options().continue_newest(), "does not implement `list_sessions`"),
    ] {
        let error = Client::connect(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Session);
        assert!(error.to_string().contains(text), "{error}");
    }
    assert!(!fake.folder.path().join("started").exists());
}

#[tokio::test]
async fn a_store_is_refused_for_ephemeral_sessions_and_with_file_checkpointing() {
    let fake = Fake::new(&["exit 1"]);
    let changes: [fn(&mut Options); 2] =
        [|it| it.session.ephemeral = true, |it| it.session.file_checkpointing = true];
    for change in changes {
        let mut options = fake.options().session_store(InMemorySessionStore::new());
        change(&mut options);
        let error = Client::connect(options).await.unwrap_err();
        assert!(
            matches!(&error, Error::Options(text) if text.contains("session_store")),
            "{error}"
        );
    }
}
