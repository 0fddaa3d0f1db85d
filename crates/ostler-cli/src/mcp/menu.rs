//! `/mcp` in a conversation: the state of the MCP servers, and what to do about it.

use ostler::Handle;

use super::health;
use crate::screen::Screen;
use crate::text::clean;

/// What may follow `/mcp`.
const USAGE: &str = "/mcp shows the servers; /mcp reconnect NAME, /mcp enable NAME, /mcp disable NAME and /mcp login NAME \
                     change one";

/// The rest of a line that begins with the command; `None` for other lines, such as `/mcp__server__prompt`.
pub(crate) fn words(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace();
    (words.next() == Some("/mcp")).then(|| words.collect())
}

/// Does what the line says.
///
/// # Errors
/// When the screen cannot be written. A request that fails is shown.
pub(crate) async fn run(
    words: &[&str],
    handle: &Handle,
    screen: &mut Screen,
) -> std::io::Result<()> {
    let done = match words {
        [] | ["list"] => return list(handle, screen).await,
        ["reconnect", name] => handle.reconnect_mcp_server(*name).await,
        ["enable", name] => handle.toggle_mcp_server(*name, true).await,
        ["disable", name] => handle.toggle_mcp_server(*name, false).await,
        ["login", name] => return login(name, handle, screen).await,
        // The browser was on another machine.
        ["login", name, callback] => handle.finish_mcp_sign_in(*name, *callback).await,
        _ => return screen.remark(USAGE),
    };
    match done {
        Ok(()) => list(handle, screen).await,
        Err(error) => screen.error(&error.to_string()),
    }
}

async fn list(handle: &Handle, screen: &mut Screen) -> std::io::Result<()> {
    let servers = match handle.mcp_server_status().await {
        Ok(status) => status.mcp_servers,
        Err(error) => return screen.error(&error.to_string()),
    };
    if servers.is_empty() {
        return screen.remark("No MCP servers. Add one in a shell: ostler mcp add --help");
    }
    for server in &servers {
        let (mark, state) = health::state_text(server);
        let scope = server.scope.as_deref().unwrap_or_default();
        screen.lines(&clean(&format!("{mark} {} ({scope}): {state}", server.name)))?;
    }
    screen.remark(USAGE)
}

async fn login(name: &str, handle: &Handle, screen: &mut Screen) -> std::io::Result<()> {
    let begun = match handle.sign_in_to_mcp_server(name).await {
        Ok(begun) => begun,
        Err(error) => return screen.error(&error.to_string()),
    };
    screen.line(&format!("Open this address in a browser to sign in to {}:", clean(name)))?;
    screen.line(&clean(begun.auth_url.as_deref().unwrap_or_default()))?;
    screen.remark(&format!(
        "Then the server is connected. If the browser runs on another machine, send the address that it is led to: /mcp login \
         {name} ADDRESS"
    ))
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_prompt_of_a_server_is_not_the_command() {
        assert_eq!(words("/mcp"), Some(Vec::new()));
        assert_eq!(words("/mcp  login x"), Some(vec!["login", "x"]));
        for other in ["/mcp__server__prompt", "/mcpx", "mcp", "see /mcp", ""] {
            assert_eq!(words(other), None, "{other}");
        }
    }
}
