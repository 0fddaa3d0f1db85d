//! The command line.

pub(crate) mod auth;
pub(crate) mod client;
mod launch;
pub(crate) mod mcp;
mod more;
mod offers;
mod pipes;
mod scope;
pub(crate) mod serve;
#[cfg(test)]
mod table;
mod unknown;
pub(crate) mod upkeep;
mod vendor_words;
mod wire;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgGroup, ArgMatches, CommandFactory as _, FromArgMatches as _, Id, Parser};
use ostler_proto::launch::Launch;
use ostler_proto::permission::PermissionMode;
use serde_json::Value;

use self::more::More;
use self::offers::Offers;
use self::wire::Wire;

/// How many sessions `ostler sessions` lists without `--limit`.
const LISTED_SESSIONS: usize = 100;

/// Clap group of the options that only work with `--output-format stream-json`.
const FRAMES: &str = "frames";
/// Clap group of the options that only work when a program reads the output.
const PROGRAMS: &str = "programs";

/// An agent that works in this folder.
///
/// Without a prompt it opens a conversation: Ctrl-C stops the agent, Ctrl-D ends the program, /help lists the keys.
/// Before it changes anything it shows the change and asks. One key answers: once, this session, always, no.
/// Without a key, such as ANTHROPIC_API_KEY, only a conversation at a terminal starts, with a small offline demo that
/// understands a few plain sentences; OSTLER_OFFLINE=1 or --model offline-demo choose it everywhere.
/// NO_COLOR switches off colours and animation. `ostler doctor` looks for problems and says how to fix them.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    long_about,
    args_override_self = true,
    override_usage = "ostler [OPTIONS] [PROMPT]\n       ostler [OPTIONS] <COMMAND>",
    group = ArgGroup::new(FRAMES).multiple(true),
    group = ArgGroup::new(PROGRAMS).multiple(true)
)]
pub(crate) struct Args {
    #[arg(skip)]
    pub(crate) launch: Launch,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The prompt. The program answers it once and exits
    pub(crate) prompt: Option<String>,

    /// The model to use, or `offline-demo`
    #[arg(long, value_name = "NAME", env = "ANTHROPIC_MODEL")]
    model: Option<String>,

    /// How freely tools run: default, acceptEdits, plan, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE", value_parser = permission_mode, global = true)]
    permission_mode: Option<PermissionMode>,

    /// Additional settings: JSON, or the path of a file
    #[arg(long, value_name = "JSON-OR-FILE", global = true)]
    settings: Option<String>,

    /// Let this project's settings allow tools and run hooks; otherwise they can only add restrictions
    #[arg(long, global = true)]
    pub(crate) trust_project: bool,

    /// Maximum number of model calls for one prompt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_turns: Option<u64>,

    /// Maximum amount to spend, in dollars
    #[arg(long, value_name = "USD")]
    max_budget_usd: Option<f64>,

    /// Maximum number of input and output tokens for one prompt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,

    /// Time limit for one prompt, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) max_time: Option<Duration>,

    /// The model to use when the main model is overloaded
    #[arg(long, value_name = "NAME")]
    fallback_model: Option<String>,

    /// Print only the answer to the prompt and exit; there is no conversation, and no questions are asked
    #[arg(short, long)]
    pub(crate) print: bool,

    /// What --print prints: the answer, its result as JSON, or every frame of the wire protocol
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output_format: OutputFormat,

