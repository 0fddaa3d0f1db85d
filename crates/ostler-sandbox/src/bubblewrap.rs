//! The backend for Linux: bubblewrap makes separate views of files, processes and network, the helper inside restricts
//! files and system calls again.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::boundary::{Boundary, Network, UnixSockets};
use crate::error::SandboxError;
use crate::id_map;
use crate::network::SharedNetwork;
use crate::plan::{self, View};
use crate::spec::{INNER, InnerSpec, JOIN, JoinSpec, OUTER, OuterSpec, Tree};

/// Where packages install it. Never looked up by name: a file of a project must not replace it.
const KNOWN: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
/// Where the helper is inside.
const HELPER: &str = "/run/ostler-sandbox-helper";
/// Where root stages the trees of a sandbox. The sandbox itself has its own `/tmp`.
const STAGE: &str = "/tmp";

/// The program `bwrap`.
#[derive(Clone, Debug)]
pub(crate) struct Bubblewrap {
    path: PathBuf,
    pub(crate) version: String,
}

/// A command line, without the environment.
#[derive(Clone, Debug)]
pub(crate) struct CommandLine {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

/// What runs inside, and how it is started.
pub(crate) struct Inside<'a> {
    pub(crate) helper: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [OsString],
    pub(crate) user_namespaces: bool,
    /// Whether the caller is root.
    pub(crate) is_root: bool,
    /// The network that the program shares with others; `None` if it has its own.
    pub(crate) network: Option<&'a SharedNetwork>,
}

