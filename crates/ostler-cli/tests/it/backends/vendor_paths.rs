//! The paths of the vendor's command line programs.

use std::path::PathBuf;

/// 2.1.50, from the TypeScript SDK 0.2.50.
pub(crate) fn older() -> PathBuf {
    package("OSTLER_PEERS", "claude-agent-sdk").join("cli.js")
}

/// 2.1.325, from the TypeScript SDK 0.3.325.
pub(crate) fn newer() -> PathBuf {
    let machine = std::env::consts::ARCH.replace("x86_64", "x64");
    let name = format!("claude-agent-sdk-linux-{}", machine.replace("aarch64", "arm64"));
    package("OSTLER_NATIVE_PEERS", &name).join("claude")
}

/// A vendor package in the folder that a variable names; `cargo xtask test` sets the variable.
pub(crate) fn package(variable: &str, name: &str) -> PathBuf {
    let folder = std::env::var_os(variable)
        .unwrap_or_else(|| panic!("{variable} names a folder with node_modules"));
    let folder = PathBuf::from(folder).join("node_modules/@anthropic-ai").join(name);
    folder.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}
