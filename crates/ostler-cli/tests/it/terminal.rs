//! A user at the terminal: keys, colours, a narrow window.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::run::Ostler;
use crate::signals::kill;
use crate::tmux::{Window, eventually};

/// The characters of the spinner.
const MOVING: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// A window with the offline demo, ready for a prompt.
fn demo(columns: u16) -> (Ostler, Window) {
    let ostler = Ostler::new();
    let window = Window::open(&ostler, columns, &[]);
    window.shows(">");
    (ostler, window)
}

/// A window with a scripted model, ready for a prompt.
async fn scripted(script: Script, arguments: &[&str]) -> (ScriptedApi, Ostler, Window) {
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    let window = Window::open(&ostler, 80, arguments);
    window.shows(">");
    (api, ostler, window)
}

#[test]
fn one_key_allows_once_or_for_the_session_or_always() {
    let (ostler, window) = demo(100);
    window.type_line("run `touch one.txt`");
    window.shows("this session: Bash(touch one.txt)");
    window.shows("always: Bash(touch one.txt) (in .claude/settings.local.json");
    assert!(!ostler.path("one.txt").exists(), "not before it is allowed");
    window.press("y");
    window.shows("→ allowed once");
    window.shows_times(1, "2 turns");
    assert!(ostler.path("one.txt").exists());
    assert!(!ostler.path(".claude").exists(), "a single approval is not saved");
    assert!(!window.text().contains("this session:"), "the question is gone: {}", window.text());

    window.type_line("run `touch two.txt`");
    window.shows("offer Bash(touch:*) instead");
    window.press("Tab");
    window.shows("always: Bash(touch:*)");
    window.press("a");
    window.shows("→ allowed, and Bash(touch:*) always");
    window.shows_times(2, "2 turns");
    assert!(ostler.path("two.txt").exists());
    let kept = fs::read_to_string(ostler.path(".claude/settings.local.json")).unwrap();
    assert!(kept.contains("\"Bash(touch:*)\"") && !kept.contains("touch two.txt"), "{kept}");

    window.type_line("run `touch three.txt`");
    window.shows_times(3, "2 turns");
    assert!(ostler.path("three.txt").exists(), "no approval was needed: {}", window.text());

    // In the next session, too, although the project is not trusted; until the rule is removed.
    let settings = ostler.path(".claude/settings.local.json");
    let ran = ostler.run(&["-p", "run `touch four.txt`"]);
    assert!(ostler.path("four.txt").exists(), "{}", ran.stdout);
    assert_eq!(ran.stderr, "", "and nothing is reported about it");
    fs::rename(&settings, ostler.path("aside")).unwrap();
    ostler.run(&["-p", "run `touch five.txt`"]);
    assert!(!ostler.path("five.txt").exists(), "a rule removed from the file no longer applies");
    fs::rename(ostler.path("aside"), &settings).unwrap();

    window.type_line("run `mkdir made`");
    window.shows("this session: Bash(mkdir made)");
    window.press("s");
    window.shows("→ allowed, and Bash(mkdir made) for this session");
    window.shows_times(4, "2 turns");
    assert!(ostler.path("made").is_dir());
    let kept = fs::read_to_string(ostler.path(".claude/settings.local.json")).unwrap();
    assert!(!kept.contains("mkdir"), "a rule for the session is not saved: {kept}");
}

