//! Options that change the requests to the API.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler::Options;
use ostler::options::{SystemPrompt, Thinking, ToolSet};
use ostler_testkit::{RecordedRequest, Script, Status, reply, when};

use super::super::stage::{MODEL, Stage};
use super::super::{Scenario, scenario};
use super::replies;

/// Sends a prompt with changed options, and notes something about the request to the API.
async fn asked(
    stage: &Stage,
    change: impl FnOnce(&mut Options),
    notice: impl Fn(&RecordedRequest) -> String,
) {
    let mut options = stage.options();
    change(&mut options);
    let result = ostler::prompt("Say hello", options);
    match stage.within("the result", result).await {
        Ok(_) => {}
        Err(error) => stage.note(format!("error {:?}", error.kind())),
    }
    match stage.requests().last() {
        Some(request) => stage.note(notice(request)),
        None => stage.note("nothing was asked"),
    }
}

fn hello() -> Script {
    Script::new().rule(when(), reply().text("Hello."))
}

/// The thinking setting of a request, as text.
fn thinking(request: &RecordedRequest) -> String {
    let thinking = &request.body["thinking"];
    match thinking["type"].as_str() {
        Some("enabled") => format!("up to {} tokens", thinking["budget_tokens"]),
        None | Some("disabled") => "not at all".to_owned(),
        Some(kind) => kind.to_owned(),
    }
}

fn thinks(stage: &Stage, how: Thinking) -> BoxFuture<'_, ()> {
    asked(stage, move |options| options.model.thinking = Some(how), thinking).boxed()
}

/// Whether the system prompt contains a text.
fn has(text: &'static str) -> impl Fn(&RecordedRequest) -> String {
    move |request| {
        let system = request.system_text();
        // Engines may add a short text (who they are, where they work), but no more.
        let is_alone = if system.len() < 400 { "alone" } else { "among more" };
        format!("{is_alone}, has {text:?}: {}", system.contains(text))
    }
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "opt-model",
            hello(),
            |stage| {
                let change = |options: &mut Options| {
                    options.model.name = Some("claude-opus-4-5".to_owned());
                };
                asked(stage, change, |request| request.model().to_owned()).boxed()
            },
            "claude-opus-4-5",
        ),
        scenario(
            "opt-fallback-model",
            Script::new()
                .rule(
                    when().model(MODEL),
                    reply().status(Status::new(529).error_type("overloaded_error").retry_after(0)),
                )
                .rule(when(), reply().text("Hello.")),
            |stage| {
                let change = |options: &mut Options| {
                    options.model.fallback = Some("claude-opus-4-5".to_owned());
                };
                asked(stage, change, |request| request.model().to_owned()).boxed()
            },
            "claude-opus-4-5",
        ),
        scenario(
            "opt-thinking-budget",
            hello(),
            |stage| thinks(stage, Thinking::Budget(2048)),
            "up to 2048 tokens",
        ),
        scenario(
            "opt-thinking-off",
            hello(),
            |stage| thinks(stage, Thinking::Disabled),
            "not at all",
        ),
        scenario(
            "opt-effort",
            hello(),
            |stage| {
                let change = |options: &mut Options| {
                    options.model.name = Some("claude-opus-4-5".to_owned());
                    options.model.effort = Some(ostler::options::Effort::Low);
                };
                let effort =
                    |request: &RecordedRequest| request.body["output_config"]["effort"].to_string();
                asked(stage, change, effort).boxed()
            },
            r#""low""#,
        ),
        scenario(
            "opt-betas",
            hello(),
            |stage| {
                const BETA: &str = "context-1m-2025-08-07";
                let change = |options: &mut Options| options.model.betas = vec![BETA.to_owned()];
                let notice = |request: &RecordedRequest| {
                    let betas = request.headers.get("anthropic-beta");
                    format!("asked for: {}", betas.is_some_and(|betas| betas.contains(BETA)))
                };
                asked(stage, change, notice).boxed()
            },
            "asked for: true",
        ),
        scenario(
            "opt-system-text",
            hello(),
            |stage| {
                let change = |options: &mut Options| {
                    options.context.system_prompt = SystemPrompt::Text("Speak Latin.".to_owned());
                };
                asked(stage, change, has("Speak Latin.")).boxed()
            },
            r#"alone, has "Speak Latin.": true"#,
        ),
        scenario(
            "opt-system-preset",
            hello(),
            |stage| {
                let change = |options: &mut Options| {
                    let append = Some("Speak Latin.".to_owned());
                    options.context.system_prompt = SystemPrompt::Preset { append };
                };
                asked(stage, change, has("Speak Latin.")).boxed()
            },
            r#"among more, has "Speak Latin.": true"#,
        ),
        scenario(
            "opt-system-empty",
            hello(),
            |stage| asked(stage, |_| (), has("Speak Latin.")).boxed(),
            r#"alone, has "Speak Latin.": false"#,
        ),
        scenario(
            "opt-tools",
            hello(),
            |stage| {
                async {
                    let names = |request: &RecordedRequest| {
                        let mut names = request.tool_names();
                        names.sort_unstable();
                        format!("{names:?}")
                    };
                    for only in [&["Read", "Bash"][..], &[]] {
                        let only = only.iter().map(|name| (*name).to_owned()).collect();
                        let change = |options: &mut Options| {
                            options.tools.base = Some(ToolSet::Only(only));
                        };
                        asked(stage, change, names).await;
                    }
                }
                .boxed()
            },
            r#"["Bash", "Read"]
               []"#,
        ),
        scenario(
            "opt-agents",
            hello(),
            |stage| {
                let change = |options: &mut Options| {
                    let agent = serde_json::json!({
                        "description": "Knows every herb in the garden", "prompt": "Name the herb.",
                    });
                    let agent = serde_json::from_value(agent).unwrap();
                    options.tools.agents.insert("herbalist".to_owned(), agent);
                };
                let notice = |request: &RecordedRequest| {
                    let told = request.body.to_string().contains("Knows every herb");
                    format!("the model is told of the agent: {told}")
                };
                asked(stage, change, notice).boxed()
            },
            "the model is told of the agent: true",
        ),
        scenario(
            "maxtok",
            replies(vec![
                reply().text("part 0 ").stop_reason("max_tokens"),
                reply().text("part 1 ").stop_reason("max_tokens"),
                reply().text("final part."),
            ]),
            |stage| async { stage.query("Long", stage.options()).await }.boxed(),
            r#"init
               text part 0 
               note
               text part 1 
               note
               text final part.
               result success "final part.""#,
        ),
    ]
}
