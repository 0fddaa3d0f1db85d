//! The environment that makes programs use the proxy.

/// Names that stay inside the sandbox: its own development servers.
const LOCAL: &str = "localhost,127.0.0.1,::1";

/// Variables for programs in a sandbox whose bridge listens on this port of its loopback interface.
///
/// They replace variables of the same names, and hold for curl, git over HTTP, cargo, npm, pip, Go and node's `fetch`. Programs that
/// ignore them have no network, because there is no other way out.
#[must_use]
pub fn variables(port: u16) -> Vec<(String, String)> {
    with_user("", port)
}

/// Like [`variables`], for a proxy with a token. The token must be of characters that need no escape in a URL.
#[must_use]
pub fn variables_with_token(port: u16, token: &str) -> Vec<(String, String)> {
    with_user(&format!("ostler:{token}@"), port)
}

fn with_user(user: &str, port: u16) -> Vec<(String, String)> {
    let http = format!("http://{user}127.0.0.1:{port}");
    let mut variables = Vec::new();
    for (name, value) in [
        ("HTTP_PROXY", http.as_str()),
        ("HTTPS_PROXY", &http),
        // Not socks5h, although the proxy has SOCKS5: Python's httpx without its optional package refuses to start then,
        // even if the two above are set.
        ("ALL_PROXY", &http),
        ("NO_PROXY", LOCAL),
    ] {
        variables.push((name.to_owned(), value.to_owned()));
        variables.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    // pip honours the above. `PIP_PROXY` would make it ignore `NO_PROXY`.
    for (name, value) in [
        // Stronger than a proxy in the user's configuration, which leads nowhere from inside.
        ("CARGO_HTTP_PROXY", http.as_str()),
        ("npm_config_proxy", &http),
        ("npm_config_https_proxy", &http),
        ("npm_config_noproxy", LOCAL),
        // Node 22.21, 24 and later.
        ("NODE_USE_ENV_PROXY", "1"),
    ] {
        variables.push((name.to_owned(), value.to_owned()));
    }
    variables
}
