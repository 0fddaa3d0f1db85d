//! Finds the executable of an engine.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::transport::Environment;

/// The names of engine executables, in the order in which they are tried.
const NAMES: &[&str] = &["ostler", "claude"];
const HINT: &str = "install ostler (`cargo install ostler-cli`), put it on the PATH, or name it with \
    Options::executable or OSTLER_ENGINE";

/// The program to start, and the arguments that come before those of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) before: Vec<OsString>,
}

/// The program for an executable, or for the first name on the PATH. A script is run by `runtime`, by default Node.
pub(super) fn program(
    executable: Option<PathBuf>,
    runtime: &[OsString],
    env: &Environment,
) -> Result<Program, Error> {
    let named = executable.or_else(|| env.get("OSTLER_ENGINE").map(PathBuf::from));
    let path = match named {
        Some(path) if path.components().count() > 1 => {
            path.is_file().then(|| path.clone()).ok_or_else(|| {
                Error::NoEngine(format!("there is no file {}; {HINT}", path.display()))
            })?
        }
        Some(name) => on_path(&name, env).ok_or_else(|| {
            Error::NoEngine(format!("{} is not on the PATH; {HINT}", name.display()))
        })?,
        None => NAMES.iter().find_map(|name| on_path(Path::new(name), env)).ok_or_else(|| {
            Error::NoEngine(format!("neither {} is on the PATH; {HINT}", NAMES.join(" nor ")))
        })?,
    };
    script(path, runtime, env)
}

fn script(path: PathBuf, runtime: &[OsString], env: &Environment) -> Result<Program, Error> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if !matches!(extension, Some("js" | "mjs" | "cjs")) {
        return Ok(Program { path, before: Vec::new() });
    }
    let (name, arguments) = match runtime {
        [name, arguments @ ..] => (Path::new(name), arguments),
        [] => (Path::new("node"), &[][..]),
    };
    let runs =
        if name.components().count() > 1 { Some(name.to_owned()) } else { on_path(name, env) };
    let runs = runs.ok_or_else(|| {
        let (path, name) = (path.display(), name.display());
        Error::NoEngine(format!("{path} needs {name}, which is not on the PATH"))
    })?;
    let before = arguments.iter().cloned().chain([path.into_os_string()]).collect();
    Ok(Program { path: runs, before })
}

fn on_path(name: &Path, env: &Environment) -> Option<PathBuf> {
    let path = env.get("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn env(folder: &Path) -> Environment {
        let variables = [("PATH".to_owned(), folder.display().to_string())].into();
        Environment { replaces: true, variables }
    }

    fn put(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_first_name_on_the_path_that_is_executable_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let env = env(folder.path());
        let error = program(None, &[], &env).unwrap_err().to_string();
        assert!(error.contains("neither ostler nor claude is on the PATH; install"), "{error}");
        let claude = put(folder.path(), "claude", 0o755);
        put(folder.path(), "ostler", 0o644);
        assert_eq!(program(None, &[], &env).unwrap().path, claude);
        let ostler = put(folder.path(), "ostler", 0o755);
        assert_eq!(program(None, &[], &env).unwrap().path, ostler);
    }

    #[test]
    fn an_executable_that_is_named_but_missing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let env = env(folder.path());
        for name in ["/no/such/engine", "no-such-engine"] {
            let error = program(Some(name.into()), &[], &env).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("OSTLER_ENGINE"), "{error}");
        }
    }

    #[test]
    fn a_script_is_run_by_node() {
        let folder = tempfile::tempdir().unwrap();
        let env = env(folder.path());
        let cli = put(folder.path(), "cli.js", 0o644);
        let error = program(Some(cli.clone()), &[], &env).unwrap_err().to_string();
        assert!(error.contains("needs node"), "{error}");
        let node = put(folder.path(), "node", 0o755);
        let found = program(Some(cli.clone()), &[], &env).unwrap();
        assert_eq!(found, Program { path: node, before: vec![cli.into_os_string()] });
    }

    #[test]
    fn a_script_is_run_by_the_runtime_of_the_options() {
        let folder = tempfile::tempdir().unwrap();
        let env = env(folder.path());
        let cli = put(folder.path(), "cli.js", 0o644);
        let runtime = ["bun".into(), "--smol".into()];
        let error = program(Some(cli.clone()), &runtime, &env).unwrap_err().to_string();
        assert!(error.contains("needs bun"), "{error}");
        let bun = put(folder.path(), "bun", 0o755);
        let found = program(Some(cli.clone()), &runtime, &env).unwrap();
        assert_eq!(found, Program { path: bun, before: vec!["--smol".into(), cli.into()] });
        // A program that is not a script needs no runtime.
        let engine = put(folder.path(), "engine", 0o755);
        let found = program(Some(engine.clone()), &runtime, &env).unwrap();
        assert_eq!(found, Program { path: engine, before: Vec::new() });
    }
}
