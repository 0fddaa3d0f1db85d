//! The sandbox's helper as a program of its own, for programs that do not call `run_if_called`.

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    ostler_sandbox::run_if_called().unwrap_or_else(|| {
        let text = "ostler-sandbox-helper is started by programs that run commands in a sandbox, not by people";
        // If standard error is closed, the exit code has to do.
        let _ = writeln!(std::io::stderr(), "{text}");
        ExitCode::from(2)
    })
}
