//! A terminal for tests: the program in a tmux window, controlled by keys, read from the screen.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::run::{Ostler, PROGRAM};

/// Enough for a loaded machine; a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at the screen.
const BLINK: Duration = Duration::from_millis(25);
/// The program, then its exit code and the terminal's settings, then nothing more. The shell itself survives Ctrl-C.
const SCRIPT: &str = r#"trap : INT
    sh -c 'echo $$ > ostler.pid; exec "$@"' sh "$@"; echo "[exit $?]"; stty -a; exec cat"#;

/// A window with the program in it. It has its own tmux server, which ends with it.
pub(crate) struct Window {
    socket: String,
    /// The folder of the socket.
    folder: TempDir,
}

impl Window {
    /// Opens a window of this size.
    pub(crate) fn open(ostler: &Ostler, columns: u16, arguments: &[&str]) -> Self {
        Self::open_with(ostler, columns, &[], arguments)
    }

    /// The same, with the program started by another program, such as `env`.
    pub(crate) fn open_with(
        ostler: &Ostler,
        columns: u16,
        starter: &[&str],
        arguments: &[&str],
    ) -> Self {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let socket = format!("ostler-test-{}-{number}", std::process::id());
        let window = Self { socket, folder: tempfile::tempdir().unwrap() };
        let mut command = window.command();
        ostler.furnish(&mut command);
        command.env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        command.args(["new-session", "-d", "-y", "50", "-x", &columns.to_string()]);
        command.args(["sh", "-c", SCRIPT, "sh"]).args(starter).arg(PROGRAM);
        command.args(&ostler.arguments).args(arguments);
        window.run(command);
        window
    }

    /// Types text and Enter.
    pub(crate) fn type_line(&self, text: &str) {
        self.type_text(text);
        self.press("Enter");
    }

    pub(crate) fn type_text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key, by tmux's name for it.
    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Pastes text as a terminal does, in one piece.
    pub(crate) fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", text]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    pub(crate) fn resize_to(&self, columns: u16, rows: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    pub(crate) fn resize(&self, columns: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string()]);
    }

    /// The text on the screen and in the scrollback.
    pub(crate) fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-"])
    }

    /// The same, with colours.
    pub(crate) fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-S", "-"])
    }

    /// Writes all output of the program from now on into a file, byte by byte.
    pub(crate) fn record(&self, file: &std::path::Path) {
        self.tmux(&["pipe-pane", "-o", &format!("cat > '{}'", file.display())]);
    }

    /// Waits for a text on the screen.
    pub(crate) fn shows(&self, text: &str) {
        self.wait(&format!("{text:?} on the screen"), |screen| screen.contains(text));
    }

    /// Waits until a text is on the screen this many times.
    pub(crate) fn shows_times(&self, n: usize, text: &str) {
        let what = format!("{text:?} on the screen {n} times");
        self.wait(&what, |screen| screen.matches(text).count() >= n);
    }

    /// Waits until the screen matches.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        eventually(|| is_so(&self.text()), || format!("{what}, but it shows:\n{}", self.text()));
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = self.command();
        command.args(arguments);
        self.run(command)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env("TMUX_TMPDIR", self.folder.path());
        command.args(["-u", "-f", "/dev/null", "-L", &self.socket]);
        command
    }

    fn run(&self, mut command: Command) -> String {
        let output = command.output().expect("this test needs tmux: apt-get install tmux");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.command().arg("kill-server").output();
    }
}

/// Checks again and again until the condition holds, or [`PATIENCE`] ends.
pub(crate) fn eventually(is_so: impl Fn() -> bool, what: impl Fn() -> String) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {}", what());
        std::thread::sleep(BLINK);
    }
}
