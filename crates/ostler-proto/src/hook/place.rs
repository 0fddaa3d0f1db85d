//! Inputs of hooks about a session's environment: settings, instructions, directories, worktrees.

use ostler_proto_derive::Wire;

use super::base::with_base;

with_base! {
    /// A settings file changed.
    #[wire(new(source))]
    #[non_exhaustive]
    pub struct ConfigChangeInput {
        /// Which settings.
        pub source: ConfigSource,
        /// The file.
        pub file_path: Option<String>,
    }
}

/// Which settings changed.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum ConfigSource {
    /// The user's.
    UserSettings,
    /// The project's, shared.
    ProjectSettings,
    /// The project's, private.
    LocalSettings,
    /// The organisation's.
    PolicySettings,
    /// A skill.
    Skills,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// A file with instructions was read.
    #[wire(new(file_path, memory_type, load_reason))]
    #[non_exhaustive]
    pub struct InstructionsLoadedInput {
        /// The file.
        pub file_path: String,
        /// Whose instructions they are.
        pub memory_type: MemoryType,
        /// Why it was read.
        pub load_reason: LoadReason,
        /// The patterns that make it apply.
        pub globs: Option<Vec<String>>,
        /// The file whose use made it apply.
        pub trigger_file_path: Option<String>,
        /// The file that includes it.
        pub parent_file_path: Option<String>,
    }
}

/// Whose instructions a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(rename_all = "PascalCase")]
#[non_exhaustive]
pub enum MemoryType {
    /// The user's.
    User,
    /// The project's, shared.
    Project,
    /// The project's, private.
    Local,
    /// The organisation's.
    Managed,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Why a file with instructions was read.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum LoadReason {
    /// The session began.
    SessionStart,
    /// Work reached its directory.
    NestedTraversal,
    /// A file matched its patterns.
    PathGlobMatch,
    /// Another file includes it.
    Include,
    /// The conversation was summarised.
    Compact,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// The working directory changed.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct CwdChangedInput {
        /// The previous one.
        pub old_cwd: String,
        /// The present one.
        pub new_cwd: String,
    }
}

with_base! {
    /// A watched file changed.
    #[wire(new(file_path, event))]
    #[non_exhaustive]
    pub struct FileChangedInput {
        /// The file.
        pub file_path: String,
        /// What happened to it.
        pub event: FileEvent,
    }
}

/// What happened to a watched file.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum FileEvent {
    /// Its content changed.
    Change,
    /// It appeared.
    Add,
    /// It is gone.
    Unlink,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// A directory was added to those the agent may use.
    #[wire(new(directory, source))]
    #[non_exhaustive]
    pub struct DirectoryAddedInput {
        /// The directory.
        pub directory: String,
        /// Who added it.
        pub source: DirectorySource,
    }
}

/// Who added a directory.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum DirectorySource {
    /// The user, by a command.
    SlashCommand,
    /// The host, by a control request.
    RegisterRepoRoot,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

with_base! {
    /// A git worktree is requested.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct WorktreeCreateInput {
        /// Its name.
        pub name: String,
    }
}

with_base! {
    /// A git worktree is no longer needed.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct WorktreeRemoveInput {
        /// Its path.
        pub worktree_path: String,
    }
}
