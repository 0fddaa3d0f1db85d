//! Signing in to an MCP server whose authorization server is `oidc-provider` from npm, with its usual configuration:
//! tokens are opaque, and a refresh token counts once and ends the whole account if it comes twice.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::{Value, json};

use crate::run::{Ostler, Ran};
use crate::sign_in::{browser, tokens};

/// The authorization server and the MCP server.
struct Place {
    child: Child,
    issuer: String,
    base: String,
    http: reqwest::Client,
    api: ScriptedApi,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Place {
    async fn open() -> Self {
        let peers = std::env::var_os("OSTLER_MCP_PEERS").expect("OSTLER_MCP_PEERS names a folder");
        let peers = fs::canonicalize(peers).unwrap();
        let mut child = Command::new("node")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/authorization-server.mjs"))
            .env("OSTLER_MCP_PEERS", peers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let places: Value = serde_json::from_str(&line).unwrap();
        let at = |key: &str| places[key].as_str().unwrap().to_owned();
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("mcp__far__whoami", json!({})))
            .rule(when(), reply().text("Result: {{tool_result}}"));
        let api = ScriptedApi::start(script).await;
        let http = browser(reqwest::redirect::Policy::none());
        Self { child, issuer: at("issuer"), base: at("base"), http, api }
    }

    /// A program with the MCP server in its configuration.
    fn ostler(&self) -> Ostler {
        let ostler = Ostler::new()
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", &self.api.base_url());
        let entry = json!({"type": "http", "url": format!("{}/mcp", self.base),
            "oauth": {"account": "${WHO:-work}"}});
        let added = ostler.run(&["mcp", "add-json", "far", &entry.to_string()]);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
        ostler
    }

    /// Changes how the servers behave; returns what has happened so far.
    async fn set(&self, settings: Value) -> Value {
        let answer = self.http.post(format!("{}/test", self.base)).body(settings.to_string());
        let answer = answer.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    async fn grants(&self) -> Vec<String> {
        serde_json::from_value(self.set(json!({})).await["grants"].clone()).unwrap()
    }

    async fn refusals(&self) -> Value {
        self.set(json!({})).await["refusals"].clone()
    }

    /// What a browser of a user who agrees does, until it is led back to this machine: the address that it is led to.
    async fn agree(&self, url: &str) -> String {
        let (mut url, mut jar) = (reqwest::Url::parse(url).unwrap(), BTreeMap::new());
        for _ in 0..20 {
            if url.host_str() == Some("localhost") {
                return url.into();
            }
            let cookies: Vec<String> = jar
                .iter()
                .map(|(name, value): (&String, &String)| format!("{name}={value}"))
                .collect();
            let request = self.http.get(url.clone()).header(COOKIE, cookies.join("; "));
            let answer = request.send().await.unwrap();
            for cookie in answer.headers().get_all(SET_COOKIE) {
                let (name, value) = cookie.to_str().unwrap().split_once('=').unwrap();
                let value = value.split(';').next().unwrap().to_owned();
                jar.insert(name.to_owned(), value);
            }
            let Some(next) = answer.headers().get(LOCATION) else {
                panic!("{url}: {}", answer.text().await.unwrap());
            };
            url = url.join(next.to_str().unwrap()).unwrap();
        }
        panic!("the browser is led on and on: {url}");
    }

    /// Signs in as this user, with a browser on this machine.
    async fn sign_in(&self, ostler: &Ostler, user: &str) {
        self.set(json!({"user": user})).await;
        let login = Login::begin(ostler);
        let back = self.agree(&login.url).await;
        let page = self.http.get(back).send().await.unwrap();
        assert!(page.text().await.unwrap().contains("close this window"));
        let ran = login.end();
        assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("Signed in to far."), "{}", ran.stdout);
    }

    /// Whether the MCP server still accepts the access token.
    async fn accepts(&self, token: &str) -> bool {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let request = self.http.post(format!("{}/mcp", self.base)).bearer_auth(token).body(message);
        request.send().await.unwrap().status().is_success()
    }

    /// Sends a form to the authorization server; returns the status.
    async fn post(&self, path: &str, form: &[(&str, &str)]) -> u16 {
        let mut body = reqwest::Url::parse("http://form").unwrap();
        body.query_pairs_mut().extend_pairs(form);
        let request = self.http.post(format!("{}{path}", self.issuer));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(body.query().unwrap().to_owned()).send().await.unwrap().status().as_u16()
    }
}

/// `ostler mcp login`, which waits for the browser or for an address.
struct Login {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    url: String,
}

impl Login {
    fn begin(ostler: &Ostler) -> Self {
        let mut child = ostler.spawn(&["mcp", "login", "far"]);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        while !url.starts_with("http") {
            url.clear();
            let n_bytes = stdout.read_line(&mut url).unwrap();
            if n_bytes == 0 {
                panic!("no address: {}", Ran::of(child).stderr);
            }
        }
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stdout, stderr, url: url.trim().to_owned() }
    }

