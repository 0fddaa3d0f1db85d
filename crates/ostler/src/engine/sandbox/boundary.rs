//! The boundary of a session's commands.

use std::path::{Path, PathBuf};

use ostler_sandbox::{Boundary, EnvironmentChanges, Kind, Mapped, Network, Protected, usual};

use super::settings::SandboxRequest;
use super::{PolicyParts, PrivatePaths};

/// Variables that lead to sockets outside the sandbox.
const REMOVED: [&str; 6] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
];

pub(super) fn of(
    request: &SandboxRequest,
    parts: &PolicyParts,
    home: Option<&Path>,
    folders: &PrivatePaths,
) -> Boundary {
    let mut boundary = Boundary::default();
    boundary.writable = parts.directories.iter().chain(&request.writable).cloned().collect();
    let roots = boundary.writable.clone();
    boundary.protected = roots.iter().flat_map(|root| usual::protected(root)).collect();
    for path in request.protected.iter().chain(&parts.denied.write) {
        let is_folder = path.is_dir();
        let kind = if is_folder { Kind::Folder } else { Kind::File };
        boundary.protected.push(Protected { path: path.clone(), kind });
    }
    hide_homes(&mut boundary, home, folders);
    let target = PathBuf::from("/tmp");
    boundary.mapped.push(Mapped { source: folders.temporary.clone(), target });
    boundary.readable.extend_from_slice(&request.readable);
    boundary.hidden.extend(request.hidden.iter().chain(&parts.denied.read).cloned());
    boundary.network = match (parts.reaches_hosts, request.hosts.user_proxy) {
        (true, None) => Network::Proxy(folders.socket.clone()),
        (true, Some(_)) => Network::UserProxy(folders.socket.clone()),
        (false, _) => Network::None,
    };
    boundary.unix_sockets = request.unix_sockets.clone();
    boundary.limits = request.limits.clone();
    let removed = REMOVED.iter().map(|name| (*name).to_owned());
    boundary.environment = EnvironmentChanges {
        removed: removed.chain(request.removed_variables.iter().cloned()).collect(),
        set: [("TMPDIR".to_owned(), "/tmp".to_owned())].into(),
    };
    boundary
}

/// Hides home directories. The user's own is replaced by a private one, in which programs can be read; if commands work in
/// the home directory itself, its secrets are hidden.
fn hide_homes(boundary: &mut Boundary, home: Option<&Path>, folders: &PrivatePaths) {
    boundary.hidden.extend(usual::homes());
    let Some(home) = home else { return };
    let works_in_home = boundary.writable.iter().any(|root| home.starts_with(root));
    boundary.hidden.extend(usual::secrets(home));
    if works_in_home {
        return;
    }
    boundary.readable.extend(usual::programs(home));
    // A folder that is hidden itself is replaced, too.
    boundary.hidden.retain(|path| path != home);
    boundary.mapped.push(Mapped { source: folders.home.clone(), target: home.to_owned() });
}
