//! Whether sessions can be saved.

use std::path::Path;

use ostler_engine::store::Projects;
use ostler_server::checkup;
use rustix::fs::{Access, access};

use super::Finding;

/// With less free space than this, in bytes, a session may not fit.
const LITTLE: u64 = 200 << 20;
const TOO_LITTLE: u64 = 10 << 20;

pub(super) fn check(cwd: &Path) -> Vec<Finding> {
    let projects = match Projects::from_env(|name| std::env::var_os(name)) {
        Ok(projects) => projects,
        Err(error) => {
            let fix = "set HOME or CLAUDE_CONFIG_DIR";
            return vec![Finding::odd(format!("disk: sessions are not saved: {error}"), fix)];
        }
    };
    let folder = projects.folder(cwd);
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    vec![writable(&folder, there), space(there)]
}

fn writable(folder: &Path, there: &Path) -> Finding {
    let fix =
        format!("make {} a folder you may write in, or set CLAUDE_CONFIG_DIR", there.display());
    if !there.is_dir() {
        let text = format!(
            "disk: sessions cannot be saved in {}: {} is not a folder",
            folder.display(),
            there.display()
        );
        return Finding::bad(text, fix);
    }
    match access(there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::good(format!("disk: sessions are saved in {}", folder.display())),
        Err(error) => {
            let text = format!("disk: sessions cannot be saved in {}: {error}", folder.display());
            Finding::bad(text, fix)
        }
    }
}

fn space(there: &Path) -> Finding {
    let fix = "free some space, or set CLAUDE_CONFIG_DIR to a folder on another disk";
    checkup::room(there, LITTLE, TOO_LITTLE, fix).about("disk")
}
