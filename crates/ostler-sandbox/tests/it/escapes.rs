//! The attacks on files, processes and the kernel.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use ostler_sandbox::{Kind, Layers, Mapped, Protected, SandboxError};

use crate::probe::{
    self, NO_NAMESPACES, NO_SECCOMP, NONE, ONLY_LANDLOCK, ONLY_NAMESPACES, ONLY_SECCOMP, Probe,
};
use crate::stage::{SECRET, Stage};

const FILES: &[Probe] = &[
    Probe::new(1, ONLY_SECCOMP, "echo x > $OUTSIDE/planted"),
    Probe::new(1, ONLY_SECCOMP, "echo x > ../outside/planted"),
    Probe::new(1, ONLY_SECCOMP, "echo x > /proc/self/cwd/../outside/victim"),
    Probe::new(1, ONLY_SECCOMP, "echo x > /proc/self/root$OUTSIDE/planted"),
    Probe::new(1, ONLY_SECCOMP, "echo x > /proc/$SELF/root$OUTSIDE/planted"),
    Probe::new(1, ONLY_SECCOMP, "echo x > /proc/1/root$OUTSIDE/planted; echo x > $OUTSIDE/planted"),
    Probe::new(2, ONLY_SECCOMP, "ln -s $OUTSIDE/victim link && echo x > link"),
    Probe::new(2, ONLY_SECCOMP, "ln -s $OUTSIDE link && echo x > link/planted"),
    Probe::new(2, ONLY_SECCOMP, "ln -s ../outside link && rm link/victim"),
    Probe::new(3, ONLY_SECCOMP, "ln $OUTSIDE/victim hard && echo x > hard"),
    Probe::new(5, NO_NAMESPACES, "echo 'touch x' > .git/hooks/pre-commit"),
    Probe::new(5, NO_NAMESPACES, "printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config"),
    Probe::new(5, NO_NAMESPACES, "echo /elsewhere > .git/commondir"),
    Probe::new(5, NO_NAMESPACES, "echo '[core]' > .git/config.worktree"),
    Probe::new(5, NO_NAMESPACES, "rm .git/config; cp /etc/hostname .git/config"),
    Probe::new(6, NO_NAMESPACES, "mkdir -p $FRESH/.git/hooks"),
    Probe::new(6, NO_NAMESPACES, "git init -q $FRESH"),
    Probe::new(6, NO_NAMESPACES, "echo 'gitdir: /elsewhere' > $FRESH/.git"),
    Probe::new(7, NO_NAMESPACES, "mv .git moved"),
    Probe::new(7, NO_NAMESPACES, "mv .git/hooks .git/moved"),
    Probe::new(7, NO_NAMESPACES, "mv .claude moved; mkdir .claude"),
    Probe::new(7, NO_NAMESPACES, "rm -rf .claude .git/hooks"),
    Probe::new(8, NO_NAMESPACES, "echo '{}' > .claude/settings.local.json"),
    Probe::new(8, NO_NAMESPACES, "echo '{\"hooks\":{}}' > .claude/settings.json"),
    Probe::new(8, NO_NAMESPACES, "mkdir .claude/agents .claude/commands"),
    Probe::new(
        8,
        NO_NAMESPACES,
        "mkdir $FRESH/.claude && echo '{}' > $FRESH/.claude/settings.json",
    ),
    Probe::new(8, NO_NAMESPACES, "echo '{}' > .mcp.json"),
    Probe::new(8, NO_NAMESPACES, "echo A=b > .env"),
    Probe::new(8, NO_NAMESPACES, "echo x > .bashrc"),
    Probe::new(8, NO_NAMESPACES, "ln -s /elsewhere .zshrc"),
    Probe::new(8, NO_NAMESPACES, "mkdir .vscode .idea"),
    Probe::new(10, ONLY_LANDLOCK, "grep -q the-secret $HOME/.ssh/id && echo ESCAPED"),
    Probe::new(10, ONLY_LANDLOCK, "grep -rqs the-secret $HOME $HOME/.. && echo ESCAPED"),
    // The value that it has, so that nothing changes if it works.
    Probe::of_root(
        12,
        ONLY_SECCOMP,
        "f=/proc/sys/vm/laptop_mode; v=$(cat $f); echo $v > $f && echo ESCAPED",
    ),
    Probe::of_root(
        12,
        NONE,
        "test -w /sys/kernel/uevent_helper -o -w /sys/power/state && echo ESCAPED",
    ),
];

