//! The list of built-in tools: which name has which input and which output.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;

/// Declares [`ToolInput`] and [`ToolOutput`] from one list. The first name of a tool may be followed by other names.
macro_rules! tools {
    ($($(#[doc = $doc:literal])+ $tool:ident = $name:literal $(| $alias:literal)*: $input:ty => $output:ty,)+) => {
        /// What the model passes to a tool, by tool.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum ToolInput {
            $($(#[doc = $doc])+ $tool($input),)+
            /// A tool of an MCP server, or one this version does not know.
            #[non_exhaustive]
            Unknown {
                /// The tool.
                name: Box<str>,
                /// What the model passed to it.
                input: Value,
            },
        }

        impl ToolInput {
            /// The names of all tools this version knows.
            pub const NAMES: &[&str] = &[$($name,)+];

            /// Reads the input of a tool.
            ///
            /// # Errors
            /// When the tool is known and its input lacks a field or has one of another type.
            pub fn parse(name: &str, input: &Value) -> Result<Self, ToolShapeError> {
                match name {
                    $($name $(| $alias)* => decode(name, Side::Input, input).map(Self::$tool),)+
                    _ => Ok(Self::Unknown { name: name.into(), input: input.clone() }),
                }
            }

            /// The tool's name; the newest one if it has several.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$tool(_) => $name,)+
                    Self::Unknown { name, .. } => name,
                }
            }

            /// The input as it is on the wire.
            pub fn to_value(&self) -> Value {
                match self {
                    $(Self::$tool(input) => encode(input),)+
                    Self::Unknown { input, .. } => input.clone(),
                }
            }
        }

        $(impl From<$input> for ToolInput {
            fn from(input: $input) -> Self {
                Self::$tool(input)
            }
        })+

        /// The structured output of a tool, in addition to the text for the model, by tool.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum ToolOutput {
            $($(#[doc = $doc])+ $tool($output),)+
            /// A plain string: a failure (`Error: …`), or the result of one of a few tools.
            #[non_exhaustive]
            Text {
                /// The tool.
                name: Box<str>,
                /// The string.
                text: String,
            },
            /// A tool of an MCP server, or one this version does not know.
            #[non_exhaustive]
            Unknown {
                /// The tool.
                name: Box<str>,
                /// What it returned.
                output: Value,
            },
        }

        impl ToolOutput {
            /// Reads the output of a tool.
            ///
            /// # Errors
            /// When the tool is known and its output lacks a field or has one of another type.
            pub fn parse(name: &str, output: &Value) -> Result<Self, ToolShapeError> {
                if let Value::String(text) = output {
                    return Ok(Self::Text { name: name.into(), text: text.clone() });
                }
                match name {
                    $($name $(| $alias)* => decode(name, Side::Output, output).map(Self::$tool),)+
                    _ => Ok(Self::Unknown { name: name.into(), output: output.clone() }),
                }
            }

            /// The tool's name; the newest one if it has several.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$tool(_) => $name,)+
                    Self::Text { name, .. } | Self::Unknown { name, .. } => name,
                }
            }

            /// The output as it is on the wire.
            pub fn to_value(&self) -> Value {
                match self {
                    $(Self::$tool(output) => encode(output),)+
                    Self::Text { text, .. } => Value::String(text.clone()),
                    Self::Unknown { output, .. } => output.clone(),
                }
            }
        }
    };
}

