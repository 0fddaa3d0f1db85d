//! Files before and after, on a real disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::*;

struct TestFolder {
    folder: TempDir,
    checkpoints: Checkpoints,
    lines: Vec<TranscriptLine>,
}

impl TestFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().canonicalize().unwrap().join("work");
        fs::create_dir(&cwd).unwrap();
        let backups = folder.path().join("history");
        let checkpoints = Checkpoints::new(backups, &cwd, Vec::new());
        Self { folder, checkpoints, lines: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("work").join(name)
    }

    fn prompt(&mut self, id: &str) {
        self.lines.push(self.checkpoints.begin(&id.into()));
    }

    /// Writes a file as a tool does.
    fn write(&mut self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        let real = RealPath::resolve(&path).unwrap();
        self.lines.extend(self.checkpoints.before_write(&path, &real, None).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path(name)).ok()
    }

    fn rewind(&self, id: &str) -> RewindFilesReply {
        self.checkpoints.rewind(&id.into(), false).unwrap()
    }

    fn would(&self, id: &str) -> (Vec<String>, u64, u64) {
        let reply = self.checkpoints.rewind(&id.into(), true).unwrap();
        let names = reply.files_changed.unwrap().into_iter();
        let cwd = self.path("").display().to_string();
        let names = names.map(|name| name.replace(&cwd, "")).collect();
        (names, reply.insertions.unwrap(), reply.deletions.unwrap())
    }
}

#[test]
fn files_are_restored_to_their_state_before_the_prompt() {
    let mut place = TestFolder::new();
    fs::write(place.path("old.txt"), "a\nb\nc\n").unwrap();
    place.prompt("one");
    place.write("new.txt", b"1\n2\n3\n");
    place.prompt("two");
    place.write("old.txt", b"a\nB\nb2\nc\n");
    place.write("new.txt", b"1\n");
    assert_eq!(place.would("two"), (vec!["new.txt".into(), "old.txt".into()], 3, 2));
    place.rewind("two");
    assert_eq!(place.read("old.txt").unwrap(), b"a\nb\nc\n");
    assert_eq!(place.read("new.txt").unwrap(), b"1\n2\n3\n");
    place.rewind("one");
    assert_eq!(place.read("new.txt"), None, "a file that was created since is removed");
    assert_eq!(place.would("one").0, Vec::<String>::new());
    // And forward again.
    place.rewind("two");
    assert_eq!(place.read("new.txt").unwrap(), b"1\n2\n3\n");
}

#[test]
fn changes_from_outside_and_deleted_files_are_seen_with_the_next_prompt() {
    let mut place = TestFolder::new();
    place.prompt("one");
    place.write("a.txt", b"mine");
    place.write("b.txt", b"mine");
    fs::write(place.path("a.txt"), "theirs").unwrap();
    fs::remove_file(place.path("b.txt")).unwrap();
    place.prompt("two");
    place.write("a.txt", b"mine again");
    place.write("b.txt", b"mine again");
    place.rewind("two");
    assert_eq!(place.read("a.txt").unwrap(), b"theirs");
    assert_eq!(place.read("b.txt"), None);
}