const PROCESSES: &[Probe] = &[
    Probe::new(11, NONE, "tr '\\0' '\\n' < /proc/$SELF/environ | grep -q . && echo ESCAPED"),
    Probe::new(
        13,
        NO_SECCOMP,
        "sleep 9 & python3 -c \"import ctypes,sys; c=ctypes.CDLL(None); \
         print('ESCAPED' if c.ptrace(16,$!,0,0)==0 else 'no')\"; kill %1",
    ),
    Probe::new(
        13,
        NO_SECCOMP,
        "python3 - <<'E'
import ctypes, os, time
c = ctypes.CDLL(None, use_errno=True)
text = ctypes.create_string_buffer(b'mine')
child = os.fork()
if child == 0:
    time.sleep(9)
    os._exit(0)
class V(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
into = ctypes.create_string_buffer(4)
local, remote = V(ctypes.addressof(into), 4), V(ctypes.addressof(text), 4)
n = c.process_vm_readv(child, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
os.kill(child, 9)
print('ESCAPED' if n == 4 else 'no')
E",
    ),
    Probe::new(13, ONLY_SECCOMP, "head -c 0 /proc/$SELF/mem && echo ESCAPED"),
    Probe::new(14, ONLY_SECCOMP, "kill -0 $SELF && echo ESCAPED"),
    Probe::new(
        14,
        ONLY_LANDLOCK,
        "cat /proc/$SELF/cmdline | tr '\\0' ' ' | grep -q /it- && echo ESCAPED",
    ),
    Probe::new(15, NONE, "unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo ESCAPED'"),
    Probe::of_root(15, NONE, "mount --bind . . && umount . && echo ESCAPED"),
    Probe::new(16, ONLY_LANDLOCK, "unshare -U true && echo ESCAPED"),
    Probe::new(
        16,
        ONLY_LANDLOCK,
        "python3 -c \"import ctypes; print('ESCAPED' if ctypes.CDLL(None).unshare(0x10000000)==0 else 'no')\"",
    ),
    Probe::new(
        16,
        ONLY_LANDLOCK,
        // clone with CLONE_NEWUSER | SIGCHLD, and clone3, which hides its flags behind a pointer.
        "python3 - <<'E'
import ctypes, os
c = ctypes.CDLL(None)
child = c.syscall(56, 0x10000000 | 17, 0, 0, 0, 0)
if child == 0:
    os._exit(0)
print('ESCAPED' if child > 0 else 'no')
E",
    ),
    Probe::new(
        16,
        ONLY_LANDLOCK,
        "python3 - <<'E'
import ctypes, os
c = ctypes.CDLL(None)
args = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
child = c.syscall(435, args, ctypes.sizeof(args))
if child == 0:
    os._exit(0)
print('ESCAPED' if child > 0 else 'no')
E",
    ),
    Probe::new(
        20,
        NO_SECCOMP,
        "python3 - <<'E'
import ctypes
p = (ctypes.c_uint32 * 30)()
print('ESCAPED' if ctypes.CDLL(None).syscall(425, 4, p) >= 0 else 'no')
E",
    ),
    Probe::new(25, NO_SECCOMP, "cp /bin/true t && chmod u+s t; test -u t && echo ESCAPED"),
    Probe::new(25, NO_SECCOMP, "cp /bin/true t && chmod g+s t; test -g t && echo ESCAPED"),
    Probe::new(
        25,
        NO_SECCOMP,
        "python3 -c \"import os; os.umask(0); os.open('t', os.O_CREAT|os.O_WRONLY, 0o4755)\"; \
         test -u t && echo ESCAPED",
    ),
    Probe::new(
        25,
        NO_SECCOMP,
        // openat2, whose mode is behind a pointer.
        "python3 - <<'E'
import ctypes, os
os.umask(0)
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0)
ctypes.CDLL(None).syscall(437, -100, b't', how, 24)
E
test -u t && echo ESCAPED",
    ),
    Probe::of_root(25, NONE, "mknod device b 8 0 && rm device && echo ESCAPED"),
    Probe::of_root(
        25,
        NONE,
        "head -c 1 /dev/kmsg > /dev/null 2>&1; test -r /dev/kmsg && echo ESCAPED",
    ),
    Probe::new(
        27,
        NO_NAMESPACES,
        "test $(stat -c %d:%i /dev/shm) = $SHARED_MEMORY && echo ESCAPED",
    ),
    Probe::new(27, NO_NAMESPACES, "test $(readlink /proc/self/ns/ipc) = $QUEUES && echo ESCAPED"),
];

// Mutant: each script with the layers taken away that stop it; the test runs it.
#[test]
fn no_attack_on_files_works() {
    probe::check(FILES);
}

// The rules about files (Landlock) are a second lock; the first one must hold by itself. Mutants: the view of the root folder is
// not read-only; hidden folders are not; protected parts are not.
#[test]
fn the_mounts_alone_stop_every_attack_on_files() {
    probe::check_with(ONLY_NAMESPACES, FILES);
    let hidden =
        Probe::new(10, NONE, "for it in $HOME /home /; do touch $it/new && echo ESCAPED; done");
    probe::check_with(ONLY_NAMESPACES, &[hidden]);
    if !rustix::process::geteuid().is_root() {
        // Other users have no folder outside of those that a sandbox replaces.
        return;
    }
    let open = tempfile::tempdir_in("/var/lib").unwrap();
    fs::set_permissions(open.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let script = format!("touch {}/new", open.path().display());
    Stage::new().run(ONLY_NAMESPACES, &script);
    assert!(!open.path().join("new").exists());
    Stage::new().run(ONLY_SECCOMP, &script);
    assert!(open.path().join("new").exists(), "it works without the mounts");
}

// Mutant: each script with the layers taken away that stop it; the test runs it.
#[test]
fn no_attack_on_processes_and_the_kernel_works() {
    probe::check(PROCESSES);
}

// Row 9. Mutant: `refuse_link` accepts links.
#[test]
fn a_protected_path_that_is_a_link_stops_the_sandbox() {
    let stage = Stage::new();
    let sandbox = stage.sandbox(Layers::ALL);
    let bash = || sandbox.command(Path::new("/bin/bash"), &["-c", ":"], Path::new("/"));
    assert!(bash().is_ok());
    std::os::unix::fs::symlink(stage.path("outside"), stage.path("work/.vscode")).unwrap();
    assert!(matches!(bash(), Err(SandboxError::Link(_))));
    fs::remove_file(stage.path("work/.vscode")).unwrap();
    fs::rename(stage.path("work/.git"), stage.path("work/real")).unwrap();
    std::os::unix::fs::symlink("real", stage.path("work/.git")).unwrap();
    assert!(matches!(bash(), Err(SandboxError::Link(_))));
}

// Row 23. Mutant: without `close_others_on_exec`.
#[test]
fn descriptors_of_the_caller_are_closed() {
    let stage = Stage::new();
    let sandbox = stage.sandbox(Layers::ALL);
    let secret = stage.path("home/.ssh/id");
    let script = "cat <&7 && echo ESCAPED";
    let inside = sandbox.command(Path::new("/bin/bash"), &["-c", script], Path::new("/")).unwrap();
    let with_descriptor = |program: &Path, arguments: &[std::ffi::OsString]| {
        let mut command = Command::new("/bin/bash");
        command.args(["-c", "exec 7<\"$0\"; exec \"$@\""]).arg(&secret).arg(program);
        String::from_utf8(command.args(arguments).output().unwrap().stdout).unwrap()
    };
    assert!(!with_descriptor(&inside.program, &inside.arguments).contains(SECRET));
    let bare = with_descriptor(Path::new("/bin/bash"), &["-c".into(), script.into()]);
    assert!(bare.contains(SECRET), "the test itself does not work: {bare}");
}

// Row 24. Mutant: without TIOCSTI in the filter.
#[test]
fn no_program_types_into_the_terminal() {
    let type_x = "python3 -c \"import fcntl; fcntl.ioctl(0, 0x5412, b'x'); print('ESCAPED')\"";
    let escaped = |layers| {
        let stage = Stage::new();
        let sandbox = stage.sandbox(layers);
        let inside =
            sandbox.command(Path::new("/bin/bash"), &["-c", type_x], Path::new("/")).unwrap();
        let words = std::iter::once(inside.program.as_os_str())
            .chain(inside.arguments.iter().map(|it| it.as_os_str()));
        let quoted =
            |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
        let line = words.map(quoted).collect::<Vec<_>>().join(" ");
        let mut script = Command::new("/usr/bin/script");
        let output = script.args(["-qec", &line, "/dev/null"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("ESCAPED")
    };
    assert!(!escaped(Layers::ALL));
    let is_possible = fs::read_to_string("/proc/sys/dev/tty/legacy_tiocsti");
    if is_possible.is_ok_and(|text| text.trim() == "1") {
        assert!(escaped(NO_SECCOMP), "the test itself does not work");
    }
}

// Row 28. Mutant: the environment has no prefix on its way.
#[tokio::test]
async fn the_programs_that_build_the_sandbox_take_nothing_from_the_project() {
    use ostler_process::{Group, PipedCommand};
    use tokio::io::AsyncReadExt as _;
    let stage = Stage::new();
    let sandbox = stage.sandbox(Layers::ALL);
    let work = stage.path("work");
    for name in ["bwrap", "sh", "bash", "setsid"] {
        let program = work.join(name);
        fs::write(&program, format!("#!/bin/sh\ntouch {}\n", work.join("used").display())).unwrap();
        let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, runnable).unwrap();
    }
    let variables = [
        ("LD_PRELOAD", "/no/such/library.so".to_owned()),
        ("PATH", format!("{}:/usr/bin:/bin", work.display())),
        ("BASH_ENV", work.join("sh").display().to_string()),
    ];
    let mut group = Group::spawn_piped(PipedCommand {
        program: Path::new("/bin/dash"),
        arguments: &["-c".as_ref(), ":".as_ref()],
        folder: &work,
        environment: variables.map(|(name, value)| (name.into(), value.into())).into(),
        boundary: Some(&sandbox),
    })
    .unwrap();
    let mut errors = String::new();
    group.stderr().unwrap().read_to_string(&mut errors).await.unwrap();
    assert!(group.wait().await.unwrap().success(), "{errors}");
    // The loader complains in each program that gets the variable: the one inside, and no other.
    assert_eq!(errors.matches("LD_PRELOAD").count(), 1, "{errors}");
    assert!(!work.join("used").exists());
}

// Row 29.
#[test]
fn a_working_directory_elsewhere_cannot_be_written() {
    let stage = Stage::new();
    let sandbox = stage.sandbox(Layers::ALL);
    let outside = stage.path("outside");
    let inside =
        sandbox.command(Path::new("/bin/bash"), &["-c", "pwd; echo x > planted"], &outside);
    let inside = inside.unwrap();
    let output = Command::new(&inside.program).args(&inside.arguments).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), outside.to_str().unwrap());
    assert!(!output.status.success() && !outside.join("planted").exists());
}

// Mutants: what is protected ends at the writable folder that it is; a writable folder in a protected one stays writable.
#[test]
fn a_writable_folder_that_is_protected_as_a_whole_is_read_only_and_nothing_else_is_opened() {
    for denied in ["work", "."] {
        let mut stage = Stage::new();
        let path = stage.path(denied).canonicalize().unwrap();
        stage.boundary.protected.push(Protected { path, kind: Kind::Folder });
        let script = "cat .git/HEAD; for it in new \"$OUTSIDE\"/new /var/tmp/../cache/new; do echo x > $it; done; \
                      touch .git/HEAD && echo changed; true";
        let output = stage.run(Layers::ALL, script);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text, "ref: refs/heads/main\n", "{denied}: {output:?}");
        assert!(!stage.path("work/new").exists(), "{denied}");
        assert!(!stage.path("outside/new").exists(), "{denied}");
        let attested = &stage.sandbox(Layers::ALL).attestation().writable.clone();
        let rest = if denied == "work" { vec![stage.path("fresh")] } else { vec![] };
        assert_eq!(attested, &rest);
    }
}

