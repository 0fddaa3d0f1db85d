//! Files that must not be copied into a workspace, and workspaces that must be removed completely.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ostler_prompt::workspace::{SkipReason, WorkspaceSecurityError};
use ostler_prompt::{HostMount, Workspace, WorkspaceError};

use crate::mounts::{Host, files};

/// Opens a workspace with a mount; if it is refused, nothing is left behind.
fn try_open(host: &Host, mount: HostMount) -> Result<(), WorkspaceError> {
    let temp = tempfile::tempdir().unwrap();
    let opened = Workspace::builder()
        .mount(mount)
        .allowed_host_roots([host.path("root")])
        .temp_root(temp.path())
        .open()
        .map(drop);
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "a folder is left behind");
    opened
}

fn refused(host: &Host, mount: HostMount) -> WorkspaceSecurityError {
    match try_open(host, mount) {
        Err(WorkspaceError::Security(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// A root with a secret next to it.
fn host() -> Host {
    let host = Host::in_memory();
    for (name, text) in [("root/a", "text"), ("root/sub/b", "text"), ("secret/key", "SECRET")] {
        host.write(name, text);
    }
    fs::create_dir(host.path("root/empty")).unwrap();
    host
}

/// The files in a workspace of the root, with links followed, and why the others are skipped.
fn followed(host: &Host) -> (Vec<String>, Vec<(String, SkipReason)>) {
    let workspace = Workspace::builder()
        .mount(HostMount::new(host.path("root")).follow_symlinks(true))
        .allowed_host_roots([host.path("root")])
        .open()
        .unwrap();
    let all = files(workspace.path());
    for file in &all {
        let text = fs::read_to_string(workspace.path().join(file)).unwrap();
        assert!(!text.contains("SECRET"), "{file}");
    }
    let skipped = workspace.mounts()[0].skipped.iter();
    (all, skipped.map(|it| (it.path.display().to_string(), it.reason)).collect())
}

#[test]
fn a_mount_outside_the_roots_is_refused_by_its_real_path() {
    let host = host();
    host.link(host.path("secret"), "root/door");
    let outside = |path: PathBuf| {
        let error = refused(&host, HostMount::new(path));
        assert!(matches!(error, WorkspaceSecurityError::OutsideRoots { .. }), "{error}");
    };
    outside(host.path("secret"));
    outside(host.path("root/../secret"));
    outside(host.path("root/sub/../../secret/key"));
    outside(host.path("root/door"));
    outside(host.path("root/door/key"));
    outside("/etc/passwd".into());
    outside("/".into());
    // A relative path is looked up in the root, and does not lead out of it.
    outside("../secret".into());
    outside("door/key".into());
}

#[test]
fn a_root_with_the_same_prefix_is_a_different_root() {
    let host = host();
    host.write("root2/c", "SECRET");
    let error = refused(&host, HostMount::new(host.path("root2")));
    assert!(matches!(error, WorkspaceSecurityError::OutsideRoots { .. }), "{error}");
}

#[test]
fn an_empty_list_of_roots_allows_nothing_and_a_missing_root_is_an_error() {
    let host = host();
    let none: [PathBuf; 0] = [];
    let mount = || HostMount::new(host.path("root"));
    let opened = Workspace::builder().mount(mount()).allowed_host_roots(none).open();
    assert!(opened.unwrap_err().is_security());
    let opened =
        Workspace::builder().mount(mount()).allowed_host_roots([host.path("nothing")]).open();
    assert!(opened.unwrap_err().to_string().contains("allowed host root"));
}

#[test]
fn a_mount_path_that_is_absolute_or_leads_out_is_refused() {
    let host = host();
    for path in ["/etc/cron.d", "..", "../x", "a/../../x", "a/..", "", ".", "a\0b"] {
        let error = refused(&host, HostMount::new(host.path("root/a")).mount_path(path));
        assert!(matches!(error, WorkspaceSecurityError::MountPath { .. }), "{path:?}: {error}");
    }
    // A path without a name needs a mount_path.
    let opened = Workspace::builder()
        .mount(HostMount::new("/").include_glob(["nothing-of-this-name"]))
        .open();
    assert!(
        matches!(opened, Err(WorkspaceError::Security(WorkspaceSecurityError::MountPath { .. }))),
        "{opened:?}"
    );
}

#[test]
fn a_link_to_a_file_outside_is_not_followed() {
    let host = host();
    host.link(host.path("secret/key"), "root/link");
    host.link("../secret/key", "root/relative");
    let (all, skipped) = followed(&host);
    assert_eq!(all, ["root/a", "root/sub/b"]);
    let outside = |name: &str| (name.to_owned(), SkipReason::LeadsOutside);
    assert_eq!(skipped, [outside("link"), outside("relative")]);
}

#[test]
fn a_link_to_a_folder_outside_is_not_followed() {
    let host = host();
    host.link(host.path("secret"), "root/link");
    host.link("..", "root/sub/up");
    host.link("../..", "root/sub/upper");
    let (all, skipped) = followed(&host);
    assert_eq!(all, ["root/a", "root/sub/b"]);
    assert!(skipped.contains(&("link".to_owned(), SkipReason::LeadsOutside)), "{skipped:?}");
    assert!(skipped.contains(&("sub/upper".to_owned(), SkipReason::LeadsOutside)), "{skipped:?}");
    assert!(skipped.contains(&("sub/up".to_owned(), SkipReason::LeadsNowhere)), "{skipped:?}");
}

#[test]
fn a_chain_of_links_that_ends_outside_is_not_followed_and_one_that_ends_inside_is() {
    let host = host();
    host.link("two", "root/one");
    host.link("three", "root/two");
    host.link(host.path("secret/key"), "root/three");
    host.link("good2", "root/good1");
    host.link("sub", "root/good2");
    let (all, skipped) = followed(&host);
    assert_eq!(all, ["root/a", "root/good1/b", "root/good2/b", "root/sub/b"]);
    assert_eq!(skipped.len(), 3);
    assert!(skipped.iter().all(|(_, reason)| *reason == SkipReason::LeadsOutside), "{skipped:?}");
}

#[test]
fn a_link_out_and_in_again_is_decided_by_its_target() {
    let host = host();
    host.link(host.path("secret"), "root/out");
    std::os::unix::fs::symlink(host.path("root/a"), host.path("secret/back")).unwrap();
    host.link("out/back", "root/round");
    let (all, _) = followed(&host);
    assert_eq!(all, ["root/a", "root/round", "root/sub/b"]);
}

#[test]
fn links_to_nothing_and_to_themselves_are_left_out() {
    let host = host();
    host.link("nothing", "root/dangling");
    host.link("loop", "root/loop");
    let (all, skipped) = followed(&host);
    assert_eq!(all.len(), 2);
    assert!(skipped.iter().all(|(_, reason)| *reason == SkipReason::LeadsNowhere), "{skipped:?}");
}

#[test]
fn without_roots_a_link_leads_no_further_than_its_mount() {
    let host = host();
    host.link(host.path("secret/key"), "root/sub/link");
    host.link("b", "root/sub/inside");
    let workspace = Workspace::builder()
        .mount(HostMount::new(host.path("root/sub")).follow_symlinks(true))
        .open()
        .unwrap();
    assert_eq!(files(workspace.path()), ["sub/b", "sub/inside"]);
}

#[test]
fn exponentially_many_links_are_stopped() {
    // Each folder has two links to the next one, so there are 2^40 paths.
    let host = Host::new(&[]);
    for number in 0..40 {
        fs::create_dir_all(host.path(&format!("root/d{number}"))).unwrap();
        for side in ["l", "r"] {
            host.link(format!("../d{}", number + 1), &format!("root/d{number}/{side}"));
        }
    }
    host.write("root/d40/end", "x");
    let mount = HostMount::new(host.path("root/d0")).follow_symlinks(true).max_bytes(1000);
    let opened = Workspace::builder().mount(mount).allowed_host_roots([host.path("root")]).open();
    assert!(
        matches!(opened, Err(WorkspaceError::TooLarge { .. } | WorkspaceError::TooMuch { .. })),
        "{opened:?}"
    );
}

#[test]
fn special_files_are_skipped_without_blocking() {
    let host = host();
    let made = Command::new("mkfifo").arg(host.path("root/pipe")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(host.path("root/socket")).unwrap();
    host.link("/dev/zero", "root/device");
    host.link("pipe", "root/to_pipe");
    let (all, skipped) = followed(&host);
    assert_eq!(all, ["root/a", "root/sub/b"]);
    assert!(skipped.contains(&("pipe".to_owned(), SkipReason::Special)), "{skipped:?}");
    assert!(skipped.contains(&("socket".to_owned(), SkipReason::Special)), "{skipped:?}");
    assert!(skipped.contains(&("to_pipe".to_owned(), SkipReason::Special)), "{skipped:?}");
    assert!(skipped.contains(&("device".to_owned(), SkipReason::LeadsOutside)), "{skipped:?}");
    // They cannot be mounted by name either.
    for path in [host.path("root/pipe"), host.path("root/socket")] {
        let opened = Workspace::builder().mount(HostMount::new(path)).open();
        assert!(matches!(opened, Err(WorkspaceError::NotAFile { .. })), "{opened:?}");
    }
    let device = Workspace::builder().mount(HostMount::new("/dev/zero").max_bytes(10)).open();
    assert!(matches!(device, Err(WorkspaceError::NotAFile { .. })), "{device:?}");
}

/// Swaps two paths atomically, back and forth, until the other work is done.
fn swapping(here: &Path, there: &Path, meanwhile: impl FnOnce()) {
    /// Ends the swapping also if the test fails.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swaps = scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let mut count = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, here, CWD, there, RenameFlags::EXCHANGE).unwrap();
                count += 1;
            }
            count
        });
        let stops = Stop(&stop);
        meanwhile();
        drop(stops);
        assert!(swaps.join().unwrap() > 0);
    });
}

