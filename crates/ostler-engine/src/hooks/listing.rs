//! The hooks of a session as hosts see them (`get_hooks_listing`), without the host's own callbacks.

use ostler_proto::build;
use ostler_proto::control::{HookEventInfo, HooksListingReply};
use ostler_proto::hook::HookEvent;
use serde_json::{Value, json};

use super::list::HookList;
use super::registry::{Hook, Kind};
use super::{Hooks, event};
use crate::permission::Source;

impl Hooks {
    /// All hooks from settings and plugins, and all events.
    pub(crate) fn listing(&self) -> HooksListingReply {
        self.list.listing()
    }
}

impl HookList {
    fn listing(&self) -> HooksListingReply {
        let hooks = self.now();
        let written: Vec<&Hook> =
            hooks.iter().filter(|hook| !matches!(hook.kind, Kind::Callback(_))).collect();
        let count = |event: &HookEvent| written.iter().filter(|hook| hook.event == *event).count();
        let events = HookEvent::ALL.iter().filter(|event| count(event) > 0).map(|event| {
            let HookEventInfo { name, summary, supports_matcher, .. } = info(event);
            json!({
                "name": name, "summary": summary, "supportsMatcher": supports_matcher,
                "hookCount": count(event),
            })
        });
        let of_policy = written.iter().filter(|hook| hook.source == Some(Source::Managed)).count();
        build!(HooksListingReply {
            events: events.collect(),
            hooks: written.iter().map(|hook| listed(hook)).collect(),
            event_catalog: HookEvent::ALL.iter().map(info).collect(),
            // Disabled hooks are not in the list at all.
            policy: Some(json!({
                "disabledByPolicy": false, "managedOnly": false, "pluginOnly": false,
                "allDisabled": false, "policyHookCount": of_policy,
            }))
        })
    }
}

fn listed(hook: &Hook) -> Value {
    let (kind, text, content) = match &hook.kind {
        Kind::Callback(id) => ("callback", id.clone(), "Callback"),
        Kind::Command { command, args } => {
            let words = [command.clone()].into_iter().chain(args.clone().unwrap_or_default());
            ("command", words.collect::<Vec<_>>().join(" "), "Command")
        }
        Kind::Http(http) => ("http", http.url.clone(), "URL"),
        Kind::Prompt(prompt) => ("prompt", prompt.prompt.clone(), "Prompt"),
        Kind::Mcp(mcp) => ("mcp_tool", format!("{}: {}", mcp.server, mcp.tool), "MCP tool"),
        Kind::Unsupported(kind) => (kind.as_str(), String::new(), "Unsupported"),
    };
    let (source, label) = match (&hook.plugin, hook.source) {
        (Some(_), _) => ("pluginHook", "A plugin"),
        (None, Some(source)) => place(source),
        (None, None) => ("sessionHook", "This session"),
    };
    let mut listed = json!({
        "event": hook.event, "matcher": hook.label.matcher, "source": source, "sourceLabel": label,
        "type": kind, "commandText": text, "contentLabel": content,
        "displayText": hook.label.status_message.as_ref().unwrap_or(&text),
    });
    let more = [
        ("pluginName", hook.plugin.as_ref().map(|name| json!(name))),
        ("condition", hook.condition.as_ref().map(|rule| json!(rule.to_string()))),
        ("timeout", hook.label.timeout.map(|seconds| json!(seconds))),
        ("statusMessage", hook.label.status_message.as_ref().map(|text| json!(text))),
        ("runsOnce", hook.runs_once().then_some(json!(true))),
        ("runsInBackground", hook.is_async.then_some(json!(true))),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            listed[name] = value;
        }
    }
    listed
}

fn place(source: Source) -> (&'static str, &'static str) {
    match source {
        Source::User => ("userSettings", "Your settings"),
        Source::Project => ("projectSettings", "The project's settings"),
        Source::Local => ("localSettings", "Your settings for this project"),
        Source::Flag | Source::CliArg => ("flagSettings", "The command line (--settings)"),
        Source::Session => ("sessionHook", "This session"),
        Source::Managed => ("policySettings", "The administrator's settings"),
    }
}

