//! The program `scripted-api`: its output, its end and its exit code.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{ask, client};

const HELLO: &str = r#"{
    "rules": [{"when": {"prompt": "hello"}, "reply": {"content": [{"type": "text", "text": "hi"}]}}]
}"#;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scripted-api"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running program; killed if the test does not end it.
struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    base_url: String,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let base_url = line
            .strip_prefix("listening on ")
            .unwrap_or_else(|| panic!("unexpected line {line:?}"));
        let base_url = base_url.strip_suffix('\n').unwrap().to_owned();
        Self { child, stdout, base_url }
    }

    async fn ask(&self, prompt: &str) -> Value {
        let url = format!("{}/v1/messages", self.base_url);
        client().post(url).json(&ask(prompt)).send().await.unwrap().json().await.unwrap()
    }

    /// Closes standard input and returns exit code, the rest of standard output, and standard error.
    fn close_input(mut self) -> (Option<i32>, String, String) {
        drop(self.child.stdin.take());
        self.end()
    }

    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Has no effect if the program has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script_file(json: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(json.as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn the_program_prints_one_line_and_exits_with_0_when_its_input_closes() {
    let script = script_file(HELLO);
    let running = Running::start(program().args(["--port", "0", "--script"]).arg(script.path()));
    assert!(running.base_url.starts_with("http://127.0.0.1:"));
    assert_eq!(running.ask("hello").await["content"][0]["text"], "hi");
    assert_eq!(running.close_input(), (Some(0), String::new(), String::new()));
}

#[tokio::test]
async fn an_uncovered_request_is_reported_on_standard_error_and_in_the_exit_code() {
    let script = script_file(HELLO);
    let running = Running::start(program().arg("--script").arg(script.path()));
    assert_eq!(running.ask("goodbye").await["type"], "error");
    let (code, stdout, stderr) = running.close_input();
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("no rule covers request 0"), "{stderr}");
    assert!(stderr.contains("0.0 user       text: goodbye"), "{stderr}");
    assert!(stderr.contains("0: prompt does not contain \"hello\""), "{stderr}");
}

#[tokio::test]
async fn the_script_can_be_sent_to_the_running_program() {
    let running = Running::start(&mut program());
    let control = |endpoint: &str| format!("{}/__scripted/{endpoint}", running.base_url);
    client().post(control("script")).body(HELLO).send().await.unwrap();
    assert_eq!(running.ask("hello").await["content"][0]["text"], "hi");
    let requests: Value =
        client().get(control("requests")).send().await.unwrap().json().await.unwrap();
    assert_eq!(requests[0]["body"]["messages"][0]["content"], "hello");
    assert_eq!(running.close_input().0, Some(0));
}

#[tokio::test]
async fn a_stalled_stream_does_not_keep_the_program_running() {
    let stall =
        json!({"rules": [{"reply": {"interruptions": [{"after_events": 1, "do": "stall"}]}}]});
    let script = script_file(&stall.to_string());
    let running = Running::start(program().arg("--script").arg(script.path()));
    let mut request = ask("hi");
    request["stream"] = json!(true);
    let url = format!("{}/v1/messages", running.base_url);
    let mut response = client().post(url).json(&request).send().await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    assert_eq!(running.close_input().0, Some(0));
    assert!(response.chunk().await.is_err(), "the stream has no proper end");
}

#[test]
fn a_signal_ends_the_program_and_with_keep_the_end_of_its_input_does_not() {
    let mut running = Running::start(program().arg("--keep").stdin(Stdio::null()));
    assert!(
        running.child.try_wait().unwrap().is_none(),
        "the program must run although its input is closed"
    );
    let sent = Command::new("kill").arg(running.child.id().to_string()).status().unwrap();
    assert!(sent.success());
    assert_eq!(running.end(), (Some(0), String::new(), String::new()));
}

#[test]
fn without_input_the_program_ends_with_its_parent() {
    // The shell starts the program, prints its process id, and ends at once.
    let script = r#""$0" </dev/null >"$1" & echo $!; while ! [ -s "$1" ]; do :; done"#;
    let output = tempfile::NamedTempFile::new().unwrap();
    let shell = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_scripted-api")])
        .arg(output.path())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let line = std::fs::read_to_string(output.path()).unwrap();
    let address = line.trim().strip_prefix("listening on http://").expect("it started");
    // The program accepts connections while it runs. It should end within a second; the limit is for a busy machine.
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::net::TcpStream::connect(address).is_ok() {
        let pid = String::from_utf8_lossy(&shell.stdout);
        assert!(std::time::Instant::now() < limit, "{} still runs", pid.trim());
        std::thread::yield_now();
    }
}

fn refused(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(stdout.is_empty());
    String::from_utf8(stderr).unwrap()
}

#[test]
fn a_bad_script_is_an_error_that_names_the_rule_and_the_field() {
    let script =
        script_file(r#"{"rules": [{"reply": {}}, {"when": {"turn": "first"}, "reply": {}}]}"#);
    let error = refused(program().arg("--script").arg(script.path()));
    assert!(
        error.contains(&format!(
            "{}: rules[1].when.turn: invalid type: string",
            script.path().display()
        )),
        "{error}"
    );
}

#[test]
fn the_error_of_a_failed_start_names_the_reason() {
    assert!(
        refused(program().args(["--script", "no/such/file.json"]))
            .contains("no/such/file.json: cannot read the script")
    );
    assert!(refused(program().args(["--port", "many"])).contains("--port"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert!(refused(program().args(["--port", &port])).contains("in use"));
}
