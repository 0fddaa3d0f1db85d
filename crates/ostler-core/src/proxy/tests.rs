//! The proxy with a test model that records requests and delays the rest of its responses.

use parking_lot::Mutex;
use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::StreamExt as _;
use ostler_base::private;
use ostler_http::Certificates;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::*;
use crate::config::Config;
use crate::confine::redact::Redactor;

type Pieces = mpsc::UnboundedSender<Result<Bytes, io::Error>>;

/// The requests that the model received, and how it continues its responses.
#[derive(Default)]
struct Model {
    seen: Mutex<Vec<String>>,
    answers: Mutex<Vec<Pieces>>,
}

async fn answer(State(model): State<Arc<Model>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let header = |name: &str| match head.headers.get(name) {
        Some(value) => value.to_str().unwrap().to_owned(),
        None => "-".to_owned(),
    };
    let line = format!(
        "{} {} key={} auth={} hop={}",
        head.method,
        head.uri,
        header("x-api-key"),
        header("authorization"),
        header("x-hop"),
    );
    model.seen.lock().push(line);
    let (pieces, answer) = mpsc::unbounded_channel();
    // Echoes the request at once, piece by piece; then sends what the test supplies.
    let mut body = body.into_data_stream();
    let echo = pieces.clone();
    tokio::spawn(async move {
        while let Some(Ok(piece)) = body.next().await {
            _ = echo.send(Ok(piece));
        }
    });
    model.answers.lock().push(pieces);
    let headers = [("content-type", "text/event-stream"), ("connection", "x-hop"), ("x-hop", "1")];
    (headers, Body::from_stream(UnboundedReceiverStream::new(answer))).into_response()
}

struct Stage {
    model: Arc<Model>,
    proxy: Arc<Proxy>,
    client: reqwest::Client,
    _stop: tokio_util::sync::DropGuard,
}

impl Stage {
    async fn open(env: &[(&str, &str)], key_file: Option<std::path::PathBuf>) -> Self {
        Self::with(env, key_file, |_| {}).await
    }

    async fn with(
        env: &[(&str, &str)],
        key_file: Option<std::path::PathBuf>,
        change: fn(&mut Config),
    ) -> Self {
        let model = Arc::<Model>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(any(answer)).with_state(Arc::clone(&model));
        let stop = CancellationToken::new();
        tokio::spawn(serve::serve(listener, routes, ConnectionLimits::default(), stop.clone()));
        let mut config = Config::new("/no/data", "/no/workspace");
        config.key_file = key_file;
        config.env.extend(env.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned())));
        config.env.insert("ANTHROPIC_BASE_URL".to_owned(), base);
        change(&mut config);
        let credentials = Credentials::take(&mut config, Redactor::default());
        let limits = PassLimits::of(&config);
        let proxy = Proxy::start(credentials, limits, stop.clone()).await.unwrap();
        let client = ostler_http::client(Certificates::None).unwrap().no_proxy().build().unwrap();
        Self { model, proxy, client, _stop: stop.drop_guard() }
    }

    fn engine(&self) -> (Pass, String, String) {
        let (pass, mut env) = (self.proxy.admit("session").unwrap(), BTreeMap::new());
        pass.give_to(&mut env);
        (pass, env["ANTHROPIC_BASE_URL"].clone(), env["ANTHROPIC_API_KEY"].clone())
    }

    async fn ask(&self, path: &str, key: (&str, &str)) -> (u16, String) {
        let (_, base, _) = self.engine();
        let request = self.client.post(format!("{base}{path}")).header(key.0, key.1);
        let answer = request.header("connection", "x-hop").header("x-hop", "1").send();
        let answer = answer.await.unwrap();
        let status = answer.status().as_u16();
        if status == 200 {
            assert_eq!(answer.headers().get("x-hop"), None, "a header of that connection only");
            self.model.answers.lock().clear();
        }
        (status, answer.text().await.unwrap())
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.model.seen.lock())
    }
}

// Seen to fail with a proxy that leaves the engine's own header in place, and with one that accepts every key.
#[tokio::test]
async fn engines_send_a_placeholder_and_the_model_receives_the_key() {
    let stage = Stage::open(&[("ANTHROPIC_API_KEY", "real-key")], None).await;
    let (pass, _, word) = stage.engine();
    assert!(!word.contains("real"));
    for key in [("x-api-key", word.as_str()), ("authorization", &format!("Bearer {word}"))] {
        assert_eq!(stage.ask("/v1/messages?beta=true", key).await.0, 200);
        assert_eq!(stage.seen(), ["POST /v1/messages?beta=true key=real-key auth=- hop=-"]);
    }
    // Not with an unknown key, not to other paths, and not after the engine has ended.
    let (status, said) = stage.ask("/v1/messages", ("x-api-key", "real-key")).await;
    assert_eq!(status, 401);
    assert!(said.contains("authentication_error") && !said.contains("real-key"), "{said}");
    for path in ["/v1/files", "/v1/messages/batches", "/v1/messages/../organizations"] {
        assert_eq!(stage.ask(path, ("x-api-key", &word)).await.0, 404, "{path}");
    }
    drop(pass);
    assert_eq!(stage.ask("/v1/messages", ("x-api-key", &word)).await.0, 401);
    assert!(stage.seen().is_empty(), "the model received none of these");
}

