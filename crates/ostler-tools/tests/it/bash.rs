//! Processes are watched through a named pipe that they hold open: its end means that they are gone.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::tool::{Effect, ToolCx};
use ostler_process::Environment;
use serde_json::{Value, json};

use crate::session::{Session, make_pipe};

fn bash(command: &str) -> Value {
    json!({ "command": command })
}

#[tokio::test]
async fn stdout_and_stderr_are_returned() {
    let session = Session::new();
    let output = session.run("Bash", bash("echo out; echo err >&2")).await.unwrap();
    assert_eq!(output.content.text(), "out\nerr");
    let structured = output.structured.unwrap();
    assert_eq!((&structured["stdout"], &structured["stderr"]), (&json!("out"), &json!("err")));
    assert_eq!(structured["interrupted"], false);
}

#[tokio::test]
async fn a_command_without_output_is_reported_as_such() {
    assert_eq!(Session::new().text("Bash", bash("true")).await, "[no output]");
}

#[tokio::test]
async fn failure_comes_with_the_code_and_the_output() {
    let session = Session::new();
    assert_eq!(
        session.error("Bash", bash("echo so; echo bad >&2; exit 3")).await,
        "Exit code 3\nso\nbad"
    );
    assert_eq!(session.error("Bash", bash("kill -9 $$")).await, "Exit code 137");
    assert!(session.error("Bash", bash("if")).await.starts_with("Exit code 2\n"));
}

#[tokio::test]
async fn messages_of_the_shell_have_the_right_line_numbers() {
    let error = Session::new().error("Bash", bash("true\nno-such-command")).await;
    assert!(error.contains("line 2:"), "{error}");
}

#[tokio::test]
async fn the_directory_lasts_and_variables_do_not() {
    let session = Session::new();
    fs::create_dir_all(session.path("it's/deep")).unwrap();
    let text = session.text("Bash", bash("cd \"it's\"; X=1")).await;
    assert_eq!(text, format!("[the working directory is now {}]", session.path("it's").display()));
    assert_eq!(session.text("Bash", bash("cd deep && exit 0")).await.lines().count(), 1);
    assert_eq!(
        session.text("Bash", bash("pwd; echo -$X-")).await,
        format!("{}\n--", session.path("it's/deep").display())
    );
    session.error("Bash", bash("cd ..; false")).await;
    assert_eq!(
        session.text("Bash", bash("(cd deep); pwd")).await,
        session.path("it's").display().to_string()
    );
}

// Mutants: the note is read with `std::fs::read`; without a limit on its length.
#[tokio::test]
async fn a_command_that_replaces_the_file_for_its_last_directory_does_not_block_the_tool() {
    let session = Session::new();
    for replacement in [
        "mkfifo \"$f\"",
        "ln -s /dev/zero \"$f\"",
        "truncate -s 1G \"$f\"",
        // Longer than any path.
        "printf '/%0100000d\\n' 0 > \"$f\"",
        "mkdir \"$f\"",
    ] {
        let find = r#"f=$(trap -p EXIT | grep -o "/[^']*cwd-[0-9]*"); test -n "$f" && trap - EXIT"#;
        let command = format!("{find} && rm -f \"$f\" && {replacement} && cd / && echo done");
        assert_eq!(session.text("Bash", bash(&command)).await, "done", "{replacement}");
        let folder = session.path(".").canonicalize().unwrap();
        assert_eq!(session.text("Bash", bash("pwd -P")).await, folder.display().to_string());
    }
}

#[tokio::test]
async fn permissions_resolve_paths_from_the_shells_folder() {
    let session = Session::new();
    fs::create_dir(session.path("it's")).unwrap();
    let effect = || session.effect("Bash", bash("touch x"));
    assert_eq!(effect(), Effect::Execute("touch x".into()));
    session.text("Bash", bash("cd \"it's\"")).await;
    let folder = session.path("it's");
    assert_eq!(effect(), Effect::ExecuteIn { folder, command: "touch x".into() });
    session.text("Bash", bash("cd ..")).await;
    assert_eq!(effect(), Effect::Execute("touch x".into()));
}

#[tokio::test]
async fn a_command_runs_in_the_folder_that_permissions_were_decided_for() {
    let session = Session::new();
    fs::create_dir(session.path("sub")).unwrap();
    let judged = session.prepare("Bash", &bash("pwd")).unwrap();
    // Another call changes the shell's folder before this one may run.
    session.text("Bash", bash("cd sub")).await;
    let output = (judged.run)(session.cx()).await.unwrap();
    assert_eq!(output.content.text(), session.root().display().to_string());
}

