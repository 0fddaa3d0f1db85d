//! The commands that talk to a server: `ostler task …` and `ostler schedule …`.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// Which server to use, and how to print its answers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Reach {
    /// The address of the server
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8300",
        env = "OSTLER_SERVER",
        global = true
    )]
    pub(crate) server: String,

    /// The data folder of a server on this machine, which has the token if OSTLER_TOKEN is not set
    #[arg(long, value_name = "DIR", env = "OSTLER_DATA", global = true)]
    pub(crate) data: Option<PathBuf>,

    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Tasks on a server, and their approvals.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Tasks {
    #[command(subcommand)]
    pub(crate) command: Option<TaskCommand>,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum TaskCommand {
    /// Run a skill
    Run(RunTask),
    /// List the tasks
    List,
    /// Show a task and its state
    Show { id: String },
    /// Show the log of a task's last run
    Log {
        id: String,
        /// Continue until the run is over
        #[arg(long, short)]
        follow: bool,
    },
    /// Cancel the last run of a task
    Cancel { id: String },
    /// List the pending approvals and questions
    Pending,
    /// Allow a pending tool call
    Approve {
        id: String,
        /// What to allow in addition to this call
        #[arg(long, value_enum, default_value_t = Scope::Once)]
        scope: Scope,
        /// Which of the suggested rules to grant; the first by default
        #[arg(long)]
        rule: Option<String>,
        /// Grant a rule that allows every use of its tool
        #[arg(long)]
        whole_tool: bool,
        /// Let the rule also apply to runs that hooks and schedules start
        #[arg(long)]
        unattended: bool,
    },
    /// Deny a pending tool call, or decline to answer questions
    Deny {
        id: String,
        /// The reason, which the agent receives
        #[arg(long)]
        note: Option<String>,
        /// Also end the run
        #[arg(long)]
        stop: bool,
    },
    /// Answer the agent's questions in their order: for each the label of a choice, or your own text
    Answer {
        id: String,
        #[arg(required = true, value_name = "ANSWER")]
        answers: Vec<String>,
    },
}

/// `ostler task run`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunTask {
    /// The skill, by its id or name
    pub(crate) skill: String,

    /// What to do with the skill
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) how: HowTask,

    /// Show the run until it is over, and ask for its approvals here
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HowTask {
    /// A parameter of the skill: name=text, or name:=JSON
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) param: Vec<(String, Value)>,

    /// The permission mode: default, ask, acceptEdits, plan, or bypass where the operator allows it
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,

    /// Which skills the run sees: full, partial or none
    #[arg(long, value_name = "LEVEL")]
    pub(crate) isolation: Option<String>,

    /// The space of the task
    #[arg(long, value_name = "ID")]
    pub(crate) space: Option<String>,

    /// The folder in which the task works, as a path on the server
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
}

impl HowTask {
    pub(crate) fn values(&self) -> Map<String, Value> {
        self.param.iter().cloned().collect()
    }
}

/// What an approval allows in addition to the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// Only this call
    Once,
    /// Matching calls in this session
    Session,
    /// Matching calls in all your sessions
    Always,
}

impl Scope {
    /// The scope's name in the server's API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

/// Schedules on a server.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Schedules {
    #[command(subcommand)]
    pub(crate) command: Option<ScheduleCommand>,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum ScheduleCommand {
    /// List the schedules
    List,
    /// Show a schedule and its next times
    Show { id: String },
    /// Add a schedule
    Add(Box<AddSchedule>),
    /// Pause a schedule
    Pause { id: String },
    /// Resume a paused schedule, from now on
    Resume { id: String },
    /// Start a schedule now, in addition to its set times
    Run { id: String },
    /// Delete a schedule
    Remove { id: String },
    /// Show the runs that a schedule started, and what it skipped
    Log { id: String },
}

#[derive(Clone, Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("when").args(["cron", "every", "at"]).required(true)))]
pub(crate) struct AddSchedule {
    /// The name of the schedule
    pub(crate) name: String,

    /// The prompt; each time, it is sent in a new session
    #[arg(required_unless_present_any = ["task", "skill"])]
    pub(crate) prompt: Option<String>,

    /// Times as a cron expression: minute, hour, day of the month, month, day of the week, such as "0 9 * * 1-5"
    #[arg(long, value_name = "PLAN")]
    pub(crate) cron: Option<String>,

    /// Repeat at this interval, such as 15m, 2h or 1d
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<String>,

    /// Run once at this time, such as 2026-12-24T18:00
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,

    /// The time zone of --cron and --at, such as Europe/Berlin; the server's by default
    #[arg(long, conflicts_with = "every")]
    pub(crate) zone: Option<String>,

    /// Send the prompt in this session instead of a new one
    #[arg(long, value_name = "ID", conflicts_with_all = ["task", "skill"])]
    pub(crate) session: Option<String>,

    /// Run this task instead of a prompt
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["prompt", "skill", "param", "mode", "isolation", "space", "project"]
    )]
    pub(crate) task: Option<String>,

    /// Run this skill instead of a prompt, with --param
    #[arg(long, value_name = "NAME")]
    pub(crate) skill: Option<String>,

    #[command(flatten)]
    pub(crate) how: HowTask,

    /// What to do about times at which the server was not running: skip, latest or all
    #[arg(long, value_name = "POLICY")]
    pub(crate) catch_up: Option<String>,

    /// A command that decides whether to start the agent, by argument: --check /usr/local/bin/changed.sh --check src
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) check: Vec<String>,

    /// Add the output of the check to the prompt
    #[arg(long, requires = "check")]
    pub(crate) tell: bool,
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write name=text, or name:=JSON".to_owned());
    };
    let (name, value) = match name.strip_suffix(':') {
        Some(name) => {
            let value = serde_json::from_str(value);
            (
                name,
                value.map_err(|error| format!("the value of {name} is not valid JSON: {error}"))?,
            )
        }
        None => (name, Value::String(value.to_owned())),
    };
    if name.is_empty() {
        return Err("the name is missing: write name=text, or name:=JSON".to_owned());
    }
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parameter_is_text_unless_it_is_marked_as_json() {
        for (text, name, value) in [
            ("who=Ann", "who", json!("Ann")),
            ("n=7", "n", json!("7")),
            ("n:=7", "n", json!(7)),
            ("list:=[1, \"a=b\"]", "list", json!([1, "a=b"])),
            ("sum=1+1=2", "sum", json!("1+1=2")),
            ("empty=", "empty", json!("")),
        ] {
            assert_eq!(parameter(text), Ok((name.to_owned(), value)), "{text}");
        }
        for odd in ["who", "=x", ":=1", "n:=x"] {
            assert!(parameter(odd).is_err(), "{odd}");
        }
    }
}
