//! The administrator's `managed-mcp.json`, next to the administrator's settings. If it exists, only its servers count.

use ostler_engine::project_file::Boundary;
use ostler_engine::settings::Folders;

use super::{Approval, ConfiguredServer, LONGEST_FILE, Scope, StartError};

/// The servers of the administrator; `None` if there is no such file.
///
/// # Errors
/// When the file cannot be read: a session must not use other servers then.
pub(super) fn read(folders: &Folders) -> Result<Option<Vec<ConfiguredServer>>, StartError> {
    let Some(settings) = &folders.managed else { return Ok(None) };
    let file = settings.with_file_name("managed-mcp.json");
    let refused = |reason: String| StartError::Refused(format!("{}: {reason}", file.display()));
    let config = super::read(&file, LONGEST_FILE, &Boundary::default());
    let Some(config) = config.map_err(|problem| StartError::Refused(problem.to_string()))? else {
        return Ok(None);
    };
    let entries = super::entries(config).map_err(refused)?;
    let server = |(name, entry)| ConfiguredServer {
        name,
        scope: Scope::Managed,
        file: file.clone(),
        entry,
        approval: Approval::Approved,
    };
    Ok(Some(entries.into_iter().map(server).collect()))
}
