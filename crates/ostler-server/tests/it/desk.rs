//! A server with a scripted model, and a client for it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use ostler_server::Server;
use ostler_server::config::Config;
use ostler_store::sqlite::{Clock, SystemClock};
use ostler_store::{Sqlite, Store, Timestamp};
use ostler_testkit::{Script, ScriptedApi};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Far longer than any step takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Desk {
    pub(crate) api: ScriptedApi,
    pub(crate) workspace: TempDir,
    data: TempDir,
    running: Option<Running>,
    store: Option<Arc<Sqlite>>,
    change: Box<dyn Fn(&mut Config) + Send + Sync>,
    pub(crate) token: String,
    pub(crate) clock: Arc<HandClock>,
}

/// A clock that runs normally, and that a test can set.
#[derive(Default)]
pub(crate) struct HandClock {
    real: SystemClock,
    ahead: AtomicI64,
}

impl HandClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.ahead.fetch_add(i64::try_from(by.as_millis()).unwrap(), Relaxed);
    }

    /// In milliseconds since 1970.
    pub(crate) fn set(&self, to: i64) {
        self.ahead.store(to - self.real.wall().as_millis(), Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.wall().as_millis()).unwrap()
    }
}

impl Clock for HandClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.real.wall().as_millis() + self.ahead.load(Relaxed))
    }

    fn steady(&self) -> Duration {
        self.real.steady()
    }
}

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Desk {
    pub(crate) async fn open(script: Script) -> Self {
        Self::with(script, |_| {}).await
    }

    pub(crate) async fn with(
        script: Script,
        change: impl Fn(&mut Config) + Send + Sync + 'static,
    ) -> Self {
        let mut desk = Self {
            api: ScriptedApi::start(script).await,
            workspace: tempfile::tempdir().unwrap(),
            data: tempfile::tempdir().unwrap(),
            running: None,
            store: None,
            change: Box::new(change),
            token: String::new(),
            clock: Arc::default(),
        };
        desk.start().await;
        desk
    }

    fn config(&self) -> Config {
        let mut config = Config::new(self.data.path().join("data"), self.workspace.path());
        config.listen.set_port(0);
        config.model = Some("claude-sonnet-4-5".to_owned());
        config.trust_members = true;
        for (name, value) in [
            ("ANTHROPIC_BASE_URL", self.api.base_url()),
            ("ANTHROPIC_API_KEY", "test-key".to_owned()),
            ("HOME", self.data.path().display().to_string()),
            // Tests may run as root, which may not bypass permissions outside a container.
            ("IS_SANDBOX", "1".to_owned()),
        ] {
            config.env.insert(name.to_owned(), value);
        }
        (self.change)(&mut config);
        config
    }

    pub(crate) async fn start(&mut self) {
        let (mut opened, clock) = (None, self.clock.clone());
        let open = async |folder: &Path| {
            let store = Arc::new(Sqlite::open_with(folder, clock).await?);
            opened = Some(Arc::clone(&store));
            Ok(store as Arc<dyn Store>)
        };
        let server = Server::start_with(self.config(), self.clock.clone(), open).await.unwrap();
        self.store = opened;
        self.token = server.token().unwrap();
        let (stop, stopped) = oneshot::channel();
        let address = server.address();
        let served = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        self.running = Some(Running { address, stop, served });
    }

    /// Why the server does not start.
    pub(crate) async fn fails_to_start(&self) -> String {
        match Server::start_at(self.config(), self.clock.clone()).await {
            Ok(_) => panic!("the server starts"),
            Err(error) => error.to_string(),
        }
    }

    /// Ends the server as a signal would.
    pub(crate) async fn stop(&mut self) {
        let Running { stop, served, .. } = self.running.take().unwrap();
        stop.send(()).unwrap();
        within(served).await.unwrap();
        self.store = None;
    }

    /// The server's store, for tests that damage it.
    pub(crate) fn store(&self) -> &Sqlite {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.as_ref().unwrap().address
    }

    pub(crate) fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// The folder of the server and its operator.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// The folder of the server's store.
    pub(crate) fn store_folder(&self) -> std::path::PathBuf {
        self.data.path().join("data/log")
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            base: format!("http://{}", self.address()),
            token: self.token.clone(),
            http: http(),
        }
    }

    /// A client of another user.
    pub(crate) async fn client_of(&self, name: &str) -> Client {
        self.client().post("/api/users", json!({"name": name, "role": "member"})).await;
        let tokens = format!("/api/users/{name}/tokens");
        let issued = self.client().post(&tokens, json!({"label": "test"})).await;
        let token = issued["token"].as_str().unwrap().to_owned();
        Client { token, ..self.client() }
    }
}

fn http() -> reqwest::Client {
    static PROVIDER: std::sync::Once = std::sync::Once::new();
    PROVIDER.call_once(|| {
        // Another test of this binary may have installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) http: reqwest::Client,
}

impl Client {
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(Method::GET, path, None).await;
        assert!(status.is_success(), "{path}: {status} {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    /// Sends any request; returns the status and the answer.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let mut request = self.request(method.clone(), path);
        if let Some(body) = body {
            request = request.json(&body);
        } else if method != Method::GET {
            request = request.header("content-type", "application/json");
        }
        let answer = within(request.send()).await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub(crate) async fn session(&self) -> String {
        let made = self.post("/api/sessions", json!({})).await;
        made["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn prompt(&self, session: &str, prompt: &str) -> String {
        let run =
            self.post(&format!("/api/sessions/{session}/runs"), json!({"prompt": prompt})).await;
        run["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a run is in a state.
    pub(crate) async fn until(&self, run: &str, state: &str) -> Value {
        let path = format!("/api/runs/{run}");
        self.watch(&path, &format!("{run} to be {state}"), |run| run["state"] == state).await
    }

    /// Waits until an approval is pending.
    pub(crate) async fn pending(&self) -> Value {
        let found = self
            .watch("/api/approvals", "a request", |list| {
                !list["items"].as_array().unwrap().is_empty()
            })
            .await;
        found["items"][0].clone()
    }

    pub(crate) async fn watch(
        &self,
        path: &str,
        what: &str,
        is_it: impl Fn(&Value) -> bool,
    ) -> Value {
        let looking = async {
            loop {
                let value = self.get(path).await;
                if is_it(&value) {
                    return value;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(value) => value,
            Err(_) => panic!("waited for {what}; there is {}", self.get(path).await),
        }
    }

    pub(crate) async fn log(&self, session: &str) -> Vec<Value> {
        let log = self.get(&format!("/api/sessions/{session}/log?limit=500")).await;
        log["items"].as_array().unwrap().clone()
    }
}

pub(crate) async fn within<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("this does not take so long")
}
