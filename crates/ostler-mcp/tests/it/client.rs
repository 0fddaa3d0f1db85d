//! Our client with our server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_mcp::{
    CallOptions, Channel, Client, ClientOptions, Content, Endpoint, Error, Event, Server, Status,
    tool,
};
use ostler_proto::control::{Elicitation, ElicitationReply};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::support::{calc, within};

async fn connected() -> Client {
    let connect = Client::connect("calc", calc(), ClientOptions::default());
    within("connecting", connect).await.unwrap()
}

#[tokio::test]
async fn a_client_reads_the_servers_details_tools_resources_and_prompts() {
    let client = connected().await;
    assert_eq!(client.status(), Status::Connected);
    let details = client.details().unwrap();
    assert_eq!((details.name.as_str(), details.version.as_str()), ("calc", "1.2.3"));
    assert_eq!(details.instructions.as_deref(), Some("Adds, and that is it."));
    assert_eq!(details.protocol_version, "2025-11-25");
    client.ping().await.unwrap();
    let tools = client.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "boom", "panic", "draw", "progress", "hang"]);
    assert_eq!(tools[0].annotations.as_ref().unwrap().read_only, Some(true));
    assert_eq!(tools[0].input_schema["required"], json!(["a", "b"]));
    assert_eq!(client.list_resources().await.unwrap()[0].uri, "note://today");
    let templates = client.list_resource_templates().await.unwrap();
    assert_eq!(templates[0].uri_template, "note://{day}/{+rest}");
    let read = client.read_resource("note://today").await.unwrap();
    assert_eq!(read[0].text.as_deref(), Some("buy milk"));
    let prompts = client.list_prompts().await.unwrap();
    assert!(prompts[0].arguments[0].required);
    let arguments = BTreeMap::from([("name".to_owned(), "Ada".to_owned())]);
    let prompt = client.get_prompt("greet", arguments).await.unwrap();
    assert_eq!(prompt.messages[0].content.as_text(), Some("Say hello to Ada."));
}

