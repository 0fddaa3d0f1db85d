//! A hostile project, and a secret outside of it: nothing of the secret reaches the model or a frame.

mod files;
mod imports;
mod peers;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use rustix::process::{Pid, Signal, kill_process};

use crate::run::{Ostler, Ran};

/// The secret, which must not appear anywhere.
const SECRET: &str = "CANARY-7f3a";
/// No attack takes this long unless the program hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A hostile project next to the user's home, with a model that answers every prompt.
struct Stage {
    api: ScriptedApi,
    ostler: Ostler,
}

/// The observable effects of one run.
struct Seen {
    ran: Ran,
    /// All requests to the model, as text.
    requests: String,
}

impl Seen {
    fn shows_secret(&self) -> bool {
        self.requests.contains(SECRET) || self.ran.stdout.contains(SECRET)
    }
}

impl Stage {
    async fn new() -> Self {
        let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Fine."))).await;
        let ostler = Ostler::new()
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", &api.base_url())
            // `/proc/self/environ` would show it.
            .env("SOME_TOKEN", SECRET);
        let home = ostler.path("home");
        let stage = Self { ostler: ostler.env("HOME", home.to_str().unwrap()), api };
        fs::create_dir(stage.path("project")).unwrap();
        fs::create_dir(stage.path("home")).unwrap();
        stage
    }

    /// A path next to the project and the home.
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.ostler.path(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn fifo(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    /// Runs one prompt in the project, with every frame on stdout. A run that hangs is ended and fails.
    fn run(&self, arguments: &[&str], prompt: &str) -> Seen {
        let n_before = self.api.requests().len();
        let frames = ["-p", "--cwd", "project", "--output-format", "stream-json", "--verbose"];
        let mut child = self.ostler.spawn(&[&frames, arguments, &["--", prompt]].concat());
        drop(child.stdin.take());
        let pid = Pid::from_child(&child);
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if is_done.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        let begun = Instant::now();
        let ran = Ran::of(child);
        drop(done);
        watch.join().unwrap();
        assert!(begun.elapsed() < LIMIT, "{arguments:?} {prompt} hangs: {}", ran.stderr);
        let requests = self.api.requests();
        let requests = requests[n_before..].iter().map(|it| it.body.to_string()).collect();
        Seen { ran, requests }
    }
}
