//! Conversations that outlive the program.

use ostler_testkit::{Script, ScriptedApi, reply, when};

use crate::run::Ostler;

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_where_it_ended() {
    let script =
        Script::new().rule(when().prompt_contains("my name"), reply().text("Hello Ada.")).rule(
            when().prompt_contains("who am I").any_text_contains("my name is Ada"),
            reply().text("You are Ada."),
        );
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    ostler.run(&["my name is Ada"]).shows(&["Hello Ada."]);
    ostler.run(&["--continue", "who am I?"]).shows(&["You are Ada."]);

    let listed = ostler.run(&["sessions"]);
    let id = listed.stdout.split_whitespace().next().unwrap().to_owned();
    assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
    ostler.run(&["--resume", &id, "--fork-session", "who am I?"]).shows(&["You are Ada."]);
    assert_eq!(ostler.run(&["sessions"]).stdout.lines().count(), 2);
    api.finish();
}

#[test]
fn nothing_is_kept_when_that_is_asked_for() {
    let ostler = Ostler::new();
    ostler.run(&["--no-session-persistence", "list the files"]);
    ostler.run(&["sessions"]).shows(&["no conversations yet"]);
}

#[test]
fn a_conversation_that_is_not_there_is_an_error() {
    let ostler = Ostler::new();
    for arguments in
        [&["--continue", "hi"][..], &["--resume", "00000000-0000-4000-8000-000000000000", "hi"]]
    {
        let ran = ostler.run(arguments);
        assert!(ran.stderr.contains("No conversation found"), "{}", ran.stderr);
        assert_eq!(ran.code, Some(1));
    }
}

#[test]
fn a_conversation_that_cannot_be_saved_says_so_and_goes_on() {
    let ostler = Ostler::new().env("CLAUDE_CONFIG_DIR", "/dev/null/nowhere");
    ostler.run(&["list the files"]).shows(&["this conversation is not being saved", "README.md"]);
}