/// Mounts repeatedly while a path is swapped for a link; the secret is never copied.
fn never_leaks(host: &Host, here: &str, follow: bool) {
    let (here, there) = (host.path(here), host.path("secret/link"));
    let (mut copied, mut rounds) = (0, 0);
    swapping(&here, &there, || {
        while rounds < 100 {
            rounds += 1;
            let opened = Workspace::builder()
                .mount(HostMount::new(host.path("root")).follow_symlinks(follow))
                .allowed_host_roots([host.path("root")])
                .temp_root(host.path(""))
                .open();
            let workspace = opened.unwrap();
            for file in files(workspace.path()) {
                let text = fs::read_to_string(workspace.path().join(&file)).unwrap();
                assert!(!text.contains("SECRET"), "{file} in round {rounds}");
                copied += 1;
            }
        }
    });
    assert!(copied > 0);
}

#[test]
fn a_file_that_is_swapped_for_a_link_during_the_copy_leaks_nothing() {
    for follow in [false, true] {
        let host = host();
        std::os::unix::fs::symlink(host.path("secret/key"), host.path("secret/link")).unwrap();
        never_leaks(&host, "root/a", follow);
    }
}

#[test]
fn a_folder_that_is_swapped_for_a_link_during_the_copy_leaks_nothing() {
    for follow in [false, true] {
        let host = host();
        host.write("secret/inner/b", "SECRET");
        std::os::unix::fs::symlink(host.path("secret/inner"), host.path("secret/link")).unwrap();
        never_leaks(&host, "root/sub", follow);
    }
}

