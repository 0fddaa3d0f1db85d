//! Children start in their own session, without a fork of this process, and report the system's own errors.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;

use ostler_process::{Environment, Group, PipedCommand};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn output(mut command: tokio::process::Command) -> String {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut group = Group::spawn(command).unwrap();
    let mut text = String::new();
    group.stdout().unwrap().read_to_string(&mut text).await.unwrap();
    text.trim().to_owned()
}

/// Mutant: `Command::new` in `command`, spawned without the wrapper.
#[tokio::test]
async fn a_child_leads_a_session_of_its_own() {
    for start in [ostler_process::command, tokio::process::Command::new::<&str>] {
        let mut command = start("/bin/sh");
        command.args(["-c", "read -r line </proc/self/stat; echo $$ $line"]);
        let stat = output(command).await;
        let fields: Vec<_> = stat.split(' ').collect();
        // `/proc/self/stat`: id, name, state, parent, group, session.
        assert_eq!((fields[0], fields[0]), (fields[5], fields[6]), "{stat}");
    }
}

/// Mutant: `is_there` left out of `spawn`: the utility starts and reports the error itself.
#[tokio::test]
async fn a_program_that_cannot_be_started_fails_spawn() {
    let folder = std::env::temp_dir();
    let file = folder.join(format!("not-a-program-{}", std::process::id()));
    std::fs::write(&file, "text").unwrap();
    let missing = folder.join("no-such-program");
    let cases = [
        ("no-such-program-anywhere".as_ref(), ErrorKind::NotFound),
        (missing.as_path(), ErrorKind::NotFound),
        (file.as_path(), ErrorKind::PermissionDenied),
    ];
    for (program, kind) in cases {
        let error = Group::spawn(ostler_process::command(program)).unwrap_err();
        assert_eq!(error.kind(), kind, "{}", program.display());
    }
    let mut elsewhere = ostler_process::command("/bin/sh");
    elsewhere.current_dir(&missing);
    assert_eq!(Group::spawn(elsewhere).unwrap_err().kind(), ErrorKind::NotFound);
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn arguments_environment_and_folder_arrive_unchanged() {
    let mut command = ostler_process::command("sh");
    command.args(["-c", "printf '%s|' \"$0\" \"$@\" \"$GREETING\" \"$PWD\"", "--", "-x", "a b"]);
    command.env("GREETING", "hello").current_dir("/");
    assert_eq!(output(command).await, "--|-x|a b|hello|/|");
}

fn piped<'a>(arguments: &'a [&'a OsStr], folder: &'a Path) -> PipedCommand<'a> {
    let environment = Environment::default().of_child();
    PipedCommand { program: Path::new("/bin/sh"), arguments, folder, environment, boundary: None }
}

/// Runs a test once on a plain thread, for which another thread starts programs, and once on a thread with its own
/// working directory, which starts them by itself.
fn on_both_kinds_of_threads(test: impl AsyncFn() + Copy + Send + 'static) {
    for prepare in [|| {}, ostler_process::separate_working_directory] {
        let thread = std::thread::spawn(move || {
            prepare();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(test());
            let directory = std::fs::read_link("/proc/thread-self/cwd").unwrap();
            assert_eq!(directory, std::env::current_dir().unwrap(), "it is back in its folder");
        });
        thread.join().unwrap();
    }
}