#[test]
fn bytes_and_modes_survive() {
    let mut place = TestFolder::new();
    let bytes = [0, 159, 146, 150, 255];
    fs::write(place.path("tool"), bytes).unwrap();
    fs::set_permissions(place.path("tool"), fs::Permissions::from_mode(0o751)).unwrap();
    place.prompt("one");
    place.write("tool", b"x");
    fs::set_permissions(place.path("tool"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(
        place.would("one"),
        (vec!["tool".into()], 0, 0),
        "no lines in a file that is not text"
    );
    place.rewind("one");
    assert_eq!(place.read("tool").unwrap(), bytes);
    let mode = place.path("tool").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
}

#[test]
fn a_link_is_followed_when_written_and_not_touched_when_it_was_created_later() {
    let mut place = TestFolder::new();
    fs::write(place.path("real.txt"), "old").unwrap();
    symlink("real.txt", place.path("link.txt")).unwrap();
    place.prompt("one");
    place.write("link.txt", b"new");
    place.write("other.txt", b"new");
    place.write("sub/deep.txt", b"new");
    // Links replace the files.
    let secret = place.folder.path().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("deep.txt"), "secret").unwrap();
    fs::remove_file(place.path("other.txt")).unwrap();
    symlink(secret.join("deep.txt"), place.path("other.txt")).unwrap();
    fs::remove_dir_all(place.path("sub")).unwrap();
    symlink(&secret, place.path("sub")).unwrap();
    assert_eq!(place.rewind("one").skipped_links, Some(2));
    assert_eq!(place.read("real.txt").unwrap(), b"old");
    assert!(place.path("link.txt").symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read(secret.join("deep.txt")).unwrap(), b"secret");
}

// Mutants: `renew` by the path as written backs up the file outside; `before_write` does not compare folders.
#[test]
fn a_file_behind_a_new_link_is_not_backed_up_under_the_old_name() {
    let mut place = TestFolder::new();
    fs::create_dir(place.path("sub")).unwrap();
    fs::write(place.path("sub/a.txt"), "old").unwrap();
    place.prompt("one");
    place.write("sub/a.txt", b"new");
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.txt"), "other").unwrap();
    fs::rename(place.path("sub"), place.path("moved")).unwrap();
    symlink(&other, place.path("sub")).unwrap();
    let before = fs::read_dir(place.folder.path().join("history")).unwrap().count();
    place.prompt("two");
    let after = fs::read_dir(place.folder.path().join("history")).unwrap().count();
    assert_eq!(before, after, "the file behind the link was not changed by a tool");
    // A permitted edit behind the link has a checkpoint of its own.
    place.write("sub/a.txt", b"edited");
    assert_eq!(place.rewind("two").skipped_links, Some(1));
    assert_eq!(fs::read(other.join("a.txt")).unwrap(), b"other");
    assert_eq!(place.read("moved/a.txt").unwrap(), b"new");
}

#[test]
fn if_one_file_cannot_be_restored_nothing_changes() {
    let mut place = TestFolder::new();
    fs::write(place.path("a.txt"), "old").unwrap();
    fs::write(place.path("b.txt"), "old").unwrap();
    place.prompt("one");
    place.write("a.txt", b"new");
    place.write("b.txt", b"new");
    fs::remove_file(place.path("b.txt")).unwrap();
    fs::create_dir(place.path("b.txt")).unwrap();
    let error = place.checkpoints.rewind(&"one".into(), false).unwrap_err();
    assert!(error.contains("b.txt cannot be restored"), "{error}");
    assert_eq!(place.read("a.txt").unwrap(), b"new");
    let error = place.checkpoints.rewind(&"three".into(), true).unwrap_err();
    assert_eq!(error, "No file checkpoint found for this message.");
}

#[test]
fn a_resumed_session_can_rewind_changes_of_the_earlier_one() {
    let mut place = TestFolder::new();
    fs::write(place.path("a.txt"), "0").unwrap();
    place.prompt("one");
    place.write("a.txt", b"1");
    place.prompt("two");
    place.write("a.txt", b"2");
    let known = snapshots(&place.lines);
    let history = place.folder.path().join("history");
    let mut resumed = Checkpoints::new(history, &place.path(""), known);
    std::mem::swap(&mut place.checkpoints, &mut resumed);
    place.prompt("three");
    place.write("a.txt", b"3");
    for (id, expected) in [("three", b"2"), ("two", b"1"), ("one", b"0")] {
        place.rewind(id);
        assert_eq!(place.read("a.txt").unwrap(), expected, "{id}");
    }
}

#[test]
fn a_session_file_cannot_name_backups_elsewhere() {
    let mut place = TestFolder::new();
    place.prompt("one");
    place.write("a.txt", b"1");
    fs::write(place.folder.path().join("secret"), "secret").unwrap();
    let mut known = snapshots(&place.lines);
    let backup = build!(FileBackup { backup_file_name: Some("../secret".to_owned()) });
    known[0].tracked_file_backups.insert("b.txt".to_owned(), backup);
    let history = place.folder.path().join("history");
    let crafted = Checkpoints::new(history, &place.path(""), known);
    let error = crafted.rewind(&"one".into(), false).unwrap_err();
    assert!(error.contains("not the name of a backup"), "{error}");
    assert_eq!(place.read("b.txt"), None);
}

#[test]
fn lines_and_names_are_those_of_the_vendor() {
    let mut place = TestFolder::new();
    fs::write(place.path("old.txt"), "a").unwrap();
    place.prompt("11111111-1111-4111-8111-111111111111");
    place.write("old.txt", b"b");
    let outside = place.folder.path().canonicalize().unwrap().join("out.txt");
    let real = RealPath::resolve(&outside).unwrap();
    place.lines.extend(place.checkpoints.before_write(&outside, &real, None).unwrap());
    let lines: Vec<_> =
        place.lines.iter().map(|line| serde_json::to_value(line).unwrap()).collect();
    assert_eq!(lines[0]["type"], "file-history-snapshot");
    assert_eq!(lines[0]["isSnapshotUpdate"], false);
    assert_eq!(lines[1]["type"], "file-history-delta");
    assert_eq!(lines[1]["trackingPath"], "old.txt");
    let name = lines[1]["backup"]["backupFileName"].as_str().unwrap();
    assert!(name.len() == 19 && name.ends_with("@v1"), "{name}");
    assert_eq!(lines[2]["trackingPath"], outside.display().to_string());
    assert!(lines[2]["backup"]["backupFileName"].is_null());
}

#[test]
fn the_folder_of_a_file_has_no_slash_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let parent = |file: &str| parent_of(&RealPath::resolve(&root.join(file)).unwrap());
    assert_eq!(parent("a.txt").as_deref(), root.to_str());
    assert_eq!(parent("new/deep/a.txt").as_deref(), root.join("new/deep").to_str());
}

