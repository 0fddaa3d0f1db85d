//! `open`: opening a session (`POST /agui/connect`) with 3,000 runs, compared with one with 300.
//!
//! The server is in this process, with a store filled directly: messages before the newest ones must cost nothing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ostler_server::Server;
use ostler_server::config::Config;
use ostler_store::sqlite::SystemClock;
use ostler_store::{NewEvent, Put, Sqlite, Store, StreamId};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{measure, table};

const FEW: usize = 300;
const MANY: usize = 3_000;
/// The promise: many divided by few.
const LIMIT: f64 = 1.5;

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = Runtime::new().context("starting a runtime")?;
    let folder = tempfile::tempdir()?;
    let place = runtime.block_on(Place::open(folder.path()))?;
    let (few, many) = runtime
        .block_on(async { anyhow::Ok((place.session(FEW).await?, place.session(MANY).await?)) })?;
    let mut failed = None;
    let mut connect = |session: &str| {
        if let Err(error) = runtime.block_on(place.connect(session)) {
            failed = Some(error);
        }
    };
    let connect = std::cell::RefCell::new(&mut connect);
    let times = measure::medians(&mut [&mut || (connect.borrow_mut())(&few), &mut || {
        (connect.borrow_mut())(&many)
    }]);
    if let Some(error) = failed {
        return Err(error);
    }
    let ratio = times[1].as_secs_f64() / times[0].as_secs_f64();
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    println!("open: POST /agui/connect, median of some");
    let rows = [
        ["".to_owned(), "ms".to_owned()],
        [format!("{FEW} runs"), ms(times[0])],
        [format!("{MANY} runs"), ms(times[1])],
        ["ratio".to_owned(), format!("{ratio:.2}")],
    ];
    print!("{}", table::render(&rows));
    let promise = format!(
        "open: a session of {MANY} runs takes {ratio:.2} times as long as one of {FEW}, more than {LIMIT}"
    );
    Ok(if ratio > LIMIT { vec![promise] } else { Vec::new() })
}

struct Place {
    store: Arc<Sqlite>,
    http: Client,
    base: String,
    token: String,
}

impl Place {
    async fn open(folder: &std::path::Path) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::new(folder.join("data"), folder.to_owned());
        config.listen.set_port(0);
        config.model = Some("offline-demo".to_owned());
        let store = Arc::new(Sqlite::open(folder.join("log")).await?);
        let kept = Arc::clone(&store);
        let open = async |_: &std::path::Path| Ok(kept as Arc<dyn Store>);
        let server = Server::start_with(config, Arc::new(SystemClock::default()), open).await?;
        let (base, token) = (format!("http://{}", server.address()), server.token()?);
        tokio::spawn(server.serve(std::future::pending()));
        let http = Client::builder().no_proxy().tls_certs_only([]).build()?;
        Ok(Self { store, http, base, token: token.to_string() })
    }

    /// A session with this many runs, each as the server would have written it.
    async fn session(&self, runs: usize) -> Result<String> {
        let url = format!("{}/api/sessions", self.base);
        let made = self.http.post(url).bearer_auth(&self.token).json(&json!({})).send().await?;
        let made: Value = made.error_for_status()?.json().await?;
        let id = made["id"].as_str().context("a session has an id")?.to_owned();
        let lease =
            self.store.claim(&StreamId::new(&id)?, "bench", Duration::from_secs(600)).await?;
        for number in 0..runs {
            let (events, put) = written(&id, made["owner"].clone(), number);
            self.store.append(&lease, events, vec![put]).await?;
        }
        self.store.release(&lease).await?;
        Ok(id)
    }

    async fn connect(&self, session: &str) -> Result<()> {
        let body = json!({"threadId": session, "runId": "look", "messages": [], "tools": [], "context": [],
            "state": null, "forwardedProps": {}});
        let url = format!("{}/agui/connect", self.base);
        let answer = self.http.post(url).bearer_auth(&self.token).json(&body).send().await?;
        let answer_text = answer.error_for_status()?.text().await?;
        ensure!(
            answer_text.contains("RUN_FINISHED") && answer_text.contains("answer number"),
            "{answer_text}"
        );
        Ok(())
    }
}

fn written(session: &str, owner: Value, number: usize) -> (Vec<NewEvent>, Put) {
    let id = format!("run_{session}_{number}");
    let run = |state: &str| {
        json!({"id": id, "session": session, "owner": owner, "prompt": format!("prompt {number}"),
            "state": state, "created": number, "started": number, "ended": number})
    };
    let state = |state: &str| NewEvent::new("run", json!({"run": run(state)}));
    let names = format!("00000000-0000-4000-8000-{number:012}");
    let said = json!({"type": "assistant", "parent_tool_use_id": null, "session_id": "s", "uuid": names, "message": {
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": format!("answer number {number}")}], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let events = vec![
        NewEvent::new("prompt", json!({"runId": id, "text": format!("prompt {number}")})),
        state("queued"),
        state("running"),
        NewEvent::new("message", json!({"runId": id, "message": said})),
        state("completed"),
    ];
    let owner = owner.as_str().unwrap_or_default().to_owned();
    (events, Put::new("run", &*id, run("completed")).owner(owner))
}
