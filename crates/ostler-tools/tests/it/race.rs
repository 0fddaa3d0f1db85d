//! A race: while tools work, another thread exchanges a folder, or a file, for a link that leads out of the working
//! directory. Each try is decided by the policy and then run, as the engine does it.
//!
//! The mutant for all of them is check-then-open: `open_in_kernel` of `ostler-files` with no flags for `openat2`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use ostler_engine::permission::{CallFacts, Outcome, Policy};
use ostler_engine::tool::{PermittedPath, ToolCx, ToolError, ToolOutput};
use ostler_proto::permission::PermissionMode;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::session::Session;

/// How often each tool is called.
const TRIES: usize = 2_100;
const SECRET: &str = "the secret outside";

/// Exchanges `one` and `other` until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut pause = 1_u32;
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                // Pauses of different lengths, so that an exchange happens in every part of a call.
                pause = pause.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                (0..pause >> 20).for_each(|_| std::hint::spin_loop());
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the swapper does not panic");
        }
    }
}

/// A working directory with the folder `sub`, a folder outside, and `aside`, the link that replaces `sub`.
struct Race {
    session: Session,
    policy: Policy,
    outside: TempDir,
}

/// What came of the tries.
#[derive(Debug, Default)]
struct Tally {
    tries: usize,
    /// The policy allowed the call.
    permitted: usize,
    /// The call succeeded.
    done: usize,
    escapes: usize,
}

impl Race {
    /// A race whose folders both have a file of this name and content.
    fn new(name: &str, content: &str) -> Self {
        let session = Session::new();
        let outside = TempDir::new().unwrap();
        session.file(&format!("sub/{name}"), content);
        fs::write(outside.path().join(name), content).unwrap();
        symlink(outside.path(), session.path("aside")).unwrap();
        let policy = Policy::new(session.root(), PermissionMode::AcceptEdits);
        Self { session, policy, outside }
    }

    fn outside(&self, name: &str) -> PathBuf {
        self.outside.path().join(name)
    }

    fn swapper(&self) -> Swapper {
        Swapper::start(self.session.path("sub"), self.session.path("aside"))
    }

    /// Decides on a call and runs it; `None` if it is not allowed.
    async fn call(&self, tool: &str, input: &Value) -> Option<Result<ToolOutput, ToolError>> {
        let prepared = self.session.prepare(tool, input).unwrap();
        let decision = self.policy.decide(&CallFacts { tool, input, effect: &prepared.effect });
        if decision.outcome != Outcome::Allow {
            return None;
        }
        let real = decision.real_path.map_or(PermittedPath::Nowhere, PermittedPath::Real);
        let cx = ToolCx { permitted_path: real, ..self.session.cx() };
        Some((prepared.run)(cx).await)
    }

    /// Calls a tool as often as [`TRIES`] while the folder is exchanged. `input` gets the number of successful calls so far;
    /// `has_escaped` gets the text of a call, and that number.
    async fn run(
        &self,
        tool: &str,
        input: impl Fn(usize) -> Value,
        has_escaped: impl Fn(&str, usize) -> bool,
    ) {
        self.run_times(TRIES, tool, input, has_escaped).await;
    }

    async fn run_times(
        &self,
        tries: usize,
        tool: &str,
        input: impl Fn(usize) -> Value,
        has_escaped: impl Fn(&str, usize) -> bool,
    ) {
        let mut tally = Tally::default();
        let swapper = self.swapper();
        while tally.tries < tries {
            tally.tries += 1;
            let result = self.call(tool, &input(tally.done)).await;
            tally.permitted += usize::from(result.is_some());
            let text = match &result {
                Some(Ok(output)) => output.content.text(),
                Some(Err(error)) => error.to_string(),
                None => String::new(),
            };
            let is_escape = has_escaped(&text, tally.done);
            tally.escapes += usize::from(is_escape);
            tally.done += usize::from(matches!(result, Some(Ok(_))) && !is_escape);
        }
        drop(swapper);
        println!("{tool}: {tally:?}");
        assert_eq!(tally.escapes, 0, "{tool}: {tally:?}");
        assert!(tally.done > 0, "some calls met the folder: {tally:?}");
    }
}

// Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_never_shows_a_file_behind_a_swapped_link() {
    let race = Race::new("file.txt", "inside");
    fs::write(race.outside("file.txt"), SECRET).unwrap();
    let input = |_| json!({"file_path": "sub/file.txt"});
    race.run("Read", input, |text, _| text.contains(SECRET)).await;
}

// Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_suggests_no_names_of_a_folder_behind_a_swapped_link() {
    let race = Race::new("file.txt", "inside");
    fs::write(race.outside("settings-of-the-user.txt"), "").unwrap();
    // A missing file is an error, and so this race needs another sign that it took place.
    fs::write(race.session.path("sub/settings-of-the-use.txt"), "").unwrap();
    let input = json!({"file_path": "sub/settings-of-the-usr.txt"});
    let swapper = race.swapper();
    let (mut n_inside, mut n_outside) = (0, 0);
    for _ in 0..TRIES / 3 {
        if let Some(Err(error)) = race.call("Read", &input).await {
            let error = error.to_string();
            n_inside += usize::from(error.contains("settings-of-the-use.txt"));
            n_outside += usize::from(error.contains("settings-of-the-user.txt"));
        }
    }
    drop(swapper);
    println!("similar names: {n_inside} inside, {n_outside} outside");
    assert_eq!(n_outside, 0);
    assert!(n_inside > 0);
}

// Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_never_creates_a_file_behind_a_swapped_link() {
    let race = Race::new("file.txt", "inside");
    let input = |n| json!({"file_path": format!("sub/deep-{n}/new.txt"), "content": "new"});
    // Removed, so that each escape counts once.
    let is_outside = |_: &str, n| fs::remove_dir_all(race.outside(&format!("deep-{n}"))).is_ok();
    race.run("Write", input, is_outside).await;
    assert_eq!(fs::read_dir(race.outside.path()).unwrap().count(), 1);
}

// Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edit_never_changes_a_file_behind_a_swapped_link() {
    let race = Race::new("file.txt", "version 0;");
    race.session.text("Read", json!({"file_path": "sub/file.txt"})).await;
    let outside = race.outside("file.txt");
    let input = |n| {
        // The file outside always has the content that the edit expects.
        fs::write(&outside, format!("version {n};")).unwrap();
        let (old, new) = (format!("version {n};"), format!("version {};", n + 1));
        json!({"file_path": "sub/file.txt", "old_string": old, "new_string": new})
    };
    let is_changed = |_: &str, n| fs::read_to_string(&outside).unwrap() != format!("version {n};");
    race.run("Edit", input, is_changed).await;
}

fn notebook(version: usize) -> String {
    format!(
        r#"{{"cells": [{{"cell_type": "markdown", "id": "a", "metadata": {{}}, "source": "version {version};"}}],
 "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}"#
    )
}

// Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notebook_edit_never_changes_a_notebook_behind_a_swapped_link() {
    let race = Race::new("n.ipynb", &notebook(0));
    race.session.text("Read", json!({"file_path": "sub/n.ipynb"})).await;
    let outside = race.outside("n.ipynb");
    let before = notebook(0);
    let input = |n| {
        fs::write(&outside, &before).unwrap();
        json!({"notebook_path": "sub/n.ipynb", "cell_id": "a", "new_source": format!("version {};", n + 1)})
    };
    let is_changed = |_: &str, _| fs::read_to_string(&outside).unwrap() != before;
    race.run("NotebookEdit", input, is_changed).await;
}

/// A race for searches: the folder outside has a file that is not inside.
fn search_race() -> Race {
    let race = Race::new("file.txt", "inside");
    fs::create_dir(race.outside("private")).unwrap();
    fs::write(race.outside("private/secret-name.txt"), SECRET).unwrap();
    fs::write(race.outside("file.txt"), SECRET).unwrap();
    race
}

// Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn glob_never_lists_a_folder_behind_a_swapped_link() {
    let race = search_race();
    for input in [json!({"pattern": "**/*.txt"}), json!({"pattern": "**/*.txt", "path": "sub"})] {
        let has_escaped = |text: &str, _| text.contains("secret-name");
        race.run_times(TRIES / 2, "Glob", |_| input.clone(), has_escaped).await;
    }
}

// Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grep_never_searches_a_folder_behind_a_swapped_link() {
    let race = search_race();
    for path in [".", "sub", "sub/file.txt"] {
        let input = json!({"pattern": "inside|secret", "path": path, "output_mode": "content"});
        let has_escaped = |text: &str, _| text.contains(SECRET);
        race.run_times(TRIES / 3, "Grep", |_| input.clone(), has_escaped).await;
    }
}

// The same for a file that is exchanged for a link. Mutant: check-then-open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tool_follows_a_link_in_place_of_a_file() {
    let session = Session::new();
    let outside = TempDir::new().unwrap();
    let secret = outside.path().join("file.txt");
    session.file("sub", "inside");
    fs::write(&secret, SECRET).unwrap();
    symlink(&secret, session.path("aside")).unwrap();
    let policy = Policy::new(session.root(), PermissionMode::AcceptEdits);
    let race = Race { session, policy, outside };
    race.session.text("Read", json!({"file_path": "sub"})).await;
    let shows = |text: &str, _| text.contains(SECRET);
    race.run_times(TRIES / 3, "Read", |_| json!({"file_path": "sub"}), shows).await;
    let grep = json!({"pattern": "inside|secret", "output_mode": "content"});
    race.run_times(TRIES / 3, "Grep", |_| grep.clone(), shows).await;
    let is_changed = |_: &str, _| fs::read_to_string(&secret).unwrap() != SECRET;
    let write = |n| json!({"file_path": "sub", "content": format!("inside {n}")});
    race.run_times(TRIES / 3, "Write", write, is_changed).await;
}

// Mutants: `CallPath::of` does not resolve; a link is refused in any case.
#[tokio::test]
async fn a_link_that_was_there_before_is_followed_as_permitted() {
    let race = Race::new("file.txt", "inside");
    let session = &race.session;
    symlink("sub", session.path("near")).unwrap();
    symlink("sub/file.txt", session.path("link.txt")).unwrap();
    for path in ["near/file.txt", "link.txt"] {
        let text = race.call("Read", &json!({"file_path": path})).await.unwrap().unwrap();
        assert!(text.content.text().contains("inside"), "{path}");
    }
    let write = json!({"file_path": "link.txt", "content": "changed"});
    race.call("Write", &write).await.unwrap().unwrap();
    assert_eq!(session.content("sub/file.txt"), "changed");
    assert!(session.path("link.txt").symlink_metadata().unwrap().is_symlink());
    let new = json!({"file_path": "near/new/a.txt", "content": "new"});
    race.call("Write", &new).await.unwrap().unwrap();
    assert_eq!(session.content("sub/new/a.txt"), "new");
    for (tool, input) in [
        ("Glob", json!({"pattern": "near/**/*.txt"})),
        ("Grep", json!({"pattern": "new", "path": "near"})),
    ] {
        let text = race.call(tool, &input).await.unwrap().unwrap().content.text();
        assert!(text.contains("near/new/a.txt"), "{tool}: {text}");
    }
}

// Mutants: `ToolCx::real_path` resolves again if the path led nowhere; it ignores the permitted path.
#[tokio::test]
async fn a_path_that_led_nowhere_when_it_was_permitted_stays_closed() {
    let race = Race::new("file.txt", "inside");
    let session = &race.session;
    let prepared = session.prepare("Read", &json!({"file_path": "sub/file.txt"})).unwrap();
    let cx = ToolCx { permitted_path: PermittedPath::Nowhere, ..session.cx() };
    assert!((prepared.run)(cx).await.is_err());
    let error = refused_after(&race, Path::new("sub/file.txt")).await;
    assert!(error.contains("changed into a symbolic link"), "{error}");
}

/// The error of `Read` if `sub` is exchanged for a link after the decision.
async fn refused_after(race: &Race, path: &Path) -> String {
    let session = &race.session;
    let input = json!({"file_path": path});
    let prepared = session.prepare("Read", &input).unwrap();
    let call = CallFacts { tool: "Read", input: &input, effect: &prepared.effect };
    let real = race.policy.decide(&call).real_path.unwrap();
    let (one, other) = (session.path("sub"), session.path("aside"));
    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    let cx = ToolCx { permitted_path: PermittedPath::Real(real), ..session.cx() };
    (prepared.run)(cx).await.unwrap_err().to_string()
}
