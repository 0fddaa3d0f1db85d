//! Seed 002, "Custom Tool Bridging": tools of a prompt, from the model's call to the text it reads.

use std::time::Duration;

use ostler_prompt::{
    Budget, Deadline, Markdown, Prompt, Render, Session, Tool, ToolContext, ToolResult, Tools,
    tool_with_context,
};
use ostler_testkit::{Script, reply, when};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::stage::{Stage, within};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// A number.
    number: u32,
}

/// What the model reads after calling a tool with an input, and whether it is an error.
async fn result_of(tool: Tool, input: Value) -> (String, bool) {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use(tool.wire_name(ostler_prompt::TOOL_SERVER), input))
        .rule(when(), reply().text("{{tool_result}}"));
    let stage = Stage::new(script).await;
    let prompt = Prompt::<()>::builder("test", "prompt")
        .section(Markdown::new("Task", "task", "go"))
        .section(Tools::new("tools", [tool]))
        .build()
        .unwrap();
    let session = Session::new();
    let run = stage.adapter().evaluate(&prompt, &session);
    let run = run.deadline(Deadline::after(Duration::from_secs(3600)));
    let response = within(run.budget(Budget::tokens(1_000_000))).await.unwrap();
    let result = stage.requests()[1].tool_results()[0].clone();
    assert_eq!(response.text.as_deref(), Some(result.text.as_str()), "the run continues");
    (result.text, result.is_error)
}

#[derive(Serialize)]
struct Plain {
    number: u32,
}

impl Render for Plain {}

#[derive(Serialize)]
struct Rendered {
    number: u32,
}

impl Render for Rendered {
    fn render(&self) -> Option<String> {
        Some(if self.number == 0 { String::new() } else { format!("number {}", self.number) })
    }
}

#[tokio::test]
async fn a_tool_of_the_sdk_is_a_tool_of_a_prompt() {
    let tool = ostler_sdk::mcp::tool("double", "Doubles a number", |args: Args| 2 * args.number);
    assert_eq!((tool.name(), tool.description()), ("double", "Doubles a number"));
    assert_eq!(result_of(tool, json!({"number": 7})).await, ("14".to_owned(), false));
}

/// The same tool works on both. Mutant: the run is in the tool and not on the server.
#[tokio::test]
async fn a_tool_of_a_prompt_is_a_tool_of_any_server() {
    let tool = tool_with_context("t", "d", |(): (), context: ToolContext| async move {
        let budget = context.budget().map(|it| it.budget().max_total_tokens.unwrap());
        Ok::<_, String>(format!("{:?} {:?}", context.prompt_name(), budget))
    });
    let server = ostler_sdk::mcp::Server::new("other", "1.0.0").tool(tool.clone());
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "arguments": {}}});
    let answer = server.connect().handle(call).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "\"\" None", "there is no run");
    let (text, _) = result_of(tool, json!({})).await;
    assert_eq!(text, "\"test/prompt\" Some(1000000)");
}