impl Bubblewrap {
    /// Finds it: at `path`, or where packages install it.
    pub(crate) fn find(path: Option<&Path>) -> Result<Self, SandboxError> {
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
        if about.permissions().mode() & 0o022 != 0 && about.uid() != 0 {
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

    /// The command line that runs a program inside the boundary.
    pub(crate) fn command(
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
        let mut stage = Stage { is_root: inside.is_root, trees: Vec::new() };
        let mut arguments = base(boundary, inside);
        for (target, view) in &views {
            mount(&mut arguments, target, view, &mut stage);
        }
        // Only now: other mounts may need folders in them.
        for (target, _) in views.iter().filter(|(_, view)| *view == View::EmptyFolder) {
            push(&mut arguments, &["--remount-ro".as_ref(), target.as_os_str()]);
        }
        let helper = stage.show(inside.helper);
        push(&mut arguments, &["--ro-bind".as_ref(), helper.as_os_str(), HELPER.as_ref()]);
        push(&mut arguments, &["--chdir".as_ref(), inside.folder.as_os_str(), "--".as_ref()]);
        arguments.extend(self.inner(boundary, inside, &views)?);
        let network = inside.network.map(SharedNetwork::spec);
        match (inside.is_root, network) {
            (true, network) => self.outer(inside.helper, stage, network, arguments),
            (false, Some(network)) => self.join(inside.helper, &network, arguments),
            (false, None) => Ok(CommandLine { program: self.path.clone(), arguments }),
        }
    }

    /// The helper inside and the program.
    fn inner(
        &self,
        boundary: &Boundary,
        inside: &Inside<'_>,
        views: &[(PathBuf, View)],
    ) -> Result<Vec<OsString>, SandboxError> {
        let is_writable = |view: &View| matches!(view, View::Writable(_) | View::Private);
        let writable = views.iter().filter(|(_, view)| is_writable(view));
        let spec = InnerSpec {
            writable: writable.map(|(path, _)| path.clone()).collect(),
            layers: boundary.layers,
            folder: (!boundary.layers.namespaces).then(|| inside.folder.to_owned()),
            proxy: matches!(boundary.network, Network::Proxy(_)).then(|| plan::PROXY.into()),
            unix_sockets: boundary.unix_sockets != UnixSockets::None,
            user_namespaces: inside.user_namespaces,
            limits: boundary.limits.clone(),
        };
        let mut all = vec![HELPER.into(), INNER.into(), json(&spec, inside.folder)?];
        all.push(inside.program.into());
        all.extend_from_slice(inside.arguments);
        Ok(all)
    }

    /// The helper that enters the shared network and then becomes bubblewrap.
    fn join(
        &self,
        helper: &Path,
        network: &JoinSpec,
        arguments: Vec<OsString>,
    ) -> Result<CommandLine, SandboxError> {
        let mut all = vec![JOIN.into(), json(network, helper)?, self.path.clone().into()];
        all.extend(arguments);
        Ok(CommandLine { program: helper.to_owned(), arguments: all })
    }

    /// The helper that gives up root and then becomes bubblewrap.
    fn outer(
        &self,
        helper: &Path,
        stage: Stage,
        network: Option<JoinSpec>,
        arguments: Vec<OsString>,
    ) -> Result<CommandLine, SandboxError> {
        let tree = |source: PathBuf| {
            let namespace =
                id_map::namespace_of(&source, helper).map_err(SandboxError::io(&source))?;
            Ok(Tree { source, namespace })
        };
        let trees = stage.trees.into_iter().map(tree).collect::<Result<_, SandboxError>>()?;
        let spec = OuterSpec { id: id_map::ID, stage: STAGE.into(), trees, network };
        let mut all = vec![OUTER.into(), json(&spec, helper)?, self.path.clone().into()];
        all.extend(arguments);
        Ok(CommandLine { program: helper.to_owned(), arguments: all })
    }
}

fn json(spec: &impl serde::Serialize, path: &Path) -> Result<OsString, SandboxError> {
    // Fails for paths that are not text only.
    serde_json::to_string(spec).map(Into::into).map_err(|_| SandboxError::Path(path.to_owned()))
}

fn push(arguments: &mut Vec<OsString>, more: &[&std::ffi::OsStr]) {
    arguments.extend(more.iter().map(|it| (*it).to_owned()));
}

/// Namespaces, and the parts of the file system that every sandbox has.
fn base(boundary: &Boundary, inside: &Inside<'_>) -> Vec<OsString> {
    let mut all = vec!["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"];
    all.extend(["--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL"]);
    if boundary.network != Network::Host && inside.network.is_none() {
        all.push("--unshare-net");
    }
    if !inside.user_namespaces {
        all.push("--disable-userns");
    }
    all.extend(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    all.extend(["--ro-bind", "/proc/sys", "/proc/sys"]);
    all.into_iter().map(OsString::from).collect()
}

fn mount(arguments: &mut Vec<OsString>, target: &Path, view: &View, stage: &mut Stage) {
    let target = target.as_os_str();
    match view {
        View::Writable(source) => {
            push(arguments, &["--bind".as_ref(), stage.show(source).as_os_str(), target]);
        }
        View::ReadOnly(source) => {
            push(arguments, &["--ro-bind".as_ref(), stage.show(source).as_os_str(), target]);
        }
        View::Private | View::EmptyFolder => push(arguments, &["--tmpfs".as_ref(), target]),
        View::EmptyFile => {
            push(arguments, &["--ro-bind".as_ref(), "/dev/null".as_ref(), target]);
        }
    }
}

/// The trees that root shows to the sandbox's user, in a folder of their own.
struct Stage {
    is_root: bool,
    trees: Vec<PathBuf>,
}

impl Stage {
    /// Where bubblewrap finds a path.
    fn show(&mut self, source: &Path) -> PathBuf {
        if !self.is_root {
            return source.to_owned();
        }
        let known = self.trees.iter().position(|tree| source.starts_with(tree));
        let number = known.unwrap_or_else(|| {
            self.trees.push(source.to_owned());
            self.trees.len() - 1
        });
        let tree = Path::new(STAGE).join(number.to_string());
        match source.strip_prefix(&self.trees[number]) {
            Ok(rest) if rest.as_os_str().is_empty() => tree,
            Ok(rest) => tree.join(rest),
            Err(_) => tree,
        }
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
