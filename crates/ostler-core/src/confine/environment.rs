//! The environment variables that engines, and everything they start, get from this process: only those on a list. The
//! operator's environment may contain tokens of all kinds, and agents need none of them.

use std::collections::BTreeMap;

use ostler::options::Environment;

use crate::config::Config;

/// Variables for paths, user and home directory, locale, network and model.
const PASSED: [&str; 43] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "IS_SANDBOX",
    "API_TIMEOUT_MS",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_BETAS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_RETRIES",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "DISABLE_TELEMETRY",
    "ENABLE_TOOL_SEARCH",
    "OSTLER_OFFLINE",
];

/// The environment of engines and other programs that work for agents: the listed variables, those that the operator
/// adds to the list, and those that the operator sets.
pub(crate) fn of(config: &Config) -> Environment {
    let named = |name: &str| PASSED.contains(&name) || config.pass_env.iter().any(|it| it == name);
    let is_passed = |name: &str| named(name) || name.starts_with("LC_");
    // A value that is not UTF-8 cannot be passed on as text, and must not end the server.
    let own = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut variables: BTreeMap<String, String> = own.filter(|(name, _)| is_passed(name)).collect();
    variables.extend(config.env.clone());
    Environment { replaces: true, variables }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Seen to fail with `replaces: false`, and with a list that everything is on.
    #[test]
    fn only_listed_variables_are_passed_on() {
        let mut config = Config::new("/no/data", "/no/workspace");
        config.env.insert("MINE".to_owned(), "1".to_owned());
        let environment = of(&config);
        assert!(environment.replaces);
        assert!(environment.get("PATH").is_some());
        assert_eq!(environment.get("MINE").as_deref(), Some("1"));
        // Cargo sets this variable for every test.
        assert_eq!(environment.get("CARGO_MANIFEST_DIR"), None);
        config.pass_env.push("CARGO_MANIFEST_DIR".to_owned());
        assert!(of(&config).get("CARGO_MANIFEST_DIR").is_some());
    }
}
