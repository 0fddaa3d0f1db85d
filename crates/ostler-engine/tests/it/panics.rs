//! A panic in code around a turn becomes a result; the conversation is not lost and the turn ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use ostler_engine::mcp::{Connected, Connector, HostLine, ServerLocation};
use ostler_engine::model::{EventStream, Model, Request, ToolSpec};
use ostler_engine::tool::{AnyTool, Effect, Prepared, ToolCx, ToolOutput};
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::ToolUseMeta;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::host::TestHost;

/// Far longer than a turn of these tests takes; a turn that takes longer hangs.
const HANGS: Duration = Duration::from_secs(30);

/// Where a tool panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    /// When the driver checks whether the call may run in parallel with others.
    FirstPrepare,
    /// When the permission is decided.
    SecondPrepare,
    /// When the arguments are filtered, before the permission is decided.
    Filter,
    /// When the call is shown to the host: that is in the turn itself.
    Shown,
    /// While it runs.
    Run,
}

struct Panics {
    at: Where,
    n_prepared: AtomicUsize,
}

impl Panics {
    fn tool(at: Where) -> Arc<dyn AnyTool> {
        Arc::new(Self { at, n_prepared: AtomicUsize::new(0) })
    }

    fn maybe(&self, here: Where) {
        assert!(self.at != here, "boom at {here:?}");
    }
}

impl AnyTool for Panics {
    fn spec(&self) -> ToolSpec {
        let schema = json!({"type": "object", "properties": {}});
        ToolSpec { name: "Panics".into(), description: "For tests.".into(), input_schema: schema }
    }

    fn without_host_only(&self, input: &Value) -> Value {
        self.maybe(Where::Filter);
        input.clone()
    }

    fn shown(&self) -> Option<ToolUseMeta> {
        self.maybe(Where::Shown);
        None
    }

    fn prepare(self: Arc<Self>, _: &ToolCx, _: &Value) -> Result<Prepared, String> {
        match self.n_prepared.fetch_add(1, Ordering::Relaxed) {
            0 => self.maybe(Where::FirstPrepare),
            _ => self.maybe(Where::SecondPrepare),
        }
        let run = Box::new(move |_| {
            Box::pin(async move {
                self.maybe(Where::Run);
                Ok(ToolOutput::new("ran", json!(null)))
            }) as ostler_engine::tool::RunFuture
        });
        Ok(Prepared { effect: Effect::Nothing, run })
    }
}

/// A first prompt, then one whose call panics, then one more.
async fn with_panicking_tool(at: Where) -> TestHost {
    let script = Script::new()
        .rule(when().prompt_contains("one"), reply().text("First answer."))
        .rule(when().has_tool_result(true), reply().text("Told: {{tool_result}}"))
        .rule(when().prompt_contains("two"), reply().tool_use("Panics", json!({})))
        .rule(when().prompt_contains("three"), reply().text("Third answer."));
    let mut host = TestHost::with(script, |options| options.tools.push(Panics::tool(at))).await;
    for prompt in ["one", "two", "three"] {
        host.prompt(prompt).await;
        let result = tokio::time::timeout(HANGS, host.result()).await;
        result.unwrap_or_else(|_| panic!("{at:?}: {prompt} has no end"));
    }
    host
}

// Mutant: only the running of a tool is guarded against panics (`catch_unwind` around `running`), as it was.
#[tokio::test]
async fn a_panic_anywhere_in_a_call_becomes_the_result_of_the_call() {
    for at in [Where::SecondPrepare, Where::Filter, Where::Run] {
        let host = with_panicking_tool(at).await;
        let failure = host.story().into_iter().find(|line| line.starts_with("user: failed"));
        let failure = failure.unwrap_or_else(|| panic!("{at:?}: {:#?}", host.story()));
        assert!(failure.contains("Panics") && failure.contains("boom"), "{at:?}: {failure}");
        host.api.finish();
    }
    // The driver only checks whether the call may run in parallel with others; it then runs alone.
    let host = with_panicking_tool(Where::FirstPrepare).await;
    assert!(host.story().contains(&"user: = ran".to_owned()), "{:#?}", host.story());
    host.api.finish();
}

// Mutant: the session begins the next turn with an empty conversation after a turn that panicked.
#[tokio::test]
async fn a_panic_of_the_turn_itself_does_not_lose_the_conversation() {
    let host = with_panicking_tool(Where::Shown).await;
    let requests = host.api.requests();
    let last = requests.last().unwrap().body.to_string();
    for said in ["one", "First answer.", "two", "three"] {
        assert!(last.contains(said), "{said} is lost: {last}");
    }
    host.api.finish();
}