// Mutants: root makes the places of folders as root; `/dev` covers what is shown in it.
#[test]
fn folders_in_mapped_and_special_folders_are_shown() {
    let mut stage = Stage::new();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let private = tempfile::tempdir().unwrap();
    let shared = memory.path().canonicalize().unwrap();
    stage.boundary.writable.push(shared.clone());
    let temporary = stage.path("work").ancestors().nth(2).unwrap().to_owned();
    stage
        .boundary
        .mapped
        .push(Mapped { source: private.path().to_owned(), target: temporary.clone() });
    let script = format!(
        "set -e; echo x > new; echo x > {}/new; echo x > {}/private; test -w /dev/null; : > /dev/shm/own",
        shared.display(),
        temporary.display()
    );
    let output = stage.run(Layers::ALL, &script);
    assert!(output.status.success(), "{output:?}");
    assert!(stage.path("work/new").exists() && shared.join("new").exists());
    assert!(private.path().join("private").exists() && !temporary.join("private").exists());
    assert!(!Path::new("/dev/shm/own").exists());
}

// Row 7 for what is hidden. Mutants: parents of hidden paths can be renamed; a hidden link hides nothing.
#[test]
fn what_is_hidden_in_a_writable_folder_stays_hidden_for_the_next_program() {
    let mut stage = Stage::new();
    let secret = stage.path("work/sub/secret");
    fs::write(&secret, SECRET).unwrap();
    let (link, behind) = (stage.path("work/link"), stage.path("work/sub/behind"));
    fs::write(&behind, SECRET).unwrap();
    std::os::unix::fs::symlink(&behind, &link).unwrap();
    stage.boundary.hidden.extend([secret.clone(), link]);
    for script in [
        "cat sub/* link; mv sub moved",
        "mv sub/secret moved; mv sub/behind moved",
        "grep -rs . moved sub link",
    ] {
        let output = stage.run(Layers::ALL, script);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!text.contains(SECRET), "{script}: {text}");
    }
    assert!(secret.exists() && behind.exists());
}

// Mutant: `protect_programs` does nothing.
#[test]
fn a_program_cannot_replace_the_one_that_builds_the_next_sandbox() {
    let mut stage = Stage::new();
    let helper = crate::stage::helper();
    let folder = helper.parent().unwrap();
    if fs::metadata(folder).unwrap().uid() != rustix::process::geteuid().as_raw() {
        // This user cannot replace it outside of a sandbox either.
        return;
    }
    stage.boundary.writable.push(folder.to_owned());
    let before = fs::read(&helper).unwrap();
    let script = format!(
        "it={}; echo x > {}/other && echo written; echo x >> $it; cp /bin/true $it.new && mv -f $it.new $it; rm -f $it",
        helper.display(),
        folder.display()
    );
    let output = stage.run(Layers::ALL, &script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "written\n", "{output:?}");
    assert!(fs::read(&helper).is_ok_and(|after| after == before));
    for name in ["other".to_owned(), format!("{}.new", helper.display())] {
        let _ = fs::remove_file(folder.join(name));
    }
}