    /// A value in the address that the user opens.
    fn value(&self, key: &str) -> String {
        value(&self.url, key)
    }

    /// Pastes an address that must not sign in.
    fn is_refused(&mut self, address: &str) {
        self.paste(address);
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        assert!(line.contains("does not sign you in"), "{address}: {line}");
    }

    fn paste(&mut self, address: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{address}").unwrap();
    }

    fn end(mut self) -> Ran {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        drop(self.child.stdin.take());
        Ran { stdout, stderr, code: Ran::of(self.child).code }
    }
}

fn spawn(ostler: &Ostler) -> Child {
    let mut child = ostler.spawn(&["-p", "go", "--allowedTools=mcp__far"]);
    drop(child.stdin.take());
    child
}

fn whoami(ostler: &Ostler) -> String {
    let ran = Ran::of(spawn(ostler));
    format!("{}{}", ran.stdout, ran.stderr)
}

fn file(ostler: &Ostler) -> (PathBuf, Value) {
    let [file] = tokens(ostler).try_into().unwrap();
    let content = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    (file, content)
}

fn token(ostler: &Ostler, kind: &str) -> String {
    file(ostler).1["tokens"]["token_response"][kind].as_str().unwrap().to_owned()
}

fn value(address: &str, wanted: &str) -> String {
    let url = reqwest::Url::parse(address).unwrap();
    url.query_pairs().find(|(key, _)| key == wanted).unwrap().1.into_owned()
}

fn altered(address: &str, change: impl Fn(&str, &str) -> Option<String>) -> String {
    let mut url = reqwest::Url::parse(address).unwrap();
    let pairs: Vec<_> = url.query_pairs().into_owned().collect();
    url.query_pairs_mut().clear().extend_pairs(
        pairs.iter().filter_map(|(key, value)| change(key, value).map(|value| (key, value))),
    );
    url.into()
}

// Mutants: no `prompt=consent` (no refresh token); a registration that is refused is not tried without scopes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an authorization server from npm: cargo xtask test"]
async fn a_token_of_a_real_authorization_server_is_renewed_after_it_expired_and_after_it_was_revoked()
 {
    let place = Place::open().await;
    let ostler = place.ostler();
    place.set(json!({"lifetime": 1})).await;
    place.sign_in(&ostler, "ada").await;
    let (path, _) = file(&ostler);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let first = token(&ostler, "access_token");
    place.set(json!({"lifetime": 3600})).await;
    assert!(whoami(&ostler).contains("Result: ada"), "{}", whoami(&ostler));
    let second = token(&ostler, "access_token");
    assert_ne!(first, second);
    assert_eq!(place.grants().await, ["authorization_code", "refresh_token"]);
    // It lasts, so it is not renewed.
    assert!(whoami(&ostler).contains("Result: ada"));
    assert_eq!(place.grants().await.len(), 2);

    // The authorization server ends the token that is in use.
    let client = file(&ostler).1["registration"]["client_id"].as_str().unwrap().to_owned();
    let revoke = |token: String| {
        let (client, place) = (client.clone(), &place);
        async move {
            place.post("/token/revocation", &[("token", &token), ("client_id", &client)]).await
        }
    };
    place.set(json!({"expired": [&second]})).await;
    assert!(!place.accepts(&second).await);
    assert!(whoami(&ostler).contains("Result: ada"));
    assert_eq!(place.grants().await.len(), 3);
    // And then the whole account.
    assert_eq!(revoke(token(&ostler, "refresh_token")).await, 200);
    let result = whoami(&ostler);
    assert!(!result.contains("Result: ada") && result.contains("needs sign-in"), "{result}");
    place.sign_in(&ostler, "ada").await;
    assert!(whoami(&ostler).contains("Result: ada"));
}

