//! The commands that talk to a server: `ostler task …` and `ostler schedule …`.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// Which server, and how its answers are shown.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Reach {
    /// Where the server is
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8300",
        env = "OSTLER_SERVER",
        global = true
    )]
    pub(crate) server: String,

    /// Where a server on this machine keeps its token, unless OSTLER_TOKEN has it
    #[arg(long, value_name = "DIR", env = "OSTLER_DATA", global = true)]
    pub(crate) data: Option<PathBuf>,

    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Skills at work, and what they wait for.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Tasks {
    #[command(subcommand)]
    pub(crate) command: Option<TaskCommand>,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum TaskCommand {
    /// Have a skill executed
    Run(RunTask),
    /// List the tasks
    List,
    /// Show a task and how it stands
    Show { id: String },
    /// Show what happened in the last execution of a task
    Log {
        id: String,
        /// Go on until it is over
        #[arg(long, short)]
        follow: bool,
    },
    /// End the last execution of a task
    Cancel { id: String },
    /// List what waits for an answer
    Pending,
    /// Allow a tool call that waits
    Approve {
        id: String,
        /// How far it reaches
        #[arg(long, value_enum, default_value_t = Scope::Once)]
        scope: Scope,
        /// Which of the offered rules is granted; the first if absent
        #[arg(long)]
        rule: Option<String>,
        /// Grant a rule that allows every use of its tool
        #[arg(long)]
        whole_tool: bool,
        /// Let the rule also answer for runs that hooks and schedules start
        #[arg(long)]
        unattended: bool,
    },
    /// Refuse a tool call that waits, or to answer questions
    Deny {
        id: String,
        /// What the agent is told
        #[arg(long)]
        note: Option<String>,
        /// End the run, too
        #[arg(long)]
        stop: bool,
    },
    /// Answer the agent's questions, in their order: a label each, or your own words
    Answer {
        id: String,
        #[arg(required = true, value_name = "ANSWER")]
        answers: Vec<String>,
    },
}

/// What is to be executed.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunTask {
    /// The skill, by its id or name
    pub(crate) skill: String,

    /// What to do with it
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) how: HowTask,

    /// Show what happens until it is over, and ask what is to be asked
    #[arg(long, short)]
    pub(crate) follow: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct HowTask {
    /// A parameter of the skill: name=text, or name:=JSON
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) param: Vec<(String, Value)>,

    /// default, ask, acceptEdits, plan, or bypass where the operator allows it
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,

    /// What it sees of the skills: full, partial or none
    #[arg(long, value_name = "LEVEL")]
    pub(crate) isolation: Option<String>,

    /// The space it belongs to
    #[arg(long, value_name = "ID")]
    pub(crate) space: Option<String>,

    /// Where it works, as the server sees it
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
}

impl HowTask {
    pub(crate) fn values(&self) -> Map<String, Value> {
        self.param.iter().cloned().collect()
    }
}

/// How far a yes reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// This call
    Once,
    /// This session
    Session,
    /// All your sessions
    Always,
}

impl Scope {
    /// As the server calls it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

/// What is started at certain times.
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
    /// Have something started at certain times
    Add(Box<AddSchedule>),
    /// Do not follow a schedule for now
    Pause { id: String },
    /// Follow it again, from now on
    Resume { id: String },
    /// Start it now, out of turn
    Run { id: String },
    /// Forget a schedule
    Remove { id: String },
    /// Show what came of each time
    Log { id: String },
}

#[derive(Clone, Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("when").args(["cron", "every", "at"]).required(true)))]
pub(crate) struct AddSchedule {
    /// What it is called
    pub(crate) name: String,

    /// What the agent is told, in a session of its own each time
    #[arg(required_unless_present_any = ["task", "skill"])]
    pub(crate) prompt: Option<String>,

    /// Minute, hour, day of the month, month, day of the week, such as "0 9 * * 1-5"
    #[arg(long, value_name = "PLAN")]
    pub(crate) cron: Option<String>,

    /// An interval, such as 15m, 2h or 1d
    #[arg(long, value_name = "TIME")]
    pub(crate) every: Option<String>,

    /// Once, such as 2026-12-24T18:00
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,

    /// The zone of --cron and --at, such as Europe/Berlin; the server's if absent
    #[arg(long, conflicts_with = "every")]
    pub(crate) zone: Option<String>,

    /// Say it in this session instead of in a new one
    #[arg(long, value_name = "ID", conflicts_with_all = ["task", "skill"])]
    pub(crate) session: Option<String>,

    /// Execute this task instead
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["prompt", "skill", "param", "mode", "isolation", "space", "project"]
    )]
    pub(crate) task: Option<String>,

    /// Execute this skill instead, with --param
    #[arg(long, value_name = "NAME")]
    pub(crate) skill: Option<String>,

    #[command(flatten)]
    pub(crate) how: HowTask,

    /// What becomes of times at which the server was not running: skip, latest or all
    #[arg(long, value_name = "POLICY")]
    pub(crate) catch_up: Option<String>,

    /// A command that decides whether the agent is woken, word by word: --check /usr/local/bin/changed.sh --check src
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) check: Vec<String>,

    /// Tell the agent what the check printed
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
            (name, value.map_err(|error| format!("{name} is no JSON: {error}"))?)
        }
        None => (name, Value::String(value.to_owned())),
    };
    if name.is_empty() {
        return Err("a parameter has a name".to_owned());
    }
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parameter_is_text_unless_it_says_otherwise() {
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
