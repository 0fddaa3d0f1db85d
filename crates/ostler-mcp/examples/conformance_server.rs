//! The server that the official conformance suite examines: `cargo xtask mcp`.
//!
//! It listens on a free port of this machine, prints its address, and offers the tools, resources and prompts that the
//! suite asks for by name.

use std::time::Duration;

use ostler_mcp::{
    AskError, ClientCapability, Content, Context, Elicited, HttpOptions, Level, Output, Prompt,
    PromptMessage, Resource, ResourceContents, Server, Tool, raw_tool, tool, tool_with_context,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A picture of one red dot.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    #[expect(clippy::print_stdout, reason = "the suite must know the address")]
    {
        println!("http://{address}/mcp");
    }
    server().serve_http(listener, HttpOptions::default(), CancellationToken::new()).await
}

fn server() -> Server {
    let server = Server::new("conformance", "1.0.0")
        .logging()
        .tools(plain_tools())
        .tools(asking_tools())
        .tools(round_tools())
        .resource(
            Resource::text(
                "test://static-text",
                "static text",
                "This is the content of the static text resource.",
            )
            .description("A text")
            .mime_type("text/plain"),
        )
        .resource(
            Resource::new("test://static-binary", "static binary", |uri| async move {
                Ok::<_, String>(ResourceContents::blob(uri, PNG))
            })
            .description("A picture")
            .mime_type("image/png"),
        )
        .resource(
            Resource::text("test://watched-resource", "watched", "It may change.")
                .description("A text that is watched")
                .mime_type("text/plain"),
        )
        .resource(
            Resource::template("test://template/{id}/data", "template", |uri, variables| async move {
                let id = &variables["id"];
                let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                Ok::<_, String>(ResourceContents::text(uri, text.to_string()))
            })
            .mime_type("application/json"),
        );
    prompts().into_iter().for_each(|prompt| server.add_prompt(prompt));
    let changed = server.clone();
    server.add_tool(tool("test_trigger_tool_change", "Changes the tools", move |(): ()| {
        changed.add_tool(tool("added", "Is added", |(): ()| "here"));
        changed.remove_tool("added");
    }));
    let changed = server.clone();
    server.add_tool(tool("test_trigger_prompt_change", "Changes the prompts", move |(): ()| {
        let prompt = Prompt::new("added", "Is added", |_| async { Ok::<_, String>(Vec::new()) });
        changed.add_prompt(prompt);
        changed.remove_prompt("added");
    }));
    server
}

fn plain_tools() -> Vec<Tool> {
    let text = || ResourceContents {
        mime_type: Some("text/plain".to_owned()),
        ..ResourceContents::text(
            "test://embedded-resource",
            "This is an embedded resource content.",
        )
    };
    vec![
        tool(
            "test_simple_text",
            "Returns a text",
            |(): ()| "This is a simple text response for testing.",
        ),
        tool("test_image_content", "Returns a picture", |(): ()| {
            Output::new().image(PNG, "image/png")
        }),
        tool("test_audio_content", "Returns a sound", |(): ()| {
            Output::new().block(Content::audio(WAV, "audio/wav"))
        }),
        tool("test_embedded_resource", "Returns a resource", move |(): ()| {
            Output::new().resource(text())
        }),
        tool("test_multiple_content_types", "Returns one of each", |(): ()| {
            let resource = ResourceContents {
                mime_type: Some("application/json".to_owned()),
                ..ResourceContents::text(
                    "test://mixed-content-resource",
                    json!({"test": "data", "value": 123}).to_string(),
                )
            };
            Output::text("Multiple content types test:").image(PNG, "image/png").resource(resource)
        }),
        tool("test_error_handling", "Fails", |(): ()| {
            Err::<(), _>("This tool intentionally returns an error for testing")
        }),
        tool_with_context("test_tool_with_logging", "Logs", logs),
        tool_with_context("test_logging_tool", "Logs", logs),
        tool_with_context(
            "test_tool_with_progress",
            "Reports",
            |(): (), context: Context| async move {
                for done in [0.0, 50.0, 100.0] {
                    context.progress(done, Some(100.0), "");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Ok::<_, String>("done")
            },
        ),
        raw_tool(
            "json_schema_2020_12_tool",
            "Tool with JSON Schema 2020-12 features",
            schema_2020_12(),
            |arguments, _| async move { Ok::<_, String>(arguments) },
        ),
    ]
}

async fn logs((): (), context: Context) -> Result<&'static str, String> {
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        context.log(Level::Info, "test", text);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok("logged")
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn question(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100})
}