#[tokio::test]
async fn step_1_arguments_are_parsed_into_their_type() {
    let tool = |()| {
        tool_with_context("t", "d", |args: Args, _| async move { Ok::<_, String>(args.number) })
    };
    assert_eq!(result_of(tool(()), json!({"number": 7})).await, ("7".to_owned(), false));
    for (input, expected) in [
        (json!({"number": "seven"}), "`number`: invalid type: string \"seven\", expected u32"),
        (json!({}), "missing field `number`"),
        (json!({"number": 1, "extra": 2}), "unknown field `extra`"),
    ] {
        let (text, is_error) = result_of(tool(()), input).await;
        assert!(is_error && text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn step_2_the_context_has_session_deadline_and_budget() {
    let tool = tool_with_context("t", "d", |(): (), context: ToolContext| async move {
        assert!(!context.session().id().is_empty());
        assert_eq!(context.prompt_name(), "test/prompt");
        assert!(context.call().tool_use_id().is_some());
        let budget = context.budget().ok_or("no budget")?;
        assert!(budget.consumed() > 0, "what the model has spent so far is known");
        let left = context.deadline().ok_or("no deadline")?.remaining();
        Ok::<_, String>(format!(
            "{} {}",
            budget.budget().max_total_tokens.unwrap(),
            left.as_secs() > 60
        ))
    });
    assert_eq!(result_of(tool, json!({})).await, ("1000000 true".to_owned(), false));
}

#[tokio::test]
async fn step_3_a_custom_rendering_is_used() {
    let tool = tool_with_context("t", "d", |args: Args, _| async move {
        Ok::<_, String>(Rendered { number: args.number })
    });
    assert_eq!(result_of(tool, json!({"number": 7})).await, ("number 7".to_owned(), false));
}

#[tokio::test]
async fn step_3_without_a_rendering_the_result_is_json() {
    let tool = tool_with_context("t", "d", |args: Args, _| async move {
        Ok::<_, String>(Plain { number: args.number })
    });
    assert_eq!(result_of(tool, json!({"number": 7})).await, (r#"{"number":7}"#.to_owned(), false));
}

#[tokio::test]
async fn step_3_an_empty_rendering_is_replaced_by_the_message() {
    let tool = tool_with_context("t", "d", |args: Args, _| async move {
        Ok::<_, String>(ToolResult::new(Rendered { number: args.number }).message("nothing to see"))
    });
    assert_eq!(result_of(tool, json!({"number": 0})).await, ("nothing to see".to_owned(), false));
    let nothing = tool_with_context("t", "d", |(): (), _| async { Ok::<_, String>(()) });
    assert_eq!(result_of(nothing, json!({})).await, ("ok".to_owned(), false));
}

#[tokio::test]
async fn step_4_the_result_is_in_the_form_of_mcp() {
    let failed = tool_with_context("t", "d", |(): (), _| async {
        Ok::<_, String>(ToolResult::<()>::failed("no such table"))
    });
    assert_eq!(result_of(failed, json!({})).await, ("no such table".to_owned(), true));
}

#[tokio::test]
async fn a_handler_that_fails_or_panics_is_an_error_for_the_model_and_the_run_continues() {
    let fails = tool_with_context("t", "d", |(): (), _| async { Err::<(), _>("out of order") });
    assert_eq!(result_of(fails, json!({})).await, ("out of order".to_owned(), true));
    let panics = tool_with_context("t", "d", |(): (), context: ToolContext| async move {
        assert!(context.prompt_name().is_empty(), "this tool panics");
        Ok::<_, String>(())
    });
    let (text, is_error) = result_of(panics, json!({})).await;
    assert!(is_error && text.contains("failed with a panic"), "{text}");
}

#[tokio::test]
async fn tools_are_offered_under_the_documented_name_and_only_with_a_handler() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("Done."))).await;
    let with = tool_with_context("with", "Has one", |_: Args, _| async { Ok::<_, String>(()) });
    let without = Tool::without_handler("without", "Has none");
    assert!(!without.has_handler());
    let prompt = Prompt::<()>::builder("test", "prompt")
        .section(Markdown::new("Task", "task", "go").tool(with).tool(without))
        .build()
        .unwrap();
    within(stage.adapter().evaluate(&prompt, &Session::new())).await.unwrap();
    let request = &stage.requests()[0];
    let names: Vec<_> =
        request.tool_names().into_iter().filter(|name| name.starts_with("mcp__")).collect();
    assert_eq!(names, ["mcp__ostler__with"]);
    assert_eq!(ostler_prompt::TOOL_SERVER, "ostler");
    let tools = request.body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "mcp__ostler__with").unwrap();
    assert_eq!(tool["description"], "Has one");
    assert_eq!(tool["input_schema"]["properties"]["number"]["description"], "A number.");
}

#[tokio::test]
async fn the_same_tools_can_be_served_to_another_process() {
    let tool = tool_with_context("add_one", "Adds one", |args: Args, _| async move {
        Ok::<_, String>(args.number + 1)
    });
    let prompt = Prompt::<()>::builder("test", "prompt")
        .section(Markdown::new("Task", "task", "go").tool(tool))
        .build()
        .unwrap();
    let server = prompt.tool_server(&Session::new()).unwrap();
    let (near, far) = tokio::io::duplex(4096);
    let (reads, writes) = tokio::io::split(far);
    let serving = tokio::spawn(async move { server.serve(reads, writes).await });
    let (answers, mut asks) = tokio::io::split(near);
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "add_one", "arguments": {"number": 6}},
    });
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    asks.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let mut lines = tokio::io::BufReader::new(answers).lines();
    let answer: Value =
        serde_json::from_str(&within(lines.next_line()).await.unwrap().unwrap()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "7");
    serving.abort();
    // A prompt without tools has nothing to serve.
    assert!(crate::fake::prompt::<()>("go").tool_server(&Session::new()).is_none());
}

#[test]
fn invalid_tool_names_are_refused_when_the_prompt_is_built() {
    let build = |names: &[&str]| {
        let tools = names.iter().map(|name| Tool::without_handler(*name, "d"));
        Prompt::<()>::builder("test", "prompt")
            .section(Markdown::new("Task", "task", "go"))
            .section(Tools::new("tools", tools))
            .build()
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(build(&["a", "b"]), Ok(()));
    assert!(build(&["a", "a"]).unwrap_err().contains("two tools have the name `a`"));
    for name in ["", "a b", "ä", &"x".repeat(49)] {
        assert!(build(&[name]).unwrap_err().contains("not a valid tool name"), "{name}");
    }
}