#[tokio::test]
async fn a_missing_capability_gives_an_empty_list() {
    let client = Client::connect("s", Server::new("s", "1"), ClientOptions::default());
    let client = within("connecting", client).await.unwrap();
    assert!(client.list_resources().await.unwrap().is_empty());
    assert!(client.list_resource_templates().await.unwrap().is_empty());
    assert!(client.list_prompts().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_tool_is_called_and_its_failure_is_an_output() {
    let client = connected().await;
    let call = |tool, arguments| client.call_tool(tool, arguments, CallOptions::default());
    assert_eq!(call("add", json!({"a": 2, "b": 3})).await.unwrap().joined_text(), "5");
    let failed = call("boom", json!({})).await.unwrap();
    assert!(failed.is_error && failed.joined_text() == "no luck today");
    let drawn = call("draw", json!({})).await.unwrap();
    assert!(matches!(&drawn.content[1], Content::Image(media) if media.mime_type == "image/png"));
    let unknown = call("sub", json!({})).await.unwrap_err();
    assert!(matches!(unknown, Error::Refused { code: -32602, .. }), "{unknown}");
}

#[tokio::test]
async fn progress_arrives_in_order_and_metadata_reaches_the_tool() {
    let client = connected().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let options = CallOptions::default()
        .meta("claudecode/toolUseId", "toolu_7")
        .on_progress(move |progress| hear.lock().unwrap().push((progress.done, progress.message)));
    let output =
        within("the call", client.call_tool("progress", json!({}), options)).await.unwrap();
    assert_eq!(output.structured, Some(json!({"id": "toolu_7"})));
    assert_eq!(*heard.lock().unwrap(), [(1.0, Some("half".to_owned())), (2.0, None)]);
}

/// A server whose tool hangs and reports when it is dropped.
fn hanging() -> (Server, mpsc::UnboundedReceiver<&'static str>) {
    struct Dropped(mpsc::UnboundedSender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send("dropped").ok();
        }
    }
    let (tell, dropped) = mpsc::unbounded_channel();
    let hang = tool("hang", "", move |(): ()| {
        let tell = tell.clone();
        async move {
            tell.send("started").ok();
            let _dropped = Dropped(tell);
            std::future::pending::<Result<(), Infallible>>().await
        }
    });
    (Server::new("slow", "1").tool(hang), dropped)
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends_at_the_server_too() {
    let (server, mut dropped) = hanging();
    let client = Client::connect("slow", server, ClientOptions::default()).await.unwrap();
    let token = CancellationToken::new();
    let call =
        client.call_tool("hang", json!({}), CallOptions::default().cancellation(token.clone()));
    let cancel = async {
        assert_eq!(dropped.recv().await, Some("started"));
        token.cancel();
    };
    let (error, ()) = within("the call", async { tokio::join!(call, cancel) }).await;
    assert_eq!(error.unwrap_err().to_string(), "MCP server \"slow\" tool \"hang\" was cancelled");
    assert_eq!(within("the server's end of it", dropped.recv()).await, Some("dropped"));

    let call = client.call_tool("hang", json!({}), CallOptions::default());
    {
        let mut call = std::pin::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("it never ends"),
            said = dropped.recv() => assert_eq!(said, Some("started")),
        }
    }
    assert_eq!(within("the server's end of it", dropped.recv()).await, Some("dropped"));

    let options = CallOptions::default().timeout(Duration::from_millis(20));
    let error = within("the call", client.call_tool("hang", json!({}), options)).await.unwrap_err();
    assert_eq!(error.to_string(), "MCP server \"slow\" tool \"hang\" timed out after 20ms");
    // It may be dropped before it starts.
    while within("the server's end of it", dropped.recv()).await != Some("dropped") {}
    client.ping().await.unwrap();
}

#[tokio::test]
async fn listeners_are_notified_of_changed_lists() {
    let (tell, mut dropped) = mpsc::unbounded_channel();
    let options = ClientOptions::default().on_event(move |event| {
        tell.send(event).ok();
    });
    let server = calc();
    let client =
        within("connecting", Client::connect("calc", server.clone(), options)).await.unwrap();
    assert!(server.remove_tool("boom"));
    assert_eq!(within("news", dropped.recv()).await, Some(Event::ToolsChanged));
    assert!(client.list_tools().await.unwrap().iter().all(|tool| tool.name != "boom"));
    client.close().await;
    assert!(matches!(within("news", dropped.recv()).await, Some(Event::Closed(_))));
    assert!(matches!(client.status(), Status::Failed(_)));
    assert!(matches!(client.ping().await, Err(Error::Closed { .. })));
    within("connecting again", client.reconnect()).await.unwrap();
    assert_eq!(client.status(), Status::Connected);
}

#[tokio::test]
async fn a_listener_that_panics_does_not_end_the_connection() {
    let options = ClientOptions::default().on_event(|_| panic!("not now"));
    let server = calc();
    let client =
        within("connecting", Client::connect("calc", server.clone(), options)).await.unwrap();
    server.remove_tool("boom");
    let options = CallOptions::default().on_progress(|_| panic!("not now either"));
    let output = client.call_tool("progress", json!({}), options);
    assert!(!within("the call", output).await.unwrap().is_error);
}

#[tokio::test]
async fn with_a_manifest_there_is_no_handshake() {
    let server = calc();
    let connection = server.connect();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let endpoint = Endpoint::custom(move || {
        let (ours, mut theirs) = Channel::pair(8);
        let (connection, heard) = (connection.clone(), Arc::clone(&listener));
        tokio::spawn(async move {
            while let Some(message) = theirs.incoming.recv().await {
                heard.lock().unwrap().push(message["method"].as_str().unwrap().to_owned());
                if let Some(answer) = connection.handle(message).await {
                    theirs.outgoing.send(answer).await.ok();
                }
            }
        });
        ours
    });
    let options = ClientOptions::default().manifest(server.manifest());
    let client = within("connecting", Client::connect("calc", endpoint, options)).await.unwrap();
    assert_eq!(client.details().unwrap().version, "1.2.3");
    assert_eq!(client.list_tools().await.unwrap().len(), 6);
    assert!(heard.lock().unwrap().is_empty(), "everything was known");
    let output = client.call_tool("add", json!({"a": 2, "b": 3}), CallOptions::default());
    assert_eq!(within("the call", output).await.unwrap().joined_text(), "5");
    assert_eq!(*heard.lock().unwrap(), ["tools/call"]);
}

#[tokio::test]
async fn a_manifest_is_discarded_when_the_tools_change() {
    let (tell, mut dropped) = mpsc::unbounded_channel();
    let server = calc();
    let options = ClientOptions::default().manifest(server.manifest()).on_event(move |event| {
        tell.send(event).ok();
    });
    let connect = Client::connect("calc", server.clone(), options);
    let client = within("connecting", connect).await.unwrap();
    assert_eq!(client.list_tools().await.unwrap().len(), 6);
    assert!(server.remove_tool("boom"));
    assert_eq!(within("news", dropped.recv()).await, Some(Event::ToolsChanged));
    assert_eq!(within("the list", client.list_tools()).await.unwrap().len(), 5);
}

/// A scripted server: it answers the handshake, then calls `answer`.
pub(crate) fn played(answer: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static) -> Endpoint {
    let answer = Arc::new(answer);
    Endpoint::custom(move || {
        let (ours, mut theirs) = Channel::pair(8);
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            while let Some(message) = theirs.incoming.recv().await {
                let messages = match message["method"].as_str() {
                    Some("initialize") => {
                        vec![json!({"jsonrpc": "2.0", "id": message["id"], "result": {
                            "protocolVersion": "2025-06-18",
                            "capabilities": {"tools": {}, "prompts": {}},
                            "serverInfo": {"name": "played", "version": "0"},
                        }})]
                    }
                    _ => answer(&message),
                };
                for message in messages {
                    theirs.outgoing.send(message).await.ok();
                }
            }
        });
        ours
    })
}