#[test]
fn a_change_is_shown_in_colour_before_it_is_made() {
    let (ostler, window) = demo(80);
    fs::write(ostler.path("notes.txt"), "one\nhello\nthree\n").unwrap();
    window.type_line("replace hello with good morning in notes.txt");
    window.shows("Allow Edit notes.txt?");
    window.shows("why: ");
    let screen = window.coloured();
    for line in ["\u{1b}[31m- hello", "\u{1b}[32m+ good morning"] {
        assert!(screen.contains(line), "{line:?} in {screen}");
    }
    // Pasted text, and keys that are not a choice, are not an answer.
    window.type_text("yes please");
    window.press("x");
    window.press("Enter");
    // A key pressed too early counts as pasted together with the rest.
    let is_refused = || {
        window.press("n");
        window.text().contains("→ not allowed")
    };
    eventually(is_refused, || "a no".to_owned());
    window.shows("free");
    assert_eq!(fs::read_to_string(ostler.path("notes.txt")).unwrap(), "one\nhello\nthree\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_without_approval_is_shown_after_it_is_made() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Read", json!({"file_path": "README.md"})))
        .rule(
            when().turn(1),
            reply().tool_use(
                "Edit",
                json!({"file_path": "README.md", "old_string": "A", "new_string": "My"}),
            ),
        )
        .rule(when().turn(2), reply().text("Done."));
    let (_api, _ostler, window) = scripted(script, &["--permission-mode", "acceptEdits"]).await;
    window.type_line("go");
    window.shows("Done.");
    let screen = window.coloured();
    assert!(screen.contains("\u{1b}[31m- # A readme"), "{screen}");
    assert!(screen.contains("\u{1b}[32m+ # My readme"), "{screen}");
    window.shows(" in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_can_say_what_to_do_instead() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "rm README.md"})))
        .rule(when().tool_result_contains("move it away"), reply().text("As you like."));
    let (_api, ostler, window) = scripted(script, &[]).await;
    window.type_line("clean up");
    window.shows("no, and say what to do instead");
    window.press("e");
    window.shows("What to do instead:");
    window.type_line("move it away");
    window.shows("As you like.");
    assert!(ostler.path("README.md").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_the_turn_and_the_conversation_continues() {
    // Unanswered prompts are sent again, so the newest prompt contains those before.
    let bash = reply().tool_use("Bash", json!({"command": "touch x"}));
    let script = Script::new()
        .rule(when().prompt_contains("now"), reply().text("Here I am."))
        .rule(when().prompt_contains("tool"), bash)
        .rule(when().prompt_contains("slow"), reply().hold("never"));
    let (api, ostler, window) = scripted(script, &[]).await;
    window.type_line("slow");
    window.shows("thinking…");
    api.gate("never").reached().await;
    window.press("C-c");
    window.shows("interrupted");

    window.type_line("a tool");
    window.shows("Allow Bash?");
    window.press("C-c");
    window.shows_times(2, "The turn was interrupted");
    assert!(!ostler.path("x").exists());

    // Typed text is visible again, and one line is one prompt.
    window.type_text("and now");
    window.shows("> and now");
    window.press("Enter");
    window.shows("Here I am.");
    window.press("C-d");
    window.shows("[exit 0]");
    assert!(!window.text().contains(MOVING), "{}", window.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_twice_ends_the_program() {
    let script = Script::new().rule(when(), reply().hold("never"));
    let (api, _ostler, window) = scripted(script, &[]).await;
    window.type_line("slow");
    api.gate("never").reached().await;
    window.press("C-c");
    // Whether or not the turn has ended by now.
    window.shows("stopping (Ctrl-C again to quit)");
    window.press("C-c");
    window.shows("[exit ");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_single_prompt_with_its_own_exit_code() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().hold("never"))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    let window = Window::open(&ostler, 80, &["slow"]);
    api.gate("never").reached().await;
    window.press("C-c");
    window.shows("The turn was interrupted");
    window.shows("[exit 130]");
    assert!(!window.text().contains(MOVING), "{}", window.text());
}

#[test]
fn the_terminal_mode_is_restored_at_the_end() {
    let (ostler, window) = demo(80);
    window.type_line("run `touch x`");
    window.shows("Allow Bash?");
    let pid = fs::read_to_string(ostler.path("ostler.pid")).unwrap();
    kill(&pid, "TERM");
    window.shows("[exit 143]");
    // `stty` puts a `-` before settings that are off.
    window.shows(" icanon ");
    window
        .wait("an echoing terminal", |screen| screen.split_whitespace().any(|word| word == "echo"));
    assert!(!ostler.path("x").exists());
}

#[test]
fn a_narrow_window_works() {
    let (ostler, window) = demo(40);
    let long = "echo this is quite a long command line && touch a-file-with-a-rather-long-name.txt";
    window.type_line(&format!("run `{long}`"));
    window.shows("say what to do");
    let screen = window.text();
    let asked = &screen[screen.find("Allow Bash?").unwrap()..];
    // Complete, and broken only between words.
    let words: Vec<_> = asked.split_whitespace().collect();
    for word in long.split(' ') {
        assert!(words.contains(&word), "{word:?} in {asked}");
    }
    window.press("y");
    window.shows("→ allowed once");
    window.shows("free");
    let screen = window.text();
    assert!(ostler.path("a-file-with-a-rather-long-name.txt").exists());
    assert!(!screen.contains("this session"), "nothing of the question is left: {screen}");
    assert!(!screen.contains(MOVING), "nothing of the moving line is left: {screen}");
    assert!(screen.contains("• Bash echo this is quite a long comm…"), "{screen}");
}

#[test]
fn narrowing_the_window_while_a_question_is_open_leaves_no_remains() {
    let (_ostler, window) = demo(120);
    window.type_line("run `touch a-file-with-a-rather-long-name-so-that-lines-have-to-break.txt`");
    window.shows("offer Bash(touch:*) instead");
    window.resize(50);
    window.press("Tab");
    window.shows("always: Bash(touch:*)");
    window.press("n");
    window.shows("→ not allowed");
    window.shows("turns");
    let screen = window.text();
    for gone in ["this session", "say what to do", "Tab"] {
        assert!(!screen.contains(gone), "{gone:?} is left: {screen}");
    }
}

#[test]
fn without_colours_there_are_no_codes_at_all() {
    let ostler = Ostler::new().env("NO_COLOR", "1");
    let window = Window::open(&ostler, 80, &[]);
    window.shows(">");
    let record = ostler.path("record");
    window.record(&record);
    window.type_line("write \"hello\" to notes.txt");
    window.shows("Allow Write notes.txt?");
    window.shows("y   once");
    window.press("y");
    window.shows("2 turns");
    window.type_line("ask me which colour I like: red, green or blue");
    window.shows("your own text:");
    window.type_line("2");
    window.shows("You chose green");
    window.shows_times(2, "2 turns");
    assert!(ostler.path("notes.txt").exists());
    eventually(
        || fs::read_to_string(&record).is_ok_and(|text| text.contains("You chose green")),
        || "the record".to_owned(),
    );
    let text = fs::read_to_string(&record).unwrap();
    assert!(text.contains("+ hello") && text.contains("• Write notes.txt"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains(MOVING), "{text:?}");
}

#[test]
fn a_question_of_the_agent_is_a_menu() {
    let (_ostler, window) = demo(80);
    window.type_line("ask me which colour I like: red, green or blue");
    window.shows("❯ 1. red");
    window.press("Down");
    window.shows("❯ 2. green");
    window.press("Enter");
    window.shows("You chose green");
    window.shows("→ green");
    assert!(!window.text().contains("1. red"), "the menu is gone: {}", window.text());

    window.type_line("ask me which colour I like: red, green or blue");
    window.shows("4. other: type it");
    window.press("4");
    window.type_text("mauve");
    window.shows("4. other: mauve");
    window.press("Enter");
    window.shows("You chose mauve");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_questions_are_asked_one_after_the_other() {
    let option = |label: &str| json!({"label": label, "description": format!("about {label}")});
    let question = |text: &str, several: bool| {
        json!({"question": text, "header": "H", "multiSelect": several,
            "options": [option("S"), option("M"), option("L")]})
    };
    let input =
        json!({"questions": [question("Which sizes?", true), question("Which one?", false)]});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("AskUserQuestion", input))
        .rule(when().turn(1), reply().text("Heard: {{tool_result}}"));
    let (_api, _ostler, window) = scripted(script, &[]).await;
    window.type_line("ask");
    window.shows("[ ] S");
    window.press("Space");
    window.shows("[x] S");
    window.press("3");
    window.shows("[x] L");
    window.press("Enter");
    window.shows("→ S, L");
    window.shows("❯ 1. S");
    window.press("j");
    window.shows("❯ 2. M");
    window.press("Enter");
    window.shows("→ M");
    window.shows("answers: S, L");
    window.shows("answers: M");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_turn_ends_with_its_usage() {
    let usage = ostler_testkit::Usage {
        input_tokens: Some(200),
        output_tokens: Some(50),
        cache_read_input_tokens: 800,
        ..ostler_testkit::Usage::default()
    };
    let script = Script::new().rule(when(), reply().text("Yes.").usage(usage));
    let (_api, _ostler, window) = scripted(script, &["--model", "claude-opus-4-5"]).await;
    window.type_line("hello");
    window.shows("1.0k in (80% cached) · 50 out · $0.00");
    window.shows("1 turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_typed_ahead_is_the_next_prompt_and_not_an_answer() {
    let script = Script::new()
        .rule(when().turn(0), reply().hold("typed").tool_use("Bash", json!({"command": "touch x"})))
        .rule(when().turn(1), reply().text("Not then."))
        .rule(when().prompt_contains("y and more"), reply().text("More of it."));
    let (api, ostler, window) = scripted(script, &[]).await;
    window.type_line("go");
    api.gate("typed").reached().await;
    window.shows("thinking…");
    window.type_line("y and more");
    window.type_text("y");
    api.gate("typed").release();
    window.shows("Allow Bash?");
    window.shows("say what to do instead");
    window.press("e");
    window.shows("What to do instead:");
    window.type_line("leave it");
    window.shows("Not then.");
    window.shows("> y and more");
    window.shows("More of it.");
    assert!(!ostler.path("x").exists());
    let request = api.requests()[1].body.to_string();
    assert!(request.contains("and says: leave it"), "{request}");
    assert!(!window.text().contains(MOVING), "{}", window.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_answered_elsewhere_disappears() {
    let hook = r#"while [ ! -e go ]; do sleep 0.05; done; echo '{"hookSpecificOutput":
        {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}'"#;
    let hooks = json!([{"hooks": [{"type": "command", "command": hook}]}]);
    let settings = json!({"hooks": {"PermissionRequest": hooks}}).to_string();
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "touch x"})))
        .rule(when().turn(1), reply().text("It is there."));
    let (_api, ostler, window) = scripted(script, &["--settings", &settings]).await;
    window.type_line("go");
    window.shows("say what to do instead");
    fs::write(ostler.path("go"), "").unwrap();
    window.shows("answered elsewhere");
    window.shows("It is there.");
    assert!(ostler.path("x").exists());
    window.shows("2 turns");
    // The keyboard is in line mode again.
    window.type_text("exit");
    window.shows("> exit");
    window.press("Enter");
    window.shows("[exit 0]");
}

#[test]
fn the_calls_of_a_subagent_are_shown_under_its_own_call() {
    let (ostler, window) = demo(80);
    window.type_line("ask a subagent to write \"sub\" to sub.txt");
    window.shows("(a subagent asks)");
    window.shows("say what to do instead");
    window.press("y");
    window.shows("The subagent reports");
    window.shows("free");
    let screen = window.text();
    let (agent, write) =
        (screen.find("• Agent").unwrap(), screen.find("  • Write sub.txt").unwrap());
    assert!(agent < write, "{screen}");
    assert!(ostler.path("sub.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_change_is_shown_completely_on_request() {
    let content: String = (1..=99).map(|number| format!("line {number}\n")).collect();
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Write", json!({"file_path": "x", "content": content})),
        )
        .rule(when().turn(1), reply().text("So not."));
    let (_api, ostler, window) = scripted(script, &[]).await;
    window.type_line("go");
    window.shows("view 59 more lines");
    assert!(window.text().contains("40 + line 40") && !window.text().contains("line 41"));
    window.press("v");
    window.shows("99 + line 99");
    window.shows("say what to do instead");
    window.press("n");
    window.shows("So not.");
    assert!(!ostler.path("x").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_background_command_is_shown_while_the_prompt_is_empty() {
    let command = "while [ ! -e go ]; do sleep 0.05; done";
    let bash = json!({"command": command, "run_in_background": true});
    let script = Script::new()
        .rule(when().prompt_contains("next"), reply().text("The next answer."))
        .rule(when().turn(0), reply().tool_use("Bash", bash))
        .rule(when().turn(1), reply().text("It runs."))
        .rule(when().turn(2), reply().text("It has ended."));
    let arguments = ["--permission-mode", "bypassPermissions"];
    let (_api, ostler, window) = scripted(script, &arguments).await;
    window.type_line("begin");
    window.shows("It runs.");
    window.shows("2 turns");
    fs::write(ostler.path("go"), "").unwrap();
    window.shows("It has ended.");
    window.type_line("next");
    window.shows("> next");
    window.shows("The next answer.");
}