    /// What to read from standard input: a prompt as text, or frames of the wire protocol
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = InputFormat::Text)]
    pub(crate) input_format: InputFormat,

    /// Print the events of a response as they arrive (stream-json only)
    #[arg(long, group = FRAMES)]
    include_partial_messages: bool,

    /// Print when the hooks of settings files start and end (stream-json only)
    #[arg(long, group = FRAMES)]
    include_hook_events: bool,

    /// Accepted for compatibility: stream-json always prints every frame
    #[arg(long, hide = true)]
    verbose: bool,

    /// Replace the usual system prompt with this text
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,

    /// Append this text to the system prompt
    #[arg(long, value_name = "TEXT")]
    append_system_prompt: Option<String>,

    /// Continue the newest session of this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "resume", group = "earlier")]
    go_on: bool,

    /// Resume this session: its id, the beginning of its id, or its title
    #[arg(short, long, value_name = "SESSION", group = "earlier")]
    resume: Option<String>,

    /// Resume after this message and drop the messages after it
    #[arg(long, value_name = "UUID", requires = "earlier")]
    resume_session_at: Option<String>,

    /// Resume only if the dropped messages all belong to the turn of this prompt
    #[arg(long, value_name = "UUID", requires = "resume_session_at")]
    resume_drops_turn: Option<String>,

    /// Continue in a copy of the session; the original does not change
    #[arg(long)]
    fork_session: bool,

    /// The id of the new session, or of the copy
    #[arg(long, value_name = "UUID", value_parser = uuid)]
    session_id: Option<String>,

    /// Do not save this session to disk
    #[arg(long)]
    no_session_persistence: bool,

    /// The JSON schema that the answer must match
    #[arg(long, value_name = "JSON", value_parser = json)]
    json_schema: Option<Value>,

    /// Work in this folder instead of the current one
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    more: More,

    #[command(flatten)]
    offers: Offers,

    #[command(flatten)]
    pub(crate) wire: Wire,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List the sessions of this folder, newest first
    Sessions {
        /// List the sessions of all folders
        #[arg(long)]
        all: bool,
        /// Maximum number of sessions to list; 0 lists all
        #[arg(long, value_name = "N", default_value_t = LISTED_SESSIONS)]
        limit: usize,
    },
    /// Serve agents to several people: tasks, approvals and live events over HTTP
    Serve(Box<serve::Serve>),
    /// Run skills on a server, and answer their approvals
    Task(Box<client::Tasks>),
    /// Have a server run prompts, skills or tasks at set times
    Schedule(Box<client::Schedules>),
    /// Back up a server's database to one file, also while the server runs
    Backup(upkeep::Backup),
    /// Replace a server's database with a backup; the server must be stopped
    Restore(upkeep::Restore),
    /// Check a server's database, or a backup, for damage
    Check(upkeep::Check),
    /// Look for problems with the key, model, settings, MCP servers, disk and tools, and say how to fix them
    Doctor,
    /// Say whether there is a key or a login for the model
    Auth(auth::Auth),
    /// Add, list and remove MCP servers, and sign in to them
    Mcp(mcp::Mcp),
    /// Say whether a tool call would be allowed, and why, without running it
    Explain {
        /// The tool, such as Bash
        tool: String,
        /// Its input: JSON, or the plain value (the command, the file)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        input: Vec<String>,
    },
}

impl Command {
    /// The command's name on the command line.
    fn word(&self) -> &'static str {
        match self {
            Self::Sessions { .. } => "sessions",
            Self::Serve(_) => "serve",
            Self::Task(_) => "task",
            Self::Schedule(_) => "schedule",
            Self::Backup(_) => "backup",
            Self::Restore(_) => "restore",
            Self::Check(_) => "check",
            Self::Doctor => "doctor",
            Self::Auth(_) => "auth",
            Self::Mcp(_) => "mcp",
            Self::Explain { .. } => "explain",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer
    Text,
    /// The result as one JSON object
    Json,
    /// Every frame, one JSON object per line
    StreamJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum InputFormat {
    /// The prompt is on the command line, or all of standard input is the prompt
    Text,
    /// Frames, one JSON object per line
    StreamJson,
}

impl Args {
    /// Parses the command line. Also returns the flags that were left out because only a newer version knows them.
    ///
    /// # Errors
    /// When the command line is not valid, or asks for help.
    pub(crate) fn read(arguments: Vec<OsString>) -> Result<(Self, Vec<String>), clap::Error> {
        let mut command = Self::command();
        command.build();
        let unknown::Sorted { arguments, unknown } = unknown::sort(&command, arguments);
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(&arguments)?;
        let read = Self::from_arg_matches(&matches)?;
        if let Some(why) = vendor_words::refusal(read.prompt.as_deref(), &arguments) {
            return Err(command.error(ErrorKind::InvalidSubcommand, why));
        }
        let read = launch::of(&command, &matches)
            .map_err(|error| error.to_string())
            .and_then(|launch| Self { launch, ..read }.settled(&command, &matches));
        let clash = |why| command.error(ErrorKind::ArgumentConflict, why);
        Ok((read.map_err(clash)?, unknown))
    }

    /// Whether the command line comes from a program that sends frames.
    pub(crate) fn is_of_program(arguments: &[OsString]) -> bool {
        unknown::speaks_in_frames(arguments)
    }

    /// Separates commands from prompts, and rejects options that have no effect.
    fn settled(self, all: &clap::Command, matches: &ArgMatches) -> Result<Self, String> {
        if let Some((option, needs)) = self.without_effect(all, matches) {
            return Err(format!("`--{option}` has no effect here: {needs}"));
        }
        let settled = self.with_words_as_prompts()?;
        match settled.command.is_some().then(|| scope::misplaced(matches)).flatten() {
            Some(why) => Err(why),
            None => Ok(settled),
        }
    }

    /// Turns a command name into the prompt where only a prompt makes sense.
    fn with_words_as_prompts(mut self) -> Result<Self, String> {
        let Some(command) = &self.command else { return Ok(self) };
        let word = command.word();
        if let Some(prompt) = &self.prompt {
            return Err(format!(
                "`{word}` is a command and cannot follow the prompt `{prompt}`: write `ostler {word}`, or quote the whole prompt"
            ));
        }
        if !self.is_for_programs() {
            return Ok(self);
        }
        // With --print, a single word such as `doctor` is a prompt.
        let is_word = match command {
            Command::Sessions { all, limit } => !all && *limit == LISTED_SESSIONS,
            Command::Doctor => true,
            Command::Task(tasks) => tasks.command.is_none(),
            Command::Schedule(schedules) => schedules.command.is_none(),
            Command::Check(check) => check.file.is_none() && check.kept.data.is_none(),
            Command::Serve(_)
            | Command::Explain { .. }
            | Command::Auth(_)
            | Command::Mcp(_)
            | Command::Backup(_)
            | Command::Restore(_) => false,
        };
        if is_word {
            self.prompt = Some(word.to_owned());
            self.command = None;
            return Ok(self);
        }
        Err(format!("`{word}` prints for people: leave out --print and the formats"))
    }

    /// The first option that lacks the option it needs, and advice on what to do.
    fn without_effect<'c>(
        &self,
        all: &'c clap::Command,
        matches: &ArgMatches,
    ) -> Option<(&'c str, &'static str)> {
        let first_of = |group: &str| {
            let id = matches.get_many::<Id>(group)?.next()?;
            all.get_arguments().find(|arg| arg.get_id() == id)?.get_long()
        };
        let writes_frames = self.output_format == OutputFormat::StreamJson;
        let frames = first_of(FRAMES).filter(|_| !writes_frames);
        let programs = first_of(PROGRAMS).filter(|_| !self.is_for_programs());
        frames
            .map(|option| (option, "add --output-format stream-json, or leave it out"))
            .or(programs.map(|option| (option, "add --print or a format, or leave it out")))
    }

    /// Whether a program sends or reads frames.
    pub(crate) fn has_frames(&self) -> bool {
        self.output_format == OutputFormat::StreamJson
            || self.input_format == InputFormat::StreamJson
    }

    /// Whether a program sends frames.
    pub(crate) fn reads_frames(&self) -> bool {
        self.input_format == InputFormat::StreamJson
    }

    /// Whether a program reads the output, so there is no user to ask.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.print
            || self.output_format != OutputFormat::Text
            || self.input_format != InputFormat::Text
    }
}

