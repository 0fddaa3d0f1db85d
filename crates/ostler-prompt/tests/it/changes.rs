//! The changes of an agent: listed, and applied to the originals.

use std::fs;
use std::path::Path;

use ostler_prompt::workspace::ChangeKind;
use ostler_prompt::{HostMount, Workspace, WorkspaceError};

use crate::mounts::{Host, files};

fn mounted(host: &Host) -> Workspace {
    let mount = HostMount::new(host.path("src")).exclude_glob(["target"]);
    Workspace::builder().mount(mount).open().unwrap()
}

fn summary(workspace: &Workspace) -> Vec<(String, ChangeKind, bool)> {
    let changes = workspace.changes().unwrap();
    let lines =
        changes.iter().map(|it| (it.path.display().to_string(), it.kind, it.host_path.is_some()));
    lines.collect()
}

#[test]
fn a_new_workspace_has_no_changes() {
    let host = Host::new(&[("src/a", "one\n")]);
    let workspace = mounted(&host);
    assert!(workspace.changes().unwrap().is_empty());
    assert_eq!(workspace.changes().unwrap().to_patch(), "");
}

#[test]
fn added_modified_and_removed_files_are_listed_in_order() {
    let host = Host::new(&[("src/a", "one\ntwo\n"), ("src/b", "gone\n"), ("src/same", "same")]);
    let workspace = mounted(&host);
    let path = |name: &str| workspace.path().join(name);
    fs::write(path("src/a"), "one\nthree\n").unwrap();
    fs::remove_file(path("src/b")).unwrap();
    fs::create_dir(path("src/new")).unwrap();
    fs::write(path("src/new/c"), "hello\n").unwrap();
    fs::create_dir(path("src/target")).unwrap();
    fs::write(path("src/target/out"), "built").unwrap();
    fs::write(path("notes"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path("src/link")).unwrap();
    let expected = [
        ("notes", ChangeKind::Added, false),
        ("src/a", ChangeKind::Modified, true),
        ("src/b", ChangeKind::Removed, true),
        ("src/link", ChangeKind::Other, false),
        ("src/new/c", ChangeKind::Added, true),
        ("src/target/out", ChangeKind::Added, false),
    ];
    assert_eq!(summary(&workspace), expected.map(|(path, kind, has)| (path.to_owned(), kind, has)));
    let changes = workspace.changes().unwrap();
    let patch = changes.to_patch();
    for part in [
        "--- a/src/a\n+++ b/src/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
        "--- a/src/b\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-gone\n",
        "--- /dev/null\n+++ b/src/new/c\n@@ -0,0 +1,1 @@\n+hello\n",
        "--- /dev/null\n+++ b/notes\n@@ -0,0 +1,1 @@\n+mine\n\\ No newline at end of file\n",
        "# src/link: not a regular file\n",
    ] {
        assert!(patch.contains(part), "{part}\n---\n{patch}");
    }
    let modified = changes.iter().find(|it| it.path == Path::new("src/a")).unwrap();
    assert_eq!(changes.contents(modified).unwrap().as_deref(), Some(&b"one\nthree\n"[..]));
    // The originals are unchanged.
    assert_eq!(files(&host.path("src")), ["a", "b", "same"]);

    let applied = changes.apply().unwrap();
    assert_eq!(applied.applied, [host.path("src/a"), host.path("src/b"), host.path("src/new/c")]);
    let left: Vec<_> = applied.left_out.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(left, ["notes", "src/link", "src/target/out"]);
    assert_eq!(files(&host.path("src")), ["a", "new/c", "same"]);
    assert_eq!(fs::read_to_string(host.path("src/a")).unwrap(), "one\nthree\n");
}

#[test]
fn some_of_the_changes_can_be_applied() {
    let host = Host::new(&[("src/a", "1"), ("src/b", "2")]);
    let workspace = mounted(&host);
    fs::write(workspace.path().join("src/a"), "x").unwrap();
    fs::write(workspace.path().join("src/b"), "y").unwrap();
    let changes = workspace.changes().unwrap();
    changes.apply_if(|change| change.path.ends_with("b")).unwrap();
    assert_eq!(fs::read_to_string(host.path("src/a")).unwrap(), "1");
    assert_eq!(fs::read_to_string(host.path("src/b")).unwrap(), "y");
}

#[test]
fn a_mount_of_one_file_is_applied_to_that_file() {
    let host = Host::new(&[("one.txt", "1"), ("other.txt", "2")]);
    let mount = HostMount::new(host.path("one.txt")).mount_path("in/it.txt");
    let workspace = Workspace::builder().mount(mount).open().unwrap();
    fs::write(workspace.path().join("in/it.txt"), "x").unwrap();
    let applied = workspace.changes().unwrap().apply().unwrap();
    assert_eq!(applied.applied, [host.path("one.txt")]);
    assert_eq!(fs::read_to_string(host.path("one.txt")).unwrap(), "x");
}

#[test]
fn nothing_is_applied_when_an_original_has_changed_meanwhile() {
    let host = Host::new(&[("src/a", "1"), ("src/b", "2"), ("src/c", "3")]);
    let workspace = mounted(&host);
    for name in ["a", "b", "new"] {
        fs::write(workspace.path().join("src").join(name), "x").unwrap();
    }
    fs::remove_file(workspace.path().join("src/c")).unwrap();
    host.write("src/b", "changed elsewhere");
    host.write("src/c", "changed elsewhere");
    host.write("src/new", "changed elsewhere");
    let changes = workspace.changes().unwrap();
    assert!(changes.to_patch().contains("# src/b: Modified, not shown"), "{}", changes.to_patch());
    let error = changes.apply().unwrap_err();
    let WorkspaceError::Changed { paths, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*paths, [host.path("src/b"), host.path("src/c"), host.path("src/new")]);
    assert_eq!(fs::read_to_string(host.path("src/a")).unwrap(), "1", "also not this one");
}

#[test]
fn only_the_listed_contents_are_applied() {
    let host = Host::new(&[("src/a", "1")]);
    let workspace = mounted(&host);
    fs::write(workspace.path().join("src/a"), "good").unwrap();
    let changes = workspace.changes().unwrap();
    fs::write(workspace.path().join("src/a"), "evil").unwrap();
    assert!(changes.apply().unwrap_err().to_string().contains("changed in the workspace"));
    assert_eq!(fs::read_to_string(host.path("src/a")).unwrap(), "1");
}

#[test]
fn changes_are_not_written_through_new_links() {
    let host = Host::new(&[("src/sub/a", "1"), ("elsewhere/a", "1")]);
    let workspace = mounted(&host);
    fs::write(workspace.path().join("src/sub/a"), "x").unwrap();
    fs::write(workspace.path().join("src/sub/new"), "x").unwrap();
    // An original folder becomes a link, and then an original file.
    fs::rename(host.path("src/sub"), host.path("src/old")).unwrap();
    host.link(host.path("elsewhere"), "src/sub");
    let error = workspace.changes().unwrap().apply().unwrap_err();
    assert!(matches!(error, WorkspaceError::Changed { .. }), "{error:?}");
    fs::remove_file(host.path("src/sub")).unwrap();
    fs::create_dir(host.path("src/sub")).unwrap();
    host.link(host.path("elsewhere/a"), "src/sub/a");
    let error = workspace.changes().unwrap().apply().unwrap_err();
    assert!(matches!(error, WorkspaceError::Changed { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(host.path("elsewhere/a")).unwrap(), "1");
    assert!(!host.path("elsewhere/new").exists());
}

#[test]
fn the_executable_bit_is_a_change_and_other_permissions_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = Host::new(&[("src/run", "#!/bin/sh\n")]);
    fs::set_permissions(host.path("src/run"), fs::Permissions::from_mode(0o640)).unwrap();
    let workspace = mounted(&host);
    let copy = workspace.path().join("src/run");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(summary(&workspace), [("src/run".to_owned(), ChangeKind::Modified, true)]);
    workspace.changes().unwrap().apply().unwrap();
    let mode = fs::metadata(host.path("src/run")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640 | 0o111);
}

#[test]
fn binary_files_are_applied_and_only_named_in_the_patch() {
    let host = Host::new(&[("src/a", "text")]);
    let workspace = mounted(&host);
    fs::write(workspace.path().join("src/a"), [0xff, 0xfe, 0]).unwrap();
    let changes = workspace.changes().unwrap();
    assert_eq!(changes.to_patch(), "# src/a: Modified, not shown\n");
    changes.apply().unwrap();
    assert_eq!(fs::read(host.path("src/a")).unwrap(), [0xff, 0xfe, 0]);
}

#[test]
fn a_file_reached_by_a_link_is_not_applied() {
    let host = Host::new(&[("src/real", "1")]);
    host.link("real", "src/link");
    let mount = HostMount::new(host.path("src")).follow_symlinks(true);
    let workspace = Workspace::builder().mount(mount).open().unwrap();
    fs::write(workspace.path().join("src/link"), "x").unwrap();
    let applied = workspace.changes().unwrap().apply().unwrap();
    assert!(applied.applied.is_empty() && applied.left_out.len() == 1, "{applied:?}");
    assert_eq!(fs::read_to_string(host.path("src/real")).unwrap(), "1");
}

#[test]
fn a_file_name_cannot_forge_lines_of_the_patch() {
    let host = Host::new(&[("src/a", "text\n")]);
    let workspace = mounted(&host);
    fs::write(workspace.path().join("src/x\n--- a/etc/passwd\n+++ b/etc/passwd"), "").unwrap_err();
    let folder = workspace.path().join("src/x\n+++ b");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("passwd"), "evil\n").unwrap();
    let patch = workspace.changes().unwrap().to_patch();
    assert_eq!(patch.lines().count(), 1, "{patch}");
    assert!(patch.starts_with("# \"src/x\\n+++ b/passwd\": Added, not shown"), "{patch}");
}
