//! The address at which browsers reach the server through a proxy, usually one with TLS.

use reqwest::Url;

/// A scheme, a host and optionally a port, such as `https://agents.example.org`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    is_https: bool,
    /// The host in lower case, with its port unless it is the scheme's default.
    authority: String,
}

impl PublicUrl {
    /// # Errors
    /// A message, if the text is not an address of that kind.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            format!("the public URL {text:?} {why}; write it as https://agents.example.org")
        };
        let url = Url::parse(text).map_err(|error| refused(&format!("cannot be read: {error}")))?;
        let is_https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(refused("is neither https nor http")),
        };
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            return Err(refused("has no host"));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("contains a user name or a password"));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(refused("has more than a scheme, a host and a port"));
        }
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Ok(Self { is_https, authority: authority.to_ascii_lowercase() })
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub fn scheme(&self) -> &'static str {
        if self.is_https { "https" } else { "http" }
    }
}

impl std::fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_has_a_scheme_a_host_and_a_port_only() {
        for (text, expected) in [
            ("https://Agents.Example.org", "https://agents.example.org"),
            ("https://agents.example.org:443/", "https://agents.example.org"),
            ("https://agents.example.org:8443", "https://agents.example.org:8443"),
            ("http://[::1]:8300", "http://[::1]:8300"),
        ] {
            assert_eq!(PublicUrl::parse(text).unwrap().to_string(), expected);
        }
        for wrong in [
            "agents.example.org",
            "ftp://x",
            "https://",
            "https://me:secret@x",
            "https://x/ostler",
            "https://x/?a",
            "https://x/#a",
        ] {
            let error = PublicUrl::parse(wrong).unwrap_err();
            assert!(error.contains("https://agents.example.org"), "{error}");
        }
    }
}