fn info(event: &HookEvent) -> HookEventInfo {
    build!(HookEventInfo {
        name: event.as_str().to_owned(),
        summary: summary(event).to_owned(),
        supports_matcher: event::subject(event).is_some()
    })
}

/// When an event happens, in a few words.
fn summary(event: &HookEvent) -> &'static str {
    match event {
        HookEvent::PreToolUse => "A tool is about to run",
        HookEvent::PostToolUse => "A tool has run",
        HookEvent::PostToolUseFailure => "A tool has failed",
        HookEvent::PostToolBatch => "All calls of a response are done",
        HookEvent::Notification => "The user is notified of something",
        HookEvent::UserPromptSubmit => "The user has sent a prompt",
        HookEvent::UserPromptExpansion => "A slash command is about to become a prompt",
        HookEvent::SessionStart => "A session begins",
        HookEvent::SessionEnd => "A session ends",
        HookEvent::Stop => "The agent is about to finish its turn",
        HookEvent::StopFailure => "A turn has failed",
        HookEvent::SubagentStart => "A subagent begins",
        HookEvent::SubagentStop => "A subagent is about to finish",
        HookEvent::PreCompact => "The conversation is about to be compacted",
        HookEvent::PostCompact => "The conversation has been compacted",
        HookEvent::PreModelSwitch => "Another model is requested",
        HookEvent::PostModelSwitch => "Another model answers from now on",
        HookEvent::PermissionRequest => "A call requires approval",
        HookEvent::PermissionDenied => "A call was denied without asking the user",
        HookEvent::Setup => "A folder needs setup or maintenance",
        HookEvent::TeammateIdle => "A member of a team is about to be idle",
        HookEvent::TaskCreated => "A task is added to the list",
        HookEvent::TaskCompleted => "A task on the list is done",
        HookEvent::Elicitation => "An MCP server asks the user something",
        HookEvent::ElicitationResult => "The user has answered an MCP server",
        HookEvent::ConfigChange => "Settings have changed during the session",
        HookEvent::WorktreeCreate => "A worktree is about to be created",
        HookEvent::WorktreeRemove => "A worktree is about to be removed",
        HookEvent::InstructionsLoaded => "A file with instructions was read",
        HookEvent::CwdChanged => "The shell has changed its directory",
        HookEvent::FileChanged => "A watched file has changed",
        HookEvent::DirectoryAdded => "A working directory was added",
        HookEvent::MessageDisplay => "Text of the model is about to be shown",
        _ => "An event that this version does not know",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::registry;

    #[test]
    fn hooks_are_listed_with_what_they_say_and_where_they_stand() {
        let written = json!({
            "PreToolUse": [{"matcher": "Write", "hooks": [{
                "type": "command", "command": "check", "timeout": 5, "statusMessage": "Checking",
                "if": "Write(x)",
            }]}],
            "Stop": [{"hooks": [{"type": "command", "command": "note", "async": true, "once": true}]}],
        });
        let mut hooks = registry::of_settings(&[(Source::User, written.clone())]).unwrap();
        hooks.extend(registry::of_plugin("kit", &written).unwrap());
        let listing = HookList::new(hooks).listing();
        assert_eq!(listing.events.len(), 2);
        assert_eq!(listing.events[0]["hookCount"], 2);
        assert_eq!(
            listing.hooks[0],
            json!({
                "event": "PreToolUse", "matcher": "Write", "source": "userSettings",
                "sourceLabel": "Your settings", "type": "command", "commandText": "check",
                "contentLabel": "Command", "displayText": "Checking", "condition": "Write(x)",
                "timeout": 5.0, "statusMessage": "Checking",
            })
        );
        let last = listing.hooks.last().unwrap();
        assert_eq!((&last["pluginName"], &last["runsOnce"]), (&json!("kit"), &json!(true)));
        assert_eq!(listing.event_catalog.len(), HookEvent::ALL.len());
        assert!(listing.event_catalog.iter().all(|event| !event.summary.contains("not know")));
    }
}
