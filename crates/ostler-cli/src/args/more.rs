//! The part of the command line that programs use more often than people.

use clap::builder::PossibleValuesParser;
use ostler_proto::launch::{
    Effort, ModelPrice, ReplayMatch, ReplayTiming, ReplayTools, ThinkingDisplay,
};

/// Options for the model, the tools, the settings and recordings.
#[derive(Debug, clap::Args)]
pub(crate) struct More {
    /// Whether the model thinks before it answers: adaptive or disabled
    #[arg(long, value_name = "HOW", conflicts_with = "max_thinking_tokens", value_parser = ["adaptive", "disabled"])]
    thinking: Option<String>,

    /// Maximum number of thinking tokens; 0 switches thinking off
    #[arg(long, value_name = "N")]
    max_thinking_tokens: Option<u64>,

    /// How the model's thinking is shown: summarized or omitted
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(ThinkingDisplay::KEYWORDS))]
    thinking_display: Option<String>,

    /// How much effort the model spends on an answer
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(Effort::KEYWORDS))]
    effort: Option<String>,

    /// The price of a model, in dollars per million tokens, such as `my-model=3/15`; prices for cache reads and writes
    /// may follow; `my-model*` is every name that begins with `my-model`; may be given several times
    #[arg(long, value_name = "MODEL=IN/OUT", value_parser = ModelPrice::read)]
    model_price: Vec<(String, ModelPrice)>,

    /// Beta features of the API, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    betas: Vec<String>,

    /// The available tools, separated by commas: empty for no tools, `default` for all
    #[arg(long, value_name = "LIST", num_args = 0.., require_equals = false)]
    tools: Option<Vec<String>>,

    /// Calls that run without approval, such as `Read` or `Bash(git:*)`, separated by commas
    #[arg(long, visible_alias = "allowedTools", value_name = "RULES", num_args = 1..)]
    allowed_tools: Vec<String>,

    /// Calls that never run; a tool given by its name alone is not offered to the model
    #[arg(long, visible_alias = "disallowedTools", value_name = "RULES", num_args = 1..)]
    disallowed_tools: Vec<String>,

    /// An additional folder to work in; may be given several times
    #[arg(long, value_name = "DIR", num_args = 1..)]
    add_dir: Vec<String>,

    /// Which settings files are read: user, project, local, separated by commas; empty for no files
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = "")]
    setting_sources: Option<String>,

    /// MCP servers: JSON as in `.mcp.json`, or the path of such a file; may be given several times
    #[arg(long, value_name = "JSON-OR-FILE", num_args = 1..)]
    mcp_config: Vec<String>,

    /// Use only the MCP servers of --mcp-config
    #[arg(long)]
    strict_mcp_config: bool,

    /// Who answers permission requests: `stdio` for the program at the other end
    #[arg(long, value_name = "WHO", hide = true)]
    permission_prompt_tool: Option<String>,

    /// `none`: permission requests are denied because there is no user to ask
    #[arg(long, value_name = "WHO", hide = true, value_parser = ["none"])]
    permission_prompts: Option<String>,

    /// Record all traffic with the model in this file, without secrets [env: OSTLER_RECORD]
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<String>,

    /// Replay this recording instead of asking the model, without any network [env: OSTLER_REPLAY]
    #[arg(long, value_name = "FILE")]
    replay: Option<String>,

    /// Where the results of tools come from in a replay [env: OSTLER_REPLAY_TOOLS]
    #[arg(long, value_name = "FROM", value_parser = PossibleValuesParser::new(ReplayTools::KEYWORDS))]
    replay_tools: Option<String>,

    /// How closely a request must match a recorded one [env: OSTLER_REPLAY_MATCH]
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(ReplayMatch::KEYWORDS))]
    replay_match: Option<String>,

    /// When the events of an answer arrive in a replay [env: OSTLER_REPLAY_TIMING]
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(ReplayTiming::KEYWORDS))]
    replay_timing: Option<String>,

    /// Allow a later switch to the mode bypassPermissions
    #[arg(long)]
    allow_dangerously_skip_permissions: bool,

    /// Run the Setup hooks of the settings first, to prepare this folder
    #[arg(long, group = "setup")]
    init: bool,

    /// Run the Setup and SessionStart hooks of the settings, and nothing else
    #[arg(long, group = "setup")]
    init_only: bool,

    /// Run the Setup hooks of the settings first, to maintain this folder
    #[arg(long, group = "setup")]
    maintenance: bool,

    /// Short for `--permission-mode bypassPermissions`
    #[arg(long)]
    dangerously_skip_permissions: bool,
}
