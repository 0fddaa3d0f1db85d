//! What a subagent runs with: its parent's context, reduced by its kind.

use std::sync::Arc;

use ostler_proto::agent::{AgentDefinition, AgentMcpServer};
use ostler_proto::permission::PermissionMode;
use serde_json::Value;

use crate::agents::{NAME, OLD_NAME};
use crate::compact::ContextUsage;
use crate::context;
use crate::drive::TurnContext;
use crate::hooks::registry;
use crate::library::{AgentKind, Origin};
use crate::mcp::Announced;
use crate::permission::{Narrowing, Rule, names_server_tool};

/// Tools that only the conversation with the user has.
const NOT_BELOW: &[&str] =
    &[NAME, OLD_NAME, "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "StructuredOutput"];

/// What the caller of a subagent may choose in addition to its kind.
#[derive(Clone, Debug, Default)]
pub(super) struct SubagentOverrides {
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
    pub(super) mode: Option<PermissionMode>,
    pub(super) max_turns: Option<u64>,
}

/// The context of a subagent. Waits for MCP servers that still connect.
pub(super) async fn below(
    parent: &TurnContext,
    kind: &AgentKind,
    wishes: &SubagentOverrides,
) -> TurnContext {
    let mut context = context_of(parent, kind);
    context.announced = Announced::default();
    context.nested = parent.nested.unread();
    context.limited_to = Some(Arc::new(kind.definition.clone()));
    let context = context.with_server_tools().await;
    let own = parent.servers.apart();
    own_servers(&kind.definition)
        .for_each(|(name, config)| _ = own.add(name, config.clone().into()));
    let context = context.with_tools_of(&own).await;
    let is_out = |name: &str| NOT_BELOW.contains(&name) || !has_tool(&kind.definition, name);
    let mut context = without_tools(&context, is_out);
    let wanted = wishes.model.as_deref().or(kind.definition.model.as_deref());
    context.model_name = context.aliases.of_subagent(wanted, &parent.model_name).into();
    if let Some(effort) = wishes.effort.as_deref().and_then(|word| word.parse().ok()) {
        context.sampling.effort = Some(effort);
    }
    let limits = [parent.limits.max_turns, kind.definition.max_turns, wishes.max_turns];
    context.limits.max_turns = limits.into_iter().flatten().min();
    let mut narrowing = (*context.permissions.narrowing).clone();
    narrowing.mode = wishes.mode.clone().or_else(|| kind.definition.permission_mode.clone());
    context.set_permissions(context.permissions.with_narrowing(narrowing));
    context.set_deadline(None);
    context.context_usage = ContextUsage::default();
    // Only the frames of its parent name the prompts that are answered.
    context.answering = Arc::default();
    context
}

/// The context of a kind of agent, as a subagent or as the main agent: system prompt, tools, effort, hooks.
pub(crate) fn context_of(parent: &TurnContext, kind: &AgentKind) -> TurnContext {
    let AgentKind { definition, origin, hooks, .. } = kind;
    let mut context = parent.clone();
    if *origin != Origin::BuiltIn {
        context.system = system(parent, definition).into();
    }
    if let Some(effort) = definition.effort.as_ref().and_then(Value::as_str) {
        context.sampling.effort = effort.parse().ok().or(context.sampling.effort);
    }
    if let Some(window) = definition.auto_compact_window.filter(|window| *window > 0) {
        context.compaction.window = Some(window);
    }
    // Malformed hooks were reported when the file was read, or come from a host that can check them.
    if let Some(Ok(hooks)) = hooks.as_ref().map(registry::commands_of_agent) {
        context.hooks = context.hooks.with(hooks);
    }
    let narrowing = narrowed(&parent.permissions.narrowing, definition);
    context.set_permissions(context.permissions.with_narrowing(narrowing));
    without_tools(&context, |name| !has_tool(definition, name))
}

fn own_servers(
    definition: &AgentDefinition,
) -> impl Iterator<Item = (&String, &ostler_proto::mcp::McpServerConfig)> {
    let own = definition.mcp_servers.iter().flatten().filter_map(|server| match server {
        AgentMcpServer::Own(servers) => Some(servers),
        AgentMcpServer::Named(_) => None,
    });
    own.flatten()
}

fn system(parent: &TurnContext, definition: &AgentDefinition) -> String {
    let reminder = definition.critical_system_reminder.as_deref();
    let memory = match definition.omit_claude_md {
        Some(true) => &[][..],
        _ => &parent.memory[..],
    };
    context::agent_prompt(&parent.place, &definition.prompt, reminder, memory)
}

/// The context without some of the tools.
fn without_tools(context: &TurnContext, is_out: impl Fn(&str) -> bool) -> TurnContext {
    let mut tools = (*context.tools).clone();
    tools.retain(|name, _| !is_out(name));
    let mut specs = context.specs.to_vec();
    specs.retain(|spec| !is_out(&spec.name));
    let offer_base = context.offer_base.as_ref().map(|base| Arc::new(base.without_tools(is_out)));
    TurnContext { tools: Arc::new(tools), specs: Arc::new(specs), offer_base, ..context.clone() }
}

/// Whether an agent's definition gives it a tool.
pub(crate) fn has_tool(definition: &AgentDefinition, tool: &str) -> bool {
    let names = |rule: &String| names_tool(rule, tool);
    let is_listed = definition.tools.as_ref().is_none_or(|tools| tools.iter().any(names));
    // `Bash(rm:*)` takes away some calls, not the tool.
    let whole = |rule: &&String| !rule.contains('(');
    let taken = definition.disallowed_tools.iter().flatten().filter(whole).any(names);
    is_listed && !taken
}

fn names_tool(rule: &str, tool: &str) -> bool {
    let name = rule.split('(').next().unwrap_or_default().trim();
    name == "*"
        || names_server_tool(name, tool)
        || (matches!(name, NAME | OLD_NAME) && matches!(tool, NAME | OLD_NAME))
}

/// The narrowing of its definition, in addition to an earlier one.
fn narrowed(before: &Narrowing, definition: &AgentDefinition) -> Narrowing {
    let some_calls = definition.disallowed_tools.iter().flatten().filter(|it| it.contains('('));
    let deny = some_calls.map(|rule| {
        // An entry that is not a valid rule takes away all calls of the tool.
        let whole = || Rule::whole(rule.split('(').next().unwrap_or_default().trim());
        rule.parse().unwrap_or_else(|_| whole())
    });
    let mut narrowing = before.clone();
    narrowing.deny.extend(deny);
    narrowing.only.extend(Some(only(definition)).filter(|list| !list.is_empty()));
    narrowing
}

/// The entries of its list of tools that allow only some calls of a tool. A tool that is also listed as a whole is not
/// limited. An entry that is not a valid rule allows no call.
fn only(definition: &AgentDefinition) -> Vec<Rule> {
    let listed: Vec<&String> = definition.tools.iter().flatten().collect();
    let is_whole = |tool: &str| listed.iter().any(|it| it.trim() == tool || it.trim() == "*");
    let some_calls = listed.iter().filter(|it| it.contains('('));
    let rules = some_calls.map(|text| {
        let tool = text.split('(').next().unwrap_or_default().trim();
        let rule = text.trim().parse::<Rule>();
        (tool, rule.unwrap_or_else(|_| Rule::with(tool, "\0")))
    });
    let is_limit = |(tool, rule): &(&str, Rule)| rule.content.is_some() && !is_whole(tool);
    rules.filter(is_limit).map(|(_, rule)| rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(tools: Option<&[&str]>, disallowed: &[&str]) -> AgentDefinition {
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        AgentDefinition {
            tools: tools.map(owned),
            disallowed_tools: Some(owned(disallowed)),
            ..AgentDefinition::default()
        }
    }

    #[test]
    fn an_agent_has_the_tools_it_names_and_not_those_it_disallows() {
        let listed = &["Bash(git:*)", "mcp__calc__*", "mcp__web", "mcp__files__read_*"][..];
        let few = with(Some(listed), &["mcp__web__post", "mcp__*__delete_*"]);
        for (tool, has) in [
            ("Bash", true),
            ("Read", false),
            ("mcp__calc__add", true),
            ("mcp__calculator__add", false),
            ("mcp__web__get", true),
            ("mcp__web__post", false),
            ("mcp__web__delete_all", false),
            ("mcp__files__read_one", true),
            ("mcp__files__write_one", false),
        ] {
            assert_eq!(has_tool(&few, tool), has, "{tool}");
        }
        assert!(has_tool(&with(None, &["Bash(rm:*)"]), "Bash"), "only some calls are taken away");
        assert!(!has_tool(&with(None, &["Bash"]), "Bash"));
        assert!(!has_tool(&with(Some(&[]), &[]), "Read"), "an empty list means no tools");
        assert!(has_tool(&with(Some(&["*"]), &["Task"]), "Read"));
        assert!(!has_tool(&with(Some(&["*"]), &["Task"]), "Agent"));
    }

    #[test]
    fn a_disallowed_tool_with_content_becomes_a_deny_rule() {
        let definition = with(None, &["Bash(rm:*)", "Read", "Edit(!x)"]);
        let narrowing = narrowed(&Narrowing::default(), &definition);
        assert_eq!(narrowing.deny, [Rule::with("Bash", "rm:*"), Rule::whole("Edit")]);
    }

    #[test]
    fn a_tool_listed_with_content_is_limited_to_those_calls() {
        let of = |tools: &[&str]| only(&with(Some(tools), &[]));
        assert_eq!(of(&["Bash(git:*)", "Read"]), [Rule::with("Bash", "git:*")]);
        assert_eq!(of(&["Bash(git:*)", "Bash"]), [], "the whole tool is also listed");
        assert_eq!(of(&["Bash(*)"]), []);
        assert_eq!(of(&["Bash(git"]).len(), 1, "an invalid entry allows no call");
    }
}
