//! Paths on a real disk, with links put into them after they were resolved.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

/// A folder with a file in a folder, and another one outside.
struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("work/sub")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("work/sub/file"), "inside").unwrap();
        fs::write(folder.path().join("outside/file"), "secret").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn real(&self, name: &str) -> RealPath {
        RealPath::resolve(&self.path(name)).unwrap()
    }

    /// Replaces the folder `work/sub` by a link.
    fn swap_folder(&self) {
        fs::rename(self.path("work/sub"), self.path("work/old")).unwrap();
        symlink(self.path("outside"), self.path("work/sub")).unwrap();
    }

    /// Replaces the file by a link.
    fn swap_file(&self) {
        fs::remove_file(self.path("work/sub/file")).unwrap();
        symlink(self.path("outside/file"), self.path("work/sub/file")).unwrap();
    }
}

#[test]
fn links_are_followed_when_a_path_is_resolved() {
    let place = TestFolder::new();
    symlink("sub/file", place.path("work/link")).unwrap();
    symlink(place.path("outside"), place.path("work/out")).unwrap();
    symlink("nowhere", place.path("work/dangling")).unwrap();
    symlink("loop", place.path("work/loop")).unwrap();
    for (path, expected) in [
        ("work/sub/file", "work/sub/file"),
        ("work/link", "work/sub/file"),
        ("work/out/file", "outside/file"),
        ("work/out/new/file", "outside/new/file"),
        ("work/sub/new/file", "work/sub/new/file"),
        ("work/sub/../sub/file", "work/sub/file"),
    ] {
        let expected = place.folder.path().canonicalize().unwrap().join(expected);
        assert_eq!(place.real(path).as_path(), expected, "{path}");
    }
    for path in ["work/dangling", "work/loop", "work/none/../../outside/file"] {
        assert!(RealPath::resolve(&place.path(path)).is_err(), "{path}");
    }
    let parent = RealPath::resolve_parent(&place.path("work/out/file")).unwrap();
    assert_eq!(parent, place.real("outside/file"));
    let parent = RealPath::resolve_parent(&place.path("work/dangling")).unwrap();
    assert_eq!(parent, place.real("work").join("dangling".as_ref()));
    assert_eq!(RealPath::from_resolved("relative".into()), None);
    assert_eq!(RealPath::from_resolved("/a/../b".into()), None);
    let work = place.real("work");
    assert_eq!(work.below(Path::new("sub/file")), Some(place.real("work/sub/file")));
    assert_eq!(work.below(Path::new("")), Some(work.clone()));
    assert_eq!(work.below(Path::new("../outside/file")), None);
    assert_eq!(work.below(Path::new("/etc")), None);
}

// Mutants: `open_absolute` without NO_SYMLINKS; `must_be_writable` accepts a link; `parent_handle` and `open` by path.
#[test]
fn no_operation_follows_a_link_that_appeared_after_the_path_was_resolved() {
    for swap in [TestFolder::swap_folder, TestFolder::swap_file] {
        let place = TestFolder::new();
        let file = place.real("work/sub/file");
        swap(&place);
        let refusals = [
            file.open().map(drop),
            file.read_bytes(100).map(drop),
            file.append(0o600).map(drop),
            file.replace(b"new", 0o600),
            file.edit(b"new", 0o600, None),
            file.remove(),
        ];
        for (index, refusal) in refusals.into_iter().enumerate() {
            let error = refusal.unwrap_err();
            assert!(is_link_appeared(&error), "{index}: {error}");
        }
        assert!(file.create_new(0o600).is_err());
        assert!(file.join("new".as_ref()).create_folders(0o777).is_err());
        assert!(file.metadata().map_or(true, |found| found.is_symlink()));
        assert_eq!(fs::read_to_string(place.path("outside/file")).unwrap(), "secret");
        assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
    }
}

#[test]
fn no_folder_is_created_or_listed_behind_a_link() {
    let place = TestFolder::new();
    let (sub, new) = (place.real("work/sub"), place.real("work/sub/new/deep"));
    assert_eq!(sub.names(10).unwrap(), ["file"]);
    place.swap_folder();
    for error in [new.create_folders(0o777).unwrap_err(), sub.names(10).unwrap_err()] {
        assert!(is_link_appeared(&error), "{error}");
    }
    let file = new.join("file".as_ref());
    assert!(is_link_appeared(&file.replace(b"x", 0o600).unwrap_err()));
    assert_eq!(fs::read_dir(place.path("outside")).unwrap().count(), 1);
}

