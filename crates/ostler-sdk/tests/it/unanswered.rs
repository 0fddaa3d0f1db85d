//! Callbacks that do not answer: how that is reported, and when their request is cancelled.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_sdk::{CancellationToken, Client, Decision, Options};

use crate::callbacks::{ELICITS, SHOWS};
use crate::fake::{ANSWERS, Fake, INTRODUCES, run, within};

/// Sends a permission request.
const ASKS: &str = r#"
read -r prompt
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
"#;

/// The warnings of a run. Messages and the stderr listener must have received the same ones.
async fn warned(fake: &Fake, change: impl FnOnce(Options) -> Options) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&lines);
    let options = change(fake.options()).on_stderr(move |line| {
        received.lock().unwrap().push(line.to_owned());
    });
    let (messages, errors) = run(options).await;
    assert!(errors.is_empty(), "{errors:?}");
    let warnings = messages.iter().filter_map(|message| match message {
        ostler_sdk::Message::System(ostler_proto::message::System::Informational(warning)) => {
            assert_eq!(warning.tag.as_deref(), Some("callback_failed"));
            Some(warning.content.clone())
        }
        _ => None,
    });
    let warnings: Vec<_> = warnings.collect();
    assert_eq!(*lines.lock().unwrap(), warnings);
    warnings
}

/// Seen to fail before failed callbacks were reported: only the model received a denial.
#[tokio::test]
async fn a_callback_that_fails_is_reported_to_the_host() {
    let asks = Fake::new(&[INTRODUCES, ASKS, "read -r answer", ANSWERS, "cat > /dev/null"]);
    let panics =
        |options: Options| options.on_permission(|_| async { panic!("no {}", "database") });
    let expected = "The permission callback for Bash panicked: no database. The call was denied.";
    assert_eq!(warned(&asks, panics).await, [expected]);
    let silent = |options: Options| {
        let mut options = options.on_permission(|_| std::future::pending());
        options.permissions.timeout = Some(Duration::from_millis(50));
        options
    };
    let expected =
        "The permission callback for Bash did not answer within 0.05 s. The call was denied.";
    assert_eq!(warned(&asks, silent).await, [expected]);
    let answers = |options: Options| options.on_permission(|_| async { Decision::allow() });
    assert_eq!(warned(&asks, answers).await, [""; 0]);
    let elicits = Fake::new(&[INTRODUCES, ELICITS, ANSWERS, "cat > /dev/null"]);
    let panics = |options: Options| options.on_elicitation(|_| async { panic!("no idea") });
    let expected = "The elicitation callback for calc panicked: no idea.";
    assert_eq!(warned(&elicits, panics).await, [expected]);
    let shows = Fake::new(&[INTRODUCES, SHOWS, ANSWERS, "cat > /dev/null"]);
    let panics = |options: Options| options.on_dialog(["pick"], |_| async { panic!("no idea") });
    let expected = "The dialog callback for pick panicked: no idea.";
    assert_eq!(warned(&shows, panics).await, [expected]);
}

/// A callback that does not answer and sends the token of each request to the test.
fn on_permission(
    options: Options,
) -> (Options, tokio::sync::mpsc::UnboundedReceiver<CancellationToken>) {
    let (tokens, given) = tokio::sync::mpsc::unbounded_channel();
    let options = options.on_permission(move |request| {
        let _ = tokens.send(request.cancelled.clone());
        std::future::pending()
    });
    (options, given)
}

/// Mutant: `drop_guard` left out of `Callbacks::answer`.
#[tokio::test]
async fn the_token_of_an_unanswered_request_fires_when_the_engine_ends_or_the_client_is_dropped() {
    for (how, rest) in
        [("ends", "read -r go; exit 0"), ("drop", "cat > /dev/null"), ("time", "cat > /dev/null")]
    {
        let fake = Fake::new(&[INTRODUCES, ASKS, rest]);
        let (mut options, mut given) = on_permission(fake.options());
        if how == "time" {
            options.permissions.timeout = Some(Duration::from_millis(50));
        }
        let mut client = within(Client::connect(options)).await.unwrap();
        client.send("hello").await.unwrap();
        let token = within(given.recv()).await.unwrap();
        match how {
            "drop" => drop(client),
            "ends" => {
                client.send("go").await.unwrap();
                assert!(within(client.next()).await.is_none());
            }
            _ => {}
        }
        within(token.cancelled()).await;
    }
    // The task of a session ends with its runtime.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let token = std::thread::spawn(move || {
        let fake = Fake::new(&[INTRODUCES, ASKS, "cat > /dev/null"]);
        let (options, mut given) = on_permission(fake.options());
        let (client, token) = runtime.block_on(async {
            let client = Client::connect(options).await.unwrap();
            client.send("hello").await.unwrap();
            (client, given.recv().await.unwrap())
        });
        drop(runtime);
        drop(client);
        token
    });
    within(token.join().unwrap().cancelled()).await;
}

/// Seen to fail before: `close` ended the engine and returned no error.
#[tokio::test]
async fn closing_reports_an_engine_that_did_not_finish() {
    let busy = Fake::new(&[INTRODUCES, "cat > /dev/null; exec sleep 600"]);
    let client = within(Client::connect(busy.options())).await.unwrap();
    let error = within(client.close_within(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.kind(), ostler_sdk::ErrorKind::Timeout, "{error}");
    assert_eq!(error.to_string(), "finishing the current work took longer than 0.1 s");
    let quick = Fake::new(&[INTRODUCES, "cat > /dev/null"]);
    within(within(Client::connect(quick.options())).await.unwrap().close()).await.unwrap();
}
