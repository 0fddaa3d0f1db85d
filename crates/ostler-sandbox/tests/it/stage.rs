//! A folder to work in, things outside that must stay as they are, and a sandbox around a shell.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ostler_sandbox::{Boundary, Layers, Sandbox, Setup, usual};

/// A value that must not be found anywhere inside.
pub(crate) const SECRET: &str = "the-secret-5b1f";

pub(crate) struct Stage {
    _folder: tempfile::TempDir,
    root: PathBuf,
    pub(crate) boundary: Boundary,
}

impl Stage {
    pub(crate) fn new() -> Self {
        ostler_sandbox::use_helper(helper());
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["work/.git/hooks", "work/.claude", "work/sub", "fresh", "outside", "home/.ssh"]
        {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("outside/victim"), "unchanged\n").unwrap();
        fs::write(root.join("home/.ssh/id"), SECRET).unwrap();
        fs::write(root.join("work/.git/config"), "[core]\n").unwrap();
        fs::write(root.join("work/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join("work/.claude/settings.json"), "{}").unwrap();
        let mut boundary = Boundary::default();
        boundary.writable = vec![root.join("work"), root.join("fresh")];
        boundary.readable = vec![root.join("outside")];
        boundary.hidden = vec![root.join("home")];
        boundary.protected = boundary.writable.iter().flat_map(|it| usual::protected(it)).collect();
        Self { _folder: folder, root, boundary }
    }

    /// A sandbox for a folder of another stage.
    pub(crate) fn of(work: &Path) -> Self {
        ostler_sandbox::use_helper(helper());
        let mut boundary = Boundary::default();
        boundary.writable = vec![work.to_owned()];
        boundary.protected = usual::protected(work);
        let folder = tempfile::tempdir().unwrap();
        Self { root: folder.path().to_owned(), _folder: folder, boundary }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn sandbox(&self, layers: Layers) -> Sandbox {
        let mut boundary = self.boundary.clone();
        boundary.layers = layers;
        Sandbox::new(boundary, Setup::default()).unwrap()
    }

    /// Runs a script with these layers.
    pub(crate) fn run(&self, layers: Layers, script: &str) -> Output {
        let sandbox = self.sandbox(layers);
        let work = self.path("work");
        let bash = sandbox.command(Path::new("/bin/bash"), &["-c", script], &work).unwrap();
        let mut command = Command::new(&bash.program);
        command.args(&bash.arguments).stdin(Stdio::null());
        // As a careless caller would do it; `ostler` gives the environment in another way.
        for name in ["work", "fresh", "outside", "home"] {
            command.env(name.to_uppercase(), self.path(name));
        }
        command.env("SELF", std::process::id().to_string());
        let memory = fs::metadata("/dev/shm").unwrap();
        command.env("SHARED_MEMORY", format!("{}:{}", memory.dev(), memory.ino()));
        command.env("QUEUES", fs::read_link("/proc/self/ns/ipc").unwrap());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        bash.guard.started(child.id());
        let output = child.wait_with_output().unwrap();
        drop(bash.guard);
        output
    }

    /// Everything in the folders that a sandbox must not change, as text.
    pub(crate) fn outside(&self) -> String {
        let mut all = Vec::new();
        let protected = ["work/.git", "work/.claude"].map(|name| self.path(name));
        for folder in [self.path("outside"), self.path("home")].iter().chain(&protected) {
            collect(folder, &mut all);
        }
        for root in ["work", "fresh"] {
            let names = usual::protected(&self.path(root)).into_iter().map(|it| it.path);
            all.extend(
                names
                    .filter(|path| path.symlink_metadata().is_ok())
                    .map(|path| path.display().to_string()),
            );
        }
        all.sort();
        all.join("\n")
    }
}

fn collect(path: &Path, into: &mut Vec<String>) {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => {
            into.push(path.display().to_string());
            for entry in fs::read_dir(path).unwrap() {
                collect(&entry.unwrap().path(), into);
            }
        }
        Ok(about) => {
            let text = fs::read(path).unwrap_or_default();
            into.push(format!("{} {:o} {text:?}", path.display(), about.permissions().mode()));
        }
        Err(_) => into.push(format!("{} is missing", path.display())),
    }
}

/// The helper, at a place that every user can reach.
pub(crate) fn helper() -> PathBuf {
    match std::env::var_os(crate::as_user::HELPER) {
        Some(helper) => helper.into(),
        None => env!("CARGO_BIN_EXE_ostler-sandbox-helper").into(),
    }
}
