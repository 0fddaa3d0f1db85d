//! The key stays with the server; agents see a placeholder.

use ostler_testkit::{Script, reply, when};

use crate::desk::Desk;
use crate::spaces::{call_result, commands, session_in, space};

// Seen to fail with a proxy that gives the engine no placeholder and leaves the configured key in its environment.
#[tokio::test]
async fn commands_see_neither_the_key_nor_the_address_of_the_model() {
    let desk = Desk::open(commands("env")).await;
    let client = desk.client();
    space(&client, "team").await;
    let session = session_in(&client, "team").await;
    let seen = call_result(&desk, &client, &session).await;
    assert!(seen.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:"), "{seen}");
    for hidden in ["test-key", &desk.api.base_url(), "ANTHROPIC_API_KEY"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
    assert!(desk.api.requests().iter().all(|request| request.has_api_key));
}

#[tokio::test]
async fn an_unreadable_key_is_reported_and_a_new_one_counts_at_once() {
    let script = Script::new().rule(when(), reply().text("hello"));
    let desk = Desk::with(script, |config| {
        config.env.remove("ANTHROPIC_API_KEY");
        config.key_file = Some(config.data.join("key"));
    })
    .await;
    let client = desk.client();
    let session = client.session().await;
    let run = client.prompt(&session, "hi").await;
    let failed = client.until(&run, "failed").await;
    assert!(failed["outcome"]["error"].to_string().contains("key file"), "{failed}");
    let health = client.get("/api/model").await;
    assert!(health["status"].as_str().unwrap().contains("key file"), "{health}");
    let file = desk.data().join("data/key");
    std::fs::write(&file, "the-operators-key").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, private).unwrap();
    assert_eq!(client.get("/api/model").await["status"], "ok");
    let run = client.prompt(&session, "and now?").await;
    client.until(&run, "completed").await;
}
