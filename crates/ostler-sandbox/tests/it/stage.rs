//! A folder to work in, things outside that must stay as they are, and a sandbox around a shell.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ostler_sandbox::{Boundary, Kind, Layers, Protected, Sandbox, Setup};

pub(crate) struct Stage {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) boundary: Boundary,
}

impl Stage {
    pub(crate) fn new() -> Self {
        ostler_sandbox::use_helper(env!("CARGO_BIN_EXE_ostler-sandbox-helper").into());
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work", "outside"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        std::fs::write(root.join("outside/secret"), "the secret\n").unwrap();
        let mut boundary = Boundary::default();
        boundary.writable = vec![root.join("work")];
        boundary.hidden = vec!["/home".into(), "/root".into()];
        boundary.protected = vec![
            Protected { path: root.join("work/.git/hooks"), kind: Kind::Folder },
            Protected { path: root.join("work/.mcp.json"), kind: Kind::File },
        ];
        Self { folder, boundary }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Runs a script with these layers.
    pub(crate) fn run(&self, layers: Layers, script: &str) -> Output {
        let mut boundary = self.boundary.clone();
        boundary.layers = layers;
        let sandbox = Sandbox::new(boundary, Setup::default()).unwrap();
        let work = self.path("work");
        let bash = sandbox.command(Path::new("/bin/bash"), &["-c", script], &work).unwrap();
        Command::new(&bash.program).args(&bash.arguments).stdin(Stdio::null()).output().unwrap()
    }
}
