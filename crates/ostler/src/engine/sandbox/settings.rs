//! Reads the sandbox settings. A setting that this program cannot enforce is an error that names it, never a weaker sandbox.

use std::path::{Path, PathBuf};

use ostler_engine::permission::{Rule, SandboxPolicy};
use ostler_proto::sandbox::{SandboxFilesystem, SandboxSettings};
use ostler_sandbox::{Limits, Setup, UnixSockets};
use serde_json::Value;

use super::hosts::HostSettings;
use super::limits;

/// What the settings request, in the terms of this machine.
#[derive(Clone, Debug)]
pub(super) struct SandboxRequest {
    pub(super) writable: Vec<PathBuf>,
    pub(super) protected: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
    pub(super) hosts: HostSettings,
    pub(super) unix_sockets: UnixSockets,
    pub(super) removed_variables: Vec<String>,
    pub(super) limits: Limits,
    pub(super) setup: Setup,
    /// Protections without which the session must not start.
    pub(super) required: Vec<String>,
    pub(super) excluded: Vec<Rule>,
    /// Whether the model may ask to leave the sandbox.
    pub(super) may_leave: bool,
}

impl SandboxRequest {
    /// # Errors
    /// When a setting is invalid or cannot be enforced.
    pub(super) fn of(
        settings: &SandboxSettings,
        cwd: &Path,
        home: Option<&Path>,
    ) -> Result<Self, String> {
        refuse_unsupported(settings)?;
        let files = settings.filesystem.clone().unwrap_or_default();
        let SandboxFilesystem { allow_write, deny_write, deny_read, allow_read, .. } = files;
        let paths = |list: Option<Vec<String>>| {
            let list = list.unwrap_or_default();
            list.iter().map(|path| absolute(path, cwd, home)).collect::<Result<Vec<_>, _>>()
        };
        let mut hidden = paths(deny_read)?;
        let credentials = settings.credentials.clone().unwrap_or_default();
        let files = credentials.files.unwrap_or_default().into_iter().map(|file| file.path);
        hidden.extend(paths(Some(files.collect()))?);
        let variables = credentials.env_vars.unwrap_or_default();
        let excluded = settings.excluded_commands.iter().flatten();
        let backend = own(settings, "backend")?.unwrap_or_default();
        Ok(Self {
            writable: paths(allow_write)?,
            protected: paths(deny_write)?,
            hidden,
            readable: paths(allow_read)?,
            hosts: HostSettings::of(settings.network.as_ref())?,
            unix_sockets: unix_sockets(settings, cwd, home)?,
            removed_variables: variables.into_iter().map(|variable| variable.name).collect(),
            limits: limits::of(settings.extra.get("limits"), backend, cwd)?,
            setup: Setup {
                backend,
                container_image: own(settings, "containerImage")?,
                bubblewrap: settings.bwrap_path.as_ref().map(PathBuf::from),
                accept_weaker: settings.enable_weaker_nested_sandbox == Some(true),
                user_namespaces: settings.allow_nested_user_namespaces == Some(true),
            },
            required: own(settings, "required")?.unwrap_or_default(),
            excluded: excluded.map(|entry| SandboxPolicy::exclusion(entry)).collect(),
            may_leave: settings.allow_unsandboxed_commands != Some(false),
        })
    }
}

/// A setting of our own.
fn own<T: serde::de::DeserializeOwned>(
    settings: &SandboxSettings,
    name: &str,
) -> Result<Option<T>, String> {
    let value = settings.extra.get(name).cloned().filter(|value| *value != Value::Null);
    let read =
        |value| serde_json::from_value(value).map_err(|error| format!("sandbox.{name}: {error}"));
    value.map(read).transpose()
}

/// An absolute path for one in settings: `~/` is the home directory, others begin in the working directory.
pub(super) fn absolute(path: &str, cwd: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    // Rules write an absolute path with two slashes.
    let path = path.strip_prefix('/').filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let path = path.strip_suffix("/**").unwrap_or(path);
    if path.contains(['*', '?', '[']) {
        return Err(format!(
            "sandbox.filesystem: {path:?} has a wildcard, which the operating system cannot enforce; name the folder"
        ));
    }
    let path = match path.strip_prefix("~/") {
        Some(rest) => home.ok_or("sandbox.filesystem: HOME is not set")?.join(rest),
        None => cwd.join(path),
    };
    Ok(path.canonicalize().unwrap_or(path))
}

fn unix_sockets(
    settings: &SandboxSettings,
    cwd: &Path,
    home: Option<&Path>,
) -> Result<UnixSockets, String> {
    let network = settings.network.clone().unwrap_or_default();
    if network.allow_all_unix_sockets == Some(true) {
        return Ok(UnixSockets::All);
    }
    // An older spelling, outside of `network`.
    let old: Option<Vec<String>> = own(settings, "allowUnixSockets")?;
    let sockets: Vec<String> =
        network.allow_unix_sockets.into_iter().chain(old).flatten().collect();
    if sockets.is_empty() {
        return Ok(UnixSockets::None);
    }
    let paths = sockets.iter().map(|path| absolute(path, cwd, home));
    Ok(UnixSockets::These(paths.collect::<Result<_, _>>()?))
}

/// Refuses settings that would have no effect.
fn refuse_unsupported(settings: &SandboxSettings) -> Result<(), String> {
    let network = settings.network.clone().unwrap_or_default();
    let credentials = settings.credentials.clone().unwrap_or_default();
    let masks = |mode: &str| mode == "mask";
    let is_masked = credentials.files.iter().flatten().any(|file| masks(&file.mode))
        || credentials.env_vars.iter().flatten().any(|variable| masks(&variable.mode));
    let files = settings.filesystem.clone().unwrap_or_default();
    let unsupported = [
        (
            files.disabled == Some(true),
            "filesystem.disabled",
            "name the folders to write in filesystem.allowWrite",
        ),
        (network.tls_terminate.is_some(), "network.tlsTerminate", "remove it"),
        (is_masked, "credentials with mode mask", "use mode deny"),
        (credentials.aws_pairs.is_some(), "credentials.awsPairs", "remove it"),
        (credentials.sigv4.is_some(), "credentials.sigv4", "remove it"),
        (
            settings.enable_weaker_network_isolation == Some(true),
            "enableWeakerNetworkIsolation",
            "remove it",
        ),
        (settings.allow_apple_events == Some(true), "allowAppleEvents", "remove it on Linux"),
    ];
    match unsupported.iter().find(|(is_set, ..)| *is_set) {
        Some((_, name, way_out)) => {
            Err(format!("sandbox.{name} cannot be enforced by this program; {way_out}"))
        }
        None => Ok(()),
    }
}
