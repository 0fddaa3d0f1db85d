//! The setup that an engine reports, and the files it suggests.

use ostler_server::config::Config;
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

// Seen to fail when the engine's setup is not stored.
#[tokio::test]
async fn a_session_shows_the_setup_of_its_engine_also_after_the_engine_has_ended() {
    let mut desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let client = desk.client();
    let session = client.session().await;
    let path = format!("/api/sessions/{session}/setup");
    let none = client.get(&path).await;
    assert_eq!((none.get("at"), &none["tools"], &none["live"]), (None, &json!([]), &json!(false)));
    let run = client.prompt(&session, "hello").await;
    client.until(&run, "completed").await;
    let setup = client.get(&path).await;
    assert_eq!((&setup["model"], &setup["live"]), (&json!("claude-sonnet-4-5"), &json!(true)));
    assert!(setup["tools"].as_array().unwrap().contains(&json!("Bash")), "{setup}");
    let find = |list: &str, name: &str| -> Value {
        let list = setup[list].as_array().unwrap();
        list.iter().find(|it| it["name"] == name).cloned().unwrap_or_default()
    };
    let agent = &setup["agents"][0];
    assert!(!agent["description"].as_str().unwrap().is_empty(), "{setup}");
    assert!(!find("commands", "compact")["description"].as_str().unwrap().is_empty());
    desk.stop().await;
    desk.start().await;
    let later = desk.client().get(&path).await;
    assert_eq!((&later["live"], &later["tools"]), (&json!(false), &setup["tools"]));
    let ann = desk.client_of("ann").await;
    assert_eq!(ann.ask(Method::GET, &path, None).await.0, 404);
    desk.api.finish();
}

async fn found(client: &Client, session: &str, query: &str) -> Vec<String> {
    let list = client.get(&format!("/api/sessions/{session}/files?{query}")).await;
    let items = list["items"].as_array().unwrap();
    items.iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect()
}

// Seen to fail when folders are always shown.
#[tokio::test]
async fn only_files_that_the_agent_may_read_are_found() {
    // The workspace contains the server's data folder, which agents must not read.
    let own = |config: &mut Config| config.workspace = config.data.parent().unwrap().to_owned();
    let desk = Desk::with(Script::new(), own).await;
    let place = desk.data();
    for (name, text) in [
        ("src/main.rs", ""),
        ("src/deep/domain.txt", ""),
        ("target/main.o", ""),
        (".gitignore", "target/\n"),
    ] {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let client = desk.client();
    let session = client.session().await;
    assert_eq!(found(&client, &session, "q=MAIN").await, ["src/main.rs", "src/deep/domain.txt"]);
    assert_eq!(found(&client, &session, "q=main&limit=1").await, ["src/main.rs"]);
    assert_eq!(found(&client, &session, "q=nothing").await, [""; 0]);
    assert!(place.join("data/token").exists() && place.join("data/log/ostler.db").exists());
    for kept_out in ["q=token", "q=ostler.db", "q=data/log"] {
        assert_eq!(found(&client, &session, kept_out).await, [""; 0], "{kept_out}");
    }
    let top = found(&client, &session, "").await;
    assert!(top.contains(&"src/".to_owned()) && !top.contains(&"target/".to_owned()), "{top:?}");
    let list = client.get(&format!("/api/sessions/{session}/files?q=src")).await;
    assert_eq!((&list["items"][0]["kind"], &list["truncated"]), (&json!("folder"), &json!(false)));
    let path = format!("/api/sessions/{session}/files");
    for wrong in ["limit=0", "limit=201", "x=1"] {
        let (status, _) = client.ask(Method::GET, &format!("{path}?{wrong}"), None).await;
        assert!(status.is_client_error(), "{wrong}: {status}");
    }
    let ann = desk.client_of("ann").await;
    assert_eq!(ann.ask(Method::GET, &path, None).await.0, 404);
    desk.api.finish();
}
