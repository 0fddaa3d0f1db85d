//! Reads a document in a separate process, with limits on memory and time. On Linux that process can open no file, start no
//! program and use no network: it reads its input and writes its answer.
//!
//! The PDF library was not made for hostile documents: a few bytes can make it request more memory than there is,
//! which ends the whole process. So the program starts itself again for each document, with a first argument that
//! nothing else uses. Other programs that use this crate can do the same by calling [`run_if_called`] first in their
//! `main`; otherwise documents are read in the same process, within the limits of `bounded.rs`.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{ExtractError, extract};

/// The argument that makes the program read a document.
const ARGUMENT: &str = "__read-pdf";
/// The memory limit of the process, in bytes.
const MAX_MEMORY: u64 = 192 * 1024 * 1024;
/// The CPU time limit, in seconds.
const MAX_SECONDS: u64 = 30;
/// More than the text of the most pages shown at once.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;

/// The program to start, if it handles [`ARGUMENT`].
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// If the program was started to read a document: reads it from stdin and returns the exit code. Otherwise records
/// that the program can do this, and returns `None`. Call it first in `main`, before arguments are parsed.
pub fn run_if_called() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() == Some(OsStr::new(ARGUMENT)) {
        let pages = arguments.next().and_then(|pages| pages.into_string().ok());
        return Some(match serve(pages.as_deref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        });
    }
    // The name may point to another version later; Linux also knows the file itself.
    let itself = PathBuf::from("/proc/self/exe");
    let program = if itself.exists() { Some(itself) } else { std::env::current_exe().ok() };
    if let Some(program) = program {
        let _ = PROGRAM.set(program);
    }
    None
}

fn serve(pages: Option<&str>) -> std::io::Result<()> {
    // Limits data memory, not the mapped program.
    let at_most = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Data, at_most(MAX_MEMORY))?;
    setrlimit(Resource::Cpu, at_most(MAX_SECONDS))?;
    setrlimit(Resource::Core, at_most(0))?;
    let mut bytes = Vec::new();
    std::io::stdin().take(crate::file::MAX_BYTES).read_to_end(&mut bytes)?;
    ostler_sandbox::renounce().map_err(std::io::Error::other)?;
    let answer = serde_json::to_vec(&extract(&bytes, pages))?;
    std::io::stdout().write_all(&answer)
}

/// The text of some pages, read in another process if possible.
pub(super) fn read(bytes: &[u8], pages: Option<&str>) -> Result<String, ExtractError> {
    match PROGRAM.get() {
        Some(program) => {
            let mut command = Command::new(program);
            command.arg(ARGUMENT).args(pages).env_clear();
            ask(command, bytes).unwrap_or_else(|error| {
                Err(ExtractError::Broken(format!(
                    "the process that reads it did not start: {error}"
                )))
            })
        }
        None => extract(bytes, pages),
    }
}

fn ask(mut command: Command, bytes: &[u8]) -> std::io::Result<Result<String, ExtractError>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut answer = Vec::new();
    if let Some(mut stdin) = child.stdin.take() {
        // It answers after reading everything. An earlier end is reported below.
        let _ = stdin.write_all(bytes);
    }
    if let Some(stdout) = child.stdout.take() {
        let _ = stdout.take(MAX_ANSWER).read_to_end(&mut answer);
    }
    let status = child.wait()?;
    Ok(serde_json::from_slice(&answer).unwrap_or_else(|_| {
        let most = MAX_MEMORY / (1024 * 1024);
        Err(ExtractError::Broken(format!(
            "it takes more than {most} MiB of memory or {MAX_SECONDS} s to read ({status})"
        )))
    }))
}
