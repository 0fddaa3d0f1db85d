//! `web`: builds the web page, which the next build of `ostler` embeds; and tests it.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::checksum::checksum;
use crate::{Misuse, cargo, conformance, setup};

pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    match args {
        [] => {}
        [option] if option == "--pictures" => return pictures(),
        [arg, ..] => {
            return Err(Misuse(format!("web knows no option {}", arg.display())).into());
        }
    }
    build()?;
    eprintln!("built web/dist/page; build ostler again to include it in the program");
    Ok(ExitCode::SUCCESS)
}

/// Installs the page's packages, if they changed, and builds it.
pub(crate) fn build() -> Result<()> {
    install()?;
    run(npm(&["run", "build"]))
}

/// Takes the README's screenshots again, with the program of the last build.
fn pictures() -> Result<ExitCode> {
    install()?;
    let status = cargo::status(browser("e2e/pictures.mjs")?.arg("../docs/pictures"))?;
    Ok(cargo::exit_code(status))
}

/// Builds the page if it is missing. Without npm the server has no page, and says so.
pub(crate) fn build_if_missing() {
    if folder().join("dist/page/index.html").is_file() || !setup::works("npm", &["--version"]) {
        return;
    }
    eprintln!("building the page (once; later by cargo xtask web)…");
    if let Err(error) = build() {
        eprintln!("the server will not have its page: {error:#}");
    }
}

/// The tests without a browser.
pub(crate) fn unit_tests() -> Command {
    npm(&["test", "--silent"])
}

/// The tests in a browser, or one of them, with the program of the last build.
pub(crate) fn browser_tests(only: Option<&str>) -> Result<Command> {
    let mut tests = browser("e2e/main.mjs")?;
    tests.args(only);
    Ok(tests)
}

/// A script that opens the program in a browser.
fn browser(script: &str) -> Result<Command> {
    setup::chromium()?;
    let mut node = Command::new("node");
    node.arg(script).current_dir(folder());
    node.env("OSTLER_PROGRAM", conformance::built("ostler")?);
    Ok(node)
}

fn folder() -> PathBuf {
    cargo::root().join("web")
}

fn install() -> Result<()> {
    ensure!(
        setup::works("npm", &["--version"]),
        "npm is missing, which builds the page; install Node.js 20 or later"
    );
    let lock = fs::read_to_string(folder().join("package-lock.json"))
        .context("reading web/package-lock.json")?;
    let wanted = format!("{:016x}", checksum(&lock));
    let mark = folder().join("node_modules/.installed");
    if fs::read_to_string(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    // Not `npm ci`: it also needs the packages of all other systems in the lock file, and not every registry has them.
    // This also installs the locked versions, checks them, and does not change the lock file.
    run(npm(&[
        "install",
        "--no-save",
        "--ignore-scripts",
        "--fetch-retries=5",
        "--loglevel=error",
    ]))?;
    fs::write(&mark, wanted).context("noting what was installed")
}

fn npm(args: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(args).current_dir(folder());
    npm
}

fn run(mut command: Command) -> Result<()> {
    // Standard output is for results, not for npm's messages.
    let status = cargo::status(command.stdout(std::io::stderr()))?;
    ensure!(status.success(), "npm ended with {status} in {}", folder().display());
    Ok(())
}
