//! The host names of the server, its open paths, and the pages of other origins that may use it.

use std::net::{IpAddr, SocketAddr};

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};

use super::code::cookie_name;
use super::public_url::PublicUrl;

/// Who may use a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone: the path reveals nothing and does nothing, or is needed to sign in.
    Public,
    /// Identified callers.
    Callers,
}

/// The server as clients address it.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its host names with their ports, in lower case.
    hosts: Vec<String>,
    /// The address at which browsers reach it through a proxy, if there is one.
    public_url: Option<PublicUrl>,
    /// Whether the proxy's `X-Forwarded-For` names its clients.
    pub(super) trusts_forwarded_for: bool,
    /// The name of its cookie.
    pub cookie: String,
    /// Open paths with their methods; one that ends with `/*` includes everything below it.
    public: Vec<(Method, String)>,
    /// Paths that listed pages of other origins may use, with a token.
    shared_paths: Vec<String>,
    /// The origins of those pages.
    shared_with: Vec<String>,
}

impl Site {
    /// A server that listens at this address. It has the names of this machine that no other machine can have; the
    /// operator adds others, such as that of a proxy.
    pub fn new(address: SocketAddr, more_hosts: &[String]) -> Self {
        let port = address.port();
        let mut names = match address.ip() {
            ip if ip.is_loopback() || ip.is_unspecified() => {
                vec!["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned()]
            }
            _ => Vec::new(),
        };
        match address.ip() {
            // An unspecified address is not a host name: other pages can use it too.
            ip if ip.is_unspecified() => {}
            IpAddr::V4(ip) => names.push(ip.to_string()),
            IpAddr::V6(ip) => names.push(format!("[{ip}]")),
        }
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        // Clients leave out the default port.
        if port == 80 {
            hosts.append(&mut names);
        }
        hosts.extend(more_hosts.iter().map(|host| host.to_ascii_lowercase()));
        Self {
            hosts,
            public_url: None,
            trusts_forwarded_for: false,
            cookie: cookie_name(port),
            public: Vec::new(),
            shared_paths: Vec::new(),
            shared_with: Vec::new(),
        }
    }

    /// Adds the address of a proxy in front of the server, and whether its `X-Forwarded-For` counts.
    #[must_use]
    pub fn behind_proxy(
        mut self,
        public_url: Option<PublicUrl>,
        trusts_forwarded_for: bool,
    ) -> Self {
        self.hosts.extend(public_url.iter().map(|url| url.authority().to_owned()));
        self.public_url = public_url;
        self.trusts_forwarded_for = trusts_forwarded_for;
        self
    }

    /// Opens a path to everyone; one that ends with `/*` includes everything below it.
    #[must_use]
    pub fn public(mut self, method: Method, path: &str) -> Self {
        self.public.push((method, path.to_owned()));
        self
    }

    /// Lets pages of these origins use this path with a token. They get no cookies.
    #[must_use]
    pub fn share(mut self, path: &str, origins: &[String]) -> Self {
        self.shared_paths.push(path.to_owned());
        self.shared_with.extend(origins.iter().filter(|origin| *origin != "null").cloned());
        self
    }

    /// Whether a request came over TLS: its host is that of a public URL with `https`.
    pub(super) fn is_secure(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| self.scheme(&host.to_ascii_lowercase()) == "https")
    }

