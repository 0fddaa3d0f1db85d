//! The proxy for an address, from the environment.

use reqwest::Url;

use super::location;

/// The proxy for an address. `variable` reads the environment; lower-case names win.
pub(super) fn of(url: &Url, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let read = |name: &str| {
        let value = variable(name).or_else(|| variable(&name.to_uppercase()));
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let proxy = read(&format!("{}_proxy", url.scheme())).or_else(|| read("all_proxy"))?;
    let host = location::host(url);
    let direct =
        read("no_proxy").is_some_and(|list| list.split(',').any(|entry| fits(entry, &host)));
    (!direct).then_some(proxy)
}

/// Whether an entry of `no_proxy` matches a host. Address ranges are not supported, so they use the proxy.
fn fits(entry: &str, host: &str) -> bool {
    let entry = entry.trim().trim_start_matches("*.").trim_start_matches('.').to_lowercase();
    let below = host.strip_suffix(&entry).is_some_and(|rest| rest.ends_with('.'));
    !entry.is_empty() && (entry == "*" || host == entry || below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_which_requests_go_through_a_proxy() {
        for (variables, url, expected) in [
            ("", "https://a.com", None),
            ("https_proxy=http://p:1", "https://a.com", Some("http://p:1")),
            ("HTTPS_PROXY=http://p:1", "https://a.com", Some("http://p:1")),
            ("https_proxy=http://p:1", "http://a.com", None),
            ("ALL_PROXY=socks5://p:1", "http://a.com", Some("socks5://p:1")),
            ("http_proxy=x all_proxy=y", "http://a.com", Some("x")),
            ("http_proxy=x no_proxy=b.com,a.com", "http://a.com", None),
            ("http_proxy=x no_proxy=.a.com", "http://www.a.com", None),
            ("http_proxy=x NO_PROXY=*.a.com", "http://www.a.com", None),
            ("http_proxy=x no_proxy=a.com", "http://ba.com", Some("x")),
            ("http_proxy=x no_proxy=*", "http://a.com", None),
            ("http_proxy=x no_proxy=,", "http://a.com", Some("x")),
            ("http_proxy= ", "http://a.com", None),
        ] {
            let variable = |name: &str| {
                let mut pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
                pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
            };
            let proxy = of(&Url::parse(url).unwrap(), variable);
            assert_eq!(proxy.as_deref(), expected, "{variables} {url}");
        }
    }
}
