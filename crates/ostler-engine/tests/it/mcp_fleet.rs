//! MCP servers that a test lets crash, stay down, come back, and change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_engine::mcp::{
    Connected, Connector, HostLine, McpToolInfo, NotConnected, Retry, Server, ServerLocation,
    ServerPrompt,
};
use ostler_engine::permission::Policy;
use ostler_engine::session::SessionOptions;
use ostler_engine::tool::{CallProgress, RunFuture, ToolCx, ToolError, ToolOutput};
use ostler_proto::control::AskEngine;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::Script;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use crate::host::TestHost;

/// All servers of a test. Clones are the same.
#[derive(Clone)]
pub(crate) struct Fleet {
    ships: Arc<Mutex<BTreeMap<String, Ship>>>,
    retry: Retry,
}

/// One server, connected or not.
#[derive(Default)]
pub(crate) struct Ship {
    pub(crate) is_down: bool,
    /// Every connection ends at once.
    pub(crate) is_broken: bool,
    pub(crate) tools: Vec<McpToolInfo>,
    /// The tools when they were last listed.
    listed: Vec<McpToolInfo>,
    pub(crate) prompts: Vec<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) is_stale: bool,
    pub(crate) n_connections: usize,
    /// Ends the call of `slow`.
    pub(crate) released: Arc<Notify>,
    ended: watch::Sender<Option<String>>,
}

impl Fleet {
    /// Lost servers are tried again at once, or only by calls.
    pub(crate) fn new(retries: bool) -> Self {
        let first = if retries { Duration::from_millis(1) } else { Duration::from_secs(3600) };
        let longest = first;
        Self { ships: Arc::default(), retry: Retry { first, longest, ..Retry::default() } }
    }

    pub(crate) fn with(self, name: &str, tools: &[&str]) -> Self {
        let tools = tools.iter().map(|tool| info(tool)).collect();
        let ship = Ship { tools, ..Ship::default() };
        self.ships.lock().unwrap().insert(name.to_owned(), ship);
        self
    }

    pub(crate) fn change<T>(&self, name: &str, change: impl FnOnce(&mut Ship) -> T) -> T {
        change(self.ships.lock().unwrap().get_mut(name).unwrap())
    }

    pub(crate) fn n_connections(&self, name: &str) -> usize {
        self.change(name, |ship| ship.n_connections)
    }

    pub(crate) fn crash(&self, name: &str) {
        self.change(name, |ship| ship.ended.send_replace(Some("it crashed".to_owned())));
    }

    /// A session with all servers, in which everything is allowed.
    pub(crate) async fn host(&self, script: Script) -> TestHost {
        self.host_with(script, PermissionMode::BypassPermissions, |_| {}).await
    }

    pub(crate) async fn host_with(
        &self,
        script: Script,
        mode: PermissionMode,
        change: impl FnOnce(&mut SessionOptions),
    ) -> TestHost {
        let names: Vec<String> = self.ships.lock().unwrap().keys().cloned().collect();
        TestHost::with(script, |options| {
            let mut policy = Policy::new(std::env::temp_dir(), mode);
            policy.bypass_available = true;
            options.policy = policy;
            options.connector = Some(Arc::new(self.clone()));
            for name in names {
                let config = match name.starts_with("far") {
                    true => json!({"type": "http", "url": "http://nowhere"}),
                    false => json!({"command": "ship"}),
                };
                let config: ostler_proto::mcp::McpServerConfig =
                    serde_json::from_value(config).unwrap();
                options.mcp_servers.insert(name, config.into());
            }
            change(options);
        })
        .await
    }
}

pub(crate) fn info(name: &str) -> McpToolInfo {
    McpToolInfo {
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json!({"type": "object"}),
        ..McpToolInfo::default()
    }
}

impl Connector for Fleet {
    fn connect(
        &self,
        name: String,
        _: ServerLocation,
        _: HostLine,
    ) -> BoxFuture<'static, Connected> {
        let fleet = self.clone();
        async move {
            let mut ships = fleet.ships.lock().unwrap();
            let ship = ships.get_mut(&name).unwrap();
            ship.n_connections += 1;
            if ship.is_down {
                let reason = "no server is there".to_owned();
                return Err(NotConnected { reason, needs_auth: false, may_recover: true });
            }
            ship.ended = watch::Sender::new(ship.is_broken.then(|| "it broke".to_owned()));
            ship.listed = ship.tools.clone();
            let ended = ship.ended.subscribe();
            drop(ships);
            Ok(Arc::new(Sailing { fleet, name, ended }) as Arc<dyn Server>)
        }
        .boxed()
    }

    fn retry(&self) -> Retry {
        self.retry
    }
}

