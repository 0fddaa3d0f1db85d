//! Reads a document in a process of its own, with limits on memory and time.
//!
//! The library that reads documents was not made for hostile ones: a few bytes can make it ask for more memory than
//! there is, which ends the whole process. The program therefore starts itself again for each document, with a
//! first argument that nothing else uses. Other programs that use this crate can do the same, by calling
//! [`run_if_called`] first in their `main`; without it documents are read in the process, within the limits of
//! `bounded.rs`.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;

use nix::sys::resource::{Resource, setrlimit};

use super::{Problem, extract};

/// The argument that makes the program read a document.
const ARGUMENT: &str = "__read-pdf";
/// The most memory of the process, in bytes.
const MAX_MEMORY: u64 = 192 * 1024 * 1024;
/// The most time of a processor that it may use, in seconds.
const MAX_SECONDS: u64 = 30;
/// More than the text of the most pages that are shown at once.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;

/// The program to start, when it is one that answers to [`ARGUMENT`].
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Reads a document from standard input and returns the exit code, if the program was started for that. Otherwise
/// notes that it can be, and returns `None`. To be called first in `main`, before anything else reads arguments.
pub fn run_if_called() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() == Some(OsStr::new(ARGUMENT)) {
        let pages = arguments.next().and_then(|pages| pages.into_string().ok());
        return Some(match serve(pages.as_deref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        });
    }
    // The name may lead to another version by the time it is needed; Linux also knows the file itself.
    let itself = PathBuf::from("/proc/self/exe");
    let program = if itself.exists() { Some(itself) } else { std::env::current_exe().ok() };
    if let Some(program) = program {
        let _ = PROGRAM.set(program);
    }
    None
}

fn serve(pages: Option<&str>) -> std::io::Result<()> {
    // Counts what the process asks for, not the program that is mapped into it.
    setrlimit(Resource::RLIMIT_DATA, MAX_MEMORY, MAX_MEMORY)?;
    setrlimit(Resource::RLIMIT_CPU, MAX_SECONDS, MAX_SECONDS)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    let mut bytes = Vec::new();
    std::io::stdin().take(crate::file::MAX_BYTES).read_to_end(&mut bytes)?;
    let answer = serde_json::to_vec(&extract(&bytes, pages))?;
    std::io::stdout().write_all(&answer)
}

/// The text of some pages, read in another process where that is possible.
pub(super) fn read(bytes: &[u8], pages: Option<&str>) -> Result<String, Problem> {
    match PROGRAM.get() {
        Some(program) => {
            let mut command = Command::new(program);
            command.arg(ARGUMENT).args(pages).env_clear();
            ask(command, bytes).unwrap_or_else(|error| {
                Err(Problem::Broken(format!("the process that reads it did not start: {error}")))
            })
        }
        None => extract(bytes, pages),
    }
}

fn ask(mut command: Command, bytes: &[u8]) -> std::io::Result<Result<String, Problem>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut answer = Vec::new();
    if let Some(mut stdin) = child.stdin.take() {
        // It answers once it has read everything. One that ends before has not answered, which is told below.
        let _ = stdin.write_all(bytes);
    }
    if let Some(stdout) = child.stdout.take() {
        let _ = stdout.take(MAX_ANSWER).read_to_end(&mut answer);
    }
    let status = child.wait()?;
    Ok(serde_json::from_slice(&answer).unwrap_or_else(|_| {
        let most = MAX_MEMORY / (1024 * 1024);
        Err(Problem::Broken(format!(
            "it takes more than {most} MiB of memory or {MAX_SECONDS} s to read ({status})"
        )))
    }))
}
