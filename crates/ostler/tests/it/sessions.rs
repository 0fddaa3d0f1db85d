//! Stored sessions: list, read, rename, tag, delete and fork them; also compared with the official Python SDK.

mod folder;
mod peers;

use std::sync::Arc;

use ostler::session_store::{SessionKey, SessionStore as _, project_key};
use ostler::sessions::ForkOptions;
use ostler::{Error, ErrorKind, InMemorySessionStore, Message, SessionError, Sessions};
use serde_json::Value;

use self::folder::{BUSY, COMPACTED, Folder, LONG, OTHER, SIDECHAIN, TITLED, WORKTREE};

fn texts(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(user) => {
            user.message.content.as_ref().map(|it| it.text()).unwrap_or_default()
        }
        Message::Assistant(assistant) => {
            let calls = message.tool_uses().map(|call| call.name.clone());
            let text = assistant.message.content.iter().filter_map(|block| block.as_text());
            text.map(str::to_owned).chain(calls).collect()
        }
        _ => panic!("not a message of the user or the model: {message:?}"),
    };
    messages.iter().map(text).collect()
}

#[tokio::test]
async fn sessions_are_listed_newest_first() {
    let folder = Folder::new();
    let of = |sessions: Vec<ostler::sessions::SessionInfo>| {
        sessions.into_iter().map(|it| it.id.to_string()).collect::<Vec<_>>()
    };
    let here = folder.sessions().folder(folder.cwd());
    assert_eq!(of(here.list().await.unwrap()), [WORKTREE, LONG, COMPACTED, BUSY, TITLED]);
    let alone = here.clone().without_worktrees();
    assert_eq!(of(alone.list().await.unwrap()), [LONG, COMPACTED, BUSY, TITLED]);
    assert_eq!(of(here.page(1, 2).await.unwrap()), [LONG, COMPACTED]);
    assert_eq!(of(here.page(9, 2).await.unwrap()), [""; 0]);
    let all = folder.sessions().list().await.unwrap();
    assert_eq!(of(all), [OTHER, WORKTREE, LONG, COMPACTED, BUSY, TITLED]);
}

#[tokio::test]
async fn a_listing_shows_title_tag_branch_and_times() {
    let folder = Folder::new();
    let info = folder.sessions().info(TITLED).await.unwrap().unwrap();
    assert_eq!(info.summary, "A title");
    assert_eq!(info.custom_title.as_deref(), Some("A title"));
    assert_eq!(info.first_prompt.as_deref(), Some("hello"));
    assert_eq!(info.git_branch.as_deref(), Some("main"));
    assert_eq!(info.tag.as_deref(), Some("kept"));
    assert_eq!(info.cwd.as_deref(), Some(folder.cwd()));
    assert!(info.created_at.unwrap() > info.last_modified, "the test sets the files' times back");
    for missing in ["550e8400-e29b-41d4-a716-446655440000", "not-an-id", SIDECHAIN] {
        assert_eq!(folder.sessions().info(missing).await.unwrap(), None, "{missing}");
    }
    let elsewhere = folder.sessions().folder("/").info(TITLED).await.unwrap();
    assert_eq!(elsewhere, None, "only the folder's own sessions");
}

#[tokio::test]
async fn the_conversation_is_read_without_messages_that_only_the_model_saw() {
    let folder = Folder::new();
    let messages = folder.sessions().messages(BUSY).await.unwrap();
    assert_eq!(texts(&messages), ["two things", "Bash", "Read", "", "", "both done"]);
    let messages = folder.sessions().messages(COMPACTED).await.unwrap();
    assert_eq!(texts(&messages), ["the summary", "after it"]);
}

#[tokio::test]
async fn a_session_is_renamed_tagged_and_deleted() {
    let folder = Folder::new();
    let sessions = folder.sessions();
    sessions.rename(BUSY, "  New\n title ").await.unwrap();
    sessions.tag(BUSY, Some("later")).await.unwrap();
    let info = sessions.info(BUSY).await.unwrap().unwrap();
    assert_eq!((info.summary.as_str(), info.tag.as_deref()), ("New title", Some("later")));
    sessions.tag(BUSY, None).await.unwrap();
    assert_eq!(sessions.info(BUSY).await.unwrap().unwrap().tag, None);
    let subagents = folder.file(BUSY).with_extension("");
    std::fs::create_dir_all(subagents.join("subagents")).unwrap();
    sessions.delete(BUSY).await.unwrap();
    assert!(!folder.file(BUSY).exists() && !subagents.exists());
    let again = sessions.delete(BUSY).await.unwrap_err();
    assert!(matches!(&again, Error::Session(SessionError::NotFound(id)) if id == BUSY), "{again}");
    assert_eq!(again.kind(), ErrorKind::Session);
}

