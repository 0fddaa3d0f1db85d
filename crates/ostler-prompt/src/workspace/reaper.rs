//! Removes a folder when this process ends, however it ends.
//!
//! A library is not notified of `exit`, of a signal or of a crash. But the system then closes this process's end of a
//! pipe. A shell waits for that, in its own process group that Ctrl-C does not reach, and removes the folder.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The waiting shell. When this is dropped, the shell removes the folder if it still exists.
#[derive(Debug)]
pub(super) struct Reaper(Child);

impl Reaper {
    /// Starts the shell. If that fails, the folder stays when this process is killed.
    pub(super) fn start(folder: &Path) -> Option<Self> {
        // Agents may have made folders inaccessible, so the second attempt changes their permissions.
        let script = r#"trap '' INT TERM HUP; read -r _; rm -rf -- "$1" || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; }"#;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(script).arg("sh").arg(folder).current_dir("/").env_clear();
        shell.env("PATH", "/usr/bin:/bin").process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match shell.spawn() {
            Ok(child) => Some(Self(child)),
            Err(error) => {
                tracing::warn!(
                    "{} is not removed if this process is killed: {error}",
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
        // The shell ends quickly. Without this it would stay a zombie.
        let _ = self.0.wait();
    }
}
