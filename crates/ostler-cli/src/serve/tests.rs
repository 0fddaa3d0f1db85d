//! The options of `ostler serve` reach the server's configuration.

use std::ffi::OsString;
use std::time::Duration;

use ostler_server::config::{Limits, WebhookEvent};

use super::*;
use crate::args::Command;

fn configured(arguments: &[&str]) -> Config {
    let words = ["ostler", "serve", "--data", "/data"].iter().chain(arguments);
    let (args, _) = Args::read(words.map(OsString::from).collect()).unwrap();
    let Some(Command::Serve(serve)) = &args.command else { panic!("{arguments:?}") };
    config(&args, serve).unwrap()
}

/// Arguments, and whether a configuration contains their effect.
type Row = (&'static [&'static str], fn(&Config) -> bool);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (&["--listen", "127.0.0.1:9"], |it| it.listen.port() == 9),
    (&["--data", "/other"], |it| it.data == Path::new("/other")),
    (&["--root", "/a", "--root", "/b"], |it| it.roots.len() == 2),
    (&["--skills", "/skills"], |it| it.skills == [PathBuf::from("/skills")]),
    (&["--cms", "http://127.0.0.1/x"], |it| it.cms.as_ref().is_some_and(|cms| cms.url.ends_with("/x"))),
    (&["--webhook", "http://127.0.0.1/y"], |it| it.webhook.as_ref().is_some_and(|hook| hook.url.ends_with("/y"))),
    (&["--webhook", "http://127.0.0.1/y", "--webhook-events", "ended"], |it| it.webhook.as_ref().is_some_and(|hook| hook.events == [WebhookEvent::Ended])),
    (&["--allow-private-callbacks"], |it| it.private_callbacks),
    (&["--engine", "/engine"], |it| it.engine == EngineChoice::Program("/engine".into())),
    (&["--key-file", "/key"], |it| it.key_file.as_deref() == Some(Path::new("/key"))),
    (&["--pass-env", "ONE"], |it| it.pass_env == ["ONE"]),
    (&["--fixed-model"], |it| !it.model_by_request),
    (&["--allow-bypass"], |it| it.allow_bypass),
    (&["--no-questions"], |it| it.questions == Questions::Never),
    (&["--backups", "/b"], |it| it.backups.as_deref() == Some(Path::new("/b"))),
    (&["--keep-sessions", "90d"], |it| it.keep_sessions == Some(Duration::from_secs(90 * 86_400))),
    (&["--max-runs", "3"], |it| it.limits.concurrent_runs == 3),
    (&["--run-timeout", "7s"], |it| it.limits.run == Some(Duration::from_secs(7))),
    (&["--tool-timeout", "7s"], |it| it.limits.tool == Some(Duration::from_secs(7))),
    (&["--idle-timeout", "7s"], |it| it.limits.idle == Duration::from_secs(7)),
    (&["--approval-timeout", "7s"], |it| it.limits.approval == Some(Duration::from_secs(7))),
    (&["--host", "agents.example.org"], |it| it.hosts == ["agents.example.org"]),
    (&["--agui-origin", "https://example.org"], |it| it.agui.origins.len() == 1),
    (&["--insecure-bind"], |it| it.insecure_bind),
    (&["--model", "m"], |it| it.model.as_deref() == Some("m")),
    (&["--settings", "{}"], |it| it.settings.as_deref() == Some("{}")),
    (&["--permission-mode", "plan"], |it| it.permission_mode == Some(PermissionMode::Plan)),
    (&["--trust-project"], |it| it.trust_project_servers),
    (&["--max-turns", "5"], |it| it.limits.max_turns == Some(5)),
    (&["--max-budget-usd", "2"], |it| it.limits.max_budget_usd == Some(2.0)),
    (&["--cwd", "/"], |it| it.workspace == Path::new("/")),
];

// Mutant: any line of `config` left out.
#[test]
fn every_option_of_serve_reaches_the_configuration() {
    let usual = configured(&[]);
    assert_eq!(usual.limits, Limits { concurrent_runs: 64, ..Limits::default() });
    for (arguments, has_effect) in ROWS {
        assert!(has_effect(&configured(arguments)), "{arguments:?} is ignored");
        assert!(!has_effect(&usual), "{arguments:?} is already the default");
    }
}

// Mutant: the workspace counts although only the current folder named it, or a folder that is not a repository counts.
#[test]
fn only_repositories_that_the_operator_names_are_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [named, plain, inner] = ["named", "plain", "named/inner"].map(|name| folder.join(name));
    for repository in [&named, &inner] {
        std::fs::create_dir_all(repository.join(".git")).unwrap();
    }
    std::fs::create_dir_all(&plain).unwrap();
    let text = |path: &PathBuf| path.display().to_string();
    let trusted = |arguments: &[&str]| configured(arguments).trusted_repositories;
    let (named_text, plain_text) = (text(&named), text(&plain));
    let roots = ["--root", &named_text, "--root", &plain_text];
    assert_eq!(trusted(&roots), std::slice::from_ref(&named));
    assert_eq!(trusted(&["--cwd", &named_text]), [named]);
    assert_eq!(trusted(&["--cwd", &plain_text]), Vec::<PathBuf>::new());
    assert_eq!(trusted(&[]), Vec::<PathBuf>::new());
}
