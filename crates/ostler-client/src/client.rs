//! Requests to a server, and its refusals as errors.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde_json::Value;

use crate::{Error, Events};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// Reads an address such as `http://127.0.0.1:8300`.
    ///
    /// # Errors
    /// When it is not an `http` or `https` URL with a host.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.filter(Url::has_host).ok_or_else(|| Error::Address(text.to_owned()))?;
        Ok(Self(url))
    }

    /// Whether it is a loopback address.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        ostler_http::is_this_machine(&self.0)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// A connection to one server, with the token for it.
pub struct Client {
    http: reqwest::Client,
    address: Address,
    token: String,
    program: &'static str,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that sends this token to this server. It follows no redirects, and uses no proxy for this machine. The
    /// server's audit log shows `program`.
    ///
    /// # Errors
    /// When TLS cannot be prepared.
    pub fn new(address: Address, token: String, program: &'static str) -> Result<Self, Error> {
        let http = ostler_http::client(ostler_http::Certificates::System)
            .map_err(|error| Error::Request(error.to_string()))?;
        // A redirect could send the token to another host.
        let mut http = http.redirect(reqwest::redirect::Policy::none());
        if address.is_this_machine() {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| Error::Request(error.to_string()))?;
        Ok(Self { http, address, token, program })
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.ask(Method::GET, path, None).await
    }

    /// Sends a POST request.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value, Error> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Sends a DELETE request.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.ask(Method::DELETE, path, None).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let mut request = self.request(method, path)?;
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let answer = self.send(request).await?;
        let text = answer.text().await.map_err(|error| self.unreachable(error))?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|_| Error::NotOstler(self.address.to_string()))
    }

    /// The events of a resource after the event with this number.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn events(&self, path: &str, after: u64) -> Result<Events, Error> {
        let path = format!("{path}?after={after}");
        let request = self.request(Method::GET, &path)?.header(ACCEPT, "text/event-stream");
        Ok(Events::of(self.send(request).await?))
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Error> {
        let url = self.address.0.join(path).map_err(|error| Error::Request(error.to_string()))?;
        let request = self.http.request(method, url).header("x-ostler-client", self.program);
        Ok(request.bearer_auth(&self.token))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let answer = request.send().await.map_err(|error| self.unreachable(error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap_or_default();
        Err(Error::Refused { status, text: refusal(status, &text, &self.address) })
    }

    fn unreachable(&self, cause: reqwest::Error) -> Error {
        let address = self.address.to_string().trim_end_matches('/').to_owned();
        if cause.is_connect() {
            return Error::NoServer(address);
        }
        Error::Broken { address, cause }
    }

    /// Completes an id of which the beginning is given, with the list at the path.
    ///
    /// # Errors
    /// When no id in the list has this beginning, or several have.
    pub async fn full_id(&self, path: &str, kind: &str, beginning: &str) -> Result<String, Error> {
        let whole = format!("{kind}_");
        let is_safe =
            beginning.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !is_safe || beginning.is_empty() {
            return Err(Error::Id(format!("{beginning:?} is not a valid {kind} id")));
        }
        if beginning.len() >= whole.len() + 32 {
            return Ok(beginning.to_owned());
        }
        let beginning = beginning.strip_prefix(&whole).unwrap_or(beginning);
        let listed = self.get(path).await?;
        let ids = items(&listed).filter_map(|item| item["id"].as_str());
        let found: Vec<&str> = ids
            .filter(|id| id.strip_prefix(&whole).is_some_and(|rest| rest.starts_with(beginning)))
            .collect();
        match found.as_slice() {
            [only] => Ok((*only).to_owned()),
            [] => Err(Error::Id(format!("there is no {kind} {beginning}"))),
            several => Err(Error::Id(format!(
                "{} begin with {beginning}: write more of the id",
                several.len()
            ))),
        }
    }
}

/// The items of a list that the server sent.
pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

fn refusal(status: u16, text: &str, address: &Address) -> String {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let error = &body["error"];
    let Some(message) = error["message"].as_str() else {
        return format!("{address} answers with {status}: is it an ostler server?");
    };
    let field = error["field"].as_str().map(|field| format!("{field}: ")).unwrap_or_default();
    let hint = error["hint"].as_str().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{field}{message}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_with_a_host_are_accepted() {
        for text in ["here", "127.0.0.1:8300", "file:///tmp", "ftp://127.0.0.1"] {
            assert!(matches!(Address::parse(text), Err(Error::Address(_))), "{text}");
        }
        for (text, is_this_machine) in [
            ("http://127.0.0.1:8300", true),
            ("http://[::1]:8300", true),
            ("https://localhost", true),
            ("https://localhost.example.org", false),
            ("http://192.0.2.1", false),
        ] {
            let address = Address::parse(text).expect(text);
            assert_eq!(address.is_this_machine(), is_this_machine, "{text}");
        }
    }

    #[test]
    fn a_refusal_names_the_field_and_the_hint() {
        let address = Address::parse("http://127.0.0.1:8300").expect("a valid address");
        let body = r#"{"error": {"message": "too long", "field": "name", "hint": "shorten it"}}"#;
        assert_eq!(refusal(422, body, &address), "name: too long; shorten it");
        let other = refusal(404, "<html>", &address);
        assert_eq!(other, "http://127.0.0.1:8300/ answers with 404: is it an ostler server?");
    }
}
