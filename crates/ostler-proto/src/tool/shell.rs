//! `Bash`, and `TaskOutput` and `TaskStop` for commands left running.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{Extra, Num, TaskId};

/// A command for the shell.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct BashInput {
    /// The command line.
    pub command: String,
    /// Milliseconds after which it is ended.
    pub timeout: Option<u64>,
    /// What it does, for the user.
    pub description: Option<String>,
    /// Whether to run it in the background.
    pub run_in_background: Option<bool>,
    /// Whether to run it outside the sandbox.
    #[wire(name = "dangerouslyDisableSandbox")]
    pub dangerously_disable_sandbox: Option<bool>,
    /// Unknown fields.
    pub extra: Extra,
}

/// The outcome of a command.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct BashOutput {
    /// What it wrote to its output.
    pub stdout: String,
    /// What it wrote to its error output.
    pub stderr: String,
    /// A file with the unedited output.
    pub raw_output_path: Option<String>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Whether the output is a picture.
    pub is_image: Option<bool>,
    /// The task, if it was left running.
    pub background_task_id: Option<TaskId>,
    /// Whether the user put it into the background.
    pub backgrounded_by_user: Option<bool>,
    /// The timeout that was reached, in milliseconds.
    pub timed_out_after_ms: Option<Num>,
    /// A remark on the directory it runs in.
    pub background_cwd_hint: Option<String>,
    /// Whether it will be ended with the turn.
    pub background_ends_with_final_response: Option<bool>,
    /// Whether its end starts a new turn.
    pub background_wakes_owner: Option<bool>,
    /// Whether it ran outside the sandbox.
    pub dangerously_disable_sandbox: Option<bool>,
    /// What its exit code means, where that is special.
    pub return_code_interpretation: Option<String>,
    /// Whether it is the kind of command that writes nothing.
    pub no_output_expected: Option<bool>,
    /// Content blocks, if it produced some.
    pub structured_content: Option<Vec<Value>>,
    /// A file with the whole output, if it was too long.
    pub persisted_output_path: Option<String>,
    /// The size of that file in bytes.
    pub persisted_output_size: Option<u64>,
    /// A remark that files read earlier have changed.
    pub stale_read_file_state_hint: Option<String>,
    /// A remark on GitHub's limits.
    pub gh_rate_limit_hint: Option<String>,
    /// What it did with git.
    pub git_operation: Option<GitOperation>,
    /// Unknown fields.
    pub extra: Extra,
}

/// What a command did with git.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GitOperation {
    /// A commit it made.
    pub commit: Option<GitCommit>,
    /// A push.
    pub push: Option<GitPush>,
    /// A merge or a rebase.
    pub branch: Option<GitBranch>,
    /// What it did to a pull request.
    pub pr: Option<GitPullRequest>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(sha, kind))]
#[non_exhaustive]
pub struct GitCommit {
    /// Its hash.
    pub sha: String,
    /// How it was made.
    pub kind: GitCommitKind,
    /// The branch it is on.
    pub branch: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// How a commit was made.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GitCommitKind {
    /// By committing.
    Committed,
    /// By changing the one before.
    Amended,
    /// By copying one from elsewhere.
    CherryPicked,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// A push.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct GitPush {
    /// The branch.
    pub branch: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// A merge or a rebase.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(ref, action))]
#[non_exhaustive]
pub struct GitBranch {
    /// With or onto what.
    pub r#ref: String,
    /// Which of the two.
    pub action: GitBranchAction,
    /// Unknown fields.
    pub extra: Extra,
}

/// What was done to a branch.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum GitBranchAction {
    /// Another one was merged into it.
    Merged,
    /// It was put on another base.
    Rebased,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// What was done to a pull request.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(number, action))]
#[non_exhaustive]
pub struct GitPullRequest {
    /// Its number.
    pub number: u64,
    /// Its address.
    pub url: Option<String>,
    /// What was done.
    pub action: PullRequestAction,
    /// Unknown fields.
    pub extra: Extra,
}

/// What was done to a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
#[wire(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PullRequestAction {
    /// Opened.
    Created,
    /// Edited.
    Edited,
    /// Merged.
    Merged,
    /// Commented on.
    Commented,
    /// Closed.
    Closed,
    /// Opened again.
    Reopened,
    /// Marked as ready.
    Ready,
    /// Marked as a draft.
    Draft,
    /// Set to merge by itself.
    AutoMergeEnabled,
    /// No longer set to merge by itself.
    AutoMergeDisabled,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// Asks for what a background task has written. Older peers only.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskOutputInput {
    /// The task.
    pub task_id: TaskId,
    /// Whether to wait for its end.
    pub block: Option<bool>,
    /// How many milliseconds to wait.
    pub timeout: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Ends a background task.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskStopInput {
    /// The task.
    pub task_id: Option<TaskId>,
    /// The task, by its former name.
    pub shell_id: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A background task was ended.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskStopOutput {
    /// The same as text.
    pub message: String,
    /// The task.
    pub task_id: TaskId,
    /// What it was.
    pub task_type: String,
    /// Its command line.
    pub command: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}
