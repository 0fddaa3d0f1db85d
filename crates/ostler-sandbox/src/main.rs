//! The sandbox's helper as a program of its own, for programs that do not call `run_if_called`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ostler_sandbox::run_if_called().unwrap_or_else(|| {
        eprintln!(
            "ostler-sandbox-helper: started by programs that run commands in a sandbox, not by people"
        );
        ExitCode::from(2)
    })
}
