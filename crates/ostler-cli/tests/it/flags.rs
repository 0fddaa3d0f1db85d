//! The effects of session options: visible with the option, and not visible without it.
//!
//! `tests/flags.txt` names the test of every option of every command; most tests of session options are here.

use std::fs;

use ostler_testkit::{RecordedRequest, Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::run::{Ostler, Ran};

/// The observable effects of one run.
struct Seen {
    ran: Ran,
    requests: Vec<RecordedRequest>,
    ostler: Ostler,
}

impl Seen {
    fn system(&self) -> String {
        self.requests.first().map(RecordedRequest::system_text).unwrap_or_default()
    }

    fn body(&self) -> String {
        self.requests.first().map(|request| request.body.to_string()).unwrap_or_default()
    }

    fn header(&self, name: &str) -> &str {
        let header = self.requests.first().and_then(|request| request.headers.get(name));
        header.map_or("", String::as_str)
    }

    fn offers(&self, tool: &str) -> bool {
        self.requests.first().is_some_and(|request| request.tool_names().contains(&tool))
    }

    fn says(&self, text: &str) -> bool {
        self.ran.stdout.contains(text)
    }

    fn made(&self, name: &str) -> bool {
        self.ostler.path(name).exists()
    }
}

/// An option, its prompt, and a check that the option works.
struct Probe {
    arguments: &'static [&'static str],
    prompt: &'static str,
    shows: fn(&Seen) -> bool,
}

const fn probe(
    arguments: &'static [&'static str],
    prompt: &'static str,
    shows: fn(&Seen) -> bool,
) -> Probe {
    Probe { arguments, prompt, shows }
}

const FRAMES: &[&str] = &["-p", "--output-format", "stream-json", "--verbose"];
const AGENT: &str = r#"{"cat": {"description": "A cat", "prompt": "You are a cat."}}"#;

