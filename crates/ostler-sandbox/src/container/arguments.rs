//! The command line of a container. Pure, except for the limits of this process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::{Engine, refused};
use crate::backend::InsideCommand;
use crate::boundary::{Boundary, UnixSockets};
use crate::environment::PACKED;
use crate::error::SandboxError;
use crate::limits::Limits;
use crate::plan::{self, View};
use crate::spec::{HELPER, INNER, InnerSpec};

/// The processes that the user inside may have on the whole machine: as many as podman lets itself have.
const PROCESSES_OF_USER: u64 = 32_768;

/// A container to start.
pub(super) struct Container<'a> {
    pub(super) engine: Engine,
    pub(super) image: &'a str,
    pub(super) helper: &'a Path,
    pub(super) name: &'a str,
    /// User and group inside.
    pub(super) user: (u32, u32),
    /// Whether the caller is root.
    pub(super) is_root: bool,
    pub(super) boundary: &'a Boundary,
    pub(super) views: &'a [(PathBuf, View)],
    pub(super) inside: &'a InsideCommand<'a>,
}

/// The arguments of podman or docker.
///
/// # Errors
/// When a path cannot be written in them.
pub(super) fn of(container: &Container<'_>) -> Result<Vec<OsString>, SandboxError> {
    let Container { engine, image, helper, name, user, is_root, boundary, views, inside } =
        container;
    let mut all: Vec<OsString> = [
        "run",
        "--rm",
        "--init",
        "--interactive",
        "--pull",
        "never",
        "--name",
        name,
        "--network",
        "none",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--read-only",
        "--hostname",
        "sandbox",
        // Only its name: the value is in the environment of the program that starts the container.
        "--env",
        PACKED,
        "--user",
    ]
    .map(OsString::from)
    .into();
    all.push(format!("{}:{}", user.0, user.1).into());
    if *engine == Engine::Podman && !is_root {
        // Otherwise this user would be root inside.
        all.extend(["--userns".into(), "keep-id".into()]);
    }
    all.extend(limits(&boundary.limits));
    for (target, view) in *views {
        all.extend(mount(target, view, views, &boundary.limits)?);
    }
    all.extend(bind(helper, Path::new(HELPER), false)?);
    all.extend(["--entrypoint".into(), HELPER.into(), image.into(), INNER.into()]);
    let spec = serde_json::to_string(&inner(boundary, views, inside));
    all.push(spec.map_err(|_| SandboxError::Path(inside.folder.to_owned()))?.into());
    all.push(inside.program.into());
    all.extend_from_slice(inside.arguments);
    Ok(all)
}

/// What the helper inside does.
fn inner(boundary: &Boundary, views: &[(PathBuf, View)], inside: &InsideCommand<'_>) -> InnerSpec {
    let is_writable =
        |view: &View| matches!(view, View::Writable(_) | View::Fixed(_) | View::Private);
    let writable = views.iter().filter(|(_, view)| is_writable(view));
    InnerSpec {
        writable: writable.map(|(path, _)| path.clone()).collect(),
        layers: boundary.layers,
        folder: Some(inside.folder.to_owned()),
        proxy: boundary.network.socket().map(|_| plan::PROXY.into()),
        unix_sockets: boundary.unix_sockets != UnixSockets::None,
        user_namespaces: false,
        // The container counts processes. The helper would count all processes that the user has on this machine.
        limits: Limits { processes: None, ..boundary.limits.clone() },
    }
}

/// Limits for all processes of the container together, and ones that this process may set at all.
fn limits(limits: &Limits) -> Vec<OsString> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: String| all.extend([name.into(), value.into()]);
    if let Some(most) = limits.processes {
        // The first process and the helper count too.
        add("--pids-limit", most.saturating_add(2).to_string());
    }
    if let Some(most) = limits.memory {
        add("--memory", format!("{most}b"));
        // Together with swap: none.
        add("--memory-swap", format!("{most}b"));
    }
    if let Some(most) = limits.temporary {
        add("--shm-size", format!("{most}b"));
    }
    add("--ulimit", "core=0:0".to_owned());
    for (resource, name, wanted) in [
        (Resource::Nofile, "nofile", limits.open_files),
        (Resource::Nproc, "nproc", Some(PROCESSES_OF_USER)),
    ] {
        // Container programs set higher ones by default, which not every process may do.
        if let Some(most) = getrlimit(resource).maximum.into_iter().chain(wanted).min() {
            add("--ulimit", format!("{name}={most}:{most}"));
        }
    }
    all
}

fn mount(
    target: &Path,
    view: &View,
    views: &[(PathBuf, View)],
    limits: &Limits,
) -> Result<Vec<OsString>, SandboxError> {
    // What is not in a folder of this machine is not in the container anyway.
    let shows_machine =
        |view: &View| !matches!(view, View::Private | View::EmptyFolder | View::EmptyFile);
    let is_visible = || {
        let around = views.iter().filter(|(path, _)| target != path && target.starts_with(path));
        around
            .max_by_key(|(path, _)| path.components().count())
            .is_some_and(|(_, view)| shows_machine(view))
    };
    match view {
        View::Writable(source) => bind(source, target, true),
        View::ReadOnly(source) => bind(source, target, false),
        View::Fixed(_) => bind(target, target, true),
        View::Protected(_) => bind(target, target, false),
        View::Private => temporary(target, "rw", limits.temporary),
        View::EmptyFolder if is_visible() => temporary(target, "ro", Some(4096)),
        View::EmptyFile if is_visible() => bind(Path::new("/dev/null"), target, false),
        View::EmptyFolder | View::EmptyFile => Ok(Vec::new()),
    }
}

fn bind(source: &Path, target: &Path, is_writable: bool) -> Result<Vec<OsString>, SandboxError> {
    let (source, target) = (plain(source)?, plain(target)?);
    let access = if is_writable { "" } else { ",readonly" };
    Ok(vec!["--mount".into(), format!("type=bind,source={source},target={target}{access}").into()])
}

fn temporary(
    target: &Path,
    access: &str,
    most: Option<u64>,
) -> Result<Vec<OsString>, SandboxError> {
    let target = plain(target)?;
    if target.contains(':') {
        return Err(cannot_write(target));
    }
    let size = most.map(|most| format!(",size={most}")).unwrap_or_default();
    Ok(vec!["--tmpfs".into(), format!("{target}:{access},nosuid,nodev,mode=1777{size}").into()])
}

/// A path as part of an argument. Commas and quotation marks would begin another part.
fn plain(path: &Path) -> Result<&str, SandboxError> {
    let text = path.to_str().ok_or_else(|| SandboxError::Path(path.to_owned()))?;
    match text.contains(|it: char| it.is_control() || matches!(it, ',' | '"')) {
        true => Err(cannot_write(text)),
        false => Ok(text),
    }
}

fn cannot_write(path: &str) -> SandboxError {
    refused(
        &format!("the path {path:?} has a comma, a colon, a quotation mark or a line break"),
        "Rename it, or set sandbox.backend to \"bubblewrap\"",
    )
}

#[cfg(test)]
mod tests;
