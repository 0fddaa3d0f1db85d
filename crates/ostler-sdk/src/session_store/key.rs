//! Names of transcripts in a store, derived from the engine's file names.

use std::path::{Component, Path};

use ostler_proto::project;

/// The name of a transcript in a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SessionKey {
    /// The project: by default [`project_key`] of the working directory.
    pub project_key: String,
    /// The session.
    pub session_id: String,
    /// The transcript of a subagent, such as `subagents/agent-1`; `None` for the conversation itself. For a store it is
    /// an opaque part of the name.
    pub subpath: Option<String>,
}

impl SessionKey {
    /// The key of a session's conversation.
    pub fn new(project_key: impl Into<String>, session_id: impl Into<String>) -> Self {
        Self { project_key: project_key.into(), session_id: session_id.into(), subpath: None }
    }

    /// The key of another transcript of the same session.
    #[must_use]
    pub fn with_subpath(mut self, subpath: impl Into<String>) -> Self {
        self.subpath = Some(subpath.into());
        self
    }

    /// The key of a file of an engine: `…/projects/<project>/<session>.jsonl`, or
    /// `…/projects/<project>/<session>/<subpath>.jsonl`. `None` for other files.
    ///
    /// Only the end of the path counts, because the engine may have another configuration folder than this process.
    pub(crate) fn of_file(path: &str) -> Option<Self> {
        let parts: Vec<&str> = Path::new(path)
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => name.to_str(),
                _ => None,
            })
            .collect();
        let projects = parts.iter().rposition(|part| *part == "projects")?;
        match parts.get(projects + 1..)? {
            [project, file] => Some(Self::new(*project, file.strip_suffix(".jsonl")?)),
            [project, session, between @ .., file] if !between.is_empty() => {
                let name = file.strip_suffix(".jsonl")?;
                let subpath = [between, &[name]].concat().join("/");
                Some(Self::new(*project, *session).with_subpath(subpath))
            }
            _ => None,
        }
    }
}

/// The key of the project in a working directory: the name of the folder in which engines store its sessions. Resolves
/// links in the path, so call it on the machine of the engine.
///
/// ```
/// assert_eq!(ostler_sdk::session_store::project_key("/no/such_folder"), "-no-such-folder");
/// ```
pub fn project_key(cwd: impl AsRef<Path>) -> String {
    let cwd = cwd.as_ref();
    let real = cwd.canonicalize().or_else(|_| std::path::absolute(cwd));
    project::folder_name(&real.unwrap_or_else(|_| cwd.to_owned()).to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_follows_from_the_path_of_the_file() {
        let main = SessionKey::new("-srv-app", "s1");
        let agent = main.clone().with_subpath("subagents/agent-1");
        let deep = main.clone().with_subpath("subagents/team/agent-1");
        for (path, key) in [
            ("/srv/me/.claude/projects/-srv-app/s1.jsonl", Some(main.clone())),
            ("/projects/x/projects/-srv-app/s1.jsonl", Some(main)),
            ("/tmp/c/projects/-srv-app/s1/subagents/agent-1.jsonl", Some(agent)),
            ("/tmp/c/projects/-srv-app/s1/subagents/team/agent-1.jsonl", Some(deep)),
            ("/tmp/c/projects/-srv-app/s1/other.jsonl", None),
            ("/tmp/c/projects/-srv-app/s1.json", None),
            ("/tmp/c/projects/s1.jsonl", None),
            ("/tmp/c/s1.jsonl", None),
            ("", None),
        ] {
            assert_eq!(SessionKey::of_file(path), key, "{path}");
        }
    }
}
