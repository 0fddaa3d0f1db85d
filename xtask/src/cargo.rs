//! Starting cargo, and where the repository is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};

/// The top folder of the checkout.
pub(crate) fn root() -> PathBuf {
    // Cargo sets this at run time; the package may have moved since it was built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}

/// The cargo that started this program, in the top folder.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command =
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsStr::new("cargo").to_owned()));
    command.args(args).current_dir(root());
    // `cargo run` describes this package in the environment. Build scripts that look at these variables would
    // run again with every change between `cargo xtask` and plain cargo.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    // The registry refuses too many requests at once; retries get them all.
    command.env("CARGO_NET_RETRY", "10");
    if std::env::var_os("CI").is_some() {
        // CI builds nothing twice, so incremental compilation is wasted there.
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Cargo with the linter as the compiler: one compilation gives the programs and their lints. Cargo keeps this build
/// apart from others, so all steps of `test` use it.
pub(crate) fn linting(args: &[&str]) -> Command {
    let mut command = cargo(args);
    // The linter is next to cargo. A bare name would be looked up in PATH, where another toolchain may be first.
    let next_to_cargo =
        std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("clippy-driver"));
    let driver =
        next_to_cargo.filter(|path| path.is_file()).unwrap_or_else(|| "clippy-driver".into());
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    // These programs are not debugged. Without line tables they are built and linked faster.
    command.env("CARGO_PROFILE_DEV_DEBUG", "none");
    command
}

/// Runs a command to its end.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("starting {}", command.get_program().display()))
}

/// The exit code of this program after running a command.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    // A process ended by a signal has no code; shells report 128 and more.
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(128).into()
}