#[tokio::test]
async fn variables_of_the_session_reach_the_command() {
    let session = Session::new();
    let more = Environment::from([
        ("GREETING", "hello"),
        ("ANTHROPIC_API_KEY", "secret"),
        ("ANTHROPIC_AUTH_TOKEN", "secret"),
        ("ANTHROPIC_CUSTOM_HEADERS", "x-key: secret"),
    ]);
    let other = Environment { replaces: true, ..more.clone() };
    // Cargo sets one for every test.
    let inherited = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    for (env, expected) in [(more, inherited.as_str()), (other, "nothing")] {
        let command = "echo $GREETING ${CARGO_MANIFEST_DIR:-nothing} ${ANTHROPIC_API_KEY:-no key}\
            ${ANTHROPIC_AUTH_TOKEN} ${ANTHROPIC_CUSTOM_HEADERS}";
        let prepared = session.prepare("Bash", &bash(command)).unwrap();
        let cx = ToolCx { env: Arc::new(env), ..session.cx() };
        let output = (prepared.run)(cx).await.unwrap();
        assert_eq!(output.content.text(), format!("hello {expected} no key"));
    }
}

#[tokio::test]
async fn a_deleted_working_directory_is_left() {
    let session = Session::new();
    fs::create_dir(session.path("sub")).unwrap();
    session.text("Bash", bash("cd sub")).await;
    fs::remove_dir(session.path("sub")).unwrap();
    assert_eq!(session.text("Bash", bash("pwd")).await, session.root().display().to_string());
}

#[tokio::test]
async fn there_is_no_input_and_no_terminal() {
    let session = Session::new();
    assert_eq!(session.text("Bash", bash("cat; echo $OSTLER")).await, "1");
    assert!(session.error("Bash", bash("echo x > /dev/tty")).await.starts_with("Exit code 1"));
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_saved_to_a_file() {
    let session = Session::new();
    let output = session.run("Bash", bash("seq 20000; echo oops >&2")).await.unwrap();
    let text = output.content.text();
    assert!(text.len() < 32_000, "{}", text.len());
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n20000\noops"), "{text}");
    let structured = output.structured.unwrap();
    let path = structured["persistedOutputPath"].as_str().unwrap();
    assert!(text.contains(&format!(" bytes cut; all of it is in {path}]")), "{text}");
    let whole: Vec<String> = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(path).unwrap(), whole.concat());
    assert_eq!(structured["persistedOutputSize"], whole.concat().len());
    let folder = Path::new(path).parent().unwrap();
    assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700, "only the owner can read it");
    drop(session);
    assert!(!Path::new(path).exists(), "the session's folder is deleted with it");
}

// Mutant: the end of the output is not cut.
#[tokio::test]
async fn endless_output_ends_at_the_timeout() {
    let error = Session::new().error("Bash", json!({ "command": "yes", "timeout": 300 })).await;
    assert!(error.starts_with("Ended because it took longer than 300 ms.\ny\n"));
    assert!(error.len() < 32_000);
}

#[tokio::test]
async fn the_timeout_ends_the_command_and_its_processes() {
    let session = Session::new();
    let watch = Watch::new(&session);
    let command = watch.holding("sleep 30 & echo $! >&3; sleep 30");
    let run = session.run("Bash", json!({ "command": command, "timeout": 1000 }));
    let (result, pid) = tokio::join!(run, watch.until_gone());
    assert!(
        result.unwrap_err().to_string().starts_with("Ended because it took longer than 1000 ms.")
    );
    dies(pid).await;
}

// Mutant: without SIGTERM.
#[tokio::test]
async fn a_command_may_clean_up_when_its_time_is_up() {
    let command = "trap 'echo cleaned up; exit' TERM; sleep 30 & wait";
    let error = Session::new().error("Bash", json!({ "command": command, "timeout": 1000 })).await;
    assert_eq!(error, "Ended because it took longer than 1000 ms.\ncleaned up");
}

// Mutant: SIGKILL does not follow.
#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed() {
    let session = Session::new();
    let watch = Watch::new(&session);
    let command = watch.holding("trap '' TERM; echo $$ >&3; while :; do sleep 30; done");
    let run = session.run("Bash", json!({ "command": command, "timeout": 100 }));
    let (result, pid) = tokio::join!(run, watch.until_gone());
    assert!(result.is_err());
    dies(pid).await;
}

