//! Writing a prompt at the terminal: editing keys, history, pastes, unusual windows.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};

use crate::run::Ostler;
use crate::signals::kill;
use crate::tmux::{Window, eventually};

/// A window with a model that repeats the prompt.
async fn echo(columns: u16) -> (ScriptedApi, Ostler, Window) {
    let api =
        ScriptedApi::start(Script::new().rule(when(), reply().text("Heard [{{prompt}}]."))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    let window = Window::open(&ostler, columns, &[]);
    window.shows(">");
    (api, ostler, window)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_can_be_corrected_before_it_is_sent() {
    let (_api, _ostler, window) = echo(80).await;
    window.type_text("helo wurld");
    window.shows("> helo wurld");
    for key in ["C-w", "w", "o", "r", "l", "d", "C-a", "Right", "Right", "l", "C-e", "!"] {
        window.press(key);
    }
    window.shows("> hello world!");
    window.press("Enter");
    window.shows("Heard [hello world!].");
}

#[tokio::test(flavor = "multi_thread")]
async fn earlier_prompts_can_be_recalled() {
    let (_api, _ostler, window) = echo(80).await;
    window.type_line("first");
    window.shows("Heard [first].");
    window.shows_times(1, "1 turn");
    window.type_line("second");
    window.shows("Heard [second].");
    window.shows_times(2, "1 turn");
    window.type_text("third");
    window.shows("> third");
    window.press("Up");
    window.press("Up");
    window.shows_times(2, "> first");
    window.press("Down");
    window.press("Down");
    window.shows("> third");
    window.press("Up");
    window.type_line(" again");
    window.shows("Heard [second again].");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_lines_and_wide_characters_are_one_prompt() {
    let (api, _ostler, window) = echo(40).await;
    window.type_text("日本語 one\\");
    window.press("Enter");
    window.type_text("twx");
    window.press("BSpace");
    window.press("o");
    // Alt-Enter.
    window.press("M-Enter");
    window.type_text("three");
    window.shows("> 日本語 one\n  two\n  three");
    window.press("Up");
    window.press("Home");
    window.type_text("<");
    window.shows("  <two");
    window.press("Enter");
    window.shows("Heard [日本語 one");
    let bodies = api.requests();
    let body = serde_json::to_string(&bodies.last().unwrap().body).unwrap();
    assert!(body.contains(r"日本語 one\n<two\nthree"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paste_is_one_prompt_and_triggers_no_keys() {
    let (api, _ostler, window) = echo(80).await;
    let lines: Vec<String> = (1..=80).map(|number| format!("line {number}")).collect();
    window.paste(&format!("{}\nexit\n\u{7}", lines.join("\n")));
    window.shows("  exit");
    window.type_text("the end");
    window.shows("  the end");
    assert!(api.requests().is_empty(), "nothing is sent before Enter");
    window.press("Enter");
    window.shows("more lines");
    window.shows("Heard [line 1");
    let body = serde_json::to_string(&api.requests().last().unwrap().body).unwrap();
    assert!(body.contains(r"line 80\nexit\nthe end"), "{body}");
    assert_eq!(api.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_clears_the_text_and_then_ends_the_program() {
    let (_api, _ostler, window) = echo(80).await;
    window.type_text("never mind");
    window.shows("> never mind");
    window.press("C-c");
    window.wait("an empty prompt", |screen| !screen.contains("never mind"));
    window.type_line("hello");
    window.shows("Heard [hello].");
    window.shows("1 turn");
    window.press("C-c");
    window.shows("[exit 0]");
    window.shows(" icanon ");
    window
        .wait("an echoing terminal", |screen| screen.split_whitespace().any(|word| word == "echo"));
}

#[tokio::test(flavor = "multi_thread")]
async fn narrowing_the_window_wraps_the_line_that_is_being_written() {
    let (_api, _ostler, window) = echo(80).await;
    let long = "words that are not very long but quite a few of them so that they need room";
    window.type_text(long);
    window.shows("need room");
    window.resize(30);
    window.type_text("!");
    window.wait("all of it in lines", |screen| {
        let text: String = screen.lines().map(str::trim).collect();
        text.replace(' ', "").contains(&format!("{long}!").replace(' ', ""))
    });
    window.press("Enter");
    window.shows("Heard [words that");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_one_character_works() {
    let (api, _ostler, window) = echo(80).await;
    window.resize_to(1, 1);
    window.type_line("hello");
    eventually(|| !api.requests().is_empty(), || "a request".to_owned());
    window.resize_to(80, 50);
    window.shows("Heard [hello].");
    window.shows("1 turn");
    window.type_line("more");
    window.shows("Heard [more].");
    window.press("C-d");
    window.shows("[exit 0]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dumb_terminal_gets_plain_lines() {
    let api =
        ScriptedApi::start(Script::new().rule(when(), reply().text("Heard [{{prompt}}]."))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    let window = Window::open_with(&ostler, 80, &["env", "TERM=dumb", "CI=true"], &[]);
    window.shows(">");
    let record = ostler.path("record");
    window.record(&record);
    window.type_line("hello");
    window.shows("Heard [hello].");
    window.press("C-d");
    window.shows("[exit 0]");
    let text = fs::read_to_string(&record).unwrap();
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_terminal_while_a_prompt_is_written_ends_the_program() {
    let (_api, ostler, window) = echo(80).await;
    window.type_text("half a pro");
    window.shows("half a pro");
    let pid = fs::read_to_string(ostler.path("ostler.pid")).unwrap();
    kill(&pid, "HUP");
    window.shows("[exit 129]");
    window.shows(" icanon ");
}

#[tokio::test(flavor = "multi_thread")]
async fn help_lists_the_keys_without_a_request_to_the_model() {
    let (api, _ostler, window) = echo(80).await;
    window.type_line("/help");
    window.shows("Alt-Enter");
    window.shows("ostler doctor");
    assert!(api.requests().is_empty());
}