#[test]
fn a_link_that_is_swapped_during_the_copy_leaks_nothing() {
    let host = host();
    host.link("sub", "root/good");
    std::os::unix::fs::symlink(host.path("secret"), host.path("secret/link")).unwrap();
    never_leaks(&host, "root/good", true);
}

#[test]
fn the_size_limit_is_exact_to_the_byte() {
    let host = host();
    host.write("root/big/a", "12345");
    host.write("root/big/b", "1234567890");
    let open = |limit| {
        Workspace::builder().mount(HostMount::new(host.path("root/big")).max_bytes(limit)).open()
    };
    assert_eq!(open(15).unwrap().mounts()[0].bytes, 15);
    let error = open(14).unwrap_err();
    let WorkspaceError::TooLarge { limit, at, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*limit, at.as_path()), (14, host.path("root/big/b").as_path()));
    assert!(open(0).is_err());
    host.write("root/nothing/a", "");
    assert!(
        Workspace::builder()
            .mount(HostMount::new(host.path("root/nothing")).max_bytes(0))
            .open()
            .is_ok()
    );
}

#[test]
fn a_file_above_the_limit_is_refused_before_it_is_copied() {
    // A sparse file of a terabyte needs no time and no space.
    let host = host();
    fs::File::create(host.path("root/huge")).unwrap().set_len(1 << 40).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let opened = Workspace::builder()
        .mount(HostMount::new(host.path("root")).max_bytes(1_000_000))
        .temp_root(temp.path())
        .open();
    assert!(matches!(opened, Err(WorkspaceError::TooLarge { .. })), "{opened:?}");
    assert_eq!(
        fs::read_dir(temp.path()).unwrap().count(),
        0,
        "files that were already copied are removed"
    );
}

