//! Which scenario, or which test elsewhere, shows the effect of an option or a method. A missing row fails.

use super::scenarios;

/// An option of the official SDKs, and the tests that show its effect here.
struct Row {
    requirement: u16,
    option: &'static str,
    scenarios: &'static [&'static str],
    /// Tests in other files, for effects that no engine can show.
    elsewhere: &'static [&'static str],
}

const fn row(
    requirement: u16,
    option: &'static str,
    scenarios: &'static [&'static str],
    elsewhere: &'static [&'static str],
) -> Row {
    Row { requirement, option, scenarios, elsewhere }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(19, "abortController", &["opt-cancellation"], &["ostler-sdk/tests/it/requests.rs"]),
    row(20, "additionalDirectories", &["opt-additional-directories"], &[]),
    row(21, "agents", &["opt-agents"], &[]),
    row(22, "allowDangerouslySkipPermissions", &["bypass"], &["ostler-sdk/tests/it/options.rs"]),
    row(23, "allowedTools", &["allowed-tools"], &[]),
    row(24, "betas", &["opt-betas"], &[]),
    row(25, "canUseTool", &["allow", "deny", "allow-updated", "allow-perms", "deny-interrupt", "perm-throw"], &[]),
    row(26, "continue", &["resume"], &[]),
    row(27, "cwd", &["opt-cwd"], &["ostler-sdk/tests/it/errors.rs"]),
    row(28, "disallowedTools", &["tool-gone", "disallowed-rule"], &[]),
    row(29, "enableFileCheckpointing", &["checkpoint", "opt-checkpointing-off"], &[]),
    row(30, "env", &["opt-env", "opt-env-replaces", "opt-env-program"], &[]),
    row(31, "executable", &[], &["ostler-sdk/src/process/find.rs"]),
    row(32, "fallbackModel", &["opt-fallback-model"], &[]),
    row(33, "forkSession", &["fork"], &[]),
    row(34, "hooks", &["hooks", "hook-deny", "hook-allow", "hook-timeout"], &[]),
    row(35, "includePartialMessages", &["partial"], &[]),
    row(36, "maxBudgetUsd", &["budget"], &[]),
    row(37, "maxThinkingTokens", &["opt-thinking-budget", "opt-thinking-off"], &[]),
    row(38, "maxTurns", &["maxturns"], &[]),
    row(39, "mcpServers", &["mcp", "mcp-error", "mcp-program", "mcp-set-servers"], &["ostler/tests/it/servers.rs"]),
    row(40, "model", &["opt-model"], &[]),
    row(41, "outputFormat", &["structured", "structbad"], &[]),
    row(42, "pathToClaudeCodeExecutable", &["text"], &["ostler-sdk/src/process/find.rs"]),
    row(43, "permissionMode", &["opt-permission-mode", "bypass", "plan"], &[]),
    row(44, "plugins", &["opt-plugins"], &[]),
    row(45, "resume", &["resume", "resume-missing"], &[]),
    row(46, "resumeSessionAt", &["resume-at"], &[]),
    row(47, "sandbox", &[], &["ostler-sdk/tests/it/options.rs"]),
    row(48, "settingSources", &["opt-setting-sources"], &[]),
    row(49, "stderr", &[], &["ostler-sdk/tests/it/errors.rs"]),
    row(50, "systemPrompt", &["opt-system-text", "opt-system-preset", "opt-system-empty"], &[]),
    row(51, "tools", &["opt-tools"], &[]),
    // Newer options, and our own.
    row(0, "settings", &["opt-settings"], &[]),
    row(0, "effort", &["opt-effort"], &[]),
    row(0, "permission timeout", &["opt-permission-timeout"], &[]),
    row(0, "persistSession", &["ephemeral"], &[]),
    row(0, "sessionId", &["session-id"], &[]),
    row(0, "strictMcpConfig", &["mcp-strict"], &[]),
    row(0, "replayUserMessages", &["opt-replay"], &[]),
    row(0, "extraArgs", &["opt-extra-args"], &[]),
    row(0, "onUserDialog, supportedDialogKinds", &[], &["ostler-sdk/tests/it/callbacks.rs"]),
    row(0, "user", &["opt-user"], &["ostler-sdk/tests/it/options.rs"]),
    row(0, "onElicitation", &["elicit"], &["ostler-sdk/tests/it/callbacks.rs"]),
];

/// The methods of the official SDKs.
#[rustfmt::skip]
const METHODS: &[Row] = &[
    row(52, "interrupt", &["interrupt", "interrupt-idle", "interrupt-perm", "interrupt-tool"], &[]),
    row(53, "rewindFiles", &["checkpoint", "opt-checkpointing-off"], &[]),
    row(54, "setPermissionMode", &["control"], &[]),
    row(55, "setModel", &["control", "method-set-model"], &[]),
    row(56, "setMaxThinkingTokens", &["method-set-max-thinking-tokens"], &[]),
    row(57, "supportedCommands", &["requests"], &[]),
    row(58, "supportedModels", &["method-set-model"], &[]),
    row(59, "mcpServerStatus", &["mcp-control", "mcp-strict"], &[]),
    row(60, "accountInfo", &["requests"], &[]),
    row(61, "streamInput", &["method-feed-and-close"], &[]),
    row(62, "close", &["method-feed-and-close"], &["ostler-cli/tests/it/abandoned.rs"]),
    row(63, "setMcpServers", &["mcp-set-servers"], &[]),
    // Newer methods.
    row(0, "reconnectMcpServer, toggleMcpServer", &["mcp-control", "mcp-toggle"], &[]),
    row(0, "stopTask", &["bgstop"], &[]),
    row(0, "getContextUsage and all the others", &["requests"], &["ostler-sdk/tests/it/requests.rs"]),
    row(0, "reinitialize", &["requests"], &["ostler-sdk/tests/it/callbacks.rs"]),
];

#[test]
fn a_test_shows_the_effect_of_every_option_and_method() {
    let known: Vec<&str> = scenarios::all().iter().map(|scenario| scenario.name).collect();
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rows = || ROWS.iter().chain(METHODS);
    for Row { option, scenarios, elsewhere, .. } in rows() {
        assert!(!scenarios.is_empty() || !elsewhere.is_empty(), "no test shows {option}");
        for name in *scenarios {
            assert!(known.contains(name), "{option}: there is no scenario {name}");
        }
        for file in *elsewhere {
            assert!(crates.join(file).is_file(), "{option}: there is no {file}");
        }
    }
    // Users of another SDK find the option in this table.
    let documented = include_str!("../../../../ostler-sdk/src/options.rs");
    for Row { option, .. } in ROWS.iter().filter(|row| row.requirement > 0) {
        assert!(documented.contains(&format!("`{option}`")), "{option} is not in the table");
    }
    for requirement in 19..=63 {
        let rows = rows().filter(|row| row.requirement == requirement).count();
        assert_eq!(rows, 1, "R{requirement}");
    }
}
