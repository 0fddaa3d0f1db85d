//! Which scenario, or which test elsewhere, shows that an option does what it says. A missing row fails.

use super::scenarios;

/// An option of the official SDKs, and what shows that ours has its effect.
struct Row {
    requirement: u16,
    option: &'static str,
    scenarios: &'static [&'static str],
    /// Tests of other files, for what no engine can be asked about.
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
    row(30, "env", &["opt-env"], &[]),
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
    // Newer ones, and our own.
    row(0, "settings", &["opt-settings"], &[]),
    row(0, "effort", &["opt-effort"], &[]),
    row(0, "permission timeout", &["opt-permission-timeout"], &[]),
    row(0, "persistSession", &["ephemeral"], &[]),
    row(0, "sessionId", &["session-id"], &[]),
    row(0, "strictMcpConfig", &["mcp-strict"], &[]),
    row(0, "replayUserMessages", &["opt-replay"], &[]),
    row(0, "extraArgs", &["opt-extra-args"], &[]),
    row(0, "onElicitation", &["elicit"], &["ostler-sdk/tests/it/callbacks.rs"]),
];

#[test]
fn every_option_is_shown_to_have_its_effect() {
    let known: Vec<&str> = scenarios::all().iter().map(|scenario| scenario.name).collect();
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for Row { option, scenarios, elsewhere, .. } in ROWS {
        assert!(!scenarios.is_empty() || !elsewhere.is_empty(), "nothing shows {option}");
        for name in *scenarios {
            assert!(known.contains(name), "{option}: there is no scenario {name}");
        }
        for file in *elsewhere {
            assert!(crates.join(file).is_file(), "{option}: there is no {file}");
        }
    }
    for requirement in 19..=51 {
        let rows = ROWS.iter().filter(|row| row.requirement == requirement).count();
        assert_eq!(rows, 1, "R{requirement}");
    }
}
