//! Warns about options that keep calls from the permission callback.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ostler_proto::permission::PermissionMode;

use super::Options;

impl Options {
    /// Warns if options keep calls from the permission callback: as an event of `tracing`, and to the listener of
    /// [`Options::on_stderr`].
    pub(crate) fn warn_of_unasked_callback(&self) {
        let Some(warning) = self.unasked_callback() else { return };
        tracing::warn!("{warning}");
        if let Some(listener) = &self.engine.stderr {
            // A panic of the listener must not end the session.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(&warning)));
        }
    }

    fn unasked_callback(&self) -> Option<String> {
        let permissions = &self.permissions;
        permissions.on_permission.as_ref()?;
        if permissions.mode == PermissionMode::BypassPermissions {
            let text = "on_permission is never called in the mode bypassPermissions; use another mode, or a PreToolUse \
                        hook, which sees every call";
            return Some(text.to_owned());
        }
        let mut tools: Vec<&str> =
            permissions.allowed.iter().filter_map(|rule| whole_tool(rule)).collect();
        tools.retain(|tool| !self.is_own_tool(tool));
        tools.dedup();
        let tools = (!tools.is_empty()).then(|| tools.join(", "))?;
        Some(format!(
            "on_permission is never called for {tools}: a rule of `allow` allows every call of a tool it names. Remove \
             it, narrow it as in `Bash(git:*)`, or use a PreToolUse hook, which sees every call"
        ))
    }

    /// Whether a tool is a function of the host; for those no warning is needed.
    fn is_own_tool(&self, tool: &str) -> bool {
        let servers = self.tools.in_process.iter().map(|server| server.name());
        servers.into_iter().any(|name| {
            let rest = tool.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(&name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("__"))
        })
    }
}

/// The tool of a rule that allows all its calls: `Read`, `Read()` or `Read(*)`.
fn whole_tool(rule: &str) -> Option<&str> {
    let rule = rule.trim();
    match rule.split_once('(') {
        None => (!rule.is_empty()).then_some(rule),
        Some((tool, rest)) => (!tool.is_empty() && matches!(rest, ")" | "*)")).then_some(tool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Server;
    use crate::permission::Decision;

    #[test]
    fn rules_that_allow_a_whole_tool_are_named_if_there_is_a_callback() {
        let asking = || Options::new().on_permission(|_| Decision::allow());
        let warning = |options: Options| options.unasked_callback().unwrap_or_default();
        let rules = ["Read", "Bash(git:*)", "Write(*)", "Glob()", "(x)", "Edit(", ""];
        let text = warning(asking().allow(rules));
        assert!(text.contains("never called for Read, Write, Glob: "), "{text}");
        assert_eq!(warning(asking().allow(["Bash(git:*)"])), "");
        assert_eq!(warning(Options::new().allow(["Read"])), "", "without a callback");
        let own = asking().server(Server::new("calc", "1"));
        assert_eq!(warning(own.clone().allow(["mcp__calc__add", "mcp__calc"])), "");
        assert!(warning(own.allow(["mcp__calculus__add"])).contains("mcp__calculus__add"));
        let free = asking().permission_mode(PermissionMode::BypassPermissions);
        assert!(warning(free).contains("bypassPermissions"));
    }

    #[test]
    fn the_warning_reaches_the_stderr_listener() {
        let (sender, received) = std::sync::mpsc::channel();
        let options = Options::new()
            .allow(["Read"])
            .on_permission(|_| Decision::allow())
            .on_stderr(move |text| sender.send(text.to_owned()).unwrap());
        options.warn_of_unasked_callback();
        assert!(received.try_recv().unwrap().contains("never called for Read"));
    }
}
