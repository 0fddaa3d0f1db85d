//! A command of the user that prints a secret: `apiKeyHelper` of the settings, `headersHelper` of an MCP server.
//!
//! It needs what a sandbox hides, so it runs outside. In a session with a sandbox it must not be something that a command inside
//! can write: it starts in another folder, finds no program in such a folder, and is refused if it names a file there.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ostler_sdk::transport::Environment;

/// The most that the command may print, in bytes.
const LONGEST_OUTPUT: usize = 64 * 1024;
/// How long to wait for output after the command has ended. A process that it left behind may keep the pipe open.
const GRACE: Duration = Duration::from_millis(200);
/// How often to look whether the command has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// The command and its environment.
pub(super) struct HelperCommand {
    pub(super) command: String,
    pub(super) env: Environment,
    /// The folder to start in; without one, that of this process. With a sandbox, it starts in `/`.
    pub(super) folder: Option<PathBuf>,
    /// The folders that commands in the sandbox can write; empty without a sandbox.
    pub(super) writable: Vec<PathBuf>,
    /// How long the command may take.
    pub(super) limit: Duration,
    /// What it prints, as a word for users.
    pub(super) prints: &'static str,
}

impl HelperCommand {
    /// Runs the command and returns its output. The output is a secret, so no error contains it.
    pub(super) fn output(&self) -> Result<String, String> {
        let what = self.prints;
        let mut command = Command::new("/bin/sh");
        self.env.give_to(&mut command);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if !self.writable.is_empty() {
            self.refuse_writable()?;
            command.current_dir("/").env("PATH", self.path());
        }
        command.args(["-c", &self.command]).stdin(Stdio::null()).stderr(Stdio::inherit());
        command.stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| format!("cannot be run: {error}"))?;
        let output = output(&mut child, self.limit, what);
        // Kills the whole process group, so that nothing that the command started is left.
        if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = child.wait();
        let (status, bytes) = output?;
        if !status.success() {
            return Err(format!("failed: {status}"));
        }
        match String::from_utf8_lossy(&bytes).trim() {
            "" => Err(format!("printed no {what}")),
            text => Ok(text.to_owned()),
        }
    }
}

impl HelperCommand {
    /// Refuses a command with a file in its words that a command in the sandbox can write.
    fn refuse_writable(&self) -> Result<(), String> {
        let separators = |c: char| c.is_whitespace() || "'\"`;|&<>()={}$".contains(c);
        let names = self.command.split(separators).filter(|word| word.contains('/'));
        let home = self.env.get("HOME").map(PathBuf::from).unwrap_or_default();
        for name in names {
            let path = match name.strip_prefix("~/") {
                Some(rest) => home.join(rest),
                None => PathBuf::from(name),
            };
            // A relative name is meant for a working directory, where it is not run.
            let is_meant_there = || self.writable.iter().any(|root| root.join(&path).exists());
            if self.is_writable(&path) || (path.is_relative() && is_meant_there()) {
                return Err(format!(
                    "names {name}, which commands in the sandbox could change; move it out of the folders that they can \
                     write, and name it by its absolute path"
                ));
            }
        }
        Ok(())
    }

    /// The search path without folders that commands in the sandbox can write.
    fn path(&self) -> OsString {
        let path = self.env.get("PATH").unwrap_or_default();
        let safe = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute() && !self.is_writable(folder));
        std::env::join_paths(safe).unwrap_or_default()
    }

    fn is_writable(&self, path: &Path) -> bool {
        let real = path.canonicalize();
        let paths = [Some(path), real.as_deref().ok()];
        paths.into_iter().flatten().any(|path| {
            self.writable.iter().any(|root| {
                let real = root.canonicalize().unwrap_or_else(|_| root.clone());
                path.starts_with(root) || path.starts_with(real)
            })
        })
    }
}

