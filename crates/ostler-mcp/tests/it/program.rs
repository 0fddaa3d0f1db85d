//! Servers that are programs, good and bad ones.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures::future::join_all;
use ostler_mcp::{CallOptions, Client, ClientOptions, Endpoint, Error, Program, Status};
use serde_json::{Value, json};

use crate::support::within;

/// The example `calc`, which is built next to the tests.
pub(crate) fn calc() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap().join("examples");
    let program = folder.join("calc");
    assert!(program.exists(), "build it first: cargo build -p ostler-mcp --example calc");
    program
}

/// A shell script that then runs `calc`.
fn script(script: &str) -> Endpoint {
    let calc = calc();
    Endpoint::program("/bin/sh", ["-c", script, "sh", calc.to_str().unwrap()])
}

async fn connect(endpoint: Endpoint, options: ClientOptions) -> Result<Client, Error> {
    within("connecting", Client::connect("calc", endpoint, options)).await
}

async fn add(client: &Client) -> Result<String, Error> {
    let call = client.call_tool("add", json!({"a": 2, "b": 3}), CallOptions::default());
    within("the call", call).await.map(|output| output.joined_text())
}

const INITIALIZED: &str = r#"read line; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}'; read line;"#;

/// A pipe that ends when every process that holds it open has ended.
struct Witness {
    folder: tempfile::TempDir,
}

impl Witness {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("mkfifo").arg(folder.path().join("alive")).status().unwrap();
        assert!(made.success());
        Self { folder }
    }

    /// Opens the pipe in a script, so that every process of the script holds it.
    fn held(&self) -> String {
        format!("exec 9>'{}';", self.folder.path().join("alive").display())
    }

    /// Waits until a process holds it, and returns a future for its end.
    async fn open(&self) -> impl Future<Output = ()> + use<> {
        let path = self.folder.path().join("alive");
        let opened = tokio::task::spawn_blocking(move || std::fs::File::open(path).unwrap());
        let mut file = within("the script", opened).await.unwrap();
        async move {
            let end =
                tokio::task::spawn_blocking(move || std::io::copy(&mut file, &mut std::io::sink()));
            within("the end of all processes", end).await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_program_is_started_used_and_ends_by_itself() {
    let witness = Witness::new();
    let endpoint = script(&format!("{} exec \"$1\"", witness.held()));
    let (client, gone) = tokio::join!(connect(endpoint, ClientOptions::default()), witness.open());
    let client = client.unwrap();
    assert_eq!(client.details().unwrap().name, "calc");
    assert_eq!(add(&client).await.unwrap(), "5");
    within("closing", client.close()).await;
    gone.await;
    assert!(matches!(client.status(), Status::Failed(_)));
    // Nothing reads the pipe now, so this program must not need it.
    let endpoint = script("exec \"$1\"");
    assert_eq!(
        add(&connect(endpoint, ClientOptions::default()).await.unwrap()).await.unwrap(),
        "5"
    );
}

#[tokio::test]
async fn arguments_and_environment_are_passed_without_a_shell() {
    let program = Program {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".into(), "test \"$1 $X\" = '$(a) `b`;' && exec \"$2\"".into(), "sh".into()],
        env: [("X", "`b`;")].into(),
        ..Program::default()
    };
    let mut with_calc = program.clone();
    with_calc.args.extend(["$(a)".to_owned(), calc().to_str().unwrap().to_owned()]);
    connect(Endpoint::Stdio(with_calc), ClientOptions::default()).await.unwrap();
}

#[tokio::test]
async fn a_dropped_client_takes_the_whole_process_group_with_it() {
    let witness = Witness::new();
    let endpoint =
        script(&format!("{} trap '' TERM HUP; sleep 1000 & {INITIALIZED} wait", witness.held()));
    let (client, gone) = tokio::join!(connect(endpoint, ClientOptions::default()), witness.open());
    drop(client.unwrap());
    gone.await;
}

#[tokio::test]
async fn dropped_clients_leave_neither_processes_nor_tasks() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (before, witness) = (tasks(), Witness::new());
    let scripts = (0..30).map(|_| script(&format!("{} exec \"$1\"", witness.held())));
    let connects = scripts.map(|endpoint| connect(endpoint, ClientOptions::default()));
    let (clients, gone) = tokio::join!(join_all(connects), witness.open());
    for client in &clients {
        // Some are dropped during a call.
        let client = client.clone().unwrap();
        let call = client.call_tool("hang", json!({}), CallOptions::default());
        tokio::time::timeout(Duration::ZERO, call).await.unwrap_err();
    }
    drop(clients);
    gone.await;
    let all_ended = async {
        while tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    within("the end of all tasks", all_ended).await;
}

#[tokio::test]
async fn a_program_that_never_answers_is_ended_after_the_timeout() {
    let witness = Witness::new();
    let endpoint = script(&format!("{} echo 'let me think' >&2; sleep 1000", witness.held()));
    let options = ClientOptions::default().startup_timeout(Duration::from_millis(500));
    let (error, gone) = tokio::join!(connect(endpoint, options), witness.open());
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("it was not ready after 500ms; it last said: let me think"), "{error}");
    gone.await;
}

