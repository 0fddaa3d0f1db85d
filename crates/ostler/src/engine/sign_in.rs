//! Signing in to MCP servers behind a URL. Tokens are in a private folder next to the user's settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_engine::mcp::StartedSignIn;
use ostler_mcp::{Client, ClientOptions, Endpoint, OAuthOptions};
use ostler_proto::mcp::McpServerConfig;
use serde_json::Value;

use super::StartContext;

/// The folder for tokens, next to the user's settings. The sandbox hides it from commands.
pub fn folder(context: &StartContext) -> Option<PathBuf> {
    let config = context.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(context.var("HOME")?).join(".claude")));
    config.map(|config| config.join("mcp-oauth"))
}

/// How to sign in to a server: by its configuration's `oauth`, which has `clientId`, `clientSecret`, `callbackPort`,
/// `scopes` and `account`.
pub(super) fn options(folder: Option<&Path>, config: &McpServerConfig) -> OAuthOptions {
    let mut options = OAuthOptions::default();
    options.folder = folder.map(Path::to_owned);
    let (McpServerConfig::Http(server) | McpServerConfig::Sse(server)) = config else {
        return options;
    };
    let Some(oauth) = server.extra.get("oauth") else { return options };
    let text = |key: &str| oauth[key].as_str().map(str::to_owned);
    options.account = text("account").filter(|name| !name.is_empty());
    options.client_id = text("clientId");
    options.client_secret = text("clientSecret");
    options.callback_port = oauth["callbackPort"].as_u64().and_then(|port| port.try_into().ok());
    options.scopes = match &oauth["scopes"] {
        Value::Array(scopes) => {
            scopes.iter().filter_map(|scope| scope.as_str().map(str::to_owned)).collect()
        }
        scopes => {
            scopes.as_str().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
        }
    };
    options
}

/// Begins to sign in. The connection is made with another client, which reads the tokens from the folder.
///
/// # Errors
/// When the server cannot be reached, or has no sign-in.
pub async fn begin(
    name: String,
    config: McpServerConfig,
    folder: Option<PathBuf>,
) -> Result<StartedSignIn, String> {
    let client = client(name, &config, folder)?;
    // A first request, so that the server says what it requires.
    client.reconnect().await.ok();
    let sign_in = client.sign_in().await.map_err(|error| error.to_string())?;
    let (url, state, port) = (sign_in.url.clone(), sign_in.state.clone(), sign_in.port());
    let finish = move |callback: String| {
        let client = client.clone();
        async move { client.finish_sign_in(&callback).await.map_err(|error| error.to_string()) }
            .boxed()
    };
    let finished = async move { sign_in.finished().await.map_err(|error| error.to_string()) };
    Ok(StartedSignIn { url, state, port, finish: Arc::new(finish), finished: finished.boxed() })
}

/// A user who has begun to sign in, and whose browser is led to an address of the host.
#[non_exhaustive]
pub struct RedirectedSignIn {
    /// The address that the user opens in a browser.
    pub url: String,
    /// The value that the browser brings back.
    pub state: String,
    /// Finishes with the address that the browser was led to.
    pub finish: Arc<Finish>,
}

/// Finishes signing in with the address that the browser was led to.
pub type Finish = dyn Fn(String) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// Begins to sign in. The browser is led to `redirect_uri`, and the tokens are kept in the folder.
///
/// # Errors
/// When the server cannot be reached, or has no sign-in.
pub async fn begin_at(
    name: String,
    config: McpServerConfig,
    folder: PathBuf,
    redirect_uri: &str,
) -> Result<RedirectedSignIn, String> {
    let client = client(name, &config, Some(folder))?;
    client.reconnect().await.ok();
    let begun = client.begin_sign_in_with_state(redirect_uri).await;
    let (url, state) = begun.map_err(|error| error.to_string())?;
    let finish = move |callback: String| {
        let client = client.clone();
        async move { client.finish_sign_in(&callback).await.map_err(|error| error.to_string()) }
            .boxed()
    };
    Ok(RedirectedSignIn { url, state, finish: Arc::new(finish) })
}

/// Deletes the tokens of a server.
///
/// # Errors
/// When the server has no sign-in, or the file cannot be deleted.
pub async fn end(
    name: String,
    config: McpServerConfig,
    folder: Option<PathBuf>,
) -> Result<(), String> {
    let client = client(name, &config, folder)?;
    client.sign_out().await.map_err(|error| error.to_string())
}

fn client(
    name: String,
    config: &McpServerConfig,
    folder: Option<PathBuf>,
) -> Result<Client, String> {
    let endpoint = Endpoint::from_config(config);
    let endpoint = endpoint.filter(|it| matches!(it, Endpoint::Http(_) | Endpoint::Sse(_)));
    let endpoint = endpoint.ok_or_else(|| {
        format!("MCP server {name} has no URL; only a server behind a URL has a sign-in")
    })?;
    let options = ClientOptions::default().oauth(options(folder.as_deref(), config));
    Ok(Client::new(name, endpoint, options))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_configuration_names_a_client_a_port_and_scopes() {
        let read = |oauth: Value| {
            let config = json!({"type": "http", "url": "https://a.example/mcp", "oauth": oauth});
            options(None, &serde_json::from_value(config).unwrap())
        };
        let given = read(json!({"clientId": "c", "callbackPort": 8080, "scopes": "a b"}));
        assert_eq!(given.client_id.as_deref(), Some("c"));
        assert_eq!(
            (given.callback_port, given.scopes.as_slice()),
            (Some(8080), &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(read(json!({"scopes": ["a", "b"]})).scopes, given.scopes);
        assert_eq!(read(json!({"account": "work"})).account.as_deref(), Some("work"));
        assert_eq!(read(json!({"account": ""})).account, None);
        let odd = read(json!({"clientId": 7, "callbackPort": 70000, "scopes": 7}));
        assert_eq!((odd.client_id, odd.callback_port, odd.scopes.len()), (None, None, 0));
    }
}