struct Sailing {
    fleet: Fleet,
    name: String,
    ended: watch::Receiver<Option<String>>,
}

impl Server for Sailing {
    fn info(&self) -> (String, String) {
        (self.name.clone(), "1".to_owned())
    }

    fn tools(&self) -> Vec<McpToolInfo> {
        self.fleet.change(&self.name, |ship| ship.listed.clone())
    }

    fn prompts(&self) -> Vec<ServerPrompt> {
        let prompt = |name: &String| ServerPrompt { name: name.clone(), ..Default::default() };
        self.fleet.change(&self.name, |ship| ship.prompts.iter().map(prompt).collect())
    }

    fn lost(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    fn ended(&self) -> BoxFuture<'static, ()> {
        let mut ended = self.ended.clone();
        async move { _ = ended.wait_for(Option::is_some).await }.boxed()
    }

    fn instructions(&self) -> Option<String> {
        self.fleet.change(&self.name, |ship| ship.instructions.clone())
    }

    fn is_stale(&self) -> bool {
        self.fleet.change(&self.name, |ship| ship.is_stale)
    }

    fn refresh(&self) -> BoxFuture<'static, ()> {
        self.fleet.change(&self.name, |ship| {
            ship.is_stale = false;
            ship.listed = ship.tools.clone();
        });
        async {}.boxed()
    }

    /// `slow` reports progress and waits; `crash` ends the connection, `sink` also keeps the server down, `change` gives it another tool and prompt.
    fn call(&self, tool: &str, _: Value, cx: &ToolCx) -> RunFuture {
        if let Some(lost) = self.lost() {
            return async move { Err(ToolError::Failed(lost)) }.boxed();
        }
        match tool {
            "slow" => {
                let message = Some("half".to_owned());
                cx.progress.report(CallProgress { done: 1.0, total: Some(2.0), message });
                let released = self.fleet.change(&self.name, |ship| Arc::clone(&ship.released));
                async move {
                    released.notified().await;
                    Ok(ToolOutput::new("slowly done", json!(null)))
                }
                .boxed()
            }
            "crash" | "sink" => {
                self.fleet.change(&self.name, |ship| ship.is_down = tool == "sink");
                self.fleet.crash(&self.name);
                async { Err(ToolError::Failed("it crashed".to_owned())) }.boxed()
            }
            "change" => {
                self.fleet.change(&self.name, |ship| {
                    ship.tools.insert(0, info("added"));
                    ship.prompts.push("greet".to_owned());
                    ship.is_stale = true;
                });
                async { Ok(ToolOutput::new("changed", json!(null))) }.boxed()
            }
            tool => {
                let text = format!("called {tool}");
                async move { Ok(ToolOutput::new(text, json!(null))) }.boxed()
            }
        }
    }
}

/// The names of the servers' tools in a request.
pub(crate) fn offered(host: &TestHost, request: usize) -> Vec<String> {
    let requests = host.api.requests();
    let names = requests[request].tool_names().into_iter();
    names.filter(|name| name.starts_with("mcp__")).map(str::to_owned).collect()
}

/// The entry of a server in `mcp_status`.
pub(crate) async fn status(host: &mut TestHost, name: &str) -> Value {
    let ask: AskEngine = serde_json::from_value(json!({"subtype": "mcp_status"})).unwrap();
    host.ask("status", ask).await;
    let answer = loop {
        let answer = serde_json::to_value(host.until("control_response").await).unwrap();
        if answer["response"]["request_id"] == "status" {
            break answer;
        }
    };
    let servers = answer["response"]["response"]["mcpServers"].as_array().unwrap().clone();
    servers.into_iter().find(|server| server["name"] == name).unwrap()
}

/// Asks for the status until it fits.
pub(crate) async fn until_status(
    host: &mut TestHost,
    name: &str,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let waiting = async {
        loop {
            let status = status(host, name).await;
            if fits(&status) {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("the status never fits")
}
