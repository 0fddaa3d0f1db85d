//! The program `bwrap`, and the command lines that build a sandbox with it.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::id_map;
use super::network::SharedNetwork;
use crate::boundary::{Boundary, Network, UnixSockets};
use crate::error::SandboxError;
use crate::plan::{self, View};
use crate::spec::{HELPER, INNER, InnerSpec, Mount, OUTER, OuterSpec, ROOT, STAGE, What};

/// Where packages install it. Never looked up by name: a file of a project must not replace it.
const KNOWN: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];

/// The program `bwrap`.
#[derive(Clone, Debug)]
pub(super) struct Bubblewrap {
    path: PathBuf,
    pub(super) version: String,
}

/// A command line, without the environment.
#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// What runs inside, and how it is started.
pub(super) struct Inside<'a> {
    pub(super) helper: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [OsString],
    pub(super) user_namespaces: bool,
    /// Whether the caller is root.
    pub(super) is_root: bool,
    /// The network that the program shares with others; `None` if it has its own.
    pub(super) network: Option<&'a SharedNetwork>,
    /// The control group that the program runs in.
    pub(super) group: Option<&'a Path>,
}

impl Bubblewrap {
    /// Finds it: at `path`, or where packages install it.
    pub(super) fn find(path: Option<&Path>) -> Result<Self, SandboxError> {
        let missing = |reason: String| {
            SandboxError::Unavailable(format!(
                "the sandbox needs bubblewrap: {reason}. Install it, on Debian or Ubuntu: sudo apt-get install bubblewrap"
            ))
        };
        let found = match path {
            Some(path) if path.is_absolute() => path.to_owned(),
            Some(path) => {
                let reason = format!("{} is not an absolute path", path.display());
                return Err(missing(reason));
            }
            None => KNOWN
                .map(PathBuf::from)
                .into_iter()
                .find(|path| path.is_file())
                .ok_or_else(|| missing(format!("none of {} exists", KNOWN.join(", "))))?,
        };
        let about = std::fs::metadata(&found)
            .map_err(|error| missing(format!("{}: {error}", found.display())))?;
        let is_trusted = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
        if about.permissions().mode() & 0o022 != 0 || !is_trusted {
            return Err(missing(format!("other users can write {}", found.display())));
        }
        let output = Command::new(&found).arg("--version").env_clear().output();
        let output = output.map_err(|error| missing(format!("{}: {error}", found.display())))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().last().unwrap_or_default().to_owned();
        match at_least(&version, (0, 8)) {
            true => Ok(Self { path: found, version }),
            false => Err(missing(format!(
                "{} is version {version:?}, and 0.8.0 is the oldest that can forbid user namespaces",
                found.display()
            ))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The command line that runs a program inside the boundary.
    pub(super) fn command(
        &self,
        boundary: &Boundary,
        inside: &Inside<'_>,
    ) -> Result<CommandLine, SandboxError> {
        let views = plan::views(boundary)?;
        if !boundary.layers.namespaces {
            let mut arguments = self.inner(boundary, inside, &views)?;
            arguments.remove(0);
            return Ok(CommandLine { program: inside.helper.to_owned(), arguments });
        }
        let mut mounts = Mounts { inside, trees: Vec::new(), all: Vec::new() };
        for (target, view) in &views {
            mounts.add(target, view)?;
        }
        mounts.add(Path::new(HELPER), &View::ReadOnly(inside.helper.to_owned()))?;
        let spec = OuterSpec {
            id: inside.is_root.then_some(id_map::ID),
            network: inside.network.map(SharedNetwork::spec),
            group: inside.group.map(Path::to_owned),
            temporary: boundary.limits.temporary,
            mounts: mounts.all,
        };
        let mut all = vec![OUTER.into(), json(&spec, inside.helper)?, self.path.clone().into()];
        all.extend(base(boundary, inside));
        all.extend(["--chdir".into(), inside.folder.into(), "--".into()]);
        all.extend(self.inner(boundary, inside, &views)?);
        Ok(CommandLine { program: inside.helper.to_owned(), arguments: all })
    }

    /// The helper inside and the program.
    fn inner(
        &self,
        boundary: &Boundary,
        inside: &Inside<'_>,
        views: &[(PathBuf, View)],
    ) -> Result<Vec<OsString>, SandboxError> {
        let is_writable =
            |view: &View| matches!(view, View::Writable(_) | View::Fixed(_) | View::Private);
        let writable = views.iter().filter(|(_, view)| is_writable(view));
        let spec = InnerSpec {
            writable: writable.map(|(path, _)| path.clone()).collect(),
            layers: boundary.layers,
            folder: (!boundary.layers.namespaces).then(|| inside.folder.to_owned()),
            proxy: boundary.network.socket().map(|_| plan::PROXY.into()),
            unix_sockets: boundary.unix_sockets != UnixSockets::None,
            user_namespaces: inside.user_namespaces,
            limits: boundary.limits.clone(),
        };
        let mut all = vec![HELPER.into(), INNER.into(), json(&spec, inside.folder)?];
        all.push(inside.program.into());
        all.extend_from_slice(inside.arguments);
        Ok(all)
    }
}

fn json(spec: &impl serde::Serialize, path: &Path) -> Result<OsString, SandboxError> {
    // Fails for paths that are not text only.
    serde_json::to_string(spec).map(Into::into).map_err(|_| SandboxError::Path(path.to_owned()))
}

/// Namespaces, and the files that the outer helper has prepared.
fn base(boundary: &Boundary, inside: &Inside<'_>) -> Vec<OsString> {
    let mut all = vec!["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"];
    all.extend(["--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL"]);
    if boundary.network != Network::Host && inside.network.is_none() {
        all.push("--unshare-net");
    }
    if !inside.user_namespaces {
        all.push("--disable-userns");
    }
    let root = format!("{STAGE}/{ROOT}");
    // All mounts in it have their restrictions already.
    all.extend(["--dev-bind", &root, "/", "--proc", "/proc"]);
    all.extend(["--ro-bind", "/proc/sys", "/proc/sys"]);
    all.into_iter().map(OsString::from).collect()
}

/// The mounts of a sandbox.
struct Mounts<'a> {
    inside: &'a Inside<'a>,
    /// The trees so far, and the user namespaces that show their owners as the sandbox's user.
    trees: Vec<(PathBuf, PathBuf)>,
    all: Vec<Mount>,
}

impl Mounts<'_> {
    fn add(&mut self, target: &Path, view: &View) -> Result<(), SandboxError> {
        let what = match view {
            View::Writable(source) => self.tree(source, true)?,
            View::ReadOnly(source) => self.tree(source, false)?,
            View::Private => What::Temporary { is_writable: true },
            View::EmptyFolder => What::Temporary { is_writable: false },
            View::EmptyFile => What::Nothing,
            View::Protected(root) => What::Part { root: root.clone(), is_writable: false },
            View::Fixed(root) => What::Part { root: root.clone(), is_writable: true },
        };
        self.all.push(Mount { target: target.to_owned(), what });
        Ok(())
    }

    fn tree(&mut self, source: &Path, is_writable: bool) -> Result<What, SandboxError> {
        let owners = match self.inside.is_root {
            true => Some(self.owners(source)?),
            false => None,
        };
        Ok(What::Tree { source: source.to_owned(), owners, is_writable })
    }

    /// The user namespace for a tree: that of a tree around it, if there is one.
    fn owners(&mut self, source: &Path) -> Result<PathBuf, SandboxError> {
        if let Some((_, owners)) = self.trees.iter().find(|(tree, _)| source.starts_with(tree)) {
            return Ok(owners.clone());
        }
        let owners = id_map::namespace_of(source, self.inside.helper);
        let owners = owners.map_err(SandboxError::io(source))?;
        self.trees.push((source.to_owned(), owners.clone()));
        Ok(owners)
    }
}

/// Whether a version is not older than another one.
fn at_least(version: &str, least: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    let (major, minor) = (numbers.next().flatten(), numbers.next().flatten());
    major.zip(minor).is_some_and(|version| version >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, is_new) in
            [("0.8.0", true), ("0.11.2", true), ("1.0", true), ("0.4.1", false), ("", false)]
        {
            assert_eq!(at_least(version, (0, 8)), is_new, "{version}");
        }
    }

    #[test]
    fn a_relative_path_is_refused() {
        let refusal = Bubblewrap::find(Some(Path::new("./bwrap"))).unwrap_err().to_string();
        assert!(refusal.contains("not an absolute path"), "{refusal}");
    }
}
