//! The part of the command line that programs use more often than people.

use ostler_proto::hook::SetupTrigger;
use ostler_proto::launch::{
    Answerer, Launch, ModelPrice, RecordingChoice, Thinking, ToolSet, split_rules,
};
use serde_json::Value;

/// How the model answers, which tools there are, and what programs say.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct More {
    /// How the model thinks: adaptive or disabled
    #[arg(long, value_name = "HOW", conflicts_with = "max_thinking_tokens", value_parser = ["adaptive", "disabled"])]
    thinking: Option<String>,

    /// How many tokens the model may think; 0 for none
    #[arg(long, value_name = "N")]
    max_thinking_tokens: Option<u64>,

    /// How much of its thinking is shown: summarized or omitted
    #[arg(long, value_name = "HOW", value_parser = ["summarized", "omitted"])]
    thinking_display: Option<String>,

    /// How much trouble the model takes
    #[arg(long, value_name = "HOW", value_parser = ["low", "medium", "high", "xhigh", "max"])]
    effort: Option<String>,

    /// What a model costs, in dollars per million tokens, such as `my-model=3/15`; a price for reading the cache and one
    /// for writing to it may follow, `my-model*` is every name that begins so; may be given several times
    #[arg(long, value_name = "MODEL=IN/OUT", value_parser = ModelPrice::read)]
    model_price: Vec<(String, ModelPrice)>,

    /// Beta features of the API, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    betas: Vec<String>,

    /// The tools there are, separated by commas: nothing for none, `default` for all
    #[arg(long, value_name = "LIST", num_args = 0.., require_equals = false)]
    tools: Option<Vec<String>>,

    /// Calls that run without a question, such as `Read` or `Bash(git:*)`, separated by commas
    #[arg(long, visible_alias = "allowedTools", value_name = "RULES", num_args = 1..)]
    allowed_tools: Vec<String>,

    /// Calls that never run; a tool by its name alone is not offered at all
    #[arg(long, visible_alias = "disallowedTools", value_name = "RULES", num_args = 1..)]
    disallowed_tools: Vec<String>,

    /// Another folder to work in; may be given several times
    #[arg(long, value_name = "DIR", num_args = 1..)]
    add_dir: Vec<String>,

    /// Which settings files are read: user, project, local, separated by commas; nothing for none
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = "")]
    setting_sources: Option<String>,

    /// MCP servers: JSON as in `.mcp.json`, or the path of such a file; may be given several times
    #[arg(long, value_name = "JSON-OR-FILE", num_args = 1..)]
    pub(super) mcp_config: Vec<String>,

    /// Use no MCP servers but those of --mcp-config
    #[arg(long)]
    strict_mcp_config: bool,

    /// Who answers permission questions: `stdio` for the program at the other end
    #[arg(long, value_name = "WHO", hide = true)]
    permission_prompt_tool: Option<String>,

    /// `none`: nobody answers permission questions
    #[arg(long, value_name = "WHO", hide = true, value_parser = ["none"])]
    permission_prompts: Option<String>,

    /// Write all traffic with the model to this file, without secrets [env: OSTLER_RECORD]
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<String>,

    /// Let this recording answer in the model's place, without any network [env: OSTLER_REPLAY]
    #[arg(long, value_name = "FILE")]
    replay: Option<String>,

    /// Where the results of tools come from in a replay [env: OSTLER_REPLAY_TOOLS]
    #[arg(long, value_name = "FROM", value_parser = ["real", "recorded"])]
    replay_tools: Option<String>,

    /// How alike a request must be to a recorded one [env: OSTLER_REPLAY_MATCH]
    #[arg(long, value_name = "HOW", value_parser = ["strict", "loose"])]
    replay_match: Option<String>,

    /// When the events of an answer come in a replay [env: OSTLER_REPLAY_TIMING]
    #[arg(long, value_name = "WHEN", value_parser = ["instant", "recorded"])]
    replay_timing: Option<String>,

    /// Let the mode bypassPermissions be chosen later
    #[arg(long)]
    allow_dangerously_skip_permissions: bool,

    /// Run the Setup hooks of the settings first, to prepare this folder
    #[arg(long, group = "setup")]
    init: bool,

    /// Run the Setup and SessionStart hooks of the settings, and nothing else
    #[arg(long, group = "setup")]
    init_only: bool,

    /// Run the Setup hooks of the settings first, to tend this folder
    #[arg(long, group = "setup")]
    maintenance: bool,

    /// Short for `--permission-mode bypassPermissions`
    #[arg(long)]
    dangerously_skip_permissions: bool,
}