    fn scheme(&self, host: &str) -> &'static str {
        let public = self.public_url.as_ref().filter(|url| url.authority() == host);
        public.map_or("http", PublicUrl::scheme)
    }

    pub(super) fn is_own_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own == host)
    }

    /// Whether an origin is that of the server's own page, for a request to this host.
    pub(super) fn is_origin(&self, origin: &str, host: &str) -> bool {
        origin.strip_prefix(self.scheme(host)).and_then(|rest| rest.strip_prefix("://"))
            == Some(host)
    }

    /// Whether a page of that origin may use this path.
    pub(super) fn may_read(&self, path: &str, origin: &str) -> bool {
        let is_shared = |shared: &String| is_below(shared, path);
        self.shared_with.iter().any(|known| known == origin)
            && self.shared_paths.iter().any(is_shared)
    }

    /// The origin of the listed page that sent this request, for the response's header.
    pub(super) fn foreign_reader(&self, parts: &Parts) -> Option<HeaderValue> {
        let origin = parts.headers.get(header::ORIGIN)?;
        self.may_read(parts.uri.path(), origin.to_str().ok()?).then(|| origin.clone())
    }

    pub(super) fn access(&self, method: &Method, path: &str) -> Access {
        // HEAD is a GET without the body.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let is_it = |(known, pattern): &(Method, String)| known == method && fits(pattern, path);
        if self.public.iter().any(is_it) { Access::Public } else { Access::Callers }
    }
}

fn fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(folder) => path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')),
        None => pattern == path,
    }
}

/// Whether a path is this folder or below it, component by component.
fn is_below(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_names_match_the_listening_address() {
        let hosts = |address: &str| Site::new(address.parse().unwrap(), &[]).hosts;
        let local = ["127.0.0.1:80", "localhost:80", "[::1]:80"];
        let site = hosts("127.0.0.1:8123");
        assert!(
            site.contains(&"localhost:8123".to_owned()) && !site.contains(&"localhost".to_owned())
        );
        assert!(local.iter().all(|host| hosts("127.0.0.1:80").contains(&(*host).to_owned())));
        assert!(hosts("127.0.0.1:80").contains(&"localhost".to_owned()));
        assert!(!hosts("0.0.0.0:8123").iter().any(|host| host.contains("0.0.0.0")));
        assert!(!hosts("[::]:8123").iter().any(|host| host == "[::]:8123"));
        assert_eq!(hosts("192.0.2.7:8123"), ["192.0.2.7:8123"]);
    }

    #[test]
    fn a_path_is_open_only_in_its_exact_spelling() {
        let site = Site::new("127.0.0.1:1".parse().unwrap(), &[])
            .public(Method::GET, "/healthz")
            .public(Method::GET, "/assets/*");
        let check = |method: Method, path: &str, expected: Access| {
            assert_eq!(site.access(&method, path), expected, "{method} {path}");
        };
        check(Method::GET, "/healthz", Access::Public);
        check(Method::HEAD, "/healthz", Access::Public);
        check(Method::GET, "/assets/a/b.js", Access::Public);
        for path in
            ["/healthz/", "/healthz/x", "/HEALTHZ", "//healthz", "/assets", "/assetsx/a", "/"]
        {
            check(Method::GET, path, Access::Callers);
        }
        check(Method::POST, "/healthz", Access::Callers);
        check(Method::OPTIONS, "/healthz", Access::Callers);
    }

    #[test]
    fn listed_pages_must_match_the_whole_origin() {
        let origins = ["http://localhost:3000".to_owned(), "null".to_owned()];
        let site = Site::new("127.0.0.1:1".parse().unwrap(), &[]).share("/agui", &origins);
        assert!(site.may_read("/agui", "http://localhost:3000"));
        assert!(site.may_read("/agui/threads", "http://localhost:3000"));
        for (path, origin) in [
            ("/aguix", "http://localhost:3000"),
            ("/tasks", "http://localhost:3000"),
            ("/agui", "http://localhost:30000"),
            ("/agui", "https://localhost:3000"),
            ("/agui", "null"),
        ] {
            assert!(!site.may_read(path, origin), "{path} {origin}");
        }
        assert!(site.is_origin("http://127.0.0.1:1", "127.0.0.1:1"));
        for origin in ["http://127.0.0.1:12", "https://127.0.0.1:1", "http://127.0.0.1:1/", "null"]
        {
            assert!(!site.is_origin(origin, "127.0.0.1:1"), "{origin}");
        }
    }
}
