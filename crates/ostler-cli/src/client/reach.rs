//! The way to a server: where it is, the token that opens it, and what it says when it refuses.

use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ostler_http::{Certificates, is_this_machine};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde_json::Value;

use crate::args::client::Reach;
use crate::serve;

/// Why something did not come about.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// In words: the server is not there, or says no.
    Server(String),
    /// Nobody reads what we print any more.
    Screen(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Screen(error)
    }
}

/// A server, and our key to it.
pub(crate) struct Server {
    http: Client,
    base: Url,
    token: String,
    /// Whether its answers are passed on as they are.
    pub(crate) is_json: bool,
}

impl Server {
    pub(crate) fn of(reach: &Reach) -> Result<Self, Trouble> {
        let said = &reach.server;
        let base = Url::parse(said).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.filter(Url::has_host).ok_or_else(|| {
            Trouble::Server(format!(
                "{said} is no address of a server: write http://127.0.0.1:8300"
            ))
        })?;
        let token = token(reach, &base)?;
        let http = ostler_http::client(Certificates::System);
        let http = http.map_err(|error| Trouble::Server(error.to_string()))?;
        // A token goes where it was meant to go, and nowhere else.
        let mut http = http.redirect(reqwest::redirect::Policy::none());
        if is_this_machine(&base) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| Trouble::Server(error.to_string()))?;
        Ok(Self { http, base, token, is_json: reach.json })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Trouble> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Result<Value, Trouble> {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Trouble> {
        self.ask(Method::DELETE, path, None).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Trouble> {
        let mut request = self.request(method, path)?;
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let answer = self.send(request).await?;
        let text = answer.text().await.map_err(|error| self.unreachable(&error))?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).map_err(|_| {
            Trouble::Server(format!("what answers at {} is no ostler server", self.base))
        })
    }

    /// The events of something, after a number.
    pub(crate) async fn events(&self, path: &str, after: u64) -> Result<Response, Trouble> {
        let path = format!("{path}?after={after}");
        let request = self.request(Method::GET, &path)?.header(ACCEPT, "text/event-stream");
        self.send(request).await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Trouble> {
        let url = self.base.join(path).map_err(|error| Trouble::Server(error.to_string()))?;
        // A label for the audit, nothing more.
        let request = self.http.request(method, url).header("x-ostler-client", "cli");
        Ok(request.bearer_auth(&self.token))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let text = answer.text().await.unwrap_or_default();
        Err(Trouble::Server(refusal(status.as_u16(), &text, &self.base)))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Trouble {
        let base = self.base.as_str().trim_end_matches('/');
        if error.is_connect() {
            return Trouble::Server(format!(
                "there is no server at {base}: start one with `ostler serve`, or name another with --server or OSTLER_SERVER"
            ));
        }
        Trouble::Server(format!("the connection to {base} broke: {error}"))
    }

    /// The full name of something of which the beginning was said. Looks at what is listed there.
    pub(crate) async fn named(
        &self,
        path: &str,
        kind: &str,
        said: &str,
    ) -> Result<String, Trouble> {
        let whole = format!("{kind}_");
        let is_safe = said.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !is_safe || said.is_empty() {
            return Err(Trouble::Server(format!("{said:?} is no id of a {kind}")));
        }
        if said.len() >= whole.len() + 32 {
            return Ok(said.to_owned());
        }
        let said = said.strip_prefix(&whole).unwrap_or(said);
        let listed = self.get(path).await?;
        let ids = super::items(&listed).filter_map(|item| item["id"].as_str());
        let found: Vec<&str> = ids
            .filter(|id| id.strip_prefix(&whole).is_some_and(|rest| rest.starts_with(said)))
            .collect();
        match found.as_slice() {
            [only] => Ok((*only).to_owned()),
            [] => Err(Trouble::Server(format!("there is no {kind} {said}"))),
            several => Err(Trouble::Server(format!(
                "{} begin with {said}: write more of the id",
                several.len()
            ))),
        }
    }
}

fn refusal(status: u16, text: &str, base: &Url) -> String {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let error = &body["error"];
    let Some(message) = error["message"].as_str() else {
        return format!("{base} answers with {status}: is it an ostler server?");
    };
    let field = error["field"].as_str().map(|field| format!("{field}: ")).unwrap_or_default();
    let hint = error["hint"].as_str().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{field}{message}{hint}")
}

/// From the environment; or, for a server on this machine, from its own file.
fn token(reach: &Reach, base: &Url) -> Result<String, Trouble> {
    if let Some(token) = std::env::var("OSTLER_TOKEN").ok().filter(|token| !token.is_empty()) {
        return Ok(token);
    }
    let way_out = "set OSTLER_TOKEN";
    // The token of this machine's server is nothing for another one.
    if !is_this_machine(base) {
        return Err(Trouble::Server(format!("{base} needs a token: {way_out}")));
    }
    let variable = |name: &str| std::env::var(name).ok();
    let folder = reach.data.clone().or_else(|| serve::data_folder(variable));
    let folder = folder.ok_or_else(|| Trouble::Server(format!("there is no home: {way_out}")))?;
    read_token(&folder.join("token")).map_err(|error| {
        let path = folder.join("token");
        Trouble::Server(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no token in {}: start a server with `ostler serve`, say with --data where it keeps things, or {way_out}",
                path.display()
            ),
            _ => format!("the token in {} cannot be used: {error}", path.display()),
        })
    })
}

/// Refuses a file that others can read: somebody else may know the token, or have put it there.
fn read_token(path: &Path) -> io::Result<String> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.mode() & 0o077 != 0 {
        let text =
            "others may read or change it; remove it and start the server again for a new one";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// A folder as the server is to see it: from here, if it is not whole.
pub(crate) fn folder(said: &Path) -> Result<PathBuf, Trouble> {
    std::path::absolute(said)
        .map_err(|error| Trouble::Server(format!("{}: {error}", said.display())))
}
