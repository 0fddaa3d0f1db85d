//! Reading agents, commands, skills, styles and plugins from folders.

use std::fs;

use ostler_proto::permission::PermissionMode;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// A home and a project with the given files.
fn library(files: &[(&str, &str)], trusts_project: bool) -> (TempDir, Library) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let library = load(&Places {
        user: Some(folder.path().join("home/.claude")),
        project: Some(folder.path().join("project")),
        trusts_project,
        added: vec![folder.path().join("added")],
        plugins: vec![folder.path().join("plug")],
        ..Places::default()
    });
    (folder, library)
}

fn names(library: &Library) -> Vec<&str> {
    library.commands.iter().map(|command| command.name.as_str()).collect()
}

#[test]
fn an_agent_is_a_head_and_a_prompt() {
    let text = "---\nname: fixer\ndescription: Fixes\ntools: Bash, Read\nmodel: haiku\nmaxTurns: 3\n\
                permissionMode: plan\ncolor: red\n---\nYou fix.\n";
    let (_folder, library) = library(&[("project/.claude/agents/any.md", text)], false);
    let AgentDefinition { description, prompt, tools, model, max_turns, permission_mode, .. } =
        library.agents["fixer"].definition.clone();
    assert_eq!((description.as_str(), prompt.as_str()), ("Fixes", "You fix."));
    assert_eq!(tools.unwrap(), ["Bash", "Read"]);
    assert_eq!((model.as_deref(), max_turns), (Some("haiku"), Some(3)));
    assert_eq!(permission_mode, Some(PermissionMode::Plan));
    assert_eq!(library.agents["fixer"].definition.extra, Default::default());
}

#[test]
fn the_project_wins_over_the_user_and_malformed_files_are_reported() {
    let files = [
        ("home/.claude/agents/a.md", "---\ndescription: of the user\n---\nx"),
        ("project/.claude/agents/a.md", "---\ndescription: of the project\n---\nx"),
        ("project/.claude/agents/b.md", "no head"),
        ("project/.claude/agents/c.md", "---\ndescription: x\nmaxTurns: many\n---\n"),
        ("project/.claude/commands/bad name.md", "x"),
        ("project/.claude/skills/empty/SKILL.md", "no head"),
        ("plug/commands/fine.md", "x"),
    ];
    let (_folder, library) = library(&files, false);
    assert_eq!(library.agents["a"].definition.description, "of the project");
    assert_eq!(library.agents.len(), 1);
    let reasons: Vec<&str> = library.problems.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert!(reasons[0].contains("no description"), "{reasons:?}");
    assert!(reasons[1].contains("maxTurns"), "{reasons:?}");
}

// Mutant: `take_agent_files` that reports none.
#[test]
fn fields_of_an_agent_without_effect_are_reported_and_the_agent_is_used() {
    let text = "---\ndescription: x\nmemory: user\nobserver: b\nobserverMessage: look\ninitialPrompt: begin\n---\nx";
    let files = [
        ("project/.claude/agents/a.md", text),
        ("project/.claude/agents/b.md", "---\ndescription: x\n---\n"),
    ];
    let (_folder, library) = library(&files, false);
    assert_eq!(library.agents.len(), 2);
    let reasons: Vec<&str> = library.problems.iter().map(|it| it.reason.as_str()).collect();
    // The other one is about the plugin of these tests, which is not there.
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    let fields = "the agent a is used without initialPrompt, memory, observer, observerMessage,";
    assert!(reasons[0].starts_with(fields), "{reasons:?}");
}

#[test]
fn files_of_a_project_grant_nothing_unless_the_user_trusts_it() {
    let agent =
        "---\ndescription: x\nhooks: {Stop: []}\nmcpServers: [{own: {command: run-me}}]\n---\n";
    let command = "---\ndescription: x\nallowed-tools: Bash(git:*)\n---\n";
    let files =
        [("project/.claude/agents/a.md", agent), ("project/.claude/commands/c.md", command)];
    let (_folder, untrusted) = library(&files, false);
    assert_eq!(untrusted.agents["a"].hooks, None);
    assert_eq!(untrusted.agents["a"].definition.mcp_servers, None);
    assert!(untrusted.commands[0].allowed_tools.is_empty());
    let (_folder, trusted) = library(&files, true);
    assert_eq!(trusted.agents["a"].hooks, Some(json!({"Stop": []})));
    assert_eq!(trusted.agents["a"].definition.mcp_servers.as_ref().unwrap().len(), 1);
    assert_eq!(trusted.commands[0].allowed_tools, ["Bash(git:*)"]);
}