/// A model that panics at its n-th request.
struct Fragile {
    inner: Arc<dyn Model>,
    n_asked: AtomicUsize,
}

impl Model for Fragile {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn respond(&self, request: Request) -> EventStream {
        assert!(self.n_asked.fetch_add(1, Ordering::Relaxed) != 1, "the model broke");
        self.inner.respond(request)
    }
}

// Mutant: `drive` holds a plain `Turn`, which a panic drops with everything in it.
#[tokio::test]
async fn a_panic_of_the_model_does_not_lose_the_conversation() {
    for second in ["two", "/compact"] {
        let script = Script::new().rule(when(), reply().text("An answer."));
        let mut host = TestHost::with(script, |options| {
            let inner = Arc::clone(&options.model);
            options.model = Arc::new(Fragile { inner, n_asked: AtomicUsize::new(0) });
        })
        .await;
        for prompt in ["one", second, "three"] {
            host.prompt(prompt).await;
            let result = tokio::time::timeout(HANGS, host.result()).await;
            result.unwrap_or_else(|_| panic!("{prompt} has no end"));
        }
        let last = host.api.requests().last().unwrap().body.to_string();
        assert!(last.contains("one") && last.contains("three"), "{second}: {last}");
        host.api.finish();
    }
}

struct Clumsy {
    at_once: bool,
}

impl Connector for Clumsy {
    fn connect(&self, _: String, _: ServerLocation, _: HostLine) -> BoxFuture<'static, Connected> {
        assert!(!self.at_once, "the connector broke");
        Box::pin(async { panic!("the connector broke") })
    }
}

// Mutant: a connector that panics leaves its server pending, and every turn waits for it.
#[tokio::test]
async fn an_mcp_connector_that_panics_counts_as_failed() {
    for at_once in [false, true] {
        let script = Script::new().rule(when(), reply().text("Without it."));
        let mut host = TestHost::with(script, |options| {
            options.connector = Some(Arc::new(Clumsy { at_once }));
            let config = json!({"type": "stdio", "command": "nowhere"});
            let config: McpServerConfig = serde_json::from_value(config).unwrap();
            options.mcp_servers.insert("clumsy".into(), config.into());
        })
        .await;
        host.prompt("hello").await;
        let result = tokio::time::timeout(HANGS, host.result()).await.expect("the turn ends");
        assert_eq!(result.result.as_deref(), Some("Without it."));
        host.api.finish();
    }
}

/// Panics when a prompt hook asks it.
struct BreaksInHooks(Arc<dyn Model>);

impl Model for BreaksInHooks {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn respond(&self, request: Request) -> EventStream {
        assert!(request.model != "small", "the hook's model broke");
        self.0.respond(request)
    }
}

// Mutant: `hooks::run::run` without `catch_unwind`: the panic is taken for one of the tool, or ends the turn.
#[tokio::test]
async fn a_hook_that_panics_objects_where_it_guards_and_warns_where_it_watches() {
    for (event, result, answer) in [
        ("PreToolUse", "user: failed: PreToolUse:Look hook error: ", "Told."),
        ("PostToolUse", "user: = saw it", "Told."),
        ("UserPromptSubmit", "", ""),
    ] {
        let script = Script::new()
            .rule(when().has_tool_result(true), reply().text("Told."))
            .rule(when(), reply().tool_use("Look", json!({"word": "it"})));
        let mut host = TestHost::with(script, |options| {
            options.model = Arc::new(BreaksInHooks(Arc::clone(&options.model)));
            options.small_model = Some("small".to_owned());
            let hook = json!({"type": "prompt", "prompt": "Is this safe?"});
            options.hooks = vec![json!({event: [{"hooks": [hook]}]})];
        })
        .await;
        host.prompt("go").await;
        let ended = tokio::time::timeout(HANGS, host.result()).await.expect("the turn ends");
        let seen = serde_json::to_string(&host.seen).unwrap();
        let reason = format!("{event} hook failed with a panic");
        assert!(seen.contains(&reason), "{event}: {:#?}", host.story());
        let story = host.story();
        let results: Vec<_> = story.iter().filter(|line| line.starts_with("user: ")).collect();
        match answer {
            // Nothing was asked.
            "" => assert!(host.api.requests().is_empty(), "{event}: {story:#?}"),
            answer => {
                assert!(results[0].starts_with(result), "{event}: {story:#?}");
                assert_eq!(ended.result.as_deref(), Some(answer), "{event}");
            }
        }
        host.api.finish();
    }
}
