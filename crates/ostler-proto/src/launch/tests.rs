//! The arguments that a launch writes.

use serde_json::json;

use super::*;

/// The arguments without those that are always present.
fn args(launch: &Launch) -> String {
    let args = launch.to_args();
    let always = ["--output-format=stream-json", "--verbose", "--input-format=stream-json"];
    assert_eq!(args[..3], always);
    args[3..].join(" ")
}

/// A launch with some fields set.
macro_rules! set {
    ($($($field:ident).+ = $value:expr),*) => {
        |launch: &mut Launch| { $(launch.$($field).+ = $value;)* }
    };
}

type Change = fn(&mut Launch);

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn list(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[rustfmt::skip]
const OPTIONS: &[(Change, &str)] = &[
    (|_| {}, ""),
    (set!(model.name = some("m")), "--model=m"),
    (set!(model.fallback = some("f")), "--fallback-model=f"),
    (set!(setup = Some(SetupTrigger::Init)), "--init"),
    (set!(setup = Some(SetupTrigger::Maintenance)), "--maintenance"),
    (set!(setup = Some(SetupTrigger::Init), only_setup = true), "--init-only"),
    (set!(model.betas = list(&["a", "b"])), "--betas=a,b"),
    (set!(model.thinking = Some(Thinking::Adaptive)), "--thinking=adaptive"),
    (set!(model.thinking = Some(Thinking::Disabled)), "--thinking=disabled"),
    (set!(model.thinking = Some(Thinking::Budget(9))), "--max-thinking-tokens=9"),
    (set!(model.thinking_display = Some(ThinkingDisplay::Omitted)), "--thinking-display=omitted"),
    (set!(model.effort = Some(Effort::High)), "--effort=high"),
    (set!(limits.max_turns = Some(3)), "--max-turns=3"),
    (set!(limits.max_budget_usd = Some(0.5)), "--max-budget-usd=0.5"),
    (set!(limits.task_budget = Some(1000)), "--task-budget=1000"),
    (set!(permission_mode = Some(PermissionMode::AcceptEdits)), "--permission-mode=acceptEdits"),
    (set!(allow_skip_permissions = true), "--allow-dangerously-skip-permissions"),
    (set!(permission_prompts = Some(Answerer::Host)), "--permission-prompt-tool=stdio"),
    (set!(permission_prompts = Some(Answerer::NoOne)), "--permission-prompts=none"),
    (set!(permission_prompts = Some(Answerer::Tool("mcp__a__b".into()))), "--permission-prompt-tool=mcp__a__b"),
    (set!(model.prices = [("mine".to_owned(), ModelPrice::new(3.0, 15.5))].into()), "--model-price=mine=3/15.5"),
    (set!(tools = Some(ToolSet::Default)), "--tools=default"),
    (set!(tools = Some(ToolSet::Only(Vec::new()))), "--tools="),
    (set!(tools = Some(ToolSet::Only(list(&["Read", "Bash"])))), "--tools=Read,Bash"),
    (set!(allowed_tools = list(&["Bash(git:*)", "Read"])), "--allowedTools=Bash(git:*),Read"),
    (set!(disallowed_tools = list(&["Write"])), "--disallowedTools=Write"),
    (set!(add_dirs = list(&["/a", "-b"])), "--add-dir=/a --add-dir=-b"),
    (set!(system_prompt = some("")), "--system-prompt="),
    (set!(append_system_prompt = some("x y")), "--append-system-prompt=x y"),
    (set!(agent = some("reviewer")), "--agent=reviewer"),
    (set!(agents = [("a".to_owned(), Default::default())].into()), r#"--agents={"a":{"description":"","prompt":""}}"#),
    (set!(setting_sources = Some(Vec::new())), "--setting-sources="),
    (set!(setting_sources = Some(vec![SettingSource::User, SettingSource::Local])), "--setting-sources=user,local"),
    (set!(settings = some("{}")), "--settings {}"),
    (set!(mcp_config = Some(json!({"mcpServers": {}}))), r#"--mcp-config {"mcpServers":{}}"#),
    (set!(mcp_config = Some(json!([{}, "a.json"]))), "--mcp-config {} --mcp-config a.json"),
    (set!(managed_settings = some("{}")), "--managed-settings {}"),
    (set!(project_config_root = some("/p")), "--project-config-root=/p"),
    (set!(strict_mcp_config = true), "--strict-mcp-config"),
    (set!(plugin_dirs = list(&["/p"])), "--plugin-dir=/p"),
    (set!(plugin_dirs_without_servers = list(&["/p"])), "--plugin-dir-no-mcp=/p"),
    (set!(output.schema = Some(json!({"type": "object"}))), r#"--json-schema={"type":"object"}"#),
    (set!(output.partial_messages = true), "--include-partial-messages"),
    (set!(output.hook_events = true), "--include-hook-events"),
    (set!(output.replay_user_messages = true), "--replay-user-messages"),
    (set!(session.go_on = true), "--continue"),
    (set!(session.resume = some("r")), "--resume=r"),
    (set!(session.fork = true), "--fork-session"),
    (set!(session.resume_at = some("u")), "--resume-session-at=u"),
    (set!(session.resume_drops_turn = some("u")), "--resume-drops-turn=u"),
    (set!(session.id = some("i")), "--session-id=i"),
    (set!(no_session_persistence = true), "--no-session-persistence"),
    (set!(session_mirror = true), "--session-mirror"),
    (set!(tape.record = some("r")), "--record=r"),
    (set!(tape.replay = some("r"), tape.replay_tools = Some(ReplayTools::Recorded)), "--replay=r --replay-tools=recorded"),
    (set!(tape.replay_match = Some(ReplayMatch::Loose)), "--replay-match=loose"),
    (set!(tape.replay_timing = Some(ReplayTiming::Recorded)), "--replay-timing=recorded"),
    (set!(extra = vec![("a".into(), some("-1")), ("b".into(), None)]), "--a=-1 --b"),
];

#[test]
fn every_option_has_its_argument() {
    for (change, expected) in OPTIONS {
        let mut launch = Launch::default();
        change(&mut launch);
        assert_eq!(args(&launch), *expected, "{launch:?}");
    }
}

/// Hosts compare command lines, and recordings of them are fixtures.
#[test]
fn arguments_are_always_in_the_same_order() {
    let mut launch = Launch::default();
    for (change, _) in OPTIONS {
        change(&mut launch);
    }
    let names: Vec<_> = launch.to_args()[3..]
        .iter()
        .filter_map(|arg| arg.strip_prefix("--"))
        .map(|arg| arg.split('=').next().unwrap().to_owned())
        .collect();
    let expected = "model fallback-model betas max-thinking-tokens thinking-display effort max-turns max-budget-usd \
                    task-budget model-price permission-mode allow-dangerously-skip-permissions permission-prompt-tool \
                    tools allowedTools disallowedTools add-dir add-dir system-prompt append-system-prompt agent agents \
                    setting-sources settings managed-settings project-config-root mcp-config mcp-config \
                    strict-mcp-config plugin-dir plugin-dir-no-mcp json-schema include-partial-messages \
                    include-hook-events replay-user-messages continue resume fork-session resume-session-at \
                    resume-drops-turn session-id init-only no-session-persistence session-mirror record replay \
                    replay-tools replay-match replay-timing a b";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn no_two_arguments_have_the_same_name() {
    let mut names: Vec<_> = rows().flat_map(|row| row.names).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
}