// Mutants: `append` without the check before it opens, and without NONBLOCK; `open_listed` without NONBLOCK: each waits for ever.
// `open_listed` that does not look at what it has opened.
#[test]
fn only_regular_files_are_opened_and_written_without_waiting() {
    let place = TestFolder::new();
    let pipe = place.path("work/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [&pipe, &place.path("work/sub"), Path::new("/dev/null")] {
        let path = RealPath::resolve(path).unwrap();
        assert!(path.open().is_err() && path.append(0o600).is_err(), "{path:?}");
        assert!(path.open_listed().is_err(), "{path:?}");
        assert!(path.edit(b"", 0o600, None).is_err() && path.remove().is_err(), "{path:?}");
        path.metadata().unwrap();
    }
    let new = place.real("work/new");
    assert_eq!(new.open().unwrap_err().kind(), io::ErrorKind::NotFound);
    new.create_new(0o600).unwrap().write_all(b"one").unwrap();
    assert_eq!(new.create_new(0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    new.append(0o600).unwrap().write_all(b" two").unwrap();
    let mut text = String::new();
    new.open().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), new.metadata().unwrap().len()), ("one two", 7));
    assert_eq!(new.read_bytes(6).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    new.remove().unwrap();
    assert!(!place.path("work/new").exists());
}

// A program that waits to write into a pipe would continue, and be ended by the system when the pipe is closed again. Mutants:
// `open` of this module, and that of `regular.rs`, without the check before they open.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_refused_without_opening_it() {
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
    let place = TestFolder::new();
    let pipe = place.path("work/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let watch = inotify::init(CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, &pipe, WatchFlags::OPEN).unwrap();
    let n_opened = || {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 512];
        let mut events = inotify::Reader::new(&watch, &mut buffer);
        std::iter::from_fn(|| events.next().ok().map(drop)).count()
    };
    let real = RealPath::resolve(&pipe).unwrap();
    assert!(real.open().is_err() && crate::open(&pipe).is_err() && real.append(0o600).is_err());
    assert_eq!(n_opened(), 0);
    assert!(real.open_listed().is_err());
    assert_eq!(n_opened(), 1, "this test notices it");
}

#[test]
fn a_file_is_replaced_with_its_permissions_and_no_temporary_file_is_left() {
    let place = TestFolder::new();
    let file = place.real("work/new/deep/file");
    file.replace(b"one", 0o600).unwrap();
    let path = place.path("work/new/deep/file");
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    file.replace(b"two", 0o600).unwrap();
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o640));
    assert!(place.real("work/new").replace(b"three", 0o600).is_err(), "a folder is there");
    for folder in ["work/new", "work/new/deep"] {
        assert_eq!(fs::read_dir(place.path(folder)).unwrap().count(), 1);
    }
}

#[test]
fn a_file_of_the_user_keeps_its_owner_and_permissions() {
    let place = TestFolder::new();
    let (file, path) = (place.real("work/new"), place.path("work/new"));
    let seen = || (fs::read(&path).unwrap(), mode(&path));
    file.edit(b"one", 0o600, None).unwrap();
    assert_eq!(seen(), (b"one".to_vec(), 0o600));
    file.edit(b"two", 0o600, Some(Permissions::from_mode(0o750))).unwrap();
    file.edit(b"three", 0o600, None).unwrap();
    assert_eq!(seen(), (b"three".to_vec(), 0o750));
    assert!(place.real("work/missing/file").edit(b"", 0o600, None).is_err());
    // Mutant: without `keep_owner` the file belongs to root afterwards. Only root can try it.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
        file.edit(b"four", 0o600, None).unwrap();
        let about = fs::metadata(&path).unwrap();
        assert_eq!((about.uid(), about.gid()), (65534, 65534));
    }
}

// Mutants: a placeholder is there for one of these; every socket is a placeholder.
#[test]
fn a_placeholder_is_missing_for_tools_and_gives_way_to_a_file() {
    let place = TestFolder::new();
    let real = place.real("work/sub/placeholder");
    let make = |path: &Path, mode: u32| {
        let (socket, mode) = (FileType::Socket, Mode::from_raw_mode(mode));
        rustix::fs::mknodat(rustix::fs::CWD, path, socket, mode, 0).unwrap();
    };
    make(real.as_path(), crate::PLACEHOLDER_MODE);
    let missing = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
    missing(real.metadata().unwrap_err());
    missing(real.open().unwrap_err());
    missing(real.read_text(100).unwrap_err());
    real.edit(b"mine", 0o644, None).unwrap();
    assert_eq!(real.read_text(100).unwrap(), "mine");
    let other = place.real("work/sub/socket");
    make(other.as_path(), 0o644);
    assert!(other.metadata().is_ok());
    assert!(other.edit(b"mine", 0o644, None).is_err());
}
