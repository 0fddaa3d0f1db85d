//! Seed 002, "Error Handling", and requirements R291 to R302: one test per row.

use ostler_prompt::{Adapter, Category, Error, Session};
use ostler_sdk::Options;
use ostler_testkit::{Script, Status, reply, when};

use crate::fake::{Fake, INTRODUCES, prompt};
use crate::result;
use crate::stage::{PublishedEvents, Stage, within};

async fn error(options: Options) -> Error {
    let adapter = Adapter::new(options);
    let session = Session::new();
    let mut published = PublishedEvents::of(&session);
    let error = within(adapter.evaluate(&prompt::<()>("go"), &session)).await.unwrap_err();
    assert_eq!(error.prompt_name(), "test/prompt");
    // A failure is published too, once.
    assert_eq!(published.lines(), ["rendered test/prompt".to_owned(), format!("failed {error}")]);
    error
}

async fn error_of(engine: &[&str]) -> Error {
    error(Fake::new(engine).options()).await
}

#[tokio::test]
async fn cli_not_found_is_an_evaluation_error_with_what_to_install() {
    let error = error(Options::new().executable("/no/such/engine")).await;
    assert!(matches!(error, Error::EngineMissing { .. }), "{error:?}");
    assert_eq!((error.category(), error.is_retryable()), (Category::Evaluation, false));
    let text = error.to_string();
    assert!(text.contains("/no/such/engine") && text.contains("install ostler"), "{text}");
}

#[tokio::test]
async fn cli_connection_error_is_a_throttle_error() {
    let error = error_of(&[INTRODUCES, "kill -KILL $$"]).await;
    assert!(matches!(error, Error::Throttled { .. }), "{error:?}");
    assert_eq!((error.category(), error.is_retryable()), (Category::Throttle, true));
}

#[tokio::test]
async fn an_engine_that_exits_without_output_is_a_lost_connection() {
    let error = error_of(&[INTRODUCES, "exit 0"]).await;
    assert_eq!((error.category(), error.is_retryable()), (Category::Throttle, true), "{error:?}");
}

#[tokio::test]
async fn process_error_is_an_evaluation_error_with_exit_code_and_stderr() {
    let error = error_of(&[INTRODUCES, "echo 'out of memory' >&2; exit 9"]).await;
    let Error::EngineFailed { exit_code, stderr, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*exit_code, stderr.as_str()), (Some(9), "out of memory\n"));
    assert_eq!((error.category(), error.is_retryable()), (Category::Evaluation, false));
}

#[tokio::test]
async fn cli_json_decode_error_is_an_evaluation_error_with_the_line() {
    let error =
        error_of(&[INTRODUCES, r#"echo '{"type":"result","subtype":7}'; cat > /dev/null"#]).await;
    let Error::Malformed { line, .. } = &error else { panic!("{error:?}") };
    assert_eq!(line, r#"{"type":"result","subtype":7}"#);
    assert_eq!((error.category(), error.is_retryable()), (Category::Evaluation, false));
}

#[tokio::test]
async fn max_turns_exceeded_is_an_evaluation_error() {
    let script = Script::new()
        .rule(when(), reply().tool_use("Bash", serde_json::json!({"command": "true"})));
    let stage = Stage::new(script).await;
    let adapter = stage.adapter_with(ostler_prompt::ClientConfig::default().with_max_turns(2));
    let error = within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap_err();
    assert!(matches!(error, Error::MaxTurns { .. }), "{error:?}");
    assert_eq!((error.category(), error.is_retryable()), (Category::Evaluation, false));
    assert_eq!(stage.requests().len(), 2);
}

#[tokio::test]
async fn every_error_subtype_has_its_variant_with_the_list_of_errors() {
    macro_rules! ends {
        ($subtype:literal) => {
            error_of(&[
                INTRODUCES,
                result!(r#""is_error":true,"errors":["one","two"],"subtype":""#, $subtype, r#"""#),
            ])
            .await
        };
    }
    let list = ["one".to_owned(), "two".to_owned()];
    let error = ends!("error_max_turns");
    assert!(matches!(&error, Error::MaxTurns { errors, .. } if *errors == list), "{error:?}");
    assert_eq!(error.to_string(), "test/prompt: one; two");
    let error = ends!("error_max_budget_usd");
    assert!(
        matches!(&error, Error::Budget { errors, exhausted: ostler_prompt::Exhausted::Usd, .. } if *errors == list),
        "{error:?}"
    );
    let error = ends!("error_max_structured_output_retries");
    assert!(matches!(&error, Error::AnswerRetries { errors, .. } if *errors == list), "{error:?}");
    let error = ends!("error_during_execution");
    let is_named = |error: &Error, name: &str| matches!(error, Error::Execution { errors, subtype, .. } if *errors == list && subtype == name);
    assert!(is_named(&error, "error_during_execution"), "{error:?}");
    // A subtype of a later version.
    let error = ends!("error_moon_phase");
    assert!(is_named(&error, "error_moon_phase"), "{error:?}");
}

#[tokio::test]
async fn a_refusal_of_the_api_is_permanent_or_temporary() {
    for (status, retryable) in [(400, false), (401, false), (429, true), (529, true)] {
        let script = Script::new().rule(when(), reply().status(Status::new(status)));
        let stage = Stage::new(script).await;
        let adapter = Adapter::new(stage.options().env("CLAUDE_CODE_MAX_RETRIES", "0"));
        let error =
            within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap_err();
        assert_eq!(error.is_retryable(), retryable, "{status}: {error:?}");
        if !retryable {
            assert!(matches!(error, Error::Api { .. }), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_cancelled_run_is_reported_as_cancelled() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("never").hold("gate"))).await;
    let token = ostler_sdk::CancellationToken::new();
    let adapter = Adapter::new(stage.options().cancel_with(token.clone()));
    let gate = stage.api.gate("gate");
    let cancel = async {
        gate.reached().await;
        token.cancel();
    };
    let (prompt, session) = (prompt::<()>("go"), Session::new());
    let (response, ()) = tokio::join!(within(adapter.evaluate(&prompt, &session)), cancel);
    assert!(matches!(response, Err(Error::Cancelled { .. })), "{response:?}");
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let mut options = Options::new().executable("/bin/true");
    options.limits.max_budget_usd = Some(-1.0);
    let error = error(options).await;
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("max_budget_usd"), "{error}");
}

#[test]
fn workspace_security_violations_have_their_own_type() {
    let opened = ostler_prompt::Workspace::builder()
        .mount(ostler_prompt::HostMount::new("/etc"))
        .allowed_host_roots([std::env::temp_dir()])
        .open();
    let error = opened.unwrap_err();
    assert!(error.is_security());
    let ostler_prompt::WorkspaceError::Security(error) = error else { panic!("{error:?}") };
    assert!(matches!(error, ostler_prompt::workspace::WorkspaceSecurityError::OutsideRoots { .. }));
}
