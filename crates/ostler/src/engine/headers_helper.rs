//! The command that prints headers for an MCP server behind a URL: `headersHelper` of its configuration.
//!
//! It runs before every connection that the session makes, and again when the server refuses its headers, outside the sandbox, under the same rules as other helpers. A
//! project that is not trusted cannot name one (`server_files/entry.rs`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_mcp::{Endpoint, Remote};
use ostler_proto::mcp::{McpServerConfig, RemoteServer};
use ostler_sdk::transport::Environment;
use serde_json::Value;

use super::helper_command::HelperCommand;

/// How long the command may take.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Where helpers run.
#[derive(Clone, Default)]
pub(super) struct HelperPlace {
    pub(super) env: Environment,
    pub(super) folder: PathBuf,
    /// The folders that commands in the sandbox can write; empty without a sandbox.
    pub(super) writable: Vec<PathBuf>,
}

/// The command of one server.
#[derive(Clone)]
pub(super) struct HeadersHelper(Option<Arc<HelperCommand>>);

impl HeadersHelper {
    /// The command that a configuration names, if it does.
    ///
    /// # Errors
    /// When it is not text.
    pub(super) fn of(
        place: &HelperPlace,
        name: &str,
        config: &McpServerConfig,
    ) -> Result<Self, String> {
        let Some(server) = remote(config) else { return Ok(Self(None)) };
        let command = match server.extra.get("headersHelper") {
            None | Some(Value::Null) => return Ok(Self(None)),
            Some(Value::String(command)) => command.clone(),
            Some(_) => return Err("its `headersHelper` is not the text of a command".to_owned()),
        };
        let about = [
            ("CLAUDE_CODE_MCP_SERVER_NAME".to_owned(), name.to_owned()),
            ("CLAUDE_CODE_MCP_SERVER_URL".to_owned(), server.url.clone()),
        ];
        Ok(Self(Some(Arc::new(HelperCommand {
            command,
            env: place.env.with(about),
            folder: Some(place.folder.clone()),
            writable: place.writable.clone(),
            limit: TIME_LIMIT,
            prints: "headers",
        }))))
    }

    /// Runs the command and adds its headers, in place of others with the same names.
    ///
    /// # Errors
    /// When it fails or prints something else. No error contains what it printed.
    pub(super) async fn add_to(&self, mut endpoint: Endpoint) -> Result<Endpoint, String> {
        if let Endpoint::Http(remote) | Endpoint::Sse(remote) = &mut endpoint {
            self.add(remote).await?;
        }
        Ok(endpoint)
    }

    async fn add(&self, remote: &mut Remote) -> Result<(), String> {
        if !self.is_there() {
            return Ok(());
        }
        let headers = self.headers().await?;
        let is_new = |name: &str| !headers.keys().any(|given| given.eq_ignore_ascii_case(name));
        remote.headers.retain(|name, _| is_new(name));
        remote.headers.extend(headers);
        Ok(())
    }

    /// Whether the configuration names a command.
    pub(super) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Runs the command; returns its headers.
    ///
    /// # Errors
    /// When it fails or prints something else. No error contains what it printed.
    pub(super) async fn headers(&self) -> Result<BTreeMap<String, String>, String> {
        let Some(helper) = &self.0 else { return Ok(BTreeMap::new()) };
        let helper = Arc::clone(helper);
        let printed = tokio::task::spawn_blocking(move || helper.output()).await;
        let printed = printed.map_err(|error| error.to_string()).and_then(|printed| printed);
        let printed = printed.map_err(|reason| format!("its headersHelper {reason}"))?;
        serde_json::from_str(&printed).map_err(|_| {
            "its headersHelper did not print a JSON object whose values are text, such as {\"Authorization\": \"…\"}"
                .to_owned()
        })
    }

    /// The endpoint of a server behind a WebSocket; `None` for other servers.
    #[cfg(feature = "mcp-http")]
    pub(super) fn websocket(&self, config: &McpServerConfig) -> Option<Endpoint> {
        let McpServerConfig::Ws(server) = config else { return None };
        let headers = server.headers.clone().unwrap_or_default();
        let (helper, remote) = (self.clone(), Remote { url: server.url.clone(), headers });
        Some(ostler_mcp::websocket(move || {
            let (helper, mut remote) = (helper.clone(), remote.clone());
            async move { helper.add(&mut remote).await.map(|()| remote) }
        }))
    }

    #[cfg(not(feature = "mcp-http"))]
    #[expect(clippy::unused_self, reason = "the other one needs it")]
    pub(super) fn websocket(&self, _: &McpServerConfig) -> Option<Endpoint> {
        None
    }
}

/// The part of a configuration that servers behind a URL have.
pub(super) fn remote(config: &McpServerConfig) -> Option<&RemoteServer> {
    match config {
        McpServerConfig::Http(server)
        | McpServerConfig::Sse(server)
        | McpServerConfig::Ws(server) => Some(server),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn headers(helper: Value) -> Result<BTreeMap<String, String>, String> {
        let config = json!({"type": "http", "url": "http://x/mcp", "headersHelper": helper,
            "headers": {"authorization": "old", "X-Kept": "1"}});
        let config = serde_json::from_value(config).unwrap();
        let folder = std::env::temp_dir();
        let place = HelperPlace { folder, ..HelperPlace::default() };
        let helper = HeadersHelper::of(&place, "srv", &config)?;
        match helper.add_to(Endpoint::from_config(&config).unwrap()).await? {
            Endpoint::Http(remote) => Ok(remote.headers),
            other => panic!("{other:?}"),
        }
    }

    // Mutants: the helper does not run; its headers come in addition; the server is not named.
    #[tokio::test]
    async fn the_headers_of_the_command_replace_those_of_the_configuration() {
        let command = r#"printf '{"Authorization": "%s %s"}' "$CLAUDE_CODE_MCP_SERVER_NAME" "$CLAUDE_CODE_MCP_SERVER_URL""#;
        let given = headers(json!(command)).await.unwrap();
        let expected = [("Authorization", "srv http://x/mcp"), ("X-Kept", "1")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(given, expected.into());
        assert_eq!(headers(Value::Null).await.unwrap()["authorization"], "old");
    }

    // Mutant: the output is part of the error.
    #[tokio::test]
    async fn what_is_not_headers_is_an_error_without_the_output() {
        for helper in [
            json!("echo secret"),
            json!("echo '{\"a\": 1, \"b\": \"secret\"}'"),
            json!("echo '[\"secret\"]'"),
            json!("echo secret; exit 3"),
            json!("true"),
            json!(["secret"]),
        ] {
            let error = headers(helper.clone()).await.unwrap_err();
            assert!(
                error.contains("headersHelper") && !error.contains("secret"),
                "{helper}: {error}"
            );
        }
    }
}