#[test]
fn command_names_include_their_folders_and_skill_names_do_not() {
    let files = [
        ("project/.claude/commands/review.md", "# Look at $ARGUMENTS\n"),
        ("project/.claude/commands/git/commit.md", "---\ndescription: Commits\n---\nCommit."),
        ("project/.claude/skills/pdf/SKILL.md", "---\nname: pdf-forms\ndescription: Forms\n---\nB"),
        ("added/.claude/skills/more/SKILL.md", "---\ndescription: More\n---\nB"),
        ("added/.claude/commands/not.md", "x"),
    ];
    let (folder, library) = library(&files, false);
    assert_eq!(names(&library), ["git:commit", "more", "pdf-forms", "review"]);
    let review = library.command("review").unwrap();
    assert_eq!(review.description, "Look at $ARGUMENTS");
    assert_eq!((review.is_for_model, review.folder()), (false, None));
    assert_eq!(review.listed().description, "Look at $ARGUMENTS (project)");
    let forms = library.command("pdf-forms").unwrap();
    assert_eq!(forms.folder().unwrap(), folder.path().join("project/.claude/skills/pdf"));
    assert_eq!((forms.is_for_model, forms.body().unwrap().as_str()), (true, "B"));
    let mut few = library.clone();
    few.keep_skills(&["more".to_owned()]);
    assert_eq!(names(&few), ["git:commit", "more", "review"]);
}

#[test]
fn every_name_of_a_plugin_begins_with_the_plugins_name() {
    let files = [
        (
            "plug/.claude-plugin/plugin.json",
            r#"{"name":"kit","version":"1.2","commands":"./more"}"#,
        ),
        ("plug/commands/a.md", "In ${CLAUDE_PLUGIN_ROOT}"),
        ("plug/more/b.md", "B"),
        ("plug/skills/s/SKILL.md", "---\ndescription: S\n---\nS"),
        ("plug/agents/w.md", "---\ndescription: W\n---\nW"),
        ("plug/output-styles/o.md", "---\ndescription: O\n---\nO"),
        ("plug/hooks/hooks.json", r#"{"hooks":{"Stop":["${CLAUDE_PLUGIN_ROOT}/x"]}}"#),
        ("plug/.mcp.json", r#"{"mcpServers":{"m":{"command":"${CLAUDE_PLUGIN_ROOT}/m"}}}"#),
    ];
    let (folder, library) = library(&files, false);
    let root = folder.path().join("plug").canonicalize().unwrap();
    assert_eq!(library.problems, []);
    assert_eq!(names(&library), ["kit:a", "kit:b", "kit:s"]);
    assert_eq!(library.command("kit:a").unwrap().body().unwrap(), format!("In {}", root.display()));
    assert_eq!(library.command("s").unwrap().name, "kit:s", "also found without the plugin's name");
    assert_eq!(library.command("a"), None, "only skills are found without the plugin's name");
    assert!(library.agents.contains_key("kit:w"));
    assert!(library.style_names().contains(&"kit:o".to_owned()));
    let hooks = json!({"Stop": [format!("{}/x", root.display())]});
    assert_eq!(library.plugins[0].hooks, Some(hooks));
    assert!(library.plugins[0].servers.contains_key("plugin:kit:m"));
    assert_eq!(library.plugin_list()[0].version.as_deref(), Some("1.2"));
}

// Mutant: the first malformed server ends the loop.
#[test]
fn a_malformed_server_of_a_plugin_harms_only_itself() {
    let servers = r#"{"bad":{"url":"http://x"},"good":{"command":"m"},"inside":{"type":"sdk","name":"x"},"worse":3}"#;
    let files =
        [("plug/.claude-plugin/plugin.json", r#"{"name":"kit"}"#), ("plug/.mcp.json", servers)];
    let (_folder, library) = library(&files, false);
    assert_eq!(library.plugins[0].servers.keys().collect::<Vec<_>>(), ["plugin:kit:good"]);
    let reasons: Vec<&str> = library.problems.iter().map(|it| it.reason.as_str()).collect();
    for (reason, name) in reasons.iter().zip(["bad", "inside", "worse"]) {
        assert!(reason.starts_with(&format!("its MCP server {name} is left out: ")), "{reasons:?}");
    }
    assert_eq!(reasons.len(), 3, "{reasons:?}");
}

#[test]
fn a_plugin_cannot_reach_out_of_its_folder() {
    let files = [
        ("plug/.claude-plugin/plugin.json", r#"{"name":"kit","commands":["../secret"]}"#),
        ("secret/c.md", "x"),
    ];
    let (_folder, library) = library(&files, false);
    assert_eq!(names(&library), [""; 0]);
    let (_folder, missing) = self::library(&[], false);
    assert!(missing.problems[0].reason.contains("no such folder"), "{:?}", missing.problems);
}

#[test]
fn a_style_is_built_in_or_a_file() {
    let files = [("home/.claude/output-styles/pirate.md", "---\nname: Pirate\n---\nArr.\n")];
    let (_folder, library) = library(&files, false);
    assert_eq!(library.style_names(), ["default", "Concise", "Explanatory", "Learning", "Pirate"]);
    assert_eq!(library.style("Pirate").unwrap().text().unwrap(), "Arr.");
    assert!(library.style("Learning").unwrap().text().unwrap().contains("TODO(you)"));
    assert_eq!(library.style("default"), None);
}