#[tokio::test]
async fn a_new_key_is_used_from_the_next_request() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("key");
    private::create(&file, b"first-key").unwrap();
    let stage = Stage::open(&[], Some(file.clone())).await;
    let (_pass, base, word) = stage.engine();
    let ask = || stage.ask("/v1/messages", ("x-api-key", &word));
    assert_eq!(ask().await.0, 200);
    private::replace(&file, b"ANTHROPIC_AUTH_TOKEN=second-key").unwrap();
    assert_eq!(ask().await.0, 200);
    let seen = stage.seen();
    assert!(seen[0].contains("key=first-key auth=-"), "{seen:?}");
    assert!(seen[1].contains("key=- auth=Bearer second-key"), "{seen:?}");
    let health = format!("{}/healthz", base.strip_suffix(PREFIX).unwrap());
    let healthy = || async { stage.client.get(&health).send().await.unwrap().status().as_u16() };
    assert_eq!(healthy().await, 200);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(healthy().await, 503);
    let (status, said) = ask().await;
    assert_eq!(status, 403);
    assert!(said.contains("key file"), "{said}");
}

// Seen to fail with a proxy that reads the whole response first; then both sides wait for each other.
#[tokio::test]
async fn requests_and_responses_are_passed_on_piece_by_piece() {
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, both_ways())
        .await
        .expect("neither side waits for the end of the other");
}

async fn both_ways() {
    let stage = Stage::open(&[("ANTHROPIC_API_KEY", "real-key")], None).await;
    let (_pass, base, word) = stage.engine();
    let (say, said) = mpsc::unbounded_channel::<Result<Bytes, io::Error>>();
    say.send(Ok(Bytes::from_static(b"one"))).unwrap();
    let body = reqwest::Body::wrap_stream(UnboundedReceiverStream::new(said));
    let request = stage.client.post(format!("{base}/v1/messages")).header("x-api-key", &word);
    let mut heard = request.body(body).send().await.unwrap().bytes_stream();
    assert_eq!(heard.next().await.unwrap().unwrap(), "one");
    // Neither the request nor the response is complete yet.
    say.send(Ok(Bytes::from_static(b"two"))).unwrap();
    assert_eq!(heard.next().await.unwrap().unwrap(), "two");
    drop(say);
    let answer = stage.model.answers.lock().pop().unwrap();
    answer.send(Ok(Bytes::from_static(b"three"))).unwrap();
    assert_eq!(heard.next().await.unwrap().unwrap(), "three");
    // When an engine disconnects, the connection to the model ends, too.
    drop(heard);
    answer.closed().await;
}

#[tokio::test]
async fn an_unreachable_model_is_reported_in_the_format_of_the_api() {
    let mut config = Config::new("/no/data", "/no/workspace");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://user:hidden-word@{}", nobody.local_addr().unwrap());
    drop(nobody);
    config.env.insert("ANTHROPIC_BASE_URL".to_owned(), base);
    config.env.insert("ANTHROPIC_API_KEY".to_owned(), "real-key".to_owned());
    let credentials = Credentials::take(&mut config, Redactor::default());
    let stop = CancellationToken::new();
    let limits = PassLimits::of(&config);
    let proxy = Proxy::start(credentials, limits, stop.clone()).await.unwrap();
    let (pass, mut env) = (proxy.admit("session").unwrap(), BTreeMap::new());
    pass.give_to(&mut env);
    let client = ostler_http::client(Certificates::None).unwrap().no_proxy().build().unwrap();
    let request = client.post(format!("{}/v1/messages", env["ANTHROPIC_BASE_URL"]));
    let answer = request.header("x-api-key", &env["ANTHROPIC_API_KEY"]).send().await.unwrap();
    assert_eq!(answer.status(), 502);
    let said = answer.text().await.unwrap();
    assert!(said.contains("api_error") && !said.contains("hidden-word"), "{said}");
    stop.cancel();
}

// Mutant: `forward` that does not ask what the pass may still use, and `with_allowed_model` that lets everything pass.
#[tokio::test]
async fn an_engine_cannot_exceed_the_limits_of_its_pass() {
    let stage = Stage::with(&[("ANTHROPIC_API_KEY", "real-key")], None, |config| {
        config.limits.engine_tokens = Some(100);
        config.models = vec!["claude-sonnet-4-5".to_owned()];
    })
    .await;
    let (_pass, base, word) = stage.engine();
    let ask = async |body: &'static str| {
        let request = stage.client.post(format!("{base}/v1/messages")).header("x-api-key", &word);
        let answer = request.body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        // The request is echoed; then the model sends nothing more.
        stage.model.answers.lock().clear();
        (status, answer.text().await.unwrap())
    };
    for other in [r#"{"model": "claude-opus-4-5"}"#, r#"{"model": 7}"#, "{}", "", "no json"] {
        let (status, said) = ask(other).await;
        assert_eq!(status, 403, "{other}");
        assert!(said.contains("permission_error") && said.contains("--allow-model"), "{said}");
    }
    assert!(stage.seen().is_empty(), "the model received none of these");
    let used =
        r#"{"model": "claude-sonnet-4-5", "usage": {"input_tokens": 70, "output_tokens": 40}}"#;
    assert_eq!(ask(used).await.0, 200);
    let (status, said) = ask(used).await;
    assert_eq!(status, 403);
    assert!(said.contains("110 tokens of the 100"), "{said}");
    assert_eq!(stage.seen().len(), 1);
    // Another engine has its own pass.
    let (_other, base, word) = stage.engine();
    let request = stage.client.post(format!("{base}/v1/messages")).header("x-api-key", &word);
    assert_eq!(request.body(used).send().await.unwrap().status(), 200);
}