pub(crate) fn result(request: &Value, result: Value) -> Vec<Value> {
    vec![json!({"jsonrpc": "2.0", "id": request["id"], "result": result})]
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let answer_to = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answer_to);
    let endpoint = played(move |message| {
        if message.get("id").is_none() {
            return Vec::new();
        }
        let page = count.fetch_add(1, Ordering::SeqCst);
        let expected =
            if page == 0 { Value::Null } else { json!({"cursor": format!("page {page}")}) };
        assert_eq!(message.get("params").cloned().unwrap_or_default(), expected);
        let tool = json!({"name": format!("tool {page}"), "inputSchema": {"type": "object"}});
        let mut list = json!({"tools": [tool]});
        if page < 2 {
            list["nextCursor"] = format!("page {}", page + 1).into();
        }
        result(message, list)
    });
    let client = Client::connect("pages", endpoint, ClientOptions::default()).await.unwrap();
    assert_eq!(client.list_tools().await.unwrap().len(), 3);
    assert_eq!(answer_to.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn endless_pages_and_malformed_answers_are_errors() {
    let check = async |answer: Value, expected: &str| {
        let endpoint = played(move |message| match message.get("id") {
            Some(_) => result(message, answer.clone()),
            None => Vec::new(),
        });
        let client = Client::connect("odd", endpoint, ClientOptions::default()).await.unwrap();
        let error = within("the list", client.list_tools()).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        let called = client.call_tool("x", json!({}), CallOptions::default());
        assert!(matches!(within("the call", called).await, Err(Error::Malformed { .. }) | Ok(_)));
        let prompt = client.get_prompt("x", BTreeMap::new());
        assert!(within("the prompt", prompt).await.is_err());
    };
    check(json!({"tools": [], "nextCursor": "again"}), "the cursor of the next page").await;
    check(json!({"tools": "all", "messages": ["hi"]}), "expected a sequence").await;
    check(json!({"tools": [{"name": 7}], "messages": 7}), "[0].name").await;
    check(json!("hello"), "`tools`").await;
    check(Value::Null, "`tools`").await;
}

#[tokio::test]
async fn a_server_with_an_unknown_version_is_refused() {
    let endpoint = Endpoint::custom(|| {
        let (ours, mut theirs) = Channel::pair(8);
        tokio::spawn(async move {
            let message = theirs.incoming.recv().await.unwrap();
            for message in result(&message, json!({"protocolVersion": "1999-01-01"})) {
                theirs.outgoing.send(message).await.ok();
            }
        });
        ours
    });
    let error = Client::connect("old", endpoint, ClientOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("its MCP version 1999-01-01"), "{error}");
}

/// Lets the server send a request, and returns our answer.
async fn answer_to(question: Value, options: ClientOptions) -> Value {
    let (tell, dropped) = oneshot::channel();
    let tell = Mutex::new(Some(tell));
    let endpoint = played(move |message| match message["method"].as_str() {
        Some("notifications/initialized") => vec![question.clone()],
        None => {
            tell.lock().unwrap().take().unwrap().send(message.clone()).ok();
            Vec::new()
        }
        Some(_) => Vec::new(),
    });
    let client = Client::connect("curious", endpoint, options).await.unwrap();
    let answer = within("an answer", dropped).await.unwrap();
    drop(client);
    answer
}

fn elicitation(params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params})
}

#[tokio::test]
async fn elicitations_reach_the_callback_and_are_cancelled_without_one() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let form = elicitation(json!({"message": "Who?", "requestedSchema": schema}));
    let answer = answer_to(form.clone(), ClientOptions::default()).await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "q1", "result": {"action": "cancel"}}));

    let questions = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&questions);
    let options = ClientOptions::default().on_elicitation(move |question: Elicitation| {
        seen.lock().unwrap().push(question);
        let content = Some(json!({"name": "Ada"}));
        async { ElicitationReply { action: "accept".to_owned(), content, ..Default::default() } }
    });
    let answer = answer_to(form.clone(), options.clone()).await;
    assert_eq!(answer["result"], json!({"action": "accept", "content": {"name": "Ada"}}));
    let url =
        json!({"mode": "url", "message": "Go", "url": "https://example.com", "elicitationId": "e"});
    answer_to(elicitation(url), options).await;
    let questions = questions.lock().unwrap().clone();
    assert_eq!(questions[0].mcp_server_name, "curious");
    assert_eq!(questions[0].mode.as_deref(), Some("form"));
    assert_eq!(questions[0].requested_schema, Some(schema));
    assert_eq!(questions[1].url.as_deref(), Some("https://example.com"));
    assert_eq!(questions[1].elicitation_id.as_deref(), Some("e"));

    let broken = ClientOptions::default().on_elicitation(|_| async { panic!("no idea") });
    assert_eq!(answer_to(form, broken).await["result"], json!({"action": "decline"}));
}

#[tokio::test]
async fn other_requests_of_the_server_are_answered_or_refused() {
    let ask = |method: &str| json!({"jsonrpc": "2.0", "id": 5, "method": method});
    let answer = answer_to(ask("ping"), ClientOptions::default()).await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    let answer = answer_to(ask("sampling/createMessage"), ClientOptions::default()).await;
    assert_eq!(answer["error"]["code"], -32601);
}