impl More {
    /// Whether nothing is to be asked at all.
    pub(crate) fn skips_permissions(&self) -> bool {
        self.dangerously_skip_permissions
    }

    /// What hooks are to do for the folder before anything else.
    fn setup(&self) -> Option<SetupTrigger> {
        let init = (self.init || self.init_only).then_some(SetupTrigger::Init);
        init.or(self.maintenance.then_some(SetupTrigger::Maintenance))
    }

    /// What these arguments say.
    pub(super) fn launch(&self) -> Launch {
        let thinking = match self.thinking.as_deref() {
            Some("adaptive") => Some(Thinking::Adaptive),
            Some(_) => Some(Thinking::Disabled),
            None => self.max_thinking_tokens.map(Thinking::Budget),
        };
        let host = self.permission_prompt_tool.as_ref().map(|tool| match tool.as_str() {
            "stdio" => Answerer::Host,
            tool => Answerer::Tool(tool.to_owned()),
        });
        let nobody = self.permission_prompts.as_deref() == Some("none");
        Launch {
            thinking,
            thinking_display: self.thinking_display.clone(),
            effort: self.effort.clone(),
            model_prices: self.model_price.iter().cloned().collect(),
            betas: self.betas.iter().filter(|beta| !beta.is_empty()).cloned().collect(),
            tools: self.tools.as_ref().map(|tools| ToolSet::read(tools.iter().map(String::as_str))),
            allowed_tools: rules(&self.allowed_tools),
            disallowed_tools: rules(&self.disallowed_tools),
            add_dirs: self.add_dir.clone(),
            mcp_config: servers(&self.mcp_config),
            strict_mcp_config: self.strict_mcp_config,
            setting_sources: self.setting_sources.as_deref().map(words),
            permission_prompts: nobody.then_some(Answerer::NoOne).or(host),
            allow_skip_permissions: self.allow_dangerously_skip_permissions,
            tape: RecordingChoice {
                record: self.record.clone(),
                replay: self.replay.clone(),
                replay_tools: self.replay_tools.clone(),
                replay_match: self.replay_match.clone(),
                replay_timing: self.replay_timing.clone(),
            },
            setup: self.setup(),
            only_setup: self.init_only,
            ..Launch::default()
        }
    }
}

/// One place where servers stand, or a list of them.
fn servers(places: &[String]) -> Option<Value> {
    match places {
        [] => None,
        [place] => Some(json_or_path(place)),
        places => Some(places.iter().map(|place| json_or_path(place)).collect()),
    }
}

