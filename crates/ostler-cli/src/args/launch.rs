//! The options of the engine: from the command line into a [`Launch`].
//!
//! clap declares each option with its help text and checks its value. This module reads the options by name, so that
//! no option needs its own line here.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use ostler_proto::launch::{Launch, OddArgument};

/// Reads the options from the command line, and from the environment variables that stand for options.
///
/// # Errors
/// When a value is not valid although clap accepted it.
pub(super) fn of(command: &Command, matches: &ArgMatches) -> Result<Launch, OddArgument> {
    let mut launch = Launch::default();
    for arg in command.get_arguments() {
        let Some(name) = arg.get_long().filter(|name| Launch::knows(name)) else { continue };
        if let Some(values) = values(arg, matches) {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            launch.set(name, &values)?;
        }
    }
    Ok(launch)
}

/// The values of an option, empty for a flag; `None` if the option is not given.
fn values(arg: &Arg, matches: &ArgMatches) -> Option<Vec<String>> {
    let id = arg.get_id().as_str();
    let source = matches.value_source(id)?;
    if !matches!(source, ValueSource::CommandLine | ValueSource::EnvVariable) {
        return None;
    }
    if !arg.get_action().takes_values() {
        return Some(Vec::new());
    }
    let raw = matches.get_raw(id).into_iter().flatten();
    let values: Vec<String> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
    // An empty list: one empty value.
    Some(if values.is_empty() { vec![String::new()] } else { values })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use ostler_proto::launch::{
        Answerer, Effort, ReplayMatch, ReplayTiming, ReplayTools, SettingSource, Thinking,
        ThinkingDisplay, ToolSet,
    };
    use ostler_proto::permission::PermissionMode;
    use serde_json::{Value, json};

    use super::*;
    use crate::args::Args;

    fn parse(args: &[&str]) -> Launch {
        let all = std::iter::once(&"ostler").chain(args).map(Into::into);
        Args::read(all.collect()).unwrap().0.launch
    }

    /// Writes a launch as arguments and parses them again.
    fn back(launch: &Launch) -> Launch {
        let args = launch.to_args();
        parse(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The same by name and value, as in `extra_args`, without a command line.
    fn back_by_name(launch: &Launch) -> Launch {
        let mut words = launch.to_args().into_iter().skip(3).peekable();
        let mut extra = Vec::new();
        while let Some(word) = words.next() {
            let word = word.strip_prefix("--").unwrap();
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word, words.next_if(|next| !next.starts_with("--"))),
            };
            extra.push((name.to_owned(), value));
        }
        let mut launch = Launch { extra, ..Launch::default() };
        launch.take_extra().unwrap();
        launch
    }

    /// A function that sets some fields.
    macro_rules! set {
        ($($($field:ident).+ = $value:expr),*) => {
            |launch: &mut Launch| { $(launch.$($field).+ = $value;)* }
        };
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[rustfmt::skip]
    const LAUNCHES: &[fn(&mut Launch)] = &[
        |_| {},
        set!(model.name = some("m"), model.fallback = some("f")),
        set!(model.betas = list(&["a", "b"]), model.effort = Some(Effort::Max)),
        set!(model.thinking = Some(Thinking::Adaptive)),
        set!(model.thinking = Some(Thinking::Disabled)),
        set!(model.thinking = Some(Thinking::Budget(7)), model.thinking_display = Some(ThinkingDisplay::Omitted)),
        set!(limits.max_turns = Some(2), limits.max_budget_usd = Some(0.25)),
        set!(permission_mode = Some(PermissionMode::Plan)),
        set!(allow_skip_permissions = true),
        set!(permission_prompts = Some(Answerer::Host)),
        set!(permission_prompts = Some(Answerer::NoOne)),
        set!(tools = Some(ToolSet::Default)),
        set!(tools = Some(ToolSet::Only(Vec::new()))),
        set!(tools = Some(ToolSet::Only(list(&["Read", "Bash"])))),
        set!(allowed_tools = list(&["Bash(git log:*)", "Read(a, b/**)"])),
        set!(disallowed_tools = list(&["Write", "WebFetch(domain:x.y)"])),
        set!(add_dirs = list(&["/a", "-b", "c d"])),
        set!(system_prompt = some(""), append_system_prompt = some("--x")),
        set!(setting_sources = Some(Vec::new())),
        set!(setting_sources = Some(vec![SettingSource::User, SettingSource::Local])),
        set!(settings = some("{\"model\": \"x\"}")),
        set!(mcp_config = Some(json!({"mcpServers": {"a": {}}}))),
        set!(output.schema = Some(json!({"type": "object"}))),
        set!(output.partial_messages = true, output.hook_events = true),
        set!(no_session_persistence = true, session_mirror = true),
        set!(output.replay_user_messages = true, strict_mcp_config = true),
        set!(limits.task_budget = Some(9), managed_settings = some("{}")),
        set!(project_config_root = some("/p")),
        set!(permission_prompts = Some(Answerer::Tool("mcp__a__b".into()))),
        set!(tape.record = some("a b.jsonl")),
        set!(
            tape.replay = some("-a.jsonl"),
            tape.replay_tools = Some(ReplayTools::Recorded),
            tape.replay_match = Some(ReplayMatch::Loose),
            tape.replay_timing = Some(ReplayTiming::Recorded)
        ),
        set!(session.go_on = true, session.fork = true),
        set!(session.resume = some("r"), session.resume_at = some("u"), session.resume_drops_turn = some("v")),
    ];

    #[test]
    fn arguments_written_by_the_sdk_parse_to_the_same_launch() {
        for change in LAUNCHES {
            let mut launch = Launch::default();
            change(&mut launch);
            assert_eq!(back(&launch), launch, "{:?}", launch.to_args());
            assert_eq!(back_by_name(&launch), launch, "{:?}", launch.to_args());
        }
    }

    #[test]
    fn every_option_of_a_launch_is_declared() {
        let command = Args::command();
        let is_declared = |name: &str| {
            let mut args = command.get_arguments();
            args.any(|arg| {
                let aliases = arg.get_all_aliases().unwrap_or_default();
                arg.get_long() == Some(name) || aliases.contains(&name)
            })
        };
        let missing: Vec<_> = Launch::names().filter(|name| !is_declared(name)).collect();
        assert_eq!(missing, [""; 0], "declare them in `args`");
    }

    #[test]
    fn recorded_command_lines_of_the_official_sdks_parse() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/wire");
        let mut n_read = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().ends_with(".argv.json") {
                continue;
            }
            let recorded: Value =
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let words =
                recorded["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
            let all = std::iter::once("claude").chain(words).map(Into::into).collect();
            let read = Args::read(all).map(|(_, unknown)| unknown);
            let unknown = read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            // The flags of the parts that are built elsewhere.
            let expected = ["--agent", "--plugin-dir"];
            let odd = unknown.iter().find(|flag| !expected.contains(&flag.as_str()));
            assert_eq!(odd, None, "{}", path.display());
            n_read += 1;
        }
        assert!(n_read > 100, "{n_read}");
    }

    #[test]
    fn the_last_value_of_a_repeated_flag_wins() {
        let all = ["--model", "a", "--model=b", "--max-turns", "1", "--max-turns", "2"];
        let launch = parse(&all);
        assert_eq!(launch.model.name.as_deref(), Some("b"));
        assert_eq!(launch.limits.max_turns, Some(2));
    }

    #[test]
    fn mcp_servers_may_come_from_several_arguments() {
        let read =
            |args: &[&str]| parse(&[&["--input-format", "stream-json"], args].concat()).mcp_config;
        let both = Some(json!([{"mcpServers": {}}, "a.json"]));
        assert_eq!(read(&["--mcp-config", "{\"mcpServers\":{}}", "a.json"]), both);
        assert_eq!(read(&["--mcp-config", "{\"mcpServers\":{}}", "--mcp-config", "a.json"]), both);
        assert_eq!(read(&["--mcp-config=a.json"]), Some(json!("a.json")));
    }

    #[test]
    fn lists_may_be_written_in_several_ways() {
        for args in [
            &["--allowedTools", "Read,Bash(git log:*)"][..],
            &["--allowedTools", "Read", "Bash(git log:*)"],
            &["--allowed-tools", "Read Bash(git log:*)"],
            &["--allowedTools=Read", "--allowedTools=Bash(git log:*)"],
        ] {
            assert_eq!(parse(args).allowed_tools, ["Read", "Bash(git log:*)"], "{args:?}");
        }
        assert_eq!(parse(&["--setting-sources", ""]).setting_sources, Some(Vec::new()));
        assert_eq!(parse(&["--tools", ""]).tools, Some(ToolSet::Only(Vec::new())));
        assert_eq!(parse(&["--tools", "default"]).tools, Some(ToolSet::Default));
    }
}