/// Mutants: `SET_SESSION` left out; `fchdir` left out.
#[test]
fn a_program_with_pipes_leads_its_own_session_in_its_folder_with_its_variables() {
    on_both_kinds_of_threads(async || {
        let script = "read -r stat </proc/self/stat; read -r line; echo \"$$ $stat\"; echo \"$line,$A,$0,$1\" >&2; pwd -P";
        let arguments = ["-c", script, "zero", "a b"].map(OsStr::new);
        let folder = Path::new("/usr");
        let mut command = piped(&arguments, folder);
        command.environment.insert("A".into(), "1".into());
        let mut group = Group::spawn_piped(command).unwrap();
        group.stdin().unwrap().write_all(b"input\n").await.unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        group.stdout().unwrap().read_to_string(&mut stdout).await.unwrap();
        group.stderr().unwrap().read_to_string(&mut stderr).await.unwrap();
        let (stat, pwd) = stdout.split_once('\n').unwrap();
        let fields: Vec<_> = stat.split(' ').collect();
        assert_eq!((fields[0], fields[0]), (fields[5], fields[6]), "{stat}");
        assert_eq!((pwd, &*stderr), ("/usr\n", "input,1,zero,a b\n"));
        assert!(group.wait().await.unwrap().success());
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let is_in_it = |thread: std::fs::DirEntry| {
            std::fs::read_link(thread.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
        };
        assert!(!threads.into_iter().any(is_in_it), "only the child is in that folder");
    });
}

/// Mutant: `open_gate` that writes nothing.
#[tokio::test]
async fn a_gate_passes_one_line_break_and_ends() {
    let arguments = ["-c", "read -r line && ! read -r line"].map(OsStr::new);
    let mut group = Group::spawn_piped(piped(&arguments, Path::new("/"))).unwrap();
    group.open_gate().unwrap();
    assert!(group.stdin().is_none());
    assert!(group.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_program_with_pipes_reports_how_it_ended_and_leaves_no_zombie() {
    for (script, code, signal) in [("exit 7", Some(7), None), ("kill -9 $$", None, Some(9))] {
        let arguments = ["-c", script].map(OsStr::new);
        let mut group = Group::spawn_piped(piped(&arguments, Path::new("/"))).unwrap();
        let status = group.wait().await.unwrap();
        assert_eq!((status.code(), status.signal()), (code, signal));
        assert_eq!(group.wait().await.unwrap(), status, "it can be asked for again");
    }
    let arguments = ["-c", "sleep 600"].map(OsStr::new);
    let group = Group::spawn_piped(piped(&arguments, Path::new("/"))).unwrap();
    let folder = format!("/proc/{}", group.id());
    drop(group);
    assert!(!Path::new(&folder).exists(), "it was killed and collected");
}

#[test]
fn a_program_with_pipes_that_cannot_be_started_fails() {
    on_both_kinds_of_threads(async || {
        let arguments = ["-c", "true"].map(OsStr::new);
        let missing = piped(&arguments, Path::new("/no/such/folder"));
        assert_eq!(Group::spawn_piped(missing).unwrap_err().kind(), ErrorKind::NotFound);
        let mut missing = piped(&arguments, Path::new("/"));
        missing.program = Path::new("/no/such/program");
        assert_eq!(Group::spawn_piped(missing).unwrap_err().kind(), ErrorKind::NotFound);
        let nul = ["-c", "a\0b"].map(OsStr::new);
        let error = Group::spawn_piped(piped(&nul, Path::new("/"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    });
}

/// A boundary whose programs end with the thread that started them, as `bwrap --die-with-parent` does.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct EndsWithParent;

#[cfg(target_os = "linux")]
impl ostler_process::Confine for EndsWithParent {
    fn confine(
        &self,
        inside: ostler_process::InsideProgram<'_>,
    ) -> std::io::Result<ostler_process::ConfinedProgram> {
        let own = ["--pdeathsig", "KILL", "--"].map(std::ffi::OsString::from);
        let program = inside.program.as_os_str().to_owned();
        let given = inside.arguments.iter().map(|argument| (*argument).to_owned());
        Ok(ostler_process::ConfinedProgram {
            program: "/usr/bin/setpriv".into(),
            arguments: own.into_iter().chain([program]).chain(given).collect(),
            environment: inside.environment,
            guard: Box::new(()),
        })
    }
}

// Mutant: it is started on the thread of the caller.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_program_in_a_boundary_outlives_the_thread_that_asked_for_it() {
    let runtime = tokio::runtime::Handle::current();
    let spawn = move || {
        let _inside = runtime.enter();
        // As the threads of the program do.
        ostler_process::separate_working_directory();
        let mut group = Group::spawn_piped(PipedCommand {
            program: Path::new("/bin/sh"),
            arguments: &["-c".as_ref(), "echo ready; read -r _; exit 3".as_ref()],
            folder: Path::new("/"),
            environment: std::env::vars_os().collect(),
            boundary: Some(&EndsWithParent),
        })
        .unwrap();
        let mut stdout = group.stdout().unwrap();
        runtime.block_on(stdout.read_exact(&mut [0; 6])).unwrap();
        // `/proc/thread-self` leads to `PID/task/ID`.
        (group, stdout, std::fs::read_link("/proc/thread-self").unwrap())
    };
    let (mut group, _stdout, thread) = std::thread::spawn(spawn).join().unwrap();
    let thread = Path::new("/proc").join(thread);
    while thread.exists() {
        tokio::task::yield_now().await;
    }
    // Only now may it end.
    group.open_gate().unwrap();
    assert_eq!(group.wait().await.unwrap().code(), Some(3));
}
