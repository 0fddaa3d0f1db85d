//! Attacks in a container of podman, really run. The image is made of programs of this machine.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ostler_process::Confine as _;
use ostler_sandbox::{BackendChoice, Limits, Network, Sandbox, Setup};

use crate::stage::{SECRET, Stage};

const IMAGE: &str = "localhost/ostler-sandbox-test:1";
const PROGRAMS: [&str; 12] = [
    "/bin/bash",
    "/bin/cat",
    "/bin/ls",
    "/bin/mkdir",
    "/bin/mv",
    "/bin/ln",
    "/bin/rm",
    "/bin/sleep",
    "/bin/true",
    "/usr/bin/id",
    "/usr/bin/tr",
    "/bin/grep",
];
/// A user that no system has.
const USER: u32 = 54_321;

/// Makes the image, if it is not there, of some programs and the libraries that they and the helper need.
fn image() {
    let podman = |arguments: &[&str]| Command::new("podman").args(arguments).output().unwrap();
    if podman(&["image", "exists", IMAGE]).status.success() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let helper = env!("CARGO_BIN_EXE_ostler-sandbox-helper");
    let mut files: Vec<PathBuf> = PROGRAMS.map(PathBuf::from).into();
    for program in PROGRAMS.iter().chain([&helper]) {
        let list = Command::new("ldd").arg(program).output().unwrap();
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        files.extend(
            list.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from),
        );
    }
    for file in files {
        let target = folder.path().join(file.strip_prefix("/").unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
    let tar = folder.path().join("image.tar");
    let mut made = Command::new("tar");
    made.arg("-C").arg(folder.path()).args(["--exclude=image.tar", "-cf"]).arg(&tar).arg(".");
    assert!(made.status().unwrap().success());
    let imported = podman(&["import", tar.to_str().unwrap(), IMAGE]);
    assert!(imported.status.success(), "{imported:?}");
}

/// A stage whose folders do not belong to root.
fn stage() -> Stage {
    image();
    let stage = Stage::new();
    if rustix::process::geteuid().is_root() {
        let owner = format!("{USER}:{USER}");
        let mut chown = Command::new("chown");
        chown.args(["-R", &owner]).arg(stage.path("work")).arg(stage.path("fresh"));
        assert!(chown.status().unwrap().success());
    }
    stage
}

fn setup() -> Setup {
    Setup {
        backend: BackendChoice::Podman,
        container_image: Some(IMAGE.to_owned()),
        ..Setup::default()
    }
}

fn sandbox(stage: &Stage) -> Sandbox {
    Sandbox::new(stage.boundary.clone(), setup()).unwrap()
}

/// Runs a script as `ostler` does: with the environment that the backend gives.
fn run(stage: &Stage, sandbox: &Sandbox, script: &str) -> Output {
    let work = stage.path("work");
    let mut environment: std::collections::BTreeMap<_, _> = ["work", "fresh", "outside", "home"]
        .map(|name| (name.to_uppercase().into(), stage.path(name).into()))
        .into();
    environment.insert("SELF".into(), std::process::id().to_string().into());
    environment.insert("PATH".into(), "/usr/bin:/bin".into());
    let confined = sandbox
        .confine(ostler_process::InsideProgram {
            program: Path::new("/bin/bash"),
            arguments: &["-c".as_ref(), script.as_ref()],
            folder: &work,
            environment,
        })
        .unwrap();
    let mut command = Command::new(&confined.program);
    command.args(&confined.arguments).env_clear().envs(&confined.environment).current_dir("/");
    let output = command.stdin(Stdio::null()).output().unwrap();
    drop(confined.guard);
    output
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

const ATTACKS: [&str; 14] = [
    "echo x > $OUTSIDE/planted",
    "ln -s $OUTSIDE/victim link; echo x > link",
    "echo x > ../outside/victim",
    "echo 'touch x' > .git/hooks/pre-commit",
    "echo evil >> .git/config",
    "mv .git moved",
    "mv .git/hooks .git/moved",
    "mkdir -p $FRESH/.git/hooks",
    "echo '{}' > .mcp.json",
    "rm -rf .claude; mkdir .claude; echo '{}' > .claude/settings.json",
    "ln -s /elsewhere .zshrc",
    "grep -q the-secret $HOME/.ssh/id && echo ESCAPED",
    "kill -0 $SELF && echo ESCAPED",
    "tr '\\0' '\\n' < /proc/$SELF/environ | grep -q . && echo ESCAPED",
];

// Mutant: protected paths can be written. The test runs each script without a sandbox too.
#[test]
#[ignore = "needs podman; run by cargo xtask test"]
fn no_attack_works_in_a_container() {
    for script in ATTACKS {
        let inside = stage();
        let before = inside.outside();
        let output = run(&inside, &sandbox(&inside), script);
        let printed = text(&output);
        assert!(!printed.contains("ostler sandbox:"), "it did not even start: {printed}");
        assert!(!printed.contains("ESCAPED"), "{script}: {printed}");
        assert_eq!(inside.outside(), before, "{script}: {printed}");
        // Without a sandbox it works.
        let stage = Stage::new();
        let before = stage.outside();
        let mut bare = Command::new("/bin/bash");
        bare.args(["-c", script]).current_dir(stage.path("work"));
        for name in ["work", "fresh", "outside", "home"] {
            bare.env(name.to_uppercase(), stage.path(name));
        }
        let bare = bare.env("SELF", std::process::id().to_string()).output().unwrap();
        assert!(text(&bare).contains("ESCAPED") || stage.outside() != before, "{script}");
    }
}

#[test]
#[ignore = "needs podman; run by cargo xtask test"]
fn a_program_works_in_its_folder_as_a_user_without_rights() {
    let stage = stage();
    let sandbox = sandbox(&stage);
    let attested = sandbox.attestation();
    assert!(attested.backend.starts_with("podman "), "{attested:?}");
    assert_eq!(attested.protections, ["fs", "net", "syscalls"]);
    assert_eq!(
        (attested.limits_by["processes"], attested.limits_by["memory"]),
        ("cgroup", "cgroup")
    );
    let script = "id -u; pwd; echo made > sub/file; cat $OUTSIDE/victim; echo x > /tmp/x && cat /tmp/x; \
                  grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status; echo x > /etc/x || echo refused";
    let printed = text(&run(&stage, &sandbox, script));
    let user = attested.user;
    assert_ne!(user, 0);
    let work = stage.path("work");
    let expected = format!("{user}\n{}\nunchanged\nx\n", work.display());
    assert!(printed.starts_with(&expected), "{printed}");
    for part in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "refused"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert_eq!(fs::read_to_string(work.join("sub/file")).unwrap(), "made\n");
    assert!(!work.join(".mcp.json").exists(), "placeholders are gone");
}

#[test]
#[ignore = "needs podman; run by cargo xtask test"]
fn a_fork_bomb_in_a_container_meets_its_limit() {
    let mut stage = stage();
    stage.boundary.limits = Limits { processes: Some(20), ..Limits::NONE };
    let bomb = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 600 & done; exit 3";
    let sandbox = sandbox(&stage);
    let output = run(&stage, &sandbox, bomb);
    let reason = sandbox.reason_of_failure(&text(&output), output.status.code());
    assert!(
        reason.as_ref().is_some_and(|it| it.contains("20 processes")),
        "{reason:?} {}",
        text(&output)
    );
}

// Mutant: `--network host`.
#[test]
#[ignore = "needs podman; run by cargo xtask test"]
fn a_container_reaches_the_proxy_and_nothing_else() {
    let mut stage = stage();
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let socket = stage.path("proxy");
    let proxy = UnixListener::bind(&socket).unwrap();
    let served = std::thread::spawn(move || {
        let (mut client, _) = proxy.accept().unwrap();
        let mut question = [0; 6];
        client.read_exact(&mut question).unwrap();
        client.write_all(b"answer\n").unwrap();
        question
    });
    stage.boundary.network = Network::Proxy(socket);
    let sandbox = sandbox(&stage);
    let direct = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo ESCAPED; ls /sys/class/net");
    let printed = text(&run(&stage, &sandbox, &direct));
    assert!(!printed.contains("ESCAPED") && listener.accept().is_err(), "{printed}");
    let through = "p=${HTTP_PROXY##*:}; exec 3<>/dev/tcp/127.0.0.1/${p%/}; echo hello >&3; read a <&3; echo $a";
    let printed = text(&run(&stage, &sandbox, through));
    assert!(printed.contains("answer"), "{printed}");
    assert_eq!(&served.join().unwrap(), b"hello\n");
}

// Mutant: the variables also become those of the container program.
#[test]
#[ignore = "needs podman; run by cargo xtask test"]
fn variables_are_on_no_command_line_and_do_not_affect_the_container_program() {
    let stage = stage();
    let sandbox = sandbox(&stage);
    let environment = [
        ("TOKEN".into(), SECRET.into()),
        ("LD_PRELOAD".into(), "/no/such/library".into()),
        ("CONTAINERS_CONF".into(), "/no/such/file".into()),
        ("LINES_OF_TEXT".into(), "one\ntwo".into()),
    ];
    let confined = sandbox
        .confine(ostler_process::InsideProgram {
            program: Path::new("/bin/bash"),
            arguments: &[
                "-c".as_ref(),
                "echo \"$TOKEN $CONTAINERS_CONF $LINES_OF_TEXT\"; read _".as_ref(),
            ],
            folder: &stage.path("work"),
            environment: environment.into(),
        })
        .unwrap();
    assert!(!confined.environment.contains_key(std::ffi::OsStr::new("LD_PRELOAD")));
    assert!(!confined.environment.contains_key(std::ffi::OsStr::new("CONTAINERS_CONF")));
    let mut command = Command::new(&confined.program);
    command.args(&confined.arguments).env_clear().envs(&confined.environment);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), format!("{SECRET} /no/such/file one"));
    assert_eq!(lines.next().unwrap().unwrap(), "two");
    let list = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&list.stdout).contains(SECRET));
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// The variable that makes this test the victim of itself.
const VICTIM: &str = "OSTLER_TEST_CONTAINER_VICTIM";

