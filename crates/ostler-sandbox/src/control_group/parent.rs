//! The group in which this process can make others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Controllers;
use super::leftovers::OF_PROCESS;
use crate::owner;

/// Says that the system's manager gave a group to the program in it (systemd: `Delegate=yes`).
const DELEGATED: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// The group in which this process makes others: its own one if it was given to it, or the nearest one around it that this
/// user can write and that limits its groups.
pub(super) fn find() -> Option<PathBuf> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let mount = mount(&read("/proc/self/mountinfo")?)?;
    let own = mount.folder(&read("/proc/self/cgroup")?)?;
    if is_delegated(&own) && make_room(&own).is_ok() {
        return Some(own);
    }
    // The root of all groups may have processes and groups. Only there can controllers be enabled with processes in it.
    if own == mount.point && !own.join("cgroup.type").exists() {
        enable(&own);
    }
    nearest(&own, &mount.point)
}

/// Where the groups of version 2 are mounted.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// The group that is shown there.
    root: PathBuf,
    point: PathBuf,
}

/// Of the kernel's list of mounts.
fn mount(list: &str) -> Option<Mount> {
    list.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut fields = place.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let is_version_2 = kind.split(' ').next() == Some("cgroup2");
        is_version_2.then(|| Mount { root: unescaped(root), point: unescaped(point) })
    })
}

/// The kernel writes spaces and other special characters as three digits.
fn unescaped(path: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(path.to_owned(), |path, (code, text)| path.replace(code, text)).into()
}

impl Mount {
    /// The folder of a process's group, of its list of groups.
    fn folder(&self, list: &str) -> Option<PathBuf> {
        let path = list.lines().find_map(|line| line.strip_prefix("0::"))?;
        // A group outside this process's view begins with `/..`.
        let is_inside = !Path::new(path).components().any(|part| part.as_os_str() == "..");
        let inner = Path::new(path).strip_prefix(&self.root).ok().filter(|_| is_inside)?;
        Some(self.point.join(inner).components().collect())
    }
}

/// The nearest group, from its own one outwards, that limits the groups in it and in which this user can make some.
fn nearest(own: &Path, top: &Path) -> Option<PathBuf> {
    let outwards = own.ancestors().take_while(|folder| folder.starts_with(top));
    let limits = |folder: &&Path| {
        let listed = fs::read_to_string(folder.join("cgroup.subtree_control"));
        listed.is_ok_and(|listed| Controllers::of(&listed).any())
    };
    let can_write = |folder: &&Path| {
        // Also of the list of processes: moving one between two groups needs it of the group around both.
        let access = rustix::fs::Access::WRITE_OK;
        let flags = rustix::fs::AtFlags::EACCESS;
        let can = |path: &Path| rustix::fs::accessat(rustix::fs::CWD, path, access, flags).is_ok();
        can(folder) && can(&folder.join("cgroup.procs"))
    };
    outwards.filter(limits).find(can_write).map(Path::to_owned)
}

fn is_delegated(group: &Path) -> bool {
    DELEGATED.iter().any(|name| {
        let mut value = [0_u8; 8];
        rustix::fs::getxattr(group, *name, &mut value).is_ok_and(|length| value[..length] == *b"1")
    })
}

/// Moves this process and its children from its group into one inside: only groups without processes can limit others.
fn make_room(own: &Path) -> io::Result<()> {
    let prefix = owner::prefix().ok_or(io::ErrorKind::NotFound)?;
    let inner = own.join(format!("{}{OF_PROCESS}", prefix.trim_end_matches('-')));
    match fs::create_dir(&inner) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A child that is started meanwhile is found by the next look.
    for _ in 0..20 {
        let list = fs::read_to_string(own.join("cgroup.procs"))?;
        for process in list.lines() {
            // Fails if it is gone.
            let _ = fs::write(inner.join("cgroup.procs"), process);
        }
        enable(own);
        let listed = fs::read_to_string(own.join("cgroup.subtree_control"));
        if listed.is_ok_and(|listed| Controllers::of(&listed).any()) {
            return Ok(());
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Lets the groups in a group be limited, as far as the group has what that needs.
fn enable(group: &Path) {
    for controller in ["+pids", "+memory"] {
        // What is missing afterwards is not used.
        let _ = fs::write(group.join("cgroup.subtree_control"), controller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "24 1 0:21 / / rw - ext4 /dev/root rw\n\
        33 25 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
        35 25 0:31 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_mount_is_found_wherever_it_is() {
        let found = mount(HYBRID).unwrap();
        assert_eq!(found, Mount { root: "/".into(), point: "/sys/fs/cgroup/unified".into() });
        let moved = "9 1 0:3 /a\\040b /my\\040groups rw - cgroup2 none rw\n";
        assert_eq!(
            mount(moved).unwrap(),
            Mount { root: "/a b".into(), point: "/my groups".into() }
        );
        assert_eq!(mount("9 1 0:3 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"), None);
    }

    // Mutant: a group outside the view is joined to the mount's path.
    #[test]
    fn the_own_group_is_inside_the_mount() {
        let whole = mount(HYBRID).unwrap();
        let list = "8:pids:/\n4:memory:/x\n0::/user.slice/a.scope\n";
        let folder = whole.folder(list).unwrap();
        assert_eq!(folder, Path::new("/sys/fs/cgroup/unified/user.slice/a.scope"));
        assert_eq!(whole.folder("0::/\n").unwrap(), Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(whole.folder("0::/../other\n"), None);
        assert_eq!(whole.folder("8:pids:/\n"), None, "only groups of version 1");
        let part = Mount { root: "/box".into(), point: "/groups".into() };
        assert_eq!(part.folder("0::/box/in\n").unwrap(), Path::new("/groups/in"));
        assert_eq!(part.folder("0::/elsewhere\n"), None);
    }

    // Mutants: a group without controllers is used; groups outside the mount are.
    #[test]
    fn the_nearest_group_with_controllers_that_can_be_written_is_used() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("user/app/own.scope");
        fs::create_dir_all(&own).unwrap();
        let set = |folder: &str, controllers: &str| {
            fs::write(top.path().join(folder).join("cgroup.subtree_control"), controllers).unwrap();
            fs::write(top.path().join(folder).join("cgroup.procs"), "").unwrap();
        };
        assert_eq!(nearest(&own, top.path()), None);
        set("user/app/own.scope", "");
        set("user/app", "cpu io\n");
        set("user", "cpu memory pids\n");
        assert_eq!(nearest(&own, top.path()), Some(top.path().join("user")));
        set("user/app", "pids\n");
        assert_eq!(nearest(&own, top.path()), Some(top.path().join("user/app")));
        assert_eq!(nearest(&own, &own), None);
        fs::remove_file(top.path().join("user/app/cgroup.procs")).unwrap();
        assert_eq!(nearest(&own, top.path()), Some(top.path().join("user")));
    }

    #[test]
    fn controllers_are_whole_names() {
        assert_eq!(
            Controllers::of("cpu hugetlb pids\n"),
            Controllers { processes: true, memory: false }
        );
        assert!(!Controllers::of("memory_recursiveprot\n").any());
    }
}
