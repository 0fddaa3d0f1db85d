//! Row 26: programs that want too much, and programs that want to stay.

use std::path::Path;
use std::process::Command;

use ostler_sandbox::{Layers, Limits, Setup};

use crate::stage::Stage;

fn run(limits: Limits, script: &str) -> String {
    let mut stage = Stage::new();
    stage.boundary.limits = limits;
    let output = stage.run(Layers::ALL, script);
    let code = output.status.code().map_or(String::new(), |code| format!("code {code}"));
    [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat()
        + &code
}

#[test]
fn a_fork_bomb_meets_the_limit_of_processes() {
    let script = "python3 - <<'E'
import os, time
n = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        n += 1
except OSError as error:
    print(error)
print('started', n)
E";
    let limited = run(Limits { processes: Some(40), ..Limits::NONE }, script);
    assert!(limited.contains("Resource temporarily unavailable"), "{limited}");
    let free = run(Limits::NONE, script);
    assert!(free.contains("started 200"), "{free}");
}

#[test]
fn memory_files_and_processor_time_are_limited() {
    let memory = "python3 -c \"x = bytearray(300 << 20); print('enough')\"";
    let limited = run(Limits { memory: Some(100 << 20), ..Limits::NONE }, memory);
    assert!(limited.contains("MemoryError"), "{limited}");
    assert!(run(Limits::NONE, memory).contains("enough"));
    let file = "head -c 3000000 /dev/zero > big; code=$?; stat -c %s big; exit $code";
    let limited = run(Limits { file_size: Some(1 << 20), ..Limits::NONE }, file);
    assert!(limited.contains("1048576") && limited.contains("code 153"), "{limited}");
    assert!(run(Limits::NONE, file).contains("3000000"));
    let time = "while :; do :; done";
    let limited = run(Limits { cpu_seconds: Some(1), ..Limits::NONE }, time);
    assert!(limited.contains("137") || limited.contains("152"), "{limited}");
}

/// Limits of the folders in memory only.
fn small_folders() -> Limits {
    Limits { temporary: Some(1 << 20), ..Limits::NONE }
}

// Mutant: without `size` and `nr_inodes`.
#[test]
fn folders_in_memory_hold_neither_much_nor_many_files() {
    for folder in ["/dev/shm", "/tmp", "/var/tmp", "/run"] {
        let much = format!("head -c 3000000 /dev/zero > {folder}/big");
        let many =
            format!("for n in $(seq 2000); do : > {folder}/$n || exit 7; done; echo all are there");
        let limited = run(small_folders(), &much);
        assert!(limited.contains("No space left on device"), "{folder}: {limited}");
        let limited = run(small_folders(), &many);
        assert!(limited.contains("No space left on device"), "{folder}: {limited}");
        assert!(run(Limits::NONE, &much).ends_with("code 0"), "{folder}");
        assert!(run(Limits::NONE, &many).contains("all are there"), "{folder}");
    }
    let mut stage = Stage::new();
    stage.boundary.limits = small_folders();
    let reason = stage.sandbox(Layers::ALL).reason_of_failure("No space left on device", Some(1));
    assert!(reason.unwrap().contains("limits to 1 MiB"));
}

// Mutant: without `--unshare-pid`.
#[test]
fn nothing_outlives_the_command() {
    let stage = Stage::new();
    let name = format!("99{}", std::process::id());
    let script = format!("(setsid sleep {name} </dev/null >/dev/null 2>&1 &) ; sleep 0.05; exit 0");
    stage.run(Layers::ALL, &script);
    let alive = || {
        let list = Command::new("ps").args(["-eo", "pid,args"]).output().unwrap();
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let found = list.lines().find(|line| line.ends_with(&format!(" sleep {name}")));
        found.and_then(|line| line.split_whitespace().next()?.parse().ok())
    };
    assert_eq!(alive(), None);
    // Outside a sandbox it stays.
    Command::new("/bin/bash").args(["-c", &script]).status().unwrap();
    let left = alive().and_then(rustix::process::Pid::from_raw).expect("the test itself works");
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn builds_and_servers_work_inside() {
    let stage = Stage::new();
    let script = "set -e
git -c init.defaultBranch=main init -q sub/repo && cd sub/repo
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git log --oneline | grep first
cd ../.. && git clone -q sub/repo sub/copy && git -C sub/copy log --oneline | grep first
printf 'all:\\n\\t@echo made\\n' > Makefile && make
python3 -c 'import multiprocessing as m; p=m.Pool(2); print(sum(p.map(abs, [-1, -2])))'
python3 -m http.server 8765 --bind 127.0.0.1 >/dev/null 2>&1 &
for _ in $(seq 100); do python3 -c 'import urllib.request as u; print(len(u.urlopen(\"http://127.0.0.1:8765/\").read()) > 0)' 2>/dev/null && break; sleep 0.1; done
diff <(echo a) <(echo a) && echo x > >(cat) && mktemp && mkfifo pipe && echo done";
    let output = stage.run(Layers::ALL, script);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in ["first", "made", "3\n", "True", "done"] {
        assert!(printed.contains(part), "{part}: {printed}\n{errors}");
    }
}

#[test]
fn a_path_that_is_missing_or_relative_is_refused_as_bubblewrap() {
    let stage = Stage::new();
    for path in ["bwrap", "/no/such/bwrap"] {
        let setup = Setup { bubblewrap: Some(path.into()), ..Setup::default() };
        let refusal = ostler_sandbox::Sandbox::new(stage.boundary.clone(), setup).unwrap_err();
        assert!(refusal.to_string().contains("apt-get install bubblewrap"), "{refusal}");
    }
    assert!(Path::new("/usr/bin/bwrap").exists(), "cargo xtask test installs it");
}

// Mutants: as it was, a file of root may be written by everyone; the owner does not matter.
#[test]
fn a_program_that_other_users_can_replace_is_refused_as_bubblewrap() {
    let stage = Stage::new();
    let planted = stage.path("outside/bwrap");
    std::fs::copy("/usr/bin/bwrap", &planted).unwrap();
    let with_mode = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&planted, mode).unwrap();
        let setup = Setup { bubblewrap: Some(planted.clone()), ..Setup::default() };
        ostler_sandbox::Sandbox::new(stage.boundary.clone(), setup)
    };
    // It cannot be started from here, because a sandbox has its own temporary folder. It is not refused before.
    let failure = with_mode(0o755).unwrap_err().to_string();
    assert!(failure.contains("cannot start"), "{failure}");
    for mode in [0o757, 0o775] {
        let refusal = with_mode(mode).unwrap_err().to_string();
        assert!(refusal.contains("other users can write"), "{refusal}");
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&planted, Some(54_321), None).unwrap();
        let refusal = with_mode(0o755).unwrap_err().to_string();
        assert!(refusal.contains("other users can write"), "{refusal}");
    }
}