#[tokio::test]
async fn a_missing_program_is_named_in_the_error() {
    let client =
        Client::new("calc", Endpoint::program("/no/such/program", [""; 0]), Default::default());
    assert_eq!(client.status(), Status::Pending);
    let error = client.reconnect().await.unwrap_err();
    assert!(error.to_string().contains("starting `/no/such/program`: No such file"), "{error}");
    assert_eq!(client.status(), Status::Failed(error.to_string()));
}

#[tokio::test]
async fn output_that_is_not_a_message_is_ignored() {
    let garbage = r#"
        echo 'Server is starting...'; printf '\377\376\n'; echo '[[[]]]'; echo 'null'; echo '{"id":0}';
        echo '{"jsonrpc":"2.0","id":99,"result":{}}'; echo '{"jsonrpc":"2.0","method":7}'; exec "$1""#;
    let client =
        connect(script(&garbage.replace("echo '{\"id\":0}';", "")), ClientOptions::default());
    assert_eq!(add(&client.await.unwrap()).await.unwrap(), "5");
    // An answer without a result is an invalid answer.
    let error = connect(script(garbage), ClientOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn the_error_for_a_dead_program_quotes_its_stderr() {
    let at_once = script("echo 'no licence' >&2; exit 3");
    let error = connect(at_once, ClientOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 3; it last said: no licence"), "{error}");

    let later = script(&format!("{INITIALIZED} read line; echo 'out of coffee' >&2; exit 4"));
    let client = connect(later, ClientOptions::default()).await.unwrap();
    let error = add(&client).await.unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error}");
    assert!(error.to_string().contains("exit status: 4; it last said: out of coffee"), "{error}");
    assert_eq!(client.status(), Status::Failed(error.to_string()));
}

#[tokio::test]
async fn much_stderr_output_blocks_nothing() {
    let endpoint = script("head -c 10000000 /dev/zero | tr '\\0' x >&2; exec \"$1\"");
    let client = connect(endpoint, ClientOptions::default()).await.unwrap();
    assert_eq!(add(&client).await.unwrap(), "5");
    let endpoint = script("head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1");
    let error = connect(endpoint, ClientOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("xxx") && error.len() < 5000, "{} bytes", error.len());
}

#[tokio::test]
async fn a_line_without_end_ends_the_connection_at_the_limit() {
    let line = "head -c 10000000 /dev/zero | tr '\\0' x; echo; exec \"$1\"";
    let client = connect(script(line), ClientOptions::default()).await.unwrap();
    assert_eq!(add(&client).await.unwrap(), "5");
    let options = ClientOptions::default().message_limit(1_000_000);
    let error = connect(script(line), options).await.unwrap_err().to_string();
    assert!(error.contains("a message of more than 1000000 bytes"), "{error}");
}

#[tokio::test]
async fn a_program_that_does_not_read_does_not_block_the_client() {
    let client = connect(script(&format!("{INITIALIZED} sleep 1000")), ClientOptions::default());
    let client = client.await.unwrap();
    // More than the pipe and all channels hold.
    let large = json!({"text": "x".repeat(100_000)});
    let options = CallOptions::default().timeout(Duration::from_millis(500));
    let calls = (0..100).map(|_| client.call_tool("swallow", large.clone(), options.clone()));
    for outcome in within("the calls", join_all(calls)).await {
        assert!(matches!(outcome, Err(Error::TimedOut { .. })), "{outcome:?}");
    }
}

#[test]
fn a_configuration_becomes_an_endpoint() {
    let config = |value: Value| Endpoint::from_config(&serde_json::from_value(value).unwrap());
    let stdio = config(json!({"command": "node", "args": ["a b"], "env": {"X": "1"}}));
    let expected = Program {
        command: "node".into(),
        args: vec!["a b".into()],
        env: [("X", "1")].into(),
        ..Program::default()
    };
    assert!(matches!(stdio, Some(Endpoint::Stdio(program)) if program == expected));
    let http = config(json!({"type": "http", "url": "http://x", "headers": {"A": "b"}}));
    assert!(matches!(http, Some(Endpoint::Http(remote)) if remote.headers["A"] == "b"));
    assert!(matches!(config(json!({"type": "sse", "url": "http://x"})), Some(Endpoint::Sse(_))));
    assert!(config(json!({"type": "sdk", "name": "calc"})).is_none());
}
