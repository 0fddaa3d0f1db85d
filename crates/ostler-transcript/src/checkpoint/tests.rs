//! Files before and after, on a real disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

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
        self.lines.extend(self.checkpoints.before_write(&path, None).unwrap());
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
    place.lines.extend(place.checkpoints.before_write(&outside, None).unwrap());
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
    let parent = |file: &str| backup::real_parent(&root.join(file)).unwrap();
    assert_eq!(parent("a.txt").to_str(), root.to_str());
    assert_eq!(parent("new/deep/a.txt").to_str(), root.join("new/deep").to_str());
}