// Mutant: a dropped `Group` ends nothing.
#[tokio::test]
async fn an_interrupt_ends_the_command_and_its_processes() {
    let session = Session::new();
    let watch = Watch::new(&session);
    let command = watch.holding("sleep 30 & echo $! >&3; sleep 30");
    let mut lines = watch.lines();
    let pid = tokio::select! {
        _ = session.run("Bash", bash(&command)) => panic!("it ended by itself"),
        pid = lines.pid() => pid,
    };
    lines.end().await;
    dies(pid).await;
}

// Mutant: they are not killed, and the pipes are read to their end.
#[tokio::test]
async fn background_processes_of_a_command_end_with_it() {
    let session = Session::new();
    let watch = Watch::new(&session);
    let run = session.run("Bash", bash(&watch.holding("sleep 30 & echo $! >&3; echo done")));
    let (result, pid) = tokio::join!(run, watch.until_gone());
    assert_eq!(result.unwrap().content.text(), "done");
    dies(pid).await;
}

// Mutant: the watchdog ends nothing.
#[tokio::test]
async fn killing_this_process_ends_the_command_and_its_processes() {
    const PIPE: &str = "OSTLER_TEST_PIPE";
    // The test starts itself as the process to be killed.
    if let Some(pipe) = std::env::var_os(PIPE) {
        let watch = Watch { pipe: PathBuf::from(pipe) };
        let command = bash(&watch.holding("sleep 30 & echo $! >&3; sleep 30"));
        Session::new().text("Bash", command).await;
        return;
    }
    let session = Session::new();
    let watch = Watch::new(&session);
    let mut process = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bash::killing_this_process_ends_the_command_and_its_processes"])
        .env(PIPE, &watch.pipe)
        // What it cannot clean up is removed with this test's folder.
        .env("TMPDIR", session.root())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = watch.lines();
    let pid = lines.pid().await;
    assert!(is_alive(pid));
    process.kill().unwrap();
    process.wait().unwrap();
    lines.end().await;
    dies(pid).await;
}

#[test]
fn the_effect_is_exactly_the_command() {
    let session = Session::new();
    assert_eq!(session.effect("Bash", bash(" ls -l ")), Effect::Execute(" ls -l ".to_owned()));
}

/// A named pipe that processes hold open.
struct Watch {
    pipe: PathBuf,
}

impl Watch {
    fn new(session: &Session) -> Self {
        let pipe = session.path("alive");
        make_pipe(&pipe);
        Self { pipe }
    }

    /// The command with the pipe open as 3, for itself and all its processes.
    fn holding(&self, command: &str) -> String {
        format!("exec 3>'{}'; {command}", self.pipe.display())
    }

    fn lines(&self) -> Lines {
        let pipe = self.pipe.clone();
        Lines(Some(tokio::task::spawn_blocking(move || {
            let mut reader = BufReader::new(File::open(pipe).unwrap());
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            (line.trim().parse().unwrap(), reader)
        })))
    }

    async fn until_gone(&self) -> u32 {
        let mut lines = self.lines();
        let pid = lines.pid().await;
        lines.end().await;
        pid
    }
}

type Opened = (u32, BufReader<File>);

struct Lines(Option<tokio::task::JoinHandle<Opened>>);

impl Lines {
    /// The process id that the command wrote.
    async fn pid(&mut self) -> u32 {
        let (pid, reader) = self.0.take().unwrap().await.unwrap();
        self.0 = Some(tokio::task::spawn_blocking(move || (pid, reader)));
        pid
    }

    /// Waits until no process holds the pipe.
    async fn end(self) {
        let (_, mut reader) = self.0.unwrap().await.unwrap();
        let ended =
            tokio::task::spawn_blocking(move || reader.read_to_string(&mut String::new()).unwrap());
        // Less than the processes would live by themselves.
        tokio::time::timeout(Duration::from_secs(20), ended)
            .await
            .expect("a process is still alive")
            .unwrap();
    }
}

/// Waits for the end of a process that has closed the pipe, which happens a moment before it is dead.
async fn dies(pid: u32) {
    let dead = async {
        while is_alive(pid) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), dead).await.expect("the process is still alive");
}

/// A zombie does not count.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