#[test]
fn a_file_that_reports_no_size_is_counted_while_it_is_read() {
    // Files in `/proc` report no size.
    let mount = HostMount::new("/proc/self/status").max_bytes(100);
    let opened = Workspace::builder().mount(mount).open();
    assert!(matches!(opened, Err(WorkspaceError::TooLarge { limit: 100, .. })), "{opened:?}");
}

#[test]
fn a_hundred_thousand_small_files_are_copied() {
    let host = Host::in_memory();
    fs::create_dir(host.path("temp")).unwrap();
    for folder in 0..100 {
        let path = host.path(&format!("many/{folder}"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..1000 {
            fs::write(path.join(file.to_string()), b"x").unwrap();
        }
    }
    let mount = HostMount::new(host.path("many")).max_bytes(100_000);
    let workspace = Workspace::builder().mount(mount).temp_root(host.path("temp")).open().unwrap();
    assert_eq!((workspace.mounts()[0].files, workspace.mounts()[0].bytes), (100_000, 100_000));
    assert!(workspace.describe().len() < 10_000, "not all files are listed");
    fs::write(workspace.path().join("many/7/7"), "y").unwrap();
    assert_eq!(workspace.changes().unwrap().len(), 1);
    workspace.cleanup().unwrap();
    assert!(!workspace.path().exists());
}

#[test]
fn very_deep_folders_are_refused() {
    let host = Host::new(&[]);
    let deep = format!("root/{}", "d/".repeat(300));
    host.write(&format!("{deep}end"), "x");
    let opened = Workspace::builder().mount(HostMount::new(host.path("root"))).open();
    assert!(matches!(&opened, Err(WorkspaceError::TooMuch { .. })), "{opened:?}");
}

#[test]
fn a_workspace_with_inaccessible_folders_is_removed() {
    use std::os::unix::fs::PermissionsExt as _;
    let host = host();
    let workspace = Workspace::builder().mount(HostMount::new(host.path("root"))).open().unwrap();
    let locked = workspace.path().join("root/sub");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    workspace.cleanup().unwrap();
    assert!(!workspace.path().exists());
}