/// Exchanges two names until it is dropped.
struct Swapper(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let exchange = move || {
            renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        };
        let thread = std::thread::spawn(move || {
            let mut pause = 1_u32;
            while !is_over.load(Ordering::Relaxed) {
                exchange();
                // Pauses of different lengths, so that an exchange happens in every part of a call.
                pause = pause.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                (0..pause >> 20).for_each(|_| std::hint::spin_loop());
            }
        });
        Self(stop, Some(thread))
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1.take() {
            thread.join().expect("the swapper does not panic");
        }
    }
}

// Mutant: check-then-open, `open_in_kernel` of `ostler-files` with no flags for `openat2`.
#[test]
fn no_checkpoint_and_no_rewind_follows_a_link_that_is_swapped_in() {
    let mut place = TestFolder::new();
    fs::create_dir(place.path("sub")).unwrap();
    fs::write(place.path("sub/file"), "old").unwrap();
    place.prompt("first");
    place.write("sub/file", b"new");
    place.write("sub/created", b"new");
    let outside = place.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, place.path("aside")).unwrap();
    let (history, secret) = (place.folder.path().join("history"), b"the secret outside");
    let swapper = Swapper::start(place.path("sub"), place.path("aside"));
    let (mut n_rewound, mut n_escapes) = (0, 0);
    let n_tries = 4_200;
    for n in 0..n_tries {
        for name in ["file", "created"] {
            fs::write(outside.join(name), secret).unwrap();
        }
        if n % 2 == 0 {
            let rewound = place.checkpoints.rewind(&"first".into(), false);
            n_rewound += usize::from(rewound.is_ok_and(|reply| reply.skipped_links == Some(0)));
        } else {
            // Prompts with the same name replace each other, so that there is something to rewind.
            place.checkpoints.begin(&"second".into());
        }
        let is_unchanged = |name: &str| fs::read(outside.join(name)).is_ok_and(|it| it == secret);
        n_escapes += usize::from(!is_unchanged("file") || !is_unchanged("created"));
    }
    drop(swapper);
    for entry in fs::read_dir(&history).unwrap().flatten() {
        n_escapes += usize::from(fs::read(entry.path()).unwrap() == secret);
    }
    assert_eq!(n_escapes, 0, "of {n_tries} tries, {n_rewound} of which rewound");
    assert!(n_rewound > 0);
}