/// What does not look like JSON is a path.
fn json_or_path(text: &str) -> Value {
    serde_json::from_str(text)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn words(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn rules(lists: &[String]) -> Vec<String> {
    split_rules(lists.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use ostler_proto::launch::SessionChoice;
    use ostler_proto::permission::PermissionMode;
    use serde_json::json;

    use super::*;
    use crate::args::Args;

    /// What comes out of the arguments that a launch makes.
    fn back(launch: &Launch) -> Launch {
        let args = [vec!["ostler".to_owned()], launch.to_args()].concat();
        Args::try_parse_from(args).unwrap().launch()
    }

    /// The same without a command line: each argument by its name, as in `extra_args`.
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

    #[test]
    fn what_the_sdk_writes_is_read_as_it_was_meant() {
        let some = |text: &str| Some(text.to_owned());
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let nothing = Launch::default;
        for launch in [
            nothing(),
            Launch { model: some("m"), fallback_model: some("f"), ..nothing() },
            Launch { betas: list(&["a", "b"]), effort: some("max"), ..nothing() },
            Launch { thinking: Some(Thinking::Adaptive), ..nothing() },
            Launch { thinking: Some(Thinking::Disabled), ..nothing() },
            Launch {
                thinking: Some(Thinking::Budget(7)),
                thinking_display: some("omitted"),
                ..nothing()
            },
            Launch { max_turns: Some(2), max_budget_usd: Some(0.25), ..nothing() },
            Launch { permission_mode: Some(PermissionMode::Plan), ..nothing() },
            Launch { allow_skip_permissions: true, ..nothing() },
            Launch { permission_prompts: Some(Answerer::Host), ..nothing() },
            Launch { permission_prompts: Some(Answerer::NoOne), ..nothing() },
            Launch { tools: Some(ToolSet::Default), ..nothing() },
            Launch { tools: Some(ToolSet::Only(Vec::new())), ..nothing() },
            Launch { tools: Some(ToolSet::Only(list(&["Read", "Bash"]))), ..nothing() },
            Launch { allowed_tools: list(&["Bash(git log:*)", "Read(a, b/**)"]), ..nothing() },
            Launch { disallowed_tools: list(&["Write", "WebFetch(domain:x.y)"]), ..nothing() },
            Launch { add_dirs: list(&["/a", "-b", "c d"]), ..nothing() },
            Launch { system_prompt: some(""), append_system_prompt: some("--x"), ..nothing() },
            Launch { setting_sources: Some(Vec::new()), ..nothing() },
            Launch { setting_sources: Some(list(&["user", "local"])), ..nothing() },
            Launch { settings: some("{\"model\": \"x\"}"), ..nothing() },
            Launch { mcp_config: Some(json!({"mcpServers": {"a": {}}})), ..nothing() },
            Launch { json_schema: Some(json!({"type": "object"})), ..nothing() },
            Launch { include_partial_messages: true, include_hook_events: true, ..nothing() },
            Launch { no_session_persistence: true, session_mirror: true, ..nothing() },
            Launch { replay_user_messages: true, strict_mcp_config: true, ..nothing() },
            Launch { task_budget: Some(9), managed_settings: some("{}"), ..nothing() },
            Launch { project_config_root: some("/p"), ..nothing() },
            Launch { permission_prompts: Some(Answerer::Tool("mcp__a__b".into())), ..nothing() },
            Launch {
                tape: RecordingChoice { record: some("a b.jsonl"), ..Default::default() },
                ..nothing()
            },
            Launch {
                tape: RecordingChoice {
                    replay: some("-a.jsonl"),
                    replay_tools: some("recorded"),
                    replay_match: some("loose"),
                    replay_timing: some("recorded"),
                    ..Default::default()
                },
                ..nothing()
            },
            Launch {
                session: SessionChoice { go_on: true, fork: true, ..Default::default() },
                ..nothing()
            },
            Launch {
                session: SessionChoice {
                    resume: some("r"),
                    resume_at: some("u"),
                    resume_drops_turn: some("v"),
                    ..Default::default()
                },
                ..nothing()
            },
        ] {
            assert_eq!(back(&launch), launch, "{:?}", launch.to_args());
            assert_eq!(back_by_name(&launch), launch, "{:?}", launch.to_args());
        }
    }

    #[test]
    fn what_the_official_sdks_were_seen_to_write_is_read() {
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
            // Those of the parts that are built elsewhere.
            let expected = ["--agent", "--plugin-dir"];
            let odd = unknown.iter().find(|flag| !expected.contains(&flag.as_str()));
            assert_eq!(odd, None, "{}", path.display());
            n_read += 1;
        }
        assert!(n_read > 100, "{n_read}");
    }

    #[test]
    fn a_flag_that_comes_twice_counts_the_second_time() {
        let all = ["ostler", "--model", "a", "--model=b", "--max-turns", "1", "--max-turns", "2"];
        let launch = Args::try_parse_from(all).unwrap().launch();
        assert_eq!((launch.model.as_deref(), launch.max_turns), (Some("b"), Some(2)));
    }

    #[test]
    fn servers_may_stand_in_several_places() {
        let read = |args: &[&str]| {
            let all = [&["ostler", "--input-format", "stream-json"], args].concat();
            Args::read(all.into_iter().map(Into::into).collect()).unwrap().0.launch().mcp_config
        };
        let both = Some(json!([{"mcpServers": {}}, "a.json"]));
        assert_eq!(read(&["--mcp-config", "{\"mcpServers\":{}}", "a.json"]), both);
        assert_eq!(read(&["--mcp-config", "{\"mcpServers\":{}}", "--mcp-config", "a.json"]), both);
        assert_eq!(read(&["--mcp-config=a.json"]), Some(json!("a.json")));
    }

    #[test]
    fn lists_come_in_many_spellings() {
        let parse =
            |args: &[&str]| Args::try_parse_from([&["ostler"], args].concat()).unwrap().launch();
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