tools! {
    /// Gives work to a subagent.
    Agent = "Agent" | "Task": AgentInput => AgentOutput,
    /// Publishes pages.
    Artifact = "Artifact": Box<ArtifactInput> => Value,
    /// Asks the user.
    AskUserQuestion = "AskUserQuestion": AskUserQuestionInput => AskUserQuestionOutput,
    /// Runs a command.
    Bash = "Bash": BashInput => Box<BashOutput>,
    /// Talks to the design service.
    ClaudeDesign = "ClaudeDesign": ClaudeDesignInput => ClaudeDesignOutput,
    /// Looks up or changes a setting.
    Config = "Config": ConfigInput => ConfigOutput,
    /// Schedules a prompt.
    CronCreate = "CronCreate": CronCreateInput => CronCreateOutput,
    /// Removes a scheduled prompt.
    CronDelete = "CronDelete": CronDeleteInput => CronDeleteOutput,
    /// Lists scheduled prompts.
    CronList = "CronList": CronListInput => CronListOutput,
    /// Replaces text in a file.
    Edit = "Edit": EditInput => EditOutput,
    /// Begins to plan.
    EnterPlanMode = "EnterPlanMode": EnterPlanModeInput => EnterPlanModeOutput,
    /// Moves work to a worktree.
    EnterWorktree = "EnterWorktree": EnterWorktreeInput => EnterWorktreeOutput,
    /// Presents a plan.
    ExitPlanMode = "ExitPlanMode": ExitPlanModeInput => ExitPlanModeOutput,
    /// Leaves a worktree.
    ExitWorktree = "ExitWorktree": ExitWorktreeInput => ExitWorktreeOutput,
    /// Finds files by name.
    Glob = "Glob": GlobInput => GlobOutput,
    /// Finds text in files.
    Grep = "Grep": GrepInput => GrepOutput,
    /// Lists resources of MCP servers.
    ListMcpResources = "ListMcpResourcesTool": ListMcpResourcesInput => Vec<McpResource>,
    /// Watches something.
    Monitor = "Monitor": MonitorInput => MonitorOutput,
    /// Changes a notebook.
    NotebookEdit = "NotebookEdit": NotebookEditInput => NotebookEditOutput,
    /// Offers to connect a browser.
    OfferChromeSetup = "OfferChromeSetup": OfferChromeSetupInput => OfferChromeSetupOutput,
    /// Works with a project's documents.
    Projects = "Projects": ProjectsInput => ProjectsOutput,
    /// Proposes a goal.
    ProposeGoal = "ProposeGoal": ProposeGoalInput => ProposeGoalOutput,
    /// Proposes skills.
    ProposeSkills = "propose_skills": ProposeSkillsInput => ProposeSkillsOutput,
    /// Sends a message to the user's devices.
    PushNotification = "PushNotification": PushNotificationInput => PushNotificationOutput,
    /// Reads a file.
    Read = "Read": ReadInput => ReadOutput,
    /// Reads a resource of an MCP server.
    ReadMcpResource = "ReadMcpResourceTool": ReadMcpResourceInput => ReadMcpResourceOutput,
    /// Lists a directory of resources.
    ReadMcpResourceDir = "ReadMcpResourceDirTool": ReadMcpResourceDirInput => ReadMcpResourceDirOutput,
    /// Reads notifications received meanwhile.
    ReadNotifications = "ReadNotifications": ReadNotificationsInput => ReadNotificationsOutput,
    /// Asks MCP servers for their tools again.
    RefreshMcpTools = "RefreshMcpTools": RefreshMcpToolsInput => Vec<McpRefresh>,
    /// Handles agents that run elsewhere.
    RemoteTrigger = "RemoteTrigger": RemoteTriggerInput => RemoteTriggerOutput,
    /// Reports what a review has found.
    ReportFindings = "ReportFindings": ReportFindingsInput => ReportFindingsOutput,
    /// Asks to be woken.
    ScheduleWakeup = "ScheduleWakeup": ScheduleWakeupInput => ScheduleWakeupOutput,
    /// Reports to the makers of the agent.
    SendFeedback = "SendFeedback": SendFeedbackInput => SendFeedbackOutput,
    /// Asks the user for their role.
    ShowOnboardingRolePicker = "ShowOnboardingRolePicker": ShowOnboardingRolePickerInput => ShowOnboardingRolePickerOutput,
    /// Uses a skill.
    Skill = "Skill": SkillInput => Value,
    /// Subscribes to a resource.
    SubscribeMcpResource = "SubscribeMcpResource": SubscribeMcpResourceInput => SubscribeOutput,
    /// Polls a tool or resource.
    SubscribePolling = "SubscribePolling": SubscribePollingInput => SubscribeOutput,
    /// Adds to the task list.
    TaskCreate = "TaskCreate": TaskCreateInput => TaskCreateOutput,
    /// Looks up an entry of the task list.
    TaskGet = "TaskGet": TaskGetInput => TaskGetOutput,
    /// Shows the task list.
    TaskList = "TaskList": TaskListInput => TaskListOutput,
    /// Reads what a background task has written.
    TaskOutput = "TaskOutput": TaskOutputInput => Value,
    /// Ends a background task.
    TaskStop = "TaskStop": TaskStopInput => TaskStopOutput,
    /// Changes an entry of the task list.
    TaskUpdate = "TaskUpdate": TaskUpdateInput => TaskUpdateOutput,
    /// Writes the to-do list.
    TodoWrite = "TodoWrite": TodoWriteInput => TodoWriteOutput,
    /// Unsubscribes from a resource.
    UnsubscribeMcpResource = "UnsubscribeMcpResource": UnsubscribeMcpResourceInput => UnsubscribeOutput,
    /// Ends a poll.
    UnsubscribePolling = "UnsubscribePolling": UnsubscribePollingInput => UnsubscribeOutput,
    /// Fetches a page.
    WebFetch = "WebFetch": WebFetchInput => WebFetchOutput,
    /// Searches the web.
    WebSearch = "WebSearch": WebSearchInput => WebSearchOutput,
    /// Runs a script that directs agents.
    Workflow = "Workflow": WorkflowInput => WorkflowOutput,
    /// Writes a file.
    Write = "Write": WriteInput => WriteOutput,
}

impl ToolOutput {
    /// What went wrong, if the tool failed with an error message.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => text.strip_prefix("Error: "),
            _ => None,
        }
    }
}

fn decode<T: DeserializeOwned>(tool: &str, side: Side, value: &Value) -> Result<T, ToolShapeError> {
    T::deserialize(value).map_err(|error| ToolShapeError::new(tool, side, error))
}

fn encode<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("wire types have string keys only and no failing parts")
}