// Mutant: `renew` without the lock, or without reading the file again.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an authorization server from npm: cargo xtask test"]
async fn processes_that_renew_a_token_at_the_same_time_use_the_refresh_token_once() {
    let place = Place::open().await;
    let ostler = place.ostler();
    place.sign_in(&ostler, "ada").await;
    let old = token(&ostler, "access_token");
    // Slow enough that all of them are refused before the first one has another token.
    place.set(json!({"expired": [&old], "delay": 1000})).await;
    let running: Vec<Child> = (0..4).map(|_| spawn(&ostler)).collect();
    for child in running {
        let ran = Ran::of(child);
        assert_eq!(ran.stdout.trim(), "Result: ada", "{}", ran.stderr);
    }
    assert_eq!(place.grants().await, ["authorization_code", "refresh_token"]);
    assert_eq!(place.refusals().await, json!([]));
}

// Mutants: `forget` does not revoke; `file_name` without the account.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an authorization server from npm: cargo xtask test"]
async fn a_user_has_several_accounts_at_one_server_and_signing_out_ends_one_of_them_there() {
    let place = Place::open().await;
    let work = place.ostler();
    place.sign_in(&work, "ada").await;
    let of_work = token(&work, "access_token");
    let home = work.env("WHO", "home");
    place.sign_in(&home, "bob").await;
    assert_eq!(tokens(&home).len(), 2);
    assert!(whoami(&home).contains("Result: bob"));
    let work = home.env("WHO", "work");
    assert!(whoami(&work).contains("Result: ada"));
    assert!(place.accepts(&of_work).await);
    assert_eq!(work.run(&["mcp", "logout", "far"]).code, Some(0));
    assert_eq!(tokens(&work).len(), 1);
    assert!(!place.accepts(&of_work).await, "the token still counts after the user signed out");
    assert!(whoami(&work).contains("needs sign-in"));
    let home = work.env("WHO", "home");
    assert!(whoami(&home).contains("Result: bob"));
}

// Mutant: `finish` passes no issuer: no one can sign in, because this server says that it names itself.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an authorization server from npm: cargo xtask test"]
async fn an_answer_of_a_wrong_issuer_and_a_stolen_code_sign_no_one_in() {
    let place = Place::open().await;
    let ostler = place.ostler();
    let mut login = Login::begin(&ostler);
    let back = place.agree(&login.url).await;
    let with =
        |address: &str, key: &str, value: Option<&str>| {
            altered(address, |found, old| {
                if found == key { value.map(str::to_owned) } else { Some(old.to_owned()) }
            })
        };
    login.is_refused(&with(&back, "iss", Some("http://127.0.0.1:9")));
    login.is_refused(&with(&back, "iss", None));
    login.is_refused(&with(&back, "state", Some("forged")));
    assert_eq!(place.refusals().await, json!([]), "no code was sent");

    // A thief has the code, and uses it with this program and without it.
    let thief = place.ostler();
    let mut theft = Login::begin(&thief);
    theft.is_refused(&back);
    theft.is_refused(&with(&back, "state", Some(&theft.value("state"))));
    let (code, client) = (value(&back, "code"), login.value("client_id"));
    let address = login.value("redirect_uri");
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &*code),
        ("client_id", &*client),
        ("redirect_uri", &*address),
        ("code_verifier", "a-verifier-that-the-thief-made-up-because-it-needs-one"),
    ];
    assert_eq!(place.post("/token", &form[..4]).await, 400);
    assert_eq!(place.post("/token", &form).await, 400);
    theft.child.kill().unwrap();
    assert!(!theft.end().stdout.contains("Signed in"));
    assert!(tokens(&thief).is_empty());
    assert_eq!(place.grants().await, [""; 0], "no token was issued");

    login.paste(&back);
    let ran = login.end();
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    assert!(whoami(&ostler).contains("Result: ada"));
}
