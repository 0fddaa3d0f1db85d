//! Inputs of the hooks around the end of a turn, subagents, teams and their tasks.

use ostler_proto_derive::Wire;

use super::base::with_base;
use crate::message::AssistantError;
use crate::{Extra, TaskId};

with_base! {
    /// The model has finished its turn.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct StopInput {
        /// Whether a stop hook has already made it continue once.
        pub stop_hook_active: bool,
        /// The text of its last message.
        pub last_assistant_message: Option<String>,
        /// What is still running. Newer peers only.
        pub background_tasks: Option<Vec<BackgroundTask>>,
        /// What is scheduled. Newer peers only.
        pub session_crons: Option<Vec<SessionCron>>,
    }
}

with_base! {
    /// The turn ended because the model could not be reached or refused.
    #[wire(new(error))]
    #[non_exhaustive]
    pub struct StopFailureInput {
        /// The kind of failure.
        pub error: AssistantError,
        /// Details.
        pub error_details: Option<String>,
        /// The text of the last message.
        pub last_assistant_message: Option<String>,
    }
}

with_base! {
    /// A subagent begins.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct SubagentStartInput of an agent {
    }
}

with_base! {
    /// A subagent has finished.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct SubagentStopInput of an agent {
        /// Whether a stop hook has already made it continue once.
        pub stop_hook_active: bool,
        /// The file that holds its transcript.
        pub agent_transcript_path: String,
        /// The text of its last message.
        pub last_assistant_message: Option<String>,
        /// What is still running. Newer peers only.
        pub background_tasks: Option<Vec<BackgroundTask>>,
        /// What is scheduled. Newer peers only.
        pub session_crons: Option<Vec<SessionCron>>,
    }
}

/// Work that runs in the background.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct BackgroundTask {
    /// The task.
    pub id: TaskId,
    /// What it is, such as `subagent` or `shell`.
    pub r#type: String,
    /// Its status.
    pub status: String,
    /// What it is for.
    pub description: String,
    /// The command line, of a shell.
    pub command: Option<String>,
    /// The kind of agent, of a subagent.
    pub agent_type: Option<String>,
    /// The server, of an MCP task.
    pub server: Option<String>,
    /// The tool, of an MCP task.
    pub tool: Option<String>,
    /// A name given to it.
    pub name: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A prompt that this session will get at set times.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct SessionCron {
    /// The entry.
    pub id: String,
    /// When, as a cron expression.
    pub schedule: String,
    /// Whether it recurs.
    pub recurring: bool,
    /// The prompt.
    pub prompt: String,
    /// Unknown fields.
    pub extra: Extra,
}

with_base! {
    /// A member of an agent team has nothing to do.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct TeammateIdleInput {
        /// The member.
        pub teammate_name: String,
        /// The team.
        pub team_name: String,
    }
}

with_base! {
    /// An entry was added to the task list.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct TaskCreatedInput {
        /// The entry.
        pub task_id: String,
        /// Its title.
        pub task_subject: String,
        /// The work to do.
        pub task_description: Option<String>,
        /// Who added it.
        pub teammate_name: Option<String>,
        /// The team.
        pub team_name: Option<String>,
    }
}

with_base! {
    /// An entry of the task list is done.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct TaskCompletedInput {
        /// The entry.
        pub task_id: String,
        /// Its title.
        pub task_subject: String,
        /// The work that was to do.
        pub task_description: Option<String>,
        /// Who did it.
        pub teammate_name: Option<String>,
        /// The team.
        pub team_name: Option<String>,
    }
}
