//! Processes that hide in every way at once: no marker, their own session, no parent.
//!
//! Adoption affects a whole process, so each test starts its own from this same program.

use std::process::{Command, Stdio};

use ostler_process::Group;

use super::{LIMIT, MARK, all_end, command, left, spawn, unique};

/// Set in the process that plays the host: the role it plays.
const ROLE: &str = "OSTLER_TEST_ADOPTER";

/// Each drops the marker of this crate and keeps that of the test.
const HIDDEN: &[&str] = &[
    "env -u OSTLER_COMMAND_ID setsid sh -c '(sleep 600 & echo there)'",
    "env -u OSTLER_COMMAND_ID setsid sh -c '(setsid sleep 600 >/dev/null 2>&1 & echo there)'",
    "env -u OSTLER_COMMAND_ID setsid sh -c '(sh -c \"sleep 600; true\" & echo there)'",
];

/// Runs a role in a separate process and returns it.
fn host(role: &str, mark: &str) -> std::process::Child {
    play(Command::new(std::env::current_exe().unwrap()), role, mark)
}

fn play(mut host: Command, role: &str, mark: &str) -> std::process::Child {
    host.args(["--exact", "adoption::adopter", "--nocapture"]);
    host.env(ROLE, role).env("OSTLER_TEST_MARK", mark).env_remove(MARK);
    host.stdout(Stdio::piped()).spawn().unwrap()
}

/// Not a test itself: the roles of the processes that the tests below start.
#[tokio::test]
async fn adopter() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mark = std::env::var("OSTLER_TEST_MARK").unwrap();
    ostler_process::adopt_orphans();
    match role.as_str() {
        "ended" => ended(&mark).await,
        "dropped" => dropped(&mark).await,
        "others" => others(&mark).await,
        "own" => own(&mark).await,
        _ => killed(&mark).await,
    }
}

async fn ended(mark: &str) {
    for script in HIDDEN {
        let mut group = spawn(script, mark).await;
        assert!(group.wait().await.unwrap().success());
        group.kill();
        until_empty(|| left(mark)).await;
    }
    // An adopting process collects zombies as well, when a command ends.
    until_empty(|| {
        drop(Group::spawn(command("true", mark)).unwrap());
        zombies()
    })
    .await;
}

/// Killed processes take a moment to disappear on a busy machine.
async fn until_empty(list: impl Fn() -> Vec<String>) {
    let start = std::time::Instant::now();
    loop {
        let found = list();
        if found.is_empty() {
            return;
        }
        assert!(start.elapsed() < LIMIT, "still there: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn dropped(mark: &str) {
    for script in HIDDEN {
        drop(spawn(&format!("{script}\nsleep 600"), mark).await);
        until_empty(|| left(mark)).await;
    }
}

/// The end of one command does not end what may belong to another. The end of the last one does.
async fn others(mark: &str) {
    let other = spawn("echo there; exec sleep 600", "other").await;
    let hidden = spawn(HIDDEN[0], mark).await;
    let third = spawn("echo there; exec sleep 600", "third").await;
    drop(third);
    assert_eq!(left(mark).len(), 1);
    drop(hidden);
    assert_eq!(left(mark).len(), 1);
    drop(other);
    until_empty(|| left(mark)).await;
}

/// Processes that the program starts in its own session are left alone, running or ended.
async fn own(mark: &str) {
    let mut plain = command("sleep 600", mark).spawn().unwrap();
    let mut dead = command("exit 7", mark).spawn().unwrap();
    drop(spawn(HIDDEN[0], "hidden").await);
    assert_eq!(dead.wait().await.unwrap().code(), Some(7));
    assert!(plain.try_wait().unwrap().is_none());
    plain.kill().await.unwrap();
}

async fn killed(mark: &str) {
    let mut groups = Vec::new();
    for script in HIDDEN {
        groups.push(spawn(&format!("{script}\nsleep 600"), mark).await);
    }
    // On a busy machine some of them still start others. Those are recorded as well, as later scans do in a program.
    let (mut known, mut n_same) = (left(mark), 0);
    while n_same < 10 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        ostler_process::look();
        let now = left(mark);
        n_same = if now == known { n_same + 1 } else { 0 };
        known = now;
    }
    println!("\nall there");
    tokio::time::sleep(LIMIT).await;
}

/// The zombie children of this process.
fn zombies() -> Vec<String> {
    let parent = format!("PPid:\t{}\n", std::process::id());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let status = processes.map(|it| std::fs::read_to_string(it.path().join("status")));
    let status = status.map(Result::unwrap_or_default);
    // The runtime may not have collected the last command yet.
    let is_left = |it: &String| {
        it.contains(&parent)
            && it.contains("State:\tZ")
            && !it.starts_with("Name:\ttrue")
            && !it.starts_with("Name:\tsetsid")
            && !it.starts_with("Name:\tsh\n")
    };
    status.filter(is_left).collect()
}

/// Mutants: `adopt_orphans` without effect; `tracking::of` always empty; `of_first_thread` always empty.
#[test]
fn a_process_that_hides_in_every_way_ends_with_its_command() {
    for role in ["ended", "dropped"] {
        assert!(host(role, &unique("hidden", role)).wait().unwrap().success(), "{role}");
    }
}

/// Mutant: `is_orphan_of` without looking at the other children.
#[test]
fn an_orphan_of_unknown_origin_ends_with_the_last_command_that_may_have_started_it() {
    assert!(host("others", &unique("others", "")).wait().unwrap().success());
}

/// Mutant: `is_orphan` without looking at the session.
#[test]
fn processes_that_share_the_session_of_the_program_are_left_alone() {
    assert!(host("own", &unique("own", "")).wait().unwrap().success());
}

/// In a container that was entered without a new session, the session of this program has the number 0.
///
/// Mutant: `own_session` with `rustix::process::getsid`.
#[test]
#[cfg(target_os = "linux")]
fn the_session_of_the_program_may_be_outside_its_container() {
    let container = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--pid", "--mount-proc", "--fork"]);
        unshare.arg("--kill-child");
        unshare
    };
    let session = container().args(["sh", "-c", "cut -d' ' -f6 /proc/self/stat"]).output();
    let Some(session) = session.ok().filter(|it| it.status.success()) else {
        println!("this system does not let us make containers");
        return;
    };
    assert_eq!(session.stdout, b"0\n");
    for role in ["ended", "dropped", "others", "own"] {
        let mut host = container();
        host.arg(std::env::current_exe().unwrap());
        let host = play(host, role, &unique("container", role)).wait();
        assert!(host.unwrap().success(), "{role}");
    }
}

/// Mutant: `tracked` ignored by `watchdog.sh`.
#[test]
fn a_process_that_hides_in_every_way_ends_when_this_process_is_killed() {
    use std::io::BufRead as _;
    let mark = unique("hidden", "killed");
    let mut host = host("killed", &mark);
    let lines = std::io::BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "all there"));
    assert!(left(&mark).len() > HIDDEN.len());
    host.kill().unwrap();
    host.wait().unwrap();
    all_end(&mark);
}