fn form(properties: Value) -> Value {
    let required: Vec<_> =
        properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn described(elicited: &Elicited) -> String {
    match elicited {
        Elicited::Accepted(content) => format!("action=accept, content={}", json!(content)),
        Elicited::Declined => "action=decline".to_owned(),
        _ => "action=cancel".to_owned(),
    }
}

/// Asks with a fixed form, and tells the answer.
fn form_tool(name: &str, key: &'static str, message: &'static str, properties: Value) -> Tool {
    tool_with_context(name, "Asks the user", move |(): (), context: Context| {
        let schema = form(properties.clone());
        async move {
            let elicited = context.elicit(key, message, schema).await?;
            Ok::<_, AskError>(format!("Elicitation completed: {}", described(&elicited)))
        }
    })
}

/// The tools of revisions in which the server asks by a request.
fn asking_tools() -> Vec<Tool> {
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let defaults = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    let options = ["option1", "option2", "option3"];
    let titled = json!([
        {"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]);
    let enums = json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    });
    vec![
        raw_tool(
            "test_sampling",
            "Asks the model",
            text("prompt"),
            |arguments, context| async move {
                let prompt = arguments["prompt"].as_str().unwrap_or_default();
                let answer = context.sample("answer", question(prompt)).await?;
                let text = answer["content"]["text"].as_str().unwrap_or_default();
                Ok::<_, AskError>(format!("LLM response: {text}"))
            },
        ),
        raw_tool(
            "test_elicitation",
            "Asks the user",
            text("message"),
            |arguments, context| async move {
                let message = arguments["message"].as_str().unwrap_or_default().to_owned();
                let properties = json!({
                    "username": {"type": "string", "description": "User's response"},
                    "email": {"type": "string", "description": "User's email address"},
                });
                let elicited = context.elicit("user", message, form(properties)).await?;
                Ok::<_, AskError>(format!("User response: {}", described(&elicited)))
            },
        ),
        form_tool("test_elicitation_sep1034_defaults", "defaults", "Please check", defaults),
        form_tool("test_elicitation_sep1330_enums", "enums", "Please choose", enums),
    ]
}

/// The tools of MCP 2026-07-28, in which the server asks by its answer.
fn round_tools() -> Vec<Tool> {
    let ok = || json!({"ok": {"type": "boolean"}});
    let name = || json!({"name": {"type": "string"}});
    let prefix = "test_input_required_result_";
    let asks = |suffix: &str, key, message, properties| {
        form_tool(&format!("{prefix}{suffix}"), key, message, properties)
    };
    vec![
        asks("elicitation", "user_name", "What is your name?", name()),
        asks("request_state", "confirm", "Please confirm", ok()),
        asks("tampered_state", "confirm", "Please confirm", ok()),
        form_tool("test_streaming_elicitation", "confirm", "Please confirm", ok()),
        tool_with_context(
            format!("{prefix}sampling"),
            "Asks the model",
            |(): (), context: Context| async move {
                let answer =
                    context.sample("capital_question", question("What is the capital of France?"));
                Ok::<_, AskError>(answer.await?["content"].clone())
            },
        ),
        tool_with_context(
            "test_missing_capability",
            "Needs a model",
            |(): (), context: Context| async move {
                Ok::<_, AskError>(
                    context.sample("needed", question("Are you there?")).await?["content"].clone(),
                )
            },
        ),
        tool_with_context(
            format!("{prefix}list_roots"),
            "Asks for folders",
            |(): (), context: Context| async move {
                Ok::<_, AskError>(json!({"roots": context.list_roots("client_roots").await?}))
            },
        ),
        tool_with_context(
            format!("{prefix}multiple_inputs"),
            "Asks everything",
            |(): (), context: Context| async move {
                let schema = form(json!({"name": {"type": "string"}}));
                let (name, greeting, roots) = tokio::join!(
                    context.elicit("user_name", "What is your name?", schema),
                    context.sample("greeting", question("Generate a greeting")),
                    context.list_roots("client_roots"),
                );
                Ok::<_, AskError>(
                    json!({"name": described(&name?), "greeting": greeting?, "roots": roots?}),
                )
            },
        ),
        tool_with_context(
            format!("{prefix}multi_round"),
            "Asks twice",
            |(): (), context: Context| async move {
                let name = form(json!({"name": {"type": "string"}}));
                let name = context.elicit("step1", "Step 1: What is your name?", name).await?;
                let colour = form(json!({"color": {"type": "string"}}));
                let message = "Step 2: What is your favorite color?";
                let colour = context.elicit("step2", message, colour).await?;
                Ok::<_, AskError>(format!("{}; {}", described(&name), described(&colour)))
            },
        ),
        tool_with_context(
            format!("{prefix}capabilities"),
            "Asks what it may",
            |(): (), context: Context| async move {
                if context.client_supports(ClientCapability::Elicitation) {
                    let schema = form(json!({"ok": {"type": "boolean"}}));
                    context.elicit("confirm", "Please confirm", schema).await?;
                }
                context.sample("answer", question("What is the capital of France?")).await?;
                Ok::<_, AskError>("done")
            },
        ),
    ]
}

fn prompts() -> Vec<Prompt> {
    let user = |content: Content| PromptMessage { role: "user".to_owned(), content };
    vec![
        Prompt::new("test_simple_prompt", "A text", |_| async {
            Ok::<_, String>(vec![PromptMessage::user("This is a simple prompt for testing.")])
        }),
        Prompt::new(
            "test_prompt_with_arguments",
            "A text with arguments",
            |arguments| async move {
                let (first, second) = (&arguments["arg1"], &arguments["arg2"]);
                let text = format!("Prompt with arguments: arg1='{first}', arg2='{second}'");
                Ok::<_, String>(vec![PromptMessage::user(text)])
            },
        )
        .required("arg1", "First test argument")
        .required("arg2", "Second test argument")
        .complete("arg1", |typed| {
            let known = ["paris", "park", "party", "test value"];
            known.into_iter().filter(|it| it.starts_with(typed)).map(str::to_owned).collect()
        }),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            "A resource",
            move |arguments| async move {
                let contents = ResourceContents {
                    mime_type: Some("text/plain".to_owned()),
                    ..ResourceContents::text(
                        &arguments["resourceUri"],
                        "Embedded resource content for testing.",
                    )
                };
                let text = PromptMessage::user("Please process the embedded resource above.");
                Ok::<_, String>(vec![user(Content::Resource(contents)), text])
            },
        )
        .required("resourceUri", "The resource to embed"),
        Prompt::new("test_prompt_with_image", "A picture", move |_| async move {
            let text = PromptMessage::user("Please analyze the image above.");
            Ok::<_, String>(vec![user(Content::image(PNG, "image/png")), text])
        }),
        Prompt::with_context(
            "test_input_required_result_prompt",
            "Asks the user",
            |_, context| async move {
                let schema = form(json!({"context": {"type": "string"}}));
                let message = "What context should the prompt use?";
                let elicited = context.elicit("user_context", message, schema).await?;
                Ok::<_, AskError>(vec![PromptMessage::user(described(&elicited))])
            },
        ),
    ]
}
