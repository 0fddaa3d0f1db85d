//! The interfaces by which an answer reaches a server: REST, WebSocket, AG-UI.

use futures::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::desk::{Client, within};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Door {
    Rest,
    Socket,
    AgUi,
}

pub(crate) const DOORS: [Door; 3] = [Door::Rest, Door::Socket, Door::AgUi];

impl Door {
    /// Sends a prompt over this interface and waits until a call requires approval. Returns the approval, as REST shows
    /// it.
    pub(crate) async fn ask(self, client: &Client) -> Value {
        match self {
            Self::Rest => {
                let session = client.session().await;
                client.prompt(&session, "go").await;
            }
            Self::Socket => {
                let mut socket = Socket::open(client).await;
                socket.say(json!({"type": "prompt", "text": "go"})).await;
                socket.hear(&["permission_request"]).await;
            }
            Self::AgUi => {
                let events = agui(client, input("r1", None)).await;
                assert_eq!(events.last().unwrap()["outcome"]["type"], "interrupt", "{events:#?}");
            }
        }
        client.pending().await
    }

    /// Answers over this interface. Returns the approval afterwards.
    pub(crate) async fn answer(self, client: &Client, asked: &Value, decision: Value) -> Value {
        let id = asked["id"].as_str().unwrap();
        match self {
            Self::Rest => {
                let path = format!("/api/approvals/{id}/decision");
                client.ask(Method::POST, &path, Some(decision)).await;
            }
            Self::Socket => {
                let mut socket = Socket::open(client).await;
                let mut said = decision;
                said["type"] = "permission_response".into();
                said["permissionId"] = id.into();
                socket.say(said).await;
                socket.hear(&["permission_resolved", "error"]).await;
            }
            Self::AgUi => {
                let mut payload = decision;
                if let Some(edited) = payload.as_object_mut().unwrap().remove("input") {
                    payload["editedArgs"] = edited;
                }
                let entry = json!([{"interruptId": id, "status": "resolved", "payload": payload}]);
                let mut input = input("r2", Some(entry));
                input["threadId"] = asked["session"].clone();
                input["messages"] = json!([]);
                agui(client, input).await;
            }
        }
        client.get(&format!("/api/approvals/{id}")).await
    }
}

fn input(run: &str, resume: Option<Value>) -> Value {
    let mut input = json!({"threadId": "t", "runId": run, "protocolVersion": "1.0",
        "messages": [{"id": "u1", "role": "user", "content": "go"}],
        "tools": [], "context": [], "forwardedProps": {}});
    if let Some(resume) = resume {
        input["resume"] = resume;
    }
    input
}

/// An AG-UI run with all its events.
pub(crate) async fn agui(client: &Client, body: Value) -> Vec<Value> {
    let request = client.request(Method::POST, "/agui").json(&body);
    let text = within(within(request.send()).await.unwrap().text()).await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

pub(crate) struct Socket(
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>,
);

impl Socket {
    pub(crate) async fn open(client: &Client) -> Self {
        let url = client.base.replace("http:", "ws:") + "/api/ws";
        let mut request = url.into_client_request().unwrap();
        let token = format!("Bearer {}", client.token);
        request.headers_mut().insert("authorization", token.parse().unwrap());
        Self(within(tokio_tungstenite::connect_async(request)).await.unwrap().0)
    }

    pub(crate) async fn say(&mut self, value: Value) {
        self.0.send(Message::text(value.to_string())).await.unwrap();
    }

    pub(crate) async fn hear(&mut self, kinds: &[&str]) -> Value {
        // The whole wait is limited, because pings arrive without end.
        within(async {
            loop {
                let Message::Text(text) = self.0.next().await.unwrap().unwrap() else { continue };
                let value: Value = serde_json::from_str(&text).unwrap();
                if kinds.contains(&value["type"].as_str().unwrap()) {
                    return value;
                }
            }
        })
        .await
    }
}