#[rustfmt::skip]
const PROBES: &[Probe] = &[
    probe(&["--model", "claude-other"], "hello", |it| it.requests[0].model() == "claude-other"),
    probe(&["--system-prompt", "You are a cat."], "hello", |it| it.system().contains("You are a cat.")),
    probe(&["--system-prompt-file", "prompt.txt"], "hello", |it| it.system().contains("from a file")),
    probe(&["--append-system-prompt", "Be kind."], "hello", |it| it.system().contains("Be kind.")),
    probe(&["--permission-mode", "acceptEdits"], "write", |it| it.made("new.txt")),
    probe(&["--permission-mode", "plan"], "hello", |it| it.says(r#""permissionMode":"plan""#)),
    probe(&["--dangerously-skip-permissions"], "touch", |it| it.made("made.txt")),
    probe(&["--settings", r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#], "touch", |it| it.made("made.txt")),
    probe(&["--trust-project"], "write", |it| it.made("new.txt")),
    probe(&["--setting-sources", "project"], "write", |it| it.made("new.txt")),
    probe(&["--allowed-tools", "Bash(touch:*)"], "touch", |it| it.made("made.txt")),
    probe(&["--allowedTools", "Bash(touch:*)"], "touch", |it| it.made("made.txt")),
    probe(&["--disallowed-tools", "Bash"], "hello", |it| !it.offers("Bash")),
    probe(&["--disallowedTools", "Bash"], "hello", |it| !it.offers("Bash")),
    probe(&["--tools", "Read"], "hello", |it| !it.offers("Bash") && it.offers("Read")),
    probe(&["--add-dir", "/usr"], "hello", |it| it.says(r#""additional_directories":["/usr"]"#)),
    probe(&["--max-turns", "1"], "touch", |it| it.says("error_max_turns")),
    probe(&["--max-budget-usd", "0.000001"], "touch", |it| it.says("error_max_budget_usd")),
    probe(&["--max-tokens", "1"], "touch", |it| it.ran.code == Some(1)),
    probe(&["--thinking", "disabled"], "hello", |it| !it.body().contains(r#""type":"adaptive""#)),
    probe(&["--max-thinking-tokens", "1500", "--model", "claude-opus-4-5"], "hello", |it| it.body().contains("1500")),
    probe(&["--thinking", "adaptive", "--thinking-display", "omitted"], "hello", |it| it.body().contains("omitted")),
    probe(&["--effort", "low"], "hello", |it| it.body().contains(r#""effort":"low""#)),
    probe(&["--betas", "some-beta-2026"], "hello", |it| it.header("anthropic-beta").contains("some-beta-2026")),
    probe(&["--task-budget", "23456"], "hello", |it| it.body().contains("23456")),
    probe(&["--json-schema", r#"{"type": "object"}"#], "hello", |it| it.offers("StructuredOutput")),
    probe(&["--session-id", "11111111-1111-4111-8111-111111111111"], "hello", |it| it.says("11111111-1111-4111-8111-111111111111")),
    probe(&["--include-partial-messages"], "hello", |it| it.says(r#""type":"stream_event""#)),
    probe(&["--agents", AGENT], "hello", |it| it.body().contains("A cat")),
    probe(&["--agents", AGENT, "--agent", "cat"], "hello", |it| it.system().contains("You are a cat.")),
    probe(&["--plugin-dir", "kit"], "/kit:tidy", |it| it.body().contains("Tidy up.")),
    probe(&["--plugin-dir", "kit"], "hello", |it| it.says("plugin:kit:echo")),
    probe(&["--plugin-dir-no-mcp", "kit"], "/kit:tidy", |it| it.body().contains("Tidy up.") && !it.says("plugin:kit:echo")),
    probe(&["--mcp-config", r#"{"mcpServers": {"one": {"command": "false"}}}"#], "hello", |it| it.says(r#""name":"one""#)),
    probe(&["--managed-settings", r#"{"permissions": {"deny": ["Bash(cat:*)"]}}"#], "cat", |it| it.says("permission_denials\":[{")),
    probe(&["--project-config-root", "elsewhere"], "/there", |it| it.body().contains("Over there.")),
    probe(&["--debug"], "hello", |it| it.ran.stderr.contains(" > result")),
    probe(&["--cwd", "elsewhere"], "/there", |it| it.body().contains("Over there.")),
];

async fn run(arguments: &[&str], prompt: &str) -> Seen {
    let bash =
        |command: &str| reply().tool_use("Bash", json!({"command": command, "description": "x"}));
    let script = Script::new()
        .rule(when().turn(0).prompt_contains("touch"), bash("touch made.txt"))
        .rule(when().turn(0).prompt_contains("cat"), bash("cat README.md"))
        .rule(
            when().turn(0).prompt_contains("write"),
            reply().tool_use("Write", json!({"file_path": "new.txt", "content": "x"})),
        )
        .rule(when(), reply().text("Fine."));
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    for (name, text) in [
        ("prompt.txt", "from a file"),
        (".claude/settings.json", r#"{"permissions": {"allow": ["Write"]}}"#),
        ("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#),
        ("kit/commands/tidy.md", "Tidy up."),
        ("kit/.mcp.json", r#"{"mcpServers": {"echo": {"command": "false"}}}"#),
        ("elsewhere/.claude/commands/there.md", "Over there."),
    ] {
        fs::create_dir_all(ostler.path(name).parent().unwrap()).unwrap();
        fs::write(ostler.path(name), text).unwrap();
    }
    let ran = ostler.run(&[FRAMES, arguments, &["--", prompt]].concat());
    Seen { ran, requests: api.requests(), ostler }
}

// Mutant: any of the lines in `Args::launch`, `More::launch` and `Wire::launch` left out.
#[tokio::test(flavor = "multi_thread")]
async fn an_option_of_a_session_has_its_effect() {
    let mut problems = Vec::new();
    for Probe { arguments, prompt, shows } in PROBES {
        let seen = run(arguments, prompt).await;
        let Ran { stdout, stderr, .. } = &seen.ran;
        if seen.requests.is_empty() {
            problems
                .push(format!("{arguments:?} sends no request to the model: {stdout}\n{stderr}"));
        } else if !shows(&seen) {
            let body = seen.body();
            problems.push(format!("{arguments:?} changes nothing: {stdout}\n{stderr}\n{body}"));
        } else if shows(&run(&[], prompt).await) {
            problems.push(format!("the same is seen without {arguments:?}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn options_about_frames_are_refused_where_no_frames_are_written() {
    for option in [
        "--include-partial-messages",
        "--include-hook-events",
        "--replay-user-messages",
        "--session-mirror",
        "--await-claim",
    ] {
        let ran = Ostler::new().run(&["-p", option, "hello"]);
        assert_ne!(ran.code, Some(0), "{option}");
        assert!(ran.stderr.contains("stream-json"), "{option}: {}", ran.stderr);
    }
}

#[test]
fn options_of_doctor_have_their_effect() {
    let ostler = Ostler::new().env("OSTLER_OFFLINE", "0");
    let offline = |ran: &Ran| ran.stdout.contains("as requested");
    assert!(offline(&ostler.run(&["--model", "offline-demo", "doctor"])));
    assert!(!offline(&ostler.run(&["doctor"])));
    let broken = ostler.run(&["doctor", "--settings", "{broken"]);
    assert!(broken.stdout.contains("--settings") && broken.code == Some(1), "{}", broken.stdout);
    fs::create_dir(ostler.path(".claude")).unwrap();
    fs::write(ostler.path(".claude/settings.json"), r#"{"model": "x"}"#).unwrap();
    let is_warned = |ran: &Ran| ran.stdout.contains("not trusted");
    assert!(is_warned(&ostler.run(&["doctor"])));
    assert!(!is_warned(&ostler.run(&["doctor", "--trust-project"])));
    let elsewhere = ostler.path("no-home");
    fs::create_dir_all(&elsewhere).unwrap();
    assert!(!is_warned(&ostler.run(&["doctor", "--cwd", elsewhere.to_str().unwrap()])));
}

#[test]
fn options_of_explain_have_their_effect() {
    let ostler = Ostler::new();
    fs::create_dir(ostler.path(".claude")).unwrap();
    fs::write(
        ostler.path(".claude/settings.json"),
        r#"{"permissions": {"allow": ["Bash(mkdir:*)"]}}"#,
    )
    .unwrap();
    let outcome = |arguments: &[&str], command: &str| {
        let ran = ostler.run(&[arguments, &["explain", "Bash", command]].concat());
        ran.stdout.lines().next().unwrap_or_default().to_owned()
    };
    for (arguments, command) in [
        (&["--permission-mode", "plan"][..], "touch a"),
        (&["--dangerously-skip-permissions"], "touch a"),
        (&["--settings", r#"{"permissions": {"deny": ["Bash(touch:*)"]}}"#], "touch a"),
        (&["--managed-settings", r#"{"permissions": {"deny": ["Bash(touch:*)"]}}"#], "touch a"),
        (&["--allowed-tools", "Bash(touch:*)"], "touch a"),
        (&["--disallowed-tools", "Bash(touch:*)"], "touch a"),
        (&["--trust-project"], "mkdir a"),
        (&["--setting-sources", "project"], "mkdir a"),
        (&["--add-dir", "/usr/share"], "ls /usr/share"),
        (&["--cwd", "/usr/share"], "ls /usr/share"),
    ] {
        let (with, without) = (outcome(arguments, command), outcome(&[], command));
        assert!(!with.is_empty() && with != without, "{arguments:?}: {with} / {without}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_can_take_the_time_of_its_recording() {
    let slow = reply().text("Fine.").delay_before_first_byte_ms(400);
    let api = ScriptedApi::start(Script::new().rule(when(), slow)).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    assert_eq!(ostler.run(&["-p", "--record", "tape", "hello"]).code, Some(0));
    let begun = std::time::Instant::now();
    let ran = ostler.run(&["-p", "--replay", "tape", "--replay-timing", "recorded", "hello"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Fine."), "{}", ran.stderr);
    assert!(begun.elapsed().as_millis() >= 400, "the answer came at once");
    let ran = ostler.run(&["-p", "--replay", "tape", "--replay-timing", "sometimes", "hello"]);
    assert!(ran.stderr.contains("--replay-timing"), "{}", ran.stderr);
}

#[test]
fn sessions_of_all_folders_can_be_listed() {
    let ostler = Ostler::new();
    fs::create_dir(ostler.path("elsewhere")).unwrap();
    ostler.run(&["-p", "--cwd", "elsewhere", "list the files"]);
    let lists = |arguments: &[&str]| ostler.run(arguments).stdout.contains("list the files");
    assert!(!lists(&["sessions"]));
    assert!(lists(&["sessions", "--all"]));
    assert!(lists(&["sessions", "--cwd", "elsewhere"]));
}

#[test]
fn the_number_of_listed_sessions_can_be_limited() {
    let ostler = Ostler::new();
    for name in ["one", "two", "three"] {
        ostler.run(&["-p", &format!("list the files of {name}")]);
    }
    let listed = |arguments: &[&str]| {
        let ran = ostler.run(&[&["sessions"], arguments].concat());
        (ran.stdout.matches("list the files").count(), ran.stdout.contains("… and 1 older"))
    };
    assert_eq!(listed(&[]), (3, false));
    assert_eq!(listed(&["--limit", "2"]), (2, true));
    assert_eq!(listed(&["--limit", "0"]), (3, false));
}
