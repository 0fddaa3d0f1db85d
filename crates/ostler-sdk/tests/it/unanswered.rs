//! Callbacks that do not answer: who is told, and when they are told to give up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ostler_sdk::{CancellationToken, Client, Decision, Options};

use crate::callbacks::{ELICITS, SHOWS};
use crate::fake::{ANSWERS, Fake, INTRODUCES, run, within};

/// Asks for a permission, and keeps the answer if there is one.
const ASKS: &str = r#"
read -r prompt
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
"#;

/// The warnings that a run told, by message and by the error output.
async fn warned(fake: &Fake, change: impl FnOnce(Options) -> Options) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let options = change(fake.options()).on_stderr(move |line| {
        kept.lock().unwrap().push(line.to_owned());
    });
    let (messages, errors) = run(options).await;
    assert!(errors.is_empty(), "{errors:?}");
    let told = messages.iter().filter_map(|message| match message {
        ostler_sdk::Message::System(ostler_proto::message::System::Informational(told)) => {
            assert_eq!(told.tag.as_deref(), Some("callback_failed"));
            Some(told.content.clone())
        }
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(*lines.lock().unwrap(), told);
    told
}

/// Seen to fail before callbacks were reported: the model alone read that the answer is a no.
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

/// Gives the token of a question to the outside, as a dialog would.
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
async fn a_question_without_an_answer_is_cancelled_when_the_engine_ends_or_the_client_is_dropped() {
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

/// Seen to fail before: `close` ended the engine and said that all is well.
#[tokio::test]
async fn closing_says_when_the_engine_did_not_finish() {
    let busy = Fake::new(&[INTRODUCES, "cat > /dev/null; exec sleep 600"]);
    let client = within(Client::connect(busy.options())).await.unwrap();
    let error = within(client.close_within(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.kind(), ostler_sdk::ErrorKind::Timeout, "{error}");
    assert_eq!(error.to_string(), "finishing the work at hand took longer than 0.1 s");
    let quick = Fake::new(&[INTRODUCES, "cat > /dev/null"]);
    within(within(Client::connect(quick.options())).await.unwrap().close()).await.unwrap();
}
