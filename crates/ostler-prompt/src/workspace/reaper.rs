//! Removes a folder when this process ends, however it ends.
//!
//! A library is not notified of `exit`, of a signal or of a crash. A pipe is: the system closes its other end. So a
//! shell waits for that, in its own process group that no Ctrl-C reaches, and then removes the folder.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that waits. When this is dropped, it removes what is left.
#[derive(Debug)]
pub(super) struct Reaper(Child);

impl Reaper {
    /// Starts one. Without a shell, the folder of a killed process stays.
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
        // It ends quickly, and would stay a zombie otherwise.
        let _ = self.0.wait();
    }
}
