//! Namespaces that a helper makes: a process that enters them, and is not needed any more when they are open here.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Starts the helper with one argument, waits until it is in its namespaces, and takes them from its folder in `/proc`.
///
/// # Errors
/// When the helper cannot make them, with its reason, or when they cannot be taken.
pub(super) fn take<T>(
    helper: &Path,
    argument: &str,
    take: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let mut command = Command::new(helper);
    command.arg(argument).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let taken = match child.stdout.take().map(|it| BufReader::new(it).read_line(&mut line)) {
        Some(Ok(_)) if line.trim_end() == "ready" => {
            Some(take(&PathBuf::from(format!("/proc/{}", child.id()))))
        }
        _ => None,
    };
    // It ends with its input, whatever happened.
    drop(child.stdin.take());
    let output = child.wait_with_output()?;
    taken.unwrap_or_else(|| {
        let reason = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("{} ({})", reason.trim(), output.status)))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn helper(script: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("helper");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        (folder, path)
    }

    // Mutants: every line counts as ready; the reason is left out.
    #[test]
    fn a_helper_that_is_not_ready_is_an_error_with_its_reason() {
        let (_folder, ready) = helper("echo ready; read -r _; exit 0");
        let taken = take(&ready, "x", |folder| Ok(folder.join("ns").exists()));
        assert!(taken.unwrap(), "it waits until it was taken");
        let (_folder, refused) = helper("echo no; echo 'the kernel says no' >&2; exit 199");
        let never = |_: &Path| -> io::Result<()> { panic!("there is nothing to take") };
        let error = take(&refused, "x", never).unwrap_err().to_string();
        assert!(error.contains("the kernel says no") && error.contains("199"), "{error}");
    }
}
