//! Questions of MCP servers to the user at the terminal: a form, a URL, and every answer.

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::run::Ostler;
use crate::tmux::{Window, eventually};

/// A server in shell code. Its tools ask for a form and for a visit, and return the answer unchanged.
const SERVER: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
ask() {
  printf '{"jsonrpc":"2.0","id":99,"method":"elicitation/create","params":%s}\n' "$(printf '%s' "$1" | tr -d '\n')"
  IFS= read -r answer
  answer=$(printf '%s' "$answer" | sed 's/.*"result"://; s/"/\\"/g')
  say "$id" "{\"content\":[{\"type\":\"text\",\"text\":\"answer $answer\"}]}"
}
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) say "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shop","version":"1"}}';;
    *'"method":"tools/list"'*) say "$id" '{"tools":[{"name":"order","inputSchema":{"type":"object"}},{"name":"pay","inputSchema":{"type":"object"}},{"name":"odd","inputSchema":{"type":"object"}},{"name":"sign","inputSchema":{"type":"object"}}]}';;
    *'"name":"order"'*) ask '{"message":"What do you order?","requestedSchema":{"type":"object","required":["name","count"],"properties":{
      "name":{"type":"string","title":"Your name","description":"As on the card","minLength":2},
      "count":{"type":"integer","minimum":1,"maximum":9},
      "gift":{"type":"boolean","default":false},
      "colour":{"type":"string","enum":["r","g"],"enumNames":["red","green"],"default":"g"},
      "sizes":{"type":"array","items":{"type":"string","enum":["S","M","L"]}},
      "note":{"type":"string"}}}}';;
    *'"name":"pay"'*) ask '{"mode":"url","elicitationId":"e1","message":"Please pay","url":"https://pay.example/bill?id=7&to=a%20shop"}';;
    *'"name":"sign"'*) ask '{"message":"Who signs?","requestedSchema":{"type":"object","properties":{"signer":{"type":"string"}}}}';;
    *'"name":"odd"'*) ask '{"message":"Fill it in","requestedSchema":{"type":"object","properties":{"deep":{"type":"object"}}}}';;
  esac
done
"#;

