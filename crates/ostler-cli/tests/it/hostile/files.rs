//! The files and folders of a project, each replaced by something that leads elsewhere or has no end.

use std::fs;

use super::{SECRET, Stage};

/// A kind of file that a project can contain.
struct Kind {
    /// Its path in the project.
    path: &'static str,
    /// Content that would make the file valid.
    text: &'static str,
    arguments: &'static [&'static str],
    prompt: &'static str,
    /// Whether a session refuses to start without it, because it may contain deny rules.
    is_needed: bool,
}

const DOCUMENT: &str = "---\nname: leak\ndescription: {secret}\n---\nbody {secret}";
const SETTINGS: &str =
    r#"{"permissions": {"deny": ["Bash({secret}:*)"]}, "outputStyle": "{secret}"}"#;

const KINDS: &[Kind] = &[
    Kind { path: "CLAUDE.md", text: DOCUMENT, arguments: &[], prompt: "hello", is_needed: false },
    Kind {
        path: ".claude/CLAUDE.md",
        text: DOCUMENT,
        arguments: &[],
        prompt: "hello",
        is_needed: false,
    },
    Kind {
        path: "CLAUDE.local.md",
        text: DOCUMENT,
        arguments: &[],
        prompt: "hello",
        is_needed: false,
    },
    Kind {
        path: ".claude/commands/e.md",
        text: DOCUMENT,
        arguments: &[],
        prompt: "/e",
        is_needed: false,
    },
    Kind {
        path: ".claude/commands/sub/e.md",
        text: "{secret}",
        arguments: &[],
        prompt: "/sub:e",
        is_needed: false,
    },
    Kind {
        path: ".claude/skills/leak/SKILL.md",
        text: DOCUMENT,
        arguments: &[],
        prompt: "/leak",
        is_needed: false,
    },
    Kind {
        path: ".claude/agents/leak.md",
        text: DOCUMENT,
        arguments: &["--agent", "leak"],
        prompt: "hello",
        is_needed: false,
    },
    Kind {
        path: ".claude/output-styles/leak.md",
        text: DOCUMENT,
        arguments: &["--settings", r#"{"outputStyle": "leak"}"#],
        prompt: "hello",
        is_needed: false,
    },
    Kind {
        path: ".mcp.json",
        text: r#"{"mcpServers": {"{secret}": {"command": "false"}}}"#,
        arguments: &["--settings", r#"{"enableAllProjectMcpServers": true}"#],
        prompt: "hello",
        is_needed: false,
    },
    Kind {
        path: ".claude/settings.json",
        text: SETTINGS,
        arguments: &[],
        prompt: "hello",
        is_needed: true,
    },
    Kind {
        path: ".claude/settings.local.json",
        text: SETTINGS,
        arguments: &[],
        prompt: "hello",
        is_needed: true,
    },
];

/// What is put in the place of such a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Link,
    RelativeLink,
    LinkOfLink,
    LinkedFolder,
    Environment,
    Zero,
    Pipe,
    Huge,
}

const FORMS: &[Form] = &[
    Form::Link,
    Form::RelativeLink,
    Form::LinkOfLink,
    Form::LinkedFolder,
    Form::Environment,
    Form::Zero,
    Form::Pipe,
    Form::Huge,
];

impl Form {
    /// Whether the file is valid and only lies outside of the project.
    fn works_with_trust(self) -> bool {
        matches!(self, Self::Link | Self::RelativeLink | Self::LinkOfLink | Self::LinkedFolder)
    }

    fn put(self, stage: &Stage, kind: &Kind) {
        let text = kind.text.replace("{secret}", SECRET);
        let place = format!("project/{}", kind.path);
        let outside = stage.path("outside").join(kind.path);
        stage.write(&format!("outside/{}", kind.path), &text);
        match self {
            Self::Link => stage.link(&place, outside),
            Self::RelativeLink => {
                let up = "../".repeat(kind.path.split('/').count());
                stage.link(&place, format!("{up}outside/{}", kind.path));
            }
            Self::LinkOfLink => {
                stage.link("project/step", outside);
                stage.link(&place, stage.path("project/step"));
            }
            Self::LinkedFolder => match kind.path.rsplit_once('/') {
                Some((folder, _)) => {
                    stage.link(&format!("project/{folder}"), stage.path("outside").join(folder));
                }
                None => stage.link(&place, outside),
            },
            Self::Environment => stage.link(&place, "/proc/self/environ"),
            Self::Zero => stage.link(&place, "/dev/zero"),
            Self::Pipe => stage.fifo(&place),
            Self::Huge => {
                stage.write(&place, "");
                let file = fs::OpenOptions::new().write(true).open(stage.path(&place)).unwrap();
                // Sparse: it takes no space on disk, but reading it would fill the memory.
                file.set_len(1 << 40).unwrap();
            }
        }
    }
}

/// Tries every form of some kinds, without and with trust.
async fn attack(paths: &[&str]) {
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| paths.contains(&kind.path)).collect();
    assert_eq!(kinds.len(), paths.len());
    for kind in kinds {
        for form in FORMS {
            let stage = Stage::new().await;
            form.put(&stage, kind);
            let case = format!("{} as {form:?}", kind.path);
            let seen = stage.run(kind.arguments, kind.prompt);
            assert!(!seen.shows_secret(), "{case}: {}", seen.ran.stdout);
            let stderr = &seen.ran.stderr;
            // A style, an agent or a text without content counts as missing.
            let is_reported = stderr.contains(kind.path.rsplit('/').next().unwrap())
                || stderr.contains(kind.path.rsplit_once('/').map_or("", |(folder, _)| folder));
            assert!(is_reported || *form == Form::Huge, "{case} is not reported: {stderr}");
            if kind.is_needed {
                assert!(seen.requests.is_empty() && seen.ran.code == Some(1), "{case}: {stderr}");
            }
            let seen = stage.run(&[&["--trust-project"], kind.arguments].concat(), kind.prompt);
            // Settings are not shown, and a failed server is reported only in frames.
            if !kind.is_needed {
                assert_eq!(
                    seen.shows_secret(),
                    form.works_with_trust(),
                    "{case} with trust: {}",
                    seen.ran.stderr
                );
            }
        }
    }
}