// Mutants: `has` is true for every known name; `require` looks at the first name only.
#[test]
fn a_protection_that_is_missing_is_an_error_if_it_is_required() {
    use crate::probe::{NO_SECCOMP, NONE, ONLY_LANDLOCK, ONLY_SECCOMP};
    let mut stage = Stage::new();
    let all: Vec<String> = ["fs", "net", "syscalls"].map(str::to_owned).into();
    let missing = |stage: &Stage, layers| {
        // It is really tried, so what the attestation says is what is there.
        let attestation = stage.sandbox(layers).attestation().clone();
        let one = |name: &&String| attestation.require(std::slice::from_ref(*name)).is_err();
        let missing: Vec<String> = all.iter().filter(one).cloned().collect();
        assert_eq!(attestation.require(&all).is_err(), !missing.is_empty());
        missing
    };
    assert!(missing(&stage, Layers::ALL).is_empty());
    assert_eq!(missing(&stage, NO_SECCOMP), ["syscalls"]);
    assert_eq!(missing(&stage, ONLY_SECCOMP), ["fs", "net"]);
    assert_eq!(missing(&stage, ONLY_LANDLOCK), ["net", "syscalls"]);
    assert_eq!(missing(&stage, NONE), all);
    stage.boundary.network = ostler_sandbox::Network::Host;
    assert_eq!(missing(&stage, Layers::ALL), ["net"]);
    let attestation = stage.sandbox(Layers::ALL).attestation().clone();
    let error = attestation.require(&["fs".to_owned(), "net".to_owned()]).unwrap_err();
    assert!(error.contains("net is required and is not enforced"), "{error}");
}
