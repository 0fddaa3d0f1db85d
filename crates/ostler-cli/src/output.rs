//! Standard output for programs: frames, a result, or the answer's text.

use std::io::{self, Write as _};
use std::process::ExitCode;

use ostler_proto::frame::{Frame as _, ToHost};
use ostler_proto::message::TurnResult;

use crate::args::OutputFormat;
use crate::screen::Screen;
use crate::show::stopped_by_hook;

/// One write per frame, flushed, so that the host receives each frame at once.
pub(crate) fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes a result frame, which ends a turn or reports a failed start.
pub(crate) fn result(result: TurnResult) -> io::Result<()> {
    write(&ToHost::Result(Box::new(result)).to_line())
}

/// Writes the last result in the requested format, unless it is already written. Returns the exit code.
pub(crate) fn finish(format: OutputFormat, last: Option<TurnResult>) -> io::Result<ExitCode> {
    let Some(last) = last else { return Ok(ExitCode::SUCCESS) };
    let is_error = last.is_error;
    match format {
        OutputFormat::StreamJson => {}
        OutputFormat::Json => result(last)?,
        OutputFormat::Text => {
            let errors = || last.errors.as_ref().map(|errors| errors.join("; "));
            let text = last.result.clone().or_else(errors).unwrap_or_default();
            write(&format!("{text}\n"))?;
            if let Some(text) = stopped_by_hook(&last) {
                Screen::new().complain(&text);
            }
        }
    }
    Ok(if is_error { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