/// A window in which the model has called a tool of the server.
async fn asked(tool: &str, arguments: &[&str]) -> (ScriptedApi, Ostler, Window) {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use(format!("mcp__shop__{tool}"), json!({})))
        .rule(when(), reply().text("Heard: {{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let server = json!({"command": "/bin/sh", "args": ["-c", SERVER]});
    let config = json!({"mcpServers": {"shop": server}}).to_string();
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .args(&["--mcp-config", &config, "--allowedTools", "mcp__shop"])
        .args(arguments);
    let window = Window::open(&ostler, 100, &[]);
    window.shows(">");
    window.type_line("go");
    (api, ostler, window)
}

/// The answer that the server received, as it reported it to the model.
fn heard(api: &ScriptedApi) -> String {
    let messages = api.requests().last().unwrap().body["messages"].clone();
    messages.as_array().unwrap().last().unwrap().to_string().replace('\\', "")
}

/// Types an answer into the current field.
fn fill(window: &Window, mark: &str, typed: &str) {
    window.shows(mark);
    window.type_text(typed);
    window.press("Enter");
}

// Mutants: `fields` leaves out the defaults; `choices` leaves out `enumNames`; `fill_in` sends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_shown_filled_in_and_sent() {
    let (api, _ostler, window) = asked("order", &[]).await;
    window.shows("The MCP server shop asks:");
    window.shows("What do you order?");
    for line in [
        "name “Your name” (text, at least 2 characters, required)",
        "As on the card",
        "count (integer, 1 to 9, required)",
        "gift (yes or no, optional, default no)",
        "colour (one of these, optional, default green)",
        "1. red",
        "sizes (any of these, optional)",
        "note (text, optional)",
    ] {
        window.shows(line);
    }
    window.shows("fill in the form");
    window.press("y");
    fill(&window, "name (text, at least 2 characters, required):", "A");
    window.shows("it must be at least 2 characters");
    window.type_line("Ada");
    fill(&window, "count (integer, 1 to 9, required):", "12");
    window.shows("it must be 1 to 9");
    window.type_line("3");
    fill(&window, "gift (yes or no, optional, default no):", "yes");
    fill(&window, "colour (one of these, optional, default green):", "");
    fill(&window, "sizes (any of these, optional):", "1, L");
    fill(&window, "note (text, optional):", "");
    window.shows("count: 3");
    window.shows("colour: green");
    window.shows("send this");
    window.press("y");
    window.shows("→ accepted");
    window.shows("Heard: ");
    let answer = heard(&api);
    let sent = r#"{"name":"Ada","count":3,"gift":true,"colour":"g","sizes":["S","L"]}"#;
    assert!(answer.contains(r#""action":"accept""#) && answer.contains(sent), "{answer}");
}

// Mutants: `by_key` takes n for Esc; the address left out of `visit`.
#[tokio::test(flavor = "multi_thread")]
async fn the_whole_url_is_shown_and_every_answer_reaches_the_server() {
    for (key, action) in [("y", "accept"), ("n", "decline"), ("Escape", "cancel")] {
        let (api, _ostler, window) = asked("pay", &[]).await;
        window.shows("Please pay");
        window.shows("https://pay.example/bill?id=7&to=a%20shop");
        window.shows("cancel: do not answer");
        window.press(key);
        window.shows("Heard: ");
        let answer = heard(&api);
        assert!(answer.contains(&format!(r#""action":"{action}""#)), "{key}: {answer}");
        assert!(!answer.contains(r#""content":{"#), "{key}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_can_be_declined_cancelled_or_filled_in_again() {
    for (key, action) in [("n", "decline"), ("Escape", "cancel")] {
        let (api, _ostler, window) = asked("order", &[]).await;
        window.shows("cancel: do not answer");
        window.press(key);
        window.shows("Heard: ");
        let answer = heard(&api);
        assert!(answer.contains(&format!(r#""action":"{action}""#)), "{key}: {answer}");
    }
    let (api, _ostler, window) = asked("sign", &[]).await;
    window.shows("fill in the form");
    window.press("y");
    fill(&window, "signer (text, optional):", "Adda");
    window.shows("fill in again");
    window.press("e");
    window.shows_times(3, "signer (text, optional)");
    window.type_line("Ada");
    window.shows("signer: Ada");
    window.shows("send this");
    window.press("y");
    window.shows("Heard: ");
    assert!(heard(&api).contains(r#"{"signer":"Ada"}"#), "{}", heard(&api));

    // A form that cannot be filled in can only be declined.
    let (api, _ostler, window) = asked("odd", &[]).await;
    window.shows("cannot be filled in at a terminal: deep: it is of type object");
    window.shows("cancel: do not answer");
    assert!(!window.text().contains("fill in the form"), "{}", window.text());
    // A key pressed too early counts as pasted together with the key before.
    window.press("y");
    let is_declined = || {
        window.press("n");
        window.text().contains("→ declined")
    };
    eventually(is_declined, || "a no".to_owned());
    window.shows("Heard: ");
    assert!(heard(&api).contains("decline"), "{}", heard(&api));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_user_to_ask_the_question_is_cancelled_or_declined() {
    let (api, ostler, window) = asked("pay", &[]).await;
    window.shows("Please pay");
    window.press("C-c");
    window.shows("The turn was interrupted");
    // An option between the list of tools and the prompt; otherwise the prompt would count as a tool.
    for (arguments, action) in
        [(&["-p", "go"][..], "cancel"), (&["--max-turns", "5", "go"], "decline")]
    {
        let before = api.requests().len();
        let ran = ostler.run(arguments);
        assert_eq!((ran.code, api.requests().len()), (Some(0), before + 2), "{ran:?}");
        assert!(!ran.stdout.contains("Please pay"), "{ran:?}");
        let answer = heard(&api);
        let expected = format!(r#"{{"action":"{action}"}}"#);
        assert!(answer.contains(&expected), "{arguments:?}: {answer}");
    }
}