fn json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}

/// `90s`, `10m`, `2h`, `30d`; a plain number is seconds.
fn time(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(['s', 'm', 'h', 'd']);
    let unit = match &text[number.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(24 * 3600),
        _ => None,
    };
    let seconds = number.parse::<u64>().ok().zip(unit);
    seconds
        .and_then(|(number, unit)| number.checked_mul(unit))
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
        .ok_or_else(|| "write a time such as 90s, 10m, 2h or 30d".to_owned())
}

fn uuid(text: &str) -> Result<String, String> {
    match text.parse::<uuid::Uuid>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("this is not a UUID".to_owned()),
    }
}

fn permission_mode(word: &str) -> Result<PermissionMode, String> {
    match PermissionMode::from(word) {
        PermissionMode::Other(_) | PermissionMode::Auto => {
            Err("use default, acceptEdits, plan, dontAsk or bypassPermissions".to_owned())
        }
        mode => Ok(mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Args, String> {
        let words = std::iter::once("ostler").chain(line.split(' ')).map(OsString::from);
        Args::read(words.collect()).map(|(args, _)| args).map_err(|error| error.to_string())
    }

    #[test]
    fn options_may_come_before_or_after_the_command() {
        for line in [
            "--permission-mode plan --cwd / explain Bash git log --oneline -p",
            "explain --permission-mode plan --cwd / Bash git log --oneline -p",
        ] {
            let args = parsed(line).unwrap();
            assert_eq!(args.launch.permission_mode, Some(PermissionMode::Plan), "{line}");
            assert_eq!(args.cwd, Some("/".into()), "{line}");
            let Some(Command::Explain { tool, input }) = args.command else { panic!("{line}") };
            assert_eq!((tool.as_str(), input.join(" ").as_str()), ("Bash", "git log --oneline -p"));
        }
        assert!(matches!(
            parsed("sessions --all").unwrap().command,
            Some(Command::Sessions { all: true, .. })
        ));
    }

    #[test]
    fn with_print_a_command_name_is_a_prompt() {
        for line in ["-p doctor", "--output-format json doctor", "-p -- doctor"] {
            let args = parsed(line).unwrap();
            assert!(args.command.is_none(), "{line}");
            assert_eq!(args.prompt.as_deref(), Some("doctor"), "{line}");
        }
        assert_eq!(parsed("hello").unwrap().prompt.as_deref(), Some("hello"));
    }

    #[test]
    fn times_are_written_with_a_unit() {
        for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for odd in [
            "",
            "0",
            "s",
            "1x",
            "-1s",
            "1ss",
            "99999999999999999999h",
            "18446744073709551615h",
            "1.5h",
        ] {
            assert!(time(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn errors_for_invalid_command_lines_say_what_to_do() {
        for (line, expected) in [
            ("hello doctor", "write `ostler doctor`"),
            ("-p explain Bash ls", "leave out --print"),
            ("--permission-mode sure explain Bash ls", "use default, acceptEdits, plan"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
