//! Removes a folder when this process ends, however it ends.
//!
//! A library is not told of `exit`, of a signal or of a crash. A pipe is: its other end is closed by the system. So a
//! shell waits for that, in a process group of its own that no Ctrl-C reaches, and removes the folder then.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that waits. Dropping this has it remove what is left.
#[derive(Debug)]
pub(super) struct Reaper(Child);

impl Reaper {
    /// Starts one. Without a shell there is none, and a folder whose process is killed stays.
    pub(super) fn start(folder: &Path) -> Option<Self> {
        // Agents may have locked folders, so the second try comes with rights.
        let script = r#"trap '' INT TERM HUP; read -r _; rm -rf -- "$1" || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; }"#;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(script).arg("sh").arg(folder).current_dir("/").env_clear();
        shell.env("PATH", "/usr/bin:/bin").process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match shell.spawn() {
            Ok(child) => Some(Self(child)),
            Err(error) => {
                tracing::warn!(
                    "nobody removes {} if this process is killed: {error}",
                    folder.display()
                );
                None
            }
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It has little to do, and would stay a zombie otherwise.
        let _ = self.0.wait();
    }
}