// Mutant: the sweeper does not know containers.
#[test]
#[ignore = "needs podman; run by cargo xtask test"]
fn a_killed_caller_leaves_no_container() {
    let stage = if std::env::var_os(VICTIM).is_some() { return be_killed() } else { stage() };
    drop(stage);
    let name = "containers::a_killed_caller_leaves_no_container";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture", "--ignored"]).env(VICTIM, "1");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("inside")).unwrap().unwrap();
    let filter = format!("name=ostler-{}-", child.id());
    let containers = || {
        let list =
            Command::new("podman").args(["ps", "-aq", "--filter", &filter]).output().unwrap();
        String::from_utf8_lossy(&list.stdout).lines().count()
    };
    assert_eq!(containers(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while containers() > 0 && Instant::now() < limit {
        std::thread::yield_now();
    }
    assert_eq!(containers(), 0);
}

/// Runs a program in a container and waits for its end, which does not come.
fn be_killed() {
    let stage = stage();
    let sandbox = sandbox(&stage);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let group = ostler_process::Group::spawn_piped(ostler_process::PipedCommand {
        program: Path::new("/bin/bash"),
        arguments: &["-c".as_ref(), "echo inside; exec sleep 600".as_ref()],
        folder: &stage.path("work"),
        environment: Default::default(),
        boundary: Some(&sandbox),
    });
    let mut group = group.unwrap();
    let mut stdout = group.stdout().unwrap();
    let ready = async { tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut [0; 6]).await };
    runtime.block_on(ready).unwrap();
    println!("inside");
    let _ = runtime.block_on(group.wait());
}

#[test]
#[ignore = "needs podman; run by cargo xtask test"]
fn what_a_container_cannot_do_is_an_error_that_names_it() {
    let open = |change: &dyn Fn(&mut Stage, &mut Setup)| {
        let (mut stage, mut setup) = (stage(), setup());
        change(&mut stage, &mut setup);
        Sandbox::new(stage.boundary.clone(), setup).unwrap_err().to_string()
    };
    let error = open(&|stage, _| stage.boundary.network = Network::Host);
    assert!(error.contains("allowedDomains"), "{error}");
    let error = open(&|_, setup| setup.user_namespaces = true);
    assert!(error.contains("allowNestedUserNamespaces"), "{error}");
    let error =
        open(&|_, setup| setup.container_image = Some("localhost/no-such-image:0".to_owned()));
    assert!(error.contains("no-such-image"), "{error}");
    if rustix::process::geteuid().is_root() {
        let error = open(&|stage, _| {
            Command::new("chown").arg("0:0").arg(stage.path("work")).status().unwrap();
        });
        assert!(error.contains("belongs to root"), "{error}");
    }
}

// Mutant: another backend takes the place of one that is missing.
#[test]
fn a_backend_that_is_not_available_is_refused_and_no_other_one_is_used() {
    let stage = Stage::new();
    let expected = [
        (BackendChoice::Podman, None, "sandbox.containerImage"),
        (BackendChoice::Docker, None, "sandbox.containerImage"),
        (BackendChoice::Docker, Some("--privileged"), "sandbox.containerImage"),
        (BackendChoice::Seatbelt, None, "sandbox-exec does not exist"),
    ];
    for (backend, image, part) in expected {
        let container_image = image.map(str::to_owned);
        let setup = Setup { backend, container_image, ..Setup::default() };
        let error = Sandbox::new(stage.boundary.clone(), setup).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