/// The exit status and the output of the command. After an error the command is still running.
fn output(child: &mut Child, limit: Duration, what: &str) -> Result<(ExitStatus, Vec<u8>), String> {
    let chunks = chunks(child);
    let begun = Instant::now();
    let mut bytes = Vec::new();
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        let is_closed = match chunks.recv_timeout(PAUSE) {
            Ok(chunk) => {
                bytes.extend(chunk);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if bytes.len() > LONGEST_OUTPUT {
            return Err(format!("printed more than {LONGEST_OUTPUT} bytes, too much for {what}"));
        }
        if ended.is_none() {
            let status =
                child.try_wait().map_err(|error| format!("cannot be waited for: {error}"))?;
            ended = status.map(|status| (status, Instant::now()));
        }
        match ended {
            Some((status, at)) if is_closed || at.elapsed() > GRACE => return Ok((status, bytes)),
            None if begun.elapsed() > limit => {
                let seconds = limit.as_secs();
                return Err(format!("did not end within {seconds} s; make it faster"));
            }
            _ if is_closed => thread::sleep(PAUSE),
            _ => {}
        }
    }
}

/// Receives the command's output as it arrives. The thread ends with the pipe, or when the receiver is dropped.
fn chunks(child: &mut Child) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    if let Some(mut stdout) = child.stdout.take() {
        thread::spawn(move || {
            let mut buffer = vec![0; 8 * 1024];
            while let Ok(n @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper(command: &str, limit: u64) -> HelperCommand {
        HelperCommand {
            command: command.to_owned(),
            env: Environment::default(),
            folder: None,
            writable: Vec::new(),
            limit: Duration::from_secs(limit),
            prints: "key",
        }
    }

    fn run(command: &str) -> Result<String, String> {
        helper(command, 1).output()
    }

    // Mutants: `refuse_writable` or the search path is left out; links are not followed.
    #[test]
    fn what_commands_in_the_sandbox_can_write_is_not_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (work, safe) = (folder.path().join("work"), folder.path().join("safe"));
        for place in [&work, &safe] {
            std::fs::create_dir(place).unwrap();
            let helper = place.join("give-key");
            std::fs::write(&helper, format!("#!/bin/sh\necho {}\n", place.display())).unwrap();
            std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(&work, folder.path().join("link")).unwrap();
        let path = format!("{}:.:{}:/usr/bin:/bin", work.display(), safe.display());
        let run = |command: &str| {
            let command = command
                .replace("WORK", work.to_str().unwrap())
                .replace("SAFE", safe.to_str().unwrap());
            let command = command.replace("LINK", folder.path().join("link").to_str().unwrap());
            let env = Environment::default().with([("PATH".to_owned(), path.clone())]);
            let mut helper = helper(&command, 5);
            (helper.env, helper.writable) = (env, vec![work.clone()]);
            helper.output()
        };
        let expected = safe.display().to_string();
        assert_eq!(run("give-key").unwrap(), expected, "the search path leaves out the folder");
        assert_eq!(run("SAFE/give-key").unwrap(), expected);
        assert_eq!(run("echo SAFE | sed s/no/yes/").unwrap(), expected);
        assert_eq!(run("cat SAFE/give-key | tail -n 1 | cut -c 6-").unwrap(), expected);
        for command in [
            "WORK/give-key",
            "LINK/give-key",
            "./give-key",
            "sh 'WORK/give-key'",
            "x=WORK/give-key; $x",
        ] {
            let error = run(command).unwrap_err();
            assert!(error.contains("commands in the sandbox could change"), "{command}: {error}");
        }
    }

    #[test]
    fn the_output_of_the_command_is_the_key() {
        assert_eq!(run("echo ' k '").unwrap(), "k");
        assert_eq!(run("true").unwrap_err(), "printed no key");
        assert_eq!(run("echo secret; exit 3").unwrap_err(), "failed: exit status: 3");
    }

    // Mutants: no limit of time; no limit of length.
    #[test]
    fn a_command_that_does_not_end_or_prints_too_much_is_stopped() {
        let error = run("echo secret; sleep 600").unwrap_err();
        assert!(error.starts_with("did not end within 1 s"), "{error}");
        let error = run("cat /dev/zero").unwrap_err();
        assert!(error.starts_with("printed more than 65536 bytes"), "{error}");
    }

    // Mutant: the end of the pipe is waited for after the command has ended.
    #[test]
    fn a_process_that_keeps_the_pipe_open_does_not_delay_the_key() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // In a session of its own, and it ends when this test opens the other end.
        let stays = format!("setsid sh -c 'touch \"$0.up\"; cat \"$0\"' '{}' &", pipe.display());
        let command =
            format!("echo k; {stays} until [ -e '{}.up' ]; do sleep 0.01; done", pipe.display());
        assert_eq!(run(&command).unwrap(), "k");
        std::fs::write(pipe, "").unwrap();
    }

    // Mutant: the process group is not killed.
    #[test]
    fn processes_that_the_command_started_end_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // The reader sees the end of the pipe when no process holds it open for writing.
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        let command = format!("(sleep 600) > '{}' & echo k", pipe.display());
        assert_eq!(run(&command).unwrap(), "k");
        assert_eq!(reader.join().unwrap(), b"");
    }
}
