//! `long`: a conversation of thousands of turns costs at most twice what it takes to write its requests.
//!
//! Every request contains the whole conversation, so serializing them all grows with the square of the turns. What
//! the engine adds should not grow in the same way. Each conversation runs in its own process, with a model that
//! serializes the request and drops it, so that its peak memory can be measured.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt, stream};
use ostler_engine::model::{EventStream, Model, ModelEvent, Request};
use ostler_engine::permission::Policy;
use ostler_engine::session::{self, SessionOptions};
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::api::StreamEvent;
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::message::User;
use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

use crate::{process, table};

/// The first argument that makes this program run one conversation.
pub(crate) const CONVERSE: &str = "--converse";

const TURNS: [usize; 2] = [500, 2_000];

/// The promise: processor time of the conversation divided by that of writing its requests, for the longest.
const LIMIT: f64 = 2.0;

/// The result of each tool call; a short file.
const RESULT_BYTES: usize = 1_000;

pub(crate) fn run() -> Result<Vec<String>> {
    let this = std::env::current_exe().context("finding this program")?;
    let heading =
        ["turns", "ms", "ms/turn", "writing, ms", "ratio", "last request, MB", "peak, MiB"];
    let mut rows = vec![heading.map(str::to_owned)];
    let mut reached = 0.0;
    for turns in TURNS {
        let args = [CONVERSE, &turns.to_string()];
        let ran = process::run(&this, &args, &std::env::temp_dir(), &[])?;
        let figures: Value = serde_json::from_str(&ran.stdout).context("reading its figures")?;
        let figure = |name: &str| figures[name].as_f64().with_context(|| format!("no {name}"));
        let (engine, writing) = (figure("engine_ms")?, figure("writing_ms")?);
        reached = engine / writing;
        rows.push([
            turns.to_string(),
            format!("{engine:.0}"),
            format!("{:.2}", engine / turns as f64),
            format!("{writing:.0}"),
            format!("{reached:.2}"),
            format!("{:.1}", figure("last_request_bytes")? / 1e6),
            format!("{:.1}", ran.peak_bytes as f64 / f64::from(1 << 20)),
        ]);
    }
    println!("long: one tool call of {RESULT_BYTES} bytes per turn, processor time");
    print!("{}", table::render(&rows));
    if reached > LIMIT {
        return Ok(vec![format!(
            "a long conversation costs {reached:.2} times what its requests do; the promise is {LIMIT}"
        )]);
    }
    Ok(Vec::new())
}

/// Runs one conversation of `turns` turns, and prints its cost.
pub(crate) fn converse(words: &[String]) -> ExitCode {
    let turns = words.first().and_then(|word| word.parse().ok());
    match turns.context("how many turns?").and_then(conversation) {
        Ok(figures) => {
            println!("{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("conversing: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn conversation(turns: usize) -> Result<Value> {
    let model = Arc::new(Caller { turns, last: Mutex::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = process::own_time()?;
    let n_turns = runtime.block_on(hold(model.clone()))?;
    let engine = process::own_time()? - start;
    ensure!(n_turns == turns as u64 + 1, "there were {n_turns} turns instead of {turns}");

    let last = model.last.lock().ok().and_then(|mut last| last.take());
    let mut request = last.context("the model was never asked")?;
    let last_request_bytes = serde_json::to_vec(&request)?.len();
    let start = process::own_time()?;
    // All requests again, from the last to the first.
    while !request.messages.is_empty() {
        std::hint::black_box(serde_json::to_vec(&request)?);
        let rest = request.messages.len().saturating_sub(2);
        Arc::make_mut(&mut request.messages).truncate(rest);
    }
    let writing = process::own_time()? - start;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(json!({
        "engine_ms": ms(engine),
        "writing_ms": ms(writing),
        "last_request_bytes": last_request_bytes,
    }))
}

/// Runs one prompt to its result; returns the number of turns.
async fn hold(model: Arc<Caller>) -> Result<u64> {
    let cwd = std::env::temp_dir();
    let policy = Policy::new(&cwd, PermissionMode::Default);
    let options = SessionOptions::new(model, policy);
    let options = SessionOptions { tools: vec![erase(Lookup)], ..options };
    let mut connection = session::start(options).map_err(anyhow::Error::msg)?;
    connection.to_engine.send(ToEngine::User(Box::new(User::prompt("continue")))).await?;
    while let Some(frame) = connection.from_engine.recv().await {
        if let ToHost::Result(result) = frame {
            ensure!(!result.is_error, "the conversation ended with {:?}", result.errors);
            return Ok(result.num_turns);
        }
    }
    bail!("the engine is gone")
}

/// A model that keeps calling a tool. It serializes every request, as if to send it.
struct Caller {
    turns: usize,
    /// The last request.
    last: Mutex<Option<Request>>,
}

impl Model for Caller {
    fn name(&self) -> &str {
        "caller"
    }

    fn respond(&self, request: Request) -> EventStream {
        std::hint::black_box(serde_json::to_vec(&request).ok());
        let turn = request.messages.len() / 2;
        let (block, stop_reason) = if turn < self.turns {
            let id = format!("call-{turn}");
            (json!({"type": "tool_use", "id": id, "name": "Lookup", "input": {}}), "tool_use")
        } else {
            if let Ok(mut last) = self.last.lock() {
                *last = Some(request);
            }
            (json!({"type": "text", "text": "Done."}), "end_turn")
        };
        let message = json!({"id": format!("message-{turn}"), "type": "message", "role": "assistant",
            "model": "caller", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 1, "output_tokens": 1}});
        let events = [
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "usage": {"output_tokens": 1},
                "delta": {"stop_reason": stop_reason, "stop_sequence": null}}),
            json!({"type": "message_stop"}),
        ];
        let events = events.map(|event| {
            let event: StreamEvent = serde_json::from_value(event).expect("these are events");
            Ok(ModelEvent::Stream(event))
        });
        stream::iter(events).boxed()
    }
}

/// A tool that always returns the same.
struct Lookup;

impl Tool for Lookup {
    const NAME: &'static str = "Lookup";
    const DESCRIPTION: &'static str = "Looks something up.";
    type Args = Value;

    fn effect(&self, _: &ToolCx, _: &Value) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, _: Value) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("x".repeat(RESULT_BYTES), json!({})))
    }
}
