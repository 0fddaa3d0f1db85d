//! The servers of `.mcp.json`, in the project and in the folders above it. The nearest file wins.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use ostler_engine::project_file::Boundary;
use ostler_engine::settings::Problem;

use super::approval::Choices;
use super::{Configured, ConfiguredServer, LONGEST_FILE, Scope, StartContext, rules};

/// The file's name.
pub(super) const FILE: &str = ".mcp.json";

/// Adds the servers of all files, the nearest first.
pub(super) fn read(
    context: &StartContext,
    project: &Path,
    choices: &Choices,
    found: &mut Configured,
) {
    for folder in project.ancestors() {
        let is_above = folder != project;
        if let Err(problem) = read_one(context, folder, is_above, choices, &mut found.servers) {
            found.warnings.push(problem);
        }
    }
}

fn read_one(
    context: &StartContext,
    folder: &Path,
    is_above: bool,
    choices: &Choices,
    servers: &mut Vec<ConfiguredServer>,
) -> Result<(), Problem> {
    let path = folder.join(FILE);
    let problem = |reason: String| Problem { path: path.clone(), pointer: String::new(), reason };
    // A folder above may belong to anybody, such as `/tmp`.
    if is_above && belongs_to_another(&path) {
        return Err(problem(
            "its MCP servers are left out, because the file belongs to another user".to_owned(),
        ));
    }
    let boundary = match rules::trusts_project(context) {
        true => Boundary::default(),
        false => Boundary::inside(folder, Arc::default()),
    };
    let Some(config) = super::read(&path, LONGEST_FILE, &boundary)? else { return Ok(()) };
    let entries = super::entries(config).map_err(problem)?;
    servers.extend(entries.into_iter().map(|(name, entry)| ConfiguredServer {
        approval: choices.of_project(&name),
        name,
        scope: Scope::Project,
        file: path.clone(),
        entry,
    }));
    Ok(())
}

fn belongs_to_another(path: &Path) -> bool {
    let owner = path.symlink_metadata().map(|found| found.uid());
    owner.is_ok_and(|owner| owner != 0 && owner != rustix::process::geteuid().as_raw())
}