// Mutant for all of these: `Boundary::inside` replaced by `Boundary::anywhere` in `library::load`, `memory::load`,
// `settings::load` and `server_files`.
#[tokio::test(flavor = "multi_thread")]
async fn instructions_that_are_not_in_the_project_are_not_read() {
    attack(&["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_skills_that_are_not_in_the_project_are_not_read() {
    attack(&[".claude/commands/e.md", ".claude/commands/sub/e.md", ".claude/skills/leak/SKILL.md"])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_and_styles_that_are_not_in_the_project_are_not_read() {
    attack(&[".claude/agents/leak.md", ".claude/output-styles/leak.md"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_and_servers_that_are_not_in_the_project_are_not_read() {
    attack(&[".mcp.json", ".claude/settings.json", ".claude/settings.local.json"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_with_an_endless_head_file_does_not_block_a_session() {
    for name in [".git", ".git/HEAD"] {
        for form in [Form::Pipe, Form::Zero, Form::Huge] {
            let stage = Stage::new().await;
            let path: &'static str = name;
            form.put(
                &stage,
                &Kind { path, text: "", arguments: &[], prompt: "hello", is_needed: false },
            );
            let seen = stage.run(&[], "hello");
            assert_eq!(seen.ran.code, Some(0), "{name} as {form:?}: {}", seen.ran.stderr);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_and_explain_end_whatever_settings_a_project_has() {
    let kind = KINDS.iter().find(|kind| kind.path == ".claude/settings.json").unwrap();
    for form in FORMS {
        let stage = Stage::new().await;
        form.put(&stage, kind);
        for arguments in
            [&["doctor", "--cwd", "project"][..], &["explain", "--cwd", "project", "Bash", "ls"]]
        {
            let ran = stage.ostler.run(arguments);
            assert_eq!(ran.code, Some(1), "{form:?}: {}{}", ran.stdout, ran.stderr);
            assert!(
                !ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET),
                "{form:?}: {}",
                ran.stdout
            );
        }
    }
}