#[tokio::test]
async fn a_fork_has_the_conversation_up_to_a_message_and_new_uuids() {
    let folder = Folder::new();
    let sessions = folder.sessions();
    let original = sessions.messages(TITLED).await.unwrap();
    let whole = sessions.fork(TITLED).await.unwrap();
    let copied = sessions.messages(whole.clone()).await.unwrap();
    assert_eq!(texts(&copied), texts(&original));
    assert!(copied.iter().zip(&original).all(|(copy, old)| uuid(copy) != uuid(old)));
    assert_eq!(sessions.info(whole).await.unwrap().unwrap().summary, "A title (fork)");
    let options = ForkOptions::new().up_to(uuid(&original[1])).title("Half");
    let half = sessions.fork_with(TITLED, options).await.unwrap();
    assert_eq!(texts(&sessions.messages(half.clone()).await.unwrap()), ["hello", "hi"]);
    assert_eq!(sessions.info(half).await.unwrap().unwrap().summary, "Half");
    assert_eq!(sessions.messages(TITLED).await.unwrap(), original, "the original has not changed");
}

#[tokio::test]
async fn an_operation_that_fails_names_the_reason() {
    let folder = Folder::new();
    let sessions = folder.sessions();
    let unknown = "550e8400-e29b-41d4-a716-446655440000";
    let no_message = ForkOptions::new().up_to(unknown);
    for (error, text) in [
        (sessions.messages(unknown).await.unwrap_err(), "no session has the id 550e8400"),
        (sessions.messages("../x").await.unwrap_err(), "../x is not a session id"),
        (sessions.rename(BUSY, " \u{200b} ").await.unwrap_err(), "a title must not be empty"),
        (sessions.tag(BUSY, Some("")).await.unwrap_err(), "a tag must not be empty"),
        (sessions.fork_with(BUSY, no_message).await.unwrap_err(), "does not contain the message"),
        (sessions.fork(SIDECHAIN).await.unwrap_err(), "no messages to fork"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Session, "{error}");
        assert!(error.to_string().contains(text), "{error} does not say: {text}");
    }
}

fn uuid(message: &Message) -> String {
    let uuid = match message {
        Message::User(user) => user.uuid.clone().unwrap(),
        Message::Assistant(assistant) => assistant.uuid.clone(),
        _ => panic!("{message:?}"),
    };
    uuid.to_string()
}

/// A store with copies of the folder's sessions.
async fn store_of(folder: &Folder) -> Arc<InMemorySessionStore> {
    let store = Arc::new(InMemorySessionStore::new());
    let project = project_key(folder.cwd());
    for id in [TITLED, BUSY, COMPACTED, SIDECHAIN] {
        let text = std::fs::read_to_string(folder.file(id)).unwrap();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        store.append(&SessionKey::new(&project, id), &lines).await.unwrap();
    }
    store
}

#[tokio::test]
async fn sessions_of_a_store_are_listed_and_read_like_those_on_disk() {
    let folder = Folder::new();
    let on_disk = folder.sessions().folder(folder.cwd());
    let stored = Sessions::new().folder(folder.cwd()).store(store_of(&folder).await);
    let listed = stored.list().await.unwrap();
    let ids: Vec<_> = listed.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, [COMPACTED, BUSY, TITLED], "newest first, without those of subagents");
    assert_eq!(stored.page(1, 1).await.unwrap()[0].id.as_str(), BUSY);
    for id in [TITLED, BUSY, COMPACTED] {
        let mut on_store = stored.info(id).await.unwrap().unwrap();
        let original = on_disk.info(id).await.unwrap().unwrap();
        on_store.last_modified = original.last_modified;
        on_store.file_size = original.file_size;
        assert_eq!(on_store, original);
        let (here, there) = (stored.messages(id).await, on_disk.messages(id).await);
        assert_eq!(here.unwrap(), there.unwrap());
    }
    assert_eq!(stored.info(OTHER).await.unwrap(), None);
    let missing = stored.messages(OTHER).await.unwrap_err();
    assert!(matches!(missing, Error::Session(SessionError::NotFound(_))), "{missing}");
    let odd = stored.messages("../../etc/passwd").await.unwrap_err();
    assert!(matches!(odd, Error::Session(SessionError::InvalidId(_))), "{odd}");
}

#[tokio::test]
async fn a_session_of_a_store_is_renamed_tagged_forked_and_deleted_there() {
    let folder = Folder::new();
    let before = std::fs::read(folder.file(TITLED)).unwrap();
    let store = store_of(&folder).await;
    let stored = Sessions::new().folder(folder.cwd()).store(Arc::clone(&store));
    let key = SessionKey::new(project_key(folder.cwd()), TITLED);
    let n_lines = store.entries(&key).len();
    stored.rename(TITLED, "Stored").await.unwrap();
    stored.tag(TITLED, Some("new")).await.unwrap();
    let info = stored.info(TITLED).await.unwrap().unwrap();
    assert_eq!((info.summary.as_str(), info.tag.as_deref()), ("Stored", Some("new")));
    assert!(store.entries(&key).len() > n_lines, "lines are added, none is changed");
    let fork = stored.fork_with(TITLED, ForkOptions::new().title("Fork")).await.unwrap();
    assert_eq!(stored.info(fork.clone()).await.unwrap().unwrap().summary, "Fork");
    let (copy, original) =
        (stored.messages(fork).await.unwrap(), stored.messages(TITLED).await.unwrap());
    assert_eq!(texts(&copy), texts(&original));
    stored.delete(TITLED).await.unwrap();
    assert_eq!(stored.info(TITLED).await.unwrap(), None);
    assert!(stored.delete(TITLED).await.is_err());
    assert_eq!(std::fs::read(folder.file(TITLED)).unwrap(), before, "the disk is not touched");
}
