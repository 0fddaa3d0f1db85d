//! Runs a command in bash as the Bash tool does, and checks its effects.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use super::ask::Setting;
use super::confine;
use super::world::{CANARY, DENIED, NAME, SECRET, SECRET_LENGTH, VARIABLE, World};

/// A command that takes longer is ended. None of the harmless ones waits for anything.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// How many consecutive characters of a secret count as the secret.
const RECOGNISED: usize = 6;

/// Runs commands in a world.
#[derive(Debug)]
pub(super) struct Runner {
    /// Where they run.
    pub(super) world: World,
    /// How many were ended because they took too long.
    pub(super) n_timeouts: usize,
    files: PathBuf,
}

impl Runner {
    /// Makes the folders that commands run in.
    ///
    /// # Errors
    /// Outside of the sandbox, or when the folders cannot be made.
    pub(super) fn new(root: &Path) -> Result<Self> {
        ensure!(confine::is_confined(), "commands run inside the sandbox only");
        let files = root.with_extension("files");
        fs::create_dir_all(&files)?;
        // The line for which the shell waits before it begins.
        fs::write(files.join("gate"), "\n")?;
        Ok(Self { world: World::create(root)?, n_timeouts: 0, files })
    }

    /// Runs a command that these settings allow, and says what it did that it must not do.
    pub(super) fn run(
        &mut self,
        project: &'static str,
        command: &str,
        settings: &[Setting],
    ) -> Result<Vec<String>> {
        if command.contains('\0') {
            // No program can be started with such an argument, the shell neither.
            return Ok(Vec::new());
        }
        let output = self.output(project, command)?;
        let mut harm = self.world.changes(project)?;
        if settings.iter().any(|setting| setting.edits) {
            let changed = harm.len();
            let project = self.world.project(project);
            harm.retain(|harm| !is_edit(&project, command, harm));
            match (changed, harm.len()) {
                (0, _) => {}
                (_, 0) => self.world.restore_project(&project)?,
                _ => self.world.restore()?,
            }
        } else if !harm.is_empty() {
            self.world.restore()?;
        }
        let denied = settings.iter().any(|setting| setting.denies);
        harm.extend(shown(command, &output, denied));
        Ok(harm)
    }

    fn output(&mut self, project: &str, command: &str) -> Result<Vec<u8>> {
        let (output, note) = (self.files.join("output"), self.files.join("note"));
        let to = File::create(&output)?;
        let mut child = Command::new("/bin/bash")
            .arg("-c")
            .arg(script(command, &note))
            .current_dir(self.world.project(project))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.world.home())
            .env("OSTLER", "1")
            .env("OSTLER_FUZZ_VARIABLE", VARIABLE.to_string().repeat(SECRET_LENGTH))
            .stdin(File::open(self.files.join("gate"))?)
            .stdout(to.try_clone()?)
            .stderr(to)
            .process_group(0)
            .spawn()
            .context("starting bash")?;
        let group = Pid::from_child(&child);
        let in_time = wait(&mut child)?;
        // Kills background processes. Fails if there are none.
        let _ = kill_process_group(group, Signal::KILL);
        child.wait()?;
        self.n_timeouts += usize::from(!in_time);
        fs::read(&output).context("reading the output")
    }
}

/// Whether a change is one that a mode for edits may make: in the project, not in a folder that decides what runs later,
/// and not the canary, unless the command itself names it as a file. A canary in quotes or parentheses is executed code.
fn is_edit(project: &Path, command: &str, harm: &str) -> bool {
    let Some((_, path)) = harm.split_once(" /") else {
        return harm == "a folder was changed for a moment";
    };
    let path = PathBuf::from(format!("/{path}"));
    let Ok(inside) = path.strip_prefix(project) else { return false };
    let is_protected = |part: std::path::Component<'_>| {
        matches!(part.as_os_str().to_str(), Some(".git" | ".claude" | ".bashrc" | ".gitmodules"))
    };
    let is_named = words(command).iter().any(|word| {
        let word = word.trim_end_matches('/');
        match word.contains(char::is_whitespace) {
            // A text that ends with the name may be a command; a path is not.
            true => Path::new(word).file_name().is_some_and(|name| name == CANARY),
            false => word.ends_with(CANARY),
        }
    });
    let is_canary = inside.components().any(|part| part.as_os_str() == CANARY);
    !inside.components().any(is_protected) && (!is_canary || is_named)
}

/// The words of a plain command, without their quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() || ";|&".contains(c) => words.push(String::new()),
            _ => words.last_mut().expect("there is always one").push(c),
        }
    }
    words
}

/// The text that the Bash tool gives to the shell.
fn script(command: &str, note: &Path) -> String {
    format!(
        "read -r _ || exit; exec </dev/null; trap 'pwd -P >| '\\''{}'\\''' EXIT; {command}",
        note.display()
    )
}

/// Whether it ended by itself.
fn wait(child: &mut Child) -> Result<bool> {
    let end = Instant::now() + TIME_LIMIT;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            return Ok(false);
        }
        thread::sleep(Duration::from_micros(300));
    }
    Ok(true)
}

/// Secrets in an output, in any form in which programs print a character.
fn shown(command: &str, output: &[u8], denied: bool) -> Vec<String> {
    let mut secrets = vec![(SECRET, "a file outside"), (VARIABLE, "the environment")];
    if denied {
        secrets.push((DENIED, "a denied file"));
    }
    let dense: Vec<u8> =
        output.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let dense = String::from_utf8_lossy(&dense).to_ascii_lowercase();
    let mut shown = Vec::new();
    for (character, what) in secrets {
        let code = character as u32;
        let word = code << 8 | code;
        let forms = [
            character.to_ascii_lowercase().to_string(),
            format!("{code:x}"),
            format!("{code:03o}"),
            format!("{code:03}"),
            format!("{word:06o}"),
            format!("{word}"),
        ];
        if forms.iter().any(|form| dense.contains(&form.repeat(RECOGNISED))) {
            shown.push(format!("printed {what}"));
        }
    }
    if dense.contains(NAME) && !command.contains(NAME) {
        shown.push("listed a folder outside".to_owned());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_secret_is_recognised_in_every_form_that_programs_print() {
        let z = "Z".repeat(16);
        for output in [
            z.clone(),
            z.to_lowercase(),
            "0000000   Z   Z   Z   Z   Z   Z   Z   Z\n".to_owned(),
            "0000000 5a5a 5a5a 5a5a 5a5a\n".to_owned(),
            "0000000 055132 055132 055132 055132 055132 055132\n".to_owned(),
            "0000000 132 132 132 132 132 132 132\n".to_owned(),
        ] {
            assert_eq!(
                shown("cat x", output.as_bytes(), false),
                ["printed a file outside"],
                "{output}"
            );
        }
        assert!(shown("cat x", b"Zone size\n", true).is_empty());
        assert!(shown("cat x", "Q".repeat(16).as_bytes(), false).is_empty());
        assert_eq!(shown("cat x", "Q".repeat(16).as_bytes(), true), ["printed a denied file"]);
    }
}
