//! The errors that an embedded engine reports to its host.

use ostler::{Error, ErrorKind, Options};

/// Options for a session whose API does not answer.
fn options(home: &std::path::Path) -> Options {
    let mut options = ostler::options()
        .cwd(home)
        .env("HOME", home.display().to_string())
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .env("ANTHROPIC_API_KEY", "test")
        .env("CLAUDE_CODE_MAX_RETRIES", "0");
    options.engine.env.replaces = true;
    options
}

async fn error(change: impl FnOnce(&mut Options)) -> Error {
    let home = tempfile::tempdir().unwrap();
    let mut options = options(home.path());
    change(&mut options);
    ostler::prompt("hello", options).await.unwrap_err()
}

#[tokio::test]
async fn an_unknown_extra_argument_is_refused_and_the_error_names_it() {
    for name in ["seed", "stop", "presence-penalty", "frequency-penalty"] {
        let error = error(|options| {
            options.engine.extra_args = vec![(name.to_owned(), Some("1".to_owned()))];
        })
        .await;
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("engine.extra_args: --{name} is not known")), "{text}");
    }
}

#[tokio::test]
async fn the_option_user_is_refused_for_an_engine_in_this_process() {
    let error = error(|options| options.engine.user = Some("nobody".to_owned())).await;
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("cannot run as nobody"), "{error}");
}

/// A change that makes an engine fail, the kind of the error, and texts that the error contains.
type Trouble = (fn(&mut Options), ErrorKind, &'static [&'static str]);

#[rustfmt::skip]
const TROUBLES: &[Trouble] = &[
    // The API does not answer.
    (|_| {}, ErrorKind::Api, &["127.0.0.1:9"]),
    (|it| it.context.settings = Some(r#"{"permissions": 7}"#.to_owned()), ErrorKind::Usage, &["permissions", "expected an object"]),
    (|it| it.context.settings = Some("no/such.json".to_owned()), ErrorKind::Usage, &["no/such.json"]),
    (|it| it.permissions.allowed = vec!["Bash(".to_owned()], ErrorKind::Usage, &["Bash("]),
    (|it| it.engine.extra_args = vec![("effort".to_owned(), Some("heroic".to_owned()))], ErrorKind::Usage, &["heroic", "low, medium"]),
    (|it| it.session.choice.resume = Some("44444444-4444-4444-8444-444444444444".to_owned()), ErrorKind::Refused, &["44444444"]),
    (|it| it.output.schema = Some(serde_json::json!({"type": "nonsense"})), ErrorKind::Usage, &["nonsense"]),
    (|it| it.tape.replay = Some("no/such.jsonl".to_owned()), ErrorKind::Usage, &["no/such.jsonl"]),
];

#[tokio::test]
async fn errors_of_the_engine_name_their_cause() {
    for (change, kind, causes) in TROUBLES {
        let error = error(change).await;
        let text = error.to_string();
        assert_eq!(error.kind(), *kind, "{text}");
        for cause in *causes {
            assert!(text.contains(cause), "no {cause:?} in {text}");
        }
    }
}
