//! Requests of the host about MCP servers. Requests that wait for a server run next to the session's own task, which
//! the handshake of a server inside the host needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_proto::RequestId;
use ostler_proto::build;
use ostler_proto::control::{Initialize, McpOauthCallbackUrl, McpReadResourceReply, McpSetServers};
use ostler_proto::frame::ToHost;
use ostler_proto::mcp::{McpServerConfig, SdkServer};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Session;
use super::control::{failure, success};
use crate::call::sample;
use crate::mcp::Server;

impl Session {
    /// Adds the servers inside the host. Returns what happened to their manifests.
    pub(super) fn add_servers(&self, initialize: &Initialize) -> BTreeMap<String, &'static str> {
        let mut parked = BTreeMap::new();
        for name in initialize.sdk_mcp_servers.iter().flatten() {
            let configs = initialize.sdk_mcp_server_configs.as_ref();
            let config = configs.and_then(|configs| configs.get(name)).cloned().unwrap_or_default();
            let config = SdkServer {
                name: name.clone(),
                timeout: config.timeout,
                tools: config.tools,
                ..SdkServer::default()
            };
            let manifests = initialize.sdk_mcp_server_manifests.as_ref();
            let manifest = manifests.and_then(|manifests| manifests.get(name));
            let said = manifest.map(|manifest| json!(manifest));
            let is_new = self.context.servers.add_in_host(name, McpServerConfig::Sdk(config), said);
            if manifest.is_some() {
                parked.insert(name.clone(), if is_new { "parked" } else { "already_connected" });
            }
        }
        parked
    }

    /// Connects a server and answers when it is connected or has failed.
    pub(super) fn connect(&mut self, request_id: Option<RequestId>, name: String) {
        let (servers, outbox) = (self.context.servers.clone(), self.context.outbox.clone());
        self.aside(async move {
            let mut failed = servers.settled(|known| known == name).await;
            let response = match failed.remove(&name) {
                None => success(request_id, json!({})),
                Some(reason) => failure(request_id, reason, None),
            };
            outbox.send(ToHost::ControlResponse(response)).await;
        });
    }

    /// Begins to sign the user in to a server.
    pub(super) fn sign_in(&mut self, request_id: Option<RequestId>, name: String) {
        let servers = self.context.servers.clone();
        self.answer_aside(request_id, async move { servers.sign_in(&name).await });
    }

    /// Finishes signing in, with the address that the browser was led to.
    pub(super) fn finish_sign_in(
        &mut self,
        request_id: Option<RequestId>,
        callback: McpOauthCallbackUrl,
    ) {
        let servers = self.context.servers.clone();
        self.answer_aside(request_id, async move {
            let McpOauthCallbackUrl { server_name, callback_url, .. } = callback;
            servers.finish_sign_in(&server_name, callback_url).await.map(|()| json!({}))
        });
    }

    /// Signs the user out of a server.
    pub(super) fn sign_out(&mut self, request_id: Option<RequestId>, name: String) {
        let servers = self.context.servers.clone();
        let work = async move { servers.sign_out(&name).await.map(|()| json!({})) };
        self.answer_aside(request_id, work);
    }

    fn answer_aside(
        &mut self,
        request_id: Option<RequestId>,
        work: impl Future<Output = Result<Value, String>> + Send + 'static,
    ) {
        let outbox = self.context.outbox.clone();
        self.aside(async move {
            let response = match work.await {
                Ok(payload) => success(request_id, payload),
                Err(reason) => failure(request_id, reason, None),
            };
            outbox.send(ToHost::ControlResponse(response)).await;
        });
    }

    /// Replaces the servers that were added before. Those inside the host connect only after the answer.
    pub(super) fn set_servers(&mut self, request_id: Option<RequestId>, set: &McpSetServers) {
        let (servers, outbox) = (self.context.servers.clone(), self.context.outbox.clone());
        let (added, removed) = servers.set(&set.servers);
        let is_awaited = |name: &&String| !servers.is_in_host(name);
        let awaited: Vec<String> = added.iter().filter(is_awaited).cloned().collect();
        self.aside(async move {
            let errors = servers.settled(|name| awaited.iter().any(|it| it == name)).await;
            let payload = json!({"added": added, "removed": removed, "errors": errors});
            outbox.send(ToHost::ControlResponse(success(request_id, payload))).await;
        });
    }

    /// Reads a resource for the host.
    pub(super) fn read_resource(
        &mut self,
        request_id: Option<RequestId>,
        server: Arc<dyn Server>,
        uri: &str,
    ) {
        let (read, outbox) = (server.read_resource(uri), self.context.outbox.clone());
        self.aside(async move {
            let response = match read.await {
                Ok(contents) => {
                    let reply = build!(McpReadResourceReply { contents });
                    success(request_id, serde_json::to_value(reply).unwrap_or(Value::Null))
                }
                Err(error) => failure(request_id, error, None),
            };
            outbox.send(ToHost::ControlResponse(response)).await;
        });
    }

    /// Asks the model for an MCP server, for as long as the server waits for the answer.
    pub(super) fn sample(
        &mut self,
        server: String,
        params: Value,
        mut answer: oneshot::Sender<Result<Value, String>>,
    ) {
        let context = self.context.clone();
        self.aside(async move {
            let reply = tokio::select! {
                reply = sample(&context, server, params) => reply,
                () = answer.closed() => return,
            };
            let _ = answer.send(reply);
        });
    }

    /// Runs work next to the session's task; the end of the session cancels it.
    pub(super) fn aside(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.asides.spawn(work);
    }
}
